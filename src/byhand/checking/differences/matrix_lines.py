"""Lines of a matrix that differ: the weights of some inputs, or of some outputs.

An input whose weights differ makes every output differ by a multiple of that column of X.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.checking.differences.difference import Description, Floats, Reading
from byhand.checking.differences.matrix_entries import FACTORS, entry_readings
from byhand.checking.differences.product import (
    CHANCE,
    GOOD,
    Places,
    Product,
    by_chance,
    root_mean_square,
    solved,
)
from byhand.checking.differences.told import numbered, told
from byhand.checking.suspects.rewritings import LinesScaled, LinesSet, LinesTaken
from byhand.language import _

MOST_INPUTS = 6  # whose weights differ
SOME = 256  # columns on which inputs are looked for
FEW = 12  # columns that are looked for among all of them at first


def line_readings(product: Product) -> Iterator[Reading]:
    """Entries, inputs or outputs of the matrix that differ, the fewest first."""
    for read in (entry_readings, _inputs, _outputs):
        found = list(read(product))
        yield from found
        if found:
            return


# ------------------------------------------------------------------------ inputs


def _inputs(product: Product) -> Iterator[Reading]:
    """Input channels whose weights differ: X[:, i] times something, in every column."""
    if len(product.wrong_columns) < 2:
        return
    rows = _which_inputs(product) or _exchanged(product)
    if rows is None:
        return
    found = solved(product.x[:, rows], product.off, product.room)
    if found is None:
        return
    moved, sure = found
    if not product.fits(product.expected + product.x[:, rows] @ moved):
        return
    acts = product.matrix[rows] + moved
    yield from _lines(product, 0, np.asarray(rows), acts, sure)


def _which_inputs(product: Product) -> list[int] | None:
    """The fewest inputs whose multiples explain every column; None if they are not few."""
    most = min(MOST_INPUTS, (product.count - 1) // 2)
    unit = np.sqrt(1 / np.square(product.room).mean(axis=1))[:, None]
    order = np.argsort(-np.square(product.off / product.room).sum(axis=0))[:SOME]
    aim = product.off[:, order] * unit
    terms = product.x * unit
    sizes = np.square(terms).sum(axis=0)
    left, chosen = aim, list[int]()
    whole = float(np.square(aim).sum())
    for _turn in range(most):
        with np.errstate(all="ignore"):
            gains = np.square(terms.T @ left).sum(axis=1)
            gains = np.where(sizes > 0, gains / sizes, 0.0)
        gains[chosen] = 0.0
        place = int(gains.argmax())
        before = float(np.square(left).sum())
        chosen.append(place)
        part = terms[:, chosen]
        left = aim - part @ np.linalg.lstsq(part, aim, rcond=None)[0]
        freedom = left.size * (1 - len(chosen) / product.count)
        rest = float(np.square(left).sum())
        if rest <= GOOD**2 * freedom:
            rivals = float(np.sort(gains)[-2]) if len(gains) > 1 else 0.0
            share = max(rest, freedom) / whole
            enough = by_chance(len(gains) ** len(chosen), share, product.count - len(chosen))
            alone = before - rivals > 4 * max(rest, freedom)
            return chosen if alone and enough <= CHANCE else None
    return None


def _exchanged(product: Product) -> list[int] | None:
    """Two inputs that change places: every column differs by a multiple of X_a - X_b."""
    if product.rank != 1 or product.count < 4:
        return None
    unit = 1 / np.sqrt(np.square(product.room).mean(axis=1))[:, None]
    left, _sizes, _right = np.linalg.svd(product.off * unit, full_matrices=False)
    x = product.x * unit
    along = left[:, 0] @ x
    across = x - np.outer(left[:, 0], along)
    squares = np.square(across).sum(axis=0)
    apart = squares[:, None] + squares - 2 * (across.T @ across)
    np.fill_diagonal(apart, np.inf)
    share = np.abs(apart) / (np.square(along[:, None] - along) + np.finfo(float).tiny)
    a, b = map(int, np.unravel_index(int(share.argmin()), share.shape))
    enough = by_chance(share.size, float(share[a, b]), product.count - 1)
    return [a, b] if enough <= CHANCE else None


# ------------------------------------------------------------------------ outputs


def _outputs(product: Product) -> Iterator[Reading]:
    """Output channels whose weights differ as a whole: scaled, or those of another channel."""
    columns = product.wrong_columns
    if not len(columns) or product.count < 3:
        return
    bias = np.zeros(product.off.shape[1]) if product.bias is None else product.bias
    own = product.expected - bias
    claimed = product.claimed[:, columns] - bias[columns]
    room = product.room[:, columns]
    yield from _scaled_outputs(product, columns, own[:, columns], claimed, room)
    if product.bias is not None and len(columns) > 1:
        yield from _moved_outputs(product, columns, own, claimed, room)


def _scaled_outputs(
    product: Product, columns: Places, own: Floats, claimed: Floats, room: Floats
) -> Iterator[Reading]:
    """Columns that are a multiple of themselves, without the bias."""
    if product.bias is None and len(columns) == product.off.shape[1]:
        return  # a factor of the whole line
    with np.errstate(all="ignore"):
        sizes = np.square(own / room).sum(axis=0)
        factors = (own * claimed / np.square(room)).sum(axis=0) / sizes
    if not np.isfinite(factors).all():
        return
    sure = 1 / np.sqrt(sizes)
    one = _common(factors, sure)
    chosen = np.full(len(columns), one) if one is not None else factors
    part = product.matrix[:, columns] * chosen
    if not product.fits(product.times(part, columns), columns):
        return
    everything = len(columns) == product.off.shape[1]
    if one is None and everything and product.count < 3:
        return
    words: dict[str, Any] = {
        "name": product.name, "line": product.lines_of(1), "lines": numbered(columns.tolist()),
        "factor": told(float(chosen[0]), float(sure[0])),
    }  # fmt: skip
    known = one is not None and one in FACTORS
    if one is None:
        said = _(
            "it follows if each of {count} {line}s of {name} has a factor of its own "
            "(first: {factor}), its bias none; the model has none"
        )
    elif everything:
        said = _("it follows if {name} is multiplied by {factor}, its bias is not; the model has "
                 "it as it is")  # fmt: skip
    else:
        said = _("it follows if {line} {lines} of {name} is multiplied by {factor}; the model has "
                 "it as it is")  # fmt: skip
    change = _("look for a factor of {factor} on {name}")
    fitted = (0 if known else 1) if one is not None else len(columns)
    lines = product.columns[columns]
    yield product.rewritten("weight-factor", said, change, LinesScaled(1, lines, chosen),
                            fitted=fitted, unlikely=2, count=len(columns), **words)  # fmt: skip


def _common(factors: Floats, sure: Floats) -> float | None:
    """The factor that all share, within what is known of each; a plain one where it is one."""
    weights = 1 / np.square(sure)
    mean = float((factors * weights).sum() / weights.sum())
    near = 5 * sure + 1e-7
    for plain in FACTORS:
        if (np.abs(factors - plain) <= near).all():
            return plain
    if not (np.abs(factors - mean) <= near).all():
        return None
    simple = float(Fraction(mean).limit_denominator(20))
    return simple if (np.abs(factors - simple) <= near).all() else mean


def _moved_outputs(
    product: Product, columns: Places, own: Floats, claimed: Floats, room: Floats
) -> Iterator[Reading]:
    """Columns of the matrix that stand in place of others, while the bias stays."""
    sizes = np.sqrt(np.square(own).sum(axis=0))
    lengths = np.sqrt(np.square(claimed).sum(axis=0))
    with np.errstate(all="ignore"):
        unit = np.where(sizes > 0, own / sizes, 0.0)
        aim = np.where(lengths > 0, claimed / lengths, 0.0)
    assert product.bias is not None
    few = np.unique(np.linspace(0, len(columns) - 1, FEW).astype(np.intp))
    found = (unit.T @ aim[:, few]).argmax(axis=0)
    if not product.fits(own[:, found] + product.bias[columns[few]], columns[few]):
        return
    source = np.empty(len(columns), dtype=np.intp)
    for start in range(0, len(columns), SOME):
        part = slice(start, start + SOME)
        source[part] = (unit.T @ aim[:, part]).argmax(axis=0)
    if not product.fits(own[:, source] + product.bias[columns], columns):
        return
    yield from _reordered(product, 1, columns, source)


# ------------------------------------------------------------------------ whole lines


def _lines(
    product: Product, axis: int, lines: Places, acts: Floats, sure: Floats
) -> Iterator[Reading]:
    """The reading of some lines of the matrix that act as other numbers: where are they from?"""
    own = product.matrix if axis == 0 else product.matrix.T
    words: dict[str, Any] = {
        "name": product.name, "line": product.lines_of(axis), "lines": numbered(lines.tolist()),
    }  # fmt: skip
    near = sure
    for factor in FACTORS:
        if _near(acts, factor * own[lines], near):
            said = {
                0.0: _("it follows if {line} {lines} of {name} is 0; the file has other numbers"),
                -1.0: _("it follows if {line} {lines} of {name} has its sign changed; the file has "
                        "it as it is"),
            }.get(factor, _("it follows if {line} {lines} of {name} is multiplied by {factor}; the "
                            "file has it as it is"))  # fmt: skip
            yield product.rewritten(
                "weight-line", said, _("look for what changes {line} {lines} of {name} when the "
                "weights are loaded"), LinesScaled(axis, lines, factor), unlikely=1,
                factor=f"{factor:g}", **words)  # fmt: skip
            return
    source = _sources(own, acts)
    if _near(acts, own[source], near) and (source != lines).all():
        yield from _reordered(product, axis, lines, source)
        return
    if len(product.columns) < product.size(1):  # what the other columns act as is not known
        return
    for name in product.alike("weight") if axis == 0 else ():
        other = product.other(name)
        if (
            other is not None
            and other.shape == product.matrix.shape
            and _near(acts, other[lines], near)
        ):
            said = _(
                "it follows if {line} {lines} of {name} is that of {other}; the file has its own"
            )
            yield product.rewritten(
                "weight-line", said, _("look for what writes {other} into {name}"),
                LinesSet(axis, lines, other[lines]), unlikely=1, other=name,
                **words)  # fmt: skip
            return
    yield Description(_("only {line} {lines} of {name} acts as other numbers").format(**words), 3)
    if product.count < 6 * len(lines):
        return
    said = _("it follows if {line} {lines} of {name} acts as other numbers ({acts}, … in place of "
             "{own}, …); nothing else of the matrix differs")  # fmt: skip
    yield product.rewritten(
        "weight-line",
        said,
        _("look for what changes {line} {lines} of {name} when the weights are loaded"),
        LinesSet(axis, lines, acts),
        fitted=acts.size,
        unlikely=3,
        acts=told(float(acts.flat[0]), float(sure.flat[0])),
        own=f"{own[lines].flat[0]:.6g}",
        **words,
    )


def _near(acts: Floats, values: Floats, sure: Floats) -> bool:
    left = (acts - values) / sure
    return bool(root_mean_square(left) <= GOOD and np.abs(left).max(initial=0.0) <= 9.0)


def _sources(own: Floats, acts: Floats) -> Places:
    """For each line, the line of the matrix that it is most like."""
    sizes = np.sqrt(np.square(own).sum(axis=1))
    with np.errstate(all="ignore"):
        unit = np.where(sizes[:, None] > 0, own / sizes[:, None], 0.0)
    return np.asarray((unit @ acts.T).argmax(axis=0))


def _reordered(product: Product, axis: int, lines: Places, source: Places) -> Iterator[Reading]:
    """Lines that are other lines of the same matrix: exchanged, moved by n, or copied."""
    own, theirs = (product.columns[each] if axis else each for each in (lines, source))
    size = product.size(axis)
    order = np.arange(size)
    order[own] = theirs
    steps = np.unique((theirs - own) % size)
    words: dict[str, Any] = {
        "name": product.name, "line": product.lines_of(axis), "lines": numbered(own.tolist()),
        "sources": numbered(theirs.tolist()), "bias": "",
    }  # fmt: skip
    if axis == 1 and product.bias is not None:
        words["bias"] = _(", while the bias stays")
    if len(own) == 2 and list(own) == list(theirs[::-1]):
        said = _("it follows if {line}s {lines} of {name} change places{bias}; the file has them "
                 "in order")  # fmt: skip
        fitted = 0
    elif len(steps) == 1 and len(own) > 2:
        by = int(steps[0]) if steps[0] <= size // 2 else int(steps[0]) - size
        words["by"] = str(by)
        said = _("it follows if {line}s {lines} of {name} are read {by} further on{bias}; the "
                 "model reads them where they are")  # fmt: skip
        fitted = 0
    else:
        said = _("it follows if {line} {lines} of {name} is {line} {sources}{bias}; the file has "
                 "its own")  # fmt: skip
        fitted = 0 if len(own) <= 8 else 1
    change = _("look for a slice or an index of {name} that is off")
    yield product.rewritten("weight-moved", said, change, LinesTaken(axis, order), fitted=fitted,
                            unlikely=1, **words)  # fmt: skip

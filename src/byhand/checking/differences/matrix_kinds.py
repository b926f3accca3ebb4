"""A matrix that differs everywhere in one way: another order, groups, levels, another's part.

Each way is tried on a few columns first; what fits there is tried on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.checking.differences.difference import Description, Floats, Reading
from byhand.checking.differences.matrix_blocks import block_readings
from byhand.checking.differences.matrix_more import cut_readings, more_kinds
from byhand.checking.differences.matrix_offsets import offset_readings
from byhand.checking.differences.product import (
    NARROW,
    Places,
    Product,
    good,
    solved,
)
from byhand.checking.differences.told import numbered, told
from byhand.checking.suspects.rewritings import (
    GroupsMended,
    LinesScaled,
    LinesSet,
    LinesTaken,
    Quantised,
    Replaced,
    Rewriting,
)
from byhand.language import _

GROUPS = (16, 32, 64, 128, 256)
LEAST = 3  # positions
SURE = 6.0  # standard deviations by which a factor differs


def kind_readings(product: Product) -> Iterator[Reading]:
    """The one way in which the whole matrix differs, if there is one."""
    if product.count < LEAST or not len(product.sample):
        return
    for read in (_reordered, cut_readings, _levelled, _grouped, _shifted,
                 block_readings, offset_readings, _of_another, more_kinds):  # fmt: skip
        found = list(read(product))
        yield from found
        if any(not isinstance(each, Description) for each in found):
            return


# ------------------------------------------------------------------------ another order of inputs


def _orders(product: Product) -> Iterator[tuple[str, Places]]:
    """Orders of the input channels that loaders make by mistake, in words."""
    inputs = len(product.matrix)
    every = np.arange(inputs)
    yield _("in reverse order"), every[::-1]
    sides = {2, 4, 8, *(size for size in GROUPS if inputs % size == 0)}
    heads = _heads(product)
    sides |= {heads, inputs // heads} if heads else set()
    for size in sorted(side for side in sides if 1 < side < inputs and inputs % side == 0):
        rows = every.reshape(-1, size)
        words: dict[str, Any] = {"size": size, "half": size // 2}
        if size == 2:
            yield _("in exchanged pairs, as two nibbles of a byte"), rows[:, ::-1]
            continue
        yield _("each group of {size} in reverse order").format(**words), rows[:, ::-1]
        yield _("turned from {size} columns to rows").format(**words), rows.T
        if size % 2 == 0:
            half = size // 2
            yield (_("the halves of each group of {size} exchanged (i and i + {half})").format(
                **words), np.roll(rows, half, axis=1))  # fmt: skip
            yield (_("each group of {size} with its halves interleaved").format(**words),
                   rows.reshape(-1, 2, half).transpose(0, 2, 1))  # fmt: skip
            yield (_("each group of {size} with even entries before odd ones").format(**words),
                   rows.reshape(-1, half, 2).transpose(0, 2, 1))  # fmt: skip
    if inputs % 2 == 0:
        half = inputs // 2
        yield _("with even entries before odd ones"), every.reshape(-1, 2).T
        yield _("with its halves interleaved"), every.reshape(2, half).T
    moves = {1, 2, 4, 8, inputs // 2, inputs // 3, inputs // 4, *(sides if heads else ())}
    for by in sorted(moves - {0}):
        for sign in (1, -1):
            yield _("moved by {by}").format(by=sign * by), np.roll(every, sign * by)
            if sides and by < min(8, inputs):
                for size in sorted(side for side in sides if by < side < inputs
                                   and inputs % side == 0 and side > 4):  # fmt: skip
                    words = {"by": sign * by, "size": size}
                    yield (_("moved by {by} within each group of {size}").format(**words),
                           np.roll(every.reshape(-1, size), sign * by, axis=1))  # fmt: skip


def _heads(product: Product) -> int:
    """The heads that the inputs belong to; 0 where they belong to none."""
    address = product.step.address
    if not address.endswith(".attn.out"):
        return 0
    return product.difference.scene.attention(address).heads


def _reordered(product: Product) -> Iterator[Reading]:
    """The inputs of the matrix in another order."""
    part = product.sample
    matrix = product.matrix[:, part]
    for words, order in _orders(product):
        order = order.reshape(-1)
        if not product.fits(product.times(matrix[order], part), part):
            continue
        if not product.fits(product.times(product.matrix[order])):
            continue
        said = _("it follows if {name} has its input channels {words}; the file has them in order")
        yield product.rewritten(
            "weight-order", said, _("look for how {name} is unpacked or reshaped"),
            LinesTaken(0, order), unlikely=1, name=product.name, words=words)  # fmt: skip
        return


# ------------------------------------------------------------------------ groups of inputs


def _group_sizes(product: Product) -> Iterator[int]:
    inputs = len(product.matrix)
    heads = _heads(product)
    sizes = {inputs // part for part in (1, 2, 3, 4, 8) if inputs % part == 0}
    sizes |= {size for size in GROUPS if inputs % size == 0}
    sizes |= {inputs // heads} if heads else set()
    yield from sorted((size for size in sizes if size > 1), reverse=True)


def _grouped(product: Product) -> Iterator[Reading]:
    """Groups of input channels that act with a factor: Σ_g a_g·X_g·M_g."""
    part = product.sample
    bias = 0.0 if product.bias is None else product.bias[part]
    room = product.rounded_room(part)
    aim = ((product.claimed[:, part] - bias) / room).reshape(-1)
    for size in _group_sizes(product):
        groups = len(product.matrix) // size
        if groups * 6 > aim.size or (groups == 1 and product.bias is None):
            continue
        x = product.x.reshape(product.count, groups, size)
        matrix = product.matrix[:, part].reshape(groups, size, -1)
        terms = np.einsum("ngs,gsc->ncg", x, matrix) / room[:, :, None]
        flat = terms.reshape(-1, groups)
        factors, *_rest = np.linalg.lstsq(flat, aim, rcond=None)
        before = product.off[:, part] / room
        if good(aim - flat @ factors, before):
            yield from _factors(product, size, factors, flat)
            return
        if groups + 3 <= product.count:
            found = list(_factors_by_output(product, size))
            yield from found
            if found:
                return


def _factors(product: Product, size: int, factors: Floats, terms: Floats) -> Iterator[Reading]:
    """The groups whose factor is not 1, the same in every column."""
    with np.errstate(all="ignore"):
        sure = 1 / np.sqrt(np.square(terms).sum(axis=0))
    other = np.flatnonzero(np.abs(factors - 1) > SURE * sure + 1e-4)
    plain = np.array([_plain(value, each) for value, each in zip(factors, sure, strict=True)])
    mended = np.ones(len(factors))
    mended[other] = plain[other]
    if not len(other) or not product.fits(_predicted(product, size, mended)):
        return
    alike = len(set(mended[other].tolist())) == 1
    lines = [place for group in other for place in range(group * size, (group + 1) * size)]
    words: dict[str, Any] = {
        "name": product.name, "size": size, "groups": numbered(other.tolist()),
        "lines": numbered(lines), "factor": told(float(mended[other[0]]), float(sure[other[0]])),
    }  # fmt: skip
    known = all(float(value) in _PLAIN for value in mended[other])
    if not alike and not known and product.format_name in NARROW:
        return  # with few bits, so many numbers say nothing
    if len(other) == len(factors) and alike:
        said = _("it follows if {name} is multiplied by {factor}, its bias is not; the model has "
                 "it as it is")  # fmt: skip
    elif alike:
        said = _("it follows if input channels {lines} of {name} act times {factor}; the file has "
                 "them as they are")  # fmt: skip
    else:
        said = _("it follows if groups {groups} of {size} input channels of {name} act times "
                 "{factor}, …; the file has them as they are")  # fmt: skip
    change = _("look for the scales of {name}: groups of {size} input channels")
    yield product.rewritten(
        "weight-groups", said, change, LinesScaled(0, lines, np.repeat(mended[other], size)),
        fitted=0 if known else 1 if alike else len(other), unlikely=1 + len(other), **words,
    )  # fmt: skip


_PLAIN = (0.0, 1.0, -1.0, 2.0, 0.5, 4.0, 0.25, 16.0, 1 / 16)


def _plain(value: float, sure: float) -> float:
    """The plain factor that a fitted one may be; else itself."""
    near = [plain for plain in _PLAIN if abs(plain - value) <= SURE * sure + 1e-9]
    simple = float(Fraction(value).limit_denominator(20))
    near += [simple] if abs(simple - value) <= SURE * sure + 1e-9 else []
    return near[0] if near else float(value)


def _predicted(product: Product, size: int, factors: Floats) -> Floats:
    return product.times(GroupsMended(size, factors)(product.matrix))


def _factors_by_output(product: Product, size: int) -> Iterator[Reading]:
    """Groups whose factor differs from column to column, as scales of a quantisation do."""
    part = product.sample
    groups = len(product.matrix) // size
    solved = _solved_by_output(product, size, part)
    if solved is None or not product.fits(
        product.times(GroupsMended(size, solved)(product.matrix[:, part]), part), part
    ):
        return
    every = _solved_by_output(product, size, np.arange(product.off.shape[1]))
    predicted = None if every is None else _predicted(product, size, every)
    if every is None or predicted is None or not product.fits(predicted):
        return
    if not product.clear(predicted, groups):
        return
    if len(product.columns) < product.size(1):
        return
    off = np.abs(every - 1).mean(axis=1) > 1e-3
    said = _(
        "it follows if {name} has other scales, one for each output and group of {size} "
"input channels (first: {factor} ×); not in the file"
    )  # fmt: skip
    words: dict[str, Any] = {
        "name": product.name, "size": size, "factor": told(float(every[0, 0])),
    }  # fmt: skip
    yield Description(said.format(**words), 3)
    yield product.rewritten(
        "weight-scales", said, _("look for the scales of {name}: groups of {size} input channels"),
        GroupsMended(size, every), fitted=int(off.sum()) * every.shape[1], unlikely=3 + groups,
        **words,
    )  # fmt: skip


def _solved_by_output(product: Product, size: int, part: Places) -> Floats | None:
    groups = len(product.matrix) // size
    x = product.x.reshape(product.count, groups, size)
    bias = 0.0 if product.bias is None else product.bias[part]
    terms = np.einsum("ngs,gsc->ngc", x, product.matrix[:, part].reshape(groups, size, -1))
    found = solved(terms, product.claimed[:, part] - bias, product.room[:, part])
    return None if found is None else found[0]


def _shifted(product: Product) -> Iterator[Reading]:
    """Weights shifted by one number for each output and group, as a zero point off by one does."""
    for size in _group_sizes(product):
        groups = len(product.matrix) // size
        if groups + 3 > product.count:
            continue
        sums = product.x.reshape(product.count, groups, size).sum(axis=2)
        part = product.sample
        found = solved(sums, product.off[:, part], product.room[:, part])
        if found is None or not product.fits(product.expected[:, part] + sums @ found[0], part):
            continue
        found = solved(sums, product.off, product.room)
        if found is None or not product.fits(product.expected + sums @ found[0]):
            continue
        shifts = found[0]
        if not product.clear(product.expected + sums @ shifts, groups):
            continue
        if len(product.columns) < product.size(1):
            return
        words: dict[str, Any] = {
            "name": product.name,
            "size": size,
            "shift": told(float(shifts.flat[0])),
        }
        whole = groups == 1
        said = _(
            "it follows if a wrong zero point per output and group of {size} inputs shifts "
            "{name} (first: {shift}); the file has none"
        )  # fmt: skip
        if whole:
            said = _(
                "it follows if {name} is shifted by one number per output (first: {shift}); in "
                "the file it is not"
            )  # fmt: skip
        change = _("look for the zero points of {name}")
        yield Description(said.format(**words), 3)
        yield product.rewritten("weight-zero-point", said, change,
                                GroupsMended(size, shifts=shifts), fitted=shifts.size,
                                unlikely=2 + groups, **words)  # fmt: skip
        return


# ------------------------------------------------------------------------ few levels


def _levelled(product: Product) -> Iterator[Reading]:
    """Weights rounded to few levels."""
    part, original = product.sample, product.original
    sources = [product.matrix] if original is None else [original, product.matrix]
    for made in _quantisations(product):
        for source in sources:
            if not product.fits(product.times(made(source[:, part]), part), part):
                continue
            levels = made.levels
            words: dict[str, Any] = {"name": product.name, "levels": levels, "by": made.by}
            said = _("it follows if {name} is rounded to {levels} for each output; the file has it "
                     "finer")  # fmt: skip
            if made.by == "matrix":
                said = _("it follows if {name} is rounded to {levels}; the file has it finer")
            elif made.scales:
                said = _(
                    "it follows if {name} is rounded to {levels} in groups of {by} inputs, "
                    "with the neighbouring group's scale; the file has it finer"
                )
            elif made.zero:
                said = _(
                    "it follows if {name} is rounded to {levels} in groups of {by} inputs, "
                    "its zero point off by one; the file has it finer"
                )
            elif made.by != "output":
                said = _("it follows if {name} is rounded to {levels} in groups of {by} input "
                         "channels; the file has it finer")  # fmt: skip
            change = _("load {name} without quantisation, or with its own scales and zero points")
            whole = len(product.columns) == product.size(1)
            new: Rewriting = (
                made if source is product.matrix or not whole else Replaced(made(source))
            )
            yield product.rewritten("precision", said, change, new, unlikely=1, **words)
            return


def _quantisations(product: Product) -> Iterator[Quantised]:
    """Levels, scales and zero points, the usual ones first."""
    inputs = len(product.matrix)
    sizes = [size for size in (32, 64, 128, 16, 256) if inputs % size == 0 and size < inputs]
    # with few bits, numbers halfway between two levels are many: the arithmetic decides
    narrow = product.format_name in NARROW
    forms = ("float32", product.format_name, None) if narrow else (None,)
    groups: list[int | str] = ["output", *sizes]
    for form in forms:
        yield from (Quantised(levels, size, format=form) for size in groups for levels in LEVELS)
    for form in forms:
        for size in sizes:
            for levels in LEVELS[:3]:
                yield from (Quantised(levels, size, scales=by, format=form) for by in (1, -1))
                yield from (Quantised(levels, size, zero=by, format=form) for by in (1, -1))
    yield from (Quantised(f"multiples of 1/{2**power}", "matrix") for power in range(3, 13))
    yield Quantised("powers of two", "matrix")


LEVELS = ("int8", "int4", "int4 with a zero point", "nf4", "int4 as llama.cpp has it")


# ------------------------------------------------------------------------ another matrix


def _of_another(product: Product) -> Iterator[Reading]:
    """Columns of another matrix of the same shape, in some of the outputs or in all of them."""
    wrong, part = product.wrong_columns, product.sample
    if len(product.columns) < product.size(1):
        return
    for name in product.alike("weight"):
        other = product.other(name)
        if other is None:
            continue
        for make in _as_it_is, _negated:
            if not product.fits(product.times(make(other[:, part]), part), part):
                continue
            if not product.fits(product.times(make(other[:, wrong]), wrong), wrong):
                continue
            words: dict[str, Any] = {
                "own": product.name,
                "other": name,
                "lines": numbered(wrong.tolist()),
            }
            said = _("it follows if outputs {lines} of {own} are those of {other}; the file has "
                     "its own")  # fmt: skip
            if len(wrong) > 0.9 * product.off.shape[1]:
                said = _("it follows if {other} stands in place of {own}")
            yield product.rewritten(
                "weight-swapped", said, _("use {own} here, not {other}"),
                LinesSet(1, wrong, make(other[:, wrong]).T), unlikely=1, **words)  # fmt: skip
            return


Making = Callable[[Floats], Floats]


def _as_it_is(matrix: Floats) -> Floats:
    return matrix


def _negated(matrix: Floats) -> Floats:
    return -matrix

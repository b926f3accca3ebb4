"""The rows that enter a product, as the claim shows them: solved for, or rounded and compared.

A product with at least as many outputs as inputs can be solved for its input, row by row.  Where it
has fewer, roundings of the input are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from byhand.checking.differences.difference import Description, Floats, Reading
from byhand.checking.differences.product import READ_OFF, WORST, Product, good
from byhand.checking.differences.told import told
from byhand.checking.suspects.casts import FLOATS, rounded_to
from byhand.checking.suspects.rewritings import Cut
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Rounds = Callable[[Floats], Floats]
CHUNKS = (16, 32, 64, 128, 256, 512)
MOST_CHUNKS = 64
SMALL = ("float8_e4m3", "float8_e5m2", "float16", "bfloat16")


def entering_readings(product: Product) -> Iterator[Reading]:
    """What entered the product: dropped, rounded, or another line of the model."""
    found = list(_rounded(product)) or list(_in_chunks(product))
    yield from found
    if not found and product.matrix.shape[1] >= product.matrix.shape[0]:
        yield from _solved(product)


# ------------------------------------------------------------------------ rounded


def _roundings(product: Product) -> Iterator[tuple[str, Rounds, Rounds | None]]:
    """Roundings of the rows in words, and of the matrix where it is rounded as well."""
    own = product.format_name
    bits = FLOATS[own][0] if own in FLOATS else 53
    for name in SMALL:
        if FLOATS[name][0] < bits:
            yield name, partial(rounded_to, name), None
    for name, most in (("float8_e4m3", 448.0), ("float8_e5m2", 57344.0)):
        for by in ("row", "tensor"):
            words = _("{name} with a scale for each row") if by == "row" else _(
                "{name} with one scale")  # fmt: skip
            yield words.format(name=name), partial(_scaled, name=name, most=most, by=by), None
    for bits_, by in ((8, "row"), (8, "tensor"), (4, "row"), (8, "zero point by row")):
        words = {
            "row": _("int{bits} with a scale for each row"),
            "tensor": _("int{bits} with one scale"),
            "zero point by row": _("int{bits} with a scale and a zero point for each row"),
        }[by]
        for form in ("float32", own) if bits < 24 else ("float64",):
            yield words.format(bits=bits_), partial(_whole, bits=bits_, by=by, form=form), None
    for width in (9, 10, 11, 12):
        for cut in (False, True):
            if width < bits:
                words = _("{bits} bits, cut off, and the matrix too") if cut else _(
                    "{bits} bits, and the matrix too")  # fmt: skip
                yield words.format(bits=width), Cut(width, cut), Cut(width, cut)
    if bits > 11:
        for name, width in (("tf32", 11), ("bfloat16", 8), ("float16", 11)):
            if width < bits:
                both = partial(rounded_to, name)
                yield _("{name}, and the matrix too").format(name=name), both, both


def _scaled(x: Floats, *, name: str, most: float, by: str) -> Floats:
    largest = np.abs(x).max(axis=-1, keepdims=True) if by == "row" else np.abs(x).max()
    scale = np.where(largest > 0, largest / most, 1.0)
    return np.asarray(rounded_to(name, x / scale) * scale)


def _whole(x: Floats, *, bits: int, by: str, form: str) -> Floats:
    """Whole numbers times a scale, worked out in a format."""
    top = 2.0 ** (bits - 1) - 1

    def held(values: Floats) -> Floats:
        return rounded_to(form, values) if form in FLOATS else values

    if by == "zero point by row":
        low, high = x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)
        step = held(np.where(high > low, (high - low) / (2.0**bits - 1), 1.0))
        return held(np.rint(held((x - low) / step)) * step + low)
    largest = np.abs(x).max(axis=-1, keepdims=True) if by == "row" else np.abs(x).max()
    step = held(np.where(largest > 0, largest / top, 1.0))
    return held(np.rint(held(x / step)) * step)


def _rounded(product: Product) -> Iterator[Reading]:
    """The rows rounded before the product."""
    part = product.sample
    bias = 0.0 if product.bias is None else product.bias
    own = np.asarray(product.matrix[:, part], dtype=np.float64)
    for words, rounds, matrix in _roundings(product):
        rows = rounds(product.x)
        small = own if matrix is None else matrix(own)
        bias_ = bias if isinstance(bias, float) else bias[part]
        if not product.fits(rows @ small + bias_, part):
            continue
        whole = product.matrix if matrix is None else matrix(product.matrix)
        if not product.fits(rows @ whole + bias):
            continue
        said = _("it follows if what enters {name} is rounded to {words}; the model leaves it as "
                 "it is")  # fmt: skip
        yield product.difference.edit(
            "precision", said, _("do not round what enters {name}"),
            partial(_round, rounds=rounds, matrix=matrix), at=product.step, unlikely=READ_OFF + 1,
            name=product.name, words=words)  # fmt: skip
        return


def _round(draft: Draft, step: Step, *, rounds: Rounds, matrix: Rounds | None) -> None:
    draft.first(step.address, "x", "rounded_as", how=rounds)
    if matrix is not None:
        draft.first(step.address, "weight", "rewritten", rewriting=matrix)


def _in_chunks(product: Product) -> Iterator[Reading]:
    """Sums over chunks of the input channels, each rounded to a narrower format."""
    part, inputs = product.sample, len(product.matrix)
    bias = 0.0 if product.bias is None else product.bias[part]
    own = FLOATS[product.format_name][0] if product.format_name in FLOATS else 53
    before = product.off[:, part] / product.room[:, part]
    matrix = np.asarray(product.matrix[:, part], dtype=np.float64)
    for name in ("bfloat16", "float16"):
        for size in CHUNKS if FLOATS[name][0] < own else ():
            if not 1 < -(-inputs // size) <= MOST_CHUNKS:
                continue
            for what in ("total", "both", "chunks"):
                total = np.zeros(before.shape)
                for start in range(0, inputs, size):
                    here = slice(start, start + size)
                    chunk = product.x[:, here] @ matrix[here]
                    total = total + (chunk if what == "total" else rounded_to(name, chunk))
                    total = total if what == "chunks" else rounded_to(name, total)
                left = np.abs(product.left(total + bias, part))
                # a sum that lies halfway between two numbers may be rounded to either
                if (
                    not left.size
                    or np.mean(left > WORST) > 0.05
                    or not good(left[left <= WORST], before)
                ):
                    continue
                said = _("it follows if {name} sums up {size} input channels at a time and rounds "
                         "each sum to {format}; the model rounds the whole sum alone")  # fmt: skip
                yield product.difference.edit(
                    "precision", said, _("keep partial sums of {name} in float32"),
                    partial(_chunk, size=size, form=name, what=what), at=product.step,
                    unlikely=READ_OFF + 2, name=product.name, size=size, format=name)  # fmt: skip
                return


def _chunk(draft: Draft, step: Step, *, size: int, form: str, what: str) -> None:
    draft.change(step.address, op="linear_in_chunks", size=size, format=form, what=what)


# ------------------------------------------------------------------------ solved for


def _solved(product: Product) -> Iterator[Reading]:
    """The rows that entered, by least squares, beside those of the model."""
    inputs, outputs = product.matrix.shape
    some = np.arange(0, outputs, max(1, outputs // (3 * inputs)))
    bias = 0.0 if product.bias is None else product.bias
    room = product.room[:, some]
    unit = 1 / np.sqrt(np.square(room).mean(axis=0))  # of each output
    matrix = product.matrix[:, some] * unit
    aim = (product.claimed[:, some] - (0.0 if product.bias is None else product.bias[some])) * unit
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.inv(matrix @ matrix.T)
        except np.linalg.LinAlgError:
            return
        rows = (aim @ matrix.T) @ inverse
        left = (rows @ matrix - aim) / (room * unit)
    sure = np.sqrt(np.abs(np.diag(inverse)))  # of each input
    if not np.isfinite(rows).all() or not good(left, product.off[:, some] / room):
        return
    if not product.fits(rows @ product.matrix + bias):
        return
    scale = float(np.sqrt(np.mean(np.square(room * unit))))
    yield from _dropped(product, rows, np.maximum(sure * scale, 1e-12))


def _dropped(product: Product, rows: Floats, sure: Floats) -> Iterator[Reading]:
    """Entries that are 0 while the others are larger by 1/(1 - p)."""
    own = product.x
    large = np.abs(own) > 20 * sure
    zero = large & (np.abs(rows) < 5 * sure)
    kept = large & ~zero
    if zero.sum() < 4 or kept.sum() < 4:
        return
    with np.errstate(all="ignore"):
        ratio = float(np.median(rows[kept] / own[kept]))
        rate = float(zero.sum() / large.sum())
        if not ratio > 0:
            return
        p = 1 - 1 / ratio
    chosen = np.where(np.abs(rows) < 0.5 * np.abs(own) * ratio, 0.0, ratio)
    bias = 0.0 if product.bias is None else product.bias
    if not product.fits((own * chosen) @ product.matrix + bias):
        return
    if abs(p - rate) > 5 * np.sqrt(rate * (1 - rate) / max(1, large.sum())) + 0.02:
        yield Description(
            _("{count} of {all} numbers that enter {name} are 0").format(
                count=int(zero.sum()), all=zero.size, name=product.name), 4)  # fmt: skip
        return
    plain = float(Fraction(p).limit_denominator(100))
    exact = 1 / (1 - plain) if abs(plain - p) < 1e-3 else ratio
    said = _(
        "it follows if part of the input of {name} is dropped and the rest grows by 1/(1 - "
        "{rate}) (dropout); the model drops nothing"
    )  # fmt: skip
    factors = np.where(chosen > 0, exact, 0.0)
    yield product.difference.edit(
        "dropout", said, _("switch dropout off: model.eval()"), partial(_drop, factors=factors),
        at=product.step, unlikely=READ_OFF + 2, name=product.name,
        rate=told(plain if exact != ratio else p))  # fmt: skip


def _drop(draft: Draft, step: Step, *, factors: Floats) -> None:
    draft.first(step.address, "x", "weighed_rows", factors=factors)

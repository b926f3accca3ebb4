"""A bias that differs: every position is off by the same row of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from byhand.checking.differences.closeness import Fitted
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.difference import Floats, Reading, Truths
from byhand.checking.differences.product import GOOD, WORST, Product, good, root_mean_square
from byhand.checking.differences.told import numbered, told
from byhand.checking.suspects.mistakes import reading, then
from byhand.checking.suspects.rewritings import EntriesSet, LinesScaled, LinesSet, LinesTaken
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import WEIGHT, Step

LEAST = 3  # positions that must agree
FACTORS = (0.0, 2.0, -1.0, 0.5)
MOST_ENTRIES = 8
FEW_OUTPUTS = 32


def bias_readings(product: Product) -> Iterator[Reading]:
    """What the bias acts as, where the claim differs by the same row at every position."""
    if product.count < LEAST or not len(product.wrong_columns):
        return
    yield from _some_positions(product)
    weights = 1 / np.square(product.room)
    shift = (product.off * weights).sum(axis=0) / weights.sum(axis=0)
    left = (product.off - shift) / product.room
    if root_mean_square(left) > GOOD or np.abs(left).max(initial=0.0) > WORST:
        return
    sure = 1 / np.sqrt(weights.sum(axis=0))
    bias = product.bias
    if bias is None:
        yield from _extra(product, shift, sure)
        return
    yield from _recognised(product, bias, bias + shift, sure)


def _near(acts: Floats, values: Floats, sure: Floats) -> bool:
    left = (acts - values) / sure
    return bool(root_mean_square(left) <= GOOD and np.abs(left).max(initial=0.0) <= WORST)


def _recognised(product: Product, bias: Floats, acts: Floats, sure: Floats) -> Iterator[Reading]:
    name = product.step.inputs["bias"].removeprefix(WEIGHT)
    whole = len(product.columns) == product.size(1)
    wrong = product.wrong_columns
    change = _("add {name} as the file has it, once")
    for factor in FACTORS:
        if _near(acts, factor * bias, sure):
            said = {
                0.0: _("it follows if the bias {name} is left out; the model adds it"),
                2.0: _("it follows if the bias {name} is added twice; the model adds it once"),
                -1.0: _("it follows if the bias {name} is subtracted; the model adds it"),
            }.get(factor, _("it follows if the bias {name} is multiplied by {factor}; the model "
                            "adds it as it is"))  # fmt: skip
            kind = {0.0: "bias-missing", 2.0: "bias-doubled"}.get(factor, "bias-wrong")
            if factor == 2.0 and product.difference.target is product.step:
                yield product.difference.edit(kind, said, change, _again, name=name)
                return
            yield product.rewritten(kind, said, change, LinesScaled(0, product.columns, factor),
                                    role="bias", name=name, factor=f"{factor:g}")  # fmt: skip
            return
    for by in (1, -1, *(_halves(product) if whole else ())) if whole else ():
        if _near(acts, np.roll(bias, by), sure):
            said = _("it follows if the bias {name} is moved by {by}; the model adds it as it is")
            yield product.rewritten("bias-wrong", said, change, LinesTaken(
                0, np.roll(np.arange(len(bias)), by)), role="bias", name=name, by=by)  # fmt: skip
            return
    for other in product.alike("bias"):
        theirs = product.other(other)
        if theirs is None or not _near(acts, theirs, sure):
            continue
        said = _("it follows if {other} stands in place of {own}")
        yield product.difference.edit(
            "weight-swapped", said, _("use {own} here, not {other}"), reading(bias=WEIGHT + other),
            at=product.step, own=name, other=other)  # fmt: skip
        return
    yield from _some(product, bias, acts, sure, name) if len(wrong) <= MOST_ENTRIES else _other(
        product, bias, acts, sure, name)  # fmt: skip


def _again(draft: Draft, step: Step) -> None:
    """Adds the bias once more, to the rounded result."""
    if len(step.shape) != 2:
        draft.first(step.address, "bias", "scaled", factor=Fraction(2))
        return
    bias, own = step.inputs["bias"], draft.aside(step.address)
    draft.change(step.address, op="affine", inputs={"x": own, "bias": bias}, only=True)


def _halves(product: Product) -> tuple[int, ...]:
    size = product.size(1)
    return tuple(size // part for part in (2, 3, 4) if size % part == 0)


def _some(
    product: Product, bias: Floats, acts: Floats, sure: Floats, name: str
) -> Iterator[Reading]:
    """A few entries of the bias."""
    wrong = product.wrong_columns
    near = 5 * sure[wrong]
    own, now = bias[wrong], acts[wrong]
    values, known = np.array(now), 0
    for factor in (0.0, -1.0, 2.0, 0.5):
        alike = np.abs(factor * own - now) <= near
        values[alike], known = factor * own[alike], known + int(alike.sum())
    first = int(product.columns[wrong[0]])
    said = _("it follows if one entry of a bias differs: {name}[{first}] acts as {acts}; the file "
             "has {own}")  # fmt: skip
    if len(wrong) > 1:
        said = _("it follows if entries {places} of the bias {name} differ: {name}[{first}] acts "
                 "as {acts}; the file has {own}")  # fmt: skip
    yield product.rewritten(
        "bias-entry", said, _("look for what changes {name} when the weights are loaded"),
        EntriesSet(tuple((int(place),) for place in product.columns[wrong]), tuple(values)),
        role="bias", fitted=len(wrong) - known, unlikely=1, name=name, first=first,
        places=numbered(product.columns[wrong].tolist()), own=f"{own[0]:.6g}",
        acts=told(float(values[0]), float(sure[wrong[0]])),
    )  # fmt: skip


def _other(
    product: Product, bias: Floats, acts: Floats, sure: Floats, name: str
) -> Iterator[Reading]:
    """Another bias altogether: every position has the same row added to it."""
    wrong = product.wrong_columns
    values = acts[wrong]
    said = _("it follows if the bias {name} has other numbers: {acts}, … in place of {own}, … at "
             "{places}; the matrix acts as in the file")  # fmt: skip
    yield product.rewritten(
        "bias-wrong", said, _("look for what is added to {name}, or stands in its place"),
        LinesSet(0, product.columns[wrong], values), role="bias", fitted=len(wrong), unlikely=3,
        name=name, acts=told(float(values[0]), float(sure[wrong[0]])), own=f"{bias[wrong[0]]:.6g}",
        places=numbered(product.columns[wrong].tolist()),
    )  # fmt: skip


def _some_positions(product: Product) -> Iterator[Reading]:
    """The bias left out or added again at some positions only."""
    rows = np.flatnonzero(product.wrong.any(axis=1))
    target = product.difference.target
    if product.bias is None or not 0 < len(rows) <= 0.75 * product.count:
        return
    if target is not product.step or len(target.shape) != 2:
        return
    for factor, said in (
        (-1.0, _("it follows if the bias {name} is left out at positions {places}; the model adds "
                 "it everywhere")),
        (1.0, _("it follows if the bias {name} is added twice at positions {places}; the model "
                "adds it once")),
    ):  # fmt: skip
        left = (product.off[rows] - factor * product.bias) / product.room[rows]
        if not good(left, product.off[rows] / product.room[rows]) or len(product.off) != len(
            product.difference.expected
        ):
            continue
        mask = np.zeros(target.shape, dtype=bool)
        mask[rows] = True
        name = product.step.inputs["bias"].removeprefix(WEIGHT)
        yield product.difference.edit(
            "bias-wrong", said, _("add {name} at every position, once"),
            partial(_at_some, mask=mask, without=factor < 0), unlikely=1, name=name,
            places=numbered(rows.tolist()))  # fmt: skip
        return


def _at_some(draft: Draft, step: Step, *, mask: Truths, without: bool) -> None:
    own = draft.aside(step.address)
    if without:
        inputs = {role: read for role, read in step.inputs.items() if role != "bias"}
        other = draft.write(step.address, step.op, inputs, step.axes, step.shape, **step.attributes)
    else:
        bias = {"x": own, "bias": step.inputs["bias"]}
        other = draft.write(step.address, "affine", bias, step.axes, step.shape)
    draft.change(step.address, op="patched", inputs={"x": own, "y": other}, only=True, where=mask)


def _extra(product: Product, shift: Floats, sure: Floats) -> Iterator[Reading]:
    """A row that is added although the model has no bias: one of the model's, if it is one."""
    if len(product.columns) < product.size(1):
        return
    scene, size = product.difference.scene, product.size(1)
    for name, tensor in scene.model.weights.items():
        if tensor.shape != (size,):
            continue
        values = product.other(name)
        if values is None or not _near(shift, values, sure):
            continue
        said = _("it follows if {other} is added; the model has no bias here")
        yield product.difference.edit(
            "bias-extra", said, _("do not add {other} here"), reading(bias=WEIGHT + name),
            at=product.step, other=name)  # fmt: skip
        return
    yield from _few_outputs(product, shift, sure)


def _few_outputs(product: Product, shift: Floats, sure: Floats) -> Iterator[Reading]:
    """One number that is added to some outputs."""
    some = product.wrong_columns
    if len(some) > FEW_OUTPUTS or product.difference.target is not product.step:
        return
    weights = 1 / np.square(sure[some])
    mean = Fitted(float((shift[some] * weights).sum() / weights.sum()),
                  float(1 / np.sqrt(weights.sum())))  # fmt: skip
    constant = recognised(mean, product.difference.scene)
    value = mean.value if constant is None else constant.value
    if not _near(shift[some], np.full(len(some), value), sure[some]):
        return
    row = np.zeros((1, len(shift)))
    row[0, some] = value
    said = _("it follows if {value} is added to outputs {places} of {name}; the model adds nothing")
    shape = product.difference.target.shape
    if len(shape) != 2:
        return
    yield product.difference.edit(
        "outputs-shifted", said, _("look for what is added to outputs {places} of {name}"),
        then("plus_each", summands=row), fitted=int(constant is None), unlikely=1,
        value=shown(mean) if constant is None else constant.written, name=product.step.address,
        places=numbered(some.tolist()))  # fmt: skip

"""Mistakes with the gradients of weights: transposed, summed wrongly, added twice or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from byhand.backward import OTHER
from byhand.checking.suspects.casts import FLOATS, bits_of
from byhand.checking.suspects.mistakes import Mistake, made, number, reading, setting, then
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.optimizer import BEFORE
from byhand.plan import GRAD, WEIGHT, Step

SUMS = {"outer": "grad", "column_sums": "x", "scatter": "grad"}  # operation → what is summed up
NARROW = "bfloat16"
NEAR = 1 / 64  # how far a measured factor may be from the one that is meant; replay then decides
ENOUGH = 0.999  # correlation from which on a difference counts as a multiple of something


def weight_gradient_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the gradient of a weight."""
    if not scene.target.address.startswith(GRAD + WEIGHT):
        return
    yield from _matrices(scene)
    yield from _rows_summed(scene)
    yield from _tables(scene)
    yield from _accumulation(scene)
    yield from _left_over(scene)


# ------------------------------------------------------------------------ what is multiplied


def _matrices(scene: Scene) -> Iterator[Edit]:
    for step in scene.of("outer"):
        rows, columns = step.shape
        if rows == columns:
            turned = setting(layout=OTHER[step.attributes["layout"]])
            yield from made(scene, [step], Mistake(
                "gradient-transposed",
                _("it follows if the gradient is transposed; the matrix is stored {layout}"),
                _("give the gradient the layout of its matrix"), turned),
                layout=_stored(step))  # fmt: skip
        for other in _instead(scene, step.inputs["x"]):
            yield from made(scene, [step], Mistake(
                "gradient-input",
                _("it follows if the matrix's input is taken to be {other}; it is {own}"),
                _("multiply the gradient by what went into the matrix"), reading(x=other), 1),
                other=other, own=step.inputs["x"])  # fmt: skip


def _stored(step: Step) -> str:
    if step.attributes["layout"] == "in_out":
        return _("input × output (x·W)")
    return _("output × input (W·x)")


def _instead(scene: Scene, read: str) -> Iterator[str]:
    """The values that people mistake for what went into a matrix: those it was made of."""
    if not scene.has(read):
        return
    shape, found = scene.plan[read].shape, set[str]()
    step: Step | None = scene.plan[read]
    while step is not None and step.inputs.get("x") and not step.inputs["x"].startswith(WEIGHT):
        for role in ("x", "y"):
            other = step.inputs.get(role)
            if other and scene.plan[other].shape == shape and other not in found:
                found.add(other)
                yield other
        above = scene.plan[step.inputs["x"]]
        step = above if above.op in ("normalize", "center") and above.shape == shape else None


# ------------------------------------------------------------------------ what is summed up


def _rows_summed(scene: Scene) -> Iterator[Edit]:
    count = scene.plan.length
    change = _("sum over all positions of the batch, and over nothing else")
    for step in scene.of("column_sums"):
        if len(step.shape) == 1 and step.shape[0] == count:
            yield from made(scene, [step], Mistake(
                "sum-axis",
                _("it follows if the sum runs over the entries of a position; it runs over "
                  "positions"), change, partial(_other_axis, scene)))  # fmt: skip
        if "by" in step.inputs:
            for other in _instead(scene, step.inputs["by"]):
                yield from made(scene, [step], Mistake(
                    "gain-gradient-input",
                    _("it follows if the gradient of the gain is Σ grad · {other}; the gain "
                      "multiplies {own}"),
                    _("multiply by the normalised rows"), reading(by=other)),
                    other=other, own=step.inputs["by"])  # fmt: skip
            yield from made(scene, [step], Mistake(
                "gain-gradient-input",
                _("it follows if the gradient of the gain is Σ grad; the gain multiplies {own}"),
                _("multiply by the normalised rows"), reading(by=None), 1),
                own=step.inputs["by"])  # fmt: skip
    averaged = (
        (count, _("it follows if the gradient is averaged over the {count} positions; it is their "
                  "sum")),
        (len(scene.texts), _("it follows if the gradient is averaged over the {count} texts; it is "
                             "their sum")),
    )  # fmt: skip
    for step in scene.of(*SUMS):
        for size, said in averaged:
            if size > 1 and step.address.startswith(scene.target.address):
                mean = then("scaled", factor=Fraction(1, size))
                mistake = Mistake("gradient-averaged", said, change, mean, 1)
                yield from made(scene, [step], mistake, count=size)


def _other_axis(scene: Scene, draft: Draft, step: Step) -> None:
    for role, read in step.inputs.items():
        if not read.startswith(WEIGHT) and len(scene.plan[read].shape) == 2:
            draft.first(step.address, role, "turned", axes=(1, 0))


# ------------------------------------------------------------------------ tables


def _tables(scene: Scene) -> Iterator[Edit]:
    """Edits of the sums over the positions that took a row of a table."""
    for step in scene.of("scatter"):
        ids = step.attributes.get("ids") or scene.context.tokens
        if len(ids) != scene.plan.length:
            continue
        change = _("add the gradients of all positions that took the row")
        for texts, unlikely in ((scene.texts, 0), ((slice(0, len(ids)),), 1)):
            for said, kept in (
                (_("it follows if a row that was taken more than once keeps the gradient of the "
                   "last position alone"), _lasts(ids, texts)),
                (_("it follows if a row that was taken more than once keeps the gradient of the "
                   "first position alone"), _firsts(ids, texts)),
            ):  # fmt: skip
                some = partial(_some_rows, scene, kept)
                mistake = Mistake("rows-overwritten", said, change, some, unlikely)
                yield from made(scene, [step], mistake)
        if "ids" in step.attributes:
            own = tuple(range(scene.plan.length))
            if own != tuple(ids) and len(own) <= step.shape[0]:
                yield from made(scene, [step], Mistake(
                    "position-rows",
                    _("it follows if the gradients go to the rows 0, 1, 2, … of the batch; they "
                      "belong to the rows of their positions"),
                    _("add the gradients at their positions, which begin again with each text"),
                    setting(ids=own)))  # fmt: skip


def _lasts(ids: Sequence[int], texts: Sequence[slice]) -> list[bool]:
    """Whether no later position of the same text took the same row."""
    return [
        not any(id in ids[at + 1 : text.stop] for text in texts if text.start <= at < text.stop)
        for at, id in enumerate(ids)
    ]


def _firsts(ids: Sequence[int], texts: Sequence[slice]) -> list[bool]:
    """Whether no earlier position of the same text took the same row."""
    return [
        not any(id in ids[text.start : at] for text in texts if text.start <= at < text.stop)
        for at, id in enumerate(ids)
    ]


def _some_rows(scene: Scene, kept: Sequence[bool], draft: Draft, step: Step) -> None:
    role = SUMS[step.op]
    draft.first(step.address, role, "times_each", factors=_only(scene, step, kept))


def _only(scene: Scene, step: Step, kept: Sequence[bool]) -> Any:
    """1 in some positions and 0 in the others, in the shape of what a line sums up."""
    read = scene.plan[step.inputs[SUMS[step.op]]]
    axis = read.position_axis
    assert axis is not None
    lengths = [1] * len(read.shape)
    lengths[axis] = len(kept)
    column = np.array([Fraction(int(each)) for each in kept], dtype=object).reshape(lengths)
    return np.broadcast_to(column, read.shape).copy()


# ------------------------------------------------------------------------ texts added up


def _accumulation(scene: Scene) -> Iterator[Edit]:
    """Edits of how the gradients of several texts, or of several calls, are added up."""
    sums = [step for step in scene.of(*SUMS) if step.address.startswith(scene.target.address)]
    texts = scene.texts
    if len(texts) > 1 and sums:
        for place, said in (
            (len(texts) - 1, _("it follows if only the last of the {count} texts counts")),
            (0, _("it follows if only the first of the {count} texts counts")),
        ):
            kept = [texts[place].start <= at < texts[place].stop for at in range(scene.plan.length)]
            some = partial(_some_rows, scene, kept)
            change = _("add the gradients of all texts; do not overwrite them")
            mistake = Mistake("texts-not-added", said, change, some, int(place == 0))
            yield from made(scene, sums, mistake, count=len(texts))
        if bits_of(scene.context.precision) > FLOATS[NARROW][0] and not scene.context.by_hand:
            yield from made(scene, sums, Mistake(
                "added-narrow",
                _("it follows if the gradients of the {count} texts are added up in {format}"),
                _("keep the sum of the gradients in float32"), partial(_narrow, scene), 1),
                count=len(texts), format=NARROW)  # fmt: skip


def _narrow(scene: Scene, draft: Draft, step: Step) -> None:
    """Adds the texts up one after the other, each time rounded to the narrow format."""
    at, whole = step.address, None
    for text in scene.texts:
        kept = [text.start <= place < text.stop for place in range(scene.plan.length)]
        role = SUMS[step.op]
        rows = draft.made_of(step.inputs[role], "times_each", at, factors=_only(scene, step, kept))
        part = draft.copy(at, step, **{role: rows})
        part = draft.made_of(part, "cast", at, format=NARROW)
        if whole is not None:
            both = {"term_1": whole, "term_2": part}
            part = draft.write(at, "total", both, step.axes, step.shape)
            part = draft.made_of(part, "cast", at, format=NARROW)
        whole = part
    assert whole is not None
    draft.keep(at, whole)


def _left_over(scene: Scene) -> Iterator[Edit]:
    """Edits with something left in: a second call, a scale, the gradients of the step before."""
    ratio = scene.ratio
    if ratio is not None and abs(ratio - 1) > NEAR:
        times = Fraction(round(ratio)) if abs(ratio) > 1 else Fraction(1, round(1 / ratio))
        near = times not in (0, 1) and abs(ratio / float(times) - 1) < NEAR
        if near and times == 2:
            yield from made(scene, [scene.target], Mistake(
                "accumulated-twice",
                _("it follows if the gradient is added twice"),
                _("call backward once for each text, or divide by the number of calls"),
                then("scaled", factor=times)))  # fmt: skip
        elif near:
            yield from made(scene, [scene.target], Mistake(
                "gradient-factor",
                _("it follows if the gradient is multiplied by {factor}"),
                _("look for a scale that is left in, or for a mean that is a sum"),
                then("scaled", factor=times), 2),
                factor=number(times))  # fmt: skip
    before = scene.target.address.replace(GRAD + WEIGHT, f"{BEFORE}m.", 1)
    factor = _share_of_moment(scene, before)
    if factor is not None:
        yield from made(scene, [scene.target], Mistake(
            "not-zeroed",
            _("it follows if the gradient of the step before is still in it"),
            _("set the gradients to zero before each step"),
            partial(_with_the_old, before, factor)))  # fmt: skip


def _share_of_moment(scene: Scene, before: str) -> Fraction | None:
    """How much of the moment of the step before the claim has too much, if that is all it has."""
    values, expected = scene.context.values, scene.context.expected
    moment = scene.context.moments.get(before)
    if values is None or expected is None or moment is None or moment.shape != values.shape:
        return None
    more = values - expected
    size, there = float((moment * moment).sum()), float((more * more).sum())
    both = float((moment * more).sum())
    if not size or not there or both * both < ENOUGH**2 * size * there:
        return None
    return Fraction(both / size)


def _with_the_old(before: str, factor: Fraction, draft: Draft, step: Step) -> None:
    at = step.address
    draft.sooner(before, before=at)
    now = draft.aside(at)
    old = draft.made_of(before, "scaled", at, factor=factor)
    draft.change(at, op="total", inputs={"term_1": now, "term_2": old}, only=True)

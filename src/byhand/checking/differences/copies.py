"""Lines that hold the numbers of another line, of an older block, or of another text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.axes import Part, compact
from byhand.checking.differences.closeness import near, quietly
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.places import Place
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

FEWEST = 6  # numbers that must agree
SAMPLE = 64  # numbers that are compared at first


@quietly
def copy_readings(difference: Difference) -> Iterator[Reading]:
    """The other line, or the other text, whose numbers a line holds where it differs."""
    part = Part.of(difference)
    if part is None or not difference.whole or int(difference.wrong.sum()) < FEWEST:
        return
    found = list(_other_lines(difference, part))
    yield from found
    if not found:
        yield from _other_texts(difference, part)


def _other_lines(difference: Difference, part: Part) -> Iterator[Reading]:
    scene, around = difference.scene, difference.scene.context.around
    if around is None:
        return
    own = difference.target.address
    candidates = dict.fromkeys((*_inputs(difference), *around.claimed_steps))
    for address in candidates:
        if address == own or scene.plan[address].shape != difference.target.shape:
            continue
        values = around.claimed(address)
        values = around.read(address) if values is None else values
        if values is None or not _sampled(difference, values) or _alike(difference, address):
            continue
        for place in _places(difference, part, values):
            predicted = np.where(place.mask, values, difference.expected)
            fits = near(difference, predicted, place.mask)
            if fits and _differs(difference, values, place):
                yield _copy_edit(difference, address, place)
                return


def _places(difference: Difference, part: Part, values: Floats) -> Iterator[Place]:
    """The whole line, and the slices along one axis that are copies to the last bit.

    A part that is merely near to another line may have been worked out almost like it.
    """
    yield Place(np.ones(values.shape, dtype=bool), "")
    same = (difference.claimed == values) | ~difference.there
    for axis in range(same.ndim):
        rest = tuple(other for other in range(same.ndim) if other != axis)
        copied, wrong = np.asarray(same.all(axis=rest)), np.asarray(difference.wrong.any(axis=rest))
        if not copied.any() or copied.all() or wrong[~copied].any():
            continue
        shape = tuple(-1 if each == axis else 1 for each in range(same.ndim))
        chosen = np.flatnonzero(copied)
        mask = np.broadcast_to(copied.reshape(shape), same.shape)
        yield Place(mask, part.said(axis, chosen), alone=len(chosen) == 1)


def _alike(difference: Difference, address: str) -> bool:
    """Whether the model gives the same numbers at another line: then to hold them says nothing."""
    around = difference.scene.context.around
    theirs = None if around is None else around.expected(address)
    if theirs is None or theirs.shape != difference.expected.shape:
        return False
    return bool((np.abs(theirs - difference.expected) <= difference.room)[difference.finite].all())


def _inputs(difference: Difference) -> tuple[str, ...]:
    """The steps that the line reads, by their own addresses."""
    known = difference.scene.plan.known
    return tuple(known[read] for read in difference.target.reads if read in known)


def _sampled(difference: Difference, values: Floats) -> bool:
    """Whether another line agrees with the claim at some of the wrong numbers."""
    wrong = np.flatnonzero(difference.wrong & difference.finite)
    if len(wrong) < FEWEST:
        return False
    some = wrong[np.linspace(0, len(wrong) - 1, min(len(wrong), SAMPLE)).astype(np.intp)]
    with np.errstate(all="ignore"):
        off = np.abs(values.reshape(-1)[some] - difference.claimed.reshape(-1)[some])
    return bool((off <= 14.0 * difference.room.reshape(-1)[some]).all())


def _differs(difference: Difference, values: Floats, place: Place) -> bool:
    """Whether the other line's numbers are not all alike there: a constant says nothing."""
    there = values[place.mask & difference.finite]
    return len(np.unique(there[:1000])) >= FEWEST


def _copy_edit(difference: Difference, address: str, place: Place) -> Reading:
    scene, own = difference.scene, difference.target
    order = {step.address: at for at, step in enumerate(scene.plan)}
    later = order[address] > order[own.address]

    def copy(draft: Draft, step: Step) -> None:
        if later:
            draft.sooner(address, before=step.address)
        if place.whole:
            draft.change(step.address, op="copied", inputs={"x": address}, only=True)
            return
        moved = draft.aside(step.address)
        reads = {"x": moved, "y": address}
        draft.change(step.address, op="patched", inputs=reads, only=True, where=compact(place.mask))

    if address in _inputs(difference):
        said = _("it follows if {place} is a copy of its input {address}; the model works it out "
                 "by {op}")  # fmt: skip
        change = _("apply {op} here: the input is handed on as it is")
    elif later:
        said = _("it follows if {place} holds the numbers of {address}, a later line")
        change = _("dump this line before the later step changes it, or in its own buffer")
    else:
        said = _("it follows if {place} holds the numbers of {address}; the model has its own")
        change = _("look for a buffer or a variable of {address} that is used here again")
    return difference.edit(
        "copy",
        said,
        change,
        copy,
        fitted=2 if place.said else 0,  # where the part begins and ends is read off the claim
        unlikely=2 if later else 1,
        place=place.said or _("this line"),
        address=address,
        op=own.formula or own.op,
    )


def _other_texts(difference: Difference, part: Part) -> Iterator[Reading]:
    """The numbers of the same step in another text of the batch."""
    around = difference.scene.context.around
    others = () if around is None else around.elsewhere(difference.target.address)
    for number, theirs in enumerate(others):
        values = _common(theirs, difference.expected)
        if values is None or not _sampled(difference, values):
            continue
        for place in _places(difference, part, values):
            predicted = np.where(place.mask, values, difference.expected)
            at = place.mask & np.isfinite(values)
            if near(difference, predicted, at) and _differs(difference, values, place):
                yield from _text_told(difference, values, place, number)
                return


def _common(values: Floats, like: Floats) -> Floats | None:
    """The other text's numbers in the shape of this one's; NaN where it has none."""
    if values.ndim != like.ndim:
        return None
    if values.shape == like.shape:
        return values
    fitted = np.full(like.shape, np.nan)
    both = tuple(slice(0, min(sides)) for sides in zip(values.shape, like.shape, strict=True))
    fitted[both] = values[both]
    return fitted


def _text_told(
    difference: Difference, values: Floats, place: Place, number: int
) -> Iterator[Reading]:
    """The other text as an edit, if it has all the numbers; else as a description."""
    at = place.mask & difference.there
    if not np.isfinite(values[at]).all():
        said = _("its numbers are those of another text of the batch (number {number} of the "
                 "others), as far as that goes")  # fmt: skip
        yield Description(said.format(number=number), 6)
        return
    mixed = np.where(place.mask & np.isfinite(values), values, difference.expected)
    yield difference.edit(
        "other-text",
        _("it follows if {place} holds the numbers of another text of the batch (number {number} "
          "of the others); the model keeps texts apart"),
        _("look for an index of the batch that is off here"),
        then("other_text", values=mixed),
        fitted=1,
        unlikely=1,
        place=place.said or _("this line"),
        number=number,
    )  # fmt: skip

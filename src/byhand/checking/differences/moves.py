"""Numbers in the wrong place: slices of a line that stand elsewhere, or come from another line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import log2, prod
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.axes import Part, Places, listed, several
from byhand.checking.differences.closeness import (
    ROOT_MEAN_SQUARE,
    WORST,
    near,
    quietly,
    stored_again,
)
from byhand.checking.differences.difference import (
    Description,
    Difference,
    Reading,
    Truths,
)
from byhand.checking.differences.orders import NOWHERE, Told, rules, told
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Kind = TypeVar("Kind", bound=np.generic)
MOST_COMPARED = 128  # slices whose source is looked for
FEW = 32  # slices that are compared first
MOST_COLUMNS = 64  # entries of a slice that are compared at first
MOST_ORDERS = 4096  # slices of an axis for which an order without a rule is tried
LARGEST_LAYOUT = 1 << 20  # entries of a line whose layout in memory is tried
BORNE_OUT = 6  # wrong entries for each number of an order; below, it is only described
MOST_AVERAGED = 256  # slices of a mean
UNLIKE = 0.25  # of the spread of a column: a slice that is further off is another one
ENOUGH = 20.0  # bits that an order must explain beyond the numbers it has


@quietly
def move_readings(difference: Difference) -> Iterator[Reading]:
    """Slices of the line in another order along an axis, or its numbers in another layout."""
    part = Part.of(difference)
    if part is None or difference.expected.size < 2 or not difference.wrong.any():
        return
    for axis in sorted(range(len(part.axes)), key=difference.expected.shape.__getitem__):
        if difference.target.op == "embed" and part.axes[axis] == "pos":
            continue  # rows of a table: `tables`
        found = list(_along(difference, part, axis))
        yield from found
        if found:
            return
    if not difference.whole:
        return
    found = list(_averages(difference, part))
    yield from found or _layouts(difference)


def _averages(difference: Difference, part: Part) -> Iterator[Reading]:
    """Slices that are all the mean of the same slices of what follows."""
    for axis in range(difference.expected.ndim):
        wrong = np.flatnonzero(_any(difference.wrong, axis))
        for places in (np.arange(difference.expected.shape[axis]), wrong):
            if not 2 <= len(places) <= MOST_AVERAGED or (len(places) < len(wrong)):
                continue
            slices = np.take(difference.expected, places, axis=axis)
            mean = slices.mean(axis=axis, keepdims=True)
            at = np.zeros(difference.wrong.shape, dtype=bool)
            np.moveaxis(at, axis, 0)[places] = True
            if not near(difference, np.where(at, mean, difference.expected), at):
                continue
            yield difference.edit(
                "averaged",
                _("it follows if {places} are averaged: each is the mean of them; the model keeps "
                  "them apart"),
                _("look for a mean over the {names} here"),
                then("averaged", axis=axis, places=tuple(map(int, places))),
                fitted=0 if len(places) == difference.expected.shape[axis] else 2,
                unlikely=1,
                places=part.said(axis, places),
                names=several(part.axes[axis]),
            )  # fmt: skip
            return


# ------------------------------------------------------------------------ along one axis


def _along(difference: Difference, part: Part, axis: int) -> Iterator[Reading]:
    count = difference.expected.shape[axis]
    if count < 2 or count < part.counts[axis]:
        return
    sources = _sources(difference, axis)
    order = None if sources is None else _order(difference, axis, *sources)
    if order is None:
        return
    words = told(order, part.axes[axis])
    if not _telling(difference, order, axis, words):
        return
    if int(difference.wrong.sum()) < BORNE_OUT * words.fitted:
        yield Description(words.said, 5)
        return
    empty = order == NOWHERE
    zero = empty.any() and not _slices(difference.claimed, axis, np.flatnonzero(empty)).any()
    if empty.any() and not zero:
        yield Description(_("{order}; the others hold something else").format(order=words.said), 5)
        return
    place = difference.target.axes.index(part.axes[axis])
    taken = np.where(empty, 0, order)

    def move(draft: Draft, step: Step) -> None:
        draft.then(step.address, "taken", axis=place, order=tuple(map(int, taken)))
        if zero:
            factors = np.ones(step.shape)
            np.moveaxis(factors, place, 0)[empty] = 0.0
            draft.then(step.address, "weighed", factors=factors)

    said = _("{order}, and the rest is 0").format(order=words.said) if zero else words.said
    yield difference.edit(
        "moved",
        _("it follows if {order}; the model has them in their own places"),
        _("look for an index or a reshape along the {names} that is off"),
        move,
        fitted=words.fitted,
        unlikely=words.unlikely,
        order=said,
        names=several(part.axes[axis]),
    )


def _sources(difference: Difference, axis: int) -> tuple[Places, Places] | None:
    """Some wrong slices along an axis, and the slice of what follows that each is nearest to."""
    wrong = np.flatnonzero(_any(difference.wrong, axis))
    count = difference.expected.shape[axis]
    if not len(wrong) or not difference.finite.any():
        return None
    if len(wrong) > MOST_COMPARED and count > MOST_ORDERS:
        wrong = wrong[np.linspace(0, len(wrong) - 1, MOST_COMPARED).astype(np.intp)]
    own, finite = _slices(difference.expected, axis), _slices(difference.finite, axis)
    columns = np.linspace(0, own.shape[1] - 1, min(MOST_COLUMNS, own.shape[1])).astype(np.intp)
    there = finite[:, columns]
    with np.errstate(all="ignore"):
        right = np.where(there, own[:, columns], 0.0)
        left = np.where(there[wrong], _slices(difference.claimed, axis, wrong)[:, columns], 0.0)
        scale = right.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        left, right = (left / scale).astype(np.float32), (right / scale).astype(np.float32)
        if not np.isfinite(left).all() or not np.isfinite(right).all():
            return None
        # |left - right|², without |left|², which is the same for all
        distances = np.einsum("ij,ij->i", right, right) - 2 * (left @ right.T)
    nearest = distances.argmin(axis=1)
    off = np.abs(left - right[nearest]) / np.maximum(np.abs(left), 1.0)
    likely = np.flatnonzero(off.max(axis=1) < UNLIKE)  # in standard deviations of the column
    same = np.zeros(len(wrong), dtype=bool)
    if len(likely):
        same[likely] = _close(difference, axis, wrong[likely], nearest[likely])
    return wrong, np.where(same, nearest, NOWHERE)


def _order(difference: Difference, axis: int, some: Places, sources: Places) -> Places | None:
    """The order of all slices: by a rule, if one fits, else as it was found."""
    count = difference.expected.shape[axis]
    known = sources != NOWHERE
    if known.sum() < max(1, len(some) // 2):
        return None
    right = ~_any(difference.wrong, axis)
    for order in rules(count, (some - sources)[known]):
        rule = np.where((order == NOWHERE) & right, np.arange(count), order)
        if np.array_equal(rule[some][known], sources[known]) and _fits(difference, axis, rule):
            return rule
    order = np.arange(count)
    order[some] = sources
    return order if count <= MOST_ORDERS and _fits(difference, axis, order) else None


def _fits(difference: Difference, axis: int, order: Places) -> bool:
    """Whether the claim has the slices of what follows in this order, and moves some."""
    known = order != NOWHERE
    moved = np.flatnonzero(known & (order != np.arange(len(order))))
    if not len(moved):
        return False
    if _any(difference.wrong, axis)[order == np.arange(len(order))].any():
        return False
    some = moved[np.linspace(0, len(moved) - 1, min(len(moved), FEW)).astype(np.intp)]
    return all(_close(difference, axis, each, order[each]).all() for each in (some, moved))


def _close(difference: Difference, axis: int, places: Places, sources: Places) -> Truths:
    """For each of some slices, whether it is near to its source."""
    claimed = _slices(difference.claimed, axis, places)
    own, room = (_slices(x, axis, sources) for x in (difference.expected, difference.room))
    both = _slices(difference.finite, axis, places) & _slices(difference.finite, axis, sources)
    with np.errstate(all="ignore"):
        room = np.hypot(room, stored_again(difference, claimed))
        off = np.where(both, np.abs(claimed - own) / room, 0.0)
    count = both.sum(axis=1)
    fine = (off <= WORST).all(axis=1) & (count > 0)
    squares = np.einsum("ij,ij->i", off, off)
    return np.asarray(fine & (squares <= ROOT_MEAN_SQUARE**2 * np.maximum(count, 1)))


def _telling(difference: Difference, order: Places, axis: int, words: Told) -> bool:
    """Whether the order explains more than the numbers it has: chance would not find it."""
    moved = np.flatnonzero((order != NOWHERE) & (order != np.arange(len(order))))[:MOST_COMPARED]
    own, room = (_slices(x, axis, moved) for x in (difference.expected, difference.room))
    with np.errstate(all="ignore"):
        away = np.abs(own - _slices(difference.expected, axis, order[moved])) / (4 * room)
        telling = _slices(difference.finite, axis, moved) & (away > 1) & np.isfinite(away)
        bits = np.log2(np.where(telling, away, 1.0))
    return float(bits.sum()) - words.fitted * log2(len(order)) > ENOUGH


def _slices(data: npt.NDArray[Kind], axis: int, some: Places | None = None) -> npt.NDArray[Kind]:
    """The slices along an axis, or some of them, each as a row."""
    chosen = data if some is None else np.take(data, some, axis=axis)
    moved = np.moveaxis(chosen, axis, 0)
    return moved.reshape(len(moved), -1)


def _any(data: Truths, axis: int) -> Truths:
    """For each slice along an axis, whether something in it is True."""
    return np.asarray(data.any(axis=tuple(each for each in range(data.ndim) if each != axis)))


# ------------------------------------------------------------------------ another layout in memory


def _layouts(difference: Difference) -> Iterator[Reading]:
    """The same numbers, laid out along other axes and read as if along these."""
    if difference.expected.size > LARGEST_LAYOUT:
        return
    for names, sides in _splits(difference):
        for turn in permutations(range(len(sides))):
            if turn == tuple(range(len(sides))):
                continue
            order = np.arange(difference.expected.size).reshape(sides).transpose(turn).reshape(-1)
            if not _laid_out(difference, order):
                continue
            yield difference.edit(
                "layout",
                _("it follows if the numbers stand in memory as ({wrong}) and are read as "
                  "({own}); the model has ({own})"),
                _("look for a transpose or a reshape that is missing, or one too many"),
                then("shuffled", order=order),
                own=", ".join(names),
                wrong=", ".join(names[each] for each in turn),
            )  # fmt: skip
            return
    yield from _turned_slices(difference)


def _laid_out(difference: Difference, order: Places, at: Truths | None = None) -> bool:
    """Whether the claim has the numbers of what follows in this order, at some entries."""
    own, room = difference.expected.reshape(-1), difference.room.reshape(-1)
    finite = difference.finite.reshape(-1)
    known = (finite & finite[order]).reshape(difference.expected.shape)
    if int(known.sum()) * 2 < known.size:
        return False
    return near(difference, own[order], known if at is None else known & at, room[order])


def _turned_slices(difference: Difference) -> Iterator[Reading]:
    """Some slices along the first axis whose two other axes change places."""
    shape, axes = difference.expected.shape, difference.target.axes
    if len(shape) != 3 or shape[1] != shape[2]:
        return
    some = np.flatnonzero(_any(difference.wrong, 0))
    order = np.arange(difference.expected.size).reshape(shape)
    order[some] = order[some].transpose(0, 2, 1)
    at = np.zeros(shape, dtype=bool)
    at[some] = True
    if len(some) < shape[0] and _laid_out(difference, order.reshape(-1), at):
        yield difference.edit(
            "layout",
            _("it follows if {places} stand with {one} and {other} exchanged (transposed); the "
              "model has ({own})"),
            _("look for a transpose of these {names} alone"),
            then("shuffled", order=order.reshape(-1)),
            fitted=len(some),
            places=f"{several(axes[0])} {listed(some)}",
            one=axes[1],
            other=axes[2],
            own=", ".join(axes),
            names=several(axes[0]),
        )  # fmt: skip


def _splits(difference: Difference) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """The line's axes, and the same with an axis split into heads."""
    step = difference.target
    if len(step.shape) > 1:
        yield step.axes, step.shape
    attention = next((b.attention for b in difference.scene.spec.blocks if b.attention), None)
    if attention is None or len(step.shape) != 2:
        return
    heads, width = attention.heads, attention.d_head
    first = (step.axes[0], step.shape[0])
    for names, sides in (
        (("head", "d_head"), (heads, width)),
        (("q k v", "head", "d_head"), (3, heads, width)),
        (("head", "q k v", "d_head"), (heads, 3, width)),
    ):
        if prod(sides) == step.shape[1]:
            yield (first[0], *names), (first[1], *sides)

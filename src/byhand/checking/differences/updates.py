"""One term of a sum that differs: what the claim adds, less the other term, beside the model's.

A sum x + y hides how y differs.  So the claimed sum less x is compared with y: moved by positions
or channels, with a factor for each channel or position, limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from byhand.checking.differences.closeness import Fitted
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.product import READ_OFF, Places, good
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

LEAST = 4  # positions
MOVES = (1, -1, 2, -2)


@dataclass(frozen=True, eq=False)
class _Update:
    """A term of the sum as the claim has it, and as the model has it."""

    difference: Difference
    role: str
    address: str
    acts: Floats  # what the claim adds
    own: Floats
    room: Floats

    def fits(self, predicted: Floats) -> bool:
        """Whether the term may be this one."""
        with np.errstate(all="ignore"):
            left, before = (predicted - self.acts) / self.room, (self.own - self.acts) / self.room
        return bool(np.isfinite(left).all()) and good(left, before)


def update_readings(difference: Difference) -> Iterator[Reading]:
    """The term of a sum that is moved, weighed by channel or limited."""
    around, target = difference.scene.context.around, difference.target
    if target.op != "add" or around is None or not difference.whole:
        return
    if not difference.finite.all() or target.shape[0] < LEAST:
        return
    values = {role: around.read(read) for role, read in target.inputs.items()}
    unit = 0.5 * 2.0 ** -bits_of(difference.scene.context.precision)
    for role, other in (("y", "x"), ("x", "y")):
        own, rest = values[role], values[other]
        if own is None or rest is None or own.shape != rest.shape:
            return
        sizes = np.sqrt(np.square(difference.claimed) + np.square(own) + np.square(rest))
        room = np.hypot(difference.room, unit * sizes)
        address = difference.scene.plan.known[target.inputs[role]]
        update = _Update(difference, role, address, difference.claimed - rest, own, room)
        for read in (_moved, _weighed, _limited):
            found = list(read(update))
            yield from found
            if found:
                return


def _moved(update: _Update) -> Iterator[Reading]:
    """The term of the position before or after, or with its channels moved."""
    for axis, words in ((0, _("positions")), (1, _("channels"))):
        for by in MOVES:
            for wraps in (True, False):
                order = np.arange(update.own.shape[axis]) - by
                if wraps:
                    order %= update.own.shape[axis]
                predicted = _taken(update.own, order, axis)
                if not update.fits(predicted):
                    continue
                said = _("it follows if {term} is moved by {by} {axis} before it is added; the "
                         "model adds it where it stands")  # fmt: skip
                if not wraps and axis == 0:
                    said = _(
                        "it follows if {term} is moved by {by} {axis} before it is added "
                        "(0 where nothing is left); the model adds it where it stands"
                    )
                change = _("add {term} where it stands")
                make = partial(_take, role=update.role, order=order, axis=axis)
                yield update.difference.edit(
                    "term-moved", said, change, make, unlikely=READ_OFF + 1, term=update.address,
                    by=by, axis=words)  # fmt: skip
                return


def _taken(values: Floats, order: Places, axis: int) -> Floats:
    size = values.shape[axis]
    there = (order >= 0) & (order < size)
    taken = np.take(values, np.clip(order, 0, size - 1), axis=axis)
    shape = [1, 1]
    shape[axis] = size
    return np.where(there.reshape(shape), taken, 0.0)


def _take(draft: Draft, step: Step, *, role: str, order: Places, axis: int) -> None:
    """Moves a term's entries; -1 stands for 0."""
    count, width = step.shape
    rows, columns = np.meshgrid(np.arange(count), np.arange(width), indexing="ij")
    own = order[rows] if axis == 0 else order[columns]
    size = step.shape[axis]
    flat = own * width + columns if axis == 0 else rows * width + own
    flat = np.where((own >= 0) & (own < size), flat, -1)
    draft.first(step.address, role, "picked", order=flat.reshape(-1))


def _weighed(update: _Update) -> Iterator[Reading]:
    """The term with a factor of its own for each channel, or for each position."""
    for axis, words in ((0, _("channel")), (1, _("position"))):
        weights = 1 / np.square(update.room)
        with np.errstate(all="ignore"):
            sizes = (np.square(update.own) * weights).sum(axis=axis, keepdims=True)
            factors = (update.own * update.acts * weights).sum(axis=axis, keepdims=True) / sizes
        if not np.isfinite(factors).all() or not update.fits(factors * update.own):
            continue
        flat, sure = factors.reshape(-1), 1 / np.sqrt(sizes.reshape(-1))
        if np.ptp(flat) <= 8 * float(sure.max()):
            continue  # one factor: a sum with another factor
        said = _("it follows if {term} has a factor of its own for each {axis}, from {low} to "
                 "{high}; the model adds it as it is")  # fmt: skip
        words_ = {"term": update.address, "axis": words, "low": f"{flat.min():.4g}",
                  "high": f"{flat.max():.4g}"}  # fmt: skip
        told = _("{term} is added with a factor of its own for each {axis}, from {low} to {high}")
        yield Description(told.format(**words_), 4)
        change = _("look for factors that are applied to {term} before it is added")
        make = partial(_weigh, role=update.role, factors=np.array(factors))
        yield update.difference.edit(
            "term-factors", said, change, make, at=update.difference.target, fitted=flat.size,
            unlikely=READ_OFF + 2, **words_)  # fmt: skip
        return


def _weigh(draft: Draft, step: Step, *, role: str, factors: Floats) -> None:
    draft.first(step.address, role, "weighed", factors=factors)


def _limited(update: _Update) -> Iterator[Reading]:
    """The term, at most of a certain size."""
    limit = float(np.abs(update.acts).max())
    near = np.abs(update.acts) > limit * (1 - 1e-3) - 4 * float(np.median(update.room))
    if not near.any():
        return
    limit = float(np.median(np.abs(update.acts[near])))
    found = Fitted(limit, float(np.median(update.room[near]) / np.sqrt(near.sum())))
    constant = recognised(found, update.difference.scene)
    value = limit if constant is None else constant.value
    if not 0 < value < float(np.abs(update.own).max()) or near.all():
        return
    if not update.fits(np.clip(update.own, -value, value)):
        return
    said = _("it follows if {term} is limited to ±{limit} before it is added; the model adds it as "
             "it is")  # fmt: skip
    make = partial(_limit, role=update.role, limit=value)
    yield update.difference.edit(
        "term-limited", said, _("do not limit {term}"), make, fitted=int(constant is None),
        unlikely=READ_OFF + 1, term=update.address,
        limit=shown(found) if constant is None else constant.written,
    )  # fmt: skip


def _limit(draft: Draft, step: Step, *, role: str, limit: float) -> None:
    draft.first(step.address, role, "limited", low=-limit, high=limit)

"""Factors by head, position or channel, and shifts by row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.axes import Part, Places, compact, several
from byhand.checking.differences.closeness import SURE, Entries, Fitted, near, stored_again
from byhand.checking.differences.constants import recognised, shown, unlikely
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.fits import FEWEST, slice_factors
from byhand.checking.differences.known_vectors import known_vector
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.pieces import row_part
from byhand.language import _

STORED = 2.0**-24  # relative: a constant as float32 holds it
SMALL = 1 << 16  # entries of a line that are all looked at, at once
FEW_SLICES = 16  # slices of a larger line that are looked at first
MOST_OWN = 8  # factors that are listed one by one
ROW_PARTS = ("max", "mean", "logsumexp")


def slice_readings(difference: Difference, part: Part) -> Iterator[Reading]:
    """A factor for each head, position or channel: few different ones, or known ones."""
    sizes = difference.expected.shape
    for axis in sorted(range(len(sizes)), key=sizes.__getitem__):
        if sizes[axis] < 2 or not _multiples(_few_slices(difference, axis), axis):
            continue
        found = _multiples(difference, axis)
        if found is not None:
            yield from _told_by_slice(difference, part, axis, *found)
            return


def _multiples(difference: Difference, axis: int) -> tuple[Floats, Floats] | None:
    """The factors of all slices along an axis and their uncertainty; None where they do not fit."""
    found = slice_factors(difference, axis)
    if found is None:
        return None
    factors = np.broadcast_to(
        along(found[0], axis, difference.expected.ndim), difference.expected.shape
    )[difference.finite]
    entries = Entries.of(difference, difference.there)
    return found if entries.near(factors * entries.own, factors) else None


def _few_slices(difference: Difference, axis: int) -> Difference:
    """The difference at a few slices along an axis, those that differ most; it is much smaller."""
    count = difference.expected.shape[axis]
    if difference.expected.size <= SMALL or count <= FEW_SLICES:
        return difference
    wrong = difference.wrong.any(
        axis=tuple(other for other in range(difference.wrong.ndim) if other != axis)
    )
    where = np.flatnonzero(wrong)
    some = where[np.linspace(0, len(where) - 1, FEW_SLICES).astype(np.intp)]
    parts = (difference.claimed, difference.expected, difference.allowed, difference.usual)
    claimed, expected, allowed, usual = (np.take(part, some, axis=axis) for part in parts)
    there = np.take(difference.there, some, axis=axis)
    return Difference(difference.scene, claimed, expected, allowed, usual, there)


def _told_by_slice(
    difference: Difference, part: Part, axis: int, values: Floats, offs: Floats
) -> Iterator[Reading]:
    groups = _groups(values, offs)
    changed = [group for group in groups if _pooled(values, offs, group).differs]
    if len(changed) <= 2 and all(_alike(values, offs, group) for group in changed):
        yield _groups_edit(difference, part, axis, values, offs, changed)
        return
    vector = known_vector(difference, part, axis, values, offs)
    if vector is not None:
        yield _vector_edit(difference, part, axis, *vector)
        return
    numbers = [shown(Fitted(value, off)) for value, off in zip(values, offs, strict=True)]
    if len(values) <= MOST_OWN:
        said = _("each of the {names} is a multiple of its own of what follows: {numbers}")
    else:
        said = _("each of the {names} is a multiple of its own of what follows: from {least} to "
                 "{most}")  # fmt: skip
    yield Description(
        said.format(
            names=several(part.axes[axis]),
            numbers=", ".join(numbers),
            least=numbers[int(values.argmin())],
            most=numbers[int(values.argmax())],
        ),
        4,
    )


def _groups_edit(
    difference: Difference,
    part: Part,
    axis: int,
    values: Floats,
    offs: Floats,
    groups: list[Places],
) -> Reading:
    """One or two factors, each of some slices."""
    factors = np.ones(len(values))
    told, unknown, rare = [], 0, 0
    for group in groups:
        pooled = _pooled(values, offs, group)
        constant = recognised(pooled, difference.scene)
        factors[group] = pooled.value if constant is None else constant.value
        unknown += constant is None
        rare = max(rare, unlikely(constant))
        told.append(
            _("{places}: {factor} ×").format(
                places=part.said(axis, group),
                factor=shown(pooled) if constant is None else constant.written,
            )
        )
    whole = part.laid(
        np.broadcast_to(along(factors, axis, difference.expected.ndim), difference.expected.shape),
        1.0,
    )
    return difference.edit(
        "factor",
        _("it follows if parts are multiples of what follows ({parts}); the model has no such "
          "factors"),
        _("look for a factor that is applied to these {names} alone, or left out of them"),
        then("weighed", factors=compact(whole), relative=STORED),
        fitted=unknown,
        unlikely=rare,
        parts="; ".join(told),
        names=several(part.axes[axis]),
    )  # fmt: skip


def _vector_edit(
    difference: Difference, part: Part, axis: int, factors: Floats, written: str
) -> Reading:
    shape = difference.expected.shape
    whole = part.laid(np.broadcast_to(along(factors, axis, len(shape)), shape), 1.0)
    return difference.edit(
        "factor",
        _("it follows if each of the {names} is multiplied by {vector}; the model does not"),
        _("look for {vector} that is applied here, or left out before"),
        then("weighed", factors=compact(whole), relative=4 * STORED),
        unlikely=1,
        names=several(part.axes[axis]),
        vector=written,
    )


def row_readings(difference: Difference, part: Part) -> Iterator[Reading]:
    """Each row less a number of its own: its largest, its mean, the logarithm of its sum."""
    if difference.expected.ndim < 2 or difference.expected.shape[-1] < FEWEST:
        return
    if not _shifted_rows(_few_slices(difference, 0)).size:
        return
    shift = _shifted_rows(difference)
    if not shift.size:
        return
    own = np.where(difference.finite, difference.expected, np.nan)
    for kind in ROW_PARTS if difference.whole else ():
        with np.errstate(all="ignore"):
            parts = row_part(own, kind)
        predicted = difference.expected - np.where(np.isfinite(parts), parts, 0.0)[..., None]
        if near(difference, predicted):
            yield difference.edit(
                "row-shift",
                _("it follows if each row is taken less {what}; the model does not"),
                _("look for rows that are normalised here, or dumped one step too late"),
                then("less_of_row", kind=kind),
                unlikely=1,
                what=row_words(kind),
            )
            return
    least, most = float(shift.min()), float(shift.max())
    yield Description(
        _("each row is shifted by a number of its own, from {least} to {most}").format(
            least=f"{least:.3g}", most=f"{most:.3g}"
        ),
        4,
    )


def row_words(kind: str) -> str:
    """A part of a row that is taken off, in words."""
    words = {
        "max": _("its largest number"),
        "mean": _("its mean"),
        "logsumexp": _("the logarithm of its sum of exponentials, as in log-softmax"),
    }
    return words[kind]


def _shifted_rows(difference: Difference) -> Floats:
    """The summand of each row, if they fit; else nothing."""
    at = difference.finite
    with np.errstate(all="ignore"):
        again = stored_again(difference, difference.claimed)
        weights = np.where(at, 1 / (np.square(difference.room) + np.square(again)), 0.0)
        away = np.where(at, difference.claimed - difference.expected, 0.0)
        shift = (weights * away).sum(axis=-1) / weights.sum(axis=-1)
    entries = Entries.of(difference, difference.there)
    moved = np.broadcast_to(shift[..., None], at.shape)[at]
    if not entries.near(entries.own + moved):
        return np.zeros(0)
    return np.asarray(shift[np.isfinite(shift)])


def _groups(values: Floats, offs: Floats) -> list[Places]:
    """The slices with equal factors, as indices; slices without a factor are left out."""
    known = np.flatnonzero(np.isfinite(offs))
    order = known[np.argsort(values[known])]
    if not len(order):
        return []
    gaps = np.diff(values[order])
    room = SURE * (offs[order][1:] + offs[order][:-1]) + 1e-12
    cuts = np.flatnonzero(gaps > room) + 1
    return [np.sort(group) for group in np.split(order, cuts)]


def _alike(values: Floats, offs: Floats, group: Places) -> bool:
    """Whether one factor will do for a group of slices."""
    pooled = _pooled(values, offs, group)
    away = np.abs(values[group] - pooled.value)
    return bool((away <= SURE * offs[group] + 1e-12 * abs(pooled.value)).all())


def _pooled(values: Floats, offs: Floats, group: Places) -> Fitted:
    weights = 1 / np.square(np.maximum(offs[group], 1e-300))
    total = float(weights.sum())
    if not np.isfinite(total) or total <= 0:
        return Fitted(float(np.median(values[group])), float(offs[group].min()))
    return Fitted(float(weights @ values[group]) / total, float(np.sqrt(1 / total)))


def along(values: Floats, axis: int, ndim: int) -> Floats:
    """The values of the slices along an axis, ready to multiply the line."""
    return values.reshape(tuple(-1 if each == axis else 1 for each in range(ndim)))

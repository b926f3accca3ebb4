"""Factors by head, position or channel, and shifts by row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.axes import Part, Places, several
from byhand.checking.differences.closeness import SURE, Fitted, near, room_of
from byhand.checking.differences.constants import recognised, shown, unlikely
from byhand.checking.differences.difference import Description, Difference, Floats, Reading
from byhand.checking.differences.fits import FEWEST, slice_factors
from byhand.checking.differences.known_vectors import known_vector
from byhand.checking.suspects.mistakes import then
from byhand.checking.suspects.pieces import row_part
from byhand.language import _

STORED = 2.0**-24  # relative: a constant as float32 holds it
MOST_OWN = 8  # factors that are listed one by one
ROW_PARTS = ("max", "mean", "logsumexp")


def slice_readings(difference: Difference, part: Part) -> Iterator[Reading]:
    """A factor for each head, position or channel: few different ones, or known ones."""
    sizes = difference.expected.shape
    for axis in sorted(range(len(sizes)), key=sizes.__getitem__):
        if sizes[axis] < 2:
            continue
        found = slice_factors(difference, axis)
        if found is None:
            continue
        values, offs = found
        along = _along(values, axis, len(sizes))
        predicted = along * difference.expected
        if not near(difference, predicted, room_of(difference, along)):
            continue
        yield from _told_by_slice(difference, part, axis, values, offs)
        return


def _told_by_slice(
    difference: Difference, part: Part, axis: int, values: Floats, offs: Floats
) -> Iterator[Reading]:
    groups = _groups(values, offs)
    changed = [group for group in groups if _pooled(values, offs, group).differs]
    if len(changed) <= 2:
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
        np.broadcast_to(_along(factors, axis, difference.expected.ndim), difference.expected.shape),
        1.0,
    )
    return difference.edit(
        "factor",
        _("it follows if parts are multiples of what follows ({parts}); the model has no such "
          "factors"),
        _("look for a factor that is applied to these {names} alone, or left out of them"),
        then("weighed", factors=whole, relative=STORED),
        fitted=unknown,
        unlikely=rare,
        parts="; ".join(told),
        names=several(part.axes[axis]),
    )  # fmt: skip


def _vector_edit(
    difference: Difference, part: Part, axis: int, factors: Floats, written: str
) -> Reading:
    along = _along(factors, axis, difference.expected.ndim)
    whole = part.laid(np.broadcast_to(along, difference.expected.shape), 1.0)
    return difference.edit(
        "factor",
        _("it follows if each of the {names} is multiplied by {vector}; the model does not"),
        _("look for {vector} that is applied here, or left out before"),
        then("weighed", factors=whole, relative=4 * STORED),
        unlikely=1,
        names=several(part.axes[axis]),
        vector=written,
    )


def row_readings(difference: Difference, part: Part) -> Iterator[Reading]:
    """Each row less a number of its own: its largest, its mean, the logarithm of its sum."""
    if difference.expected.ndim < 2 or difference.expected.shape[-1] < FEWEST:
        return
    at = difference.finite
    own = np.where(at, difference.expected, np.nan)
    room = room_of(difference)
    with np.errstate(all="ignore"):
        weights = np.where(at, 1 / np.square(room), 0.0)
        away = np.where(at, difference.claimed - difference.expected, 0.0)
        shift = (weights * away).sum(axis=-1) / weights.sum(axis=-1)
    if not near(difference, difference.expected + shift[..., None], room):
        return
    words = {
        "max": _("its largest number"),
        "mean": _("its mean"),
        "logsumexp": _("the logarithm of its sum of exponentials, as in log-softmax"),
    }
    for kind in ROW_PARTS if difference.whole else ():
        with np.errstate(all="ignore"):
            parts = row_part(own, kind)
        predicted = difference.expected - np.where(np.isfinite(parts), parts, 0.0)[..., None]
        if near(difference, predicted, 2 * room):
            yield difference.edit(
                "row-shift",
                _("it follows if each row is taken less {what}; the model does not"),
                _("look for rows that are normalised here, or dumped one step too late"),
                then("less_of_row", kind=kind),
                unlikely=1,
                what=words[kind],
            )
            return
    known = shift[np.isfinite(shift)]
    least, most = float(known.min()), float(known.max())
    yield Description(
        _("each row is shifted by a number of its own, from {least} to {most}").format(
            least=f"{least:.3g}", most=f"{most:.3g}"
        ),
        4,
    )


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


def _pooled(values: Floats, offs: Floats, group: Places) -> Fitted:
    weights = 1 / np.square(np.maximum(offs[group], 1e-300))
    total = float(weights.sum())
    if not np.isfinite(total) or total <= 0:
        return Fitted(float(np.median(values[group])), float(offs[group].min()))
    return Fitted(float(weights @ values[group]) / total, float(np.sqrt(1 / total)))


def _along(values: Floats, axis: int, ndim: int) -> Floats:
    """The values of the slices along an axis, ready to multiply the line."""
    return values.reshape(tuple(-1 if each == axis else 1 for each in range(ndim)))

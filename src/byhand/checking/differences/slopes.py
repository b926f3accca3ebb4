"""Differences in ALiBi: the slope of each head, read off the scores, and what the slopes are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.difference import UNUSUAL, Difference, Reading
from byhand.checking.suspects.mistakes import first
from byhand.language import _

Floats = npt.NDArray[np.float64]
SURE = 1e-3  # slopes that agree so far, relative to their size, are the same
LARGEST = 8.0  # the slopes of n heads are 2^(-LARGEST·h/n)


def slope_readings(difference: Difference) -> Iterator[Reading]:
    """The slopes that make the scores follow, where the model has others."""
    step = difference.target
    own = difference.input("slopes") if "slopes" in step.inputs else None
    if own is None or not difference.whole or not (own != 0).all():
        return
    slopes = _read(difference, own)
    if slopes is None or not (np.abs(slopes - own) > SURE * np.abs(own)).any():
        return
    sentence, fitted, slopes = _told(slopes, own)
    yield difference.edit(
        "alibi-slopes",
        sentence,
        _("subtract slope·distance with the slopes that the model was trained with: {own}"),
        first("slopes", "times_each", factors=slopes / own),
        fitted=fitted,
        own=_listed(own),
    )


def _read(difference: Difference, own: Floats) -> Floats | None:
    """The slope of each head by least squares; None if some score is not explained by it."""
    queries, keys = (difference.target.attributes[name] for name in ("queries", "keys"))
    distance = np.abs(np.subtract.outer(np.asarray(queries, float), np.asarray(keys, float)))
    known = difference.finite & (distance > 0)
    if not known.any(axis=(1, 2)).all():
        return None
    off = np.where(known, difference.claimed - difference.expected, 0.0)
    room = np.where(known, difference.room, 1.0)
    steps = np.where(known, distance / room, 0.0)
    less = (steps * off / room).sum(axis=(1, 2)) / np.square(steps).sum(axis=(1, 2))
    left = np.abs(off - less[:, None, None] * np.where(known, distance, 0.0)) / room
    return own - less if (left <= UNUSUAL).all() else None


def _told(slopes: Floats, own: Floats) -> tuple[str, int, Floats]:
    """What the slopes are, how many numbers were read for it, and the slopes by that rule."""
    heads = len(own)
    sequence = 2.0 ** (-LARGEST * np.arange(1, heads + 1) / heads)
    if _same(slopes, sequence):
        said = _("it follows if the slopes of the {heads} heads are one geometric sequence, "
                 "2^(-{largest}h/{heads}); the model has others")  # fmt: skip
        return said.format(heads=heads, largest=f"{LARGEST:g}"), 0, sequence
    order = np.argsort(-slopes), np.argsort(-own)
    if _same(slopes[order[0]], own[order[1]]):
        said = _("it follows if the heads have each other's slopes, {slopes}; the model has {own}")
        return said.format(slopes=_listed(slopes), own=_listed(own)), heads, slopes
    factor = float(np.exp(np.median(np.log(slopes / own)))) if (slopes / own > 0).all() else 0.0
    if factor and _same(slopes, factor * own):
        said = _("it follows if every slope is {factor} times as large; the model has {own}")
        return said.format(factor=f"{factor:.5g}", own=_listed(own)), 1, factor * own
    said = _("it follows if the slopes are {slopes}; the model has {own}")
    return said.format(slopes=_listed(slopes), own=_listed(own)), heads, slopes


def _same(slopes: Floats, others: Floats) -> bool:
    return bool((np.abs(slopes - others) <= SURE * np.abs(others)).all())


def _listed(slopes: Floats) -> str:
    shown = [f"{slope:.4g}" for slope in slopes[:6]]
    return ", ".join([*shown, *["…"] * (len(slopes) > 6)])

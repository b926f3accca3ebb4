"""Fits through a gap: the value of a knob that brings the prediction nearest to the claim.

The derivative is a difference of two predictions; each further step is a secant one.  Four to eight
passes settle a knob that matters, one pass tells that it does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, isfinite, log

import numpy as np

from byhand.checking.claims import Floats
from byhand.checking.gaps.knobs import Knob
from byhand.checking.gaps.search import Search
from byhand.checking.suspects.scenes import Scene

SOME = 0.04  # share of the squared distance that a knob must promise to take away
MOST = 8  # knobs that are turned further
STEPS = 8  # passes for one knob
SETTLED = 0.02  # uncertainties of a value: a step below it ends the search


@dataclass(frozen=True)
class _Start:
    """A knob, turned once."""

    knob: Knob
    at: float  # where it was turned to, on its own scale
    predicted: Floats
    promise: float  # the share of the squared distance that it could take away, if it were linear


def fit(search: Search, scene: Scene, knobs: Iterable[Knob]) -> None:
    """Turns the knobs, the most promising ones until they settle, and notes what they give."""
    starts = [start for knob in knobs if (start := _turned(search, scene, knob)) is not None]
    starts.sort(key=lambda start: -start.promise)
    for start in starts[:MOST]:
        if start.promise >= SOME:
            _settle(search, scene, start)


def _turned(search: Search, scene: Scene, knob: Knob) -> _Start | None:
    predicted = search.predicted(knob.edit(scene, knob.other).plan)
    if predicted is None:
        return None
    moved, left = search.off(search.expected) - search.off(predicted), search.off(search.expected)
    size, whole = float(np.square(moved).sum()), float(np.square(left).sum())
    if not isfinite(size) or not size or not whole:
        return None
    along = float((moved * left).sum())
    return _Start(knob, _scale(knob, knob.other), predicted, along * along / size / whole)


def _settle(search: Search, scene: Scene, start: _Start) -> None:
    knob = start.knob
    before, left = _scale(knob, knob.own), search.off(search.expected)
    at, now = start.at, search.off(start.predicted)
    best: tuple[float, float, Floats] | None = None  # distance, place, prediction
    uncertain = np.inf
    for _pass in range(STEPS):
        slope = (now - left) / (at - before)
        steep = float(np.square(slope).sum())
        if not isfinite(steep) or not steep:
            break
        step = -float((slope * now).sum()) / steep
        uncertain = 1 / np.sqrt(steep)
        if best is not None and abs(step) <= SETTLED * uncertain * max(1.0, best[0]):
            break
        before, left = at, now
        at += _within(knob, at, step)
        predicted = search.predicted(knob.edit(scene, _value(knob, at)).plan)
        if predicted is None:
            break
        now, distance = search.off(predicted), search.distance(predicted)
        if not isfinite(distance):
            break
        if best is None or distance < best[0]:
            best = distance, at, predicted
        elif distance > 4 * best[0]:
            break
    if best is not None and best[0] < search.model:
        search.note(knob.edit(scene, _value(knob, best[1])), best[2])


def _scale(knob: Knob, value: float) -> float:
    return log(value) if knob.logarithmic else value


def _value(knob: Knob, at: float) -> float:
    return exp(min(at, 60.0)) if knob.logarithmic else at


def _within(knob: Knob, at: float, step: float) -> float:
    """The step, at most as far as the slope is worth something."""
    most = 3.0 if knob.logarithmic else max(1.0, 2 * abs(at))
    return float(np.clip(step, -most, most))

"""Fits through a gap: the value of a knob that brings the prediction nearest to the claim.

The derivative is a difference of two predictions; each further step is a secant one.  Four to eight
passes settle a knob that matters, one pass tells that it does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log, sqrt

import numpy as np

from byhand.checking.claims import Floats
from byhand.checking.differences.closeness import Fitted
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.gaps.knobs import Knob
from byhand.checking.gaps.search import Search
from byhand.checking.suspects.scenes import Scene

SOME = 0.04  # share of the squared distance that a knob must promise to take away
MOST = 8  # knobs that are turned further
STEPS = 8  # passes for one knob
SHARED = 4.0  # how much less is known of a number where entries share their rounding errors
ALIKE = 1.1  # factor by which a known constant may leave more than the best one
SETTLED = 0.02  # uncertainties of a value: a step below it ends the search


@dataclass(frozen=True)
class _Start:
    """A knob at two places, on its own scale; the second one is the nearer to the claim."""

    knob: Knob
    places: tuple[float, float]
    predicted: tuple[Floats, Floats]
    promise: float  # the share of the squared distance that it could take away, if it were linear


def fit(search: Search, scene: Scene, knobs: Iterable[Knob], share: float = 1.0) -> None:
    """Turns the knobs, the most promising ones until they settle, and notes what they give.

    The first turns may take half of a share of what may be spent.
    """
    kept = (1 - share / 2) * search.work
    starts = []
    for knob in knobs:
        if search.work <= kept:
            break
        if (start := _turned(search, scene, knob)) is not None:
            starts.append(start)
    # Knobs that turn the same number promise the same, up to the last digits of a machine's floats:
    # rounded, they stay in the order in which they were given.
    starts.sort(key=lambda start: -round(start.promise, 6))
    for start in starts[:MOST]:
        if start.promise >= SOME:
            _settle(search, scene, start)


def _turned(search: Search, scene: Scene, knob: Knob) -> _Start | None:
    tried = [
        (_scale(knob, value), predicted)
        for value in knob.grid or (knob.other,)
        if (predicted := search.predicted(knob.edit(scene, value).plan)) is not None
    ]
    if not knob.grid:
        tried.insert(0, (_scale(knob, knob.own), search.expected))
    if len(tried) < 2:
        return None
    if knob.grid:
        tried.sort(key=lambda each: -search.distance(each[1]))
    (before, first), (at, last) = tried[-2:]
    moved, left = search.off(first) - search.off(last), search.off(first)
    size, whole = float(np.square(moved).sum()), float(np.square(left).sum())
    if not isfinite(size) or not isfinite(whole) or not size or not whole or not search.model:
        return None
    along = float((moved * left).sum())
    promise = along * along / size / whole
    if knob.grid:  # what is left at best, beside what the model leaves
        best = whole * max(0.0, 1 - promise) / max(1, int(search.known.sum()))
        promise = 1 - best / search.model**2
    return _Start(knob, (before, at), (first, last), promise)


def _settle(search: Search, scene: Scene, start: _Start) -> None:
    knob = start.knob
    (before, at), (left, now) = start.places, map(search.off, start.predicted)
    best: tuple[float, float, Floats] | None = None  # distance, place, prediction
    uncertain = inf
    for _pass in range(STEPS):
        slope = (now - left) / (at - before)
        steep = float(np.square(slope).sum())
        if not isfinite(steep) or not steep:
            break
        step = -float((slope * now).sum()) / steep
        uncertain = 1 / sqrt(steep)
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
        _note(search, scene, knob, best, uncertain)


def _note(
    search: Search,
    scene: Scene,
    knob: Knob,
    best: tuple[float, float, Floats],
    uncertain: float,
) -> None:
    """Notes the knob at its best, as a known constant where it is one and fits as well."""
    distance, at, predicted = best
    value = _value(knob, at)
    off = SHARED * max(1.0, distance) * uncertain * (abs(value) if knob.logarithmic else 1.0)
    found = Fitted(value, off)
    known = recognised(found, scene) if isfinite(off) else None
    if known is not None:
        short = f"{known.value:.6g}"
        written = short if float(short) == known.value else known.written
        edit = replace(knob.edit(scene, known.value, written), fitted=0)
        again = search.predicted(edit.plan)
        if again is not None and search.distance(again) <= distance * ALIKE:
            search.note(edit, again)
            return
    search.note(knob.edit(scene, value, shown(found)), predicted)


def _scale(knob: Knob, value: float) -> float:
    return log(value) if knob.logarithmic else value


def _value(knob: Knob, at: float) -> float:
    return exp(min(at, 60.0)) if knob.logarithmic else at


def _within(knob: Knob, at: float, step: float) -> float:
    """The step, at most as far as the slope is worth something."""
    most = 3.0 if knob.logarithmic else max(1.0, 2 * abs(at))
    return float(np.clip(step, -most, most))

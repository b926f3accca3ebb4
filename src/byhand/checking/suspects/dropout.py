"""Dropout left on: the mistake, and the kept entries, found from the claimed line.

A dropout makes each number 0, or 1/(1 - rate) times larger, even where nothing was dropped.  A
claimed result shows that directly.  If attention weights were dropped before mixing, the dropped
keys are found by trial: each further key uses one equation of the claimed row, so wrong trials end
soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.mistakes import Mistake, Wrong, first, made, number, setting, then
from byhand.checking.suspects.scenes import Edit, Scene
from byhand.errors import InputError
from byhand.language import _
from byhand.plan import Step

RATES = tuple(map(Fraction, ("0.1", "0.2", "0.5", "0.05", "0.3")))
PLACES = (".attn.weights", ".attn.mixed", ".attn.out", ".mlp.out", "stream.0", "embed.token")
SUMS = (".attn.add", ".mlp.add")
FINEST = 1000  # rates are whole multiples of 1/1000
Data = npt.NDArray[Any]
Truths = npt.NDArray[np.bool_]
MOST_TRIALS = 20_000  # keys kept or dropped on trial, over all rows
TINY = 1e-300  # keeps every bound above 0
NEAR = 4.0  # × the smallest sum of squares so far: trials within it compete by their worst entry
FAR = 5.0  # standard deviations between the number of dropped entries and the expected one


def dropout_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a dropout left on: entries dropped, or all of them divided by 1 - rate."""
    if scene.context.values is not None and not scene.context.index:
        yield from _dropped(scene)
    for step in scene.named(*PLACES)[-1:]:  # between two products the arithmetic is the same
        for rate in RATES[:3]:
            yield from _larger(scene, step, rate)


def _left_on(said: str, rate: Fraction, make: Wrong) -> Mistake[Step]:
    change = _("switch dropout off: model.eval()")
    return Mistake("dropout", said.format(rate=number(rate)), change, make, 2)


def _larger(scene: Scene, step: Step, rate: Fraction) -> Iterator[Edit]:
    """Edits in which nothing is dropped and everything is larger."""
    said = _(
        "it follows if everything is larger by 1/(1 - {rate}), as dropout leaves it; the model "
        "drops nothing"
    )
    factor = 1 / (1 - rate)
    if "weights" in step.inputs:  # attention weights are dropped before mixing
        larger = _left_on(said, rate, first("weights", "scaled", factor=factor))
        yield from made(scene, [step], larger)
    yield from made(scene, [step], _left_on(said, rate, then("scaled", factor=factor)))


def _dropped(scene: Scene) -> Iterator[Edit]:
    """Edits that drop entries of the claimed line, or of the values it mixes or adds."""
    target, values = scene.target, scene.context.values
    said = _(
        "it follows if some of it is dropped and the rest is larger by 1/(1 - {rate}), as dropout "
        "leaves it; the model drops nothing"
    )
    if target.address.endswith(PLACES) and (rate := shown_rate(scene)):
        dropped = then("dropped", values=values, rate=rate)
        yield from made(scene, [target], _left_on(said, rate, dropped))
    mixes, adds = target.op == "mix", target.op == "add" and target.address.endswith(SUMS)
    for rate in RATES if mixes or adds else ():
        wrong = setting(op="dropped_mix" if mixes else "dropped_add", values=values, rate=rate)
        yield from made(scene, [target], _left_on(said, rate, wrong))


def shown_rate(scene: Scene) -> Fraction | None:
    """The rate that the claimed line shows: most of it is 1/(1 - rate) times the expected value."""
    values, expected = scene.context.values, scene.context.expected
    if values is None or expected is None or values.shape != expected.shape:
        return None
    there = (expected != 0) & np.isfinite(values)
    left = there & (values != 0)
    if not left.any():
        return None
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = float(np.median(expected[left] / values[left]))
    if not isfinite(ratio):
        return None
    rate = Fraction(round((1 - ratio) * FINEST), FINEST)
    if not 0 < rate < 1:
        return None
    kept = nearer(values, np.zeros(values.shape), expected / (1 - float(rate)))
    return rate if plausible(kept, there, float(rate)) else None


# ------------------------------------------------------------------------ what was kept


def nearer(values: Data, dropped: Data, kept: Data) -> Truths:
    """For each claimed value, whether it is nearer to the kept value than to the dropped one."""
    near: Truths = np.abs(values - kept) <= np.abs(values - dropped)
    return near


def plausible(kept: Truths, counted: Truths, rate: float) -> bool:
    """Whether a dropout of this rate may have kept these entries and dropped the others."""
    total = int(counted.sum())
    dropped = int((counted & ~kept).sum())
    off = abs(dropped - rate * total)
    return 0 < dropped < total and off <= FAR * sqrt(total * rate * (1 - rate)) + 1


def kept_keys(shares: Data, v: Data, values: Data, room: Data, factor: float) -> Truths:
    """For each (head, query, key), whether the dropout kept the attention weight.

    `room` is the allowed error of each claimed value.
    """
    heads, queries, _keys = shares.shape
    group = heads // len(v)
    kept = np.ones(shares.shape, dtype=bool)
    trials = [MOST_TRIALS]
    for query in range(queries):  # queries with few keys first: they rule out a wrong rate soonest
        for head in range(heads):
            seen = np.flatnonzero(shares[head, query])
            columns = (v[head // group, seen] * (factor * shares[head, query, seen, None])).T
            each = room[head, query] + TINY
            found = _subset(columns / each[:, None], values[head, query] / each, trials)
            if found is None:
                raise InputError(_("no dropout explains it"))
            kept[head, query, seen] = found
    return kept


def _subset(columns: Data, total: Data, trials: list[int]) -> Truths | None:
    """The best set of columns whose sum is within 1 of the total in each entry.

    With columns = Q·R, row i of R·z = Qᵀ·total involves only the columns from i on.  So columns are
    decided from the last, the longest, to the first, and the residual sum of squares only grows.
    Of the trials with a small residual, the one with the best worst entry is taken, relative to its
    terms.
    """
    count = columns.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.square(columns).sum() + total @ total)
    if not isfinite(squares):  # too large to distinguish
        return None
    order = np.argsort(np.linalg.norm(columns, axis=0))
    turn, right = np.linalg.qr(columns[:, order])
    aim = turn.T @ total
    outside = max(0.0, float(total @ total) - float(aim @ aim))  # outside the columns' span
    most, best, found = float(len(total)), inf, None
    sizes = np.abs(columns[:, order])
    chosen = np.zeros(count)
    open_: list[tuple[int, float, float]] = [(count - 1, z, outside) for z in (0.0, 1.0)]
    while open_:
        place, z, so_far = open_.pop()
        trials[0] -= 1
        if trials[0] < 0:
            return None
        chosen[place] = z
        if place < len(right):
            so_far += float(aim[place] - right[place, place:] @ chosen[place:]) ** 2
        if so_far > most:
            continue
        if place == 0:
            most = min(most, NEAR * so_far + NEAR)
            left = np.abs(columns[:, order] @ chosen - total)
            worst = float((left / (sizes @ chosen + np.abs(total) + TINY)).max())
            if worst < best:
                best, found = worst, chosen > 0
        else:
            open_ += [(place - 1, z, so_far) for z in (0.0, 1.0)]
    if found is None:
        return None
    result = np.empty(count, dtype=bool)
    result[order] = found
    return result

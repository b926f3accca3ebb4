"""Gaps: what may have gone wrong in the unclaimed steps before a line.

    line → candidates (the catalogue, in all blocks and in each; numbers fitted through the gap)
         → plain float64 → the nearest in ranges → trials, for `evidence`
         → the unclaimed step that would tell most

A line after a gap has wide bounds, often too wide to judge it.  So explanations are compared by
what rounding usually does: a cause leaves no more than that, over the whole line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from byhand.checking.evidence import Trial
from byhand.checking.gaps.asking import step_to_dump
from byhand.checking.gaps.candidates import listed, listed_apart
from byhand.checking.gaps.fits import fit
from byhand.checking.gaps.knobs import knobs, knobs_apart
from byhand.checking.gaps.search import Search
from byhand.checking.gaps.values import Values
from byhand.checking.replay import Line, Replay
from byhand.checking.suspects import Edit, Scene
from byhand.errors import ByhandError
from byhand.numbers.allowed import Judged
from byhand.worked import Missing

MOST_WORK = 20_000_000_000  # multiplications for the search of one gap
MOST_CONFIRMED = 4  # candidates that are worked out again in ranges
LEFT = 1.5  # × the usual rounding error: what a cause leaves at most, all over
IN_A_ROW = 2.5  # the same for the worst row
NEARER = 4.0  # factor by which a cause is nearer to the claim than the model
CLEAR = 100.0  # the same where rivals need not be looked for any further
SCREENED = 20.0  # × the model's usual rounding error: what an edit may leave before it is confirmed


@dataclass(frozen=True)
class Found:
    """What a search found: explanations, worked out in ranges, and the step to dump next."""

    trials: tuple[Trial, ...] = ()
    ask: str | None = None


def is_gap(replay: Replay, scene: Scene, line: Line, judged: Judged) -> bool:
    """Whether unclaimed steps of a forward pass in floats lie before a line."""
    return (
        len(scene.region) > 1
        and replay.rounding.rounds
        and not line.claim.by_hand
        and judged.usual is not None
        and scene.target.op != "argmax"
        and all(step.stage == "forward" for step in scene.region)
    )


def searched(
    replay: Replay,
    scene: Scene,
    line: Line,
    judged: Judged,
    *,
    first: Sequence[Edit] = (),
    work: float = MOST_WORK,
) -> Found:
    """The edits that explain a line after a gap; those of `first` are tried before all others."""
    search = Search(Values(replay, line), judged, min(work, MOST_WORK))
    for stage in (
        lambda: search.try_all(first),
        lambda: search.try_all(listed(scene)),
        lambda: fit(search, scene, knobs(scene)),
        lambda: search.try_all(listed_apart(scene)),
        lambda: fit(search, scene, knobs_apart(scene)),
    ):
        stage()
        if search.best <= LEFT and search.best * CLEAR <= search.model:
            break
    trials = _confirmed(replay, search, line, judged)
    ask = None if trials else step_to_dump(scene, search)
    return Found(tuple(trials), ask)


def _confirmed(replay: Replay, search: Search, line: Line, judged: Judged) -> list[Trial]:
    """The nearest candidates that are causes, worked out in ranges."""
    trials = []
    for candidate in search.nearest(MOST_CONFIRMED):
        if candidate.distance * NEARER > search.model or candidate.distance > SCREENED:
            break
        try:
            now = replay.judged(replay.try_edit(candidate.edit.plan, line.claim.address), line)
        except ByhandError:
            continue
        if isinstance(now, Missing):
            continue
        trial = Trial.of(candidate.edit, now, judged, line)
        if _explains(trial):
            trials.append(trial)
    return trials


def _explains(trial: Trial) -> bool:
    """Whether an edit leaves no more than rounding usually does."""
    if trial.left is None or trial.judged.times is None or trial.judged.follows is False:
        return False
    return trial.left <= LEFT and trial.judged.times <= IN_A_ROW

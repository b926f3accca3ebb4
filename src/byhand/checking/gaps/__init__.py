"""Gaps: what may have gone wrong in the unclaimed steps before a line.

    line → candidates (the catalogue, in all blocks and in each; numbers fitted through the gap)
         → plain float64 → the nearest in ranges → trials, for `evidence`
         → the unclaimed step that would tell most

A line after a gap has wide bounds, often too wide to judge it.  So explanations are compared by
what rounding usually does: a cause leaves no more than that, over the whole line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from byhand.checking.differences import Description
from byhand.checking.evidence import Trial, best_of
from byhand.checking.gaps.asking import step_to_dump
from byhand.checking.gaps.candidates import first_row, listed, listed_apart
from byhand.checking.gaps.fits import fit
from byhand.checking.gaps.guesses import guesses, guesses_apart
from byhand.checking.gaps.inferred import inferred
from byhand.checking.gaps.knobs import knobs, knobs_apart
from byhand.checking.gaps.readers import seen_in
from byhand.checking.gaps.search import Candidate, Search
from byhand.checking.gaps.two import pairs
from byhand.checking.gaps.values import STUMBLES, Values
from byhand.checking.replay import Line, Replay
from byhand.checking.suspects import Edit, Scene
from byhand.errors import ByhandError
from byhand.numbers.allowed import Judged
from byhand.worked import Missing

MOST_WORK = 10_000_000_000  # about how many nanoseconds the search of one gap takes at most
MOST_CONFIRMED = 4  # candidates that are worked out again in ranges
LEFT = 1.5  # × the usual rounding error: what a cause leaves at most, all over
IN_A_ROW = 2.5  # the same for the worst row
NEARER = 4.0  # factor by which a cause is nearer to the claim than the model
BORNE_OUT = 6  # wrong entries for each number that was read off the claim
MOSTLY = 0.6  # share of what is left that one stage of the search may spend
CLEAR = 20.0  # the same where rivals need not be looked for any further
KNOWN = 0.9  # share of the entries whose usual rounding error must be known with an edit
RANGES = 4  # what a pass in ranges costs, in plain passes
SCREENED = 20.0  # × the model's usual rounding error: what an edit may leave before it is confirmed


@dataclass(frozen=True)
class Found:
    """What a search found: explanations that leave the usual, and the step to dump next."""

    trials: tuple[Trial, ...] = ()
    described: tuple[Description, ...] = ()
    ask: str | None = None
    work: float = 0.0  # what was spent


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
    favourites: Sequence[str] = (),
    work: float = MOST_WORK,
) -> Found:
    """The edits that explain a line after a gap.

    Those of `first`, and then those of the `favourites` kinds, are tried before all others.
    """
    affordable = min(work, MOST_WORK)
    search = Search(Values(replay, line), judged, affordable)
    everywhere = sorted(listed(scene), key=lambda edit: edit.unlikely)
    described: list[Description] = []
    whole = not line.claim.index
    start = first_row(search.off(search.expected), scene.target.position_axis) if whole else None
    liked = [edit for edit in everywhere if edit.kind in favourites]
    stages: tuple[tuple[float, Callable[[], None]], ...] = (
        (NEARER, lambda: search.try_all((*first, *liked))),
        (CLEAR, lambda: search.try_all(everywhere, MOSTLY)),
        (CLEAR, lambda: fit(search, scene, knobs(scene), MOSTLY)),
        (CLEAR, lambda: described.extend(_read_inside(search, scene))),
        (CLEAR, lambda: search.try_all(guesses(scene, start))),
        (CLEAR, lambda: search.try_all(listed_apart(scene), MOSTLY)),
        (CLEAR, lambda: fit(search, scene, knobs_apart(scene), MOSTLY)),
        (CLEAR, lambda: search.try_all(guesses_apart(scene, start), MOSTLY)),
        (CLEAR, lambda: pairs(search, scene)),
    )
    for clear, stage in stages:
        with np.errstate(all="ignore"), suppress(*STUMBLES):
            stage()
        if search.best <= LEFT and search.best * clear <= search.model:
            break
    with np.errstate(all="ignore"):
        best = best_of(list(_confirmed(search)), line)
    ask = None
    if len(best) != 1:
        alike = {id(trial.edit) for trial in best}
        left = [each for each in search.found if id(each.edit) in alike]
        ask = step_to_dump(scene, search, left, start)
    return Found(tuple(best), tuple(described), ask, affordable - search.work)


def _read_inside(search: Search, scene: Scene) -> Iterator[Description]:
    """Tries what readers see in the lines that the claim tells through the gap."""
    for line in inferred(search, scene):
        for seen in seen_in(search, scene, line):
            if isinstance(seen, Description):
                yield seen
            else:
                search.try_all((seen,))


def _confirmed(search: Search) -> Iterator[Trial]:
    """The nearest candidates that leave no more than rounding usually does."""
    for place, candidate in enumerate(search.found):
        near = candidate.distance <= LEFT
        if candidate.distance * NEARER > search.model or not (near or place < MOST_CONFIRMED):
            return
        line, before = search.values.line, search.judged
        judged = None
        if candidate.distance <= SCREENED:
            judged = in_ranges(search, candidate, always=not place)
        if judged is None and near:
            judged = search.as_judged(candidate)
        if judged is None:
            continue
        trial = Trial.of(candidate.edit, judged, before, line)
        if _explains(trial) and search.wrong >= BORNE_OUT * candidate.edit.fitted:
            yield trial


def in_ranges(search: Search, candidate: Candidate, *, always: bool) -> Judged | None:
    """The candidate worked out in ranges; None where they know no usual rounding error.

    Unless `always`, it must be affordable.
    """
    values = search.values
    price = values.price(candidate.edit.plan) * RANGES
    if price > search.work and not always:
        return None
    search.work -= price
    try:
        worked = values.replay.try_edit(candidate.edit.plan, values.target)
    except ByhandError:
        return None
    judged = values.replay.judged(worked, values.line)
    if isinstance(judged, Missing) or judged.usual is None:
        return None
    with np.errstate(all="ignore"):
        known = np.isfinite(np.broadcast_to(judged.usual, search.known.shape))
    return judged if known[search.known].mean() > KNOWN else None


def _explains(trial: Trial) -> bool:
    """Whether an edit leaves no more than rounding usually does."""
    if trial.left is None or trial.judged.times is None or trial.judged.follows is False:
        return False
    return trial.left <= LEFT and trial.judged.times <= IN_A_ROW

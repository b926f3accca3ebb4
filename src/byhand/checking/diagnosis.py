"""Diagnosis of one line: the structure of its difference, edits that may explain it, the evidence.

line → `differences` (what differs, and how) → edits ← `suspects` (mistakes that people make)
     → each worked out from the lines above → `evidence` → causes and descriptions
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from byhand.checking.differences import Description, Difference, Reading, readings
from byhand.checking.evidence import Trial, best_of, explains
from byhand.checking.gaps import is_gap, searched
from byhand.checking.pairs import explains_a_part, pairs
from byhand.checking.regions import Region
from byhand.checking.replay import Line, Replay
from byhand.checking.surroundings import Surroundings
from byhand.checking.suspects import Context, Edit, Scene, edits
from byhand.checking.verdicts import Suspect
from byhand.errors import ByhandError
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.allowed import Judged
from byhand.optimizer import BEFORE
from byhand.plan import WEIGHT, Step
from byhand.worked import Missing

MOST_WORK = 10_000_000_000  # multiplications for all edits of one line
MOST_SHOWN = 3
SMALL_GAP = 8  # steps, such as those of a norm: each mistake of the list is tried in each
MOST_PARTLY = 4  # edits kept that explain a part of a line


@dataclass(frozen=True)
class Diagnosis:
    """What is known about a line that does not follow."""

    causes: tuple[Suspect, ...] = ()
    described: tuple[str, ...] = ()
    ask: str | None = None  # the unclaimed step whose values would tell most
    work: float = 0.0  # multiplications that the edits cost


def diagnosed(
    replay: Replay,
    around: Surroundings,
    line: Line,
    judged: Judged,
    *,
    unusual: bool,
    favourites: Sequence[str] = (),
    work: float = MOST_WORK,
) -> Diagnosis:
    """The causes that make the claim follow, the simplest first, and how it differs.

    Edits of the `favourites` kinds are tried first; if they explain the line, no others are tried.
    The others cost at most `work`.  `unusual` marks a line that the model itself explains, but
    hardly.
    """
    region, target = replay.region(line.claim), replay.plan[line.claim.address]
    if target.op == "given":  # no step of the plan leads to it
        return Diagnosis()
    context = _context(replay, around, region, line, judged)
    scene = Scene(replay.plan, tuple(region.steps), target, replay.model, context)
    numbers = target.op == "argmax" or not line.claim.by_hand  # ids are written alike by all
    difference = Difference.of(scene, judged.claimed) if numbers else None
    seen = list(readings(difference)) if difference is not None else []
    tried = [each for each in seen if isinstance(each, Edit)]
    through_gap = is_gap(replay, scene, line, judged)
    if through_gap and len(region.steps) > SMALL_GAP:
        return _through_gap(replay, scene, line, judged, seen, favourites, work)
    tried += edits(replay.plan, region.steps, target, replay.model, context=context)
    price = max(1.0, _work(replay, region.steps))
    first = [edit for edit in tried if edit.kind in favourites][: int(MOST_WORK / price) + 1]
    affordable = int(min(MOST_WORK, work) / price) + 1 if work > 0 else 0
    rest = [edit for edit in tried if edit.kind not in favourites][:affordable]
    found: list[Trial] = []
    partly: list[Trial] = []
    spent = 0
    for some in (first, rest):
        for trial in _trials(replay, some, line, judged):
            if explains(trial, judged, line, unusual=unusual):
                found.append(trial)
            elif len(partly) < MOST_PARTLY and explains_a_part(trial, judged):
                partly.append(trial)
        spent += len(some)
        if found:
            break
    if not found and through_gap:
        return _through_gap(replay, scene, line, judged, seen, favourites, work - spent * price)
    if not found and difference is not None and not unusual and affordable:
        two = pairs(difference, line, judged, partly, partial(_worked, replay, line))
        found, spent = [*two.causes], spent + two.tried
        seen += two.described
    return Diagnosis(
        tuple(trial.suspect() for trial in best_of(found, line)[:MOST_SHOWN]),
        _sentences(seen),
        work=spent * price,
    )


def _through_gap(
    replay: Replay,
    scene: Scene,
    line: Line,
    judged: Judged,
    seen: Sequence[Reading],
    favourites: Sequence[str],
    work: float,
) -> Diagnosis:
    """The diagnosis of a line after unclaimed steps, any of which may be wrong."""
    first = [each for each in seen if isinstance(each, Edit)]
    gap = searched(replay, scene, line, judged, first=first, favourites=favourites, work=work)
    best = tuple(trial.suspect() for trial in gap.trials[:MOST_SHOWN])
    return Diagnosis(best, _sentences((*seen, *gap.described)), gap.ask, gap.work)


def _sentences(seen: Iterable[Reading]) -> tuple[str, ...]:
    """The descriptions, those that say most first."""
    said = sorted((told for told in seen if isinstance(told, Description)), key=_telling)
    return tuple(told.sentence for told in said[:MOST_SHOWN])


def _telling(description: Description) -> int:
    return -description.telling


def _trials(replay: Replay, tried: Iterable[Edit], line: Line, before: Judged) -> Iterator[Trial]:
    """The edits that can be worked out, each compared with the claim."""
    for edit in tried:
        judged = _worked(replay, line, edit)
        if judged is not None:
            yield Trial.of(edit, judged, before, line)


def _worked(replay: Replay, line: Line, edit: Edit) -> Judged | None:
    """The judgement of a line by an edited plan; None where it cannot be worked out."""
    try:
        judged = replay.judged(replay.try_edit(edit.plan, line.claim.address), line)
    except ByhandError:
        return None
    return None if isinstance(judged, Missing) else judged


def _context(
    replay: Replay, around: Surroundings, region: Region, line: Line, judged: Judged
) -> Context:
    return Context(
        claimed=replay.complete | region.edge,
        tokens=replay.text.tokens,
        positions=replay.text.positions,
        padding=replay.text.padding,
        precision=replay.rounding.name,
        by_hand=line.claim.by_hand,
        index=line.claim.index,
        values=line.values,
        expected=judged.expected,
        allowed=judged.allowed,
        slack=line.slack,
        targets=_targets(replay),
        rule=replay.text.rule,
        moments={
            address: np.asarray(lines[0].values)
            for address, lines in replay.lines.items()
            if address.startswith(BEFORE) and address in replay.complete
        },
        usual=judged.usual,
        around=around,
    )


def _targets(replay: Replay) -> tuple[int, ...] | None:
    """The token that should come at each position; one target is the last position's."""
    text = replay.text
    if text.targets is None and text.target is not None:
        return (*[UNCOUNTED] * (len(text.tokens) - 1), text.target)
    return text.targets


def _work(replay: Replay, region: Sequence[Step]) -> float:
    """About how many multiplications one replay of the region costs."""
    total = 0.0
    for step in region:
        size = 1.0
        for side in step.shape:
            size *= side
        total += size
        for read in step.reads:
            if read.startswith(WEIGHT) and step.op in ("linear", "head_outputs"):
                weight = replay.model.weights[read.removeprefix(WEIGHT)]
                total += 3.0 * weight.size * len(replay.text.tokens)
    return total

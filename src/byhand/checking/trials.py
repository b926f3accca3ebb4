"""Trials of suspects: which edited plans make a claim follow that does not.

`suspects` holds common mistakes as edits of the plan.  Here each edit is worked out from the lines
above the claim, and those that explain it are ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from byhand.checking.openness import almost_anything
from byhand.checking.regions import Region
from byhand.checking.replay import Line, Replay
from byhand.checking.suspects import Context, Edit, edits
from byhand.checking.verdicts import Marked, Suspect
from byhand.errors import ByhandError
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.allowed import Judged
from byhand.optimizer import BEFORE
from byhand.plan import WEIGHT, Step
from byhand.worked import Missing

MOST_WORK = 10_000_000_000  # multiplications for all suspects of one line
MOST_SHOWN = 3
EXPLAINED = 32.0  # × the usual rounding error: a suspect that leaves more explains nothing
CLEARLY_BETTER = 4.0  # factor by which a suspect must explain an unusual line better than the model


def suspects_of(
    replay: Replay,
    line: Line,
    judged: Judged,
    marked: Marked,
    favourites: Sequence[str],
    *,
    others: bool = True,
) -> tuple[Suspect, ...]:
    """The mistakes that make the claim follow, the likeliest first.

    Mistakes of the `favourites` kinds are tried first, then, with `others`, the rest in the
    catalogue's order, up to MOST_WORK.
    """
    address = line.claim.address
    region = replay.region(line.claim)
    target = replay.plan[address]
    if target.op == "given":  # no step of the plan leads to it
        return ()
    context = _context(replay, region, line, judged)
    work = _work(replay, region.steps)
    left = float(MOST_WORK)
    found: list[tuple[tuple[float, int, int], Suspect]] = []
    tried = list(edits(replay.plan, region.steps, target, replay.model, context=context))
    tried.sort(key=lambda edit: edit.kind not in favourites)  # stable: keeps their order
    if not others:
        tried = [edit for edit in tried if edit.kind in favourites]
    for place, edit in enumerate(tried):
        if left < 0:
            break
        left -= work
        suspect = _tried(replay, edit, line, judged, marked)
        if suspect is not None:
            order = (_rank(suspect), edit.unlikely, place)
            found.append((order, suspect))
    found.sort(key=lambda each: each[0])
    return tuple(suspect for _order, suspect in found[:MOST_SHOWN])


def _context(replay: Replay, region: Region, line: Line, judged: Judged) -> Context:
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
    )


def _targets(replay: Replay) -> tuple[int, ...] | None:
    """The token that should come at each position; one target is the last position's."""
    text = replay.text
    if text.targets is None and text.target is not None:
        return (*[UNCOUNTED] * (len(text.tokens) - 1), text.target)
    return text.targets


def _tried(
    replay: Replay, edit: Edit, line: Line, before: Judged, marked: Marked
) -> Suspect | None:
    """The edit as a suspect, if it explains everything that was wrong `before`; else None."""
    try:
        judged = replay.judged(replay.try_edit(edit.plan, line.claim.address), line)
    except ByhandError:
        return None  # an edit that cannot be worked out
    if isinstance(judged, Missing) or _hides(judged, before, line):
        return None
    if not judged.follows or almost_anything(judged, line.slack) is not None:
        return None
    if judged.times is not None and judged.times > EXPLAINED:
        return None
    if marked.unusual and not _better(judged.times, marked.times):
        return None
    return Suspect(edit.kind, edit.sentence, edit.change, judged.share, judged.times)


def _hides(judged: Judged, before: Judged, line: Line) -> bool:
    """Whether a wrong number is only masked now, unless the claim says that it is masked."""
    if judged.claimed is None:
        return False
    wrong = (before.shares > 1) & np.isfinite(line.values)
    return bool((wrong & ~judged.claimed).any())


def _better(times: float | None, than: float | None) -> bool:
    return times is not None and than is not None and times * CLEARLY_BETTER < than


def _rank(suspect: Suspect) -> float:
    """How badly the suspect fits: 0 for all within the usual rounding error."""
    times = inf if suspect.times is None else suspect.times
    return 0.0 if times <= 3 else times


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

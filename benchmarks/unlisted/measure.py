"""Every change in every mode and format: what is said of it, and whether that is true.

The line of a mistake is its first wrong step, or in a sparse dump the first line after it.  From an
effect of twice the bound on, it must be the first error (of two mistakes: each must be an error at
its line), and what is said of it must be true.

    cause       a cause is named, and it is true
    described   a sentence tells truly how the line differs
    placed      a sentence tells truly where, and nothing more
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from benchmarks.planted import models
from benchmarks.unlisted.changes import CHANGES, Change, Part
from benchmarks.unlisted.dumps import (
    MODES,
    checked,
    claimed_after,
    dump,
    keeping,
    text_ids,
    thinned,
)
from benchmarks.unlisted.truth import all_true, places, predicts, tells
from byhand import forward
from byhand.checking.replay import Replay
from byhand.checking.verdicts import Marked, MarkedText, Verdict
from byhand.plan import Plan

RECORD = Path(__file__).parents[2] / "docs" / "check-unlisted.json"
CLEAR = 2.0  # an effect of so many times the bound must be found
FAR = 32.0  # one of so many times the usual rounding error can be seen, if not proven
AFTER_LOGITS = ("probs", "next")  # steps that a sparse dump does not have
SHORT = 160  # characters of a sentence in the record
LARGEST = 1e300  # stands for infinity, which JSON does not know
BLOCK = re.compile(r"^block\.\d+\.")
CAUSE, DESCRIBED, PLACED, NOTHING = "cause", "described", "placed", "nothing"
TRUE = (CAUSE, DESCRIBED, PLACED)


@dataclass(frozen=True)
class Found:
    """What is found of one change in one port."""

    change: str
    family: str
    format: str
    mode: str
    lines: tuple[str, ...]  # by mistake: the line where it has to show
    shares: tuple[float, ...]  # of the bound, at these lines
    times: tuple[float, ...]  # the same in units of what rounding usually does
    first: str | None  # the first error that is named
    wrong: tuple[bool, ...]  # whether these lines are called errors
    told: tuple[str, ...]  # cause, described, placed or nothing
    said: tuple[str, ...]  # the sentence that counts, or else the first one
    offered: int  # causes that are named, the same in later blocks once
    false: tuple[str, ...]  # of those the false ones, with their lines
    words_alone: tuple[str, ...]  # those that are true by their words, and predict no other text
    ask: str | None  # the step that it asks for

    @property
    def paired(self) -> bool:
        return len(self.lines) > 1

    @property
    def clear(self) -> bool:
        """Whether all its effects are large enough that they must be found."""
        return min(self.shares) >= CLEAR

    @property
    def visible(self) -> bool:
        """Whether its effects are clear, or far more than rounding usually does."""
        return self.clear or min(self.times) >= FAR

    @property
    def step_named(self) -> bool:
        """Whether the first error is where it should be, and every mistake's line is an error."""
        return self.first == self.lines[0] and all(self.wrong)

    @property
    def explained(self) -> bool:
        """Whether every mistake is named or described, and truly."""
        where = self.step_named or not self.clear
        return where and all(each in TRUE for each in self.told)

    @property
    def half(self) -> bool:
        """Whether one of two mistakes is explained, and the other one is not."""
        return not self.explained and any(each in TRUE for each in self.told)


@cache
def _order(family: str) -> dict[str, int]:
    plan = forward.plan(models.SPECS[family](), models.LENGTH)
    return {name: place for place, step in enumerate(plan) for name in _names(plan, step.address)}


def _names(plan: Plan, address: str) -> list[str]:
    return [name for name, own in plan.known.items() if own == address]


def found(name: str, family: str, format: str, mode: str = "full", seed: int = 0) -> Found:
    """The result for one change, planted in one port."""
    change, order = CHANGES[name], _order(family)
    values = thinned(dump(change, family, format, seed=seed), mode)
    with keeping() as kept:
        marking, _replay = checked(values, family, format, seed=seed)
    judge = _Truth(change, family, format, mode, seed, kept)
    shows = sorted((part.shows[family] for part in change.parts), key=order.__getitem__)
    parts = sorted(change.parts, key=lambda part: order[part.shows[family]])
    lines = [claimed_after(step, list(values), order) for step in shows]
    at = {line.claim.name: line for line in marking.lines}
    told = [_told(part, at[line], judge) for part, line in zip(parts, lines, strict=True)]
    offered, false, words_alone = _causes(marking, judge)
    error = marking.first_error
    return Found(
        name, family, format, mode,
        lines=tuple(lines),
        shares=tuple(_number(at[line].share) for line in lines),
        times=tuple(_number(at[line].times or 0.0) for line in lines),
        first=error.claim.name if error else None,
        wrong=tuple(at[line].verdict is Verdict.ERROR for line in lines),
        told=tuple(how for how, _said in told),
        said=tuple(said for _how, said in told),
        offered=offered,
        false=false,
        words_alone=words_alone,
        ask=error.ask if error else None,
    )  # fmt: skip


def _number(share: float) -> float:
    return float(f"{share:.3g}") if isfinite(share) else LARGEST


class _Truth:
    """Whether a named cause is true: by its words, or by what it predicts of another text."""

    def __init__(
        self,
        change: Change,
        family: str,
        format: str,
        mode: str,
        seed: int,
        plans: Mapping[str, Sequence[Plan]],
    ) -> None:
        self.change, self.plans = change, plans
        self.ids = text_ids(family, seed)
        self._made = (change, family, format, mode, seed)
        self._other: Replay | None = None

    @property
    def other(self) -> Replay:
        """The same port's dump for another text."""
        if self._other is None:
            change, family, format, mode, seed = self._made
            values = thinned(dump(change, family, format, seed=seed, text=1), mode)
            self._other = checked(values, family, format, seed=seed, text=1, suspects=False)[1]
        return self._other

    def told(self, sentence: str) -> bool:
        return all_true(sentence, self.change.parts, self.ids)

    def predicted(self, address: str, sentence: str) -> bool:
        """Whether the edited plan gives what the port gives for the other text."""
        plans = self.plans.get(sentence, ())
        return any(predicts(plan, self.other, address) for plan in plans)


def _told(part: Part, line: Marked, judge: _Truth) -> tuple[str, str]:
    """How much is said about a mistake at its line, and the sentence."""
    causes = [each.sentence for each in line.suspects]
    for sentence in causes:
        true = judge.told(sentence) and tells(sentence, part, judge.ids)
        if true or judge.predicted(line.claim.address, sentence):
            return CAUSE, sentence  # what predicts a new text has both mistakes of a pair
    honest = (*line.described, *filter(judge.told, causes))
    for how, tell in ((DESCRIBED, tells), (PLACED, places)):
        for sentence in honest:
            if tell(sentence, part, judge.ids):
                return how, sentence
    return NOTHING, next(iter((*causes, *line.described)), "")


def _causes(marking: MarkedText, judge: _Truth) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """How many causes are named, the false ones, and those that only their words make true.

    A repetition in a later block counts only if it is false.
    """
    offered, false, words_alone = 0, [], []
    for line in marking.lines:
        for each in line.suspects:
            offered += line.like is None
            if judge.predicted(line.claim.address, each.sentence):
                continue
            said = f"{line.address}: {each.sentence}"
            if judge.told(each.sentence):
                words_alone.append(said)
            else:
                offered += line.like is not None
                false.append(said)
    return offered, tuple(false), tuple(words_alone)


def jobs(
    names: Sequence[str] = (),
    modes: Sequence[str] = MODES,
    formats: Sequence[str] = ("float32", "bfloat16"),
    seed: int = 0,
    *,
    brief: bool = False,
) -> list[tuple[str, str, str, str, int]]:
    """The ports to check: every change in its families, or with `brief` in the first of them."""
    return [
        (name, family, format, mode, seed)
        for mode in modes
        for format in formats
        for name in (names or CHANGES)
        if format in CHANGES[name].formats and (mode == "full" or _in_logits(CHANGES[name]))
        for family in CHANGES[name].families[: 1 if brief else None]
    ]


def _in_logits(change: Change) -> bool:
    steps = (step for part in change.parts for step in part.shows.values())
    return not any(step in AFTER_LOGITS for step in steps)


def everything(wanted: Sequence[tuple[str, str, str, str, int]], processes: int) -> Iterator[Found]:
    """The results, in the order of the jobs."""
    if processes == 1:
        yield from (_one(job) for job in wanted)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(_one, wanted, chunksize=4)


def _one(job: tuple[str, str, str, str, int]) -> Found:
    import torch

    torch.set_num_threads(1)
    try:
        return found(*job)
    except Exception as error:  # a check that breaks off has found nothing, and must not do so
        return _broken(job, f"broke off: {type(error).__name__}: {error}")


def _broken(job: tuple[str, str, str, str, int], why: str) -> Found:
    name, family, format, mode, _seed = job
    lines = tuple(part.shows[family] for part in CHANGES[name].parts)
    number = len(lines)
    return Found(
        name, family, format, mode, lines, (LARGEST,) * number, (LARGEST,) * number, None,
        (False,) * number, (NOTHING,) * number, (why,) * number, 0, (), (), None,
    )  # fmt: skip


def record(results: Iterable[Found], seed: int) -> None:
    """Writes the file for the tables of docs/: a row for each result, its sentences cut short."""
    columns = [each.name for each in fields(Found)]
    short = (replace(each, said=tuple(said[:SHORT] for said in each.said)) for each in results)
    rows = (json.dumps(list(asdict(each).values()), ensure_ascii=False) for each in short)
    head = json.dumps({"seed": seed, "columns": columns})
    RECORD.write_text(f'{head[:-1]}, "rows": [\n' + ",\n".join(rows) + "\n]}\n", "utf-8")


def recorded() -> tuple[int, list[Found]]:
    """The seed and the results in the file."""
    data = json.loads(RECORD.read_text("utf-8"))
    rows = (dict(zip(data["columns"], row, strict=True)) for row in data["rows"])
    return data["seed"], [from_row(row) for row in rows]


def from_row(row: Mapping[str, Any]) -> Found:
    """A result from its fields, as JSON has them."""
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return Found(**{**row, **lists})

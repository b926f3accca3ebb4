"""The search for a proof: regions are decided, cut or enumerated until none is left.

A unit of work is some regions of one goal (`cases`).  Its result is lines of the journal, so that
units can be worked out in any process, in any order, and again.  The property is proven where every
region is decided, refuted by one text that a trace of its own confirms, and open else, with what is
left.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byhand.language import _
from byhand.model import Model
from byhand.proving.claims import Same
from byhand.proving.outcome import OPEN, PROVEN, REFUTED, Counterexample, Outcome
from byhand.proving.properties import Property, read_property
from byhand.proving.search.cases import Casework
from byhand.proving.search.journal import Journal, identity
from byhand.proving.search.judging import judge
from byhand.proving.search.questions import ANY, Leads
from byhand.proving.search.units import Part, Report, Unit
from byhand.workers import Workers

FIRST, LATER = 0.5, 4.0  # seconds of a unit at the start, when work has to be shared out, and then
TOGETHER = 256  # regions of a unit


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a search has come."""

    done: float  # the share of the domain that is decided, from 0 to 1
    cases: int  # regions that are decided
    left: int  # regions that are not, as far as they are known
    passes: int
    seconds: float

    @property
    def remaining(self) -> float | None:
        """An estimate of the seconds that are left; None where nothing is decided yet."""
        return None if self.done <= 0 else self.seconds * (1 - self.done) / self.done


Watch = Callable[[Standing], None]


def prove(
    property: Property,
    *,
    jobs: int = 1,
    seconds: float | None = None,
    resume: str | Path | None = None,
    progress: Watch | None = None,
    cluster: str | None = None,
) -> Outcome:
    """The proof of a property, a counterexample, or what is left open after so many seconds.

    `resume` is a journal: it is written as the search goes on, and one that is there is taken up.
    Ctrl-C ends the search as the time limit does.
    """
    journal = Journal(property, resume)
    try:
        return Search(property, journal, seconds, progress).run(jobs, cluster)
    finally:
        journal.close()


class Search:
    """One search: what is left to do, and what was found."""

    def __init__(
        self,
        property: Property,
        journal: Journal,
        seconds: float | None = None,
        progress: Watch | None = None,
    ) -> None:
        self.property, self.journal, self.progress = property, journal, progress
        self.began = time.monotonic()
        self.until = None if seconds is None else self.began + seconds
        self.key = identity(property)
        self.shipped: tuple[Mapping[str, Any], Model | None] = property.source, property.own
        self.left: deque[tuple[int, Part]] = deque()
        self.passes, self.cases, self.done = 0, 0, 0.0
        self.counterexample: Counterexample | None = None
        self.why = ""
        self.same: int | None = None

    def run(self, jobs: int = 1, cluster: str | None = None) -> Outcome:
        """The search, with so many processes."""
        self._take_up()
        if any(isinstance(goal.claim, Same) for goal in self.property.goals):
            self.same = self._first_prediction()
        with Workers(jobs, cluster) as workers:
            if jobs == 1 and cluster is None:  # this process works: nothing has to be sent
                _at_work.clear()
                _at_work[self.key] = Casework(self.property)
                self.shipped = {}, None
            try:
                self._share_out(workers, FIRST if workers.count > 1 else LATER)
                for report in workers.results():
                    self._hear(report)
                    if self._ended():
                        break
                    self._share_out(workers, LATER)
            except KeyboardInterrupt:
                self.why = _("interrupted")
            self._collect(workers)
        return self._outcome()

    def _take_up(self) -> None:
        """What the journal leaves to do, and what it has decided."""
        wholes = [goal.shape.whole for goal in self.property.goals]
        boxes = [0 if whole is None else whole.box for whole in wholes]
        for goal, box in enumerate(boxes):
            share = box / max(1, sum(boxes))
            left = list(self.journal.left(goal, share))
            self.left.extend((goal, part) for part in left)
            self.done += share - sum(weight for _path, _allowed, weight in left)
            self.cases += sum("by" in line for line in self.journal.lines[goal].values())

    def _first_prediction(self) -> int | None:
        """The prediction after the first text, which all others are compared with."""
        for goal in self.property.goals:
            whole = goal.shape.whole
            assigned = None if whole is None else next(whole.assignments(), None)
            if whole is not None and assigned is not None:
                found = judge(self.property.model, whole.text(assigned), Leads(ANY)).found
                if found is None:
                    self.why = _("the prediction after the first text is undecided")
                    self.left.clear()
                return found
        return None

    # ------------------------------------------------------------------- units

    def _share_out(self, workers: Workers, seconds: float) -> None:
        """Hands in units, until every worker has one and another waits."""
        if self.until is not None:
            seconds = max(0.01, min(seconds, self.until - time.monotonic()))
        while self.left and workers.pending <= workers.count:
            share = max(1, min(TOGETHER, len(self.left) // (2 * workers.count)))
            goal = self.left[0][0]
            parts: list[Part] = []
            while self.left and self.left[0][0] == goal and len(parts) < share:
                parts.append(self.left.popleft()[1])
            unit = Unit(goal, tuple(parts), seconds, self.same)
            workers.submit(work, self.key, *self.shipped, unit)

    def _hear(self, report: Report) -> None:
        """Takes a report over: what is decided into the journal, what is left into the queue."""
        self.journal.add(report.lines)
        self.left.extend((report.goal, part) for part in report.left)
        self.passes += report.passes
        self.cases += sum(line.get("by") in ("letters", "each") for line in report.lines)
        self.done += report.done
        self.counterexample = self.counterexample or report.counterexample
        if report.interrupted:
            self.why = _("interrupted")
        if self.progress:
            told = Standing(
                min(1.0, self.done),
                self.cases,
                len(self.left),
                self.passes,
                time.monotonic() - self.began,
            )
            self.progress(told)

    def _ended(self) -> bool:
        if self.until is not None and time.monotonic() >= self.until and not self.why:
            self.why = _("out of time")
        return bool(self.why or self.counterexample)

    def _collect(self, workers: Workers) -> None:
        """After an early end: what the workers are about to hand in is kept as well."""
        if self.counterexample is None and self.why and workers.count > 1:
            for report in workers.results():
                self._hear(report)

    def _outcome(self) -> Outcome:
        trees = tuple(self.journal.tree(goal) for goal in range(len(self.property.goals)))
        found = Outcome(
            self.property,
            OPEN,
            trees,
            time.monotonic() - self.began,
            self.passes,
            self.counterexample,
            self.why,
        )
        if self.counterexample is not None:
            return replace(found, answer=REFUTED, why="")
        if not found.open:
            return replace(found, answer=PROVEN, why="")
        return found if self.why else replace(found, why=_("some texts cannot be decided"))


# ----------------------------------------------------------------------- in a worker

_at_work: dict[str, Casework] = {}


def work(key: str, source: Mapping[str, Any], own: Model | None, unit: Unit) -> Report:
    """A unit, worked out in this process; what the units of a property share is kept.

    Functions cannot be sent to other processes: the property is read again from its source.
    """
    if key not in _at_work:
        _at_work.clear()
        _at_work[key] = Casework(read_property(source, own))
    return _at_work[key].work(unit)

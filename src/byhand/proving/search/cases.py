"""Casework: some regions of one goal are decided by letters, enumerated, or cut.

A region whose texts are few beside the cost of a pass with letters is enumerated; how often letters
decide regions of a size is counted on the way.  Every region that stays undecided also proposes the
text that is most likely to fail, so that counterexamples are found early.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from byhand.proving.claims import Unmoved
from byhand.proving.domain import Region
from byhand.proving.outcome import Counterexample
from byhand.proving.properties import Property
from byhand.proving.reading.wholes import Varies
from byhand.proving.search.cutting import Cut, Undecided, halves, where_it_varies
from byhand.proving.search.enumeration import Told
from byhand.proving.search.extremes import extreme
from byhand.proving.search.journal import rounded_down
from byhand.proving.search.judging import Judgement, judge
from byhand.proving.search.passing import Models, Passing
from byhand.proving.search.questions import Leads, Question, about_region, about_text
from byhand.proving.search.region_forms import NoText
from byhand.proving.search.region_passes import Findings, Holdings
from byhand.proving.search.text_tables import Texts, joined, sampled, texts_of
from byhand.proving.search.units import Node, Report, Unit

FEWEST = 64  # assignments that are always enumerated
MOST = 1 << 15  # assignments that are enumerated at once
SEEN = 1 << 12  # assignments after which it counts how many letters have decided
TRIED = 8  # regions after which it counts how many of them Arb has decided
FEW = 4  # texts that are judged at once, without a pass in Arb for all of them
ENTRIES = 1 << 20  # numbers in the embeddings of one pass
SAMPLED = 256  # texts of a goal that are looked at first
PROPOSED = 8  # undecided regions of a pass that propose a text


Asked = tuple[Node, Question, Holdings]  # a region that is to be decided by letters


class Casework:
    """The work on the regions of one property; what they share is made once."""

    def __init__(self, property: Property) -> None:
        self.property = property
        self.models = Models(property)
        self._goals: dict[tuple[int, int | None], GoalWork] = {}

    def work(self, unit: Unit) -> Report:
        """A unit, worked on for as long as it says, and its report."""
        key = unit.goal, unit.same
        if key not in self._goals:
            self._goals[key] = GoalWork(self.models, *key)
        return self._goals[key].work(unit)


class GoalWork:
    """The work on one goal."""

    def __init__(self, models: Models, number: int, same: int | None) -> None:
        self.models, self.number, self.same = models, number, same
        self.property = models.property
        goal = self.property.goals[number]
        self.shape, self.claim = goal.shape, goal.claim
        self.answers = self.property.model.spec.answers
        self.fast = Passing(models, goal, precise=False)
        self._retried, self._settled = 0, 0  # regions tried in Arb, and decided there
        self._judged: dict[tuple[tuple[int, ...], Question], Judgement] = {}
        self._size = 0  # entries of the embeddings of one region, as seen last
        self._report = Report(number)

    @cached_property
    def precise(self) -> Passing:
        """The passes in Arb, for what rounding leaves open."""
        goal = self.property.goals[self.number]
        return Passing(self.models, goal, precise=True)

    # ------------------------------------------------------------------- a unit

    def work(self, unit: Unit) -> Report:
        """The regions of a unit, for as long as it says."""
        report = self._report = Report(self.number)
        try:
            self._work(unit)
        except KeyboardInterrupt:
            report.interrupted = True
        return report

    def _work(self, unit: Unit) -> None:
        report, until = self._report, time.monotonic() + unit.seconds
        todo: list[Node] = []
        for path, allowed, share in reversed(unit.parts):
            todo.append((path, Region(self.shape, allowed), share))
            if not path and not self._enumerable(todo[-1][1]):
                self._propose(sampled(todo[-1][1], SAMPLED))
        few: list[Node] = []
        while (todo or few) and report.counterexample is None:
            if time.monotonic() > until and report.lines:
                break
            batch: list[Asked] = []
            count = sum(region.box for _path, region, _share in few)
            while todo and len(batch) < self._together and count < MOST:
                if time.monotonic() > until and (batch or report.lines):
                    break
                node = todo.pop()
                if self._enumerable(node[1]):
                    few.append(node)
                    count += node[1].box
                else:
                    self._look_at(node, batch, todo)
            if batch:
                self._by_letters(batch, todo)
            if few and (not todo or count >= MOST):
                self._each(few, todo)
                few = []
        report.left = [(path, region.allowed, share) for path, region, share in (*todo, *few)]

    def _look_at(self, node: Node, batch: list[Asked], todo: list[Node]) -> None:
        """Adds a region to those of the next pass, or cuts it where its answer varies."""
        region = node[1]
        try:
            self.fast.regions.look_at(region)
            question = self._ask(region)
            batch.append((node, question, self.fast.regions.held(region)))
        except Varies as varies:
            self._cut(node, where_it_varies(region, varies.names, self._ask), todo)
        except NoText:
            if region.box <= MOST:
                self._tell(node, by="each", texts=0)
            else:
                self._cut(node, halves(region, _widest(region)), todo)

    def _ask(self, region: Region) -> Question:
        return about_region(self.claim, region, self.answers, self.same)

    def _tell(self, node: Node, **told: Any) -> None:
        """Writes a line about a region that is decided, or about a cut."""
        self._report.lines.append({"goal": self.number, "at": node[0], **told})
        if "by" in told:
            self._report.done += node[2]

    def _cut(self, node: Node, cut: Cut, todo: list[Node]) -> None:
        path, region, share = node
        name, first = cut
        self._tell(node, cut=name, first=list(first))
        parts = region.cut(name, first)
        boxes = [0 if part is None else part.box for part in parts]
        for which, part in reversed(list(enumerate(parts))):
            if part is None:
                self._tell((f"{path}{which}", region, 0.0), by="none")
            else:
                todo.append((f"{path}{which}", part, share * boxes[which] / sum(boxes)))
        if not any(boxes):
            self._report.done += share

    # ------------------------------------------------------------------- by letters

    @property
    def _together(self) -> int:
        return max(4, min(256, ENTRIES // max(1, self._size)))

    def _enumerable(self, region: Region) -> bool:
        """Whether the texts of a region cost less than letters are likely to save."""
        box = region.box
        if box <= FEWEST or box > MOST:
            return box <= FEWEST
        by_letters, one_by_one = self.models.by_letters, self.models.one_by_one
        if by_letters + one_by_one >= SEEN and 3 * by_letters < one_by_one:
            return True
        return box * self.property.model.spec.d_model <= 4 * self._size  # four times a pass

    def _by_letters(self, batch: Sequence[Asked], todo: list[Node]) -> None:
        found = self.fast.regions.work(
            [held for _node, _question, held in batch],
            [question for _node, question, _held in batch],
        )
        self._report.passes += len(self.fast.texts) * len(batch)
        self._size = len(found.keys) * len(self.shape.places) * self.property.model.spec.d_model
        undecided: list[Undecided] = []
        for case, (node, question, held) in enumerate(batch):
            if found.holds[case]:
                self._decided(node, question, found, case)
                continue
            one = Undecided(node[1], found, case)
            if not (found.rounded[case] and self._settled_precisely(node, question, held)):
                undecided.append(one)
                self._cut(node, one.cut(), todo)
        self._propose_lowest(undecided)

    @property
    def _worth_arb(self) -> bool:
        """Whether Arb has settled some of what it was asked."""
        return self._retried < TRIED or self._settled >= self._retried / 4

    def _settled_precisely(self, node: Node, question: Question, held: Holdings) -> bool:
        """Whether Arb decides a region that rounding leaves open; given up where it seldom does."""
        if not self._worth_arb:
            return False
        self._retried += 1
        found = self.precise.regions.work([held], [question])
        self._report.passes += len(self.fast.texts)
        if found.holds[0]:
            self._settled += 1
            self._decided(node, question, found, 0)
        return bool(found.holds[0])

    def _decided(self, node: Node, question: Question, found: Findings, case: int) -> None:
        if node[1].box <= MOST:
            self.models.by_letters += node[1].box
        self._tell(node, by="letters", **self._told(found, case, question))

    def _told(self, found: Findings, case: int, question: Question) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if isfinite(found.lead[case]):
            told["lead"] = rounded_down(Fraction(float(found.lead[case])))
        if isinstance(question, Leads):
            told["next"] = [int(found.ahead[case])]
        return told

    # ------------------------------------------------------------------- one by one

    def _each(self, nodes: Sequence[Node], todo: list[Node]) -> None:
        """Every text of some regions on its own."""
        parts = [texts_of(region) for _path, region, _share in nodes]
        texts, owners = joined(parts)
        if not len(texts):
            leads, opened = np.empty(0, dtype=object), np.empty(0, dtype=bool)
        else:
            leads, opened = self._leads(texts, self._questions(nodes, parts, texts, owners))
        if self._report.counterexample is not None:
            return
        order = np.argsort(owners, kind="stable")
        ends = np.cumsum([len(part) for part in parts])
        for node, own in zip(nodes, np.split(order, ends[:-1]), strict=True):
            self._leaf(node, texts, own, leads, opened, todo)

    def _leaf(
        self, node: Node, texts: Texts, own: Any, leads: Any, opened: Any, todo: list[Node]
    ) -> None:
        region = node[1]
        unsure = int(opened[own].sum())
        if unsure:
            if 2 * unsure >= len(own):
                self._tell(node, by="open", texts=len(own))
            else:
                self._cut(node, halves(region, _widest(region)), todo)
            return
        if not len(own):
            self._tell(node, by="each", texts=0)
            return
        told: dict[str, Any] = {"texts": len(own)}
        known = [k for k in own if leads[k] is not None]
        if known:
            least = min(known, key=lambda k: leads[k])
            told["lead"] = rounded_down(Fraction(leads[least]))
            told["where"] = texts.tokens[least].tolist()
        self.models.one_by_one += region.box
        self._tell(node, by="each", **told)

    def _questions(
        self, nodes: Sequence[Node], parts: Sequence[Texts], texts: Texts, owners: Any
    ) -> list[Question]:
        """The question about each text; of a region for which it does not vary, asked once."""
        shared: list[Question | None] = []
        for _path, region, _share in nodes:
            try:
                shared.append(self._ask(region))
            except Varies:
                shared.append(None)
        found: list[Question] = []
        for assigned, owner in zip(texts.all_assigned(), owners.tolist(), strict=True):
            same = shared[owner]
            found.append(self._ask_text(assigned) if same is None else same)
        return found

    def _ask_text(self, assigned: Mapping[str, int]) -> Question:
        return about_text(self.claim, assigned, self.answers, self.same)

    def _leads(self, texts: Texts, questions: Sequence[Question]) -> tuple[Any, Any]:
        """A lower bound of each lead, and which texts are open.  The first text that fails is the
        counterexample."""
        found = self._enclosed(texts, questions)
        leads = np.array([float(x) if isfinite(x) else None for x in found.lead], dtype=object)
        opened = np.zeros(len(texts), dtype=bool)
        unsure = np.flatnonzero(~found.holds)
        for text in unsure[np.argsort(found.lead[unsure], kind="stable")].tolist():
            judged = self._judge(texts, text, questions[text])
            if judged.holds is False:
                self._report.counterexample = self._refuted(texts, text, judged)
                break
            leads[text], opened[text] = judged.lead, judged.holds is None
        return leads, opened

    def _enclosed(self, texts: Texts, questions: Sequence[Question]) -> Told:
        """What enclosures say of some texts; in Arb, of those that float64 leaves open."""
        found = self._count(self.fast, texts, questions)
        unsure = np.flatnonzero(found.rounded)
        if len(unsure) >= FEW and self._worth_arb:
            some = Texts(texts.names, texts.values[unsure], texts.tokens[unsure])
            again = self._count(self.precise, some, [questions[text] for text in unsure.tolist()])
            found.holds[unsure], found.lead[unsure] = again.holds, again.lead
            self._retried += len(unsure)
            self._settled += int(again.holds.sum())
        return found

    def _count(self, passing: Passing, texts: Texts, questions: Sequence[Question]) -> Told:
        """What enclosures say of some texts, and the passes that it took."""
        found = passing.told(texts, questions)
        for one in passing.texts:
            self._report.passes += one.passes
            one.passes = 0
        return found

    # ------------------------------------------------------------------- single texts

    def _judge(self, texts: Texts, text: int, question: Question) -> Judgement:
        key = tuple(texts.tokens[text].tolist()), question
        if key not in self._judged:
            self._report.passes += 1
            judged = self._at_extremes if self.models.free else self._with_own_numbers
            self._judged[key] = judged(*key)
        return self._judged[key]

    def _with_own_numbers(self, tokens: tuple[int, ...], question: Question) -> Judgement:
        others = self.models.others(self.claim)
        return judge(self.property.model, tokens, question, others=others)

    def _at_extremes(self, tokens: tuple[int, ...], question: Question) -> Judgement:
        """Whether the claim fails with numbers at ends of their ranges; else it stays open."""
        if isinstance(self.claim, Unmoved):
            own = judge(self.property.own, tokens, question)
            if own.found is None:
                return Judgement(None)
            question = Leads((own.found,))
        at = extreme(self.fast.models[0], tokens, question)
        others = self.models.others(self.claim)
        judged = judge(at.model, tokens, question, others=others, rows=at.rows)
        if judged.holds is False:
            return replace(judged, weights=at.chosen)
        return Judgement(None)

    def _refuted(self, texts: Texts, text: int, judged: Judgement) -> Counterexample:
        return judged.refuting(self.number, texts.tokens[text].tolist(), texts.assigned(text))

    def _propose_lowest(self, undecided: list[Undecided]) -> None:
        """The lowest texts of the regions with the lowest leads, as candidates."""
        undecided.sort(key=lambda one: one.middle)
        rows = [one.lowest(self.fast.embedding) for one in undecided[:PROPOSED]]
        found = [
            texts_of(Region(self.shape, {name: (value,) for name, value in row.items()}))
            for row in rows
            if row is not None
        ]
        if found:
            self._propose(joined(found)[0])

    def _propose(self, texts: Texts) -> None:
        """Looks at some texts; one that fails is the counterexample."""
        if not len(texts) or self._report.counterexample is not None:
            return
        questions = [self._ask_text(assigned) for assigned in texts.all_assigned()]
        found = self._count(self.fast, texts, questions)
        for text in np.argsort(found.lead, kind="stable").tolist():
            if not found.fails[text]:
                continue
            judged = self._judge(texts, text, questions[text])
            if judged.holds is False:
                self._report.counterexample = self._refuted(texts, text, judged)
                break


def _widest(region: Region) -> str:
    """The variable with the most values."""
    return max(region.free, key=lambda name: len(region.allowed[name]))

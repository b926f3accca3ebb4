"""Casework: some regions of one goal are decided by letters, enumerated, or cut.

A region whose texts are few beside the cost of a pass with letters is enumerated; how often letters
decide regions of a size is counted on the way.  Every region that stays undecided also proposes the
text that is most likely to fail, so that counterexamples are found early.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from byhand.proving.claims import Agree, Unmoved
from byhand.proving.cutting import Cut, Undecided, halves, where_it_varies
from byhand.proving.domain import Region, Values
from byhand.proving.enumeration import Enumeration, told
from byhand.proving.hulls import Embedding
from byhand.proving.journal import Line, rounded_down
from byhand.proving.judging import Judgement, judge
from byhand.proving.outcome import Counterexample
from byhand.proving.properties import Property
from byhand.proving.questions import Leads, Question, about_region, about_text
from byhand.proving.region_forms import NoText
from byhand.proving.region_passes import Findings, RegionPasses, Weighed
from byhand.proving.text_tables import Texts, joined, sampled, texts_of
from byhand.proving.wholes import Varies

FEWEST = 64  # assignments that are always enumerated
MOST = 1 << 15  # assignments that are enumerated at once
TRIED = 16  # regions of a size after which it counts how many letters have decided
ENTRIES = 1 << 20  # numbers in the embeddings of one pass
SAMPLED = 256  # texts of a goal that are looked at first
PROPOSED = 8  # undecided regions of a pass that propose a text


Part = tuple[str, Mapping[str, Values], float]  # a region: path, values, share of the domain
Node = tuple[str, Region, float]  # the same


@dataclass(frozen=True, slots=True)
class Unit:
    """Some regions of a goal."""

    goal: int
    parts: tuple[Part, ...]
    seconds: float  # after which the rest is handed back
    same: int | None = None  # the token that a claim of one prediction for all texts asks for


@dataclass
class Report:
    """What became of a unit."""

    goal: int
    lines: list[Line] = field(default_factory=list)
    left: list[Part] = field(default_factory=list)
    done: float = 0.0  # the share of the domain that was decided
    passes: int = 0
    counterexample: Counterexample | None = None
    interrupted: bool = False  # by Ctrl-C: `left` is not known then


class Casework:
    """The work on the regions of one property; what they share is made once."""

    def __init__(self, property: Property) -> None:
        self.property = property
        self.model = Weighed(property.model, Embedding(property.model, property.moved))
        self._others: dict[int, Weighed] = {}
        self._goals: dict[tuple[int, int | None], GoalWork] = {}

    def work(self, unit: Unit) -> Report:
        """A unit, worked on for as long as it says, and its report."""
        return self.goal(unit.goal, unit.same).work(unit)

    def goal(self, number: int, same: int | None) -> GoalWork:
        """The work on one goal."""
        if (number, same) not in self._goals:
            models = [self.model]
            claim = self.property.goals[number].claim
            if isinstance(claim, Agree):
                other = claim.other
                if id(other) not in self._others:
                    self._others[id(other)] = Weighed(other, Embedding(other))
                models.append(self._others[id(other)])
            self._goals[number, same] = GoalWork(self.property, number, models, same)
        return self._goals[number, same]


class GoalWork:
    """The work on one goal."""

    def __init__(
        self, property: Property, number: int, models: Sequence[Weighed], same: int | None
    ) -> None:
        self.property, self.number, self.same = property, number, same
        self.shape, self.claim = property.goals[number].shape, property.goals[number].claim
        self.vocab = property.model.spec.vocab
        self.embedding = models[0].embedding
        self.passes = RegionPasses(self.shape, models)
        self.enumerations = [Enumeration(model) for model in models]
        self._tried, self._decided = Counter[int](), Counter[int]()
        self._judged: dict[tuple[tuple[int, ...], Question], Judgement] = {}
        self._size = 0  # entries of the embeddings of one region, as seen last
        self._report = Report(number)

    # ------------------------------------------------------------------- a unit

    def work(self, unit: Unit) -> Report:
        """The regions of a unit, for as long as it says."""
        report = self._report = Report(self.number)
        try:
            self._work(unit)
        except KeyboardInterrupt:
            report.interrupted = True
        report.passes += sum(one.passes for one in self.enumerations)
        for one in self.enumerations:
            one.passes = 0
        return report

    def _work(self, unit: Unit) -> None:
        report, until = self._report, time.monotonic() + unit.seconds
        todo: list[Node] = []
        for path, allowed, share in reversed(unit.parts):
            todo.append((path, Region(self.shape, allowed), share))
            if not path:
                self._propose(sampled(todo[-1][1], SAMPLED))
        few: list[Node] = []
        while (todo or few) and report.counterexample is None:
            if time.monotonic() > until and report.lines:
                break
            batch: list[tuple[Node, Question]] = []
            while todo and len(batch) < self._together and not _many(few):
                node = todo.pop()
                if self._enumerable(node[1]):
                    few.append(node)
                    continue
                try:
                    self.passes.look_at(node[1])
                    batch.append((node, self._ask(node[1])))
                except Varies as varies:
                    self._cut(node, where_it_varies(node[1], varies.names, self._ask), todo)
                except NoText:
                    if node[1].box <= MOST:
                        few.append(node)
                    else:
                        self._cut(node, halves(node[1], _widest(node[1])), todo)
            if batch:
                self._by_letters(batch, todo)
            if few and (not todo or _many(few)):
                self._each(few, todo)
                few = []
        report.left = [(path, region.allowed, share) for path, region, share in (*todo, *few)]

    def _ask(self, region: Region) -> Question:
        return about_region(self.claim, region, self.vocab, self.same)

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
        """Whether the texts of a region cost less than a pass with letters is likely to save."""
        box = region.box
        if box <= FEWEST or box > MOST:
            return box <= FEWEST
        cost = 4 * self._size // self.property.model.spec.d_model  # of a pass, in texts
        if box <= cost:
            return True
        size = box.bit_length()
        tried = self._tried[size]
        return tried >= TRIED and box * self._decided[size] < cost * tried

    def _by_letters(self, batch: Sequence[tuple[Node, Question]], todo: list[Node]) -> None:
        regions = [region for (_path, region, _share), _question in batch]
        found = self.passes.work(regions, [question for _node, question in batch])
        self._report.passes += len(self.passes.models)
        self._size = len(found.keys) * len(self.shape.places) * self.property.model.spec.d_model
        undecided: list[tuple[float, Undecided]] = []
        for case, (node, question) in enumerate(batch):
            size = node[1].box.bit_length()
            self._tried[size] += 1
            if found.holds[case]:
                self._decided[size] += 1
                self._tell(node, by="letters", **self._told(found, case, question))
            else:
                one = Undecided(node[1], found, case)
                undecided.append((one.middle, one))
                self._cut(node, one.cut(), todo)
        self._propose_lowest(undecided)

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
        return about_text(self.claim, assigned, self.vocab, self.same)

    def _leads(self, texts: Texts, questions: Sequence[Question]) -> tuple[Any, Any]:
        """A lower bound of each lead, and which texts are open.  The first text that fails is the
        counterexample."""
        found = told(self.enumerations, texts, questions)
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

    # ------------------------------------------------------------------- single texts

    def _judge(self, texts: Texts, text: int, question: Question) -> Judgement:
        key = tuple(texts.tokens[text].tolist()), question
        if key not in self._judged:
            self._report.passes += 1
            model, others = self.property.model, []
            if isinstance(self.claim, Agree):
                others = [self.claim.other]
            elif isinstance(self.claim, Unmoved):
                model, others = self.property.own, [self.property.model]
            self._judged[key] = judge(model, key[0], question, others=others)
        return self._judged[key]

    def _refuted(self, texts: Texts, text: int, judged: Judgement) -> Counterexample:
        return Counterexample(
            self.number,
            tuple(texts.tokens[text].tolist()),
            texts.assigned(text),
            judged.expected,
            judged.found,
            judged.address,
            judged.value,
            judged.bound,
        )

    def _propose_lowest(self, undecided: list[tuple[float, Undecided]]) -> None:
        """The lowest texts of the regions with the lowest leads, as candidates."""
        undecided.sort(key=lambda one: one[0])
        rows = [one.lowest(self.embedding) for _lead, one in undecided[:PROPOSED]]
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
        found = told(self.enumerations, texts, questions)
        for text in np.argsort(found.lead, kind="stable").tolist():
            if found.lead[text] >= 0:
                break
            judged = self._judge(texts, text, questions[text])
            if judged.holds is False:
                self._report.counterexample = self._refuted(texts, text, judged)
                break


def _many(nodes: Sequence[Node]) -> bool:
    return sum(region.box for _path, region, _share in nodes) >= MOST


def _widest(region: Region) -> str:
    """The variable with the most values."""
    return max(region.free, key=lambda name: len(region.allowed[name]))

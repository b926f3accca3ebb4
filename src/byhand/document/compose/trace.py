"""Trace → document parts: the title, the stages of the spine, and every step in its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from byhand.document import words
from byhand.document.compose.forms import symbol_of
from byhand.document.compose.standing import mean_said, standing_table
from byhand.document.compose.steps import Steps
from byhand.document.compose.tables import Window
from byhand.document.parts import NotWorked, NumberTable, Part, Predictions, Remark, Stage, Title
from byhand.language import _
from byhand.numbers.base import ABSENT, REGISTERS
from byhand.plan import WEIGHT, Step
from byhand.tracing import Trace
from byhand.worked import Worked


def document(
    trace: Trace,
    *,
    only: Iterable[str] = (),
    window: Window | None = None,
    stop_at_boundary: bool = False,
    names: str = "byhand",
) -> Iterator[Part]:
    """The parts of a whole working, in spine order; with `only`, of the steps it names.

    With another style of names, that name is among the step's second names.
    """
    return Document(trace, window or Window(), stop_at_boundary, names).parts(tuple(only))


class Document(Steps):
    """The document of one trace; `stop` ends each position where it leaves the exact numbers."""

    def __init__(self, trace: Trace, window: Window, stop: bool, names: str) -> None:
        super().__init__(trace, window, stop=stop)
        self.told: set[str] = set()  # weights already shown
        called = {name: address for address, name in trace.plan.in_style(names).items()}
        for alias, address in (*called.items(), *trace.plan.aliases.items()):
            if alias != address:
                self.also.setdefault(address, []).append(alias)

    # ------------------------------------------------------------------ the order of the parts

    def parts(self, only: tuple[str, ...]) -> Iterator[Part]:
        """The title, then the steps that are asked for, stage by stage."""
        shown = set(self.trace.plan.matching(only)) if only else set(self.trace.steps)
        yield self.title(shown)
        place, missing = None, list[Worked]()
        steps = [w for w in self.trace.values() if w.address in shown and not self.hidden(w)]
        for worked, here in zip(steps, words.places(w.address for w in steps), strict=True):
            if worked.missing is not None:
                missing.append(worked)
                continue
            yield from self.not_worked(missing)
            missing.clear()
            if here != place:
                place = here
                yield Stage(
                    words.stage_title(place, self.trace.plan.spec),
                    words.stage_about(place, self.trace.plan.spec),
                )
            yield self.step(worked)
            if worked.address == "logprobs":
                yield from self.standings()
        yield from self.not_worked(missing)
        if self.stop:
            yield from self.ends(shown)

    def standings(self) -> Iterator[Part]:
        """The standings of the next tokens, and the mean of their log-probabilities."""
        table = standing_table(self, self.row_places(self.trace.plan["logprobs"], len(self.labels)))
        if table is not None:
            yield table
            yield from mean_said(self)

    def ends(self, shown: set[str]) -> Iterator[Part]:
        """The remarks on how far each position stayed exact."""
        yield Stage(_("Where the exact numbers end"), "")
        for position in range(len(self.trace.tokens)):
            name, at = self.position(position), self.trace.stopped_at(position)
            if at is None or ("next" in shown and ("next", position) not in self.beyond):
                text = _("position {which} stays exact to the next token").format(which=name)
                yield Remark("more", text)
            else:
                text = words.stops([name], self.trace.plan[at].op)
                yield Remark("stops", f"{text}: {at}")

    def hidden(self, worked: Worked) -> bool:
        """Whether every position has stopped before this step."""
        if worked.address == "target" and "loss" in self.trace.steps:
            return True  # shown with the loss
        if worked.address == "targets" and self.trace.steps.keys() & {"losses", "logprobs"}:
            return True  # shown with them
        if worked.address == "loss":  # the logarithm of a named number
            return self.stop and worked.register != "exact"
        axis = worked.step.position_axis
        rows = 0 if axis is None else worked.step.shape[axis]
        return rows > 0 and all((worked.address, row) in self.beyond for row in range(rows))

    def not_worked(self, missing: Sequence[Worked]) -> Iterator[Part]:
        """Steps without values, grouped by reason."""
        start = 0
        for end in range(1, len(missing) + 1):
            if end == len(missing) or missing[end].missing != missing[start].missing:
                cause = missing[start].missing
                assert cause is not None
                group = tuple(map(self.outline, missing[start:end]))
                yield NotWorked(words.why_missing(cause), group)
                start = end

    # ------------------------------------------------------------------ the title

    def title(self, shown: set[str]) -> Title:
        """The title: model, text, numbers, and the signs in use."""
        trace = self.trace
        worked = [trace.steps[address] for address in shown]
        facts = [
            *words.texts(trace),
            (_("numbers"), words.numbers_name(trace.numbers, trace.proof)),
        ]
        if trace.numbers.uniform == "enclosed" and trace.next and "next" in shown:
            facts.append((_("proven"), words.proven_count(trace.next)))
        if trace.proof is not None and trace.proof.by_exact:
            facts.append((_("exactly"), words.settled_exactly(trace.proof.by_exact)))
        if trace.target is not None:
            facts.append((_("target"), self.answer(trace.target)))
        rows = [w.row_registers or (w.register,) for w in worked if not w.whole]
        registers = {register for row in rows for register in row}
        return Title(
            name=words.printable(trace.model.name),
            about=words.told(trace.model.about),
            facts=tuple(facts),
            registers=tuple(register for register in REGISTERS if register in registers),
            masked=any(self.masks(w.step) for w in worked if w.missing is None),
            notes=trace.model.notes,
            digits=trace.digits,
            only_later=not any(
                block.attention and (block.attention.window or block.attention.score_table)
                for block in trace.plan.spec.blocks
            ),
        )

    def masks(self, step: Step) -> bool:
        """Whether entries are masked: in scores, or in attention weights."""
        scores = self.trace.plan[step.inputs["x"]] if step.op == "softmax" else step
        if not all(map(all, scores.attributes.get("mask", ()))):
            return True
        name = scores.inputs.get("table", "").removeprefix(WEIGHT)
        return bool(name) and any(x is ABSENT for x in self.trace.model.weights[name].data.flat)

    # ------------------------------------------------------------------ one step

    def step(self, worked: Worked) -> Part:
        """A step with its numbers; for `next` and `loss`, their own parts."""
        if worked.address == "loss":
            return self.loss(worked)
        plain = self.outline(worked)
        if worked.address == "next":
            found = enumerate(worked.value)
            shown = (self.prediction(*one) for one in found if ("next", one[0]) not in self.beyond)
            return Predictions(plain, tuple(shown))
        return replace(
            plain,
            given=tuple(self.given(worked.step)),
            tables=tuple(self.tables(worked)),
            remarks=tuple(self.remarks(worked)),
        )

    def given(self, step: Step) -> Iterator[NumberTable]:
        """The weights of a step that have not been shown yet, if they are small enough."""
        for role, address in step.inputs.items():
            name = address.removeprefix(WEIGHT)
            if name == address or address in self.told:
                continue
            self.told.add(address)
            data = self.trace.model.weights[name].data
            stacked = data.ndim > 2 and step.op != "expert_linear"
            if data.size <= self.window.weights and not stacked:
                yield from self.weight(name, symbol_of(step, role, address))

    def tables(self, worked: Worked) -> Iterator[NumberTable]:
        """A step as tables; the last head's table says what is left out."""
        tables = list(super().tables(worked))
        yield from (replace(table, left_out="") for table in tables[:-1])
        yield from tables[-1:]

    def rows_shown(self, step: Step, length: int) -> Sequence[int]:
        """The rows of a step that are shown: positions that have not stopped before it."""
        places = super().rows_shown(step, length)
        return [place for place in places if (step.address, place) not in self.beyond]

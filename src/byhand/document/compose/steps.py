"""The parts of one step of a trace: its outline, its remarks, the next tokens, the loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from byhand.document import words
from byhand.document.compose.forms import Forms, margin_cell, range_cell
from byhand.document.compose.tables import Tables, Window
from byhand.document.parts import Cell, Loss, Prediction, Remark, StepPart
from byhand.expression import Entry
from byhand.language import _
from byhand.numbers.base import Prediction as Predicted
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.tracing import Trace
from byhand.worked import Worked, weakest

MARGIN_DIGITS = 12  # most significant digits of a margin


class Steps(Tables):
    """The parts of one step of a trace; `stop` ends each position at its boundary."""

    def __init__(
        self, trace: Trace, window: Window, forms: Forms | None = None, *, stop: bool = False
    ) -> None:
        super().__init__(trace, window, forms)
        self.stop = stop
        self.beyond = trace.beyond_boundary if stop else frozenset()
        self.also: dict[str, list[str]] = {}

    def outline(self, worked: Worked) -> StepPart:
        """A step without its numbers."""
        step = worked.step
        return StepPart(
            address=step.address,
            also=tuple(self.also.get(step.address, ())),
            formula=step.formula,
            axes=step.axes,
            shape=step.shape,
            register=self.register(worked),
        )

    def register(self, worked: Worked) -> str | None:
        """The weakest register of the rows that are shown."""
        rows = enumerate(worked.row_registers)
        shown = [register for row, register in rows if (worked.address, row) not in self.beyond]
        return weakest(shown) if shown and self.stop else worked.register

    # ------------------------------------------------------------------ the end of the spine

    def prediction(self, position: int, found: Predicted) -> Prediction:
        """The next token after one position."""
        return Prediction(
            position=position,
            label=self.labels[position],
            token=None if found.id is None else self.answer(found.id),
            margin=None if found.margin is None else self.margin(found.margin),
            proven=found.proven,
            tied=tuple(map(self.answer, found.tied)),
            candidates=tuple(map(self.answer, found.candidates)),
        )

    def margin(self, margin: Any) -> Cell:
        """The margin of a token over the second."""
        if isinstance(margin, Enclosure):
            return margin_cell(margin, min(self.forms.digits, MARGIN_DIGITS))
        if hasattr(margin, "interval") and self.trace.numbers.register(margin) == "enclosed":
            return range_cell(margin)
        return self.forms.cell(margin)

    def loss(self, worked: Worked) -> Loss:
        """The step `loss`: its number in every form, with the letters in it."""
        assert self.trace.target is not None
        forms = Forms(self.trace.numbers, digits=self.trace.digits)
        last = len(self.trace.tokens) - 1
        forms.label(self.trace, Entry("probs", (last, self.trace.target)))
        cell = forms.full(worked.at((0,)))
        return Loss(
            self.outline(worked),
            target=self.answer(self.trace.target),
            after=self.position(last),
            cell=cell,
            letters=forms.letters([cell.worked, cell.form]),
        )

    # ------------------------------------------------------------------ remarks

    def remarks(self, worked: Worked) -> Iterator[Remark]:
        """Remarks on boundaries, returns, special tokens and limits at a step."""
        for kind, text in self._sentences(worked):
            yield Remark(kind, text, worked.address)

    def _sentences(self, worked: Worked) -> Iterator[tuple[str, str]]:
        here = [c for c in self.trace.crossings if c.address == worked.address]
        here = [c for c in here if (c.address, c.position) not in self.beyond]
        side = worked.step.of_source
        left = [self.position(c.position, of_source=side) for c in here if not c.returns]
        back = [self.position(c.position, of_source=side) for c in here if c.returns]
        if left and self.stop:
            yield "stops", words.stops(left, worked.step.op)
        elif left:
            yield "leaves", words.leaves(left, words.why_left(self.trace, worked))
        if back:
            yield "returns", words.returns(back, worked.step.attributes.get("kind"))
        model = self.trace.model
        special = (model.source_vocabulary if side else model.vocabulary).special
        if worked.address in ("tokens", "source") and (
            which := [
                self.position(k, of_source=side) for k, id in enumerate(worked.value) if special(id)
            ]
        ):
            text = _("position {which}: a special token, a sign for the model and no text")
            yield "more", text.format(which=words.joined(which))
        axis, noted = worked.step.position_axis or 0, dict[str, set[int]]()
        for note in worked.notes:
            noted.setdefault(note.kind, set()).add(note.index[axis])
        for kind, positions in noted.items():
            shown = [p for p in sorted(positions) if (worked.address, p) not in self.beyond]
            if shown:
                which = [self.position(p, of_source=side) for p in shown]
                told = "limit" if kind == "zero-variance" else "open"
                yield told, words.noted(kind).format(which=words.joined(which))

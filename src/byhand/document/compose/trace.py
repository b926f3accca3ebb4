"""Trace → document parts: which entries are shown, under which labels, with which marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from byhand.document import words
from byhand.document.compose.forms import Forms, margin_cell, range_cell, rational_cell
from byhand.document.compose.given import weights_read
from byhand.document.compose.window import Window
from byhand.document.trace_parts import (
    Cell,
    Loss,
    Mark,
    NotWorked,
    Part,
    Prediction,
    Predictions,
    Row,
    Stage,
    StepPart,
    Table,
    Title,
)
from byhand.expression import Entry
from byhand.language import _
from byhand.numbers.base import ABSENT, REGISTERS
from byhand.numbers.base import Prediction as Predicted
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.plan import WEIGHT, Step
from byhand.tracing import Trace, Worked, weakest

MARGIN_DIGITS = 12  # significant digits of how far a token is ahead, at most
COPIES = ("embed", "split_heads", "merge_heads")  # operations that make no new number


def document(
    trace: Trace,
    *,
    only: Iterable[str] = (),
    window: Window | None = None,
    stop_at_boundary: bool = False,
    names: str = "byhand",
) -> Iterator[Part]:
    """The parts of a whole working, in spine order; with `only`, of the steps it names.

    In another style of names, each step's name in it stands among its second names.
    """
    return Document(trace, window or Window(), stop_at_boundary, names).parts(tuple(only))


class Document:
    """Makes the parts of one trace; `stop` ends each position where it leaves the exact numbers."""

    def __init__(self, trace: Trace, window: Window, stop: bool, names: str) -> None:
        self.trace = trace
        self.window = window
        self.beyond = trace.beyond_boundary if stop else frozenset()
        self.stop = stop
        self.forms = Forms(trace.numbers, digits=trace.digits)
        self.told: set[str] = set()  # weights already shown
        self.also: dict[str, list[str]] = {}
        called = {name: address for address, name in trace.plan.in_style(names).items()}
        for alias, address in (*called.items(), *trace.plan.aliases.items()):
            if alias != address:
                self.also.setdefault(address, []).append(alias)

    # ------------------------------------------------------------------ the order of the parts

    def parts(self, only: tuple[str, ...]) -> Iterator[Part]:
        shown = set(self.trace.plan.matching(only)) if only else set(self.trace.steps)
        yield self.title(shown)
        place, missing = None, list[Worked]()
        for worked in self.trace.values():
            if worked.address not in shown or self.hidden(worked):
                continue
            if worked.missing is not None:
                missing.append(worked)
                continue
            yield from self.not_worked(missing)
            missing.clear()
            if (here := words.place_of(worked.address)) != place:
                place = here
                yield Stage(words.stage_title(place), words.stage_about(place))
            yield self.step(worked)
        yield from self.not_worked(missing)
        if self.stop:
            yield from self.ends(shown)

    def ends(self, shown: set[str]) -> Iterator[Part]:
        """How far each position stayed exact."""
        yield Stage(_("Where the exact numbers end"), "")
        for position in range(len(self.trace.tokens)):
            name, at = self.position_name(position), self.trace.stopped_at(position)
            if at is None or ("next" in shown and ("next", position) not in self.beyond):
                text = _("position {which} stays exact to the next token").format(which=name)
                yield Mark("more", text)
            else:
                text = words.stops([name], self.trace.plan[at].op)
                yield Mark("stops", f"{text}: {at}")

    def hidden(self, worked: Worked) -> bool:
        """Whether every position has stopped before this step."""
        if worked.address == "target" and "loss" in self.trace.steps:
            return True  # told with the loss
        if worked.address == "loss":  # the logarithm of what is named
            return self.stop and worked.register != "exact"
        axis = worked.step.position_axis
        rows = 0 if axis is None else worked.step.shape[axis]
        return rows > 0 and all((worked.address, row) in self.beyond for row in range(rows))

    def not_worked(self, missing: Sequence[Worked]) -> Iterator[Part]:
        """Steps without values, those with one reason together."""
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
        trace = self.trace
        worked = [trace.steps[address] for address in shown]
        facts = [
            (_("text"), words.printable(trace.text)),
            (_("numbers"), words.numbers_name(trace.numbers, trace.proof)),
        ]
        if trace.numbers.uniform == "enclosed" and trace.next and "next" in shown:
            facts.append((_("proven"), words.proven_count(trace.next)))
        if trace.proof is not None and trace.proof.by_exact:
            facts.append((_("exactly"), words.settled_exactly(trace.proof.by_exact)))
        if trace.target is not None:
            facts.append((_("target"), words.token_label(trace.token(trace.target))))
        rows = [w.row_registers or (w.register,) for w in worked if not w.whole]
        registers = {register for row in rows for register in row}
        return Title(
            name=words.printable(trace.model.name),
            about=trace.model.about,
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
        """Whether entries are masked: of scores, or of the weights made of them."""
        scores = self.trace.plan[step.inputs["x"]] if step.op == "softmax" else step
        if not all(map(all, scores.attributes.get("mask", ()))):
            return True
        name = scores.inputs.get("table", "").removeprefix(WEIGHT)
        return bool(name) and any(x is ABSENT for x in self.trace.model.weights[name].data.flat)

    # ------------------------------------------------------------------ one step

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

    def step(self, worked: Worked) -> Part:
        plain = self.outline(worked)
        if worked.address == "next":
            return Predictions(plain, tuple(self.predictions(worked)))
        if worked.address == "loss":
            return self.loss(plain, worked)
        return replace(
            plain,
            given=tuple(weights_read(worked.step, self.trace, self.window, self.told)),
            tables=tuple(self.tables(worked)),
            marks=tuple(self.marks(worked)),
        )

    def predictions(self, worked: Worked) -> Iterator[Prediction]:
        for position, found in enumerate(worked.value):
            if ("next", position) in self.beyond:
                continue
            yield self.prediction(position, found)

    def prediction(self, position: int, found: Predicted) -> Prediction:
        def labels(ids: Sequence[int]) -> tuple[str, ...]:
            return tuple(words.token_label(self.trace.token(id)) for id in ids)

        return Prediction(
            place=position,
            label=self.row_label(position),
            token=None if found.id is None else labels([found.id])[0],
            margin=None if found.margin is None else self.margin(found.margin),
            proven=found.proven,
            tied=labels(found.tied),
            candidates=labels(found.candidates),
        )

    def margin(self, margin: Any) -> Cell:
        if isinstance(margin, Enclosure):
            return margin_cell(margin, min(self.forms.digits, MARGIN_DIGITS))
        if self.trace.numbers.register(margin) == "enclosed":
            return range_cell(margin)
        return self.forms.cell(margin)

    def loss(self, plain: StepPart, worked: Worked) -> Part:
        assert self.trace.target is not None
        forms = Forms(self.trace.numbers, digits=self.trace.digits)
        last = len(self.trace.tokens) - 1
        forms.label(self.trace, Entry("probs", (last, self.trace.target)))
        cell = forms.full(worked.at((0,)))
        return Loss(
            plain,
            target=words.token_label(self.trace.token(self.trace.target)),
            after=self.position_name(last),
            cell=cell,
            letters=forms.letters([cell.worked, cell.form]),
        )

    # ------------------------------------------------------------------ tables

    def tables(self, worked: Worked) -> Iterator[Table]:
        step = worked.step
        if worked.whole:
            yield self.ids(worked)
        elif step.axes[0] in ("head", "kv_head"):
            shown = self.window.head_places(step.shape[0])
            for head in shown:
                title = f"{step.axes[0]} {head}" if step.shape[0] > 1 else ""
                table = self.table(worked, (head,), title, step.shape[0] - len(shown))
                yield table if head == shown[-1] else replace(table, left_out="")
        else:
            yield self.table(worked, (), "", 0)

    def ids(self, worked: Worked) -> Table:
        ids = worked.value if isinstance(worked.value, tuple) else (worked.value,)
        places = self.window.row_places(len(ids))
        rows = tuple(Row(i, self.row_label(i), "exact", (rational_cell(ids[i]),)) for i in places)
        return Table("", (0,), ("id",), rows, left_out_text(len(ids) - len(places), 0, 0))

    def table(
        self, worked: Worked, head: tuple[int, ...], title: str, heads_left_out: int
    ) -> Table:
        step = worked.step
        wide = len(step.shape) > len(head) + 1
        size = step.shape[-1] if wide else 1
        columns = self.window.columns_of(worked) if wide else (0,)
        length = step.shape[len(head)]
        places = [
            place
            for place in self.window.row_places(length)
            if (step.address, place) not in self.beyond
        ]
        written_out = self.shows_working(step)
        rows = []
        for place in places:
            at = (*head, place)
            indices = [(*at, column) for column in columns] if wide else [at]
            cells = tuple(
                self.forms.cell(worked.at(index), form=len(columns) == size, worked=written_out)
                for index in indices
            )
            rows.append(Row(place, self.row_label(place), self.row_register(worked, at), cells))
        hidden = length - len(self.window.row_places(length))
        return Table(
            title=title,
            columns=columns,
            heads=self.heads(step.axes[-1], columns, size) if wide else (),
            rows=tuple(rows),
            left_out=left_out_text(
                hidden, size - len(columns), heads_left_out, list(columns) != sorted(columns)
            ),
        )

    def shows_working(self, step: Step) -> bool:
        """Whether a line of working is short enough to stand in a table."""
        if step.op in COPIES:
            return False
        shapes = [self.trace.plan[read].shape for read in step.reads if read in self.trace.steps]
        return all(shape[-1] <= self.window.terms for shape in shapes)

    def row_register(self, worked: Worked, at: tuple[int, ...]) -> str:
        """The weakest register of a row, the entries left out included."""
        if len(worked.step.shape) == len(at):
            return worked.register_at(at) or "exact"
        if worked.numbers.uniform:
            return worked.numbers.uniform
        found = (worked.register_at((*at, i)) for i in range(worked.step.shape[-1]))
        return weakest(register for register in found if register is not None)

    def heads(self, axis: str, columns: Sequence[int], size: int) -> tuple[str, ...]:
        """The words above the columns, where they are not just numbers."""
        match axis:
            case "vocab":
                return tuple(words.token_label(self.trace.token(id)) for id in columns)
            case "key":
                return tuple(self.row_label(place) for place in columns)
            case _:
                return tuple(map(str, columns)) if len(columns) < size else ()

    def row_label(self, position: int) -> str:
        return f"{position} {words.token_label(self.trace.token(self.trace.tokens[position]))}"

    def position_name(self, position: int) -> str:
        token = words.token_label(self.trace.token(self.trace.tokens[position]))
        return f"{position} ({token})"

    # ------------------------------------------------------------------ marks

    def marks(self, worked: Worked) -> Iterator[Mark]:
        here = [c for c in self.trace.crossings if c.address == worked.address]
        here = [c for c in here if (c.address, c.position) not in self.beyond]
        left = [self.position_name(c.position) for c in here if not c.returns]
        back = [self.position_name(c.position) for c in here if c.returns]
        if left and self.stop:
            yield Mark("stops", words.stops(left, worked.step.op))
        elif left:
            yield Mark("leaves", words.leaves(left, words.why_left(self.trace, worked)))
        if back:
            yield Mark("returns", words.returns(back, worked.step.attributes.get("kind")))
        if worked.address == "tokens":
            yield from self.special_tokens()
        yield from self.notes(worked)

    def special_tokens(self) -> Iterator[Mark]:
        """The tokens that the text does not show."""
        special = self.trace.model.vocabulary.special
        places = [place for place, id in enumerate(self.trace.tokens) if special(id)]
        if places:
            which = words.joined([self.position_name(place) for place in places])
            text = _("position {which}: a special token, a sign for the model and no text")
            yield Mark("more", text.format(which=which))

    def notes(self, worked: Worked) -> Iterator[Mark]:
        axis = worked.step.position_axis or 0
        said: dict[str, set[int]] = {}
        for note in worked.notes:
            said.setdefault(note.kind, set()).add(note.index[axis])
        sentences: dict[str, Callable[[str], str]] = {
            "zero-variance": _zero_variance,
            "undecided-sign": _undecided_sign,
            "not-finite": _not_finite,
        }
        for kind, positions in said.items():
            shown = [p for p in sorted(positions) if (worked.address, p) not in self.beyond]
            if shown:
                which = words.joined([self.position_name(p) for p in shown])
                yield Mark("limit" if kind == "zero-variance" else "open", sentences[kind](which))


def _zero_variance(which: str) -> str:
    return _(
        "position {which}: every entry is the mean, so this is 0/0; taken as the limit for "
        "eps → 0, which is 0"
    ).format(which=which)


def _undecided_sign(which: str) -> str:
    return _(
        "position {which}: a sign could not be decided, so max(0, x) stays as it is written"
    ).format(which=which)


def _not_finite(which: str) -> str:
    return _(
        "position {which}: a number here is too large for this format, or is no number at all"
    ).format(which=which)


def left_out_text(rows: int, columns: int, heads: int, largest_shown: bool = False) -> str:
    """What a window does not show, in words; nothing where it shows all."""
    said = [
        (rows, _("{count} more rows")),
        (
            columns,
            _("{count} more columns, none larger in the last row")
            if largest_shown
            else _("{count} more columns"),
        ),
        (heads, _("{count} more heads")),
    ]
    return ", ".join(text.format(count=count) for count, text in said if count > 0)

"""A State worked out: its trace, its edition and its figure, cached for further questions.

The last few are cached, so that another passage needs no second pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from byhand import evaluate
from byhand.address import write_index
from byhand.counting import count
from byhand.document import words
from byhand.document.book import Spine
from byhand.document.compose.book.edition import LARGE, PENCIL, Edition
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.spine import spine
from byhand.document.compose.book.topics import Topic
from byhand.document.compose.tables import Index
from byhand.document.media.html.figure import ROOM
from byhand.document.parts import Cell, Number
from byhand.editions import WINDOWS, command_on, scale_of
from byhand.errors import InputError
from byhand.explaining.chapter import Chapter
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT
from byhand.plan import Step
from byhand.serving.cache import Cache
from byhand.serving.edits import edited
from byhand.serving.states import Library, State
from byhand.tracing import Trace
from byhand.worked import Worked
from byhand.working import Working

MOST_KEPT = 4_000_000  # entries of all cached traces
MOST_SIGNS = 28  # characters of a form in a table
SMALLEST = 250_000  # least weight of a trace in the cache


def _weight(trace: Trace) -> int:
    return SMALLEST + sum(prod(step.shape) for step in trace.plan)


_TRACES: Cache[Trace] = Cache(MOST_KEPT, _weight)


def trace_of(state: State, library: Library, progress: evaluate.Progress | None = None) -> Trace:
    """The whole trace of a State."""
    key = (library.number, replace(state, language="en"))
    return _TRACES.of(key, lambda: _trace(state, edited(state, library, progress).model, progress))


def _trace(state: State, model: Model, progress: evaluate.Progress | None) -> Trace:
    numbers = state.numbers_for(model)
    job = evaluate.prepare(model, state.text, numbers, target=state.target)
    if state.digits is None:
        return job.work(progress=progress)
    from byhand.proving.digits import prove

    return prove(job, state.digits, progress=progress)


def brief(entry: Any) -> bool:
    """Whether the form of an exact value may be short: few terms, few digits, simple names."""
    if entry is ABSENT or entry.fraction is not None:
        return True
    return _signs(entry, MOST_SIGNS) >= 0


def _signs(value: Any, room: int) -> int:
    """The room left after the terms of a value; below 0 if there is too little."""
    room -= 2 * int(value.size)
    if room < 0 or value.fraction is not None:
        return room
    for polynomial in (value.num, value.den):
        room -= sum(len(str(c)) - 1 for c in polynomial.coeffs())
    for at in value.atoms:
        atom = value.space.atoms[at]
        if room < 0 or atom.wide is not None:
            return -1
        if atom.argument is not None:
            room = _signs(atom.argument, room)
    return room


class Glance(Showing):
    """The numbers of a trace without workings, which the page asks for one by one.

    Formulas and sentences follow `position`.
    """

    def __init__(self, trace: Trace, scale: str, position: int) -> None:
        super().__init__(trace, everything=scale == PENCIL, window=WINDOWS[scale])
        self.position_followed = position

    @property
    def followed(self) -> int:
        return self.position_followed

    def number(self, worked: Worked, index: Index, *, form: bool = True) -> Number:
        return Number(worked.address + write_index(index), self.cell(worked, index, form=form))

    def cell(self, worked: Worked, index: Index, *, form: bool = True) -> Cell:
        """A form too wide for a table is skipped before it is written."""
        if form and worked.missing is None and not worked.whole and not worked.numbers.uniform:
            form = brief(worked.at(index))
        return super().cell(worked, index, form=form)

    def written_out(self, step: Step) -> bool:
        return False


@dataclass(frozen=True)
class Pass:
    """One State, worked out in its language, with one followed position."""

    state: State
    model: Model
    notes: tuple[str, ...]
    trace: Trace
    position: int

    @cached_property
    def edition(self) -> Edition:
        """The edition that passages are made from."""
        inventory = count(self.model.spec, self.model.weights)
        scale = scale_of(inventory, self.trace)
        return Edition(
            trace=self.trace,
            inventory=inventory,
            scale=scale,
            showing=Glance(self.trace, scale, self.position),
            explained=Chapter(self.trace, scale == LARGE),
            command=self.command_for(self.state.name or "model.yaml"),
        )

    def command_for(self, called: str) -> str:
        """The arguments of `byhand trace` for the same pass of a model with this name."""
        own = self.trace.text == self.model.text
        return command_on(called, None if own else self.trace.text)

    @cached_property
    def in_full(self) -> Showing:
        """The numbers with their workings."""
        scale = self.edition.scale
        return Showing(self.trace, everything=True, window=WINDOWS[scale])

    @cached_property
    def topics(self) -> tuple[Topic, ...]:
        """The topics in the order of the pass."""
        return self.edition.topics

    @cached_property
    def topic_of(self) -> Mapping[str, Topic]:
        """The topic of each step."""
        return {address: topic for topic in self.topics for address in topic.addresses}

    @cached_property
    def spine(self) -> Spine:
        """The figure of the whole pass, with numbers if they fit."""
        showing = self.edition.showing
        if not self._has_room:
            showing = copy(showing)  # keeps what it has read of the trace
            showing.everything = False
        return spine(showing)

    @property
    def working(self) -> Working:
        """How every number comes about, as expressions."""
        return self.in_full.inside.working

    @property
    def by_decimals(self) -> bool:
        """Whether exact numbers are shown as decimals."""
        return self.edition.showing.by_decimals

    def label(self, id: int) -> str:
        """A token of the vocabulary as sentences and tables show it."""
        return words.token_label(self.trace.token(id))

    def answer(self, id: int) -> str:
        """The word of an output's id: a next token, a target."""
        return words.token_label(self.trace.answer(id))

    @property
    def next_id(self) -> int | None:
        """The id of the next token after the followed position; None if unknown."""
        return None if self.trace.next is None else self.trace.next[self.position].id

    @property
    def next_token(self) -> str | None:
        """The next token after the followed position; None if unknown."""
        return None if self.next_id is None else self.answer(self.next_id)

    @property
    def _has_room(self) -> bool:
        """Whether the figure has room for the rows; otherwise none is written."""
        width = self.model.spec.d_model
        narrowest = 2 + width + 2 * (width - 1)  # (1, 0, 1)
        return narrowest * len(self.trace.tokens) <= ROOM.together


_PASSES: Cache[Pass] = Cache(MOST_KEPT, lambda made: _weight(made.trace))


def pass_of(
    state: State,
    library: Library,
    position: int | None = None,
    progress: evaluate.Progress | None = None,
) -> Pass:
    """The pass of a State; it follows `position`, or the last one."""

    def make() -> Pass:
        found = edited(state, library, progress)
        trace = trace_of(state, library, progress)
        return Pass(state, found.model, found.notes, trace, _place(position, trace))

    return _PASSES.of((library.number, state, position), make)


def _place(position: int | None, trace: Trace) -> int:
    length = len(trace.tokens)
    if position is None:
        return length - 1
    if not 0 <= position < length:
        raise InputError(
            _("the text has no position {place}").format(place=position),
            where="position",
            expected=_("a place from 0 to {last}").format(last=length - 1),
            found=str(position),
        )
    return position

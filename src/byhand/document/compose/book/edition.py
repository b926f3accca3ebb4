"""The edition of a book: the trace, the counts and the marked claims that pages are made from.

`byhand.editions` works an Edition out; the pages only read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING

from byhand.address import read_address
from byhand.counting import Inventory
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.one_step import OneStep
from byhand.document.compose.book.topics import Topic, topics
from byhand.document.parts.verdicts import VerdictLine
from byhand.model import Model
from byhand.plan import WEIGHT, Step
from byhand.spec import BlockSpec
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.explaining.chapter import Chapter
    from byhand.models.records import TrainingRecord

PENCIL, TOY, LARGE = "pencil", "toy", "large"  # how much a book shows, see `byhand.editions`
MOST_LAYERS = 4  # layers of a large model; if it has more, those in the middle are summarised

PrintedEnd = tuple[str, str, str]  # a printed stream's address, and its p(target) and loss


@dataclass(frozen=True)
class Edition:
    """Everything that the pages of one book are made from."""

    trace: Trace
    inventory: Inventory
    scale: str
    showing: Showing
    explained: Chapter
    command: str  # the reader's arguments to byhand for the same: tiny, or tiny 'b a'
    called: str = ""  # the reader's name of the model, or its path
    target: str | None = None  # given if it is not the model's own
    checked: tuple[VerdictLine, ...] = ()
    claims_from: str = ""  # a noun phrase for sentences
    printed_end: PrintedEnd | None = None
    asked: tuple[str, ...] = ()  # addresses whose numbers are always shown
    one_step: OneStep | None = None  # a training step on the text, where one is wanted
    record: TrainingRecord | None = None  # of the run that made the model, where there is one

    @property
    def model(self) -> Model:
        """The model of the book."""
        return self.trace.model

    @property
    def whole_command(self) -> str:
        """The command with the target, for the steps that need one."""
        return self.command + ("" if self.target is None else f" --target {quote(self.target)}")

    @property
    def everything(self) -> bool:
        """Whether the book holds every number."""
        return self.scale == PENCIL

    @property
    def last(self) -> int:
        """The position that worked entries follow: the last, or the one asked for."""
        return self.showing.followed

    def last_of(self, step: Step) -> int:
        """The position of a step's rows that is followed: of the source, its last."""
        return step.shape[step.position_axis or 0] - 1 if step.of_source else self.last

    def block_of(self, topic: Topic) -> BlockSpec:
        """The block of a topic: of the model, or of its encoder."""
        side = self.model.spec.encoder if topic.encoder else self.model.spec
        assert side is not None
        assert topic.layer is not None
        return side.blocks[topic.layer]

    @cached_property
    def topics(self) -> tuple[Topic, ...]:
        """The steps of the pass, grouped into the topics of passages."""
        return topics(self.trace.plan)

    @cached_property
    def layers_shown(self) -> tuple[int, ...]:
        """The layers with their own passages; the others are summarised."""
        layers = range(len(self.model.spec.blocks))
        if self.scale != LARGE or len(layers) <= MOST_LAYERS:
            return tuple(layers)
        asked = {topic.layer for topic in self.topics if self.asked_of(topic.addresses)}
        wanted = {0, layers[-1], *asked}
        return tuple(layer for layer in layers if layer in wanted)

    def asked_of(self, steps: Sequence[str]) -> tuple[str, ...]:
        """The requested addresses that lie in some steps or weights."""
        return tuple(address for address in self.asked if self._place(address) in steps)

    def _place(self, address: str) -> str:
        """The step or weight of an address, under its own name."""
        name = read_address(address).name
        return name if name.startswith(WEIGHT) else self.trace.plan[name].address

    @cached_property
    def first_reader(self) -> dict[str, str]:
        """Weight → the step that reads it first, where the weight is shown."""
        found: dict[str, str] = {}
        for step in self.trace.plan:
            for read in step.reads:
                if read.startswith(WEIGHT):
                    found.setdefault(read.removeprefix(WEIGHT), step.address)
        return found

    def checked_of(self, steps: Sequence[str]) -> tuple[VerdictLine, ...]:
        """The marked lines of a document about some steps, weights or counts."""
        known = self.trace.plan.known
        found = []
        for line in self.checked:
            name = line.address.partition("[")[0]
            if known.get(name, name) in steps:
                found.append(line)
        return tuple(found)

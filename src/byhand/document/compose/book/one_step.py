"""One training step of a book's text: losses, gradients and new weights, or why there are none.

`byhand.editions` works it out.  The backward pass has the stations of the forward pass, in reverse:
what flows back through a step belongs to that step's topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.strips import near
from byhand.document.compose.book.topics import Topic
from byhand.document.compose.short_names import VIA
from byhand.document.parts import NumberTable
from byhand.errors import ByhandError
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.optimizer import UPDATE, Rule
from byhand.plan import GRAD, WEIGHT, Plan, Step
from byhand.tracing import Trace
from byhand.worked import Worked

OF_ITS_OWN = {"row_dots": ".dot", "slope": ".slope"}  # operations on a step's own result


@dataclass(frozen=True)
class OneStep:
    """A step of an optimizer on one text.

    `known` has the numbers from the text to the new weights, as far as there are any; `again` is
    the pass with the new weights.  `why_not` says why something is not known.
    """

    rule: Rule
    known: Showing | None = None
    again: Trace | None = None
    why_not: str = ""
    error: ByhandError | None = None  # behind it, where there was one
    in_full: bool = False  # whether every line is shown as numbers, as on a worksheet

    @property
    def showing(self) -> Showing:
        """The numbers from the text to the new weights."""
        assert self.known is not None
        return self.known

    @property
    def trace(self) -> Trace:
        """The trace from the text to the new weights."""
        return self.showing.trace

    @property
    def after(self) -> Trace:
        """The pass with the new weights."""
        assert self.again is not None
        return self.again

    @property
    def measured(self) -> bool:
        """Whether the losses are known."""
        return self.known is not None and self.trace.mean_loss is not None

    @property
    def differentiated(self) -> bool:
        """Whether the gradients of all weights are known."""
        grads = self.gradients.values() if self.measured else ()
        return bool(grads) and all(worked.missing is None for worked in grads)

    @property
    def counted(self) -> tuple[int, ...]:
        """The positions whose next token counts."""
        targets = self.trace.targets or ()
        return tuple(place for place, target in enumerate(targets) if target != UNCOUNTED)

    def target(self, place: int) -> int:
        """The token that should come after a position."""
        assert self.trace.targets is not None
        return self.trace.targets[place]

    @cached_property
    def gradients(self) -> Mapping[str, Worked]:
        """The gradient of each weight, by the weight's name."""
        return dict(self._behind(GRAD + WEIGHT))

    @cached_property
    def new(self) -> Mapping[str, Worked]:
        """The new weights, by name."""
        return dict(self._behind(UPDATE + WEIGHT))

    @cached_property
    def moved(self) -> tuple[str, ...]:
        """The weights that move: those whose gradients are not all 0."""
        return tuple(name for name, grad in self.gradients.items() if np.any(near(grad)))

    def _behind(self, start: str) -> Iterator[tuple[str, Worked]]:
        for name, address in self.trace.plan.known.items():
            if name.startswith(start) and VIA not in name and address in self.trace.steps:
                yield name.removeprefix(start), self.trace.steps[address]

    @cached_property
    def passed(self) -> Mapping[str, tuple[Step, ...]]:
        """Step of the forward pass → the steps of the backward pass that lead through it."""
        plan, found = self.trace.plan, dict[str, list[Step]]()
        for step in plan:
            if step.stage == "backward":
                found.setdefault(passed_through(plan, step), []).append(step)
        return {address: tuple(steps) for address, steps in found.items()}

    def back_through(self, topic: Topic) -> list[Worked]:
        """The steps of the backward pass through a topic, in their order."""
        wanted = {s.address for address in topic.addresses for s in self.passed.get(address, ())}
        return [worked for worked in self.trace.values() if worked.address in wanted]


def tables_of(step: OneStep, worked: Worked) -> Iterator[NumberTable]:
    """The numbers of a step of learning under its short name; a word where all are 0."""
    showing, shape = step.showing, worked.step.shape
    title = showing.inside.names.of(worked.address)
    if not step.in_full and not np.any(near(worked)):
        columns = tuple(range(shape[-1]))
        axes, word = worked.step.axes, _("zeros")
        yield NumberTable(worked.address, title, axes, shape, columns, (), (), word=word)
        return
    for table in showing.tables(worked):
        yield replace(table, title=f"{title}, {table.title}" if table.title else title)


def passed_through(plan: Plan, step: Step) -> str:
    """The step of the forward pass that a gradient comes back through.

    A sum of terms belongs to the step that it is the gradient of: there they meet.
    """
    name = step.address.removeprefix(GRAD)
    if step.op in OF_ITS_OWN:
        return name.removesuffix(OF_ITS_OWN[step.op])
    read, via, reader = name.removesuffix(".heads").partition(VIA)
    if via:
        return reader
    if step.op == "total" and not read.startswith(WEIGHT):
        return read
    reader_of = (other.address for other in plan if read in other.reads)
    return next(reader_of, "") or _nearest_step(plan, read)


def _nearest_step(plan: Plan, name: str) -> str:
    """The step that a helper line of the backward pass is named after."""
    while name and name not in plan.known:
        name = name.rpartition(".")[0]
    return plan[name].address if name else ""

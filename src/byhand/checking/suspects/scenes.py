"""Scenes, drafts and edits: the context of a mistake, a plan being edited, the edited plan.

An `Edit` is a plan with a deliberate mistake.  A `Draft` writes such a plan: lines are changed, or
new lines (`suspect.0`, …) are written in before them.  A `Scene` is the input of all suspects: the
plan, the line that does not follow, and the claim.

The modules beside this one hold the mistakes; nothing here computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from byhand.model import Model
from byhand.optimizer import Rule
from byhand.plan import WEIGHT, Plan, Step
from byhand.spec import AttentionSpec, ModelSpec
from byhand.weights import Weights

SUSPECT = "suspect."
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Edit:
    """A plan with one mistake in it, and its wording."""

    kind: str  # a word of the catalogue
    sentence: str  # "it follows if GELU is the erf form; the model says tanh"
    change: str  # what to change in the port
    plan: Plan
    unlikely: int = 0  # orders edits that explain a claim equally well
    fitted: int = 0  # numbers that were read off the claim: each needs several entries to bear it
    read: bool = False  # whether it was read off the difference: a named mistake is preferred
    again: Callable[[Draft], None] | None = field(default=None, repr=False, compare=False)
    # makes the same mistake in another draft of the plan

    @property
    def price(self) -> tuple[int, bool, int]:
        """How much it assumes: numbers that were read off, a mistake without a name of its own."""
        return self.fitted, self.read, self.unlikely

    @property
    def changed(self) -> frozenset[str]:
        """The addresses of the lines that were written in."""
        return frozenset(step.address for step in self.plan if step.address.startswith(SUSPECT))


class Around(Protocol):
    """The numbers around a line, all in float64; None where there are none."""

    @property
    def claimed_steps(self) -> Sequence[str]:
        """The steps that are claimed as a whole, in spine order."""
        ...

    def claimed(self, address: str) -> Values | None:
        """What the claimant wrote for a step."""
        ...

    def expected(self, address: str) -> Values | None:
        """What follows for a claimed step from the lines above it."""
        ...

    def read(self, address: str) -> Values | None:
        """What later steps read: the claim where there is one, else what follows; or a weight."""
        ...

    def elsewhere(self, address: str) -> Sequence[Values]:
        """What the claimant wrote for the same step in the other texts of a batch."""
        ...


@dataclass(frozen=True)
class Context:
    """What is known about the claims besides the plan.

    `values` and `expected` are the claimed and the worked-out part, of one shape.  Slips of the pen
    are tried only if both are given.
    """

    claimed: frozenset[str] = frozenset()
    tokens: tuple[int, ...] = ()
    positions: tuple[int, ...] | None = None
    padding: tuple[int, int] = (0, 0)
    precision: str = "float32"
    by_hand: bool = False
    index: tuple[int | slice, ...] = ()
    values: Values | None = None
    expected: Values | None = None
    allowed: Values | None = None  # allowed error of each value
    slack: Values | float = 0.0  # how far the claimant's number may be from the written one
    targets: tuple[int, ...] | None = None  # the token that should come at each position, if known
    rule: Rule | None = None  # the optimizer, where claims are about its step
    moments: Mapping[str, Values] = field(default_factory=dict)  # of the step before, by address
    usual: Values | None = None  # one standard deviation of what rounding does to each value
    around: Around | None = None  # the numbers around the line


class Draft:
    """A plan being edited."""

    def __init__(self, plan: Plan, weights: Weights) -> None:
        self._plan = plan
        self._weights = weights
        self._lines: dict[str, Step] = {}
        self._before: dict[str, list[Step]] = {}
        self._moved: dict[str, str] = {}  # a line → the line that it moves before
        self._new: dict[str, Step] = {}

    def __getitem__(self, address: str) -> Step:
        """The line at an address, with the edits so far."""
        return self._lines.get(address) or self._plan[address]

    def write(
        self,
        before: str,
        op: str,
        inputs: Mapping[str, str],
        axes: tuple[str, ...],
        shape: tuple[int, ...],
        /,
        **attributes: Any,
    ) -> str:
        """Writes a new line before the line at `before`; returns its address."""
        address = f"{SUSPECT}{len(self._new)}"
        step = Step(address, op, dict(inputs), axes, shape, op, attributes)
        self._new[address] = step
        self._before.setdefault(before, []).append(step)
        return address

    def copy(self, before: str, step: Step, **reads: str) -> str:
        """Writes a copy of `step` with other inputs before a line; returns its address."""
        inputs = {**step.inputs, **reads}
        return self.write(before, step.op, inputs, step.axes, step.shape, **step.attributes)

    def change(
        self,
        address: str,
        *,
        op: str | None = None,
        inputs: Mapping[str, str | None] | None = None,
        only: bool = False,
        **attributes: Any,
    ) -> None:
        """Changes a line's operation, inputs or attributes; None removes one.

        With `only`, inputs and attributes are replaced as a whole.
        """
        step = self[address]
        reads: dict[str, str | None] = {**({} if only else step.inputs), **(inputs or {})}
        settings = {**({} if only else step.attributes), **attributes}
        self._lines[address] = replace(
            step,
            op=op or step.op,
            inputs={role: read for role, read in reads.items() if read is not None},
            attributes={name: value for name, value in settings.items() if value is not None},
        )

    def made_of(self, read: str, op: str, before: str, **attributes: Any) -> str:
        """Writes `op` applied to the value at `read` before a line; returns its address."""
        if read.startswith(WEIGHT):
            shape = self._weights[read.removeprefix(WEIGHT)].shape
            axes = tuple(f"axis {place}" for place in range(len(shape)))
        else:
            step = self._new.get(read) or self._plan[read]
            axes, shape = step.axes, step.shape
        axes, shape = _sides_after(op, axes, shape, attributes)
        return self.write(before, op, {"x": read}, axes, shape, **attributes)

    def first(self, address: str, role: str, op: str, **attributes: Any) -> None:
        """Makes the line read `op` applied to its input `role`."""
        new = self.made_of(self[address].inputs[role], op, address, **attributes)
        self.change(address, inputs={role: new})

    def reroute(self, address: str, old: str, new: str) -> None:
        """Makes the line read `new` wherever it read `old`."""
        step = self[address]
        self.change(
            address, inputs={role: new for role, read in step.inputs.items() if read == old}
        )

    def keep(self, address: str, read: str) -> None:
        """Makes the line a copy of the value at `read`."""
        self.change(address, op="keep", inputs={"x": read}, only=True)

    def then(self, address: str, op: str, **attributes: Any) -> None:
        """Replaces the line's result by `op` applied to it."""
        moved = self.aside(address)
        self.change(address, op=op, inputs={"x": moved}, only=True, **attributes)

    def aside(self, address: str) -> str:
        """Writes the unchanged line under a new address before itself; returns that address."""
        return self.copy(address, self[address])

    def sooner(self, address: str, *, before: str) -> None:
        """Moves a claimed line, which has no inputs, up before another line that will read it."""
        self._moved[address] = before

    def made(self) -> Plan:
        """The edited plan."""
        steps: list[Step] = []
        for step in self._plan:
            steps += (self[up] for up, to in self._moved.items() if to == step.address)
            if step.address in self._moved:
                continue
            steps += self._before.get(step.address, ())
            steps.append(self._lines.get(step.address, step))
        return Plan(self._plan.spec, self._plan.length, tuple(steps), self._plan.aliases)


def _sides_after(
    op: str, axes: tuple[str, ...], shape: tuple[int, ...], attributes: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The axes and the shape of a value after an operation that moves entries."""
    if op == "turned":
        order = attributes["axes"]
        return tuple(axes[place] for place in order), tuple(shape[place] for place in order)
    if op == "reread":
        shape = attributes["shape"]
        return tuple(f"axis {place}" for place in range(len(shape))), shape
    if op == "taken":
        axis = attributes["axis"]
        return axes, (*shape[:axis], len(attributes["order"]), *shape[axis + 1 :])
    return axes, shape


@dataclass(frozen=True)
class Scene:
    """A line that does not follow, and everything that an edit may need."""

    plan: Plan
    region: tuple[Step, ...]  # from the nearest claimed lines to the target, which is the last
    target: Step
    model: Model
    context: Context

    @property
    def spec(self) -> ModelSpec:
        """The model's architecture."""
        return self.plan.spec

    def draft(self) -> Draft:
        """A new draft of the plan."""
        return Draft(self.plan, self.model.weights)

    @cached_property
    def own_lines(self) -> tuple[Step, ...]:
        """The steps of the region that are the model's: not those that an edit wrote in."""
        return tuple(step for step in self.region if not step.address.startswith(SUSPECT))

    def of(self, *ops: str) -> tuple[Step, ...]:
        """The steps of the region with one of these operations."""
        return tuple(step for step in self.own_lines if step.op in ops)

    def named(self, *endings: str) -> tuple[Step, ...]:
        """The steps of the region whose address ends so."""
        return tuple(step for step in self.own_lines if step.address.endswith(endings))

    @cached_property
    def texts(self) -> tuple[slice, ...]:
        """The texts that stand side by side: positions begin again with each."""
        places = self.context.positions or tuple(range(self.plan.length))
        starts = [at for at, place in enumerate(places) if not at or place <= places[at - 1]]
        return tuple(map(slice, starts, (*starts[1:], len(places))))

    @cached_property
    def ratio(self) -> float | None:
        """The factor by which the claim is a multiple of what is expected, by least squares."""
        values, expected = self.context.values, self.context.expected
        if values is None or expected is None:
            return None
        there = np.isfinite(values) & np.isfinite(expected)
        own, claimed = expected[there], values[there]
        size = float(own @ own)
        ratio = float(own @ claimed) / size if size else 0.0
        return ratio if ratio and np.isfinite(ratio) else None

    @cached_property
    def inside(self) -> frozenset[str]:
        """The addresses of the region."""
        return frozenset(step.address for step in self.region)

    def has(self, address: str) -> bool:
        """Whether the plan has a step of this name, claimed or not."""
        return address in self.plan.known

    def own(self, address: str) -> str:
        """The step's own address, if it is known under a second name."""
        return self.plan.known[address]

    def layer(self, address: str) -> int | None:
        """The layer a step or weight belongs to."""
        parts = address.removeprefix(WEIGHT).split(".")
        return int(parts[1]) if parts[0] == "block" else None

    def attention(self, address: str) -> AttentionSpec:
        """The attention a step belongs to."""
        encoder = address.startswith("encoder.")
        side = self.spec.encoder if encoder else self.spec
        layer = self.layer(address.removeprefix("encoder."))
        assert side is not None
        assert layer is not None
        block = side.blocks[layer]
        attention = block.cross if ".cross." in address else block.attention
        assert attention is not None
        return attention

    def weight_shape(self, read: str) -> tuple[int, ...]:
        """The shape of a weight that a step reads."""
        return self.model.weights[read.removeprefix(WEIGHT)].shape

    def has_weight(self, read: str) -> bool:
        """Whether the model has such a weight."""
        return read.removeprefix(WEIGHT) in self.model.weights

    def entering(self, layer: int) -> str:
        """The address of the stream that enters a block."""
        return self.own(f"stream.{layer}")

"""Steps and plans: the working of a model before any number is known.

`forward.plan` writes a plan; `evaluate` works it out in a number system; `working` says how one
entry of a step comes about.  A plan is data: it can be pruned, edited and printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from byhand import names
from byhand.errors import AddressError, nearest
from byhand.language import _
from byhand.spec import ModelSpec

WEIGHT = "weight."
LOGPROBS = ("logprobs", "token_logprobs")  # the logarithms of the next tokens' probabilities
STANDINGS = ("ranks", "margins", "entropies")  # what claims say beside them; no steps of the plan
SCORES = ("scores", "table_scores")  # the operations that make attention scores
GRAD = "grad."  # before the name of a step or a weight: the gradient of the loss with respect to it


@dataclass(frozen=True, slots=True)
class Step:
    """One line of working: an operation on the steps and weights it reads."""

    address: str
    op: str  # a method of numbers.base.Numbers, or "given"
    inputs: Mapping[str, str]  # role → address of a step, or "weight." and a weight's name
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    formula: str
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reads(self) -> tuple[str, ...]:
        """The addresses that the step reads."""
        return tuple(self.inputs.values())

    @property
    def stage(self) -> str:
        """The part of the work that the step belongs to: "forward", "backward" or "update"."""
        head = self.address.partition(".")[0]
        return {"grad": "backward", "update": "update", "before": "update"}.get(head, "forward")

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The axes and the shape."""
        return self.axes, self.shape

    @property
    def position_axis(self) -> int | None:
        """The axis that runs over the text's positions, where there is one."""
        for name in ("query", "pos", "source_query", "source"):
            if name in self.axes:
                return self.axes.index(name)
        return None

    @property
    def of_source(self) -> bool:
        """Whether its rows are positions of the source, not of the text."""
        axis = self.position_axis
        return axis is not None and self.axes[axis] in ("source_query", "source")


@dataclass(frozen=True)
class Plan:
    """The steps of a model for one length, in spine order; `aliases` are second names."""

    spec: ModelSpec
    length: int
    steps: tuple[Step, ...]
    aliases: Mapping[str, str]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, address: str) -> Step:
        """The step at an address, under any of its names; an AddressError with the nearest."""
        name = self.known.get(address) or self._foreign.get(address)
        if name is not None:
            return self._by_address[name]
        raise AddressError(
            _("there is no step {name}").format(name=repr(address)),
            hint=nearest(address, self.known),
        )

    @cached_property
    def known(self) -> Mapping[str, str]:
        """Every name of byhand's own, aliases included, with the address of its step."""
        return {**{step.address: step.address for step in self.steps}, **self.aliases}

    @cached_property
    def _foreign(self) -> Mapping[str, str]:
        """The names that others have for the steps."""
        return names.steps(self.spec, self.known)

    @property
    def forward(self) -> Plan:
        """The plan of the forward pass alone."""
        return self.only(step.address for step in self.steps if step.stage == "forward")

    def in_style(self, style: str) -> Mapping[str, str]:
        """The name of each step in a style of `names.STYLES`, or its address where it has none."""
        found = names.names(style, self.spec, self.known)
        return {step.address: found.get(step.address, step.address) for step in self.steps}

    @cached_property
    def _by_address(self) -> dict[str, Step]:
        return {step.address: step for step in self.steps}

    def matching(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """The addresses that the patterns name: a step, a group (`block.0.attn`), or with *."""
        found: dict[str, None] = {}
        for pattern in patterns:
            addresses = [
                address
                for name, address in self.known.items()
                if fnmatchcase(name, pattern) or name.startswith(pattern + ".")
            ] or names.matching(pattern, self.spec, self.known)
            if not addresses:
                self[pattern]  # raises, with the nearest names
            found.update(dict.fromkeys(addresses))
        return tuple(step.address for step in self.steps if step.address in found)

    def only(self, addresses: Iterable[str], given: Iterable[str] = ()) -> Plan:
        """The plan of just these steps and what they need, but not what `given` steps need."""
        needed = {self[address].address for address in addresses}
        known = {self[address].address for address in given}
        for step in reversed(self.steps):
            if step.address in needed - known:
                needed.update(step.reads)
        steps = tuple(step for step in self.steps if step.address in needed)
        aliases = {name: to for name, to in self.aliases.items() if to in needed}
        return Plan(self.spec, self.length, steps, aliases)


def keys_and_values(plan: Plan) -> dict[str, str]:
    """The steps that attention reads as keys and values, by the address a later plan gives them.

    Those of the text alone: what is read of a source stays as it is.
    """
    found = {}
    for step, role in _keyed(plan):
        layer = step.address.rpartition(".")[0]
        if not step.of_source and not layer.endswith(".cross"):
            found[f"{layer}.past_{role}"] = step.inputs[role]
    return found


def keys_and_values_of_source(plan: Plan) -> tuple[str, ...]:
    """The steps that a decoder reads of its source as keys and values: the same for every text."""
    return tuple(
        step.inputs[role]
        for step, role in _keyed(plan)
        if step.address.rpartition(".")[0].endswith(".cross")
    )


def _keyed(plan: Plan) -> Iterator[tuple[Step, str]]:
    """The steps that read keys or values, each with the role of these."""
    for step in plan:
        if step.op == "scores" and "k" in step.inputs:
            yield step, "k"
        elif step.op == "mix":
            yield step, "v"


class Sheet:
    """The sheet of paper a plan is written on: collects lines, knows the sizes of the axes.

    The same lines may be written about another text: `about` is the same sheet with other axes.
    """

    def __init__(self, **sizes: int) -> None:
        self.sizes = dict(sizes)
        self.steps: list[Step] = []
        self.aliases: dict[str, str] = {}
        self.axes: Mapping[str, str] = {}

    def about(self, **axes: str) -> Sheet:
        """The same sheet, on which these axes have other names: `about(pos="source")`."""
        other = Sheet()
        other.sizes, other.steps, other.aliases = self.sizes, self.steps, self.aliases
        other.axes = axes
        return other

    def line(
        self,
        address: str,
        op: str,
        formula: str,
        axes: tuple[str, ...],
        reads: Mapping[str, str | None] | None = None,
        **attributes: Any,
    ) -> str:
        """Writes one step and returns its address; inputs and attributes of None are left out."""
        axes = tuple(self.axes.get(axis, axis) for axis in axes)
        shape = tuple(self.sizes[axis] for axis in axes)
        return self.shaped(address, op, formula, (axes, shape), reads, **attributes)

    def shaped(
        self,
        address: str,
        op: str,
        formula: str,
        sides: tuple[tuple[str, ...], tuple[int, ...]],
        reads: Mapping[str, str | None] | None = None,
        **attributes: Any,
    ) -> str:
        """Writes one step whose axes and shape are given; for the rest as `line`."""
        inputs = {role: read for role, read in (reads or {}).items() if read is not None}
        settings = {name: value for name, value in attributes.items() if value is not None}
        self.steps.append(Step(address, op, inputs, *sides, formula, settings))
        return address

    def also(self, alias: str, address: str) -> str:
        """Gives a step a second name; returns the step's address."""
        if alias != address:
            self.aliases[alias] = address
        return address

"""The sheet that a backward pass is written on: what reads what, and the terms gathered so far.

`backward` says what each operation gives back; here its lines get their addresses, and the terms of
what is read several times are added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from byhand.parameters import learned
from byhand.plan import GRAD, WEIGHT, Plan, Sheet, Step

Sides = tuple[tuple[str, ...], tuple[int, ...]]


class ReverseSheet:
    """The sheet of a backward pass: what reads what, and the gradients gathered so far."""

    def __init__(self, plan: Plan, root: str) -> None:
        self.plan = plan
        self.sheet = Sheet()
        self.weights: Mapping[str, Sides] = {
            WEIGHT + p.name: (p.axes, p.shape) for p in learned(plan.spec)
        }
        needed = plan.only([root])
        self.flowing: set[str] = set()  # the steps that lie between a learned weight and the loss
        for step in needed:
            if any(map(self.wanted, step.reads)):
                self.flowing.add(step.address)
        self.readers = Counter(read for step in needed for read in step.reads)
        self.terms: dict[str, dict[str, str]] = {}  # address → reader → the term that it gives
        self.begun_by: dict[str, list[str]] = {step.address: [] for step in plan}
        seen: set[str] = set()
        for step in needed:  # a weight's gradient is complete behind its first reader
            new = [read for read in step.reads if read in self.weights and read not in seen]
            self.begun_by[step.address] = new
            seen.update(new)

    def wanted(self, address: str) -> bool:
        """Whether a gradient flows to this step or weight."""
        return address in self.weights or address in self.flowing

    def sides(self, address: str) -> Sides:
        """The axes and the shape of a step or a weight."""
        return self.weights[address] if address in self.weights else self.plan[address].sides

    def term(self, read: str, reader: str) -> str:
        """The address of what flows back to `read` through `reader`."""
        return GRAD + read + (f".via.{reader}" if self.readers[read] > 1 else "")

    def both_passes(self) -> Plan:
        """The forward plan, followed by the lines written here, with the names of both."""
        plan, own = self.plan, self.sheet
        for alias, address in plan.aliases.items():
            if self.terms.get(address):
                own.also(GRAD + alias, own.aliases.get(GRAD + address, GRAD + address))
        aliases = {**plan.aliases, **own.aliases}
        return Plan(plan.spec, plan.length, (*plan.steps, *own.steps), aliases)

    def line(
        self,
        address: str,
        op: str,
        formula: str,
        sides: Sides,
        reads: Mapping[str, str | None],
        **attributes: Any,
    ) -> str:
        """Writes one step of the backward pass and returns its address."""
        return self.sheet.shaped(address, op, formula, sides, reads, **attributes)

    def give(
        self,
        step: Step,
        role: str,
        op: str,
        formula: str,
        reads: Mapping[str, str | None],
        **attributes: Any,
    ) -> None:
        """Writes what flows back to what `step` reads in this role, if anything does."""
        read = step.inputs.get(role, "")
        if self.wanted(read):
            address = self.term(read, step.address)
            self.pass_on(
                step, role, self.line(address, op, formula, self.sides(read), reads, **attributes)
            )

    def pass_on(self, step: Step, role: str, grad: str) -> None:
        """Takes a gradient as it is for what flows back to what `step` reads in this role."""
        read = step.inputs.get(role, "")
        if self.wanted(read):
            self.terms.setdefault(read, {})[step.address] = grad

    def gathered(self, address: str, sides: Sides) -> str | None:
        """The gradient of a step or weight: its only term, or the sum of its terms."""
        terms = self.terms.get(address)
        if not terms:
            return None
        if len(terms) == 1:
            (only,) = terms.values()
            self.sheet.also(GRAD + address, only)
            return only
        formula = " + ".join("via " + ".".join(reader.split(".")[-2:]) for reader in terms)
        roles = {f"term_{place}": term for place, term in enumerate(terms.values(), 1)}
        return self.line(GRAD + address, "total", formula, sides, roles)

"""The short names of steps and weights in formulas: q, W_q, and ∂q for the gradient of q."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from byhand.document.compose.forms import symbol_of
from byhand.expression import Entry, Expression, leaves
from byhand.optimizer import BEFORE, UPDATE
from byhand.plan import GRAD, WEIGHT, Plan, Step

VIA = ".via."
OWN = {"embed.token": "embed", "embed.position": "position", "stream.0": "x_0"}


def _apart(address: str, others: Iterable[str]) -> str:
    """The end of an address, two names or as many as tell it from the others."""
    parts = address.split(".")
    for count in range(2, len(parts)):
        end = ".".join(parts[-count:])
        if sum(other == end or other.endswith(f".{end}") for other in others) == 1:
            return end
    return address


class ShortNames:
    """The short names of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def inside(self, step: Step, tree: Expression) -> dict[str, str]:
        """Address → short name in its step's formula, for each address in a tree."""
        roles = {address: role for role, address in step.inputs.items()}
        addresses = dict.fromkeys(leaf.address for leaf in leaves(tree) if isinstance(leaf, Entry))
        if step.stage == "forward":
            names = {
                address: symbol_of(step, roles[address], address)
                if address.startswith(WEIGHT)
                else address.rpartition(".")[2]
                for address in addresses
            }
        else:
            names = {address: self.of(address) for address in addresses}
        often = Counter(names.values())
        return {
            address: _apart(address, names) if often[name] > 1 or name.isdigit() else name
            for address, name in names.items()
        }

    def of(self, address: str) -> str:
        """The short name of a step or a weight: W_q, ∂q, ∂W_q; W′_q for the new weight."""
        if address.startswith(WEIGHT):
            return self._symbols.get(address, "W")
        if address.startswith(GRAD):
            return self._gradient(address.removeprefix(GRAD))
        if address.startswith(UPDATE + WEIGHT):
            head, bar, index = self.of(address.removeprefix(UPDATE)).partition("_")
            return f"{head}′{bar}{index}"
        if (
            address.startswith((UPDATE, BEFORE)) and address.count(".") > 1
        ):  # update.m.W, before.m.W
            return address.split(".")[1]
        return OWN.get(address, address.rpartition(".")[2])

    def _gradient(self, name: str) -> str:
        ending = name.rpartition(".")[2]
        if ending in ("dot", "slope"):
            return ending
        if ending == "heads":
            return self._gradient(name.removesuffix(".heads")) + "_heads"
        read, via, reader = name.partition(VIA)
        return f"via_{reader.rpartition('.')[2]}" if via else f"∂{self.of(read)}"

    @cached_property
    def _symbols(self) -> dict[str, str]:
        """The symbol of each weight, as the step that first reads it writes it."""
        found: dict[str, str] = {}
        for step in self.plan:
            if step.stage == "forward":
                for role, address in step.inputs.items():
                    if address.startswith(WEIGHT):
                        found.setdefault(address, symbol_of(step, role, address))
        return found

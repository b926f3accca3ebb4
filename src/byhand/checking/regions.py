"""Regions of the plan: the steps between a claim and the claimed lines above it.

A line may claim only some rows of a step, for instance the last position.  Going back from a claim,
an operation needs the same positions of its inputs, except for keys and values, where it needs
all.  A step whose needed rows are all claimed is an edge: the steps above it do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from byhand.address import Index
from byhand.checking.claims import Claim, Truths
from byhand.plan import WEIGHT, Plan, Step

Rows = frozenset[int] | None  # positions; None: all of them
ACROSS = {  # operation and role: inputs that each position reads at all positions
    ("scores", "k"), ("mix", "v"), ("along_keys", "y"), ("along_queries", "x"),
    ("along_queries", "y"),
}  # fmt: skip


@dataclass(frozen=True)
class Region:
    """The steps from the claimed steps at the edge to a claim, whose own step is the last."""

    steps: tuple[Step, ...]
    edge: frozenset[str]
    met: Mapping[str, Rows]  # the claimed steps met, and their rows that are read

    def reads(self, step: Step, claim: Claim) -> bool:
        """Whether a claim about a met step covers rows that are read."""
        rows, claimed = self.met[step.address], rows_of(step, claim.index)
        return rows is None or claimed is None or bool(rows & claimed)


def covered(step: Step, claims: Sequence[Claim]) -> Truths | bool:
    """The entries of a step that the claims cover; True if they cover all."""
    if any(not claim.index and claim.claimed is None for claim in claims):
        return True
    seen = np.zeros(step.shape, dtype=bool)
    for claim in claims:
        seen[claim.index] |= True if claim.claimed is None else claim.claimed
    return seen


def complete(step: Step, claims: Sequence[Claim]) -> bool:
    """Whether the claims together cover every entry of a step."""
    whole = any(not claim.index and claim.claimed is None for claim in claims)
    if not whole and sum(np.size(claim.values) for claim in claims) < prod(step.shape):
        return False
    return bool(np.all(covered(step, claims)))


def region(plan: Plan, claims: Mapping[str, Sequence[Claim]], target: str, index: Index) -> Region:
    """The region of a claim about a part of a step."""
    needed: dict[str, Rows] = {target: rows_of(plan[target], index)}
    steps: list[Step] = []
    edge: set[str] = set()
    met: dict[str, Rows] = {}
    for step in reversed(plan.steps):
        if step.address not in needed or step.op == "given":
            continue
        rows = needed[step.address]
        if step.address != target and step.address in claims:
            met[step.address] = rows
            if _claimed(step, claims[step.address], rows):
                edge.add(step.address)
                continue
        steps.append(step)
        for role, read in step.inputs.items():
            if not read.startswith(WEIGHT):
                wanted = _wanted(step, role, plan[read], rows)
                needed[read] = _together(needed[read], wanted) if read in needed else wanted
    return Region(tuple(reversed(steps)), frozenset(edge), met)


def nearest_claimed(plan: Plan, claimed: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each step, the nearest claimed steps that it is worked out from."""
    known = frozenset(claimed)
    above: dict[str, frozenset[str]] = {}
    for step in plan:
        found: set[str] = set()
        for read in step.reads:
            if read in known:
                found.add(read)
            elif not read.startswith(WEIGHT):
                found |= above.get(read, frozenset())
        above[step.address] = frozenset(found)
    return above


def rows_of(step: Step, index: Index) -> Rows:
    """The positions that an index cuts out of a step."""
    axis = step.position_axis
    if axis is None or len(index) <= axis:
        return None
    cut, count = index[axis], step.shape[axis]
    return frozenset(range(count)[cut]) if isinstance(cut, slice) else frozenset((cut % count,))


def _wanted(step: Step, role: str, read: Step, rows: Rows) -> Rows:
    """The positions needed of an input, for these positions of the step that reads it.

    A position reads only the same position, except for keys and values; a loss reads the last.
    """
    if read.position_axis is None:
        return None
    if step.op == "loss":
        return frozenset((read.shape[read.position_axis] - 1,))
    across = (step.op, role) in ACROSS
    return None if across or step.position_axis is None else rows


def _together(some: Rows, others: Rows) -> Rows:
    return None if some is None or others is None else some | others


def _claimed(step: Step, claims: Sequence[Claim], rows: Rows) -> bool:
    """Whether every entry of these rows is claimed."""
    if not claims:
        return False
    seen = covered(step, claims)
    if isinstance(seen, bool):
        return seen
    axis = step.position_axis
    if rows is not None and axis is not None:
        seen = np.take(seen, sorted(rows), axis=axis)
    return bool(seen.all())

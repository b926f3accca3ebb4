"""The settings of a plan as cells: the eps of each norm, the scale of each attention's scores.

They stand beside the step that reads them, as a weight does.  So a reader changes one and watches
the pass, and the gradients, follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from byhand.expression import Entry, Expression, Number
from byhand.plan import GRAD, Plan, Step

EPS, SCALE = "~eps", "~scale"


def settings_of(step: Step) -> Iterator[tuple[str, Expression]]:
    """The settings of a step of the forward pass: the address of the cell, and what is in it."""
    if step.stage != "forward":
        return
    if step.op == "root":
        yield step.address + EPS, Number(step.attributes["eps"])
    if step.op == "scores" and step.attributes.get("scale") is not None:
        yield step.address + SCALE, step.attributes["scale"]


def defined(address: str) -> str:
    """The name of a table in the file: a setting's, with a point for its mark."""
    return address.replace("~", ".") if address.endswith((EPS, SCALE)) else address


def read_from_cells(plan: Plan) -> Plan:
    """The plan whose scales, forth and back, are the numbers in these cells."""
    cells = {
        step.address: Entry(address, (0,))
        for step in plan
        for address, _value in settings_of(step)
        if address.endswith(SCALE)
    }
    steps = []
    for step in plan:
        of = _scores_behind(step, cells)
        if of is not None:
            step = replace(step, attributes={**step.attributes, "scale": cells[of]})
        steps.append(step)
    return replace(plan, steps=tuple(steps))


def _scores_behind(step: Step, cells: dict[str, Entry]) -> str | None:
    """The scores whose scale a step reads: its own, or those that its gradient comes from."""
    if step.attributes.get("scale") is None:
        return None
    if step.address in cells:
        return step.address
    names = [step.address, *step.inputs.values()]
    behind = [
        scores for scores in cells for name in names if name.startswith(GRAD) and scores in name
    ]
    return max(behind, key=len, default=None)

"""A plan with fewer, larger steps: every norm one step, every attention one step.

Training needs no number inside a norm or an attention, and torch has both as one operation.  The
transformer is not written again: the steps of the plan are replaced by one that gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.plan import Plan, Step

INSIDE = {  # what stands inside a norm, in the order of its steps
    "layernorm": ("mean", "centered", "variance", "std", "normalized", "out"),
    "rmsnorm": ("mean_square", "rms", "normalized", "out"),
}


def fused(plan: Plan) -> Plan:
    """The same working, without the steps inside norms and attentions.

    The step that is left has the address of the last one it replaces: `.out` of a norm (or
    `.normalized`, where there is neither gain nor bias), `.mixed` of an attention.
    """
    known = {step.address: step for step in plan}
    instead: dict[str, Step] = {}
    gone: set[str] = set()
    for step in plan:
        group = _norm(step, known) or _attention(step, known)
        if group is not None:
            whole, *inside = group
            instead[whole.address] = whole
            gone.update(inside)
    steps = tuple(instead.get(s.address, s) for s in plan if s.address not in gone)
    aliases = {name: to for name, to in plan.aliases.items() if to not in gone}
    return Plan(plan.spec, plan.length, steps, aliases)


def _norm(first: Step, known: Mapping[str, Step]) -> tuple[Any, ...] | None:
    """(the whole norm as a step, the addresses it makes superfluous), from its first step."""
    at, _dot, name = first.address.rpartition(".")
    kind = next((kind for kind, inside in INSIDE.items() if inside[0] == name), None)
    if kind is None:
        return None
    steps = [known[f"{at}.{part}"] for part in INSIDE[kind] if f"{at}.{part}" in known]
    last = steps[-1]
    roles = {role: read for role, read in last.inputs.items() if role in ("gain", "bias")}
    eps = next(step.attributes["eps"] for step in steps if step.op == "root")
    whole = Step(
        last.address,
        kind,
        {"x": first.inputs["x"], **roles},
        last.axes,
        last.shape,
        kind,
        {"eps": eps},
    )
    return whole, *(step.address for step in steps[:-1])


def _attention(scores: Step, known: Mapping[str, Step]) -> tuple[Any, ...] | None:
    """(scores, softmax and mix as one step, the addresses it makes superfluous)."""
    if scores.op != "scores":
        return None
    at = scores.address.removesuffix(".scores")
    weights, mixed = known[f"{at}.weights"], known[f"{at}.mixed"]
    inputs = {**scores.inputs, "v": mixed.inputs["v"]}
    whole = Step(
        mixed.address, "attend", inputs, mixed.axes, mixed.shape, "attend", scores.attributes
    )
    return whole, scores.address, weights.address

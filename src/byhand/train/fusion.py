"""The fusion of plan steps for training: every norm is one step, every attention one step.

Training needs no number inside a norm or an attention, and torch has each as one operation.  The
transformer is not written again: steps of the plan are replaced by one step with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.plan import SCORES, Plan, Step

INSIDE = {  # what stands inside a norm, in the order of its steps
    "layernorm": ("mean", "centered", "variance", "std", "normalized", "out"),
    "rmsnorm": ("mean_square", "rms", "normalized", "out"),
}


def fused(plan: Plan) -> Plan:
    """The same plan, with each norm and each attention as one step.

    The new step has the address of the last one it replaces: `.out` of a norm (`.normalized`
    without gain and bias), `.mixed` of an attention.  A plain attention begins with its matrices,
    others with q, k and v.
    """
    known = {step.address: step for step in plan}
    instead: dict[str, Step] = {}
    gone: set[str] = set()
    for step in plan:
        group = _norm(step, known) or _self_attention(step, known) or _attention(step, known)
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
    if scores.op not in SCORES:
        return None
    at = scores.address.removesuffix(".scores")
    weights, mixed = known[f"{at}.weights"], known[f"{at}.mixed"]
    inputs = {**scores.inputs, "v": mixed.inputs["v"]}
    whole = Step(
        mixed.address, "attend", inputs, mixed.axes, mixed.shape, "attend", scores.attributes
    )
    return whole, scores.address, weights.address


def _self_attention(scores: Step, known: Mapping[str, Step]) -> tuple[Any, ...] | None:
    """(an attention from the stream it reads to `mixed` as one step, …), where it is plain.

    A plain attention has one matrix each for q, k and v, and as many key heads as query heads.  q
    and k are turned alike or not at all, and nothing is added to the scores.
    """
    if scores.op != "scores" or scores.inputs.keys() - {"q", "k"}:
        return None
    at = scores.address.removesuffix(".scores")
    weights, mixed = known[f"{at}.weights"], known[f"{at}.mixed"]
    q, q_turned = _projected(known[scores.inputs["q"]], known)
    k, k_turned = _projected(known[scores.inputs["k"]], known)
    v, v_turned = _projected(known[mixed.inputs["v"]], known)
    plain = all(part is not None and part.op == "linear" for part in (q, k, v))
    if not plain or v_turned or q_turned != k_turned:
        return None
    if not q_turned.keys().isdisjoint(("frequencies", "magnitude")):
        return None
    assert q is not None
    assert k is not None
    assert v is not None
    parts = {"q": q, "k": k, "v": v}
    if len({part.inputs["x"] for part in parts.values()}) > 1 or q.shape != k.shape:
        return None
    if q_turned and q.shape[-1] % 2:  # pairs of entries are turned as one complex number
        return None
    inputs = {"x": q.inputs["x"]}
    for name, part in parts.items():
        inputs[name] = part.inputs["weight"]
        if "bias" in part.inputs:
            inputs[f"{name}_bias"] = part.inputs["bias"]
    settings = {
        "layout": q.attributes["layout"],
        "heads": q.attributes["heads"],
        "mask": scores.attributes["mask"],
        "scale": scores.attributes.get("scale"),
        **q_turned,
    }
    whole = Step(
        mixed.address, "self_attention", inputs, mixed.axes, mixed.shape, "attend",
        {name: value for name, value in settings.items() if value is not None},
    )  # fmt: skip
    gone = [part.address for part in parts.values()]
    gone += [scores.inputs["q"], scores.inputs["k"]] if q_turned else []
    return whole, *gone, scores.address, weights.address


def _projected(step: Step, known: Mapping[str, Step]) -> tuple[Step | None, dict[str, Any]]:
    """(the matrix product q, k or v comes from, how it was turned after it)."""
    if step.op != "rotate":
        return step, {}
    turned = dict(step.attributes)
    if "frequencies" in step.inputs:
        turned["frequencies"] = step.inputs["frequencies"]
    return known.get(step.inputs["x"]), turned

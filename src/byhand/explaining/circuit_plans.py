"""The plans of QK and OV, over a list of tokens instead of a text.

The block reads the embedding.  Each plan is made from lines of `forward.plan`, with other
positions, another mask, and steps left out or rewired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from byhand import forward
from byhand.plan import SCORES, Plan, Step
from byhand.spec import ModelSpec


def scores_plan(spec: ModelSpec, layer: int, count: int, places: tuple[int, int]) -> Plan:
    """The scores of every token against every token; at two places, keys come before queries."""
    query, key = places
    positions = (key,) * count + (query,) * count if query != key else (key,) * count
    plan = forward.plan(spec, len(positions), positions=positions)
    return _reading_embedding(plan, layer, f"block.{layer}.attn.scores")


def head_outputs_plan(spec: ModelSpec, layer: int, count: int, key: int) -> Plan:
    """Each head's output where each token looks at itself alone.

    It has no table of scores: a token that may not see itself may be seen by other tokens.
    """
    alone = tuple(tuple(one == other for other in range(count)) for one in range(count))
    plan = forward.plan(spec, count, positions=(key,) * count, mask=alone, head_outputs=True)
    return _reading_embedding(_without_tables(plan), layer, f"block.{layer}.attn.head_out")


def unembedding_plan(spec: ModelSpec, layer: int, rows: int, norms: Sequence[str]) -> Plan:
    """The lines from a head's output to the logits, without scales and biases."""
    whole = forward.plan(spec, rows, positions=(0,) * rows)
    entering = whole[f"block.{layer}.attn.out"]
    lines: list[Step] = [replace(entering, op="given", inputs={}, attributes={})]
    for at in norms:
        if f"{at}.centered" in whole.known:
            x = lines[-1].address
            lines.append(replace(whole[f"{at}.mean"], inputs={"x": x}))
            mean = lines[-1].address
            lines.append(replace(whole[f"{at}.centered"], inputs={"x": x, "mean": mean}))
        out = whole[f"{at}.out"]
        if "gain" in out.inputs:
            reads = {"x": lines[-1].address, "gain": out.inputs["gain"]}
            lines.append(replace(out, inputs=reads))
    logits = whole["head.out" if "head.out" in whole.known else "logits"]
    reads = {"x": lines[-1].address, "weight": logits.inputs["weight"]}
    lines.append(replace(logits, inputs=reads))
    return Plan(spec, rows, tuple(lines), {})


def norms_passed(spec: ModelSpec, layer: int) -> tuple[str, ...]:
    """The norms that the stream passes from a layer's attention to the logits."""
    passed = []
    for later, block in enumerate(spec.blocks[layer:], start=layer):
        if block.norm_place == "post":
            passed += [
                f"block.{later}.{name}.norm" for name, norm in block.trips if norm.kind != "none"
            ]
    if spec.final_norm.kind != "none":
        passed.append("final.norm")
    return tuple(passed)


def _without_tables(plan: Plan) -> Plan:
    """The plan without tables of scores."""
    steps = (
        replace(step, inputs={role: read for role, read in step.inputs.items() if role != "table"})
        if step.op in SCORES
        else step
        for step in plan
    )
    return replace(plan, steps=tuple(steps))


def _reading_embedding(plan: Plan, layer: int, wanted: str) -> Plan:
    """The steps that `wanted` needs, where its block reads the embedding."""
    source, entering = plan["stream.0"].address, plan[f"stream.{layer}"].address
    before = plan.only([source]).steps
    known = {step.address for step in before} | {entering}
    steps = [step for step in plan.only([wanted], given=[entering]) if step.address not in known]
    rewired = (
        replace(step, inputs={role: source if read == entering else read
                              for role, read in step.inputs.items()})
        for step in steps
    )  # fmt: skip
    return Plan(plan.spec, plan.length, (*before, *rewired), {})

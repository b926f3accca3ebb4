"""The plans behind claims: with every step that is claimed, or with every step that can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from byhand import forward
from byhand.checking.claims import ClaimedText
from byhand.checking.matches.learned import every_name, learning_plan
from byhand.checking.matches.texts import Row
from byhand.model import Model
from byhand.optimizer import Rule
from byhand.passes import Mask
from byhand.plan import Plan
from byhand.reading import beside


def plan_for(claimed: ClaimedText, model: Model) -> Plan:
    """The plan with every step that is claimed, and with the claimed masks."""
    plan = forward.plan(
        model.spec,
        len(claimed.tokens),
        positions=claimed.positions,
        **beside(claimed.source, claimed.segments),
        target=claimed.target is not None,
        losses=claimed.targets is not None,
        logprobs=any(claim.address == "logprobs" for claim in claimed.claims),
        head_outputs=any(claim.address.endswith(".head_out") for claim in claimed.claims),
    )
    if claimed.masks is not None:
        plan = _masked_by(plan, claimed.masks)
    if not claimed.learning:
        return plan
    return learning_plan(plan, claimed.rule, {claim.address for claim in claimed.claims})


def _masked_by(plan: Plan, masks: Sequence[Mask]) -> Plan:
    """The plan with other masks, one for each block."""
    given = {f"block.{layer}.attn.scores": mask for layer, mask in enumerate(masks)}
    steps = tuple(
        replace(step, attributes={**step.attributes, "mask": given[step.address]})
        if step.address in given
        else step
        for step in plan
    )
    return replace(plan, steps=steps)


def widest_plan(model: Model, rows: tuple[Row, ...], learns: bool, rule: Rule | None) -> Plan:
    """The plan for the dump's full length, with all possible steps."""
    width = rows[0].width  # only shapes are read from it, so any positions will do
    positions = (0,) * width
    plan = forward.plan(
        model.spec,
        width,
        positions=positions,
        target=True,
        losses=learns,
        logprobs=learns,
        head_outputs=True,
        source=rows[0].read_width,
    )
    return every_name(plan, rule) if learns else plan

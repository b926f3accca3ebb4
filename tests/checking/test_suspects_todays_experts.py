"""Mistakes in routers with groups and a bias, shared experts and limited MLPs: each is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import byhand
from budgets import LONG
from byhand import forward
from byhand.checking.verdicts import Marked
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.numbers.floats import Floats
from byhand.parameters import parameters
from byhand.plan import Plan, Step
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

IDS = (3, 1, 4, 1, 5, 9, 2, 6)
NORM = NormSpec("rmsnorm", Fraction(1, 100_000), bias=False)
MLPS = {
    "deepseek": MlpSpec(
        7, "silu", gated=True, experts=6, chosen=3, scoring="sigmoid", choice_bias=True, groups=3,
        groups_chosen=2, group_rule="top2", share_scale=Fraction("2.3"),
        share_eps=Fraction(1, 10**20), shared=9,
    ),
    "qwen": MlpSpec(
        7, "silu", gated=True, experts=5, chosen=2, normalised=False, shared=9, shared_gate=True
    ),
    "gpt_oss": MlpSpec(
        7, "quick_gelu", gated=True, experts=5, chosen=2, hidden_bias=True, gate_bias=True,
        out_bias=True, router_bias=True, limit=Fraction("0.7"), hidden_plus=Fraction(1),
    ),
}  # fmt: skip
CLAIMED = (
    "block.0.mlp.norm.out", "block.0.mlp.router", "block.0.mlp.chosen", "block.0.mlp.shares",
    "block.0.mlp.combined", "block.0.mlp.shared.out", "block.0.mlp.shared.score",
    "block.0.mlp.out", "logits",
)  # fmt: skip


@cache
def model(family: str) -> Model:
    block = BlockSpec(AttentionSpec(2, 4, 1, over_root(4)), MLPS[family], NORM, NORM)
    spec = ModelSpec(family, 11, 8, None, (block,), final_norm=NORM, layout="out_in")
    rng = np.random.default_rng(3)
    drawn = {p.name: rng.standard_normal(p.shape).astype(np.float32) for p in parameters(spec)}
    return Model(spec, Weights({n: Tensor(n, x) for n, x in drawn.items()}), Ids(spec.vocab))


Change = Callable[[Step], Step]


def first_wrong(family: str, at: str, change: Change) -> Marked:
    """The first wrong line of a float32 run of a plan with one line changed."""
    subject = model(family)
    plan = forward.plan(subject.spec, len(IDS))
    steps = tuple(change(s) if s.address == f"block.0.mlp.{at}" else s for s in plan)
    wrong = Plan(plan.spec, plan.length, steps, plan.aliases)
    assert wrong != plan
    done = work_out(wrong, subject.weights, IDS, Floats("float32"))
    claims = {name: np.asarray(done[name]) for name in CLAIMED if name in done}
    text = " ".join(map(str, IDS))
    marking = byhand.check(subject, claims, text=text, precision="float32")
    assert marking.first_error is not None
    return marking.first_error


def reading(**inputs: str) -> Change:
    new = {role: f"block.0.mlp.{name}" for role, name in inputs.items()}
    return lambda step: replace(step, inputs={**step.inputs, **new})


def setting(op: str | None = None, **attributes: Any) -> Change:
    def change(step: Step) -> Step:
        kept = {**step.attributes, **attributes}
        left = {name: value for name, value in kept.items() if value is not None}
        return replace(step, op=op or step.op, attributes=left)

    return change


def copying(step: Step) -> Step:
    """The line as its first input: it is scaled by 1."""
    first = dict([next(iter(step.inputs.items()))])
    return replace(step, op="activate", inputs=first, attributes={"kind": "identity"})


NO_GROUPS = {"groups": None, "groups_chosen": None, "group_rule": None}
CASES: tuple[tuple[str, str, Change, str, str], ...] = (
    ("deepseek", "shares", reading(x="ranked"), "shares", "bias of the choice is in the shares"),
    ("deepseek", "chosen", reading(x="router_scores"), "chosen", "bias of the choice is left out"),
    ("deepseek", "chosen", setting(**NO_GROUPS), "chosen", "best 3 of all experts are chosen"),
    ("deepseek", "chosen", setting(group_rule="max"), "chosen", "group counts by its best expert"),
    ("deepseek", "chosen", setting(groups_chosen=3), "chosen", "best 3 of all experts are chosen"),
    ("deepseek", "shares", setting(normalised=False), "shares", "the scores themselves; the model"),
    ("deepseek", "shares", setting(scale=None), "shares", "are not multiplied by 2.3"),
    ("deepseek", "router_scores", setting(op="softmax", kind=None), "chosen", "scores are a softm"),
    ("deepseek", "out", copying, "out", "the shared expert is left out"),
    ("qwen", "shared.weighed", copying, "out", "the shared expert's answer counts whole"),
    ("qwen", "shares", setting(normalised=True), "shares", "the chosen experts, which sum to 1"),
    ("gpt_oss", "gate_limited", copying, "out", "limit 0.7 is left out"),
    ("gpt_oss", "gate_limited", setting(least=Fraction("-0.7")), "out", "limited on both sides"),
    ("gpt_oss", "hidden_limited", setting(least=None), "out", "limited from above alone"),
    ("gpt_oss", "raised", copying, "out", "1 is not added; the model multiplies act(gate) by up"),
    ("gpt_oss", "act", setting(kind="silu"), "out", "the activation is SiLU; the model says quick"),
)  # fmt: skip


@pytest.mark.parametrize(("family", "at", "change", "shows", "says"), CASES if LONG else CASES[::2])
def test_a_mistake_of_todays_experts_is_found_and_named(
    family: str, at: str, change: Change, shows: str, says: str
) -> None:
    line = first_wrong(family, at, change)
    assert line.address == f"block.0.mlp.{shows}"
    assert says in line.suspects[0].sentence, [each.sentence for each in line.suspects]

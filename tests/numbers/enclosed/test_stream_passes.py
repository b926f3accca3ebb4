"""Passes along the stream: which sublayers they know, and what they say beside the steps' rules."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_limbs_passes import LAYERNORM, RMSNORM, gpt2, neox, post_norm, random_weights

from budgets import LONG
from byhand import forward, stream_passes
from byhand.evaluate import Admitted, work_out
from byhand.models import open_model
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.plan import Plan
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, RotarySpec, over_root
from byhand.weights import Weights

SEEDS = range(60) if LONG else (1,)
DATA = Path(os.environ.get("BYHAND_DATA", Path(__file__).parents[4] / "shared" / "data"))
STORIES = DATA / "stories260K"


def llama(layers: int, d: int = 24) -> ModelSpec:
    attention = AttentionSpec(
        heads=4, d_head=d // 4, kv_heads=2, scale=over_root(d // 4), rotary=RotarySpec(d // 4)
    )
    block = BlockSpec(attention, MlpSpec(2 * d, "silu", gated=True), RMSNORM, RMSNORM)
    return ModelSpec(
        "llama", 40, d, 64, (block,) * layers, final_norm=RMSNORM, tied=False, layout="out_in"
    )


def bare(layers: int, d: int = 24) -> ModelSpec:
    """A norm in front of the end alone."""
    attention = AttentionSpec(heads=2, d_head=8, kv_heads=2, scale=over_root(8))
    block = BlockSpec(attention, MlpSpec(30, "relu"))
    return ModelSpec("bare", 40, d, 64, (block,) * layers, final_norm=LAYERNORM)


def narrow(layers: int, d: int = 8) -> ModelSpec:
    """Values narrower than queries, and relu²."""
    attention = AttentionSpec(heads=2, d_head=4, kv_heads=1, scale=over_root(4), d_value=3)
    block = BlockSpec(attention, MlpSpec(9, "relu2"), RMSNORM, LAYERNORM)
    return ModelSpec("narrow", 12, d, 64, (block,) * layers, final_norm=RMSNORM)


SPECS: dict[str, Any] = {"gpt2": gpt2, "llama": llama, "narrow": narrow, "neox": neox}


def some(family: str, layers: int, length: int, seed: int = 0) -> tuple[Plan, Weights, Any]:
    random = np.random.default_rng(seed)
    spec = SPECS[family](layers)
    tokens = tuple(map(int, random.integers(0, spec.vocab, length)))
    return forward.plan(spec, length), random_weights(spec, random, "random"), tokens


@pytest.mark.parametrize(
    ("spec", "known"),
    [(gpt2(2), 4), (llama(2), 4), (neox(2), 4), (post_norm(2), 0), (bare(2), 0)],
    ids=lambda value: getattr(value, "name", None),
)
def test_sublayers_behind_a_norm_are_known(spec: ModelSpec, known: int) -> None:
    plan = forward.plan(spec, 3)
    found = [part.sublayer for part in stream_passes.stretches(plan) if part.sublayer]
    assert len(found) == known
    assert [one.kind for one in found] == ["attention", "mlp"] * (known // 2)
    every = [step.address for part in stream_passes.stretches(plan) for step in part.plan]
    assert set(every) == {step.address for step in plan}


@pytest.mark.parametrize("family", sorted(SPECS))
def test_both_ways_have_a_number_in_common_and_slopes_are_narrower(family: str) -> None:
    for seed in SEEDS:
        plan, weights, tokens = some(family, 3, 1 + 3 * (seed % 4), seed)
        numbers = Limbs(120)
        along, steps = (
            work_out(plan, weights, tokens, one, keep=["logits"])["logits"]
            for one in (numbers, numbers.step_by_step())
        )
        exact = work_out(plan, weights, tokens, Balls(500), keep=["logits"])["logits"]
        for index in np.ndindex(*along.step.shape):
            mine, other, truth = (one.at(index) for one in (along, steps, exact))
            assert mine.contains(truth)
            assert abs(mine.mid - other.mid) <= mine.rad + other.rad
        mine, other = (one.numbers.magnitudes(one.value)[1].max() for one in (along, steps))
        assert mine < other - 4, "bits narrower"


def test_an_enclosure_of_few_bits_claims_nothing_that_is_wrong() -> None:
    for bits in (4, 10, 16, 24) if LONG else (4, 16):
        plan, weights, tokens = some("llama", 2, 5)
        ours = work_out(plan, weights, tokens, Limbs(bits))["logits"]
        exact = work_out(plan, weights, tokens, Balls(300))["logits"]
        for index in np.ndindex(*ours.step.shape):
            found = ours.at(index)
            assert found.rad == float("inf") or found.contains(exact.at(index))


def test_steps_are_told_of_once_and_come_in_order() -> None:
    plan, weights, tokens = some("gpt2", 2, 3)
    told: list[str] = []
    sunk: list[str] = []
    work_out(
        plan, weights, tokens, Limbs(60), keep=["logits"],
        progress=lambda step: told.append(step.address), sink=lambda one: sunk.append(one.address),
    )  # fmt: skip
    every = {step.address for step in plan}
    assert set(told) == set(sunk) == every
    assert max(Counter(told).values()) == max(Counter(sunk).values()) == 1


def test_what_nobody_asks_for_is_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, weights, tokens = some("llama", 2, 3)
    mixed: list[int] = []
    softmax = Limbs.softmax

    def counted(self: Limbs, x: Any, **more: Any) -> Any:
        mixed.append(1)
        return softmax(self, x, **more)

    monkeypatch.setattr(Limbs, "softmax", counted)
    made = work_out(plan.only(["logits"]), weights, tokens, Limbs(60), keep=["logits"])
    assert list(made) == ["logits"]
    assert len(mixed) == 2  # from the middles of the stream, once in each layer
    whole = work_out(plan, weights, tokens, Limbs(60))
    assert len(whole) == len(plan.steps)
    assert len(mixed) == 2 + 2 * 2 + 1  # and again from the stream, and the probabilities


def test_weights_that_are_not_admitted_are_dropped_behind_their_last_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, weights, tokens = some("gpt2", 2, 3)
    dropped: list[str] = []
    drop = Admitted.drop

    def noted(self: Admitted, name: str) -> None:
        dropped.append(name)
        drop(self, name)

    monkeypatch.setattr(Admitted, "drop", noted)
    work_out(plan, weights, tokens, Limbs(60), keep=["logits"])
    assert set(dropped) == set(weights)


@pytest.mark.skipif(not STORIES.exists(), reason="the model stories260K is not here")
def test_a_trained_model_is_known_both_ways() -> None:
    model = open_model(STORIES)
    tokens = [1, 403, 407, 261, 378] + ([365, 400, 261, 397, 311] if LONG else [])
    plan, admitted = forward.plan(model.spec, len(tokens)), Admitted(model.weights, Limbs(64))
    numbers = Limbs(150)
    along, steps = (
        work_out(plan, admitted, tokens, one, keep=["logits"])["logits"]
        for one in (numbers, numbers.step_by_step())
    )
    middles, radii = zip(
        *(one.numbers.magnitudes(one.value) for one in (along, steps)), strict=True
    )
    assert middles[0].shape == (len(tokens), model.spec.vocab)
    assert radii[0].max() < radii[1].max() - 20  # 2^-101 and 2^-79
    for index in list(np.ndindex(*along.step.shape))[:: 1 if LONG else 7]:
        mine, other = along.at(index), steps.at(index)
        assert abs(mine.mid - other.mid) <= mine.rad + other.rad

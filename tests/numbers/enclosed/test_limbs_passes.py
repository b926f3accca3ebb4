"""Whole passes in `Limbs` contain the real values: against Arb, entry by entry, all architectures.

`make test` tries a selection; with BYHAND_LONG=1 in the environment a thousand and more.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand import forward
from byhand.evaluate import work_out
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs import matrices
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.parameters import parameters
from byhand.plan import Plan
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.weights import Tensor, Weights
from oracles.arb_pass import VANISHING, ArbPass
from oracles.architectures import Case, nasty, ordinary, spread

LONG = bool(os.environ.get("BYHAND_LONG"))
SMALL_PASSES = 900 if LONG else 12
LARGER_PASSES = 10 if LONG else 1


def as_floats(weights: Weights) -> Weights:
    """The same weights as float32; a table with absent entries stays one of objects."""
    made = {}
    for name, tensor in weights.items():
        rounded = np.array(
            [ABSENT if entry is ABSENT else _float32(entry) for entry in tensor.data.flat], object
        ).reshape(tensor.shape)
        absent = any(entry is ABSENT for entry in rounded.flat)
        made[name] = Tensor(name, rounded if absent else rounded.astype(np.float32))
    return Weights(made)


def _float32(entry: Any) -> float:
    return float(np.float32(float(entry))) if isinstance(entry, Fraction) else 0.75


def outside(numbers: Limbs, found: Any, real: Any) -> bool:
    """Whether a ball of the oracle is not inside the enclosure; what vanishes counts as zero."""
    if found.rad == math.inf:
        return False
    from flint import arb, ctx, fmpq

    with ctx.workprec(500):
        mid, rad = (arb(fmpq(x.numerator, x.denominator)) for x in (found.mid, found.rad))
        return not abs(real - mid) <= rad + VANISHING


def violations(case: Case, bits: int) -> tuple[list[str], int]:
    """The entries that are not contained, and how many were looked at."""
    weights, plan, numbers = as_floats(case.weights), case.plan(), Limbs(bits)
    oracle = ArbPass(plan, weights, case.tokens, case.target)
    steps = work_out(plan, weights, case.tokens, numbers, target=case.target)
    wrong, count = [], 0
    for step in plan:
        if step.op in ("given", "argmax"):
            continue
        entries = numbers.entries(steps[step.address].value)
        for index, real in oracle.values[step.address].items():
            if real is None:
                assert entries[index] is np.ma.masked
                continue
            count += 1
            if outside(numbers, entries[index], real):
                wrong.append(f"{step.address}{list(index)}: {entries[index]} without {real}")
    return wrong, count


def cases() -> Iterator[tuple[int, Case, int]]:
    kinds = [(ordinary, 40), (ordinary, 150), (nasty, 100)]
    for seed, (entry, bits) in enumerate(kinds):
        share = -(-SMALL_PASSES // len(kinds))
        for number, case in enumerate(spread(share, seed=seed, among=3, entry=entry)):
            yield number, case, bits


def test_small_passes_of_all_architectures_contain_the_real_values() -> None:
    tried = 0
    for _number, case, bits in cases():
        wrong, count = violations(case, bits)
        assert not wrong, f"{wrong[:3]}\n{case}"
        tried += count
    assert tried > 100 * SMALL_PASSES / 3


# ------------------------------------------------------------------ larger models, against Balls

LAYERNORM, RMSNORM = (
    NormSpec("layernorm", Fraction(1, 100000)),
    NormSpec("rmsnorm", Fraction(1, 10**6), bias=False),
)


def gpt2(layers: int, d: int = 24) -> ModelSpec:
    attention = AttentionSpec(
        heads=4, d_head=d // 4, kv_heads=4, scale=over_root(d // 4), q_bias=True, k_bias=True,
        v_bias=True, packed="concatenated", out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(4 * d, "gelu_tanh", hidden_bias=True, out_bias=True)
    block = BlockSpec(attention, mlp, LAYERNORM, LAYERNORM)
    return ModelSpec("gpt2", 40, d, 64, (block,) * layers, position="learned", final_norm=LAYERNORM)


def llama(layers: int, d: int = 24) -> ModelSpec:
    attention = AttentionSpec(
        heads=4, d_head=d // 4, kv_heads=2, scale=over_root(d // 4),
        rotary=RotarySpec(d // 4 // 2 * 2), q_norm=RMSNORM, k_norm=RMSNORM,
    )  # fmt: skip
    block = BlockSpec(attention, MlpSpec(2 * d, "silu", gated=True), RMSNORM, RMSNORM)
    return ModelSpec(
        "llama", 40, d, 64, (block,) * layers, final_norm=RMSNORM, tied=False, layout="out_in"
    )


def neox(layers: int, d: int = 24) -> ModelSpec:
    attention = AttentionSpec(
        heads=3, d_head=d // 3, kv_heads=3, scale=over_root(d // 3), rotary=RotarySpec(4),
        q_bias=True, k_bias=True, v_bias=True, packed="per_head", out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(4 * d, "gelu", hidden_bias=True, out_bias=True)
    block = BlockSpec(attention, mlp, LAYERNORM, LAYERNORM, parallel=True)
    return ModelSpec(
        "neox", 40, d, 64, (block,) * layers, final_norm=LAYERNORM, tied=False, layout="out_in"
    )


def post_norm(layers: int, d: int = 24) -> ModelSpec:
    attention = AttentionSpec(heads=2, d_head=8, kv_heads=1, scale=over_root(8), alibi=True)
    block = BlockSpec(attention, MlpSpec(30, "relu"), LAYERNORM, LAYERNORM, norm_place="post")
    return ModelSpec("post", 40, d, 64, (block,) * layers, position="sinusoidal")


SPECS = {"gpt2": gpt2, "llama": llama, "neox": neox, "post": post_norm}
KINDS = ("random", "outliers", "huge", "tiny", "flat", "float64", "bfloat16")


def random_weights(spec: ModelSpec, random: Any, kind: str) -> Weights:
    """Weights of some kind: with outlier channels, huge, tiny, with rows nearly all alike."""
    import ml_dtypes

    dtype: Any = {"float64": np.float64, "bfloat16": ml_dtypes.bfloat16}.get(kind, np.float32)
    size = {"huge": 2.0**20, "tiny": 2.0**-20}.get(kind, 1.0)
    channels = random.choice(spec.d_model, 2, replace=False)
    made = {}
    for parameter in parameters(spec):
        data = random.standard_normal(parameter.shape) / math.sqrt(max(4, parameter.shape[0]))
        if parameter.kind == "gain":
            data = 1 + data
        elif parameter.kind == "buffer":
            data = np.abs(data)
        else:
            data = data * size
        if kind == "flat" and parameter.name.startswith("embed"):
            data = 1 + data * 2.0**-16  # rows with nearly no variance
        if kind == "outliers" and parameter.shape[-1] == spec.d_model:
            data[..., channels] *= 100
        made[parameter.name] = Tensor(parameter.name, data.astype(dtype))
    return Weights(made)


def compare(
    plan: Plan, weights: Weights, tokens: Any, bits: int, device: str | None = None
) -> tuple[int, int]:
    """(entries looked at, entries known to 2^-10 of their size); each contains that of Balls."""
    numbers = Limbs(bits, device)
    oracle = Balls(2 * bits + 100)  # squares have twice the digits
    ours = work_out(plan, weights, tokens, numbers)
    real = work_out(plan, weights, tokens, oracle)
    count = sharp = 0
    for step in plan:
        if step.op in ("given", "argmax"):
            continue
        entries = numbers.entries(ours[step.address].value)
        truth = oracle.entries(real[step.address].value)
        places = list(np.ndindex(*step.shape))
        for index in places[:: max(1, len(places) // 200)]:
            value = truth[index]
            if value is None:
                continue
            count += 1
            assert entries[index].contains(value), f"{step.address}{list(index)}"
            sharp += entries[index].rad * 1024 <= abs(entries[index].mid)
    for mine, theirs in zip(ours["next"].value, real["next"].value, strict=True):
        assert not (mine.proven and theirs.proven) or mine.id == theirs.id
        if mine.proven:
            assert mine.margin.contains(theirs.margin)
    return count, sharp


FAMILIES = sorted(SPECS)
EVERY = [(family, kind) for family in FAMILIES for kind in KINDS]
# Each kind of weights in two families, each family with three kinds or more.
SOME = [(FAMILIES[(n + turn) % 4], kind) for turn in (0, 2) for n, kind in enumerate(KINDS)]


@pytest.mark.parametrize(("family", "kind"), EVERY if LONG else SOME)
def test_larger_passes_contain_the_real_values(family: str, kind: str) -> None:
    for seed in range(LARGER_PASSES):
        random = np.random.default_rng(seed)
        layers, length = ((3, 16) if seed % 3 == 0 else (2, 6)) if LONG else (1, 4)
        spec = SPECS[family](layers)
        weights = random_weights(spec, random, kind)
        tokens = tuple(map(int, random.integers(0, spec.vocab, length)))
        count, sharp = compare(forward.plan(spec, length), weights, tokens, 240)
        assert sharp > 0.8 * count, f"{sharp} of {count} are known well"


@pytest.mark.parametrize(("family", "kind"), [*zip(FAMILIES, ["random", "flat"] * 2, strict=True)])
def test_passes_on_tensors_contain_the_real_values(family: str, kind: str) -> None:
    random = np.random.default_rng(7)
    spec = SPECS[family](1)
    weights = random_weights(spec, random, kind)
    tokens = tuple(map(int, random.integers(0, spec.vocab, 4)))
    count, sharp = compare(forward.plan(spec, 4), weights, tokens, 240, "cpu")
    assert sharp > 0.8 * count, f"{sharp} of {count} are known well"


def test_a_long_sequence_contains_the_real_values() -> None:
    random = np.random.default_rng(1)
    spec = gpt2(1, 16)
    weights = random_weights(spec, random, "random")
    length = 60 if LONG else 24
    tokens = tuple(map(int, random.integers(0, spec.vocab, length)))
    compare(forward.plan(spec, length), weights, tokens, 90)


def test_a_near_tie_is_decided_with_enough_bits_and_left_open_with_few() -> None:
    spec = gpt2(1, 16)
    weights = random_weights(spec, np.random.default_rng(2), "random")
    table = weights["embed.token"].data.copy()
    table[7] = table[3]
    table[7, 0] = np.nextafter(table[3, 0], np.float32(9))  # a logit that differs in the last bit
    both = {**weights, "embed.token": Tensor("embed.token", table)}
    plan = forward.plan(spec, 3)
    numbers = Limbs(12), Limbs(150)
    few, many = (
        work_out(plan, Weights(both), (3, 7, 3), system)["next"].value for system in numbers
    )
    assert all(prediction.proven for prediction in many)
    for coarse, fine in zip(few, many, strict=True):
        if not coarse.proven:
            assert fine.id in coarse.candidates


def test_two_precisions_share_what_was_admitted_and_agree() -> None:
    from byhand.evaluate import Admitted

    spec = llama(1)
    weights = random_weights(spec, np.random.default_rng(3), "random")
    coarse = Limbs(60)
    fine = coarse.at(200)
    admitted = Admitted(weights, coarse)
    plan = forward.plan(spec, 4)
    rough = work_out(plan, admitted, (1, 2, 3, 4), coarse)["logits"].value
    sharp = work_out(plan, admitted, (1, 2, 3, 4), fine)["logits"].value
    for index in np.ndindex(4, 40):
        one, other = coarse.entries(rough)[index], fine.entries(sharp)[index]
        assert one.overlaps(other)
        assert other.rad < one.rad / 2**100


def test_torch_gives_the_same_midpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is rounded by BLAS: the last limbs of a product are, on a processor."""
    pytest.importorskip("torch")
    monkeypatch.setattr(matrices, "LEFT_OUT", -60)
    spec = llama(1)
    weights = random_weights(spec, np.random.default_rng(4), "random")
    plan = forward.plan(spec, 4)
    here, there = Limbs(100), Limbs(100, device="cpu")
    one, other = (work_out(plan, weights, (1, 2, 3, 4), numbers) for numbers in (here, there))
    for step in plan:
        if step.op in ("given", "argmax"):
            continue
        mine = here.entries(one[step.address].value)
        theirs = there.entries(other[step.address].value)
        for index in np.ndindex(*step.shape):
            if mine[index] is np.ma.masked:
                assert theirs[index] is np.ma.masked
                continue
            assert mine[index].mid == theirs[index].mid
            assert mine[index].rad == pytest.approx(theirs[index].rad, rel=1e-9)


def test_cached_keys_and_values_stand_in_for_the_tokens_before() -> None:
    """Positions 2 and 3 with the keys and values of a pass over all four: the same logits."""
    spec = llama(1)
    weights = random_weights(spec, np.random.default_rng(5), "random")
    numbers = Limbs(150)
    whole = work_out(forward.plan(spec, 4), weights, (1, 2, 3, 4), numbers)
    start = work_out(forward.plan(spec, 2), weights, (1, 2), numbers)
    plan = forward.plan(spec, 2, past=2)
    past = {
        f"block.0.attn.past_{name}": start[address]
        for name, address in (("k", "block.0.attn.k_rotated"), ("v", "block.0.attn.v"))
    }
    after = work_out(plan, weights, (3, 4), numbers, given=past)
    mine, theirs = (numbers.entries(steps["logits"].value) for steps in (after, whole))
    for index in np.ndindex(2, 40):
        assert mine[index].overlaps(theirs[index[0] + 2, index[1]])
        assert mine[index].rad < 2.0**-100

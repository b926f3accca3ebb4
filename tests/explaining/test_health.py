"""Health: sizes, angles, entropies, ranks and units against Arb, NumPy and torch."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import exp, inf, isclose, log, nan, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx
from hypothesis import given, settings
from lens_models import FAMILIES, TEXT, cases, gpt2_like, random_model, trace_of, with_weight

from byhand.evaluate import trace
from byhand.explaining.health import (
    health,
    measure_pattern,
    measure_units,
    root_mean_square,
)
from byhand.explaining.projections import cosine
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec
from oracles.architectures import Case
from oracles.torch_pass import TorchPass

NEAR = {"rel_tol": 1e-12, "abs_tol": 1e-12}


def near(found: Any, expected: torch.Tensor) -> bool:
    return np.allclose(found, expected, rtol=0, atol=1e-12)


def pattern(*rows: tuple[float | None, ...]) -> Any:
    """The measures of a pattern in which None is masked."""
    weights = np.array([[nan if x is None else x for x in row] for row in rows])
    return measure_pattern(0, weights, np.array([[x is None for x in row] for row in rows]))


# ------------------------------------------------------------------ with a pencil


def test_tiny_by_hand(tiny: Model) -> None:
    found = health(trace(tiny, "a b"))
    (layer,) = found.layers
    assert found.entering is not None
    assert found.entering.rms == pytest.approx((sqrt(1 / 2), 1))  # (1, 0) and (1, 1)
    assert layer.stream is not None
    assert layer.stream.rms == pytest.approx((1, 1))  # a norm has just been taken
    assert layer.attention is not None
    w = exp(1) / (1 + exp(1))  # b at 1 looks at itself with e/(1 + e), and reads (1, w)
    assert layer.attention.ratio == pytest.approx((1, sqrt((1 + w * w) / 2)))
    assert layer.attention.cosine == pytest.approx((1, (1 + w) / sqrt(2 * (1 + w * w))))
    assert layer.mlp is not None
    assert layer.mlp.cosine == pytest.approx((sqrt(1 / 2),) * 2)  # (1, 0) onto (1, -1)
    assert layer.units is not None
    assert (layer.units.dead, layer.units.exact_zero) == ((1,), True)
    assert (layer.units.flat, layer.units.linear) == (1 / 2, 1 / 2)
    (head,) = layer.patterns
    assert (head.first, head.own) == pytest.approx((1 - w, w))


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_entropies_are_those_of_arb(name: str) -> None:
    whole = trace(open_model(name))
    shares = whole["block.0.attn.weights"]
    (head,) = health(whole).layers[0].patterns
    with ctx.workprec(200):
        for query in range(len(whole.tokens)):
            seen = [shares.at((0, query, key)).ball(200) for key in range(query + 1)]
            entropy = -sum((p * p.log() for p in seen), arb(0))
            assert isclose(head.entropy[query] or 0, float(entropy), **NEAR)
            most = head.share_of_most[query]
            if query == 0:
                assert most is None
            else:
                assert isclose(most or 0, float(entropy / arb(query + 1).log()), **NEAR)


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_and_angles_are_those_of_torch(family: Any) -> None:
    model = random_model(family())
    whole = trace(model, TEXT, Floats("float64"))
    streams = TorchPass(model.spec, model.weights, whole.tokens, 0).found
    found = health(whole)
    for layer in found.layers:
        stream = streams[f"stream.{layer.layer + 1}"]
        assert layer.stream is not None
        assert near(layer.stream.rms, stream.square().mean(-1).sqrt())
        assert isclose(
            layer.stream.mean or 0, float(stream.square().mean(-1).sqrt().mean()), **NEAR
        )
        for name, update in (("attn", layer.attention), ("mlp", layer.mlp)):
            at = f"block.{layer.layer}.{name}"
            step = whole.plan[f"{at}.add"]
            before, added = (
                torch.tensor(np.asarray(whole[step.inputs[role]].array)) for role in "xy"
            )
            assert update is not None
            cosine = torch.cosine_similarity(added, before, dim=-1)
            assert near(update.cosine, cosine)
            ratio = added.norm(dim=-1) / before.norm(dim=-1)
            assert near(update.ratio, ratio)
            assert isclose(update.mean_ratio or 0, float(ratio.mean()), **NEAR)
            assert isclose(update.mean_cosine or 0, float(cosine.mean()), **NEAR)


@pytest.mark.parametrize("numbers", [Balls(100), Limbs(100), Tensors("float64")])
def test_every_number_system_measures_the_same(numbers: Any) -> None:
    model = random_model(gpt2_like())
    one, other = (
        np.array(_numbers(asdict(health(trace(model, TEXT, system)))), dtype=np.float64)
        for system in (Floats("float64"), numbers)
    )
    assert np.allclose(one, other, rtol=0, atol=1e-12, equal_nan=True)


def _numbers(found: Any) -> list[float]:
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [x for each in found for x in _numbers(each)]
    return [nan if found is None else float(found)] if not isinstance(found, str) else []


@given(cases())
@settings(max_examples=20)
def test_of_any_architecture_health_is_data_without_nan(case: Case) -> None:
    found = health(trace_of(case, Floats("float64")))
    assert len(found.layers) == len(case.spec.blocks)
    json.dumps(asdict(found), allow_nan=False)
    for layer, block in zip(found.layers, case.spec.blocks, strict=True):
        assert (layer.attention is None) == (block.attention is None)
        assert (layer.units is None) == (block.mlp is None)
        assert len(layer.patterns) == (block.attention.heads if block.attention else 0)
        assert layer.missing == ()


# ------------------------------------------------------------------ patterns


def test_a_query_that_shares_out_evenly_has_all_the_entropy_there_can_be() -> None:
    found = pattern((1, None, None), (1 / 2, 1 / 2, None), (1 / 3, 1 / 3, 1 / 3))
    assert found.entropy == pytest.approx((0, log(2), log(3)))
    assert found.share_of_most[0] is None
    assert found.share_of_most[1:] == pytest.approx((1, 1))
    assert found.first == pytest.approx((1 / 2 + 1 / 3) / 2)  # the first query has no choice
    assert found.own == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert found.saturated == 0


def test_a_pattern_on_the_first_key_has_rank_1_and_one_on_the_own_key_has_them_all() -> None:
    first = pattern((1, None, None), (1, 0, None), (1, 0, 0))
    assert (first.numerical_rank, first.effective_rank) == (1, pytest.approx(1))
    assert (first.first, first.own, first.saturated) == (1, 0, 1)
    assert first.entropy == (0, 0, 0)
    own = pattern((1, None, None), (0, 1, None), (0, 0, 1))
    assert (own.numerical_rank, own.effective_rank) == (3, pytest.approx(3))
    assert (own.first, own.own, own.saturated) == (0, 1, 1)


def test_ranks_are_those_of_numpy_s_singular_values() -> None:
    weights = np.random.default_rng(3).dirichlet(np.ones(5), size=5)
    weights[4] = weights[3]
    found = measure_pattern(0, weights, np.zeros((5, 5), dtype=bool))
    sizes = np.linalg.svd(weights)[1]
    sizes = sizes[sizes > 1e-12] / sizes.sum()
    assert found.numerical_rank == np.linalg.matrix_rank(weights) == 4
    assert isclose(found.effective_rank or 0, float(np.exp(-(sizes * np.log(sizes)).sum())), **NEAR)


def test_of_a_long_text_ranks_are_left_out() -> None:
    found = measure_pattern(0, np.eye(257), np.zeros((257, 257), dtype=bool))
    assert (found.effective_rank, found.numerical_rank) == (None, None)
    assert found.mean_entropy == 0


def test_a_single_token_has_no_choice() -> None:
    found = pattern((1,))
    assert (found.first, found.own, found.saturated) == (None, None, None)
    assert (found.numerical_rank, found.mean_share_of_most) == (1, None)


def test_a_share_that_is_not_a_number_is_no_masked_one() -> None:
    found = pattern((1, None), (nan, 0.5))
    assert found.entropy == (0, None)
    assert (found.effective_rank, found.first) == (None, None)


# ------------------------------------------------------------------ units


def test_a_unit_of_relu_is_dead_where_it_is_0_at_every_position() -> None:
    x = np.array([[-1.0, 2.0, -1.0], [-3.0, -1.0, 1e-9]])
    y = np.maximum(x, 0)
    found = measure_units("act", "relu", x, y, y)
    assert (found.dead, found.exact_zero) == ((0,), True)
    assert (found.flat, found.linear) == (4 / 6, 2 / 6)


def test_a_smooth_unit_is_dead_below_a_thousandth_of_the_largest() -> None:
    y = np.array([[5.0, 0.0049, 0.0051], [0.0, -0.0049, 0.0]])
    found = measure_units("act", "gelu", y, y, y)
    assert (found.dead, found.exact_zero) == ((1,), False)


def test_silu_is_flat_far_below_0_and_linear_far_above() -> None:
    x = np.array([[-9.0, -4.7, -4.5, 1.0, 4.5, 4.7, 9.0, 0.0]])  # e^-4.6 is about 0.01
    y = x / (1 + np.exp(-x))
    found = measure_units("act", "silu", x, y, y)
    assert (found.flat, found.linear) == (3 / 8, 2 / 8)  # 0 itself lets nothing through


def test_of_a_gated_mlp_the_units_are_what_goes_on() -> None:
    x = np.array([[6.0, 6.0]])
    found = measure_units("gated", "silu", x, x, np.array([[1.0, 1e-4]]))
    assert found.dead == (1,)
    assert found.linear == 1


def test_units_that_all_are_0_are_all_dead() -> None:
    zero = np.zeros((2, 3))
    assert measure_units("act", "gelu", zero, zero, zero).dead == (0, 1, 2)


# ------------------------------------------------------------------ what is undefined


def test_a_zero_vector_has_a_size_but_no_direction() -> None:
    block = BlockSpec(AttentionSpec(1, 3, 1), None)
    model = random_model(ModelSpec("zero", 4, 3, None, (block,)))
    model = with_weight(model, "embed.token", np.zeros((4, 3), dtype=np.float32))
    layer = health(trace(model, "1 2", Floats("float64"))).layers[0]
    assert layer.attention is not None
    assert layer.attention.size.rms == (0, 0)
    assert layer.attention.cosine == layer.attention.ratio == (None, None)
    assert (layer.attention.mean_cosine, layer.mlp, layer.units) == (None, None, None)


def test_vectors_of_any_size_have_a_size_and_an_angle() -> None:
    assert root_mean_square([3e300, 4e300]) == pytest.approx(sqrt(12.5) * 1e300)
    assert root_mean_square([3e-300, 4e-300]) == pytest.approx(sqrt(12.5) * 1e-300)
    assert root_mean_square([1.0, inf]) is root_mean_square([nan, 1.0]) is None
    long, short = np.array([1e300, 1e300]), np.array([1e-300, 0.0])
    assert cosine(long, short) == pytest.approx(sqrt(1 / 2))
    assert cosine(np.array([1.0, nan]), np.array([1.0, 0.0])) is None


def test_numbers_that_are_not_finite_are_told_and_not_measured() -> None:
    model = random_model(gpt2_like())
    table = model.weights["embed.token"].data.copy()
    table[5] = np.inf
    with np.errstate(all="ignore"):
        found = health(trace(with_weight(model, "embed.token", table), "3 5", Floats("float64")))
    assert found.entering is not None
    assert found.entering.rms[1] is None
    assert found.entering.rms[0] is not None
    assert found.not_finite == ("stream.0",)
    layer = found.layers[0]
    assert "block.0.attn.weights" in layer.not_finite
    assert layer.patterns[0].entropy == (0, None)
    json.dumps(asdict(found), allow_nan=False)


def test_what_unknown_weights_leave_open_is_listed() -> None:
    found = health(trace(open_model("abc-walkthrough")))
    assert found.entering is not None
    (layer,) = found.layers
    assert (layer.stream, layer.attention, layer.patterns, layer.units) == (None, None, (), None)
    assert "block.0.attn.weights" in layer.missing


def test_steps_that_were_not_asked_for_are_listed(tiny: Model) -> None:
    whole = trace(tiny, "a b", Floats(), only=["block.0.attn.weights"])
    (layer,) = health(whole).layers
    assert len(layer.patterns) == 1
    assert layer.attention is None
    assert "block.0.attn.add" in layer.missing


def test_a_pencil_s_numbers_are_measured_as_they_were_rounded(tiny: Model) -> None:
    (head,) = health(trace(tiny, "a b", Pencil(2))).layers[0].patterns
    assert (head.first, head.own) == (0.27, 0.73)


def test_a_model_without_blocks_has_no_layers() -> None:
    model = random_model(ModelSpec("bare", 5, 3, None, ()))
    found = health(trace(model, "4", Floats("float64")))
    assert found.layers == ()
    assert found.entering is not None


def test_without_an_mlp_there_are_no_units() -> None:
    spec = gpt2_like()
    blocks = tuple(replace(block, mlp=None) for block in spec.blocks)
    layer = health(trace(random_model(replace(spec, blocks=blocks)), "4", Floats())).layers[0]
    assert (layer.mlp, layer.units, layer.missing) == (None, None, ())


def test_an_identity_is_linear_everywhere() -> None:
    x = np.array([[1.0, -2.0]])
    found = measure_units("act", "identity", x, x, x)
    assert (found.flat, found.linear, MlpSpec(1, "identity").activation) == (0, 1, "identity")

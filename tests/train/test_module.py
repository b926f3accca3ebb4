"""TorchModel: the one plan on torch tensors, in large steps, with gradients."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx
from torch.nn import functional

from byhand import forward
from byhand.errors import ShapeError
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.floats import Floats
from byhand.parameters import parameters as parameters_of
from byhand.plan import Step
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.train.fusion import fused
from byhand.train.module import TorchModel
from byhand.weights import Tensor, Weights
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, spread

PLAIN = {"alibi": False, "score table": False, "q norm": "none", "k norm": "none",
         "packed": None, "rope given": False, "heads": 2, "kv_heads": 2, "attention": True,
         "layers": 1}  # fmt: skip


@cache
def cases() -> tuple[Case, ...]:
    return *spread(40, seed=21), *spread(20, seed=22, wishes=PLAIN)


# ------------------------------------------------------------------ the same values


@pytest.mark.parametrize("number", range(60))
def test_a_batch_in_torch_is_what_numpy_gives_text_by_text(number: int) -> None:
    case = cases()[number]
    model = TorchModel(case.spec, case.weights, format="float64")
    ids = np.random.default_rng(number).integers(case.spec.vocab, size=(3, 4))
    logits = model(torch.tensor(ids)).detach().numpy()
    for text, found in zip(ids.tolist(), logits, strict=True):
        plan = forward.plan(case.spec, 4)
        expected = work_out(plan, case.weights, text, Floats("float64"))["logits"].array
        assert np.abs(found - expected).max() <= 1e-12 * max(1, np.abs(expected).max())


def test_the_cases_use_every_kind_of_large_step() -> None:
    used = {step.op for case in cases() for step in fused(forward.plan(case.spec, 4))}
    assert {"layernorm", "rmsnorm", "attend", "self_attention"} <= used
    assert not used & {"center", "mean_square", "root", "scores", "mix"}


def minigpt(**changes: Any) -> ModelSpec:
    attention = {"heads": 4, "d_head": 4, "kv_heads": 4, "scale": over_root(4)} | changes
    norm = NormSpec("layernorm", Fraction(1, 100_000))
    block = BlockSpec(AttentionSpec(**attention), MlpSpec(8, "gelu"), norm, norm)
    return ModelSpec("small", 7, 8, 16, (block, block), final_norm=norm)


@pytest.mark.parametrize(
    "changes",
    [
        {"rotary": RotarySpec(4)},
        {"rotary": RotarySpec(2)},
        {"rotary": RotarySpec(4, pairing="interleaved"), "q_bias": True, "v_bias": True},
        {"window": 2, "scale": None},
        {"causal": False, "k_bias": True},
    ],
)
@pytest.mark.parametrize("layout", ["in_out", "out_in"])
def test_plain_attention_has_the_gradients_of_its_parts(
    changes: dict[str, Any], layout: str
) -> None:
    from dataclasses import replace

    spec = replace(minigpt(**changes), layout=layout)
    random = np.random.default_rng(3)
    weights = Weights({p.name: Tensor(p.name, random.normal(size=p.shape))
                       for p in parameters_of(spec)})  # fmt: skip
    whole = TorchModel(spec, weights, format="float64")
    assert "self_attention" in {step.op for step in whole.plan(5)}
    parts = TorchModel(spec, weights, format="float64")
    plan = forward.plan(spec, 5).only(["logits"])
    parts._plans[5] = _with_separate_attention(plan)
    ids = torch.tensor(random.integers(7, size=(3, 5)))
    gradients = []
    for model in (whole, parts):
        model(ids).square().sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    scale = max(float(expected.abs().max()) for expected in gradients[1].values())
    for name, expected in gradients[1].items():  # that of k_bias is 0: softmax does not see it
        assert (gradients[0][name] - expected).abs().max() <= 1e-13 * scale, name


def _with_separate_attention(plan: Any) -> Any:
    """The fused plan with q, k and v as steps of their own."""
    from byhand.train import fusion

    original = fusion._self_attention
    try:
        fusion._self_attention = lambda scores, known: None  # type: ignore[assignment]
        return fusion.fused(plan)
    finally:
        fusion._self_attention = original


# ------------------------------------------------------------------ weights there and back


def test_the_state_dict_has_the_names_of_the_weights() -> None:
    model = open_model("minigpt-init")
    module = TorchModel(model.spec, model.weights)
    assert set(module.state_dict()) == {p.name for p in parameters_of(model.spec)}
    assert sum(p.numel() for p in module.parameters()) == 103_680


def test_weights_come_back_bit_by_bit() -> None:
    model = open_model("minigpt-init")
    back = TorchModel(model.spec, model.weights).weights()
    assert list(back) == list(model.weights)
    for name, tensor in model.weights.items():
        assert np.array_equal(back[name].data, tensor.data.astype(np.float32)), name
    again = TorchModel(model.spec, back).weights()
    assert all(np.array_equal(again[name].data, back[name].data) for name in back)


def test_a_masked_entry_of_a_table_is_minus_infinity() -> None:
    for case in cases():
        module = TorchModel(case.spec, case.weights, format="float64")
        for name, tensor in case.weights.items():
            if name.endswith("score_table"):
                hidden = np.vectorize(lambda entry: entry is None)(tensor.data)
                assert np.array_equal(np.isneginf(module.weights()[name].data), hidden)


def test_weights_of_another_shape_are_refused() -> None:
    model = open_model("tiny")
    wrong = {**model.weights, "embed.token": Tensor("embed.token", np.zeros((3, 3)))}
    with pytest.raises(ShapeError, match=r"embed\.token") as caught:
        TorchModel(model.spec, Weights(wrong))
    assert (caught.value.expected, caught.value.found) == ("3 × 2", "3 × 3")


# ------------------------------------------------------------------ gradients


def abc_sized() -> Model:
    """As large as abc: packed q, k, v with biases, ReLU, no norms."""
    attention = AttentionSpec(1, 2, 1, over_root(2), q_bias=True, k_bias=True, v_bias=True,
                              packed="concatenated", out_bias=True)  # fmt: skip
    block = BlockSpec(attention, MlpSpec(8, "relu", hidden_bias=True, out_bias=True))
    spec = ModelSpec("abc", 3, 2, 3, (block,), position="learned", tied=False, head_bias=True,
                     layout="out_in")  # fmt: skip
    random = np.random.default_rng(1234)
    weights = Weights({p.name: Tensor(p.name, random.normal(size=p.shape))
                       for p in parameters_of(spec)})  # fmt: skip
    return Model(spec, weights, open_model("tiny").vocabulary)


STEP = Fraction(1, 10**40)


def loss_in_arb(
    model: Model, ids: list[int], target: int, name: str, index: Any, by: Fraction
) -> Any:
    data = np.array([[Fraction(x) for x in row] for row in model.weights[name].data.reshape(1, -1)],
                    dtype=object).reshape(model.weights[name].shape)  # fmt: skip
    data[index] += by
    weights = Weights({**model.weights, name: Tensor(name, data)})
    plan = forward.plan(model.spec, len(ids), target=True).only(["loss"])
    return ArbPass(plan, weights, ids, target).values["loss"][(0,)]


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_gradients_are_those_of_differences_in_400_bits(name: str) -> None:
    model = abc_sized() if name == "abc" else open_model(name)
    ids = [0, 1, 2][: model.spec.context] if name != "journey" else [0, 1, 2, 3]
    target = 1 if name != "journey" else 4
    module = TorchModel(model.spec, model.weights, format="float64")
    logits = module(torch.tensor([ids]))
    functional.cross_entropy(logits[:, -1], torch.tensor([target])).backward()
    for parameter in module.kinds():
        tensor = parameter[1]
        assert tensor.grad is not None
        for index in np.ndindex(*tensor.shape):
            above = loss_in_arb(model, ids, target, parameter[0].name, index, STEP)
            below = loss_in_arb(model, ids, target, parameter[0].name, index, -STEP)
            with ctx.workprec(400):
                slope = (above - below) / (2 * arb(10) ** -40)
                distance = abs(slope - arb(float(tensor.grad[index])))
            assert distance < 1e-12, (parameter[0].name, index, slope, tensor.grad[index])


def test_steps_of_a_fused_plan_keep_the_addresses_of_what_they_replace() -> None:
    plan = forward.plan(open_model("minigpt-init").spec, 4)
    large = fused(plan)
    known: dict[str, Step] = {step.address: step for step in plan}
    assert [known[step.address].shape for step in large] == [step.shape for step in large]
    assert large["stream.1"].address == "block.0.mlp.add"
    assert len(large) < len(plan) / 2

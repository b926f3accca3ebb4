"""Small models of the families people know, with random weights, for the tests beside this file."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from byhand.evaluate import work_out
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.parameters import parameters
from byhand.spec import (
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.tokens import Ids
from byhand.tracing import Trace
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, make_case

EPS = Fraction(1, 100_000)
TEXT = "3 5 1 7 2"
Data = npt.NDArray[Any]


def gpt2_like() -> ModelSpec:
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        2, 4, 2, over_root(4), q_bias=True, k_bias=True, v_bias=True, packed="concatenated",
        out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(12, "gelu_tanh", hidden_bias=True, out_bias=True)
    block = BlockSpec(attention, mlp, norm, norm)
    return ModelSpec("gpt2-like", 11, 8, 9, (block,) * 2, "learned", final_norm=norm)


def llama_like() -> ModelSpec:
    norm = NormSpec("rmsnorm", EPS, bias=False)
    attention = AttentionSpec(4, 4, 2, over_root(4), rotary=RotarySpec(4))
    block = BlockSpec(attention, MlpSpec(12, "silu", gated=True), norm, norm)
    return ModelSpec(
        "llama-like", 11, 8, 9, (block,) * 2, final_norm=norm, tied=False, layout="out_in"
    )


def post_norm() -> ModelSpec:
    """The blocks of GPT-2 with their norms after the adds, and none at the end."""
    spec = gpt2_like()
    blocks = tuple(replace(block, norm_place="post") for block in spec.blocks)
    return replace(spec, name="post-norm", blocks=blocks, final_norm=NO_NORM)


FAMILIES = (gpt2_like, llama_like, post_norm)


def random_model(spec: ModelSpec, seed: int = 1) -> Model:
    rng = np.random.default_rng(seed)
    tensors = {}
    for parameter in parameters(spec):
        data = 0.5 * rng.standard_normal(parameter.shape) + (parameter.kind == "gain")
        tensors[parameter.name] = Tensor(parameter.name, data.astype(np.float32))
    return Model(spec, Weights(tensors), Ids(spec.vocab), text=TEXT)


def with_weight(model: Model, name: str, data: Data) -> Model:
    return replace(model, weights=Weights({**model.weights, name: Tensor(name, data)}))


def trace_of(case: Case, numbers: Numbers) -> Trace:
    """A case of any architecture, wherever its text begins and whatever its mask."""
    model = Model(case.spec, case.weights, Ids(case.spec.vocab))
    plan = case.plan()
    steps = work_out(plan, case.weights, case.tokens, numbers, target=case.target)
    text = model.vocabulary.decode(case.tokens)
    return Trace(model, plan, numbers, text, case.tokens, steps, case.target)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Models of any architecture, small."""

    def choose(question: str, options: Any) -> Any:
        return draw(st.sampled_from(list(options)), label=question)

    return make_case(choose, draw(st.integers(0, 10_000)), largest=2)

"""A small Llama and its own float32 numbers, laid out as engines would dump them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import byhand
from byhand.checking.verdicts import Marking
from byhand.model import Model
from byhand.parameters import parameters
from byhand.spec import (
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

Array = npt.NDArray[Any]
IDS = (3, 1, 4, 1, 5)
HEADS, KV_HEADS, D_HEAD = 4, 2, 6
RMS = NormSpec("rmsnorm", Fraction(1, 10**5), bias=False)
LAYER = NormSpec("layernorm", Fraction(1, 10**5))
ATTENTION = AttentionSpec(HEADS, D_HEAD, KV_HEADS, over_root(D_HEAD), rotary=RotarySpec(D_HEAD))
GATED = MlpSpec(20, "silu", gated=True)


def model_of(spec: ModelSpec, seed: int = 0) -> Model:
    chance = np.random.default_rng(seed)
    weights = {
        each.name: Tensor(each.name, chance.normal(size=each.shape, scale=0.4).astype(np.float32))
        for each in parameters(spec)
    }
    return Model(spec, Weights(weights), Ids(spec.vocab))


@cache
def llama(
    attention: AttentionSpec = ATTENTION, mlp: MlpSpec = GATED, family: str = "llama"
) -> Model:
    block = BlockSpec(attention, mlp, attn_norm=RMS, mlp_norm=RMS)
    return model_of(
        ModelSpec(
            "small", 17, 24, None, (block, block), final_norm=RMS, tied=False, layout="out_in",
            family=family,
        )
    )  # fmt: skip


class Numbers:
    """The float32 numbers of a model's steps."""

    def __init__(self, model: Model, ids: tuple[int, ...] = IDS) -> None:
        self.model = model
        self.trace: Trace = byhand.trace(model, " ".join(map(str, ids)), float="float32")

    def __call__(self, address: str) -> Array:
        array = self.trace[address].array
        return (
            np.ma.filled(array, 0).copy() if "weights" in address else np.ma.getdata(array).copy()
        )

    def flat(self, address: str) -> Array:
        """(pos, head·d_head)"""
        heads, length, width = self(address).shape
        return self(address).transpose(1, 0, 2).reshape(length, heads * width)


def marked(model: Model, *dumps: Any, **settings: Any) -> Marking:
    return byhand.check(model, *dumps, **settings)


def right(marking: Marking) -> dict[str, str]:
    """The addresses of a marking in which everything is right, each with how it was read."""
    assert marking.passed, marking
    assert not marking.unmatched, marking.unmatched
    assert {line.verdict.value for line in marking} == {"right"}
    return {line.address: line.claim.read for line in marking}

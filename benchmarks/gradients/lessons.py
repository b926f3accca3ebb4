"""Small models of two families, and the texts that they learn from.

A lesson is two texts side by side, as a batch of two rows is worked out.  The number of positions
is the width of the model: only then does a sum over the wrong axis go unnoticed.  Tokens are
repeated within and between the texts, and both end in padding, which does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from byhand.model import Model
from byhand.parameters import Parameter, parameters
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
from byhand.weights import Tensor, Weights

FAMILIES = ("gpt2", "llama")
WIDTH, LAYERS, VOCABULARY, CONTEXT = 32, 2, 61, 40
EPS = Fraction(1, 100_000)
PAD = 60  # the token that fills texts up
UNCOUNTED = -1
LENGTHS = (14, 11)  # of the texts, without padding


def _gpt2() -> ModelSpec:
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        4, 8, 4, over_root(8), q_bias=True, k_bias=True, v_bias=True, packed="concatenated",
        out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(80, "gelu_tanh", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm),) * LAYERS
    return ModelSpec("gpt2", VOCABULARY, WIDTH, CONTEXT, blocks, "learned", final_norm=norm)


def _llama() -> ModelSpec:
    norm = NormSpec("rmsnorm", EPS, bias=False)
    attention = AttentionSpec(4, 8, 2, over_root(8), rotary=RotarySpec(8, Fraction(10_000), "half"))
    blocks = (BlockSpec(attention, MlpSpec(72, "silu", gated=True), norm, norm),) * LAYERS
    return ModelSpec(
        "llama", VOCABULARY, WIDTH, CONTEXT, blocks, final_norm=norm, tied=False, layout="out_in"
    )


SPECS = {"gpt2": _gpt2, "llama": _llama}


@cache
def model(family: str, seed: int = 0) -> Model:
    """A model of this family; its weights follow from the seed."""
    spec = SPECS[family]()
    rng = np.random.default_rng([seed, sum(map(ord, family))])
    drawn = {each.name: Tensor(each.name, _drawn(each, rng)) for each in parameters(spec)}
    return Model(spec, Weights(drawn), Ids(spec.vocab))


def _drawn(parameter: Parameter, rng: np.random.Generator) -> Any:
    noise = rng.standard_normal(parameter.shape)
    size = {"gain": 0.3, "bias": 0.2}.get(parameter.kind, 0.25)
    return (noise * size + (parameter.kind == "gain")).astype(np.float32)


@dataclass(frozen=True)
class Lesson:
    """Texts side by side: the tokens, their places, their texts, and the tokens that should come.

    `texts` are the rows of the batch; `counted` is what the right targets are.
    """

    tokens: np.ndarray[Any, Any]  # (pos)
    places: np.ndarray[Any, Any]
    owners: np.ndarray[Any, Any]
    targets: np.ndarray[Any, Any]
    texts: tuple[slice, ...]


def lesson(seed: int = 0) -> Lesson:
    """Two texts of random tokens, each filled up to half of the width."""
    rng = np.random.default_rng([seed, 7])
    length = WIDTH // len(LENGTHS)
    tokens, targets = [], []
    for own in LENGTHS:
        ids = rng.integers(0, 24, own).tolist()  # of few tokens: some come twice
        row = [*ids, *[PAD] * (length - own)]
        tokens += row
        targets += [*ids[1:], *[UNCOUNTED] * (length - own + 1)]
    texts = tuple(slice(start, start + length) for start in range(0, WIDTH, length))
    places = np.tile(np.arange(length), len(LENGTHS))
    owners = np.repeat(np.arange(len(LENGTHS)), length)
    return Lesson(np.array(tokens), places, owners, np.array(targets), texts)

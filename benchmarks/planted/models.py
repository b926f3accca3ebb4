"""Small models of each family, with weights as after training.

Matrices have a few directions that are far larger than the rest, a channel of the stream stands
out, gains are not 1, biases are not 0, and the rows of the stream have a mean.  A pass needs none
of this, but each hides or shows some mistake.
"""

from __future__ import annotations

from collections.abc import Callable
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

LAYERS, LENGTH, CONTEXT = 3, 16, 64
EPS = Fraction(1, 100_000)
GAIN, BIAS = 0.3, 0.2  # how far gains are from 1 and biases from 0
EMBEDDING, MEAN, OUTLIER = 0.25, 0.1, 3.0  # size of a row's entries, their mean, the large channel
DECAY = 0.4  # of a matrix's singular values, as a power of their number


def gpt2() -> ModelSpec:
    """As GPT-2: learned positions, layernorm, packed q, k, v, GELU by tanh, tied head."""
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        6, 16, 6, over_root(16), q_bias=True, k_bias=True, v_bias=True, packed="concatenated",
        out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(288, "gelu_tanh", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm),) * LAYERS
    return ModelSpec("gpt2", 400, 96, CONTEXT, blocks, "learned", final_norm=norm)


def llama() -> ModelSpec:
    """As Llama 3: grouped queries, RoPE on halves, RMSNorm, a gated MLP, an untied head."""
    return _llama("llama", bias=False, tied=False)


def qwen() -> ModelSpec:
    """As Qwen 2: Llama with biases on q, k and v, and here a tied head."""
    return _llama("qwen", bias=True, tied=True)


def _llama(name: str, *, bias: bool, tied: bool) -> ModelSpec:
    norm = NormSpec("rmsnorm", EPS, bias=False)
    attention = AttentionSpec(
        8, 16, 2, over_root(16), rotary=RotarySpec(16, Fraction(500_000), "half"), q_bias=bias,
        k_bias=bias, v_bias=bias,
    )  # fmt: skip
    blocks = (BlockSpec(attention, MlpSpec(320, "silu", gated=True), norm, norm),) * LAYERS
    return ModelSpec(
        name, 400, 128, CONTEXT, blocks, final_norm=norm, tied=tied, layout="out_in"
    )  # fmt: skip


def gpt_neox() -> ModelSpec:
    """As Pythia: attention and MLP in parallel, RoPE on a quarter of each head, q, k, v packed
    head by head.  The head has a bias, as GPT-J's has."""
    norm = NormSpec("layernorm", EPS)
    attention = AttentionSpec(
        4, 32, 4, over_root(32), rotary=RotarySpec(8), q_bias=True, k_bias=True, v_bias=True,
        packed="per_head", out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(384, "gelu", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm, parallel=True),) * LAYERS
    return ModelSpec(
        "gpt_neox", 400, 128, CONTEXT, blocks, final_norm=norm, tied=False, head_bias=True,
        layout="out_in",
    )  # fmt: skip


SPECS: dict[str, Callable[[], ModelSpec]] = {
    "gpt2": gpt2,
    "llama": llama,
    "qwen": qwen,
    "gpt_neox": gpt_neox,
}


@cache
def model(family: str, seed: int = 0) -> Model:
    """A model of this family; its weights follow from the seed."""
    spec = SPECS[family]()
    rng = np.random.default_rng([seed, sum(map(ord, family))])
    drawn = {each.name: Tensor(each.name, _drawn(spec, each, rng)) for each in parameters(spec)}
    return Model(spec, Weights(drawn), Ids(spec.vocab))


def some_ids(family: str, seed: int = 0, length: int = LENGTH) -> list[int]:
    """A text without its first token repeated, and with one other token twice."""
    vocab = SPECS[family]().vocab
    ids: list[int] = np.random.default_rng([seed, 1]).permutation(vocab - 1)[:length].tolist()
    ids[length // 2] = ids[length // 4]
    return ids


def _drawn(spec: ModelSpec, parameter: Parameter, rng: np.random.Generator) -> Any:
    noise = rng.standard_normal(parameter.shape)
    if parameter.kind == "gain":
        data = 1 + GAIN * noise
    elif parameter.kind == "bias":
        data = BIAS * noise
    elif parameter.part in ("embedding", "position"):
        data = EMBEDDING * noise + MEAN
        data[:, spec.d_model // 3] *= OUTLIER / EMBEDDING if parameter.part == "embedding" else 1
    else:
        data = _as_trained(noise, spec)
    return data.astype(np.float32)


def _as_trained(noise: Any, spec: ModelSpec) -> Any:
    """A matrix whose singular values fall off as a power of their number."""
    left, values, right = np.linalg.svd(noise, full_matrices=False)
    shape = np.arange(1, len(values) + 1) ** -DECAY
    shape *= np.sqrt(np.sum(values**2) / np.sum(shape**2))
    inner = noise.shape[0 if spec.layout == "in_out" else 1]
    return (left * shape) @ right / np.sqrt(inner)

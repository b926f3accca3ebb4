"""Small models of several architectures with weights that are hard on arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.model import Model
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
from byhand.weights import Tensor, Weights

Data = Any
WIDTHS = (8, 12, 24)
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")
EPSILONS = (Fraction(1, 100_000), Fraction(1, 10**12), Fraction(1))
OUTLIER = 1000.0
LONG = 150  # keys of a text that attention goes through block by block
SMALLEST = {"float64": -1030, "float16": -18}  # exponents just below the normal numbers; or -130
SCALES = {"float16": (-12, 4), "float64": (-60, 30)}  # exponents of extreme scales; or -70 to 40


def drawn_spec(rng: np.random.Generator) -> ModelSpec:
    """One or two blocks: layernorm or RMSNorm, RoPE or learned positions, gated or not."""
    width = int(rng.choice(WIDTHS))
    heads = 2 if width < 12 else int(rng.choice((2, 4)))
    each = width // heads
    each -= each % 2
    kind = str(rng.choice(("layernorm", "rmsnorm", "none"), p=(0.4, 0.4, 0.2)))
    norm = NormSpec(kind, EPSILONS[int(rng.integers(3))], bias=kind == "layernorm")
    if kind == "none":
        norm = NO_NORM
    turned, bias = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    rotary = RotarySpec(each, Fraction(10_000), str(rng.choice(("half", "interleaved"))))
    attention = AttentionSpec(
        heads, each, int(rng.choice((heads, heads // 2))), over_root(each),
        rotary=rotary if turned else None, q_bias=bias, k_bias=bias, v_bias=bias, out_bias=bias,
    )  # fmt: skip
    mlp = MlpSpec(
        2 * width, str(rng.choice(ACTIVATIONS)), gated=bool(rng.random() < 0.5),
        hidden_bias=bias, out_bias=bias,
    )  # fmt: skip
    blocks = (BlockSpec(attention, mlp, norm, norm),) * int(rng.integers(1, 3))
    spec = ModelSpec(
        "hostile", 17, width, LONG, blocks, "none" if turned else "learned", final_norm=norm,
        tied=bool(rng.random() < 0.5), layout=str(rng.choice(("in_out", "out_in"))),
    )  # fmt: skip
    return spec if rng.random() < 0.8 else replace(spec, embed_scale=over_root(width))


def drawn_model(rng: np.random.Generator, spec: ModelSpec, kind: str, format: str) -> Model:
    """The weights are numbers of float32, or of float64 for that."""
    tensors, outliers = {}, bool(rng.random() < 0.4)
    for parameter in parameters(spec):
        data = rng.standard_normal(parameter.shape) * (0.4 if parameter.kind == "matrix" else 0.3)
        data = WEIGHTS[kind](rng, data + (parameter.kind == "gain"), format)
        if outliers and parameter.part == "embedding":
            data[:, :2] *= OUTLIER if format != "float16" else 30.0
        stored = np.float64 if format == "float64" or rng.random() < 0.1 else np.float32
        tensors[parameter.name] = Tensor(parameter.name, data.astype(stored))
    return Model(spec, Weights(tensors), Ids(spec.vocab))


def _as_trained(rng: np.random.Generator, data: Data, format: str) -> Data:
    return data


def _near_powers(rng: np.random.Generator, data: Data, format: str) -> Data:
    """Just above and below powers of two, where a rounding is largest for its number."""
    near = np.exp2(np.round(np.log2(np.abs(data) + 1e-9)))
    return np.sign(data) * near * (1 + rng.choice((-1, 0, 1), data.shape) * 2.0**-20)


def _subnormal(rng: np.random.Generator, data: Data, format: str) -> Data:
    """Some rows, or some entries, at and below the smallest normal number."""
    small = data * 2.0 ** (SMALLEST.get(format, -130) + rng.integers(-12, 8, data.shape))
    rows = rng.random(data.shape[:1] + (1,) * (data.ndim - 1)) < 0.5
    return np.where(rows | (rng.random(data.shape) < 0.2), small, data)


def _extreme(rng: np.random.Generator, data: Data, format: str) -> Data:
    """Every entry of a scale of its own."""
    low, high = SCALES.get(format, (-70, 40))
    return data * np.exp2(rng.uniform(low, high, data.shape) * rng.random())


WEIGHTS: dict[str, Callable[[np.random.Generator, Data, str], Data]] = {
    "as trained": _as_trained,
    "near powers of two": _near_powers,
    "below the normal": _subnormal,
    "of every scale": _extreme,
}
KINDS = tuple(WEIGHTS)

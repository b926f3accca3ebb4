"""Correct runs beside the library's: byhand's own floats, and ports in other correct ways.

The bounds hold for a wider class of implementations than the libraries.  All ways below are in it,
and some are as bad as it allows: sums one term after the other, a softmax without the shift by the
maximum, GELU step by step in the format itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

import byhand
from benchmarks.planted import models
from benchmarks.planted.families import PORTS, GptNeoX, Llama
from benchmarks.planted.port import ACTIVATIONS, Port
from byhand.model import Model

Way = Callable[[Port], None]


def traced(model: Model, text: str, format: str) -> dict[str, Any]:
    """The dump of byhand's own floats."""
    trace = byhand.trace(model, text, float=format)
    return {
        step.address: np.ma.filled(np.ma.asarray(step.array), -np.inf if "scores" in step.address
                                   else 0)
        for step in trace.values() if not step.whole
    }  # fmt: skip


def ported(family: str, way: Way, format: str, seed: int) -> dict[str, Any]:
    """The dump of a port that computes in some correct way."""
    port = PORTS[family](models.model(family, seed), models.some_ids(family, seed), format)
    way(port)
    return port.run()


def as_written(port: Port) -> None:
    """The port unchanged."""


def scale_first(port: Port) -> None:
    """Queries scaled before the product."""
    port.instead(scores=lambda q, k: (q * port.scale) @ k.transpose(1, 2))


def softmax_without_shift(port: Port) -> None:
    """e^x over the sum of e^x, each rounded to the format."""

    def shares(scores: Tensor) -> Tensor:
        powers = scores.exp()
        return powers / powers.sum(-1, keepdim=True)

    port.instead(shares=shares)


def softmax_by_reciprocal(port: Port) -> None:
    """Multiplied by the rounded reciprocal of the sum."""

    def shares(scores: Tensor) -> Tensor:
        powers = (scores - scores.amax(-1, keepdim=True)).exp()
        return powers * powers.sum(-1, keepdim=True).reciprocal()

    port.instead(shares=shares)


def sums_one_by_one(port: Port) -> None:
    """Products summed term after term, in float32 at the coarsest."""
    wide = torch.promote_types(port.dtype, torch.float32)

    def dense(name: str, x: Tensor) -> Tensor:
        weight = port.w[name].to(wide)
        if isinstance(port, Llama | GptNeoX):
            weight = weight.T
        total = torch.zeros(len(x), weight.shape[1], dtype=wide)
        for term in range(weight.shape[0]):
            total = total + x[:, term, None].to(wide) * weight[term]
        bias = port.w.get(f"{name}_bias")
        return (total if bias is None else total + bias.to(wide)).to(port.dtype)

    port.instead(dense=dense)


def sums_backwards(port: Port) -> None:
    """Products summed from the other end."""
    usual = port.dense

    def dense(name: str, x: Tensor) -> Tensor:
        kept = port.w[name]
        port.w[name] = kept.flip(1 if isinstance(port, Llama | GptNeoX) else 0).contiguous()
        try:
            return usual(name, x.flip(-1).contiguous())
        finally:
            port.w[name] = kept

    port.instead(dense=dense)


def means_as_products(port: Port) -> None:
    """Means as a product with 1/n, in float32 at the coarsest."""
    wide = torch.promote_types(port.dtype, torch.float32)
    weight = torch.full((port.d_model,), 1 / port.d_model, dtype=wide)
    port.instead(variance=lambda x: (x.to(wide).square() @ weight).to(port.dtype))


def gelu_by_formula(port: Port) -> None:
    """GELU or SiLU step by step in the format."""
    root = math.sqrt(2 / math.pi)

    def tanh(x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(root * (x + 0.044715 * x * x * x)))

    def erf(x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))

    def silu(x: Tensor) -> Tensor:
        return x / (1 + torch.exp(-x))

    other = {ACTIVATIONS["gelu_tanh"]: tanh, ACTIVATIONS["gelu"]: erf, ACTIVATIONS["silu"]: silu}
    port.activation = other[port.activation]


def fused(port: Port) -> None:
    """Norms and attention by torch's own functions, without the steps inside."""

    def layernorm(at: str, x: Tensor) -> Tensor:
        gain, bias = port.w[f"{at}.gain"], port.w[f"{at}.bias"]
        return port.keep(f"{at}.out", F.layer_norm(x, x.shape[-1:], gain, bias, port.eps))

    def rmsnorm(at: str, x: Tensor) -> Tensor:
        gain = port.w[f"{at}.gain"]
        return port.keep(f"{at}.out", F.rms_norm(x, x.shape[-1:], gain, port.eps))

    def attention(at: str, x: Tensor) -> Tensor:
        q, k, v = port.placed(at, *port.queries_keys_values(at, x))
        mixed = F.scaled_dot_product_attention(
            q[None], port.spread(k)[None], port.spread(v)[None], is_causal=True
        )[0]  # fmt: skip
        port.keep(f"{at}.mixed", mixed)
        return port.keep(f"{at}.out", port.dense(f"{at}.out", port.merged(mixed)))

    port.instead(layernorm=layernorm, rmsnorm=rmsnorm, attention=attention)


def tables_in_float64(port: Port) -> None:
    """Angles of RoPE in float64, rounded at the end."""
    if not hasattr(port, "base"):
        return

    def cos_and_sin(width: int) -> tuple[Tensor, Tensor]:
        rates = port.base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = port.places.double()[:, None] * rates
        return angles.cos().to(port.dtype), angles.sin().to(port.dtype)

    port.instead(cos_and_sin=cos_and_sin)


WAYS: tuple[Way, ...] = (
    as_written, scale_first, softmax_without_shift, softmax_by_reciprocal, sums_one_by_one,
    sums_backwards, means_as_products, gelu_by_formula, fused, tables_in_float64,
)  # fmt: skip
FORMATS = ("float64", "float32", "float16", "bfloat16")

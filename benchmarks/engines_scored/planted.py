"""Bugs planted in transformers' Llama, as people make them; a seed chooses where and how much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

Random = np.random.Generator
Plant = Callable[[Any, Random], str]


@dataclass(frozen=True)
class Bug:
    """A bug: how it is planted, and the steps at which it must show first."""

    name: str
    plant: Plant  # it says what it did
    shows: Callable[[str], bool]  # of an address: whether it is the bug's place


def _rope(model: Any, made: Random) -> str:
    rotary = model.model.rotary_emb
    base = float(made.choice([1000.0, 50_000.0, 500_000.0]))
    size = 2 * len(rotary.inv_freq)
    rotary.inv_freq = base ** (-torch.arange(0, size, 2, dtype=torch.float) / size)
    return f"base {base:g}"


def _scale(model: Any, made: Random) -> str:
    attention = model.model.layers[0].self_attn
    factor = float(made.choice([0.5, 2**-0.5, 2**0.5]))
    for layer in model.model.layers:
        layer.self_attn.scaling = attention.head_dim**-0.5 * factor
    return f"scores times {factor:.3g}"


def _positions(model: Any, made: Random) -> str:
    """The positions of later tokens are off, as after a cache that was filled wrongly."""
    start, by = int(made.integers(3, 9)), int(made.choice([-1, 1]))
    rotary = model.model.rotary_emb
    plain = rotary.forward

    def shifted(x: Any, position_ids: Any) -> Any:
        return plain(x, position_ids + by * (position_ids >= start))

    rotary.forward = shifted
    return f"positions from {start} on are {by:+d}"


def _half_logits(model: Any, made: Random) -> str:
    model.lm_head.register_forward_hook(
        lambda _module, _inputs, out: out.to(torch.bfloat16).to(out.dtype)
    )
    return "logits rounded to bfloat16"


def _gain(model: Any, made: Random) -> str:
    layer = int(made.integers(len(model.model.layers)))
    name = str(made.choice(["input_layernorm", "post_attention_layernorm"]))
    with torch.no_grad():
        getattr(model.model.layers[layer], name).weight.fill_(1.0)
    return f"no gain in {name} of layer {layer}"


def _eps(model: Any, made: Random) -> str:
    value = float(made.choice([1e-3, 1e-2]))
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            module.variance_epsilon = value
    return f"eps {value:g}"


def _within(*parts: str) -> Callable[[str], bool]:
    return lambda address: any(part in address for part in parts)


ATTENTION = ("attn.scores", "attn.weights", "attn.k", "attn.q", "attn.heads", "attn.out")
BUGS = (
    Bug("another rope base", _rope, _within(*ATTENTION)),
    Bug("a wrong scale", _scale, _within(*ATTENTION)),
    Bug("a shifted position", _positions, _within(*ATTENTION)),
    Bug("bfloat16 logits", _half_logits, _within("logits")),
    Bug("a missing gain", _gain, _within("norm")),
    Bug("another eps", _eps, _within("norm")),
)

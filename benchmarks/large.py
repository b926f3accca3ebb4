"""Models of real sizes with random weights, and their plain passes in torch.

Needs byhand, NumPy and torch alone.  The plain pass is written in usual torch, independently of the
plan, so it is both the yardstick of speed and a check.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.expression import Call, Number, Quotient
from byhand.model import Model
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, RotarySpec
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

EPS = Fraction(1, 100_000)
STD = 0.02
OUTLIERS, LARGER = 4, 100.0  # channels of the stream that are so much larger than the others


@dataclass(frozen=True)
class Size:
    """The sizes of a model."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    kv_heads: int = 12
    d_ff: int = 3072
    vocab: int = 50_257
    context: int = 1024


GPT2_SMALL = Size()
LLAMA_1B = Size(16, 2048, 32, 8, 8192, 128_256, 8192)
LLAMA_7B = Size(32, 4096, 32, 32, 11_008, 32_000, 4096)


def gpt2(size: Size = GPT2_SMALL) -> ModelSpec:
    """Built as GPT-2 is."""
    norm = NormSpec("layernorm", EPS, gain=True, bias=True)
    d_head = size.width // size.heads
    attention = AttentionSpec(
        size.heads, d_head, size.heads, _inverse_root(d_head), q_bias=True, k_bias=True,
        v_bias=True, packed="concatenated", out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(size.d_ff, "gelu_tanh", hidden_bias=True, out_bias=True)
    blocks = (BlockSpec(attention, mlp, norm, norm),) * size.layers
    return ModelSpec(
        "gpt2-like", size.vocab, size.width, size.context, blocks, "learned", final_norm=norm
    )


def llama(size: Size = LLAMA_1B) -> ModelSpec:
    """Built as Llama 3 is: grouped queries, RoPE, RMSNorm, a gated MLP."""
    norm = NormSpec("rmsnorm", EPS, gain=True, bias=False)
    d_head = size.width // size.heads
    attention = AttentionSpec(
        size.heads, d_head, size.kv_heads, _inverse_root(d_head),
        rotary=RotarySpec(d_head, Fraction(500_000), "half"),
    )  # fmt: skip
    blocks = (BlockSpec(attention, MlpSpec(size.d_ff, "silu", gated=True), norm, norm),)
    return ModelSpec(
        "llama-like", size.vocab, size.width, size.context, blocks * size.layers, "none",
        final_norm=norm, layout="out_in",
    )  # fmt: skip


def _inverse_root(width: int) -> Quotient:
    return Quotient(Number(Fraction(1)), Call("sqrt", Number(Fraction(width))))


# Singular values of a trained 19-million Llama fall about like i^-p, counted from the largest, and
# entries have a standard deviation of SIZE/√width; its stream grows from a length of 1 to 70.
FALL = {"q": 0.45, "k": 0.4, "v": 0.12, "attn.out": 0.2, "mlp": 0.25, "embed": 0.35}
SIZE, EMBEDDED = 0.69, 0.06


def random_model(spec: ModelSpec, *, trained: bool | str = False, seed: int = 0) -> Model:
    """Weights as at the start of training; `trained`: spectra and sizes measured after it.

    "outliers" are harder than any that were measured: a few directions far larger than the rest,
    and a few channels of the stream a hundred times the others.
    """
    rng = np.random.default_rng(seed)
    tensors: dict[str, Tensor] = {}
    for parameter in parameters(spec):
        if parameter.kind == "matrix":
            data = rng.standard_normal(parameter.shape, dtype=np.float32) * np.float32(STD)
            if trained == "outliers":
                data = _with_outliers(parameter.name, data, spec, rng)
            elif trained:
                data = _as_trained(parameter.name, data, spec)
        else:
            data = np.float32(STD) * rng.standard_normal(parameter.shape, dtype=np.float32)
            data += np.float32(parameter.kind == "gain")
        tensors[parameter.name] = Tensor(parameter.name, data)
    return Model(spec, Weights(tensors), Ids(spec.vocab))


def _as_trained(name: str, data: Any, spec: ModelSpec) -> Any:
    """The random matrix with other singular values, of the size of a trained one's."""
    if name.endswith(".qkv"):
        axis = 0 if spec.layout == "out_in" else 1
        parts = np.split(data, 3, axis=axis)
        made = [_fallen(part, FALL[kind]) for part, kind in zip(parts, "qkv", strict=True)]
        return np.concatenate(made, axis) * np.float32(SIZE / spec.d_model**0.5)
    if name.startswith("embed."):
        return _fallen(data, FALL["embed"]) * np.float32(EMBEDDED)
    ends = [end for end in ("attn.out", "q", "k", "v") if name.endswith("." + end)]
    kind = ends[0] if ends else "mlp"
    return _fallen(data, FALL[kind]) * np.float32(SIZE / spec.d_model**0.5)


def _fallen(data: Any, power: float) -> Any:
    """Of a standard deviation of 1, with singular values that fall with this power."""
    tall = data if data.shape[0] >= data.shape[1] else data.T
    left, values, right = np.linalg.svd(tall.T @ tall, hermitian=True)
    share = np.arange(1, tall.shape[1] + 1) ** -power
    share /= np.sqrt((share**2).mean())
    turned = tall @ (left * (share * (tall.shape[0] / values) ** 0.5)) @ right
    return (turned if tall is data else turned.T).astype(np.float32)


def _with_outliers(name: str, data: Any, spec: ModelSpec, rng: Any) -> Any:
    if name.startswith("embed."):
        data[:, :OUTLIERS] *= LARGER
        return data
    side = spec.d_model if data.shape[0] == spec.d_model else data.shape[0]
    share = np.arange(1, side + 1) ** -0.7
    share /= np.sqrt((share**2).mean())
    turn = np.linalg.qr(rng.standard_normal((side, side)))[0]
    return (((turn * share) @ turn.T) @ data).astype(np.float32)


def some_ids(spec: ModelSpec, length: int) -> list[int]:
    return [(7919 * place + 1) % spec.vocab for place in range(length)]


# ------------------------------------------------------------------ the same in plain torch


class Plain:
    """The pass in torch, in one format on one device."""

    def __init__(self, model: Model, format: str = "float32", device: str = "cpu") -> None:
        import torch

        self.torch: Any = torch
        self.spec, self.kind, self.device = model.spec, getattr(torch, format), device
        self.w = {
            name: torch.from_numpy(np.array(tensor.data, np.float32)).to(device, self.kind)
            for name, tensor in model.weights.items()
        }

    def logits(self, ids: list[int]) -> Any:
        with self.torch.inference_mode():
            return self.forward(ids)

    def forward(self, ids: list[int]) -> Any:
        """The logits, with gradients where the weights ask for them."""
        build = self._gpt2 if self.spec.layout == "in_out" else self._llama
        return build(self.torch.tensor(ids, device=self.device))

    def _gpt2(self, ids: Any) -> Any:
        functional, w, spec = self.torch.nn.functional, self.w, self.spec

        def norm(x: Any, at: str) -> Any:
            gain, bias = w[f"{at}.norm.gain"], w[f"{at}.norm.bias"]
            return functional.layer_norm(x, (spec.d_model,), gain, bias, float(EPS))

        x = functional.embedding(ids, w["embed.token"]) + w["embed.position"][: len(ids)]
        for layer, block in enumerate(spec.blocks):
            at, attention = f"block.{layer}.attn", block.attention
            assert attention is not None
            packed = self.torch.addmm(w[f"{at}.qkv_bias"], norm(x, at), w[f"{at}.qkv"])
            q, k, v = (
                part.view(len(ids), attention.heads, -1).transpose(0, 1)
                for part in packed.split(spec.d_model, dim=1)
            )
            mixed = functional.scaled_dot_product_attention(q[None], k[None], v[None],
                                                            is_causal=True)[0]  # fmt: skip
            mixed = mixed.transpose(0, 1).reshape(len(ids), -1)
            x = x + self.torch.addmm(w[f"{at}.out_bias"], mixed, w[f"{at}.out"])
            at = f"block.{layer}.mlp"
            hidden = self.torch.addmm(w[f"{at}.hidden_bias"], norm(x, at), w[f"{at}.hidden"])
            hidden = functional.gelu(hidden, approximate="tanh")
            x = x + self.torch.addmm(w[f"{at}.out_bias"], hidden, w[f"{at}.out"])
        return functional.linear(norm(x, "final"), w["embed.token"])

    def _llama(self, ids: Any) -> Any:
        torch, functional, w, spec = self.torch, self.torch.nn.functional, self.w, self.spec

        def norm(x: Any, at: str) -> Any:
            return functional.rms_norm(x, (spec.d_model,), w[f"{at}.norm.gain"], float(EPS))

        x = functional.embedding(ids, w["embed.token"])
        for layer, block in enumerate(spec.blocks):
            at, attention = f"block.{layer}.attn", block.attention
            assert attention is not None
            assert attention.rotary is not None
            half = torch.arange(0, attention.d_head, 2, dtype=torch.float64, device=self.device)
            angles = torch.outer(
                torch.arange(len(ids), dtype=torch.float64, device=self.device),
                float(attention.rotary.base) ** (-half / attention.d_head),
            )
            cos, sin = angles.cos().to(self.kind), angles.sin().to(self.kind)
            y = norm(x, at)

            def heads(name: str, turned: bool, y: Any = y, at: str = at, cos: Any = cos,
                      sin: Any = sin, d_head: int = attention.d_head) -> Any:  # fmt: skip
                part = functional.linear(y, w[f"{at}.{name}"])
                part = part.view(len(ids), -1, d_head).transpose(0, 1)
                if not turned:
                    return part
                a, b = part.chunk(2, dim=-1)
                return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

            mixed = functional.scaled_dot_product_attention(
                heads("q", True)[None], heads("k", True)[None], heads("v", False)[None],
                is_causal=True, enable_gqa=True,
            )[0]  # fmt: skip
            x = x + functional.linear(mixed.transpose(0, 1).reshape(len(ids), -1), w[f"{at}.out"])
            at = f"block.{layer}.mlp"
            y = norm(x, at)
            gated = functional.silu(functional.linear(y, w[f"{at}.gate"]))
            gated = gated * functional.linear(y, w[f"{at}.hidden"])
            x = x + functional.linear(gated, w[f"{at}.out"])
        return functional.linear(norm(x, "final"), w["embed.token"])

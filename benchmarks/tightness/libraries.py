"""The operations by torch's own functions, as in a port to torch."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import torch
from torch.nn import functional

Data = Any
TYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


class Torch:
    """Eager torch in one format; `fused` uses its fused functions if there are any."""

    def __init__(self, format: str, *, fused: bool) -> None:
        self.name = "torch, fused" if fused else "torch"
        self.kind, self.fused = TYPES[format], fused

    def _in(self, x: Data) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64)).to(self.kind)

    def _out(self, x: torch.Tensor) -> Data:
        return x.double().numpy()

    def add(self, x: Data, y: Data) -> Data:
        return self._out(self._in(x) + self._in(y))

    def multiply(self, x: Data, y: Data) -> Data:
        return self._out(self._in(x) * self._in(y))

    def linear(self, x: Data, weight: Data, bias: Data | None = None) -> Data:
        rows, matrix = self._in(x), self._in(weight)
        more = None if bias is None else self._in(bias)
        if self.fused:
            return self._out(functional.linear(rows, matrix.T.contiguous(), more))
        product = rows @ matrix
        return self._out(product if more is None else product + more)

    def mean(self, x: Data) -> Data:
        return self._out(self._in(x).mean(-1))

    def center(self, x: Data, mean: Data) -> Data:
        return self._out(self._in(x) - self._in(mean)[..., None])

    def mean_square(self, x: Data) -> Data:
        return self._out(self._in(x).pow(2).mean(-1))

    def root(self, x: Data, eps: float) -> Data:
        return self._out(torch.sqrt(self._in(x) + eps))

    def normalize(self, x: Data, by: Data) -> Data:
        return self._out(self._in(x) / self._in(by)[..., None])

    def affine(self, x: Data, gain: Data, bias: Data | None) -> Data:
        scaled = self._in(x) * self._in(gain)
        return self._out(scaled if bias is None else scaled + self._in(bias))

    def layernorm(self, x: Data, eps: float, gain: Data, bias: Data) -> Data:
        data, weight, more = self._in(x), self._in(gain), self._in(bias)
        if self.fused:
            return self._out(functional.layer_norm(data, data.shape[-1:], weight, more, eps))
        centred = data - data.mean(-1, keepdim=True)
        by = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps)
        return self._out(centred * by * weight + more)

    def rmsnorm(self, x: Data, eps: float, gain: Data) -> Data:
        data, weight = self._in(x), self._in(gain)
        if self.fused:
            return self._out(functional.rms_norm(data, data.shape[-1:], weight, eps))
        inner = data.float() if data.dtype is not torch.float64 else data
        inner = inner * torch.rsqrt(inner.pow(2).mean(-1, keepdim=True) + eps)
        return self._out(weight * inner.to(data.dtype))

    def rotate(self, x: Data, positions: list[int], base: float) -> Data:
        width = x.shape[-1]
        kind = torch.float64 if self.kind is torch.float64 else torch.float32
        rates = 1.0 / (base ** (torch.arange(0, width, 2, dtype=kind) / width))
        angles = torch.outer(torch.tensor(positions, dtype=kind), rates)
        both = torch.cat((angles, angles), dim=-1)
        cos, sin = both.cos().to(self.kind), both.sin().to(self.kind)
        data = self._in(x)
        turned = torch.cat((-data[..., width // 2 :], data[..., : width // 2]), dim=-1)
        return self._out(data * cos + turned * sin)

    def scores(self, q: Data, k: Data, scale: float) -> Data:
        product = self._in(q) @ self._in(k).transpose(1, 2)
        return self._out(product / sqrt(q.shape[-1]) if self.fused else product * scale)

    def softmax(self, x: Data) -> Data:
        return self._out(functional.softmax(self._in(x), dim=-1))

    def mix(self, weights: Data, v: Data) -> Data:
        return self._out(self._in(weights) @ self._in(v))

    def attention(self, q: Data, k: Data, v: Data, scale: float, hidden: Data) -> Data:
        a, b, c = (self._in(each) for each in (q, k, v))
        if self.fused:
            seen = torch.from_numpy(~hidden)
            found = functional.scaled_dot_product_attention(
                a[None], b[None], c[None], attn_mask=seen, scale=scale
            )
            return self._out(found[0])
        scores = (a @ b.transpose(1, 2) * scale).masked_fill(torch.from_numpy(hidden), -np.inf)
        inner = torch.float64 if self.kind is torch.float64 else torch.float32
        shares = functional.softmax(scores, dim=-1, dtype=inner).to(self.kind)
        return self._out(shares @ c)

    def activate(self, x: Data, kind: str) -> Data:
        data = self._in(x)
        if kind == "gelu_tanh" and not self.fused:  # as transformers writes it
            inner = sqrt(2.0 / torch.pi) * (data + 0.044715 * torch.pow(data, 3.0))
            return self._out(0.5 * data * (1.0 + torch.tanh(inner)))
        if kind == "gelu" and not self.fused:
            return self._out(data * 0.5 * (1.0 + torch.erf(data / sqrt(2.0))))
        if kind == "silu" and not self.fused:
            return self._out(data * torch.sigmoid(data))
        return self._out(
            {
                "relu": torch.relu,
                "gelu": functional.gelu,
                "gelu_tanh": lambda y: functional.gelu(y, approximate="tanh"),
                "silu": functional.silu,
                "quick_gelu": lambda y: y * torch.sigmoid(1.702 * y),
            }[kind](data)
        )

    def loss_of_logits(self, x: Data, target: int) -> Data:
        rows = self._in(x)[-1:]
        return self._out(functional.cross_entropy(rows, torch.tensor([target])))[None]

    def loss(self, probs: Data, target: int) -> Data:
        return self._out(-torch.log(self._in(probs)[-1:, target]))

"""A forward pass in NumPy, as somebody writes it who will need the values again on the way back.

Every result is rounded to the port's format and filed under byhand's address.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.gradients.lessons import Lesson
from byhand.model import Model

Data = Any
TYPES: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
}


class Pass:
    """The way from tokens to probabilities.  `bug` names a mistake that is made on the way back."""

    def __init__(
        self, model: Model, lesson: Lesson, format: str = "float32", bug: str = ""
    ) -> None:
        self.spec, self.lesson, self.bug = model.spec, lesson, bug
        self.type = TYPES[format]
        self.wide = np.float64 if format == "float64" else np.float32  # what is computed in
        self.w = {name: self.rounded(tensor.data) for name, tensor in model.weights.items()}
        self.dump: dict[str, Data] = {}
        block = self.spec.blocks[0]
        assert block.attention is not None
        assert block.mlp is not None
        self.attn, self.mlp_spec = block.attention, block.mlp
        self.scale = self.wide(1 / math.sqrt(self.attn.d_head))
        same = lesson.owners[:, None] == lesson.owners[None, :]
        self.sees = same & (lesson.places[:, None] >= lesson.places[None, :])

    def has(self, *bugs: str) -> bool:
        """Whether one of these mistakes is to be made."""
        return self.bug in bugs

    def rounded(self, value: Data) -> Data:
        """What is left of a value once it is stored."""
        return np.asarray(value).astype(self.type).astype(self.wide)

    def keep(self, address: str, value: Data) -> Data:
        """Stores a value under its address; returns what was stored."""
        stored = self.rounded(value)
        self.dump[address] = stored.astype(self.type)
        return stored

    def __getitem__(self, address: str) -> Data:
        """A value of this pass, as it was stored."""
        return self.dump[address].astype(self.wide)

    # ------------------------------------------------------------------ the pass

    def forward(self) -> None:
        x = self.keep("embed.token", self.w["embed.token"][self.lesson.tokens])
        if "embed.position" in self.w:
            place = self.keep("embed.position", self.w["embed.position"][self.lesson.places])
            x = self.keep("stream.0", x + place)
        for layer in range(len(self.spec.blocks)):
            x = self._block(f"block.{layer}", x)
        x = self._norm("final.norm", x)
        logits = self.keep("logits", x @ self.w["embed.token" if self.spec.tied else "head"].T)
        probs = self.keep("probs", softmax(logits))
        counted = self.lesson.targets >= 0
        losses = -np.log(probs[counted, self.lesson.targets[counted]])
        self.keep("mean_loss", self.rounded(losses).mean(keepdims=True))

    def _block(self, at: str, x: Data) -> Data:
        attended = self._attention(f"{at}.attn", self._norm(f"{at}.attn.norm", x))
        x = self.keep(f"{at}.attn.add", x + attended)
        thought = self._mlp(f"{at}.mlp", self._norm(f"{at}.mlp.norm", x))
        return self.keep(f"{at}.mlp.add", x + thought)

    def _norm(self, at: str, x: Data) -> Data:
        eps = self.wide(self.spec.final_norm.eps)
        if self.spec.final_norm.kind == "layernorm":
            mean = self.keep(f"{at}.mean", x.mean(-1))
            x = self.keep(f"{at}.centered", x - mean[:, None])
            square = self.keep(f"{at}.variance", np.square(x).mean(-1))
            by = self.keep(f"{at}.std", np.sqrt(square + eps))
        else:
            square = self.keep(f"{at}.mean_square", np.square(x).mean(-1))
            by = self.keep(f"{at}.rms", np.sqrt(square + eps))
        x = self.keep(f"{at}.normalized", x / by[:, None])
        bias = self.w.get(f"{at}.bias", self.wide(0))
        return self.keep(f"{at}.out", x * self.w[f"{at}.gain"] + bias)

    def dense(self, name: str, x: Data) -> Data:
        """x through a matrix and its bias."""
        weight = self.w[name] if self.spec.layout == "in_out" else self.w[name].T
        return x @ weight + self.w.get(f"{name}_bias", self.wide(0))

    def _attention(self, at: str, x: Data) -> Data:
        q, k, v = self._queries_keys_values(at, x)
        q, k, v = (self.keep(f"{at}.{name}", y) for name, y in zip("qkv", (q, k, v), strict=True))
        if self.attn.rotary:
            q = self.keep(f"{at}.q_rotated", self.turned(q, 1))
            k = self.keep(f"{at}.k_rotated", self.turned(k, 1))
        raw = q @ self.spread(k).transpose(0, 2, 1) * self.scale
        scores = self.keep(f"{at}.scores", np.where(self.sees, raw, -np.inf))
        weights = self.keep(f"{at}.weights", softmax(scores))
        mixed = self.keep(f"{at}.mixed", weights @ self.spread(v))
        return self.keep(f"{at}.out", self.dense(f"{at}.out", merged(mixed)))

    def _queries_keys_values(self, at: str, x: Data) -> list[Data]:
        if not self.attn.packed:
            return [self.by_head(self.dense(f"{at}.{name}", x)) for name in "qkv"]
        packed = self.keep(f"{at}.qkv", self.dense(f"{at}.qkv", x))
        return [self.by_head(part) for part in np.split(packed, 3, axis=-1)]

    def by_head(self, x: Data) -> Data:
        """(pos, heads side by side) → (head, pos, d_head)."""
        return x.reshape(len(x), -1, self.attn.d_head).transpose(1, 0, 2)

    def spread(self, x: Data) -> Data:
        """Keys or values, one for each query head."""
        return x.repeat(self.attn.heads // len(x), axis=0)

    def turned(self, x: Data, way: int) -> Data:
        """RoPE: halves of each head turned, forward (1) or back (-1)."""
        assert self.attn.rotary is not None
        width = self.attn.d_head
        rates = float(self.attn.rotary.base) ** (-np.arange(0, width, 2) / width)
        angles = way * np.outer(self.lesson.places, rates)
        cos, sin = np.cos(angles).astype(self.wide), np.sin(angles).astype(self.wide)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    def _mlp(self, at: str, x: Data) -> Data:
        gate = self.keep(f"{at}.gate", self.dense(f"{at}.gate", x)) if self.mlp_spec.gated else None
        hidden = self.keep(f"{at}.hidden", self.dense(f"{at}.hidden", x))
        if gate is None:
            inner = self.keep(f"{at}.act", gelu_tanh(hidden))
        else:
            act = self.keep(f"{at}.act", gate * sigmoid(gate))
            inner = self.keep(f"{at}.gated", act * hidden)
        return self.keep(f"{at}.out", self.dense(f"{at}.out", inner))


def merged(x: Data) -> Data:
    """(head, pos, d_head) → (pos, heads side by side)."""
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def softmax(x: Data) -> Data:
    """The shares of each row."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def sigmoid(x: Data) -> Data:
    """1/(1 + e^-x)."""
    return x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x))


def gelu_tanh(x: Data) -> Data:
    """GELU by tanh."""
    kind = x.dtype.type
    inner = kind(math.sqrt(2 / math.pi)) * (x + kind(0.044715) * x**3)
    return kind(0.5) * x * (kind(1) + np.tanh(inner))

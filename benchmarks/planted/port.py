"""The parts of a forward pass in torch, each in its own method.

A port computes in one format: every result is rounded to it, without islands of a finer format.
All values are kept under byhand's addresses.  A mistake replaces a part (`instead`), or changes the
port's inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from byhand.model import Model

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


class Port:
    """One pass over one text; `run` returns every value by address."""

    def __init__(self, model: Model, ids: Sequence[int], format: str = "float32") -> None:
        self.dtype: torch.dtype = getattr(torch, format)
        self.w = {
            name: torch.from_numpy(_plain(tensor.data)).to(self.dtype)
            for name, tensor in model.weights.items()
        }
        spec, block = model.spec, model.spec.blocks[0]
        assert block.attention is not None
        assert block.mlp is not None
        self.d_model, self.tied = spec.d_model, spec.tied
        self.layers = list(range(len(spec.blocks)))
        self.heads, self.kv_heads = block.attention.heads, block.attention.kv_heads
        self.d_head, self.scale = block.attention.d_head, block.attention.d_head**-0.5
        if rotary := block.attention.rotary:
            self.turning, self.base = rotary.width, float(rotary.base)
        self.eps = float(block.attn_norm.eps)
        self.activation = ACTIVATIONS[block.mlp.activation]
        self.ids = torch.tensor(list(ids))
        self.places = torch.arange(len(ids))
        self.kept: dict[str, Tensor] = {}

    def instead(self, **parts: Any) -> None:
        """Replaces these parts."""
        for name, part in parts.items():
            assert hasattr(self, name), name
            setattr(self, name, part)

    def run(self) -> dict[str, Any]:
        """Every value of the pass, as arrays of the format."""
        with torch.inference_mode():
            self.forward()
        return {address: as_array(value) for address, value in self.kept.items()}

    def keep(self, address: str, value: Tensor) -> Tensor:
        self.kept[address] = value
        return value

    # ------------------------------------------------------------------ the pass

    def forward(self) -> None:
        x = self.embedded()
        for layer in self.layers:
            x = self.block(f"block.{layer}", x)
        self.unembedded(self.last_norm(x))

    def embedded(self) -> Tensor:
        return self.keep("embed.token", self.w["embed.token"][self.ids])

    def block(self, at: str, x: Tensor) -> Tensor:
        """A pre-norm block: attention reads the stream and adds to it, then the MLP does."""
        read = self.norm(f"{at}.attn.norm", x)
        x = self.added(f"{at}.attn", x, self.attention(f"{at}.attn", read))
        read = self.norm(f"{at}.mlp.norm", x)
        return self.added(f"{at}.mlp", x, self.mlp(f"{at}.mlp", read))

    def added(self, at: str, x: Tensor, update: Tensor) -> Tensor:
        return self.keep(f"{at}.add", x + update)

    def last_norm(self, x: Tensor) -> Tensor:
        return self.norm("final.norm", x)

    def unembedded(self, x: Tensor) -> None:
        head = self.w["embed.token" if self.tied else "head"]
        logits = self.keep("logits", F.linear(x, head, self.w.get("head_bias")))
        self.keep("probs", logits.softmax(-1))
        self.keep("next", logits.argmax(-1))

    # ------------------------------------------------------------------ norms

    def norm(self, at: str, x: Tensor) -> Tensor:
        raise NotImplementedError

    def layernorm(self, at: str, x: Tensor) -> Tensor:
        centered = self.keep(f"{at}.centered", x - self.keep(f"{at}.mean", x.mean(-1))[:, None])
        variance = self.keep(f"{at}.variance", self.variance(centered))
        std = self.keep(f"{at}.std", self.root(variance))
        normalized = self.keep(f"{at}.normalized", centered / std[:, None])
        return self.keep(f"{at}.out", self.affine(at, normalized))

    def rmsnorm(self, at: str, x: Tensor) -> Tensor:
        square = self.keep(f"{at}.mean_square", x.square().mean(-1))
        rms = self.keep(f"{at}.rms", self.root(square))
        normalized = self.keep(f"{at}.normalized", x / rms[:, None])
        return self.keep(f"{at}.out", self.affine(at, normalized))

    def variance(self, centered: Tensor) -> Tensor:
        return centered.square().mean(-1)

    def root(self, square: Tensor) -> Tensor:
        return (square + self.eps).sqrt()

    def affine(self, at: str, x: Tensor) -> Tensor:
        x = x * self.w[f"{at}.gain"]
        return x + self.w[f"{at}.bias"] if f"{at}.bias" in self.w else x

    # ------------------------------------------------------------------ attention

    def attention(self, at: str, x: Tensor) -> Tensor:
        q, k, v = self.queries_keys_values(at, x)  # (head or kv_head, pos, d_head)
        q, k, v = self.placed(at, q, k, v)
        scores = self.keep(f"{at}.scores", self.masked(self.scores(q, self.spread(k))))
        weights = self.keep(f"{at}.weights", self.shares(scores))
        mixed = self.keep(f"{at}.mixed", self.mixed(weights, self.spread(v)))
        return self.keep(f"{at}.out", self.dense(f"{at}.out", self.merged(mixed)))

    def queries_keys_values(self, at: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        raise NotImplementedError

    def dense(self, name: str, x: Tensor) -> Tensor:
        raise NotImplementedError

    def by_head(self, x: Tensor, heads: int) -> Tensor:
        """(pos, heads·width) → (heads, pos, width)"""
        return x.view(len(x), heads, -1).transpose(0, 1)

    def placed(self, at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v after the positions inside attention: unchanged without RoPE."""
        return q, k, v

    def turned(self, x: Tensor) -> Tensor:
        """RoPE on the first entries of each head, entry i paired with the one half of them on."""
        part, rest = x[..., : self.turning], x[..., self.turning :]
        return torch.cat((self.turned_whole(part), rest), dim=-1)

    def turned_whole(self, x: Tensor) -> Tensor:
        cos, sin = self.cos_and_sin(x.shape[-1])
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def cos_and_sin(self, width: int) -> tuple[Tensor, Tensor]:
        """(pos, width/2): angles in float32 at the coarsest, whatever the format."""
        wide = torch.promote_types(self.dtype, torch.float32)
        rates = 1.0 / self.base ** (torch.arange(0, width, 2, dtype=wide) / width)
        angles = self.places.to(wide)[:, None] * rates
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)

    def spread(self, x: Tensor) -> Tensor:
        """Each key head repeated for the query heads that share it."""
        return x.repeat_interleave(self.heads // self.kv_heads, dim=0)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        product: Tensor = (q @ k.transpose(1, 2)) * self.scale
        return product

    def masked(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(~self.may_look(scores.shape[-1]), -torch.inf)

    def may_look(self, length: int) -> Tensor:
        """(query, key)"""
        return torch.ones(length, length, dtype=torch.bool).tril()

    def shares(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def mixed(self, weights: Tensor, v: Tensor) -> Tensor:
        return weights @ v

    def merged(self, mixed: Tensor) -> Tensor:
        """(head, pos, d_head) → (pos, head·d_head)"""
        return mixed.transpose(0, 1).reshape(mixed.shape[1], -1)

    # ------------------------------------------------------------------ the MLP

    def mlp(self, at: str, x: Tensor) -> Tensor:
        hidden = self.keep(f"{at}.hidden", self.dense(f"{at}.hidden", x))
        return self.narrowed(at, self.keep(f"{at}.act", self.activation(hidden)))

    def narrowed(self, at: str, x: Tensor) -> Tensor:
        return self.keep(f"{at}.out", self.dense(f"{at}.out", x))


def _plain(data: Any) -> Any:
    """The same numbers in a format that torch reads from NumPy: it does not know ml_dtypes."""
    return np.array(data, dtype=np.float32 if data.dtype.kind == "V" else None)


def as_array(value: Tensor) -> Any:
    """The same numbers in NumPy, with bfloat16 from ml_dtypes."""
    if value.dtype == torch.bfloat16:
        return value.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()

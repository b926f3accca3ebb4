"""Ports of the museum's models in torch: those of the planted bugs, with what newer models have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.planted.families import Gpt2, GptNeoX, Llama
from benchmarks.planted.port import Port
from byhand.model import Model
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import constant


class Replica(Llama):
    """Llama, with what later models have: norms of q and k, scaled frequencies, sinks, experts."""

    def __init__(self, model: Model, ids: Sequence[int], format: str = "float32") -> None:
        super().__init__(model, ids, format)
        spec, attention = model.spec, model.spec.blocks[0].attention
        assert attention is not None
        assert attention.scale is not None
        self.rotary, self.window = attention.rotary, attention.window
        self.scale = float(constant(attention.scale, FORMATS["float64"]))
        self.magnitude = 1.0
        if self.rotary is not None and self.rotary.magnitude is not None:
            self.magnitude = float(constant(self.rotary.magnitude, FORMATS["float64"]))
        mlp = spec.blocks[0].mlp
        assert mlp is not None
        self.chosen, self.normalised = mlp.chosen, mlp.normalised
        self.owners = torch.zeros_like(self.places)  # the text of each position
        self.embed_scale = 1.0
        if spec.embed_scale is not None:
            self.embed_scale = float(constant(spec.embed_scale, FORMATS["float64"]))

    def side_by_side(self, *lengths: int) -> None:
        """Makes the tokens several texts of these lengths: positions begin again with each."""
        self.places = torch.cat([torch.arange(length) for length in lengths])
        self.owners = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))

    def embedded(self) -> Tensor:
        """(pos, d)"""
        return self.keep("embed.token", self.w["embed.token"][self.ids] * self.embed_scale)

    def placed(self, at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q and k normalised and turned, where the model does that."""
        if f"{at}.q_norm.gain" in self.w:
            q, k = self.normed(f"{at}.q_norm", q), self.normed(f"{at}.k_norm", k)
        if self.rotary is None:
            return q, k, v
        self.at = at
        q = self.keep(f"{at}.q_rotated", self.turned(q))
        return q, self.keep(f"{at}.k_rotated", self.turned(k)), v

    def rmsnorm(self, at: str, x: Tensor) -> Tensor:
        """(pos, d), with the mean square in float32 at the coarsest"""
        rms = self.keep(f"{at}.rms", self.root(self.keep(f"{at}.mean_square", self.squares(x))))
        normalized = self.keep(f"{at}.normalized", x / rms[:, None])
        return self.keep(f"{at}.out", self.affine(at, normalized))

    def squares(self, x: Tensor) -> Tensor:
        """The mean square of each row."""
        return x.to(torch.float32).square().mean(-1).to(self.dtype)

    def normed(self, at: str, x: Tensor) -> Tensor:
        """RMSNorm of each head's row."""
        rms = self.keep(f"{at}.rms", self.root(self.keep(f"{at}.mean_square", self.squares(x))))
        normalized = self.keep(f"{at}.normalized", x / rms[..., None])
        return self.keep(f"{at}.out", self.affine(at, normalized))

    def turned_whole(self, x: Tensor) -> Tensor:
        """RoPE on halves, or on neighbours if the model says so."""
        if self.rotary is None or self.rotary.pairing == "half":
            return super().turned_whole(x)
        return self.turned_neighbours(x)

    def turned_neighbours(self, x: Tensor) -> Tensor:
        """RoPE on pairs (2i, 2i + 1)."""
        cos, sin = self.cos_and_sin(x.shape[-1])
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)

    def cos_and_sin(self, width: int) -> tuple[Tensor, Tensor]:
        """(pos, width/2)"""
        angles = self.places.to(torch.float32)[:, None] * self.rates(width)
        cos, sin = angles.cos() * self.magnitude, angles.sin() * self.magnitude
        return cos.to(self.dtype), sin.to(self.dtype)

    def rates(self, width: int) -> Tensor:
        """The angle per position of each pair."""
        if self.rotary is not None and self.rotary.given:
            return self.w[f"{self.at}.frequencies"].to(torch.float32)
        return self.plain_rates(width)

    def plain_rates(self, width: int) -> Tensor:
        """Powers of the base."""
        return 1.0 / self.base ** (torch.arange(0, width, 2, dtype=torch.float32) / width)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """(head, query, key)"""
        scores = super().scores(q, k)
        if "block.0.attn.slopes" not in self.w:
            return scores
        distance = self.places[:, None] - self.places[None, :]
        return scores - self.slopes()[:, None, None] * distance.abs()

    def slopes(self) -> Tensor:
        """ALiBi's slope of each head."""
        return self.w["block.0.attn.slopes"]

    def shares(self, scores: Tensor) -> Tensor:
        """(head, query, key); a sink takes a share and has no value"""
        if self.sinks is None:
            return super().shares(scores)
        sinks = self.sinks[:, None, None].expand(*scores.shape[:2], 1)
        return torch.cat((scores, sinks), -1).softmax(-1)[..., :-1]

    def attention(self, at: str, x: Tensor) -> Tensor:
        """(pos, d)"""
        self.sinks = self.w.get(f"{at}.sinks")
        return super().attention(at, x)

    # ------------------------------------------------------------------ experts

    def mlp(self, at: str, x: Tensor) -> Tensor:
        """One MLP, or the experts that the router chooses."""
        if self.chosen is None:
            return super().mlp(at, x)
        router = self.keep(f"{at}.router", self.dense(f"{at}.router", x))
        chosen = self.keep(f"{at}.chosen", self.choice(router))
        shares = self.keep(f"{at}.shares", self.expert_shares(router, chosen))
        gate = self.keep(f"{at}.gate", self.each(f"{at}.gate", x))
        hidden = self.keep(f"{at}.hidden", self.each(f"{at}.hidden", x))
        gated = self.keep(f"{at}.gated", self.gated(at, gate, hidden))
        answers = self.keep(f"{at}.answers", self.each(f"{at}.out", gated))
        return self.keep(f"{at}.out", torch.einsum("pe,epd->pd", shares, answers))

    def each(self, name: str, x: Tensor) -> Tensor:
        """(expert, pos, …): what each expert makes of x, or of its own x"""
        result = x @ self.w[name].transpose(1, 2)
        bias = self.w.get(f"{name}_bias")
        return result if bias is None else result + bias[:, None]

    def choice(self, router: Tensor) -> Tensor:
        """(pos, expert): 1 for the experts that answer"""
        largest = router.topk(self.chosen or 0, dim=-1).indices
        return torch.zeros_like(router).scatter(-1, largest, 1.0)

    def expert_shares(self, router: Tensor, chosen: Tensor) -> Tensor:
        """(pos, expert)"""
        if self.normalised:
            return router.masked_fill(chosen == 0, -torch.inf).softmax(-1)
        return router.softmax(-1) * chosen

    # ------------------------------------------------------------------ masks

    def may_look(self, length: int) -> Tensor:
        """(query, key)"""
        seen = super().may_look(length) & (self.owners[:, None] == self.owners[None, :])
        return seen if self.window is None else seen.triu(1 - self.window)


class Serial(GptNeoX):
    """GPT-NeoX with attention first and the MLP after it."""

    def block(self, at: str, x: Tensor) -> Tensor:
        """(pos, d)"""
        return Port.block(self, at, x)


def replica(model: Model, ids: Sequence[int], format: str) -> Port:
    """The port of a model, without a mistake."""
    if model.spec.position == "learned":
        return Gpt2(model, ids, format)
    if model.spec.final_norm.kind == "layernorm":
        kind = GptNeoX if model.spec.blocks[0].parallel else Serial
        return kind(model, ids, format)
    return Replica(model, ids, format)


def as_tensor(data: Any) -> Tensor:
    """The same numbers in torch."""
    return torch.from_numpy(np.ascontiguousarray(data))

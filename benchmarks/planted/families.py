"""The three ports: what is particular to GPT-2, to Llama (and Qwen 2), and to GPT-NeoX."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor

from benchmarks.planted.port import Port


class Gpt2(Port):
    """Learned positions, layernorm, matrices that stand to the right of x, q, k, v in a row."""

    def embedded(self) -> Tensor:
        position = self.keep("embed.position", self.w["embed.position"][self.places])
        return self.keep("stream.0", super().embedded() + position)

    def norm(self, at: str, x: Tensor) -> Tensor:
        return self.layernorm(at, x)

    def dense(self, name: str, x: Tensor) -> Tensor:
        return x @ self.w[name] + self.w[f"{name}_bias"]

    def queries_keys_values(self, at: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        packed = self.keep(f"{at}.qkv", self.dense(f"{at}.qkv", x))
        q, k, v = self.unpacked(packed)
        return self.keep(f"{at}.q", q), self.keep(f"{at}.k", k), self.keep(f"{at}.v", v)

    def unpacked(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All of q, then all of k, then all of v."""
        q, k, v = packed.chunk(3, dim=-1)
        return (self.by_head(q, self.heads), self.by_head(k, self.heads),
                self.by_head(v, self.heads))  # fmt: skip


class Llama(Port):
    """Grouped queries, RoPE on whole heads, RMSNorm, a gated MLP; biases where there are some."""

    def norm(self, at: str, x: Tensor) -> Tensor:
        return self.rmsnorm(at, x)

    def dense(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.w[name], self.w.get(f"{name}_bias"))

    def queries_keys_values(self, at: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.by_head(self.dense(f"{at}.q", x), self.heads)
        k = self.by_head(self.dense(f"{at}.k", x), self.kv_heads)
        v = self.by_head(self.dense(f"{at}.v", x), self.kv_heads)
        return self.keep(f"{at}.q", q), self.keep(f"{at}.k", k), self.keep(f"{at}.v", v)

    def placed(self, at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.keep(f"{at}.q_rotated", self.turned(q))
        return q, self.keep(f"{at}.k_rotated", self.turned(k)), v

    def mlp(self, at: str, x: Tensor) -> Tensor:
        gate = self.keep(f"{at}.gate", self.dense(f"{at}.gate", x))
        hidden = self.keep(f"{at}.hidden", self.dense(f"{at}.hidden", x))
        return self.narrowed(at, self.keep(f"{at}.gated", self.gated(at, gate, hidden)))

    def gated(self, at: str, gate: Tensor, hidden: Tensor) -> Tensor:
        return self.keep(f"{at}.act", self.activation(gate)) * hidden


class GptNeoX(Port):
    """Attention and MLP side by side, RoPE on part of each head, q, k, v packed head by head."""

    def norm(self, at: str, x: Tensor) -> Tensor:
        return self.layernorm(at, x)

    def dense(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.w[name], self.w.get(f"{name}_bias"))

    def block(self, at: str, x: Tensor) -> Tensor:
        attended = self.attention(f"{at}.attn", self.norm(f"{at}.attn.norm", x))
        thought = self.mlp(f"{at}.mlp", self.norm(f"{at}.mlp.norm", x))
        return self.added(f"{at}.mlp", self.added(f"{at}.attn", x, attended), thought)

    def queries_keys_values(self, at: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        packed = self.keep(f"{at}.qkv", self.dense(f"{at}.qkv", x))
        q, k, v = self.unpacked(packed)
        return self.keep(f"{at}.q", q), self.keep(f"{at}.k", k), self.keep(f"{at}.v", v)

    def unpacked(self, packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q, k and v of head 0, then of head 1, …"""
        q, k, v = self.by_head(packed, self.heads).chunk(3, dim=-1)
        return q, k, v

    def placed(self, at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = self.keep(f"{at}.q_rotated", self.turned(q))
        return q, self.keep(f"{at}.k_rotated", self.turned(k)), v


PORTS: dict[str, type[Port]] = {
    "gpt2": Gpt2,
    "llama": Llama,
    "qwen": Llama,
    "gpt_neox": GptNeoX,
}

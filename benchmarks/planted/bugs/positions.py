"""Mistakes about positions: RoPE, tables of positions, padding."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.bugs.catalogue import LLAMAS, ROPE, bug
from benchmarks.planted.port import Port

TURNED = "block.0.attn.q_rotated"
PADDING = 5  # tokens before the text


@bug("RoPE on neighbours (2i, 2i + 1) for halves (i, i + width/2)", TURNED, "rope-pairing", ROPE)
def rope_interleaved(port: Port) -> None:
    def turned_whole(x: Tensor) -> Tensor:
        cos, sin = port.cos_and_sin(x.shape[-1])
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)

    port.instead(turned_whole=turned_whole)


@bug(
    "RoPE with another base",
    TURNED,
    "rope-base",
    ROPE,
    says={"": "is 10000;", "gpt_neox": "is 500000;"},
)
def rope_base(port: Port) -> None:
    port.base = 10_000.0 if port.base != 10_000.0 else 500_000.0


@bug("RoPE positions counted from 1", TURNED, "position-offset rope-offset", ROPE, says="from 1;")
def rope_from_one(port: Port) -> None:
    port.places = port.places + 1


@bug("RoPE turns the other way", TURNED, "rope-direction", ROPE)
def rope_backwards(port: Port) -> None:
    usual = port.cos_and_sin

    def cos_and_sin(width: int) -> tuple[Tensor, Tensor]:
        cos, sin = usual(width)
        return cos, -sin

    port.instead(cos_and_sin=cos_and_sin)


@bug("RoPE on v as well", "block.0.attn.mixed", "rope-on-v", ROPE)
def rope_on_v(port: Port) -> None:
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = usual(at, q, k, v)
        return q, k, port.turned(v)

    port.instead(placed=placed)


@bug("no RoPE on k", "block.0.attn.k_rotated", "rope-missing", ROPE, says="not applied to k;")
def rope_not_on_k(port: Port) -> None:
    usual = port.placed

    def placed(at: str, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, _turned, v = usual(at, q, k, v)
        return q, port.keep(f"{at}.k_rotated", k), v

    port.instead(placed=placed)


@bug("RoPE on the last entries of each head", TURNED, "rope-part", "gpt_neox", says="last 8")
def rope_on_last_part(port: Port) -> None:
    def turned(x: Tensor) -> Tensor:
        rest = x.shape[-1] - port.turning
        return torch.cat((x[..., :rest], port.turned_whole(x[..., rest:])), dim=-1)

    port.instead(turned=turned)


@bug("RoPE on whole heads", TURNED, "rope-part", "gpt_neox", says="first 32")
def rope_on_whole_heads(port: Port) -> None:
    port.instead(turned=port.turned_whole)


@bug("RoPE on half of each head", TURNED, "rope-part", LLAMAS, says="first 8")
def rope_on_half_heads(port: Port) -> None:
    port.turning //= 2


@bug(
    "RoPE rates by the head's width where only part of it turns",
    TURNED,
    "rope-base rope-part",
    "gpt_neox",
)
def rope_rates_of_whole_head(port: Port) -> None:
    def cos_and_sin(width: int) -> tuple[Tensor, Tensor]:
        rates = port.base ** (-torch.arange(0, width, 2, dtype=torch.float32) / port.d_head)
        angles = port.places.to(torch.float32)[:, None] * rates
        return angles.cos().to(port.dtype), angles.sin().to(port.dtype)

    port.instead(cos_and_sin=cos_and_sin)


@bug("learned positions off by one", "embed.position", "position-offset", "gpt2", says="from 1;")
def positions_from_one(port: Port) -> None:
    port.places = port.places + 1


@bug(
    "positions counted with the padding on the left",
    {"": TURNED, "gpt2": "embed.position"},
    "padding-positions",
    padding=PADDING,
    says="5 positions",
)
def padding_counted(port: Port) -> None:
    port.places = port.places + PADDING


@bug("embeddings off by one row", "embed.token", "token-row", says="id + 1")
def embedding_off_by_one(port: Port) -> None:
    port.ids = port.ids + 1


@bug("positions not added", "stream.0", "position-missing", "gpt2")
def positions_missing(port: Port) -> None:
    usual = port.embedded

    def embedded() -> Tensor:
        usual()
        return port.keep("stream.0", port.kept["embed.token"])

    port.instead(embedded=embedded)


@bug("embeddings scaled by √d_model", "embed.token", "embed-scale-extra", says="by √")
def embeddings_scaled(port: Port) -> None:
    port.w["embed.token"] = port.w["embed.token"] * port.d_model**0.5

"""Self-attention of a batch as one operation with a gradient of its own, for the CPU.

Queries, keys and values come packed, (batch, pos, 3·heads·d_head), with the entries that RoPE
turns in pairs side by side, so that turning them is one product of complex numbers.  Forwards and
backwards everything stays in one buffer (3·heads, batch, pos, d_head): texts are short and heads
narrow, so what counts is how often memory is walked through.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from byhand.numbers.floats.angles import turns

COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}


class Attention(torch.autograd.Function):
    """softmax(scale·q·kᵀ + bias)·v of packed queries, keys and values, turned first."""

    @staticmethod
    def forward(
        ctx: Any, packed: Tensor, heads: int, scale: float, bias: Tensor, turn: Tensor | None
    ) -> Tensor:
        """`bias` is (pos, pos), -∞ where a key is not seen; `turn` (pos, width/2) is complex."""
        batch, length, width = packed.shape
        inside = packed.view(batch, length, 3 * heads, -1).permute(2, 0, 1, 3).contiguous()
        if turn is not None:
            _pairs(inside, heads, turn).mul_(turn)
        q, k, v = _parts(inside)
        shares = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=scale).softmax(dim=-1)
        ctx.save_for_backward(inside, shares)
        ctx.scale, ctx.turn = scale, turn
        mixed = torch.bmm(shares, v).view(heads, batch, length, -1)
        return mixed.permute(1, 2, 0, 3).reshape(batch, length, width // 3)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradient of the queries, keys and values, from that of the mixed values."""
        (gradient,) = gradients
        inside, shares = ctx.saved_tensors
        triple, batch, length, d_head = inside.shape
        heads = triple // 3
        q, k, v = _parts(inside)
        mixed = gradient.view(batch, length, heads, d_head).permute(2, 0, 1, 3)
        mixed = mixed.reshape(heads * batch, length, d_head)
        back = torch.empty_like(inside)
        to_q, to_k, to_v = _parts(back)
        torch.bmm(shares.transpose(1, 2), mixed, out=to_v)
        scores = torch._softmax_backward_data(
            torch.bmm(mixed, v.transpose(1, 2)), shares, -1, shares.dtype
        )
        torch.baddbmm(to_q, scores, k, beta=0, alpha=ctx.scale, out=to_q)
        torch.baddbmm(to_k, scores.transpose(1, 2), q, beta=0, alpha=ctx.scale, out=to_k)
        if ctx.turn is not None:
            _pairs(back, heads, ctx.turn).mul_(ctx.turn.conj())
        packed = back.permute(1, 2, 0, 3).reshape(batch, length, triple * d_head)
        return packed, None, None, None, None


def _parts(inside: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each (head·batch, pos, d_head): views."""
    q, k, v = inside.view(3, -1, *inside.shape[2:])
    return q, k, v


def _pairs(inside: Tensor, heads: int, turn: Tensor) -> Tensor:
    """The pairs of queries and keys that are turned, as complex numbers: a view."""
    turned = inside[: 2 * heads, ..., : 2 * turn.shape[1]]
    return torch.view_as_complex(turned.view(*turned.shape[:-1], -1, 2))


@lru_cache(maxsize=64)
def turning(kind: torch.dtype, positions: tuple[int, ...], width: int, base: Fraction) -> Tensor:
    """e^(i·angle) of each position and pair."""
    cos, sin = turns(positions, width, base, None)
    return torch.complex(torch.tensor(cos), torch.tensor(sin)).to(COMPLEX[kind])


@lru_cache(maxsize=64)
def unseen(kind: torch.dtype, mask: tuple[tuple[bool, ...], ...]) -> Tensor:
    """0 where a query may look at a key, -∞ where it may not."""
    return torch.zeros(len(mask), len(mask[0]), dtype=kind).masked_fill(
        ~torch.tensor(mask), -torch.inf
    )


@lru_cache(maxsize=64)
def side_by_side(heads: int, d_head: int, width: int, pairing: str) -> Tensor:
    """The columns of packed matrices in an order in which a pair's two entries are neighbours.

    Queries and keys are reordered alike, so their products stay what they are.
    """
    inside = list(range(d_head))
    if pairing == "half":
        half = width // 2
        inside[:width] = [place for i in range(half) for place in (i, i + half)]
    turned = [head * d_head + place for head in range(2 * heads) for place in inside]
    return torch.tensor([*turned, *range(2 * heads * d_head, 3 * heads * d_head)])

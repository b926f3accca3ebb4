"""The number system for training: torch tensors with a batch axis in front.

Every value has the batch as an additional first axis.  Norms and attentions are one operation each
(see `fusion`); a plain attention has one product for q, k and v together.  No value is read on the
way, so gradients flow and the device never waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from byhand.expression import Expression
from byhand.numbers.base import Array
from byhand.numbers.floats.angles import turns
from byhand.numbers.tensors import Masked, Tensors


class Learning(Tensors):
    """Floats of one format on one device, a batch of texts at a time."""

    def admit(self, data: Any) -> Array:
        return data if isinstance(data, Tensor) else super().admit(data)

    def _give(self, result: Tensor, *made_of: Array | None) -> Tensor:
        return result

    # ------------------------------------------------------------------- the operations

    def embed(self, table: Array, ids: Any, *, scale: Expression | None = None) -> Array:
        """Rows of the table; `ids` are a tensor (batch, pos), or positions that all texts share."""
        if not isinstance(ids, Tensor):
            ids = _whole(tuple(ids), self.device)[None]
        rows = functional.embedding(ids, table)
        return rows if scale is None else rows * self._constant(scale)

    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        rows = super().sinusoid(positions=positions, width=width, base=base, pairing=pairing)
        return rows[None]

    def layernorm(
        self, x: Array, *, gain: Array | None = None, bias: Array | None = None, eps: Fraction
    ) -> Array:
        """(x - mean)/√(variance + eps), times gain, plus bias; a row without variance gives 0."""
        if eps:
            return functional.layer_norm(x, x.shape[-1:], gain, bias, self._constant(eps))
        centered = x - x.mean(dim=-1, keepdim=True)
        return self._affine(
            _over(centered, centered.square().mean(dim=-1, keepdim=True)), gain, bias
        )

    def rmsnorm(self, x: Array, *, gain: Array | None = None, eps: Fraction) -> Array:
        """x/√(mean square + eps), times gain; a row of zeros gives 0."""
        if eps:
            return functional.rms_norm(x, x.shape[-1:], gain, self._constant(eps))
        return self._affine(_over(x, x.square().mean(dim=-1, keepdim=True)), gain, None)

    def _affine(self, x: Tensor, gain: Array | None, bias: Array | None) -> Tensor:
        result: Tensor = self.affine(x, gain=gain, bias=bias)
        return result

    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        rows = self.merge_heads(x) if x.dim() == 4 else x
        result = functional.linear(rows, weight.T if layout == "in_out" else weight, bias)
        return result if heads is None else _by_heads(result, heads)

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        last = start + (heads - 1) * stride + width
        return x[..., start:last].unfold(2, width, stride).transpose(1, 2)

    def merge_heads(self, x: Array) -> Array:
        return x.transpose(1, 2).flatten(2)

    def self_attention(
        self,
        x: Array,
        q: Array,
        k: Array,
        v: Array,
        *,
        q_bias: Array | None = None,
        k_bias: Array | None = None,
        v_bias: Array | None = None,
        layout: str,
        heads: int,
        mask: Sequence[Sequence[bool]],
        scale: Expression | None = None,
        positions: Sequence[int] = (),
        width: int = 0,
        base: Fraction = Fraction(1),
        pairing: str = "interleaved",
    ) -> Array:
        """From the stream to `mixed`: the matrices, RoPE on `width` entries, attention."""
        axis = 1 if layout == "in_out" else 0
        columns = _side_by_side(heads, q.shape[axis] // heads, width, pairing).to(self.device)
        bias = None
        if q_bias is not None or k_bias is not None or v_bias is not None:
            bias = torch.cat([
                q.new_zeros(q.shape[axis]) if part is None else part
                for part in (q_bias, k_bias, v_bias)
            ])[columns]  # fmt: skip
        matrix = torch.cat((q, k, v), dim=axis).index_select(axis, columns)
        packed = self.linear(x, matrix, bias=bias, layout=layout, heads=3 * heads)
        both, values = packed[:, : 2 * heads], packed[:, 2 * heads :]
        if width:
            both = self._turned(both, tuple(positions), width, base)
        places = range(len(mask))
        return self.attend(
            values, both[:, :heads], both[:, heads:], scale=scale, mask=mask, queries=places,
            keys=places,
        )  # fmt: skip

    def _turned(self, x: Tensor, positions: tuple[int, ...], width: int, base: Fraction) -> Tensor:
        """RoPE on rows whose pairs lie side by side: a product of complex numbers."""
        turn = _turning(self._work, self.device, positions, width, base)
        pairs = x[..., :width].to(self._work).reshape(*x.shape[:-1], -1, 2)
        turned = torch.view_as_real(torch.view_as_complex(pairs) * turn).flatten(-2)
        return turned if width == x.shape[-1] else torch.cat((turned, x[..., width:]), dim=-1)

    def attend(
        self,
        v: Array,
        q: Array | None = None,
        k: Array | None = None,
        *,
        heads: int = 1,
        table: Array | None = None,
        slopes: Array | None = None,
        scale: Expression | None = None,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        """Scores, softmax and mix at once; without q and k, of the table and the slopes alone."""
        if q is None or k is None:
            q = v.new_zeros(len(v), heads, len(queries), 1)
            k = v.new_zeros(len(v), v.shape[1], len(keys), 1)
        causal = _is_causal(mask) and table is None and slopes is None
        bias = nothing = None
        if not causal:
            bias = self._bias(table, slopes, mask, queries, keys)
            nothing = (bias == -torch.inf).all(dim=-1, keepdim=True)  # rows that see no key
            bias = bias.masked_fill(nothing, 0)
        factor = 1.0 if scale is None else self._constant(scale)
        if factor < 0:  # torch's kernels find the largest score before scaling
            q, factor = -q, -factor
        mixed = functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=bias,
            is_causal=causal and len(mask) > 1,
            scale=factor,
            enable_gqa=q.shape[1] != v.shape[1],
        )
        return mixed if nothing is None else mixed.masked_fill(nothing, 0)

    def _bias(
        self,
        table: Array | None,
        slopes: Array | None,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Tensor:
        """The addend of the scores: ALiBi, the table, and -∞ where a key is not seen."""
        allowed = torch.tensor(mask, device=self.device)
        bias = torch.zeros(allowed.shape, dtype=self.kind, device=self.device)
        if slopes is not None:
            asking = torch.tensor(queries, device=self.device)
            distance = (asking[:, None] - torch.tensor(keys, device=self.device)).abs()
            bias = bias - slopes[:, None, None] * distance
        if table is not None:
            rows = table.data if isinstance(table, Masked) else table
            bias = bias + rows[:, list(queries)][:, :, list(keys)]
        return bias.masked_fill(~allowed, -torch.inf)


def _by_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, pos, head·width) as (batch, head, pos, width): a view."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def _over(x: Tensor, square: Tensor) -> Tensor:
    """x/√square; where both are 0, the result and its gradient are 0."""
    empty = square == 0
    return torch.where(empty, 0.0, x / torch.where(empty, 1.0, square).sqrt())


@cache
def _is_causal(mask: tuple[tuple[bool, ...], ...]) -> bool:
    """Whether each position sees itself and all before, and nothing else."""
    return all(
        row == (True,) * (i + 1) + (False,) * (len(mask) - i - 1) for i, row in enumerate(mask)
    )


@cache
def _whole(ids: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(ids, device=device)


@lru_cache(maxsize=64)
def _turning(
    kind: torch.dtype, device: torch.device, positions: tuple[int, ...], width: int, base: Fraction
) -> Tensor:
    """e^(i·angle) of each position and pair."""
    cos, sin = (torch.tensor(part).to(device, kind) for part in turns(positions, width, base, None))
    return torch.complex(cos, sin)


@lru_cache(maxsize=64)
def _side_by_side(heads: int, d_head: int, width: int, pairing: str) -> Tensor:
    """The columns of packed matrices in an order in which a pair's two entries are neighbours.

    Queries and keys are reordered alike, so their products stay what they are.
    """
    inside = list(range(d_head))
    if pairing == "half":
        half = width // 2
        inside[:width] = [place for i in range(half) for place in (i, i + half)]
    turned = [head * d_head + place for head in range(2 * heads) for place in inside]
    return torch.tensor([*turned, *range(2 * heads * d_head, 3 * heads * d_head)])

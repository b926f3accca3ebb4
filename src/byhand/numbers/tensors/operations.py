"""The operations of a transformer on torch tensors; `learning` has those of learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import Array, Note, Prediction
from byhand.numbers.devices import to_numpy
from byhand.numbers.floats.angles import sinusoids, turns
from byhand.numbers.floats.results import chosen_of, in_best_groups, predict
from byhand.numbers.tensors.learning import Learning, side_by_side
from byhand.numbers.tensors.system import Masked


def _gelu(root: float, x: Tensor) -> Tensor:
    """x·(1 + tanh u)/2, where u = root·(x + 0.044715·x³)."""
    return 0.5 * x * (1 + (root * x * (1 + 0.044715 * x * x)).tanh())


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu_fast": lambda x: _gelu(0.7978845608, x),
    "gelu_bloom": lambda x: _gelu(0.79788456, x),
    "silu": functional.silu,
    "quick_gelu": lambda x: x * (1.702 * x).sigmoid(),
    "relu2": lambda x: functional.relu(x).square(),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "identity": lambda x: x,
}


class Tensors(Learning):
    """Floats of one format on one device."""

    # ------------------------------------------------------------------- embedding and sums

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        rows = functional.embedding(torch.tensor(ids, device=self.device), table)
        if scale is not None:
            rows = rows.to(self._work) * self._constant(scale)
        return self._give(rows, table)

    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        return self.admit(sinusoids(positions, width, base, pairing))

    def add(self, x: Array, y: Array) -> Array:
        return self._give(x + y, x, y)

    def multiply(self, x: Array, y: Array) -> Array:
        return self._give(x * y, x, y)

    # ------------------------------------------------------------------- norms

    def mean(self, x: Array) -> Array:
        return self._give(x.mean(dim=-1, dtype=self._work), x)

    def center(self, x: Array, mean: Array) -> Array:
        return self._give(x - mean.unsqueeze(-1), x, mean)

    def mean_square(self, x: Array) -> Array:
        return self._give(x.to(self._work).square().mean(dim=-1), x)

    def root(self, x: Array, *, eps: Fraction) -> Array:
        return self._give((x.to(self._work) + self._constant(eps)).sqrt(), x)

    def normalize(self, x: Array, by: Array) -> Array:
        empty = (by == 0) & (x == 0).all(dim=-1)
        result = x / torch.where(empty, torch.ones_like(by), by).unsqueeze(-1)
        if not result.requires_grad:
            for place in torch.nonzero(empty).tolist():
                self.notes.append(Note("zero-variance", tuple(place)))
        return self._give(result, x, by)

    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Array:
        result = x.to(self._work)
        if gain is not None:
            factor = gain.to(self._work)
            result = result * (1 + factor if plus_one else factor)
        if bias is not None:
            result = result + bias.to(self._work)
        return self._give(result, x, gain, bias)

    # ------------------------------------------------------------------- entry by entry

    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Array:
        result = x.to(self._work)
        result = result if by is None else result * self._constant(by)
        return self._give(result if plus is None else result + self._constant(plus), x)

    def soft_cap(self, x: Array, *, cap: Fraction) -> Array:
        return self._give(self._capped(x.to(self._work), cap), x)

    def _capped(self, x: Tensor, cap: Fraction) -> Tensor:
        limit = self._constant(cap)
        return (x / limit).tanh() * limit

    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        low, high = (None if end is None else self._constant(end) for end in (least, most))
        result = x.to(self._work)
        return self._give(result if low is None and high is None else result.clamp(low, high), x)

    def weigh(self, x: Array, by: Array) -> Array:
        return self._give(x.to(self._work) * by.to(self._work), x, by)

    def beside(self, x: Array, y: Array) -> Array:
        return torch.cat((x, y.expand(*x.shape[:-1], y.shape[-1])), dim=-1)

    # ------------------------------------------------------------------- products

    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        rows = side_by_side(x)
        matrix = weight.T if layout == "in_out" else weight
        result = functional.linear(rows, matrix, bias)
        if heads is not None:
            result = result.reshape(len(result), heads, -1).transpose(0, 1)
        return self._give(result, x, bias, weight)

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        last = start + (heads - 1) * stride + width
        return x[:, start:last].unfold(1, width, stride).transpose(0, 1)

    def merge_heads(self, x: Array) -> Array:
        return side_by_side(x)

    def join(self, x: Array, y: Array) -> Array:
        return torch.cat((x, y), dim=-2)

    def rotate(
        self,
        x: Array,
        *,
        frequencies: Array | None = None,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str,
        magnitude: Expression | None = None,
    ) -> Array:
        if frequencies is None:
            cos, sin = _turns(self.device, self._work, tuple(positions), width, base)
        else:
            places = torch.tensor(positions, dtype=torch.float64, device=self.device)
            angles = torch.outer(places, frequencies.to(torch.float64))
            cos, sin = angles.cos().to(self._work), angles.sin().to(self._work)
        if magnitude is not None:
            factor = self._constant(magnitude)
            cos, sin = cos * factor, sin * factor
        wide = x.to(self._work)
        turning, passing = wide[..., :width], wide[..., width:]
        if pairing == "half":
            a, b = turning.chunk(2, dim=-1)
            turned = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
        else:
            a, b = turning[..., 0::2], turning[..., 1::2]
            turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
        return self._give(torch.cat((turned, passing), dim=-1), x)

    # ------------------------------------------------------------------- attention

    def scores(
        self,
        q: Array,
        k: Array,
        *,
        table: Array | None = None,
        slopes: Array | None = None,
        bias: Array | None = None,
        scale: Expression | None = None,
        cap: Fraction | None = None,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        grouped = q.reshape(k.shape[0], -1, q.shape[-1])  # the heads that share a key head
        result = torch.matmul(grouped, k.transpose(1, 2)).reshape(q.shape[0], q.shape[1], -1)
        result = result.to(self._work)
        if scale is not None:
            result = result * self._constant(scale)
        if cap is not None:
            result = self._capped(result, cap)
        if slopes is not None:
            places = torch.tensor(queries, device=self.device)
            distance = (places[:, None] - torch.tensor(keys, device=self.device)).abs()
            result = result - slopes[:, None, None].to(self._work) * distance
        if bias is not None:
            result = result + bias.to(self._work)
        hidden = None if all(map(all, mask)) else ~torch.tensor(mask, device=self.device)
        if table is not None:
            rows = table.data if isinstance(table, Masked) else table
            result = result + rows[:, queries][:, :, keys].to(self._work)
            if isinstance(table, Masked):
                away = table.hidden[:, queries][:, :, keys]
                hidden = away if hidden is None else away | hidden
        return self._give_masked(result, hidden, -torch.inf, q, k, slopes, table, bias)

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Array:
        places = torch.tensor(buckets, device=self.device)
        return functional.embedding(places, table).movedim(-1, 0)

    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        hidden = x.hidden if isinstance(x, Masked) else None
        data = x if hidden is None else x.data.masked_fill(hidden, -torch.inf)
        if sinks is None:
            shares = data.softmax(dim=-1, dtype=self._work)
        else:
            last = sinks[:, None, None].expand(*data.shape[:-1], 1)
            shares = torch.cat((data, last), dim=-1).softmax(dim=-1, dtype=self._work)[..., :-1]
        return self._give_masked(shares, hidden, 0, x, sinks)

    def mix(self, weights: Array, v: Array) -> Array:
        return self.along_keys(weights, v)

    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        heads, _positions, width = mixed.shape
        if weight is None:
            weight, layout = torch.eye(heads * width, dtype=self.kind, device=self.device), "in_out"
        matrix = weight if layout == "in_out" else weight.T
        slices = matrix.reshape(heads, width, -1)
        return self._give(torch.matmul(mixed, slices), mixed, weight)

    # ------------------------------------------------------------------- experts

    def stack(self, parts: Sequence[Array]) -> Array:
        return torch.stack(tuple(parts))

    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Array:
        scores = to_numpy(x.detach().to(self._work))
        tied: list[int] = []
        if groups is not None and groups_chosen is not None:
            scores, tied = in_best_groups(scores, groups, groups_chosen, group_rule)
        chosen, also_tied = chosen_of(scores, count)
        self.notes += [Note("tied-experts", (place,)) for place in sorted({*tied, *also_tied})]
        return torch.tensor(chosen, device=self.device).to(self.kind)

    def expert_shares(
        self,
        x: Array,
        chosen: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Array:
        away = chosen == 0
        if alone:
            shares = x.to(self._work).masked_fill(away, 0)
            if normalised:
                total = shares.sum(dim=-1, keepdim=True)
                shares = shares / (total if eps is None else total + self._constant(eps))
        else:
            scores = x.masked_fill(away, -torch.inf) if normalised else x
            shares = scores.softmax(dim=-1, dtype=self._work).masked_fill(away, 0)
        return self._give(shares if scale is None else shares * self._constant(scale), x, chosen)

    def combine(self, x: Array, shares: Array) -> Array:
        weights = shares.T.unsqueeze(-1).to(self._work)
        terms = (x.to(self._work) * weights).masked_fill(weights == 0, 0)  # 0·∞ is not 0
        return self._give(terms.sum(dim=0), x, shares)

    # ------------------------------------------------------------------- activations and the end

    def activate(self, x: Array, *, kind: str) -> Array:
        if kind not in ACTIVATIONS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return self._give(ACTIVATIONS[kind](x.to(self._work)), x)

    def argmax(self, x: Array) -> list[Prediction]:
        rows = to_numpy(x.to(self._work))
        with np.errstate(all="ignore"):
            predictions = [predict(row, self.format.dtype) for row in rows]
        for position, prediction in enumerate(predictions):
            if prediction.id is None:
                self.notes.append(Note("not-finite", (position,)))
                break
        return predictions

    def loss(self, probs: Array, *, target: int) -> Array:
        p = probs[-1:, target].to(self._work)
        return self._give(0 - p.log(), probs)


@lru_cache(maxsize=16)
def _turns(
    device: torch.device,
    kind: torch.dtype,
    positions: tuple[int, ...],
    width: int,
    base: Fraction,
) -> tuple[Tensor, Tensor]:
    """(cos, sin) of position · frequency; cached, since all layers share them."""
    cos, sin = turns(positions, width, base, None)
    return torch.tensor(cos).to(device, kind), torch.tensor(sin).to(device, kind)

"""The operations of learning on torch tensors: losses, adjoints, and an optimizer's step.

What stands under a mask is taken out before anything is done with it: 0·∞ is not 0, and a gradient
would come back from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Array, Note
from byhand.numbers.tensors.slopes import SLOPES
from byhand.numbers.tensors.system import Masked, System, all_finite


class Learning(System):
    """Losses, adjoints and updates."""

    def _wide(self, x: Array) -> Tensor:
        wide: Tensor = shown(x).to(self._work)
        return wide

    # ------------------------------------------------------------------- the loss of a text

    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        ids, counted = self._ids(targets)
        rows = torch.arange(len(ids), device=self.device)
        p = self._wide(probs[rows, ids.clamp(min=0)])
        result = 0 - torch.where(counted, p, 1.0).log()
        if UNCOUNTED not in targets:
            return self._give(result, probs)
        return self._give_masked(result, ~counted, 0, probs)

    def logprobs(self, x: Array, targets: Sequence[int]) -> Array:
        ids, counted = self._ids(targets)
        logs = self._wide(x).log_softmax(dim=-1)
        own = logs.gather(-1, ids.clamp(min=0)[:, None])[:, 0]
        if UNCOUNTED not in targets:
            return self._give(own, x)
        return self._give_masked(own, ~counted, 0, x)

    def average(self, losses: Array) -> Array:
        total = self._wide(losses).sum(dim=0, keepdim=True)
        count = (~losses.hidden).sum() if isinstance(losses, Masked) else len(losses)
        return self._give(total / count, losses)

    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Array:
        if isinstance(targets, int):
            targets = [UNCOUNTED] * (len(probs) - 1) + [targets]
        ids, counted = self._ids(targets)
        places = torch.arange(len(ids), device=self.device), ids.clamp(min=0)
        one = torch.ones(len(ids), dtype=self._work, device=self.device)
        rows = self._wide(probs).index_put(places, -one, accumulate=True)
        count = max(1, sum(target != UNCOUNTED for target in targets))
        return self._give(torch.where(counted[:, None], rows / count, 0.0), probs)

    def _ids(self, targets: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The targets, and which of them count."""
        ids = torch.tensor(targets, device=self.device)
        return ids, ids != UNCOUNTED

    # ------------------------------------------------------------------- sums

    def total(self, **terms: Array) -> Array:
        first, *others = map(self._wide, terms.values())
        for term in others:
            first = first + term
        return self._give(first, *terms.values())

    def column_sums(
        self, x: Array, *, by: Array | None = None, merged: bool = False, each: bool = False
    ) -> Array:
        wide = self._wide(side_by_side(x) if merged else x)
        product = wide if by is None else wide * self._wide(by)
        if each:
            return self._give(product.sum(dim=1, keepdim=True), x, by)
        return self._give(product.flatten(0, -2).sum(dim=0), x, by)

    def row_dots(self, x: Array, y: Array, *, kept: bool = False) -> Array:
        dots = (self._wide(x) * self._wide(beside(x, y))).sum(dim=-1, keepdim=kept)
        return self._give(dots, x, y)

    def sum_groups(self, x: Array, *, heads: int) -> Array:
        return self._give(self._wide(x).reshape(heads, -1, *x.shape[1:]).sum(dim=1), x)

    # ------------------------------------------------------------------- products

    def outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        left, right = side_by_side(x), side_by_side(grad)
        if layout == "out_in":
            left, right = right, left
        return self._give(left.T @ right, x, grad)

    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        return self._give(self._scaled(self._mixed(x, y), scale), x, y)

    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        return self._give(self._scaled(self._mixed(turned(x), y), scale), x, y)

    def _mixed(self, x: Array, y: Tensor) -> Tensor:
        """Σ_b x[head, a, b] · y[head or kv_head, b]; what is absent in x is left out."""
        data = shown(x)
        if isinstance(x, Masked) and not y.requires_grad and not all_finite(y):
            values = y.repeat_interleave(len(data) // len(y), dim=0)
            terms = data.unsqueeze(-1) * values.unsqueeze(1)
            return terms.masked_fill(x.hidden.unsqueeze(-1), 0).sum(dim=2)
        grouped = data.reshape(len(y), -1, data.shape[-1])  # the heads that share one of y
        return (grouped @ y).reshape(*data.shape[:2], -1)

    def _scaled(self, x: Tensor, scale: Expression | None) -> Tensor:
        return x if scale is None else x.to(self._work) * self._constant(scale)

    def scale_by(self, x: Array, by: Array) -> Array:
        return self._give(self._wide(x) * self._wide(by), x, by)

    # ------------------------------------------------------------------- places

    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Array:
        wide = self._scaled(self._wide(grad), scale)
        table = wide.new_zeros(rows, wide.shape[1])
        places = torch.tensor(ids, device=self.device)
        return self._give(table.index_put((places,), wide, accumulate=True), grad)

    def pack_heads(
        self,
        queries: Array,
        keys: Array | None = None,
        values: Array | None = None,
        *,
        starts: Sequence[int],
        stride: int,
    ) -> Array:
        parts = [part for part in (queries, keys, values) if part is not None]
        columns = [
            start + head * stride + place
            for start, part in zip(starts, parts, strict=True)
            for head in range(part.shape[0])
            for place in range(part.shape[2])
        ]
        beside = torch.cat([side_by_side(part) for part in parts], dim=1)
        return beside[:, torch.tensor(columns, device=self.device).argsort()]

    def unmasked(self, x: Array) -> Array:
        return shown(x)

    def bucket_back(self, grad: Array, *, buckets: Sequence[Sequence[int]], rows: int) -> Array:
        wide = self._wide(grad)
        table = wide.new_zeros(rows, len(wide))
        places = torch.tensor(buckets, device=self.device).flatten()
        terms = wide.flatten(1).T
        return self._give(table.index_put((places,), terms, accumulate=True), grad)

    # ------------------------------------------------------------------- adjoints

    def sinks_back(self, weights: Array, dot: Array) -> Array:
        rest = 1 - self._wide(weights).sum(dim=-1)
        return self._give(0 - (rest * self._wide(dot)).sum(dim=-1), weights, dot)

    def cap_back(self, grad: Array, x: Array, *, cap: Fraction) -> Array:
        bent = (self._wide(beside(grad, x)) / self._constant(cap)).cosh()
        hidden = grad.hidden if isinstance(grad, Masked) else None
        return self._give_masked(self._wide(grad) / bent / bent, hidden, 0, grad, x)

    def clamp_back(
        self, grad: Array, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        wide, beyond = self._wide(x), torch.zeros_like(x, dtype=torch.bool)
        if least is not None:
            beyond = beyond | (wide < self._constant(least))
        if most is not None:
            beyond = beyond | (wide > self._constant(most))
        return grad.masked_fill(beyond, 0)

    def expert_shares_back(
        self,
        x: Array,
        chosen: Array,
        shares: Array,
        grad: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Array:
        data, kept, share, back = map(self._wide, (x, chosen, shares, grad))
        factor = 1.0 if scale is None else self._constant(scale)
        dot = (share * back).sum(dim=-1, keepdim=True) / factor
        if alone and normalised:
            total = (data * kept).sum(dim=-1, keepdim=True)
            total = total if eps is None else total + self._constant(eps)
            result = kept * (back - dot) * (factor / total)
        elif alone:
            result = kept * back * factor
        elif normalised:
            result = share * (back - dot)
        else:
            result = data.softmax(dim=-1) * (back * kept - dot) * factor
        return self._give(result, x, grad)

    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        result = self._wide(weights) * (
            self._wide(beside(weights, grad)) - self._wide(dot).unsqueeze(-1)
        )
        hidden = weights.hidden if isinstance(weights, Masked) else None
        return self._give_masked(result, hidden, 0, weights, grad, dot)

    def slope(self, x: Array, *, kind: str) -> Array:
        if kind not in SLOPES:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return self._give(SLOPES[kind](self._wide(x)), x)

    def normalize_back(self, grad: Array, by: Array) -> Array:
        empty = (by == 0) & (grad == 0).all(dim=-1)
        divisor = torch.where(empty, 1.0, self._wide(by))
        if not divisor.requires_grad and not grad.requires_grad:
            for place in torch.nonzero(empty).tolist():
                self.notes.append(Note("zero-variance", tuple(place)))
        return self._give(self._wide(grad) / divisor.unsqueeze(-1), grad, by)

    def divisor_back(self, dot: Array, by: Array) -> Array:
        return self._give(_quotient(0 - self._wide(dot), self._wide(by)), dot, by)

    def root_back(self, grad: Array, root: Array) -> Array:
        return self._give(_quotient(self._wide(grad), 2 * self._wide(root)), grad, root)

    def mean_square_back(self, grad: Array, x: Array) -> Array:
        share = self._wide(grad) * 2 / x.shape[-1]
        return self._give(self._wide(x) * share.unsqueeze(-1), grad, x)

    def center_back(self, grad: Array) -> Array:
        return self._give(0 - self._wide(grad).sum(dim=-1), grad)

    def mean_back(self, grad: Array, *, width: int) -> Array:
        share = (self._wide(grad) / width).unsqueeze(-1)
        return self._give(share.expand(*grad.shape, width), grad)

    # ------------------------------------------------------------------- an optimizer's step

    def sum_squares(self, x: Array) -> Array:
        return self._give(self._wide(x).square().sum().reshape(1), x)

    def norm(self, **squares: Array) -> Array:
        total = torch.cat([self._wide(square) for square in squares.values()])
        return self._give(total.sum(dim=0, keepdim=True).sqrt(), *squares.values())

    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Array:
        factor = self._constant(limit) / (self._wide(norm) + self._constant(eps))
        return self._give(factor.clamp(max=1.0), norm)

    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Array:
        wide = self._wide(y)
        result = (wide.square() if squared else wide) * self._constant(of_y)
        if x is not None:
            result = result + self._wide(x) * self._constant(of_x)
        return self._give(result, x, y)

    def root_plus(self, x: Array, *, eps: Fraction) -> Array:
        return self._give(self._wide(x).sqrt() + self._constant(eps), x)

    def divide(self, x: Array, y: Array) -> Array:
        return self._give(self._wide(x) / self._wide(y), x, y)


def shown(x: Array) -> Tensor:
    """The entries, 0 where they are hidden."""
    result: Tensor = x.data.masked_fill(x.hidden, 0) if isinstance(x, Masked) else x
    return result


def beside(x: Array, y: Array) -> Tensor:
    """The entries of y, 0 where they or those of x are hidden."""
    return shown(y).masked_fill(x.hidden, 0) if isinstance(x, Masked) else shown(y)


def turned(x: Array) -> Array:
    """The last two axes the other way round."""
    if isinstance(x, Masked):
        return Masked(x.data.transpose(1, 2), x.hidden.transpose(1, 2))
    return x.transpose(1, 2)


def side_by_side(x: Tensor) -> Tensor:
    """(head, pos, width) → (pos, head·width); what has two axes stays as it is."""
    return x.transpose(0, 1).flatten(1) if x.dim() == 3 else x


def _quotient(top: Tensor, below: Tensor) -> Tensor:
    """top / below, and 0 where both are 0."""
    empty = (top == 0) & (below == 0)
    return torch.where(empty, 0.0, top) / torch.where(empty, 1.0, below)

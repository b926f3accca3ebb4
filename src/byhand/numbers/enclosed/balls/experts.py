"""Experts on Arb balls: which are chosen, as far as balls prove it, and the share of each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb

from byhand.numbers.base import Array, Note
from byhand.numbers.enclosed.balls import ranges
from byhand.numbers.enclosed.balls.functions import softmax_row
from byhand.numbers.enclosed.balls.largest import largest, largest_in_groups
from byhand.numbers.enclosed.balls.learning import Learning
from byhand.numbers.enclosed.balls.system import precisely


class Experts(Learning):
    """expert_linear, choose, expert_shares, combine."""

    def expert_linear(
        self, x: Array, weight: Array, *, bias: Array | None = None, layout: str
    ) -> Array:
        x, weight = self._balls(x), self._balls(weight)
        more = None if bias is None else self._balls(bias)
        return super().expert_linear(x, weight, bias=more, layout=layout)

    @precisely
    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Array:
        scores = self._balls(x)
        result = np.full(scores.shape, arb(0), dtype=object)
        for place, row in enumerate(map(list, scores)):
            if groups is None or groups_chosen is None:
                sure, possible, tied = largest(row, count)
            else:
                rule = group_rule or "max"
                sure, possible, tied = largest_in_groups(row, count, groups, groups_chosen, rule)
            for k in possible:
                result[place, k] = arb(1) if k in sure else ranges.ANY_SHARE
            if tied:
                self.notes.append(Note("tied-experts", (place,)))
        return result

    @precisely
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
        scores, chosen = self._balls(x), self._balls(chosen)
        result = np.full(scores.shape, arb(0), dtype=object)
        more = arb(0) if eps is None else self._scalar(eps)
        for place, row in enumerate(scores):
            possible = [k for k, entry in enumerate(chosen[place]) if not entry.is_zero()]
            decided = all(chosen[place, k] == 1 for k in possible)
            among = possible if normalised or alone else list(range(len(row)))
            there = [row[k] for k in among]
            if normalised and not decided:
                shares = [_open_share(there, alone)] * len(among)
            elif alone:
                shares = _parts_of_sum(there, more) if normalised else there
            else:
                shares = softmax_row(there)
            for k, share in zip(among, shares, strict=True):
                if k in possible:
                    result[place, k] = share if normalised else share * chosen[place, k]
        return result if scale is None else result * self._scalar(scale)

    @precisely
    def combine(self, x: Array, shares: Array) -> Array:
        answers, shares = self._balls(x), self._balls(shares)
        result = np.full(answers.shape[1:], arb(0), dtype=object)
        for position, k in np.ndindex(shares.shape):
            if not shares[position, k].is_zero():
                result[position] = result[position] + answers[k, position] * shares[position, k]
        return result


def _open_share(row: list[arb], alone: bool) -> arb:
    """What a share may be where it is open who is chosen: parts of positive numbers are 0 to 1."""
    return ranges.ANY_SHARE if not alone or all(x >= 0 for x in row) else arb("nan")


def _parts_of_sum(row: list[arb], eps: arb) -> list[arb]:
    """Returns balls that contain each number over the sum of all of them, plus eps."""
    total = sum(row, eps)
    shares = [x / total for x in row]
    if not all(x > 0 for x in row) or not eps >= 0:
        return shares
    return [
        share.intersection(ranges.ANY_SHARE) if share.is_finite() else ranges.ANY_SHARE
        for share in shares
    ]

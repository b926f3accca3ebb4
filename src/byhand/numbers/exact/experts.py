"""Experts on exact-or-named values: which are chosen, proven, and the share of each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import fmpq

from byhand.errors import Undecided
from byhand.language import _
from byhand.numbers.base import Array, Note
from byhand.numbers.exact import within
from byhand.numbers.exact.largest import largest
from byhand.numbers.exact.learning import Learning
from byhand.numbers.exact.names import ONE
from byhand.numbers.exact.value import Value


class Experts(Learning):
    """choose, expert_shares, combine."""

    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Array:
        one, zero = self.space.plain(ONE), self.space.plain(fmpq(0))
        result = np.full(x.shape, zero, dtype=object)
        for place, row in enumerate(x):
            among, tied = list(range(len(row))), False
            if groups is not None and groups_chosen is not None:
                among, tied = self._in_best_groups(list(row), groups, groups_chosen, group_rule)
            best, also_tied = largest(self.space, [row[k] for k in among], count)
            result[place, [among[k] for k in best]] = one
            if tied or also_tied:
                self.notes.append(Note("tied-experts", (place,)))
        return result

    def _in_best_groups(
        self, row: list[Value], groups: int, count: int, rule: str | None
    ) -> tuple[list[int], bool]:
        """The places of the best groups, and whether the order of equal groups decided."""
        space, width = self.space, len(row) // groups
        parts = [row[start : start + width] for start in range(0, len(row), width)]
        counted = 2 if rule == "top2" else 1
        worth = []
        for part in parts:
            best, _either = largest(space, part, counted)  # of equal ones either: one sum
            worth.append(space.combine([ONE] * len(best), [part[k] for k in best]))
        kept, tied = largest(space, worth, count)
        return [group * width + inner for group in kept for inner in range(width)], tied

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
        result = np.full(x.shape, self.space.plain(fmpq(0)), dtype=object)
        factor = None if scale is None else fmpq(scale.numerator, scale.denominator)
        for place, row in enumerate(x):
            best = [k for k, entry in enumerate(chosen[place]) if entry.fraction == 1]
            among = best if normalised or alone else list(range(len(row)))
            there = [row[k] for k in among]
            if not alone:
                shares = within.softmax_row(self.space, there)
            else:
                shares = self._parts_of_sum(there, eps) if normalised else there
            for k, share in zip(among, shares, strict=True):
                if k in best:
                    result[place, k] = share if factor is None else share.times(factor)
        return result

    def _parts_of_sum(self, row: list[Value], eps: Fraction | None) -> list[Value]:
        """Each of the numbers over their sum, plus eps."""
        space = self.space
        total = space.combine([ONE] * len(row), row)
        if eps is not None:
            total = space.add(total, space.value(eps))
        if space.sign(total) == 0:
            raise Undecided(_("a number cannot be divided by zero"))
        return [space.divide(x, total) for x in row]

    def combine(self, x: Array, shares: Array) -> Array:
        _experts, positions, width = x.shape
        result = np.empty((positions, width), dtype=object)
        for i, d in np.ndindex(positions, width):
            there = [k for k, share in enumerate(shares[i]) if share.fraction != 0]
            total = self.space.dot(list(shares[i, there]), list(x[there, i, d]))
            result[i, d] = self.space.settled(total)
        return result

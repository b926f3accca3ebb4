"""Draws in enclosures: the token that a random number draws, where it is proven.

The chances e^(logit/temperature), of the top k and of the top p, are enclosures of the real ones.
Order and edge cases are those of `sampling`, which does the same with floats.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

from flint import arb, ctx, fmpq

from byhand.generating.sampling import Sampling
from byhand.numbers.enclosed.balls.given import interval
from byhand.numbers.enclosed.enclosure import Enclosure

EXTRA = 32  # bits beyond those of the logits


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token that is proven to be drawn."""

    id: int
    chance: float  # of being drawn
    rank: int  # 1: no token is more probable


def draw(logits: list[Enclosure], sampling: Sampling, throw: Fraction, bits: int) -> Drawn | None:
    """The token that a throw draws: the first whose share, with those before it, exceeds the
    throw's part of the whole.  None where the enclosures do not prove which it is."""
    if any(logit.rad == inf for logit in logits):
        return None
    with ctx.workprec(bits + EXTRA):
        return _Draw(logits, sampling).drawn_by(throw)


class _Draw:
    """One draw: logits give the order, the shares e^(logit/temperature) give the sums."""

    def __init__(self, logits: list[Enclosure], sampling: Sampling) -> None:
        self.sampling = sampling
        self.exact = [logit.mid if logit.rad == 0 else None for logit in logits]
        self.lower = [logit.lower for logit in logits]
        self.upper = [logit.upper for logit in logits]
        self.falling = sorted(range(len(logits)), key=lambda i: (-logits[i].mid, i))
        balls = [interval(logit.mid, Fraction(logit.rad)) for logit in logits]
        top = balls[self.falling[0]].mid()
        heat = sampling.temperature
        inverse = arb(fmpq(heat.denominator, heat.numerator))
        self.shares = [((ball - top) * inverse).exp() for ball in balls]

    def drawn_by(self, throw: Fraction) -> Drawn | None:
        allowed = self._top_p(self._top_k())
        if allowed is None:
            return None
        id = self._reached(sorted(allowed), throw)
        rank = None if id is None else self._rank(id)
        if id is None or rank is None:
            return None
        return Drawn(id, float((self.shares[id] / self._sum(allowed)).mid()), rank)

    def _sum(self, ids: list[int]) -> arb:
        return sum((self.shares[id] for id in ids), arb(0))

    def _larger(self, one: int, other: int) -> bool:
        """Whether the one logit is proven to be larger than the other."""
        return self.lower[one] > self.upper[other]

    def _tied(self, one: int, other: int) -> bool:
        """Whether two logits are proven to be the same."""
        return one == other or (
            self.exact[one] is not None and self.exact[one] == self.exact[other]
        )

    def _top_k(self) -> list[int] | None:
        """The k largest and those tied with the last of them, in falling order; None: undecided."""
        order, k = self.falling, self.sampling.top_k
        if k is None or k >= len(order):
            return order
        count = k
        while count < len(order) and self._tied(order[count], order[k - 1]):
            count += 1
        return order[:count] if self._apart(order, count) else None

    def _apart(self, order: list[int], count: int) -> bool:
        """Whether the first `count` are proven to be larger than all the others."""
        lowest = min((self.lower[id] for id in order[:count]), default=inf)
        return all(self.upper[id] < lowest for id in order[count:])

    def _top_p(self, order: list[int] | None) -> list[int] | None:
        """The fewest of the largest whose sum reaches p of the whole; of a tie, the lowest ids."""
        p = self.sampling.top_p
        if order is None or p is None or p == 1:
            return order
        whole = self._sum(order) * p.numerator
        total, count = arb(0), 0
        while count < len(order) and (total * p.denominator).mid() < whole.mid():
            total += self.shares[order[count]]
            count += 1
        inside, last = order[:count], order[count - 1]
        if count < len(order):
            if not self._edge_is_known(order, count):
                return None
            if not self._sum(inside) * p.denominator >= whole:
                return None
        for id in inside:  # without the smallest, p would not be reached
            if not self._larger(id, last):
                rest = self._sum([other for other in inside if other != id])
                if not rest * p.denominator < whole:
                    return None
        return inside

    def _edge_is_known(self, order: list[int], count: int) -> bool:
        """Whether the first `count` are proven to come first; a proven tie is ordered by ids."""
        edge = order[count - 1]
        end = count
        while end < len(order) and self._tied(order[end], edge):
            end += 1
        if end == count:
            return self._apart(order, count)
        start = next(k for k in range(count) if self._tied(order[k], edge))
        return self._apart(order, start) and self._apart(order, end)

    def _reached(self, ids: list[int], throw: Fraction) -> int | None:
        """The first id at which the running sum exceeds the throw's part; None where not proven."""
        goal = self._sum(ids) * arb(fmpq(throw.numerator, throw.denominator))
        total = arb(0)
        for id in ids:
            total += self.shares[id]
            if total > goal:
                return id
            if not total <= goal:
                return None
        return None

    def _rank(self, id: int) -> int | None:
        """The rank of a token: 1 plus the number of larger logits; None where not proven."""
        larger = 0
        for other in range(len(self.shares)):
            if self._larger(other, id):
                larger += 1
            elif not (self._larger(id, other) or self._tied(id, other)):
                return None
        return 1 + larger

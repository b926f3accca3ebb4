"""The learning rate over time: a linear warm-up, then constant, or half a cosine down."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

END = 0.1  # the share of the learning rate that is left at the last step of a cosine
COSINES = {  # of rational multiples of π, all that are rational (Niven)
    Fraction(0): Fraction(1),
    Fraction(1, 3): Fraction(1, 2),
    Fraction(1, 2): Fraction(0),
    Fraction(2, 3): Fraction(-1, 2),
    Fraction(1): Fraction(-1),
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A linear warm-up of some steps, then half a cosine down to a share of the rate.

    An `end` of 1 leaves the rate as it is.
    """

    warmup: int = 0
    end: float = END  # the share of the learning rate at the last step

    def share(self, step: int, steps: int) -> float:
        """The share of the full learning rate at a step from 1 to `steps`.

        >>> [round(Schedule(2, 0.1).share(step, 4), 4) for step in (1, 2, 3, 4)]
        [0.5, 1.0, 0.55, 0.1]
        """
        if step <= self.warmup:
            return step / self.warmup
        if step >= steps:
            return self.end
        way = (step - self.warmup) / (steps - self.warmup)
        return self.end + (1 - self.end) * (1 + math.cos(math.pi * way)) / 2

    def rational_share(self, step: int, steps: int) -> Fraction:
        """The same as a fraction: exact where the cosine is rational, else that of the float.

        >>> [str(Schedule(2, 0.1).rational_share(step, 4)) for step in (1, 2, 3, 4)]
        ['1/2', '1', '11/20', '1/10']
        """
        end = Fraction(str(self.end))
        if step <= self.warmup:
            return Fraction(step, self.warmup)
        if step >= steps:
            return end
        way = Fraction(step - self.warmup, steps - self.warmup)
        if way in COSINES or end == 1:
            return end + (1 - end) * (1 + COSINES.get(way, Fraction(0))) / 2
        return Fraction(self.share(step, steps))

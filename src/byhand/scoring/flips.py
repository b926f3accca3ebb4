"""Flips: places where a run says another token than the true one, counted, with intervals.

A flip is counted where the likeliest token is known: no tie, not open, and every number finite.
The interval is that of Wilson for 95 in 100.  It takes the places as independent, which neighbours
in a text are not quite.

How many flips rounding makes is foretold by two things: the true margins m, and how much the lead
of the likeliest token changes.  Were the changes normal, with the robust deviation σ that the run
shows, whatever the margin is, then Σ Φ(-m/σ) flips would be expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import erfc, inf, sqrt

import numpy as np

from byhand.scoring.scores import Floats
from byhand.scoring.tokens import Truths

BEYOND = 1.959963984540054  # deviations of a normal number beyond which are 5 in 100
MARGINS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, inf)  # bounds of their bins


@dataclass(frozen=True)
class Flips:
    """How many of some places are flips.

    >>> few = Flips(2, 40)
    >>> few.share, [round(end, 4) for end in few.interval]
    (0.05, [0.0138, 0.165])
    """

    count: int
    of: int

    @property
    def share(self) -> float:
        """The share of flips; not a number where there is no place."""
        return self.count / self.of if self.of else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of that share, for 95 in 100; 0 to 1 where there is no place."""
        if not self.of:
            return 0.0, 1.0
        extra = BEYOND * BEYOND / self.of
        middle = self.share + extra / 2
        reach = sqrt(extra * (self.share * (1 - self.share) + extra / 4))
        low, high = (middle - reach) / (1 + extra), (middle + reach) / (1 + extra)
        return 0.0 if not self.count else low, 1.0 if self.count == self.of else high


@dataclass(frozen=True)
class Bin:
    """The places whose margin, or position, lies from `low` to below `high`."""

    low: float
    high: float
    tokens: int
    flips: Flips
    error: float  # the median size of the error of ln p there, in nats
    change: float  # the median size of the change of the lead there, in logits


def bins(
    values: Floats, bounds: Sequence[float], flipped: Truths, judged: Truths,
    errors: Floats, changes: Floats,
) -> tuple[Bin, ...]:  # fmt: skip
    """The places by a value of theirs, between each two bounds."""
    found = []
    for low, high in pairwise(bounds):
        here = (values >= low) & (values < high)
        flips = Flips(int((flipped & here).sum()), int((judged & here).sum()))
        found.append(Bin(
            low, high, int(here.sum()), flips, median(np.abs(errors[here])),
            median(np.abs(changes[here])),
        ))  # fmt: skip
    return tuple(found)


def doublings(last: int) -> tuple[float, ...]:
    """The bounds 1, 2, 4, … of positions up to the last one.

    >>> doublings(5)
    (1.0, 2.0, 4.0, 8.0)
    """
    return tuple(2.0**power for power in range(max(last, 1).bit_length() + 1))


def foretold(margins: Floats, deviation: float) -> float:
    """How many flips normal changes of the lead would make: the sum of Φ(-margin/deviation)."""
    if not deviation > 0:
        return 0.0
    return sum(erfc(each / deviation / sqrt(2)) / 2 for each in margins.tolist())


def median(values: Floats) -> float:
    """The median of the known values; not a number where there is none."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def quantiles(values: Floats, shares: Sequence[float]) -> tuple[float, ...]:
    """Quantiles of the known values; not numbers where there is none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return (float("nan"),) * len(shares)
    with np.errstate(invalid="ignore"):
        found = np.quantile(known, shares)
    return tuple(np.where(np.isnan(found), np.inf, found).tolist())  # between infinite ones

"""The next token among ranges of logits: which one it is, and where any other one would stand."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, ldexp
from typing import NamedTuple

import numpy as np

from byhand.numbers.allowed.ranges import UP, Data, Range, wide
from byhand.numbers.base import Prediction

SURELY = 1 - ldexp(1.0, -52)  # a difference, less what its own rounding may have added


class Standing(NamedTuple):
    """How a token stands among the others, if somebody says that it has the largest logit."""

    largest: bool | None  # proven, excluded, or left open by rounding
    share: float  # how far it lies behind, in units of what rounding may do; 0 where it does not
    times: float | None  # the same in units of what rounding usually does; None: not known


@dataclass(frozen=True, slots=True)
class Contest(Prediction):
    """The next token after one position, with the row of logits that it is the largest of."""

    logits: Range | None = None

    def standing(self, token: float) -> Standing:
        """Whether a token's logit is as large as every other, in all that is allowed.

        It is where its range ends nowhere below another's, and cannot be where another's range lies
        wholly above; a tie of numbers that are exactly known makes either of them the largest.
        """
        assert self.logits is not None
        mid, rad = wide(self.logits.mid), self.logits.radius()
        if not (0 <= token < len(mid) and token == int(token)):
            return Standing(False, inf, None)
        own = int(token)
        behind = np.delete(mid - mid[own], own) * SURELY
        room = np.zeros(behind.shape) if rad is None else np.delete((rad + rad[own]) * UP, own)
        if (behind > room).any():
            with np.errstate(divide="ignore", invalid="ignore"):
                return Standing(False, float(np.nanmax(behind / room)), self._times(own, behind))
        if (behind <= -room).all():
            return Standing(True, 0.0, None)
        return Standing(None, 0.0, self._times(own, behind))

    def _times(self, own: int, behind: Data) -> float | None:
        """How far it lies behind the others, in units of what rounding usually does."""
        usual = None if self.logits is None else self.logits.usual
        if usual is None:
            return None
        larger = behind > 0
        spread = np.delete(np.hypot(usual, usual[own]), own)[larger]
        if not np.isfinite(spread).all():
            return None
        with np.errstate(divide="ignore"):
            return float(np.max(behind[larger] / spread, initial=0.0))


def contest(logits: Range) -> Contest:
    """Decided where one range lies above all others, or all are exactly known."""
    row, radius = wide(logits.mid), logits.radius()
    if radius is None:
        radius = np.zeros(row.shape)
    floor = np.max(row - radius)
    candidates = tuple(map(int, np.flatnonzero(~(row + radius < floor))))
    best = int(row.argmax())
    if len(candidates) == 1:
        others = np.delete(row, best)
        margin = float(row[best] - others.max()) if others.size else None
        return Contest(best, margin, proven=True, logits=logits)
    if not radius.any():
        return Contest(best, 0.0, proven=True, tied=candidates, logits=logits)
    return Contest(None, None, proven=False, candidates=candidates, logits=logits)

"""The next token among ranges of logits, and the standing of every other token."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, ldexp
from typing import NamedTuple

import numpy as np

from byhand.numbers.allowed.ranges import UP, Data, Range, wide
from byhand.numbers.base import Prediction

SURELY = 1 - ldexp(1.0, -52)  # a difference, less what its own rounding may have added


class Standing(NamedTuple):
    """The judgement of the claim that a token has the largest logit."""

    largest: bool | None  # proven, excluded, or left open by rounding
    share: float  # its distance behind the largest, in units of the allowed error; 0: not behind
    times: float | None  # the same in units of the usual error; None: not known


@dataclass(frozen=True, slots=True)
class Contest(Prediction):
    """The next token after one position, with its row of logits."""

    logits: Range | None = None

    def standing(self, token: float) -> Standing:
        """Whether a token's logit is the largest for all allowed values, or for none.

        It is the largest where no other range reaches above it.  It cannot be where another range
        lies wholly above.  In a tie of exactly known numbers, each of them is the largest.
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
        """How far it lies behind the others, in units of the usual error."""
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
    """The next token: decided where one range lies above all others, or all are exactly known."""
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

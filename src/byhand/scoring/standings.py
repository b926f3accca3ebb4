"""How safe the likeliest token is at each place: safe, a near tie, flipped, tied or open.

The question is whether rounding in a format, within its usual spread, can change which token is the
likeliest.  The usual spread is measured, not assumed: byhand runs the same texts in floats of the
format.  There the lead of the truly likeliest token differs from its true lead, the margin.  The
usual spread is SPREADS times the robust standard deviation of that difference (1.4826 times the
median of its size).

    tie        several tokens are proven to have the same logit
    open       the likeliest token is not proven
    flipped    in the run, or in a log, another token is the likeliest one
    near tie   the margin is within the usual spread
    safe       it is not
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byhand.scoring.scores import Floats
from byhand.scoring.tokens import Engine, Tokens, Truths

TIE, OPEN, FLIPPED, NEAR, SAFE = STANDINGS = ("tie", "open", "flipped", "near tie", "safe")
SPREADS = 4  # robust standard deviations that are usual: beyond them lie 1 in 16,000 normal errors
TO_DEVIATION = 1.4826  # from the median of the size of normal errors to their standard deviation


@dataclass(frozen=True)
class Standings:
    """The standing of each token under one format's rounding."""

    format: str
    spread: float  # the usual spread of the margin, in logits
    codes: NDArray[np.int8]  # places in STANDINGS

    def count(self, standing: str) -> int:
        """How many tokens have this standing."""
        return int((self.codes == STANDINGS.index(standing)).sum())

    def of(self, place: int) -> str:
        """The standing of one token."""
        return STANDINGS[self.codes[place]]


def standings(truth: Tokens, run: Tokens, format: str) -> Standings:
    """The standings under the rounding of a format, from byhand's own run of it."""
    spread = usual_spread(truth, run)
    return Standings(format, spread, _codes(truth, run.best != truth.best, spread))


def usual_spread(truth: Tokens, run: Tokens) -> float:
    """SPREADS robust standard deviations of how far the run's lead is from the true one."""
    moved = np.abs(changes_of_lead(truth, run))
    known = moved[np.isfinite(moved)]
    return float(SPREADS * TO_DEVIATION * np.median(known)) if len(known) else np.inf


def changes_of_lead(truth: Tokens, run: Tokens) -> Floats:
    """How much further the truly likeliest token leads in the run: its lead less the true one.

    Where another token leads in the run, that lead counts with a minus sign.  Not a number where a
    lead is not finite.
    """
    leads = np.where(truth.best == run.best, run.margins, -run.margins)
    with np.errstate(invalid="ignore"):
        moved = leads - truth.margins
    return np.where(np.isfinite(moved), moved, np.nan)


def standings_of_engine(
    truth: Tokens, engine: Engine, under: Standings, vocabulary: int
) -> Standings:
    """The standings for one engine: flipped where its likeliest token is certainly another one."""
    codes = _codes(truth, flipped(engine, truth, vocabulary), under.spread)
    return Standings(under.format, under.spread, codes)


def flipped(engine: Engine, truth: Tokens, vocabulary: int) -> Truths:
    """Where the engine's likeliest token is certainly another than the true one.

    Its log may say which it is.  A token with more than half of the probability is the likeliest
    one, and a token with less than its share of 1 in all tokens is not.
    """
    other: Truths = (engine.best >= 0) & (engine.best != truth.best)
    if engine.in_doubt:
        return other
    with np.errstate(invalid="ignore"):
        leads = engine.logprobs > -np.log(2.0)
        trails = engine.logprobs < -np.log(vocabulary)
    scored = truth.ids == truth.best
    found: Truths = other | np.where(scored, trails, leads)
    return found


def _codes(truth: Tokens, flipped: Truths, spread: float) -> NDArray[np.int8]:
    tie: Truths = truth.best_proven & (truth.margins == 0) & (truth.margin_radii == 0)
    lead: Floats = truth.margins - truth.margin_radii
    with np.errstate(invalid="ignore"):
        near = ~(lead > spread)
    code = np.where(near, STANDINGS.index(NEAR), STANDINGS.index(SAFE))
    code = np.where(flipped, STANDINGS.index(FLIPPED), code)
    code = np.where(truth.best_proven, code, STANDINGS.index(OPEN))
    return np.where(tie, STANDINGS.index(TIE), code).astype(np.int8)

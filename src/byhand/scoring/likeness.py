"""Whether an engine's errors look like rounding of a format: beside byhand's own run of it.

The statistic is the ratio of two robust spreads on the same tokens: of the engine's errors, and of
the errors of byhand's own run in the format.  Tokens that are almost certain are left out.  The
interval covers 95 of 100 bootstrap samples,
drawn with a fixed seed: whole texts where there are MOST_TEXTS or more, since the errors of a text
depend on each other; else runs of BLOCK neighbouring tokens.

    like       the interval lies within 1/FACTOR and FACTOR
    wider      it lies above FACTOR
    narrower   it lies below 1/FACTOR
    unclear    none of these, or there are fewer than FEWEST such tokens: the numbers cannot tell

Errors beyond the run are told apart, since a spread by medians does not see a few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byhand.scoring.scores import Floats, Ids
from byhand.scoring.summaries import robust_spread

LIKE, WIDER, NARROWER, UNCLEAR = "like", "wider", "narrower", "unclear"
FACTOR = 2.0
CERTAIN = 0.99  # a token of this probability tells nothing: its error is nearly 0 in any format
FEWEST = 30  # tokens below which no interval is given
SAMPLES, SEED = 1_000, 20_250_607
MOST_TEXTS = 20  # texts from which on whole texts are drawn
BLOCK = 8  # neighbouring tokens that are drawn together
BEYOND = 4.0  # times the largest error of the run: more is beyond it
OFTEN = 0.05  # the share of tokens beyond the run that no longer count as a few


@dataclass(frozen=True)
class Likeness:
    """An engine's errors beside those of a format."""

    format: str
    kind: str  # LIKE, WIDER, NARROWER, UNCLEAR
    ratio: float  # of the spreads; not a number where there is none
    low: float
    high: float
    count: int  # tokens that are not almost certain
    beyond: NDArray[np.int64]  # the tokens whose errors are beyond the run
    biased: bool  # whether the errors lean to one side, as rounding does not
    lean: tuple[float, float]  # the interval of the median error


def likeness(format: str, errors: Floats, own: Floats, true: Floats, text: Ids) -> Likeness:
    """The errors of an engine beside those of byhand's own run, token by token.

    `true` are the true log-probabilities, `text` says which text each token belongs to.
    """
    both = np.isfinite(errors) & np.isfinite(own)
    most = np.abs(own[both]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        beyond = np.flatnonzero(np.abs(errors) > BEYOND * most)
    both &= np.exp(true) < CERTAIN
    theirs, ours, texts = errors[both], own[both], text[both]
    count = len(theirs)
    nothing = float("nan")
    if count < FEWEST or robust_spread(ours) == 0:
        return Likeness(
            format, UNCLEAR, nothing, nothing, nothing, count, beyond, False, (nothing, nothing)
        )
    ratio = robust_spread(theirs) / robust_spread(ours)
    ratios, medians = _resampled(theirs, ours, texts)
    low, high = np.quantile(ratios, (0.025, 0.975)).tolist()
    lean = tuple(np.quantile(medians, (0.025, 0.975)).tolist())
    sure = lean[0] > 0 or lean[1] < 0
    biased = bool(sure and abs(np.median(theirs)) > robust_spread(ours) / 2)
    return Likeness(format, _kind(low, high), ratio, low, high, count, beyond, biased, lean)


def _kind(low: float, high: float) -> str:
    if low >= 1 / FACTOR and high <= FACTOR:
        return LIKE
    if low > FACTOR:
        return WIDER
    return NARROWER if high < 1 / FACTOR else UNCLEAR


def _resampled(theirs: Floats, ours: Floats, texts: Ids) -> tuple[Floats, Floats]:
    """The ratio of spreads and the median error of each bootstrap sample."""
    parts = list(_parts(texts))
    draws = np.random.default_rng(SEED)
    ratios, medians = np.empty((2, SAMPLES))
    for sample in range(SAMPLES):
        picked = draws.integers(len(parts), size=len(parts))
        places = np.concatenate([parts[part] for part in picked])
        below = robust_spread(ours[places])
        ratios[sample] = robust_spread(theirs[places]) / below if below else np.inf
        medians[sample] = np.median(theirs[places])
    return ratios, medians


def _parts(texts: Ids) -> Iterator[NDArray[np.int64]]:
    """What is drawn at once: the tokens of a text, or a few neighbours."""
    bounds = np.flatnonzero(np.diff(texts)) + 1
    whole = np.split(np.arange(len(texts)), bounds)
    if len(whole) >= MOST_TEXTS:
        yield from whole
        return
    for own in whole:
        yield from np.array_split(own, max(1, round(len(own) / BLOCK)))

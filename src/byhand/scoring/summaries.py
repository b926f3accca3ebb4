"""An engine's errors in numbers: bias, spread, quantiles, ratios, estimates of the KL divergence.

An error is the engine's log-probability less the true one, in nats.  With r = p/q, the true
probability of a token over the engine's, the estimates of KL(q‖p) from tokens that the engine chose
are the means of

    k1 = -ln r          k2 = (ln r)²/2          k3 = r - 1 - ln r

and the clipped share is that of the tokens whose r is outside 1 ± eps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byhand.scoring.scores import Floats
from byhand.scoring.standings import TO_DEVIATION

QUANTILES = (0.01, 0.05, 0.5, 0.95, 0.99)
MOST = 700.0  # ln of a ratio whose exponential is still finite


@dataclass(frozen=True)
class Summary:
    """The errors of one engine on the tokens that it logged."""

    count: int  # tokens logged
    missing: int  # tokens not logged
    impossible: int  # tokens logged as -∞
    bias: float  # the mean error
    deviation: float  # the standard deviation of the errors
    spread: float  # robust: 1.4826 times the median distance from the median error
    largest: float  # the size of the largest error
    quantiles: tuple[float, ...]  # of the errors, at QUANTILES
    k1: float
    k2: float
    k3: float
    eps: float
    clipped: float  # the share of tokens whose ratio is outside 1 ± eps
    doubt: float  # how far each error may be off, since the truth has a radius


def robust_spread(errors: Floats) -> float:
    """1.4826 times the median distance from the median: of normal errors their deviation."""
    if not len(errors):
        return float("nan")
    return float(TO_DEVIATION * np.median(np.abs(errors - np.median(errors))))


def summary(
    logprobs: Floats, truth: Floats, radii: Floats, eps: float, impossible: int = 0
) -> Summary:
    """The errors of logged values beside true ones; values that are not finite do not count."""
    logged = np.isfinite(logprobs) & np.isfinite(truth)
    errors = logprobs[logged] - truth[logged]
    missing = len(logprobs) - int(logged.sum()) - impossible
    if not len(errors):
        nothing = float("nan")
        none = (nothing,) * len(QUANTILES)
        return Summary(
            0, missing, impossible, nothing, nothing, nothing, nothing, none,
            nothing, nothing, nothing, eps, nothing, nothing,
        )  # fmt: skip
    logs = np.clip(-errors, -MOST, MOST)  # ln r
    ratios = np.exp(logs)
    return Summary(
        count=len(errors),
        missing=missing,
        impossible=impossible,
        bias=float(errors.mean()),
        deviation=float(errors.std()),
        spread=robust_spread(errors),
        largest=float(np.abs(errors).max()),
        quantiles=tuple(np.quantile(errors, QUANTILES).tolist()),
        k1=float(-logs.mean()),
        k2=float(np.square(logs).mean() / 2),
        k3=float((np.expm1(logs) - logs).mean()),
        eps=eps,
        clipped=float((np.abs(ratios - 1) > eps).mean()),
        doubt=float(radii[logged].max()),
    )


def worst(errors: Floats, count: int) -> NDArray[np.int64]:
    """The places of the largest errors, the largest first; unknown ones are left out."""
    known = np.flatnonzero(np.isfinite(errors))
    order = np.argsort(-np.abs(errors[known]), kind="stable")[:count]
    found: NDArray[np.int64] = known[order]
    return found

"""The end of a pass: the next token with its proof, and the loss."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.numbers.base import Prediction
from byhand.numbers.enclosed import integers, limbs
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.integers import Near, TooNear
from byhand.numbers.enclosed.limbs import Digits
from byhand.numbers.enclosed.norms import by_entry
from byhand.numbers.enclosed.radii import over, plus
from byhand.numbers.enclosed.values import Enclosed, entries_of

if TYPE_CHECKING:
    from byhand.numbers.enclosed.operations import Limbs


# ------------------------------------------------------------------ the largest logit


def predictions(x: Enclosed) -> list[Prediction]:
    """The next token after each row: floats find the few that may be it, integers decide."""
    engine = x.digits.engine
    near = engine.to_numpy(x.approx)
    box = x.box
    radii = np.zeros(near.shape) if box is None else engine.to_numpy(box)
    entries = entries_of(x)
    found = []
    for row in range(len(near)):
        # both are off by their rounding alone, which 2^-48 of their size is far above
        margin = radii[row] + np.abs(near[row]) * 2.0**-48
        upper = near[row] + margin
        upper += np.abs(upper) * 2.0**-50 + 2.0**-1000
        lower = near[row] - margin
        lower -= np.abs(lower) * 2.0**-50 + 2.0**-1000
        found.append(_predict(entries[row], lower, upper))
    return found


def _predict(row: Any, lower: Any, upper: Any) -> Prediction:
    leaders = _may_lead(lower, upper)
    numbers = {int(k): row[int(k)] for k in leaders} if len(leaders) < 1000 else None
    if numbers is None:
        return Prediction(None, None, proven=False, candidates=tuple(map(int, leaders)))
    highest = max(number.lower for number in numbers.values())
    first = [k for k, number in numbers.items() if number.upper >= highest]
    best = first[0]
    if len(first) > 1:
        tied = all(numbers[k].rad == 0 for k in first)
        if not tied:
            return Prediction(None, None, proven=False, candidates=tuple(first))
        zero = Enclosure(Fraction(0), Fraction(0))
        return Prediction(best, zero, proven=True, tied=tuple(first))
    if len(lower) == 1:
        return Prediction(best, None, proven=True)
    others = np.arange(len(lower)) != best
    rest = np.flatnonzero(others)[_may_lead(lower[others], upper[others])]
    second = [row[int(k)] for k in rest[:1000]]
    if len(rest) > 1000 or any(number.rad == math.inf for number in second):
        return Prediction(best, None, proven=True)
    low = numbers[best].lower - max(number.upper for number in second)
    high = numbers[best].upper - max(number.lower for number in second)
    return Prediction(best, Enclosure((low + high) / 2, (high - low) / 2), proven=True)


def _may_lead(lower: Any, upper: Any) -> Any:
    """The indices of what nothing else is proven to exceed."""
    return np.flatnonzero(upper >= lower.max())


# ------------------------------------------------------------------ the loss


def loss(system: Limbs, probs: Enclosed, target: int) -> Enclosed:
    """-ln p = ln Σ e^(x_j - shift) - (x_t - shift), straight from the logits.

    If no logit is off by more than R, ln of the sum is not either: R + the radius of x_t.
    """
    bits = system.bits + 32
    origin = probs.origin
    if origin is None or origin.kind != "softmax":
        return _from_share(system, probs, target, bits)
    trail, logits = origin.more, origin.source
    sums = _near(trail.sums[-1:], trail.off, bits)
    gone = limbs.subtract(logits.digits[-1:, target : target + 1], trail.shift[-1:])
    value = integers.ln(sums) - _near(gone.reshape(1), 0.0, bits)
    box = None
    if not logits.exact:
        own = logits.box[-1:, target]
        box = plus(trail.widest[-1:], own)
    return _single(value, box, probs)


def _from_share(system: Limbs, probs: Enclosed, target: int, bits: int) -> Enclosed:
    share = probs.digits[-1:, target]
    near = _near(share, 0.0, bits)
    radius = None if probs.box is None else probs.box[-1:, target]
    try:
        value = -integers.ln(near)
    except TooNear:
        return _single(Near(0, 0, bits), probs.norms[-1:] * 0.0 + math.inf, probs)
    if radius is None:
        return _single(value, None, probs)
    below = limbs.approx(share) * (1 - 2.0**-50) - radius * (1 + 2.0**-50)
    return _single(value, over(radius, below), probs)


def _near(one: Digits, error: float, bits: int) -> Near:
    """A single number as an integer with its error."""
    value = int(np.asarray(limbs.to_integers(one), object).ravel()[0])
    shift = bits + one.low
    mid = value << shift if shift >= 0 else value >> -shift
    off = math.ceil(Fraction(error) * 2**bits) + (0 if shift >= 0 else 1)
    return Near(mid, off, bits)


def _single(value: Near, box: Any, probs: Enclosed) -> Enclosed:
    digits = limbs.from_integers([value.mid], -value.bits, probs.digits.limbs)
    own = math.ldexp(float(value.error + 1), -value.bits)
    engine = digits.engine
    bound = engine.zeros((1,), digits.limbs) + own
    return by_entry(digits, plus(bound, box))

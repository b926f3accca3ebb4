"""Softmax of forms: shares of 1, with the slopes at the middle and a proven remainder.

Scores are s_k = m_k + d_k, where d_k is linear in letters, ± an error.  With the shares p_k of the
middles, t_k = d_k - Σ p·d is what moves shares: what all scores of a row have in common cancels
here, before any bound is taken.  Σ p_k·t_k = 0, and the real share is p_j·e^(t_j)/S with
S = Σ p_k·e^(t_k).  Jensen's inequality gives S ≥ 1, and S = 1 + V, V = Σ p_k·(e^(t_k) - 1 - t_k).
So the share is p_j·(1 + t_j), at most p_j·(e^(t_j) - 1 - t_j) above and p_j·e^(t_j)·V below it.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.forms.exponential import RELATIVE, power, power_above, power_below
from byhand.numbers.forms.form import Form, plus, settled
from byhand.numbers.forms.functions import ranged
from byhand.numbers.forms.rounding import FLOOR, UNIT, Data, Truths, gamma, quiet, slack, total

OPEN = 2.0**-10  # widths of shares from which pairs of scores are looked at
PAIRS = 1 << 18  # of scores, at a time
NARROW = 2.0**-6  # movements up to which the line is better than the range, whatever they are


@quiet
def softmax(x: Form) -> Form:
    """The shares of each row; absent entries stay absent, and one key alone has the share 1."""
    seen = None if x.absent is None else ~x.absent
    middle, rounding = _below_the_largest(x.terms[0], seen)
    powers = power(middle)
    if seen is not None:
        powers *= seen
    count = x.shape[-1]
    whole = powers.sum(axis=-1, keepdims=True)
    np.copyto(whole, 1.0, where=whole == 0)  # a row that sees nothing
    share = powers / whole
    known = 2 * RELATIVE + gamma(count) + 4 * UNIT  # relative error of the shares of the middles
    share_above = share * slack(2) * (1 + known) + FLOOR
    if seen is not None:
        share_above *= seen

    moved = _moved(x.terms[1:], share)  # (letter, …): the coefficients of t
    unsure = plus(x.errors, rounding[None])
    if seen is not None:
        np.copyto(unsure, 0.0, where=~seen)  # what nobody sees may be infinite
    if len(
        moved
    ):  # Σ p·d was taken with rounded shares: t is another linear form, but Σ p·t is not 0
        size = np.abs(x.terms[1:])
        common = (share_above * total(size)).sum(axis=-1, keepdims=True)
        unsure[0] += (total(size) + common) * (known + 2 * gamma(count + 4))
    unsure = unsure + (share_above * unsure).sum(axis=-1, keepdims=True) * slack(count)
    far = (total(np.abs(moved)) if len(moved) else 0.0) + total(unsure)
    far = far * slack(len(moved) + len(unsure) + 4)
    if seen is not None:
        far = np.where(seen, far, 0.0)

    bounds = _remainder(middle, whole * (1 - 2 * known), share_above, far)
    result = _line(share, moved, unsure, known, *bounds)
    result.errors[0] += FLOOR * (1 + far)  # of shares below FLOOR, whose line is left out
    if not far.max(initial=0.0) <= NARROW:
        lower, upper = _ends(middle, far, seen)
        if count > 2:
            _by_pairs(x, lower, upper, seen)
        result = ranged(result, lower, upper, ~(total(result.errors) < (upper - lower) * 0.5))
    _alone(result, seen, count)
    if seen is not None:
        for part in (result.terms, result.errors):
            part *= seen
    return Form(result.terms, result.errors, x.absent, made=("softmax",))


def _below_the_largest(scores: Data, seen: Truths | None) -> tuple[Data, Data]:
    """The scores less the largest of the row, and a bound of the rounding; 0 where none is seen."""
    if seen is not None:
        top = np.max(scores, axis=-1, keepdims=True, where=seen, initial=-np.inf)
        scores = np.where(seen, scores, top)
        np.copyto(scores, 0.0, where=~np.isfinite(scores))
        np.copyto(top, 0.0, where=np.isneginf(top))
    else:
        top = scores.max(axis=-1, keepdims=True)
    middle = scores - top
    rounding = np.abs(middle) * (2 * UNIT)
    np.copyto(middle, -1e300, where=np.isinf(middle))  # beyond float64: nothing is known
    return middle, rounding


def _moved(terms: Data, share: Data) -> Data:
    """By letter, the coefficients of d less their mean by shares."""
    if not len(terms):
        return terms
    common: Data = (terms * share).sum(axis=-1, keepdims=True)
    return terms - common


def _remainder(middle: Data, whole: Data, share: Data, far: Data) -> tuple[Data, Data]:
    """Bounds (above, below) of how far a share is from the line p·(1 + t), for |t| ≤ far."""
    if far.max(initial=0.0) <= 1.0:
        # e^t - 1 - t ≤ t²/2 + 0.2183·|t|³ up to 1, and e^t ≤ 1 + t + 0.7183·t²
        curved = share * far * far * (0.5 + 0.2184 * far)
        grown = share * (1 + far + 0.7184 * far * far)
    else:
        most = middle + far
        grown = power_above(most + (np.abs(middle) + far) * 2.0**-51) / whole * slack(4)
        near = share * far * far * (0.5 + 0.2184 * far)
        curved = np.where(far <= 1.0, near, grown)
    spent = curved.sum(axis=-1, keepdims=True) * slack(share.shape[-1] + 8)
    return curved * slack(8), grown * spent * slack(8)


def _line(share: Data, moved: Data, unsure: Data, known: float, above: Data, below: Data) -> Form:
    """The form p·(1 + t), moved to the middle of its remainder, which letters share."""
    half = (above + below) * 0.5
    terms = np.empty((len(moved) + 1, *np.broadcast_shapes(share.shape, unsure.shape[1:])))
    terms[0] = share + (above - below) * 0.5
    np.multiply(moved, share, out=terms[1:])
    rounding = total(np.abs(terms)) * (known + 8 * UNIT) + (half + share) * (known + 8 * UNIT)
    errors = np.zeros((max(len(moved) + 1, len(unsure)), *terms.shape[1:]))
    errors[: len(unsure)] = unsure * share
    if len(moved):
        causes = np.abs(moved) + (np.abs(moved) * share).sum(axis=-1, keepdims=True)
        whole = total(causes)
        some = (whole > 2.0**-900) & np.isfinite(whole) & np.isfinite(half)
        errors[1 : len(moved) + 1] += causes * np.where(some, half / np.where(some, whole, 1), 0.0)
        errors[0] += np.where(some, 0.0, half)
    else:
        errors[0] += half
    errors[0] += rounding + FLOOR
    errors *= 1 + known + (len(errors) + 16) * 2.0**-52
    return settled(terms, errors)


def _ends(middle: Data, far: Data, seen: Truths | None) -> tuple[Data, Data]:
    """Bounds (lower, upper) of the shares, for |t| ≤ far.

    A share is smallest where its own t is, and the others are at their largest.
    """
    reach = np.where(np.isfinite(far), far, 0.0)
    top = (middle + reach).max(axis=-1, keepdims=True)
    room = (np.abs(middle) + reach + np.abs(top)) * 2.0**-51
    room = np.minimum(room, 1e300)
    most, least = (middle + reach - top) + room, (middle - reach - top) - room
    high, low = power_above(most), power_below(least)
    endless = ~np.isfinite(far)
    if seen is not None:
        high, low = high * seen, low * seen
        endless &= seen
    slow = slack(2 * middle.shape[-1])
    upper = high / (high + _others(low) / slow)
    lower = low / (low + _others(high) * slow)
    lost = endless.any(axis=-1, keepdims=True)
    upper = np.where(lost | ~(upper < 1), 1.0, np.minimum(upper * slack(4), 1.0))
    return np.where(lost | ~(lower > 0), 0.0, lower / slack(4)), upper


def _by_pairs(x: Form, lower: Data, upper: Data, seen: Truths | None) -> None:
    """In place: the bounds of open shares, 1/(1 + Σ e^d) with the differences d of scores as forms.

    What two scores share cancels, whatever the others have.
    """
    open_rows = np.argwhere((upper - lower > OPEN).any(axis=-1))
    step = max(1, PAIRS // x.shape[-1] ** 2)
    for first in range(0, len(open_rows), step):
        rows = open_rows[first : first + step].T
        at = (rows[0] if x.cases > 1 else 0 * rows[0], *rows[1:])
        apart = _differences(x.terms[(0, *at)])
        far = total(x.errors)[at]
        far = far[:, None, :] + far[:, :, None]
        for letter in range(1, len(x.terms)):
            far += np.abs(_differences(x.terms[(letter, *at)]))
        size = np.abs(x.terms[(slice(None), *at)]).sum(axis=0)
        far += (size[:, None, :] + size[:, :, None]) * 2.0**-51
        far *= slack(len(x.terms) + len(x.errors) + 8)
        least, most = power_below(apart - far), power_above(apart + far)
        counts = ~np.eye(x.shape[-1], dtype=bool)
        if seen is not None:
            there = np.broadcast_to(seen, lower.shape)[(*rows,)]
            counts = counts & there[:, None, :]
        room = slack(x.shape[-1] + 8)
        low = 1 / (1 + most.sum(axis=-1, where=counts) * room) / room
        high = 1 / (1 + least.sum(axis=-1, where=counts) / room) * room
        lower[(*rows,)] = np.maximum(lower[(*rows,)], low)
        upper[(*rows,)] = np.minimum(upper[(*rows,)], high)


def _differences(scores: Data) -> Data:
    """(row, key) → (row, j, k): score k less score j."""
    return scores[:, None, :] - scores[:, :, None]


def _others(numbers: Data) -> Data:
    """For each place of a row, the sum of the other numbers: nothing is subtracted."""
    before, after = np.zeros(numbers.shape), np.zeros(numbers.shape)
    np.cumsum(numbers[..., :-1], axis=-1, out=before[..., 1:])
    np.cumsum(numbers[..., :0:-1], axis=-1, out=after[..., -2::-1])
    return before + after


def _alone(x: Form, seen: Truths | None, count: int) -> None:
    """In place: a key that is the only one of its row has exactly the share 1."""
    if count > 1 and seen is None:
        return
    if seen is None:
        where = np.ones(x.terms.shape[1:], dtype=bool)
    else:
        where = seen & (seen.sum(axis=-1, keepdims=True) == 1)
        if not where.any():
            return
    for part in (x.terms, x.errors):
        np.copyto(part, 0.0, where=where)
    np.copyto(x.terms[0], 1.0, where=where)

"""Mixed values where shares are known within wide ranges: the shares still add up to 1.

Σ p_j·v_j = c + Σ p_j·(v_j - c) for every c.  With c near the mixed value, an unknown part of a
share costs the distance of v_j from c, not its size.  And what is mixed lies between the values.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.forms.form import Form, radius, settled
from byhand.numbers.forms.rounding import FLOOR, Data, quiet, slack, total

WIDE = 2.0**-20  # errors of shares up to which nothing is gained


@quiet
def around_the_mixed(found: Form, shares: Form, values: Form) -> Form:
    """The product of shares and values, narrower where the shares are known within wide ranges."""
    rows = (total(shares.errors) > WIDE).any(axis=-1)  # (case, head, query)
    if not rows.any():
        return found
    rows = np.broadcast_to(rows, (found.cases, *rows.shape[1:]))
    cases, heads, queries = np.nonzero(rows)
    at = (cases if shares.cases > 1 else 0 * cases, heads, queries)
    kept = (
        cases if values.cases > 1 else 0 * cases,
        heads // (shares.shape[0] // values.shape[0]),
    )
    share, unsure = (part[:, *at].swapaxes(0, 1) for part in (shares.terms, shares.errors))
    middle, far = values.terms[0][kept], radius(values)[kept]  # (row, key, d)
    center = (share[:, :1] @ middle)[:, 0]
    center = np.where(np.isfinite(center), center, 0.0)

    own = (slice(None), cases, heads, queries)
    terms, errors = found.terms[own], found.errors[own]  # (letter, row, d)
    sums = share.sum(axis=-1).T[..., None]  # (letter, row, 1): those of the middle add up to 1
    shift = -sums * center
    shift[0] += center
    terms[: len(shift)] += shift
    rounding = np.abs(center) * (1 + np.abs(sums).sum(axis=0)) * (share.shape[-1] * 2.0**-50)
    spent = (unsure @ np.abs(middle)).swapaxes(0, 1)
    apart = np.abs(middle - center[:, None])
    needed = (total(unsure.swapaxes(0, 1))[:, None] @ apart)[:, 0]
    ratio = np.clip(needed / np.maximum(total(spent), FLOOR), 0.0, 1.0)
    rounding += total(errors) * (share.shape[-1] * 2.0**-48) + FLOOR
    errors[: len(spent)] = np.maximum(errors[: len(spent)] - spent * (1 - ratio), 0.0)
    errors[0] += rounding + np.maximum(needed - total(spent), 0.0)
    errors *= slack(len(errors) + 8)

    seen = None if shares.absent is None else ~shares.absent
    low, high = _hull(middle, far, None if seen is None else seen[np.minimum(at[0], len(seen) - 1),
                                                                  heads, queries])  # fmt: skip
    narrower = ~(total(errors) < (high - low) * 0.5)
    centre = np.where(narrower, low * 0.5 + high * 0.5, 0.0)
    np.copyto(terms, 0.0, where=narrower)
    np.copyto(terms[0], centre, where=narrower)
    np.copyto(errors, 0.0, where=narrower)
    half = np.maximum(high - centre, centre - low) * slack(4) + FLOOR
    np.copyto(errors[0], half, where=narrower)
    found.terms[own], found.errors[own] = terms, errors
    return settled(found.terms, found.errors)


def _hull(middle: Data, far: Data, seen: Data | None) -> tuple[Data, Data]:
    """The least and the largest number that a seen value may be: (row, d), both."""
    low = middle - far - (np.abs(middle) + far) * 2.0**-51
    high = middle + far + (np.abs(middle) + far) * 2.0**-51
    if seen is None:
        return low.min(axis=1), high.max(axis=1)
    there = seen[..., None]
    return (
        low.min(axis=1, where=there, initial=np.inf),
        high.max(axis=1, where=there, initial=-np.inf),
    )

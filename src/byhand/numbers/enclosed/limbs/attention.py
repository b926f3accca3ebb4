"""Softmax and mixing, with their radius rules; the scores are in `scores`.

softmax   if no score of a row is off by more than R, every e^(score) is off by a factor between
          e^-R and e^R, their sum too, and so each share by one between e^(-2R) and e^(2R).
mix       Σ p·v - Σ p'·v' = Σ p·(v - v') + Σ (p - p')·v'.  Shares add up to 1, the real ones and
          those of the midpoints, so in the second sum any fixed vector c may be taken off each v':
          (1 + E)·Σ p'·rho_v + E·Σ p'·‖v' - c‖, with E = e^(2R) - 1, and what rounding adds.

The slope of softmax, diag p - p·pᵀ, is bounded as in Kim, Papamakarios and Mnih, "The Lipschitz
constant of self-attention", ICML 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand.numbers.enclosed.gpu import causal_attention
from byhand.numbers.enclosed.gpu.causal_scores import ScoreTrail
from byhand.numbers.enclosed.limbs import arithmetic, functions
from byhand.numbers.enclosed.limbs.arithmetic import PRODUCT, WIDTH, Digits, without_empty_limbs
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array
from byhand.numbers.enclosed.limbs.pairs import multiply_pairs
from byhand.numbers.enclosed.limbs.radii import (
    Bound,
    growth,
    largest,
    length,
    mixed,
    over,
    plus,
    spread,
    times,
    total,
)
from byhand.numbers.enclosed.limbs.scores import apart_from_mean, most, repeated, row_lengths
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, Origin, by_entry, constant

# ------------------------------------------------------------------ softmax


@dataclass(frozen=True, slots=True)
class Shares:
    """The data of a softmax that mixing and the loss need."""

    growth: Bound  # E of each row: shares of the real scores differ by this factor; None: exact
    widest: Bound  # R of each row
    shift: Digits  # (…, 1): subtracted from each score of a row
    slide: Bound  # Euclidean length of the scores' error, without the part that a row shares
    sums: Digits  # (…): Σ e^(score - shift)
    off: float  # a bound of the error of each sum, for the scores' midpoints


SHARED_WITH_A_SINK = "softmax with a sink"  # shares of rows that add up to less than 1


def softmax_with_sinks(system: System, x: Enclosed, sinks: Enclosed) -> Enclosed:
    """The shares of each row and of one more score, that of its head; without the last share."""
    lead = x.shape[:-1]
    own_digits = x.digits
    if x.hidden is not None and x.digits.engine is not NUMPY:  # kernels leave hidden keys out
        shown = x.digits.limbs.masked_fill(x.hidden, 0.0)
        own_digits = Digits(shown, x.digits.top)
    last = Digits(sinks.digits.limbs.reshape(-1, lead[0], 1, 1), sinks.digits.top)
    digits = arithmetic.stack([own_digits, last.broadcast(*lead, 1)], axis=-1)
    engine = digits.engine
    hidden = box = None
    if x.hidden is not None:
        seen = engine.broadcast(x.hidden[..., :1] & False, (*lead, 1))
        hidden = engine.concatenate([x.hidden, seen], len(lead))
    if not (x.exact and sinks.exact):
        known = constant(digits, lead, 0.0)
        own = known[..., None] if sinks.exact else known[..., None] + sinks.box[:, None, None]
        rest = constant(digits, x.shape, 0.0) if x.exact else x.box
        box = engine.concatenate([rest, own], len(lead))
    scores = by_entry(digits, box)
    scores.hidden = hidden
    whole = softmax(system, scores)
    assert whole.origin is not None
    trail = whole.origin.more
    if box is not None and sinks.exact:
        # the sink's score stays, so that what all others share counts as well
        trail = replace(trail, slide=row_lengths(box, hidden))
    origin = Origin(SHARED_WITH_A_SINK, x, whole.origin.local, trail)
    part = (..., slice(0, -1))
    return Enclosed(
        whole.digits[part],
        lambda: length(whole.box[part]),
        box=lambda: whole.box[part],
        hidden=x.hidden,
        origin=origin,
    )


def softmax(system: System, x: Enclosed) -> Enclosed:
    """The shares of each row of scores, 0 where a key is hidden."""
    if x.origin is not None and isinstance(x.origin.more, ScoreTrail):
        return causal_attention.softmax(system, x, Shares)
    engine = x.digits.engine
    count = x.width
    visible = None if x.hidden is None else ~x.hidden
    less_than_top, shift = _below_largest(x, visible)
    widest = grown = None
    if not x.exact:
        off_by = x.box if visible is None else engine.where(visible, x.box, 0.0)
        widest = largest(off_by)
        grown = growth(times(widest, 2.0))
    low = system.grid(None if grown is None else over(grown, float(count)))
    low = min(low, -count.bit_length() - 8)  # so fine that a sum of shares is not 0
    fine = low - count.bit_length() - 4

    powers, error = _powers(less_than_top, visible, x.hidden, fine)
    sums = arithmetic.total(powers, -1)
    nothing = seeing_nothing(x)
    if nothing is not None:  # a sum of no powers: 1 in its place, since no share is divided by it
        sums = arithmetic.add(sums, Digits(nothing[None] * 1.0, WIDTH))
    off = times(float(count), error)
    inverse, inverse_error = functions.inverses(sums, fine)
    wide = Digits(inverse.limbs[..., None], inverse.top)
    made = without_empty_limbs(arithmetic.multiply(powers, wide, low))

    # e/Z - T/S = (e - T)/Z + (T/S)·(S - Z)/Z: at most (1 + count)·error/Z, where Z > 1/2
    # the inverse is off by inverse_error, and e < 2
    local = plus(
        times(2.0 * (count + 1), error), times(2.0, inverse_error), PRODUCT * math.ldexp(1.0, low)
    )

    def box_of() -> Bound:
        share = plus(abs(arithmetic.approx(made)) * NEAR, local)
        bound = (
            local + 0.0 * share if grown is None else plus(times(share, grown[..., None]), local)
        )
        return bound if visible is None else engine.where(visible, bound, 0.0)

    kept: list[Any] = []

    def box() -> Bound:
        if not kept:
            kept.append(box_of())
        return kept[0]

    known = x.origin is not None and x.origin.kind == "scores" and x.origin.more is not None
    slide = x.origin.more() if known and x.origin is not None else None
    trail = Shares(grown, widest, shift, slide, sums, off)
    origin = Origin("softmax", x, local, trail)
    return Enclosed(made, lambda: length(box()), box=box, hidden=x.hidden, origin=origin)


def seeing_nothing(x: Enclosed) -> Array:
    """True for each row whose entries are all absent; None where there is none.

    On a device there is none: `scores` refuses them.
    """
    if x.hidden is None or x.digits.engine is not NUMPY:
        return None
    nothing = x.hidden.all(-1)
    return nothing if nothing.any() else None


def _powers(x: Digits, visible: Array, hidden: Array, low: int) -> functions.Made:
    """e^x where x is visible, 0 elsewhere."""
    if visible is None:
        return functions.powers(x, low)
    if x.engine is NUMPY:  # only visible entries are worked out
        powers, error = functions.powers(Digits(x.limbs[:, visible], x.top), low)
        whole = x.engine.zeros((powers.n, *x.shape), x.limbs)
        whole[:, visible] = powers.limbs
        return Digits(whole, powers.top), error
    x.limbs.masked_fill_(hidden, 0.0)  # these limbs are not shared
    powers, error = functions.powers(x, low)
    powers.limbs.masked_fill_(hidden, 0.0)
    return powers, error


def _below_largest(x: Enclosed, visible: Array) -> tuple[Digits, Digits]:
    """(x - shift, shift), where no visible entry is above its row's shift by more than 1/8.

    Floats may take the second largest for the largest, an error of 2^-50 of its size.  Where that
    is much, the same is done again with the differences, which are smaller.
    """
    rest, shift = x.digits, None
    while True:
        near = arithmetic.approx(rest)
        if visible is not None:
            near = x.digits.engine.where(visible, near, -math.inf)
        if shift is not None and x.digits.engine.range(near)[1] <= 0.125:
            return rest, shift
        place = near.argmax(-1)[..., None]
        if x.digits.engine is NUMPY:
            top = np.take_along_axis(rest.limbs, place[None], -1)
        else:
            top = rest.limbs.take_along_dim(place[None], -1)
        more = Digits(top, rest.top)
        shift = more if shift is None else arithmetic.add(shift, more)
        rest = arithmetic.subtract(x.digits, shift)


# ------------------------------------------------------------------ mixing


def mix(system: System, weights: Enclosed, v: Enclosed) -> Enclosed:
    """The values of the keys, mixed by the shares of each query."""
    if isinstance(weights, causal_attention.DeferredShares) and not v.exact:
        quick = causal_attention.mix(system, weights, v, apart_from_mean(v))
        if quick is not None:
            return quick
    heads, queries, keys = weights.shape
    kv_heads, _keys, width = v.shape
    group = heads // kv_heads
    shares = abs(weights.approx) * NEAR
    ball = _mixed_ball(weights, v, shares, group)
    low = system.grid(ball, width)
    product = multiply_pairs(
        weights.digits.reshape(kv_heads, group * queries, keys),
        v.digits,
        low,
        largest=times(most(total(shares)), most(abs(v.approx)) * NEAR),
        tolerance=math.ldexp(1.0, low),
    )
    digits = product.digits.reshape(heads, queries, width)
    if product.error:
        local = spread(product.error, width)
        ball = plus(ball, local)
    if isinstance(ball, float):
        ball = constant(digits, digits.shape[:-1], ball)
    nothing = seeing_nothing(weights)
    if nothing is None:
        return Enclosed(digits, ball)
    return Enclosed(digits, ball, zeros=np.broadcast_to(nothing[..., None], digits.shape))


def _mixed_ball(weights: Enclosed, v: Enclosed, shares: Array, group: int) -> Bound:
    engine = v.digits.engine
    norms = repeated(engine, v.norms, group)[..., None]  # (head, key, 1)
    rho = None if v.exact else repeated(engine, v.ball, group)[..., None]
    if weights.exact:
        return None if rho is None else mixed(shares, rho)[..., 0]
    origin = weights.origin
    if origin is None or origin.kind not in ("softmax", SHARED_WITH_A_SINK):
        off = weights.box
        known = mixed(off, norms)[..., 0]
        return known if rho is None else plus(known, mixed(plus(shares, off), rho)[..., 0])
    local, trail = origin.local, origin.more
    seen = constant(v.digits, weights.shape[-2:], 1.0)
    shares = plus(shares, local)  # bounds the shares of the midpoints' scores
    if weights.hidden is not None:
        seen = engine.where(weights.hidden, 0.0, seen)
        shares = engine.where(weights.hidden, 0.0, shares)
    ball = times(local, mixed(seen, norms)[..., 0])
    if rho is not None:
        carried = mixed(shares, rho)[..., 0]
        ball = plus(ball, carried)
        if trail.growth is not None:
            ball = plus(ball, times(trail.growth, carried))
    if trail.growth is not None:
        ball = plus(ball, _moved_shares(weights, v, shares, group))
    return ball


def _moved_shares(weights: Enclosed, v: Enclosed, shares: Array, group: int) -> Bound:
    """A bound of ‖Σ (p - p')·v'‖, with p and p' the shares of real scores and of midpoints.

    With v̄ = Σ p'·v', the sum of p'·(v' - v̄) is 0, and p = p'·e^d/S with S = Σ p'·e^d >= e^-R, so
    the sum is (1/S)·Σ p'·(e^d - 1)·(v' - v̄): at most e^R·(e^R - 1)·Σ p'·‖v' - v̄‖.  For v̄ the
    triangle inequality is used with the head's mean c: Σ p'·‖v' - c‖ + ‖v̄ - c‖.

    Or: along the way from the one to the other scores the shares p change by (diag p - p·pᵀ)·d, and
    0 <= diag p - p·pᵀ <= max p (as quadratic forms), and what d shares in a row does not count:
    ‖V - c‖₂·max p·slide, where no p exceeds e^(2R)·p' on the way.  The smaller one is taken.

    A sink is a key whose value is 0.  With c = 0 it adds nothing to these sums.
    """
    assert weights.origin is not None
    engine, trail = v.digits.engine, weights.origin.more
    sink = weights.origin.kind == SHARED_WITH_A_SINK
    whole, away, apart = apart_from_mean(v, of_zero=sink)
    once = growth(trail.widest)
    factor = times(plus(once, 1.0), once)
    each = repeated(engine, apart, group)[..., None]
    scattered = mixed(shares, each)[..., 0]
    rounding = (weights.shape[-1] + 8) * 2.0**-50
    mean = length(weights.approx @ repeated(engine, away, group))  # about ‖Σ p'·(v' - c)‖
    most = largest(each[..., 0])[:, None]
    local = times(weights.origin.local, float(weights.shape[-1]))
    center = plus(mean, times(most, plus(local, rounding)))
    one = times(factor, plus(scattered, center))
    if trail.slide is None:
        return one
    top = times(largest(shares), plus(trail.growth, 1.0))
    other = times(repeated(engine, whole, group)[:, None], top, trail.slide)
    return engine.where(other < one, other, one)

"""Attention: dot products, softmax, and what it mixes, with their radius rules.

scores    q·k - q'·k' = q'·(k - k') + (q - q')·k' + (q - q')·(k - k'): entry by entry
          ‖q'‖·rho_k + rho_q·‖k'‖ + rho_q·rho_k, by Cauchy and Schwarz.
softmax   if no score of a row is off by more than R, every e^(score) is off by a factor between
          e^-R and e^R, their sum too, and so each share by one between e^(-2R) and e^(2R).
mix       Σ p·v - Σ p'·v' = Σ p·(v - v') + Σ (p - p')·v'.  Shares add up to 1, the real ones and
          those of the midpoints, so in the second sum any fixed vector c may be taken off each v':
          (1 + E)·Σ p'·rho_v + E·Σ p'·‖v' - c‖, with E = e^(2R) - 1, and what rounding adds.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.numbers.enclosed.gpu import causal_attention
from byhand.numbers.enclosed.gpu.visible_keys import visible_keys_of
from byhand.numbers.enclosed.limbs import arithmetic, elementwise
from byhand.numbers.enclosed.limbs.arithmetic import (
    APPROX,
    HALF,
    PRODUCT,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.constants import Constant
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, Engine, engine_of
from byhand.numbers.enclosed.limbs.norms import by_entry, constant
from byhand.numbers.enclosed.limbs.pairs import multiply_pairs
from byhand.numbers.enclosed.limbs.radii import (
    Bound,
    growth,
    largest,
    length,
    mixed,
    over,
    plus,
    root,
    times,
    total,
)
from byhand.numbers.enclosed.limbs.spectral import spectral_norms
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, Origin
from byhand.numbers.enclosed.limbs.weights import Weight

if TYPE_CHECKING:
    from byhand.numbers.enclosed.limbs.operations import Limbs


# ------------------------------------------------------------------ scores


@dataclass(frozen=True, slots=True)
class Settings:
    """What scores are made of besides q and k."""

    table: Weight | None
    slopes: Weight | None
    scale: Constant | None
    mask: Sequence[Sequence[bool]]
    queries: Sequence[int]
    keys: Sequence[int]


def scores(system: Limbs, q: Enclosed, k: Enclosed, settings: Settings) -> Enclosed:
    """(head, query, key); what the mask or the table hides is absent."""
    quick = _causal_scores(system, q, k, settings)
    if quick is not None:
        return quick
    made = _dot_products(system, q, k)
    if settings.scale is not None:
        made = _scaled(system, made, settings.scale)
    queries, keys = list(settings.queries), list(settings.keys)
    if settings.slopes is not None:
        distance = np.abs(np.subtract.outer(queries, keys)).astype(float)
        apart = q.digits.engine.constant(distance, q.digits.limbs)
        each = settings.slopes.digits
        known = arithmetic.settle(each.limbs[..., None, None] * apart, each.top)
        made = _sum(system, made, arithmetic.negate(known))
    table = settings.table
    if table is not None:
        made = _sum(system, made, arithmetic.from_floats(table.floats[:, queries][:, :, keys])[0])
    hidden = _hidden(settings.mask, made.digits)
    if table is not None and table.hidden is not None:
        away = table.hidden[:, queries][:, :, keys]
        if away.any():
            more = q.digits.engine.constant(np.ascontiguousarray(away), q.digits.limbs)
            hidden = more if hidden is None else hidden | more
    made.hidden = hidden
    if not made.exact:
        assert made.origin is not None
        slide = _slide(q, k, settings.scale, hidden, made.origin.local)
        made.origin = Origin("scores", q, made.origin.local, slide)
    return made


def _causal_scores(system: Limbs, q: Enclosed, k: Enclosed, settings: Settings) -> Enclosed | None:
    """Where a GPU can be spared what is hidden."""
    scale = settings.scale
    power = 0 if scale is None else scale.power
    if q.exact or k.exact or power is None:
        return None
    if settings.table is not None or settings.slopes is not None:
        return None
    steps = visible_keys_of(settings.mask, q.shape[0], q.digits.limbs)
    if steps is None:
        return None
    hidden = _hidden(settings.mask, q.digits, (*q.shape[:2], k.shape[1]))
    apart = _apart(k)[0]
    return causal_attention.scores(system, q, k, power, steps, lambda: _box_of(q, k), hidden, apart)


_masks: OrderedDict[Any, tuple[Any, Array]] = OrderedDict()
REMEMBERED = 4  # masks; all layers of a kind have one


def _hidden(
    mask: Sequence[Sequence[bool]], like: Digits, shape: tuple[int, ...] | None = None
) -> Array:
    """True where the mask hides a key, for each head; None where it hides nothing."""
    key = id(mask), like.engine.device_of(like.limbs)
    if key not in _masks:
        away = ~np.asarray(mask, dtype=bool)
        made = like.engine.constant(away, like.limbs) if away.any() else None
        _masks[key] = mask, made  # the mask is kept, so that its id is no other's
        if len(_masks) > REMEMBERED:
            _masks.popitem(last=False)
    hidden = _masks[key][1]
    return None if hidden is None else like.engine.broadcast(hidden, shape or like.shape)


def _dot_products(system: Limbs, q: Enclosed, k: Enclosed) -> Enclosed:
    """Query head h reads key head h // (heads / kv_heads)."""
    heads, queries, width = q.shape
    kv_heads, keys, _width = k.shape
    group = heads // kv_heads
    grouped = q.digits.reshape(kv_heads, group * queries, width)
    box = _box_of(q, k)
    low = system.grid(box)
    product = multiply_pairs(
        grouped,
        k.digits.swapaxes(1, 2),
        low,
        largest=times(_most(q.norms), _most(k.norms)),
        tolerance=math.ldexp(1.0, low),
    )
    digits = product.digits.reshape(heads, queries, keys)
    return _score(digits, box, product.error, q)


def _box_of(q: Enclosed, k: Enclosed) -> Bound:
    """Bounds of q·k, entry by entry, as q and k carry them along."""
    engine, group = q.digits.engine, q.shape[0] // k.shape[0]
    reach = _repeated(engine, k.norms, group)[:, None, :]  # (head, 1, key)
    rho_k = None if k.exact else _repeated(engine, k.ball, group)[:, None, :]
    rho_q = None if q.exact else q.ball[:, :, None]
    of_q = q.norms[:, :, None]
    if engine is NUMPY or rho_q is None or rho_k is None:
        box = plus(times(of_q, rho_k), times(rho_q, reach), times(rho_q, rho_k))
    else:  # one product of matrices instead of passes over many numbers
        left = engine.concatenate([of_q, rho_q, rho_q], 2)
        box = mixed(left, engine.concatenate([rho_k, reach, rho_k], 1))
    return box


def _score(digits: Digits, box: Bound, local: float, source: Enclosed) -> Enclosed:
    """Scores whose midpoints are off by `local` from those of exact midpoints."""
    box = plus(box, local or None)
    if box is not None and (isinstance(box, float) or tuple(box.shape) != digits.shape):
        box = box + constant(digits, digits.shape, 0.0)
    return by_entry(digits, box, Origin("scores", source, local))


def _repeated(engine: Engine, rows: Array, group: int) -> Array:
    """One row for each query head, from one for each key head."""
    if group == 1:
        return rows
    return rows.repeat(group, 0) if engine is NUMPY else rows.repeat_interleave(group, 0)


def _most(bounds: Array) -> float:
    return engine_of(bounds).largest(bounds)


def _scaled(system: Limbs, x: Enclosed, factor: Constant) -> Enclosed:
    """x·c entry by entry."""
    assert x.origin is not None
    source, before = x.origin.source, times(x.origin.local, factor.size)
    if factor.power is not None:
        size = math.ldexp(1.0, factor.power)
        moved = Enclosed(arithmetic.shift(x.digits, factor.power))
        box = None if x.exact else times(x.box, size)
        return by_entry(moved.digits, box, Origin("scores", source, before))
    box = times(x.box, factor.size)
    local: float = 0.0
    if factor.error:
        local = times(_most(abs(x.approx)) * NEAR, factor.error)
    wide = factor.digits(x.digits.limbs)
    exact = x.digits.low + wide.low
    low = max(exact, system.grid(box))
    digits = without_empty_limbs(arithmetic.multiply(x.digits, wide, low))
    if low > exact:
        local = plus(local, PRODUCT * math.ldexp(1.0, low))
    made = _score(digits, box, local, source)
    made.origin = Origin("scores", source, plus(before, local))
    return made


def _sum(system: Limbs, x: Enclosed, known: Digits) -> Enclosed:
    """Plus what is known exactly."""
    assert x.origin is not None
    exact = min(x.digits.low, known.low)
    low = max(exact, system.grid(x.box))
    digits = without_empty_limbs(arithmetic.add(x.digits, known, low))
    local = HALF * math.ldexp(1.0, low) if low > exact else 0.0
    made = _score(digits, x.box, local, x.origin.source)
    made.origin = Origin("scores", x.origin.source, plus(x.origin.local, local))
    return made


def _slide(q: Enclosed, k: Enclosed, scale: Constant | None, hidden: Array, local: float) -> Array:
    """For each row of scores, the Euclidean length of the difference, but for what all share.

    A change of q by d moves the scores by K·d; taking one vector c off every key changes all scores
    of the row alike: ‖K - c‖₂·rho_q.  Changes of the keys give ‖q‖·√Σ rho_k² over the keys seen.
    """
    engine = q.digits.engine
    heads, queries, _width = q.shape
    group = heads // k.shape[0]
    keys = k.shape[1]
    slide = constant(q.digits, (heads, queries), local * math.sqrt(keys) * (1 + 2.0**-50))
    rho_k = None
    if not k.exact:
        seen = constant(q.digits, (queries, keys), 1.0)
        if hidden is not None:
            seen = engine.where(hidden, 0.0, seen)
        squares = _repeated(engine, times(k.ball, k.ball), group)[..., None]
        rho_k = root(mixed(seen, squares)[..., 0])
    spread = None
    if not q.exact:
        spread = times(q.ball, _repeated(engine, _apart(k)[0], group)[:, None])
    moved = plus(spread, times(q.norms, rho_k), times(q.ball, rho_k))
    return plus(slide, times(moved, 1.0 if scale is None else scale.size))


def _apart(x: Enclosed) -> tuple[Array, Array, Array]:
    """(‖X - c‖₂ for each head, each row of X - c, ‖x - c‖ for each row), c the head's mean."""
    rows = x.approx
    middle = rows.mean(1)[:, None]  # any vector will do
    off = times(x.norms, 4 * APPROX)  # the midpoints are that near to their approximations
    away = rows - middle
    norms = plus(length(away) * NEAR, off)
    whole = plus(spectral_norms(away) * NEAR, length(norms) * 2.0**-50, length(off))
    return whole, away, norms


# ------------------------------------------------------------------ softmax


@dataclass(frozen=True, slots=True)
class Shares:
    """How a softmax came about, for who mixes with it or takes its logarithm."""

    growth: Bound  # E of each row: shares of the real scores differ by this factor; None: exact
    widest: Bound  # R of each row
    shift: Digits  # (…, 1): what was taken off each score
    slide: Bound  # the Euclidean length of the scores' difference, but for what a row shares
    sums: Digits  # (…): Σ e^(score - shift)
    off: float  # how far each sum may be from that of the midpoints


def softmax(system: Limbs, x: Enclosed) -> Enclosed:
    if x.origin is not None and isinstance(x.origin.more, causal_attention.Scored):
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
    low = min(low, -count.bit_length() - 8)  # however little is known, a sum of shares is not 0
    fine = low - count.bit_length() - 4

    powers, error = _powers(less_than_top, visible, x.hidden, fine)
    sums = arithmetic.total(powers, -1)
    off = times(float(count), error)
    inverse, inverse_error = elementwise.inverse(sums, fine)
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

    slide = x.origin.more if x.origin is not None and x.origin.kind == "scores" else None
    trail = Shares(grown, widest, shift, slide, sums, off)
    origin = Origin("softmax", x, local, trail)
    return Enclosed(made, lambda: length(box()), box=box, hidden=x.hidden, origin=origin)


def _powers(x: Digits, visible: Array, hidden: Array, low: int) -> elementwise.Made:
    """e^x where x is visible, 0 elsewhere."""
    if visible is None:
        return elementwise.exp(x, low)
    if x.engine is NUMPY:  # only what is visible is worked out
        powers, error = elementwise.exp(Digits(x.limbs[:, visible], x.top), low)
        whole = x.engine.zeros((powers.n, *x.shape), x.limbs)
        whole[:, visible] = powers.limbs
        return Digits(whole, powers.top), error
    x.limbs.masked_fill_(hidden, 0.0)  # nobody else has these
    powers, error = elementwise.exp(x, low)
    powers.limbs.masked_fill_(hidden, 0.0)
    return powers, error


def _below_largest(x: Enclosed, visible: Array) -> tuple[Digits, Digits]:
    """(x - shift, shift), where no visible entry is above its row's shift by more than 1/8.

    Floats may call the second largest the largest, which is above by 2^-50 of its size; where that
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


def mix(system: Limbs, weights: Enclosed, v: Enclosed) -> Enclosed:
    if isinstance(weights, causal_attention.Shared) and not v.exact:
        quick = causal_attention.mix(system, weights, v, _apart(v))
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
        largest=times(_most(total(shares)), _most(abs(v.approx)) * NEAR),
        tolerance=math.ldexp(1.0, low),
    )
    digits = product.digits.reshape(heads, queries, width)
    if product.error:
        local = times(math.sqrt(width) * (1 + 2.0**-50), product.error)
        ball = plus(ball, local)
    if isinstance(ball, float):
        ball = constant(digits, digits.shape[:-1], ball)
    return Enclosed(digits, ball)


def _mixed_ball(weights: Enclosed, v: Enclosed, shares: Array, group: int) -> Bound:
    engine = v.digits.engine
    norms = _repeated(engine, v.norms, group)[..., None]  # (head, key, 1)
    rho = None if v.exact else _repeated(engine, v.ball, group)[..., None]
    if weights.exact:
        return None if rho is None else mixed(shares, rho)[..., 0]
    origin = weights.origin
    if origin is None or origin.kind != "softmax":
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
    """‖Σ (p - p')·v'‖ where p and p' are the shares of real scores and of midpoints.

    With v̄ = Σ p'·v', the sum of p'·(v' - v̄) is 0, and p = p'·e^d/S with S = Σ p'·e^d >= e^-R, so
    the sum is (1/S)·Σ p'·(e^d - 1)·(v' - v̄): at most e^R·(e^R - 1)·Σ p'·‖v' - v̄‖.  For v̄ the
    triangle inequality is used with the head's mean c: Σ p'·‖v' - c‖ + ‖v̄ - c‖.

    Or: along the way from the one to the other scores the shares p change by (diag p - p·pᵀ)·d, and
    0 <= diag p - p·pᵀ <= max p (as quadratic forms), and what d shares in a row does not count:
    ‖V - c‖₂·max p·slide, where no p exceeds e^(2R)·p' on the way.  The smaller one is taken.
    """
    assert weights.origin is not None
    engine, trail = v.digits.engine, weights.origin.more
    whole, away, apart = _apart(v)
    once = growth(trail.widest)
    factor = times(plus(once, 1.0), once)
    each = _repeated(engine, apart, group)[..., None]
    spread = mixed(shares, each)[..., 0]
    rounding = (weights.shape[-1] + 8) * 2.0**-50
    mean = abs_mean(weights, _repeated(engine, away, group))
    most = largest(each[..., 0])[:, None]
    local = times(weights.origin.local, float(weights.shape[-1]))
    center = plus(mean, times(most, plus(local, rounding)))
    one = times(factor, plus(spread, center))
    if trail.slide is None:
        return one
    top = times(largest(shares), plus(trail.growth, 1.0))
    other = times(_repeated(engine, whole, group)[:, None], top, trail.slide)
    return engine.where(other < one, other, one)


def abs_mean(weights: Enclosed, away: Array) -> Array:
    """About ‖Σ p'·(v' - c)‖."""
    return length(weights.approx @ away)

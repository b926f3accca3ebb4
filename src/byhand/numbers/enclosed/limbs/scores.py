"""Attention scores, dot products of queries and keys, with their radius rules.

q·k - q'·k' = q'·(k - k') + (q - q')·k' + (q - q')·(k - k'): entry by entry the radius is
‖q'‖·rho_k + rho_q·‖k'‖ + rho_q·rho_k, by Cauchy and Schwarz.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.numbers.enclosed.gpu import causal_scores
from byhand.numbers.enclosed.gpu.visible_keys import visible_keys_of
from byhand.numbers.enclosed.limbs import arithmetic, entrywise, known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import (
    APPROX,
    HALF,
    PRODUCT,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.constants import Constant
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, Engine, engine_of
from byhand.numbers.enclosed.limbs.pairs import multiply_pairs
from byhand.numbers.enclosed.limbs.radii import Bound, length, mixed, plus, root, times
from byhand.numbers.enclosed.limbs.spectral import spectral_norms
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, Origin, by_entry, constant
from byhand.numbers.enclosed.limbs.weights import Weight


@dataclass(frozen=True, slots=True)
class Settings:
    """The inputs of scores besides q and k."""

    table: Weight | None
    slopes: Weight | None
    scale: Constant | None
    mask: Sequence[Sequence[bool]]
    queries: Sequence[int]
    keys: Sequence[int]
    bias: Enclosed | None = None
    cap: Fraction | None = None

    @property
    def alone(self) -> bool:
        """Whether a score is a product of query and key, and nothing more."""
        return self.table is None and self.slopes is None and self.bias is None


def scores(system: System, q: Enclosed, k: Enclosed, settings: Settings) -> Enclosed:
    """The scores (head, query, key); entries hidden by the mask or the table are absent."""
    quick = _causal_scores(system, q, k, settings)
    if quick is not None:
        return quick
    made = _dot_products(system, q, k)
    if settings.scale is not None:
        made = _scaled(system, made, settings.scale)
    if settings.cap is not None:
        made = _capped(system, made, settings.cap)
    queries, keys = list(settings.queries), list(settings.keys)
    if settings.slopes is not None:
        distance = np.abs(np.subtract.outer(queries, keys)).astype(float)
        apart = q.digits.engine.constant(distance, q.digits.limbs)
        each = settings.slopes.digits
        known = arithmetic.settle(each.limbs[..., None, None] * apart, each.top)
        made = _sum(system, made, arithmetic.negate(known))
    if settings.bias is not None:
        made = _sum(system, made, settings.bias.digits, settings.bias.box)
    table = settings.table
    if table is not None:
        made = _sum(system, made, arithmetic.from_floats(table.floats[:, queries][:, :, keys])[0])
    hidden = hidden_keys(settings.mask, made.digits)
    if table is not None and table.hidden is not None:
        away = table.hidden[:, queries][:, :, keys]
        if away.any():
            more = q.digits.engine.constant(np.ascontiguousarray(away), q.digits.limbs)
            hidden = more if hidden is None else hidden | more
    if made.digits.engine is not NUMPY:
        _refuse_rows_without_a_key(settings)
    made.hidden = hidden
    if not made.exact:
        assert made.origin is not None
        local = made.origin.local

        plain = settings.cap is None and (settings.bias is None or settings.bias.exact)
        box = made.box

        def slide() -> Array:
            return (
                _slide(q, k, settings.scale, hidden, local) if plain else row_lengths(box, hidden)
            )

        zeros = known_zeros.rows(q, k.shape[1]) if settings.alone and plain else None
        origin = Origin("scores", q, local, slide)
        made = by_entry(made.digits, made.box, origin, zeros)
        made.hidden = hidden
    return made


def _causal_scores(system: System, q: Enclosed, k: Enclosed, settings: Settings) -> Enclosed | None:
    """The scores by the method that skips hidden keys on a GPU; None where it does not apply."""
    scale = settings.scale
    power = 0 if scale is None else scale.power
    if q.exact or k.exact or power is None:
        return None
    if not settings.alone or settings.cap is not None:
        return None
    steps = visible_keys_of(settings.mask, q.shape[0], q.digits.limbs)
    if steps is None:
        return None
    hidden = hidden_keys(settings.mask, q.digits, (*q.shape[:2], k.shape[1]))
    apart = apart_from_mean(k)[0]
    return causal_scores.scores(system, q, k, power, steps, lambda: _box_of(q, k), hidden, apart)


def _refuse_rows_without_a_key(settings: Settings) -> None:
    """An InputError for a query that sees nothing: the code for devices has no such rows."""
    seen: Any = settings.mask
    if settings.table is not None and settings.table.hidden is not None:
        away = settings.table.hidden[:, list(settings.queries)][:, :, list(settings.keys)]
        seen = (np.asarray(settings.mask, dtype=bool) & ~away).reshape(-1, away.shape[-1])
    if not all(map(any, seen)):
        raise InputError(
            _("proofs on a device need a key to look at for every query"),
            hint=_("leave out --device"),
        )


_masks: OrderedDict[Any, tuple[Any, Array]] = OrderedDict()
REMEMBERED = 4  # masks; all layers of a kind have one


def hidden_keys(
    mask: Sequence[Sequence[bool]], like: Digits, shape: tuple[int, ...] | None = None
) -> Array:
    """True where the mask hides a key, for each head; None where it hides nothing."""
    key = id(mask), like.engine.device_of(like.limbs)
    if key not in _masks:
        away = ~np.asarray(mask, dtype=bool)
        made = like.engine.constant(away, like.limbs) if away.any() else None
        _masks[key] = mask, made  # keeps the mask alive, and so its id unique
        if len(_masks) > REMEMBERED:
            _masks.popitem(last=False)
    hidden = _masks[key][1]
    return None if hidden is None else like.engine.broadcast(hidden, shape or like.shape)


def _dot_products(system: System, q: Enclosed, k: Enclosed) -> Enclosed:
    """q·k; query head h reads key head h // (heads / kv_heads)."""
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
        largest=times(most(q.norms), most(k.norms)),
        tolerance=math.ldexp(1.0, low),
    )
    digits = product.digits.reshape(heads, queries, keys)
    return _score(digits, box, product.error, q)


def _box_of(q: Enclosed, k: Enclosed) -> Bound:
    """Bounds of q·k, entry by entry, from the radii of q and k."""
    engine, group = q.digits.engine, q.shape[0] // k.shape[0]
    reach = repeated(engine, k.norms, group)[:, None, :]  # (head, 1, key)
    rho_k = None if k.exact else repeated(engine, k.ball, group)[:, None, :]
    rho_q = None if q.exact else q.ball[:, :, None]
    of_q = q.norms[:, :, None]
    if engine is NUMPY or rho_q is None or rho_k is None:
        box = plus(times(of_q, rho_k), times(rho_q, reach), times(rho_q, rho_k))
    else:  # one product of matrices instead of passes over many numbers
        left = engine.concatenate([of_q, rho_q, rho_q], 2)
        box = mixed(left, engine.concatenate([rho_k, reach, rho_k], 1))
    return box


def _score(digits: Digits, box: Bound, local: float, source: Enclosed) -> Enclosed:
    """Scores whose midpoints are off by at most `local` from exact products of midpoints."""
    box = plus(box, local or None)
    if box is not None and (isinstance(box, float) or tuple(box.shape) != digits.shape):
        box = box + constant(digits, digits.shape, 0.0)
    return by_entry(digits, box, Origin("scores", source, local))


def repeated(engine: Engine, rows: Array, group: int) -> Array:
    """One row for each query head, from one for each key head."""
    if group == 1:
        return rows
    return rows.repeat(group, 0) if engine is NUMPY else rows.repeat_interleave(group, 0)


def most(bounds: Array) -> float:
    """The largest of some bounds."""
    return engine_of(bounds).largest(bounds)


def _scaled(system: System, x: Enclosed, factor: Constant) -> Enclosed:
    """x·c, entry by entry."""
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
        local = times(most(abs(x.approx)) * NEAR, factor.error)
    wide = factor.digits(x.digits.limbs)
    exact = x.digits.low + wide.low
    low = max(exact, system.grid(box))
    digits = without_empty_limbs(arithmetic.multiply(x.digits, wide, low))
    if low > exact:
        local = plus(local, PRODUCT * math.ldexp(1.0, low))
    made = _score(digits, box, local, source)
    made.origin = Origin("scores", source, plus(before, local))
    return made


def _capped(system: System, x: Enclosed, cap: Fraction) -> Enclosed:
    """c·tanh(x/c), entry by entry: its slope is at most 1, and no two are further apart than 2c."""
    assert x.origin is not None
    digits, local = entrywise.capped(x.digits, cap, system.grid(x.box))
    box = x.box
    if box is not None:
        box = digits.engine.clip(box, None, 2 * entrywise.upward(cap))
    made = _score(digits, box, local, x.origin.source)
    made.origin = Origin("scores", x.origin.source, plus(x.origin.local, local))
    return made


def _sum(system: System, x: Enclosed, known: Digits, unsure: Bound = None) -> Enclosed:
    """x + known, where `known` is exact, or off by at most `unsure`."""
    assert x.origin is not None
    box = plus(x.box, unsure)
    exact = min(x.digits.low, known.low)
    low = max(exact, system.grid(box))
    digits = without_empty_limbs(arithmetic.add(x.digits, known, low))
    local = HALF * math.ldexp(1.0, low) if low > exact else 0.0
    made = _score(digits, box, local, x.origin.source)
    made.origin = Origin("scores", x.origin.source, plus(x.origin.local, local))
    return made


def _slide(q: Enclosed, k: Enclosed, scale: Constant | None, hidden: Array, local: float) -> Array:
    """A bound of the Euclidean length of each row's error, without the part that a row shares.

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
        squares = repeated(engine, times(k.ball, k.ball), group)[..., None]
        rho_k = root(mixed(seen, squares)[..., 0])
    spread = None
    if not q.exact:
        spread = times(q.ball, repeated(engine, apart_from_mean(k)[0], group)[:, None])
    moved = plus(spread, times(q.norms, rho_k), times(q.ball, rho_k))
    return plus(slide, times(moved, 1.0 if scale is None else scale.size))


def row_lengths(box: Bound, hidden: Array) -> Bound:
    """The Euclidean length of the radii of each row of scores, those of hidden keys left out."""
    return length(box if hidden is None else engine_of(box).where(hidden, 0.0, box))


def apart_from_mean(x: Enclosed, *, of_zero: bool = False) -> tuple[Array, Array, Array]:
    """(‖X - c‖₂ for each head, each row of X - c, ‖x - c‖ for each row), c the head's mean.

    With `of_zero`, c is 0.
    """
    rows = x.approx
    middle = rows.mean(1)[:, None] * (0.0 if of_zero else 1.0)  # any vector will do
    off = times(x.norms, 4 * APPROX)  # the midpoints are that near to their approximations
    away = rows - middle
    norms = plus(length(away) * NEAR, off)
    whole = plus(spectral_norms(away) * NEAR, length(norms) * 2.0**-50, length(off))
    return whole, away, norms

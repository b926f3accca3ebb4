"""The losses of a text, their mean, and the gradient of the logits.

losses       -ln p_t = ln Σ e^(x_j - shift) - (x_t - shift) from the logits, as `prediction.loss`.
logprobs     the same with the other sign: the radii of the losses.
average      the mean of the radii.
loss_back    (p - 1 at the target)/n: the radius of p over n.  Positions that do not count are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.enclosed.limbs import arithmetic, attention, prediction
from byhand.numbers.enclosed.limbs.arithmetic import QUOTIENT, WIDTH, Digits, without_empty_limbs
from byhand.numbers.enclosed.limbs.radii import Bound, length, over, plus, total
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry, constant


def losses(system: System, probs: Enclosed, targets: Sequence[int]) -> Enclosed:
    """-ln probs[position, target] of each position that counts; the others are absent."""
    engine, like = probs.digits.engine, probs.digits.limbs
    counted = [row for row, target in enumerate(targets) if target != UNCOUNTED]
    found = [prediction.loss(system, probs, targets[row], row) for row in counted]
    parts = arithmetic.stack([loss.digits for loss in found])
    made = engine.zeros((parts.n, len(targets)), like)
    made[:, counted] = parts.limbs
    box = engine.zeros((len(targets),), like)
    box[counted] = engine.concatenate([loss.box for loss in found])
    value = by_entry(Digits(made, parts.top), box)
    if len(counted) < len(targets):
        value.hidden = engine.constant(np.asarray(targets) == UNCOUNTED, like)
    return value


def logprobs(system: System, x: Enclosed, targets: Sequence[int]) -> Enclosed:
    """ln p of the target of each position that counts: the losses with the other sign."""
    found = losses(system, attention.softmax(system, x), targets)
    box = None if found.exact else found.box
    value = by_entry(arithmetic.negate(found.digits), box)
    value.hidden = found.hidden
    return value


def average(losses: Enclosed) -> Enclosed:
    """The mean of the losses that are not absent, shape (1,)."""
    engine = losses.digits.engine
    count = losses.width
    if losses.hidden is not None:
        count -= int(engine.to_numpy(losses.hidden).sum())
    low = losses.digits.low - WIDTH
    whole = arithmetic.total(losses.digits.reshape(1, losses.width), 1)
    digits = arithmetic.over_integer(whole, count, low)
    local = constant(digits, (1,), QUOTIENT * math.ldexp(1.0, max(low, -1000)))
    if losses.exact:
        return by_entry(digits, local)
    return by_entry(digits, plus(over(total(losses.box)[None], float(count)), local))


def loss_back(system: System, probs: Enclosed, targets: int | Sequence[int]) -> Enclosed:
    """(probs - 1 at the target)/n in each counted position, n of them; 0 in the others."""
    engine, like = probs.digits.engine, probs.digits.limbs
    rows, vocab = probs.shape
    ids = [UNCOUNTED] * (rows - 1) + [targets] if isinstance(targets, int) else list(targets)
    counted = [row for row, target in enumerate(ids) if target != UNCOUNTED]
    ones = np.zeros((1, rows, vocab))
    ones[0, counted, [ids[row] for row in counted]] = 1.0
    less = arithmetic.subtract(probs.digits, Digits(engine.constant(ones, like), WIDTH))
    away = np.array([[target == UNCOUNTED or vocab == 1] for target in ids])
    zeros = engine.broadcast(engine.constant(away, like), (rows, vocab))
    digits = Digits(engine.where(zeros, 0.0, less.limbs), less.top)
    local, count = None, len(counted)
    if count > 1:
        low = digits.low - count.bit_length()
        digits = arithmetic.over_integer(digits, count, low)
        local = QUOTIENT * math.ldexp(1.0, max(low, -1000))
    digits = without_empty_limbs(digits)
    if probs.exact and local is None:
        return Enclosed(digits)

    def box() -> Bound:
        known = constant(digits, digits.shape, 0.0)
        if not probs.exact:
            known = probs.box if count == 1 else over(probs.box, float(count))
        return plus(known, local)

    return Enclosed(digits, lambda: length(box()), box=box, zeros=zeros)

"""Metrics of weight matrices: small matrices and numbers that bound what a product does to lengths.

They belong to the weights alone, so they are made once and kept with them.

factor      S with ‖W·y‖ <= ‖S·y‖ for all y, where S has as many rows as W has columns.  With G =
            fl(WᵀW), |G - WᵀW| <= γ_k·|W|ᵀ|W| has the norm γ_k·‖W‖_F² at most, and Cholesky of
            G + η·tr·I = SᵀS + E errs by ‖E‖ <= 2γ_(n+1)·tr.  η = 2^-30 is above twice both
            together, for k + n < 2^15: so WᵀW + η/2·tr·I <= SᵀS as quadratic forms.
overlaps    ω_ij with |yᵀW_iᵀW_j·z| <= ω_ij·‖S_i·y‖·‖S_j·z‖: the cosine of the smallest angle of two
            column spaces.  S is invertible.  For any X near S_i⁻ᵀ·K·S_j⁻¹, K = W_iᵀW_j, and R =
            S_iᵀ·X·S_j - K, the form is (S_i·y)ᵀX(S_j·z) - yᵀRz, and ‖y‖ <= ‖S_i·y‖/√(η/2·tr_i).
coherence   a bound of the form ‖V·diag(c)·A‖_F² = cᵀ(VᵀV ∘ AAᵀ)c.  With normed columns v_i of V and
            rows a_i of A, H is the product of two correlation matrices, entry by entry.  Its
            largest eigenvectors Q (guessed; nothing is asked of them) are taken off, and λ of what
            is left is proven: H <= Qᵀ·diag(σ)·Q + λ·I.  Each entry of H is rounded by at most
            (2k + 8)·2^-52, all together move no eigenvalue by more than n times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.kept_bounds import keepable
from byhand.numbers.enclosed.limbs.radii import length, plus, slack, times
from byhand.numbers.enclosed.limbs.spectral import (
    frobenius,
    largest_eigenvalue,
    spectral_norm,
    spectral_norms,
)

LIFTED = 2.0**-30  # part of the trace that is added to a Gram matrix before it is decomposed
DEEPEST = 1 << 15  # inputs and outputs together for which that is enough
WIDEST = 8192  # units up to which all pairs of them are looked at
TAKEN_OFF = 8  # eigenvectors of a coherence
ROUNDS = 10  # of the iteration that guesses them

# ------------------------------------------------------------------ lengths


def factor(matrix: Array) -> Array | None:
    """S with ‖W·y‖ <= ‖S·y‖ for all y, upper triangular; None where none was found."""
    engine: Any = engine_of(matrix)
    deep, n = matrix.shape
    if deep + n > DEEPEST:
        return None
    gram = matrix.T @ matrix
    trace = frobenius(matrix) ** 2 * slack(4)
    if not 2.0**-900 < trace < 2.0**900:
        return None
    lower = engine.cholesky(gram, LIFTED * trace)
    return None if lower is None else engine.contiguous(lower.T)


def product_norm(left: Array, right: Array) -> float:
    """A bound of ‖A·B‖₂, of the rounded product and what rounding may have hidden."""
    off = times(left.shape[1] * 2.0**-52, frobenius(left), frobenius(right))
    return float(plus(spectral_norm(left @ right), off))


def pair_norms(lefts: Array, middles: Array, sizes: Array) -> Array:
    """Bounds of ‖S_i·K_ij·S_jᵀ‖₂, (i, j); `sizes` bound the ‖W_i‖_F of K_ij = W_iᵀW_j."""
    count, n = lefts.shape[:2]
    made = lefts[:, None] @ middles @ lefts[None].swapaxes(2, 3)
    found = spectral_norms(made.reshape(-1, n, n)).reshape(count, count)
    whole = length(lefts.reshape(count, -1)) * sizes
    return found + whole[:, None] * whole * (DEEPEST * 2.0**-50)


def overlaps(factors: Array, middles: Array, sizes: Array, deep: int) -> Array:
    """ω, (i, j), at most 1; `factors` are the S_i, `middles` the K_ij, sums of `deep` products.

    `sizes` bound the ‖W_i‖_F, and are within 2^-40 of them.
    """
    engine: Any = engine_of(factors)
    count, n = factors.shape[:2]
    inverses = engine.module.linalg.inv(factors)
    near = inverses.swapaxes(1, 2)[:, None] @ middles @ inverses[None]  # X
    again = factors.swapaxes(1, 2)[:, None] @ near @ factors[None]
    rest = length((again - middles).reshape(count * count, -1)).reshape(count, count)
    flat = near.reshape(count * count, n, n)
    lengths = length(flat.reshape(count * count, -1)).reshape(count, count)
    whole = length(factors.reshape(count, -1))  # ‖S_i‖_F, above ‖W_i‖_F
    pairs = whole[:, None] * whole
    rest = rest + pairs * (1.0 + lengths) * ((deep + 4 * n + 8) * 2.0**-52)
    least = (LIFTED / 2 * (1 - 2.0**-40)) * sizes[:, None] * sizes  # of √(η/2·tr_i)·√(η/2·tr_j)
    found = spectral_norms(flat).reshape(count, count) + rest / least
    found = engine.where(found == found, found, 1.0)
    return engine.clip(found * slack(8), None, 1.0)


# ------------------------------------------------------------------ coherence


@keepable
@dataclass(frozen=True)
class Coherence:
    """H <= Σ σ_j·q_j·q_jᵀ + rest·I, and H <= top·I."""

    top: float
    rest: float
    directions: Array  # (j, unit): q_j
    weights: Array  # (j,): σ_j
    lengths: Array  # (j,): ‖q_j‖


def coherence(columns: Array, *rows: Array) -> Coherence:
    """For V·diag(c)·A, `columns` V and one or several A whose products are added up.

    With several, c has a part for each, one after the other.
    """
    engine: Any = engine_of(columns)
    turned = _normed(columns.T)
    stacked = engine.concatenate([_normed(part) for part in rows])
    n = stacked.shape[0]
    deep = columns.shape[0] + stacked.shape[1]
    if n <= WIDEST:
        repeated = engine.concatenate([turned] * len(rows))
        product = (repeated @ repeated.T) * (stacked @ stacked.T)
        found = _taken_apart(product, (2 * deep + 8) * n * 2.0**-52)
        if found is not None:
            return found
    one = times(float(len(rows)), spectral_norm(turned), spectral_norm(turned))
    other = times(spectral_norm(stacked), spectral_norm(stacked))
    top = min(one, other) * slack(2 * deep + 64)  # Schur: never above that of one of the two
    none = engine.zeros((0, n), stacked)
    return Coherence(top, top, none, none.sum(1), none.sum(1))


def _taken_apart(product: Array, rounding: float) -> Coherence | None:
    """The largest eigenvectors, and a proven bound of the rest."""
    engine: Any = engine_of(product)
    linalg, n = engine.module.linalg, product.shape[0]
    count = min(TAKEN_OFF, n)
    start = np.random.default_rng(0).standard_normal((n, count))
    found = engine.constant(start, product)
    for _round in range(ROUNDS):
        found = linalg.qr(product @ found)[0]
    values, turn = linalg.eigh(found.T @ (product @ found))
    found = found @ turn
    weights = engine.clip(values - values[0], 0.0, None)
    if not engine.largest(weights) < math.inf or not engine.largest(found) < 2.0:
        return None
    left = product - (found * weights) @ found.T
    rest = largest_eigenvalue(left, 4.0 * n)
    if rest is None:
        return None
    most = engine.largest(weights)
    # taking off rounds each entry by (count + 2) units of Σ |q||σ||q|, whose norm is count·σ
    rest = float(plus(rest, rounding, (count + 2) * count * 2.0**-51 * (most + 1.0) * n))
    gram = found.T @ found
    lengths = length(found, 0)
    top = float(plus(rest, times(most, frobenius(gram))))
    spread = spectral_norm(gram)  # of Q·diag(σ)·Qᵀ the norm is at most σ·‖QᵀQ‖
    top = min(top, float(plus(rest, times(most, plus(spread, n * 2.0**-48)))))
    return Coherence(top, rest, engine.contiguous(found.T), weights, lengths)


def _normed(rows: Array) -> Array:
    """The rows, each divided by its length; rows of zeros stay."""
    engine = engine_of(rows)
    sizes = length(rows)
    return rows / engine.where(sizes > 0, sizes, math.inf)[:, None]

"""Proven upper bounds of the spectral norm ‖A‖₂ of a matrix.

It is the largest factor by which A stretches a vector.  The bound is ‖A‖₂² = λ_max(AᵀA) <= μ +
(what rounding can have hidden), where μ is a guess that the Cholesky decomposition has proven: if
it runs to its end on S = μI - G, then S is positive semidefinite up to its own rounding (Rump,
"Verification of positive definiteness", BIT Numerical Mathematics 46, 2006).  A guess comes from
power iteration, which proves nothing; a wrong one makes the decomposition fail, and a larger one is
tried.

Proof.  u = 2^-53, γ_m = mu/(1 - mu) <= m·2^-52 for mu <= 1/2.

1. G = fl(AᵀA), of which only the lower triangle is used: |G - AᵀA| <= γ_k·|A|ᵀ|A| entry by entry,
   whatever the order of summation (Higham, Accuracy and Stability, 3.5), so the spectral norm of
   the difference is at most its Frobenius norm, at most γ_k·‖A‖_F².
2. S = fl(μI - G) rounds its diagonal only: at most u·(μ + max G_ii).
3. If Cholesky ends with a factor R, then RᵀR = S + E with |E| <= γ_(n+1)·|R|ᵀ|R| (Higham, theorem
   10.3, again in any order).  The diagonal of |R|ᵀ|R| is that of RᵀR, so ‖R‖_F² = tr(S + E) <=
   tr S + γ_(n+1)·‖R‖_F², and ‖E‖_F <= γ_(n+1)·‖R‖_F² <= γ_(n+1)/(1 - γ_(n+1))·tr S.
   RᵀR is positive semidefinite, so λ_min(S) >= -‖E‖₂.
4. Together λ_max(AᵀA) <= μ + γ_(n+1)/(1 - γ_(n+1))·tr S + u·(μ + max G_ii) + γ_k·‖A‖_F².

A stack of small matrices is bounded without a guess, so that nothing has to be asked: with
‖A‖_F <= 1, P_0 = fl(AᵀA) and P_(k+1) = fl(P_kᵀP_k),

    ‖P_k‖₂² = ‖P_kᵀP_k‖₂ <= ‖P_(k+1)‖₂ + γ_n·‖P_k‖_F² <= ‖P_(k+1)‖₂ + nγ_n·‖P_k‖₂²,

so ‖P_0‖₂ <= (‖P_m‖_F/(1 - nγ_n)^(2^m))^(1/2^m), which is too large by n^(1/2^(m+1)) at most.

Step 3 asks of LAPACK what steps 1 and 3 ask of BLAS: sums of products, in any order, in float64.
Underflow loses at most 2^-1074 for each of less than 2^60 operations, on a matrix scaled so that
its largest entry is about 1: TINY pays for it.
"""

from __future__ import annotations

import math
from typing import Any

from byhand.numbers.enclosed.limbs.engine import engine_of
from byhand.numbers.enclosed.limbs.radii import TINY, length, plus, root, slack, times

STEPS = 24  # of the power iteration that makes a guess
ABOVE = 1.0 + 2.0**-6  # how far above the guess the first attempt is
WIDER = 1.0 + 2.0**-4
ATTEMPTS = 40
SMALLEST = 2.0**-500  # far above what underflow can lose of numbers up to 1
SQUARINGS = 4


def frobenius(matrix: Any) -> float:
    """A bound of ‖A‖_F, which is one of ‖A‖₂."""
    return float(length(matrix.reshape(-1))) if math.prod(matrix.shape) else 0.0


def spectral_norm(matrix: Any) -> float:
    """A proven upper bound of ‖A‖₂; a few percent too large at most, usually 1.

    The matrix is a float64 array of two axes, finite.
    """
    engine = engine_of(matrix)
    largest = engine.largest(matrix)
    if largest == 0.0:
        return 0.0
    exponent = math.frexp(largest)[1]
    if not -900 < exponent < 900:
        return frobenius(matrix)
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    tall = engine.contiguous(tall) * 2.0**-exponent
    deep, n = tall.shape
    whole = frobenius(tall)
    gram = tall.T @ tall
    proven = largest_eigenvalue(gram, whole * whole)
    bound = whole
    if proven is not None:
        squared = plus(proven, times(deep * 2.0**-52, whole, whole), n * n * deep * TINY)
        bound = min(whole, float(root(squared)))
    return times(bound, 2.0**exponent) if abs(exponent) < 900 else math.inf


def spectral_norms(matrices: Any) -> Any:
    """The same for a stack (count, rows, columns) of small matrices: an array of bounds.

    They are the Frobenius norms of powers, some percent wide.
    """
    engine = engine_of(matrices)
    count, deep, n = matrices.shape
    whole = length(matrices.reshape(count, -1))
    scale = whole * slack(2) + SMALLEST  # rounding leaves ‖A/scale‖_F <= 1
    power = matrices / scale[:, None, None]
    if deep < n:
        power, deep, n = power.swapaxes(1, 2), n, deep
    for _squaring in range(SQUARINGS + 1):
        power = power.swapaxes(1, 2) @ power
    found = length(power.reshape(count, -1)) + SMALLEST
    for _squaring in range(SQUARINGS):
        found = root(found)
    # the powers' rounding, that of AᵀA, and of A/scale: all below this part of ‖A/scale‖_F² <= 1
    rounding = (4 * n * (n + 2) + deep + 8) * 2.0**-50
    bound = (engine.root(found + rounding) + rounding) * scale * slack(8)
    return engine.where(bound < whole, bound, whole)


def largest_eigenvalue(gram: Any, trace: float) -> float | None:
    """A bound of λ_max of the matrix whose lower triangle this is; it is nearly semidefinite."""
    n = gram.shape[0]
    rounding = (n + 2) * 2.0**-51  # above γ_(n+1)/(1 - γ_(n+1))
    guess = _guess(gram) * ABOVE
    for _attempt in range(ATTEMPTS):
        if not guess < trace:
            return None  # the Frobenius norm says as much
        if _decomposes(gram, guess):
            trace_of_s = n * guess * slack(2)  # tr S <= nμ, where no diagonal entry is negative
            return float(plus(guess, rounding * trace_of_s, 2.0**-52 * guess, 2.0**-52 * trace))
        guess *= WIDER
    return None


def _guess(gram: Any) -> float:
    """About λ_max, more likely below than above."""
    vector = abs(gram).sum(0)
    value = 0.0
    for _step in range(STEPS):
        size = float((vector * vector).sum()) ** 0.5
        if not 0.0 < size < math.inf:
            return value
        vector = vector / size
        following = gram @ vector
        value = float((vector * following).sum())
        vector = following
    return value


def _decomposes(gram: Any, guess: float) -> bool:
    """Whether Cholesky runs to its end on guess·I - gram."""
    return engine_of(gram).cholesky(-gram, guess) is not None

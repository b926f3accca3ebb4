"""Proven upper bounds of the spectral norm ‖A‖₂, the largest factor by which A stretches a vector.

The bound is ‖A‖₂² = λ_max(AᵀA) <= μ + (what rounding can have hidden), where μ is a guess that the
Cholesky decomposition has proven: if it runs to its end on S = μI - G, then S is positive
semidefinite up to its own rounding.  A guess comes from power iteration, which proves nothing; a
wrong one makes the decomposition fail, and a larger one is tried.

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

Step 3 asks of LAPACK what steps 1 and 3 ask of BLAS: sums of products, in any order, in float64.
Underflow loses at most 2^-1074 for each of less than 2^60 operations, on a matrix scaled so that
its largest entry is about 1: TINY pays for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.numbers.enclosed.engine import module_of
from byhand.numbers.enclosed.radii import TINY, length, plus, root, slack, times

STEPS = 24  # of the power iteration that makes a guess
ABOVE = 1.0 + 2.0**-6  # how far above the guess the first attempt is
WIDER = 1.0 + 2.0**-4
ATTEMPTS = 40
FEW = 6  # steps and attempts for a stack of small matrices
FAR_ABOVE = 1.0 + 2.0**-3


def frobenius(matrix: Any) -> float:
    """A bound of ‖A‖_F, which is one of ‖A‖₂."""
    return float(length(matrix.reshape(-1))) if math.prod(matrix.shape) else 0.0


def spectral_norm(matrix: Any) -> float:
    """A number that is proven not to be below ‖A‖₂; a few percent above at most, usually 1.

    The matrix is a float64 array of two axes, finite.
    """
    engine = module_of(matrix)
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
    proven = _largest_eigenvalue(gram, whole * whole)
    bound = whole
    if proven is not None:
        squared = plus(proven, times(deep * 2.0**-52, whole, whole), n * n * deep * TINY)
        bound = min(whole, float(root(squared)))
    return times(bound, 2.0**exponent) if abs(exponent) < 900 else math.inf


def spectral_norms(matrices: Any) -> Any:
    """The same for a stack (count, rows, columns) of small matrices: an array of bounds.

    All are tried at once with a guess that is further above, so these bounds are some percent wide.
    """
    engine = module_of(matrices)
    tall = matrices if matrices.shape[1] >= matrices.shape[2] else matrices.swapaxes(1, 2)
    count, deep, n = tall.shape
    whole = length(matrices.reshape(count, -1))
    largest = engine.largest(matrices)
    if largest == 0.0 or not 2.0**-200 < largest < 2.0**200:
        return whole
    gram = tall.swapaxes(1, 2) @ tall
    vector = abs(gram).sum(1)[..., None]
    for _step in range(FEW):
        size = engine.root((vector * vector).sum(1))[:, None]
        vector = gram @ (vector / engine.where(size > 0, size, 1.0))
    guess = engine.root((vector * vector).sum(1))[:, 0] * FAR_ABOVE
    for _attempt in range(FEW):
        if _all_decompose(gram, guess):
            trace = whole * whole * slack(2)
            rounding = (n * (n + 2) + deep + 8) * 2.0**-50
            # every term of the proof is below this part of the larger of guess and trace
            most = engine.where(guess > trace, guess, trace)
            squared = guess + most * rounding + n * n * deep * TINY
            bound = root(squared * slack(4))
            return engine.where(bound < whole, bound, whole)
        guess = guess * WIDER
    return whole


def tensors_of(tensor: Any) -> Any:
    """torch, of which this is a tensor."""
    engine: Any = module_of(tensor)
    return engine.torch


def _all_decompose(gram: Any, guess: Any) -> bool:
    """Whether Cholesky runs to its end on every guess·I - gram."""
    shifted = -gram
    if isinstance(gram, np.ndarray):
        places = np.arange(gram.shape[1])
        shifted[:, places, places] += guess[:, None]
        try:
            factors = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return False
        return bool(np.isfinite(factors).all())
    torch = tensors_of(gram)
    shifted.diagonal(dim1=1, dim2=2).add_(guess[:, None])
    factors, failed = torch.linalg.cholesky_ex(shifted)
    return bool((failed == 0).all() & torch.isfinite(factors).all())


def _largest_eigenvalue(gram: Any, trace: float) -> float | None:
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
    if isinstance(gram, np.ndarray):
        shifted = -gram
        shifted[np.diag_indices(len(gram))] += guess
        try:
            factor = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return False
        return bool(np.isfinite(factor).all())
    torch = tensors_of(gram)
    shifted = -gram
    shifted.diagonal().add_(guess)
    factor, failed = torch.linalg.cholesky_ex(shifted)
    return int(failed) == 0 and bool(torch.isfinite(factor).all())

"""More slips: terms of sums left out, other functions, a row taken for a column.

Each is checked as those of `student_slips` are.
"""

from __future__ import annotations

import numpy as np
from student_slips import A, M, Row, Slip, Working, changed, exp, softmax

SCORES, WEIGHTS, MIXED, Q, NORM = A + "scores", A + "weights", A + "mixed", A + "q", A + "norm."


def products(v: Working) -> Row:
    """The products that the queries are sums of: one row for each number that enters."""
    return v(NORM + "normalized")[:, None] * v.w("block.0.attn.q")


def without(v: Working, term: int, entry: int | None = None, times: float = 1.0) -> Row:
    """The queries less a term, or less it `times`, in every sum or in one."""
    less = times * products(v)[term]
    return v(Q) - (less if entry is None else changed(0 * less, entry, less[entry]))


def of_number(v: Working, address: str) -> float:
    """A number that is alone in its row, at the last position."""
    return float(v.steps[address][-1])


CALCULATION_SLIPS = (
    # ------------------------------------------------------------------ sums
    Slip("a term left out", Q, lambda v: without(v, 3), "every sum leaves out"),
    Slip("a term left out once", Q, lambda v: without(v, 0, 0), "leaves out the term"),
    Slip("a term with the wrong sign", Q, lambda v: without(v, 1, 2, 2), "wrong sign in the sum"),
    Slip("a term added twice", Q, lambda v: without(v, 2, 1, -1), "twice"),
    Slip("a row for a column", A + "k", lambda v: changed(v(A + "k"), 1, v(NORM + "normalized")
         @ v.w("block.0.attn.k")[1]), "row 1 of the matrix"),
    Slip("the last value not mixed", MIXED, lambda v: v(WEIGHTS)[:3] @ v.all(A + "v")[:3],
         "leaves out the term"),
    Slip("the output matrix forgotten", A + "out", lambda v: v(MIXED), "copied"),
    Slip("a number twice as large", Q, lambda v: changed(v(Q), 1, 2 * v(Q)[1]), "twice as large"),
    Slip("a number written twice", Q, lambda v: changed(v(Q), 1, v(Q)[0]), "repeats"),
    Slip("one wrong digit", M + "hidden", lambda v: changed(v(M + "hidden"), 0,
         v(M + "hidden")[0] + 0.01), "one digit"),
    # ------------------------------------------------------------------ the norm
    Slip("the mean of one less", NORM + "mean", lambda v: v("stream.0").sum() / 3,
         "divided by 3"),
    Slip("the squares not divided", NORM + "variance",
         lambda v: (v(NORM + "centered") ** 2).sum(), "not divided by 4"),
    Slip("the mean deviation", NORM + "variance",
         lambda v: np.abs(v(NORM + "centered")).mean(), "absolute values"),
    Slip("half the variance", NORM + "std", lambda v: of_number(v, NORM + "variance") / 2,
         "halved"),
    Slip("another position's mean", M + "norm.centered",
         lambda v: v(A + "add") - v.steps[M + "norm.mean"][2], "mean of position 2"),
    # ------------------------------------------------------------------ attention
    Slip("another position's query", SCORES, lambda v: v.all(A + "k") @ v.all(Q)[2] / 2,
         "query of position 2"),
    Slip("powers of ten", WEIGHTS, lambda v: 10 ** v(SCORES) / (10 ** v(SCORES)).sum(),
         "powers of 10"),
    Slip("the scale undone", WEIGHTS, lambda v: softmax(2 * v(SCORES)), "not scaled by 1/√4"),
    Slip("the largest alone", WEIGHTS, lambda v: (v(SCORES) == v(SCORES).max()) * 1.0,
         "the largest number gets 1"),
    Slip("equal weights", WEIGHTS, lambda v: np.full(4, 0.25), "taken as equal"),
    Slip("itself not in the sum", WEIGHTS, lambda v: exp(v(SCORES)) / exp(v(SCORES))[:3].sum(),
         "leaves out its number 3"),
    Slip("the values without weights", MIXED, lambda v: v.all(A + "v").sum(0),
         "without their weights"),
    # ------------------------------------------------------------------ the MLP and the end
    Slip("what is negative kept", M + "act", lambda v: np.minimum(v(M + "hidden"), 0),
         "positive becomes 0"),
    Slip("a leaky relu", M + "act", lambda v: np.where(v(M + "hidden") > 0, v(M + "hidden"),
         v(M + "hidden") / 100), "divided by 100"),
    Slip("a sigmoid", M + "act", lambda v: 1 / (1 + exp(-v(M + "hidden"))), "sigmoid"),
    Slip("tanh", M + "act", lambda v: np.tanh(v(M + "hidden")), "tanh"),
    Slip("divided by the largest", "probs", lambda v: exp(v("logits")) / exp(v("logits")).max(),
         "the largest of them"),
    Slip("e to minus x", "probs", lambda v: softmax(-v("logits")), "e^-x"),
    Slip("the loss times p", "loss", lambda v: -v("probs")[4] * np.log(v("probs")[4]), "p·ln p"),
)  # fmt: skip

"""The slips that students make on a worksheet, as a table: what is written, and what is said of it.

Each slip changes one line of the sheet.  The lines below go on from what was written, as a student
goes on, so that only this line is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float64]
A, M = "block.0.attn.", "block.0.mlp."


@dataclass(frozen=True)
class Working:
    """The right working of a sheet: the numbers of a step, and the weights."""

    steps: dict[str, Row]
    weights: dict[str, Row]
    position: int

    def __call__(self, address: str) -> Row:
        """The step; of a step with positions, the row of the sheet's position."""
        step = self.steps[address]
        return step if step.ndim < 2 else step[..., self.position, :].reshape(-1)

    def all(self, address: str) -> Row:
        """Every position of a step of one head."""
        step = self.steps[address]
        return step[0] if step.ndim == 3 else step

    def w(self, name: str) -> Row:
        """A weight matrix."""
        return self.weights[name]


@dataclass(frozen=True)
class Slip:
    """One slip: where, what is written there, and what the marking says."""

    name: str
    address: str
    write: Callable[[Working], Any]
    said: str  # a part of the sentence
    model: str = "journey"


def exp(x: Row) -> Row:
    return np.exp(x)


def softmax(x: Row) -> Row:
    return np.exp(x) / np.exp(x).sum()


def gelu(x: Row) -> Row:
    return np.array([v * (1 + erf(v / sqrt(2))) / 2 for v in x])


def changed(row: Row, place: int, value: float) -> Row:
    found = np.array(row, dtype=float)
    found[place] = value
    return found


def swapped(row: Row, one: int, other: int) -> Row:
    found = np.array(row, dtype=float)
    found[[one, other]] = found[[other, one]]
    return found


SCORES, WEIGHTS, MIXED = A + "scores", A + "weights", A + "mixed"
NORM, STREAM, ADD = A + "norm.", "stream.0", A + "add"

SLIPS = (
    # ------------------------------------------------------------------ slips of the pen
    Slip("a sign", A + "q", lambda v: changed(v(A + "q"), 2, -v(A + "q")[2]), "wrong sign"),
    Slip("every sign", A + "out", lambda v: -v(A + "out"), "every sign is reversed"),
    Slip("a decimal slip", SCORES, lambda v: changed(v(SCORES), 0, v(SCORES)[0] / 10),
         "decimal point"),
    Slip("percent for a share", WEIGHTS, lambda v: changed(v(WEIGHTS), 0, v(WEIGHTS)[0] * 100),
         "decimal point"),
    Slip("two digits exchanged", A + "k", lambda v: changed(v(A + "k"), 0, -0.965),
         "two digits"),
    Slip("two numbers exchanged", M + "hidden", lambda v: swapped(v(M + "hidden"), 0, 1),
         "exchanged"),
    Slip("copied the line above", M + "out", lambda v: v(M + "act"), "line above"),
    Slip("rounded too early", A + "v", lambda v: np.round(v(A + "v"), 1), "rounded to 1 decimal"),
    # ------------------------------------------------------------------ the stream
    Slip("the position forgotten", STREAM, lambda v: v("embed.token"), "position"),
    Slip("another position's row", A + "k", lambda v: v.all(A + "k")[2], "row of position 2"),
    Slip("multiplied instead of added", STREAM, lambda v: v("embed.token") * v("embed.position"),
         "multiplied"),
    Slip("the residual forgotten", ADD, lambda v: v(A + "out"), "residual is missing"),
    Slip("subtracted instead of added", ADD, lambda v: v(STREAM) - v(A + "out"), "subtracted"),
    Slip("added to the wrong stream", M + "add", lambda v: v(STREAM) + v(M + "out"),
         "stream"),
    # ------------------------------------------------------------------ the norm
    Slip("the sum for the mean", NORM + "mean", lambda v: v(STREAM).sum(), "sum"),
    Slip("the mean not subtracted", NORM + "centered", lambda v: v(STREAM), "mean"),
    Slip("the mean added", NORM + "centered", lambda v: v(STREAM) + v(STREAM).mean(), "added"),
    Slip("variance with n − 1", M + "norm.variance",
         lambda v: (v(M + "norm.centered") ** 2).sum() / 3, "n - 1 = 3"),
    Slip("variance of the stream", M + "norm.variance", lambda v: (v(ADD) ** 2).mean(),
         "row itself is squared"),
    Slip("the root forgotten", M + "norm.std", lambda v: v.steps[M + "norm.variance"][3],
         "its root"),
    Slip("eps forgotten", NORM + "std", lambda v: np.sqrt(v.steps[NORM + "variance"][3]), "eps",
         model="eps"),
    Slip("divided by the variance", M + "norm.normalized",
         lambda v: v(M + "norm.centered") / v.steps[M + "norm.variance"][3], "variance"),
    Slip("multiplied instead of divided", M + "norm.normalized",
         lambda v: v(M + "norm.centered") * v.steps[M + "norm.std"][3], "multiplies by std"),
    # ------------------------------------------------------------------ attention
    Slip("a matrix transposed", A + "q",
         lambda v: v(NORM + "normalized") @ v.w("block.0.attn.q").T, "transposed"),
    Slip("the keys' matrix for the queries", A + "q",
         lambda v: v(NORM + "normalized") @ v.w("block.0.attn.k"), "q ← k"),
    Slip("not from the normed row", A + "v", lambda v: v(STREAM) @ v.w("block.0.attn.v"), "norm"),
    Slip("a bias forgotten", A + "out", lambda v: v(MIXED) @ v.w("block.0.attn.out").T, "bias",
         model="abc"),
    Slip("the scale forgotten", SCORES, lambda v: v(SCORES) * 2, "not scaled"),
    Slip("scaled by d", SCORES, lambda v: v(SCORES) / 2, "scale"),
    Slip("scored against the values", SCORES, lambda v: v.all(A + "v") @ v(A + "q") / 2,
         "attn.v is read"),
    Slip("shares not normalised", WEIGHTS, lambda v: exp(v(SCORES)), "divided by"),
    Slip("softmax over the wrong axis", WEIGHTS,
         lambda v: np.exp(v(SCORES)) / np.nansum(np.exp(v.all(SCORES)), axis=0), "axis"),
    Slip("itself left out", WEIGHTS,
         lambda v: np.append(softmax(v(SCORES)[:3]), 0.0), "itself"),
    Slip("the plain mean of the values", MIXED, lambda v: v.all(A + "v").mean(0), "equal"),
    Slip("the keys mixed", MIXED, lambda v: v(WEIGHTS) @ v.all(A + "k"), "key"),
    # ------------------------------------------------------------------ the MLP and the end
    Slip("relu not applied", M + "act", lambda v: v(M + "hidden"), "no activation"),
    Slip("gelu for relu", M + "act", lambda v: gelu(v(M + "hidden")), "GELU"),
    Slip("the absolute value for relu", M + "act", lambda v: np.abs(v(M + "hidden")), "absolute"),
    Slip("e^ not normalised", "probs", lambda v: exp(v("logits")), "divided by"),
    Slip("shares of the logits themselves", "probs", lambda v: v("logits") / v("logits").sum(),
         "e^"),
    Slip("base 2 for e", "probs", lambda v: 2 ** v("logits") / (2 ** v("logits")).sum(),
         "powers of 2"),
    Slip("the logarithm to base 10", "loss", lambda v: -np.log10(v("probs")[4]), "log10"),
    Slip("the loss of another word", "loss", lambda v: -np.log(v("probs")[1]), "target"),
    Slip("the loss without its sign", "loss", lambda v: np.log(v("probs")[4]), "sign"),
    Slip("the probability for the loss", "loss", lambda v: 1 - v("probs")[4], "1 −"),
)  # fmt: skip

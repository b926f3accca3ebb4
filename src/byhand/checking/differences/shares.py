"""Attention weights as a claim shows them, claimed or solved, beside the scores of the model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import Attention
from byhand.checking.differences.score_changes import Seen
from byhand.checking.suspects.scenes import Draft

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
CLEAR = 20.0  # × the usual error: a weight that is surely not 0


@dataclass(frozen=True)
class Shares:
    """Attention weights as the claim shows them, beside the model's scores."""

    attention: Attention
    weights: Floats
    off: Floats  # their usual error
    expected: Floats
    scores: Floats  # as the softmax reads them; whatever they are where they are masked
    rows: Floats | None = None  # the usual error of each row's sum, where it is known better

    @property
    def own(self) -> Truths:
        """The keys that the model's queries see."""
        return self.attention.own

    def on_scores(self, draft: Draft, op: str, **attributes: object) -> None:
        """Applies an operation to the scores that the softmax reads."""
        draft.first(self.attention.step("weights").address, "x", op, **attributes)


def seen_in(shares: Shares) -> Seen | None:
    """The scores that the weights are the softmax of, each row up to a number."""
    there = shares.own & (shares.weights > CLEAR * shares.off) & np.isfinite(shares.scores)
    if there.sum() < 3:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(there, np.log(np.where(there, shares.weights, 1.0)), 0.0)
        off = np.where(there, shares.off / np.where(there, shares.weights, 1.0), 1.0)
    attention = shares.attention
    scores = np.where(there, shares.scores, 0.0)
    places = attention.queries, attention.keys
    return Seen(scores, logs, off + 1e-15, there, True, *places, attention.fineness)


def row_error(shares: Shares) -> Floats:
    """The usual error of the sum of each row."""
    if shares.rows is not None:
        return shares.rows + 1e-15
    error: Floats = np.sqrt(np.square(np.where(shares.own, shares.off, 0.0)).sum(axis=-1))
    return error + 1e-15

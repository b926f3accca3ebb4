"""Scores from rows of logits in floats: log-softmax at the token, rank, margin and entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.standing import in_floats
from byhand.scoring.samples import Sample
from byhand.scoring.scores import Floats, Ids, Scores


@dataclass(frozen=True)
class Rows:
    """What rows of logits say of the token after each: one entry a row."""

    logprobs: Floats
    ranks: Ids
    best: Ids
    margins: Floats
    entropies: Floats

    def taken(self, here: slice) -> Rows:
        """Some of the rows, copied, so that the others can be let go of."""
        return Rows(
            self.logprobs[here].copy(), self.ranks[here].copy(), self.best[here].copy(),
            self.margins[here].copy(), self.entropies[here].copy(),
        )  # fmt: skip

    def of(self, sample: Sample, numbers: str) -> Scores:
        """The scores of a sample whose rows these are.  Floats prove nothing."""
        unknown = np.full(len(self.ranks), np.inf)
        return Scores(
            sample, numbers, self.logprobs, unknown, self.ranks, self.best,
            np.zeros(len(self.ranks), dtype=np.bool_),
            self.margins, unknown, self.entropies, unknown,
        )  # fmt: skip


def float_scores(sample: Sample, numbers: str, logits: npt.NDArray[np.floating]) -> Scores:
    """The scores of a sample from one row of logits before each of its scored tokens."""
    return rows_of(logits, sample.scored).of(sample, numbers)


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, one after the other."""
    return Rows(
        np.concatenate([part.logprobs for part in parts]),
        np.concatenate([part.ranks for part in parts]),
        np.concatenate([part.best for part in parts]),
        np.concatenate([part.margins for part in parts]),
        np.concatenate([part.entropies for part in parts]),
    )


def rows_of(logits: npt.NDArray[Any], tokens: Sequence[int] | Ids) -> Rows:
    """What each row of logits says of its token."""
    return Rows(*in_floats(logits, np.asarray(tokens, dtype=np.int64)))

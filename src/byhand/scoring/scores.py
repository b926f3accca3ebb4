"""Scores of a text: for each token its log-probability, rank, margin and entropy, with radii."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from byhand.display import Shown
from byhand.scoring.samples import Sample

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Scores(Shown):
    """What a model says of the scored tokens of one text, one entry a token, in nats.

    The true value lies within the radius of each number.  Floats prove nothing: their radii are
    infinite.

    >>> from byhand.models import open_model
    >>> from byhand.scoring.scorer import Scorer
    >>> from byhand.scoring.samples import Sample
    >>> (scores,) = Scorer(open_model("tiny"), digits=4).score([Sample("first", (0, 1))])
    >>> scores.ids.tolist(), scores.ranks.tolist(), scores.logprobs.round(4).tolist()
    ([1], [3], [-2.4076])
    """

    sample: Sample
    numbers: str  # "digits 6", "float32"
    logprobs: Floats  # ln p of each scored token
    radii: Floats
    ranks: Ids  # 1: the token is the likeliest; the lowest rank that the enclosures allow
    best: Ids  # the likeliest token before each scored one
    best_proven: NDArray[np.bool_]  # whether `best` is proven
    margins: Floats  # the largest logit less the second largest
    margin_radii: Floats
    entropies: Floats
    entropy_radii: Floats

    @property
    def ids(self) -> Ids:
        """The scored tokens."""
        return np.asarray(self.sample.scored, dtype=np.int64)

"""The scored tokens of all texts side by side: what is true of each, and what a run says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from byhand.scoring.samples import Sample
from byhand.scoring.scores import Floats, Ids, Scores

Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Tokens:
    """The scores of several texts, their tokens one after another."""

    scores: tuple[Scores, ...]

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The texts."""
        return tuple(each.sample for each in self.scores)

    @property
    def numbers(self) -> str:
        """What the scores were worked out in: "digits 6", "float32"."""
        return self.scores[0].numbers

    @property
    def proven(self) -> bool:
        """Whether the log-probabilities are enclosed: floats prove nothing."""
        return bool(np.isfinite(self.radii).all())

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def text(self) -> Ids:
        """Which text each token belongs to."""
        counts = [len(each.ids) for each in self.scores]
        return np.repeat(np.arange(len(counts), dtype=np.int64), counts)

    @cached_property
    def position(self) -> Ids:
        """Where each token stands in its text."""
        found = [np.arange(s.first, len(s.ids), dtype=np.int64) for s in self.samples]
        return np.concatenate(found)

    @cached_property
    def ids(self) -> Ids:
        """The tokens."""
        return np.concatenate([each.ids for each in self.scores])

    @cached_property
    def logprobs(self) -> Floats:
        """ln p of each token."""
        return np.concatenate([each.logprobs for each in self.scores])

    @cached_property
    def radii(self) -> Floats:
        """How far the true value of each may be."""
        return np.concatenate([each.radii for each in self.scores])

    @cached_property
    def ranks(self) -> Ids:
        """The place of each token among all."""
        return np.concatenate([each.ranks for each in self.scores])

    @cached_property
    def best(self) -> Ids:
        """The likeliest token at each place."""
        return np.concatenate([each.best for each in self.scores])

    @cached_property
    def best_proven(self) -> Truths:
        """Whether the likeliest token is proven."""
        return np.concatenate([each.best_proven for each in self.scores])

    @cached_property
    def margins(self) -> Floats:
        """The largest logit less the second largest, at each place."""
        return np.concatenate([each.margins for each in self.scores])

    @cached_property
    def margin_radii(self) -> Floats:
        """How far the true margin may be."""
        return np.concatenate([each.margin_radii for each in self.scores])

    @cached_property
    def entropies(self) -> Floats:
        """The entropy at each place."""
        return np.concatenate([each.entropies for each in self.scores])


@dataclass(frozen=True)
class Engine:
    """What an engine says of the same tokens; not a number where it says nothing."""

    name: str
    logprobs: Floats
    best: Ids  # the engine's likeliest token, -1 where it is not known
    findings: tuple[str, ...] = ()  # what is remarkable about its log, in sentences
    in_doubt: bool = False  # whether its numbers may be something else than natural logarithms

    @cached_property
    def logged(self) -> Truths:
        """The tokens that the engine gives a finite log-probability for."""
        return np.isfinite(self.logprobs)

    @property
    def impossible(self) -> int:
        """How many tokens the engine calls impossible: -∞."""
        return int(np.isneginf(self.logprobs).sum())


def own_run(format: str, tokens: Tokens) -> Engine:
    """byhand's own float run as an engine."""
    return Engine(format, tokens.logprobs, tokens.best)


def joined(parts: Sequence[Floats]) -> Floats:
    """Arrays one after another; none gives an empty one."""
    return np.concatenate(parts) if parts else np.empty(0)

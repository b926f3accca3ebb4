"""Fits: how a logged text lies on a sample, and what it then says of the scored tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from byhand.scoring.logs.log import Floats, LoggedText
from byhand.scoring.samples import Sample


@dataclass(frozen=True)
class Fit:
    """How a logged text lies on a sample: token i of the log is token i + offset of the sample."""

    offset: int
    common: int  # how many tokens of the log are the sample's, from its first one on
    text: LoggedText
    sample: Sample
    number: int  # of the sample

    @property
    def complete(self) -> bool:
        """Whether all tokens of the log are the sample's."""
        return self.common == len(self.text) and self.offset >= 0

    @property
    def agreed(self) -> int:
        """How many tokens were compared and are the same."""
        return self.common - max(0, -self.offset)

    @property
    def quality(self) -> tuple[bool, int]:
        """What makes one fit better than another."""
        return self.complete, self.agreed


def values_of(fit: Fit) -> Floats:
    """The values of the scored tokens, as far as the tokens are the same."""
    found = np.full(len(fit.sample.scored), np.nan)
    for place in range(fit.sample.first, len(fit.sample.ids)):
        within = place - fit.offset
        if 0 <= within < min(fit.common, len(fit.text)):
            found[place - fit.sample.first] = fit.text.logprobs[within]
    return found


def best_of(fit: Fit) -> Iterator[int]:
    """The token that the engine holds for the likeliest before each scored one, or -1."""
    text, sample = fit.text, fit.sample
    for place in range(sample.first, len(sample.ids)):
        within = place - fit.offset
        top = None
        if text.top is not None and 0 <= within < min(fit.common, len(text)):
            top = text.top[within]
        if not top:
            yield -1
            continue
        token, value = max(top.items(), key=lambda each: each[1])
        if text.logprobs[within] >= value:  # the token of the text itself
            yield sample.ids[place]
        else:
            yield token if isinstance(token, int) else -1

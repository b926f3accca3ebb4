"""Logs: the texts that an engine logged, with the log-probability it gave for each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from byhand.scoring.logs.findings import Finding

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]
Token = int | str  # an id, or a piece of text
Top = Mapping[Token, float]  # the likeliest tokens at a place


@dataclass(frozen=True, eq=False)
class LoggedText:
    """One text of a log, in natural logarithms, as the engine gave them.

    `ids` and `pieces` are the tokens that the log shows; one of the two may be missing.  There is
    a number for each of those tokens.  Where `given` is false, the log has no value at that place.
    """

    name: str
    where: str  # for messages: the file, and the place in it
    logprobs: Floats  # one a token
    given: Truths
    ids: tuple[int, ...] | None = None
    pieces: tuple[str | bytes, ...] | None = None
    text: str | None = None
    whole: bool = True  # whether the tokens begin with the first one of the text
    prompt_length: int | None = None  # how many of the tokens are the prompt, where the log says so
    top: tuple[Top | None, ...] | None = None
    findings: tuple[Finding, ...] = ()

    def __len__(self) -> int:
        return len(self.logprobs)

    @property
    def first(self) -> int:
        """The place of the first token that the log has a number for."""
        places = np.flatnonzero(self.given)
        return int(places[0]) if len(places) else len(self)

    def found(self, *findings: Finding) -> LoggedText:
        """The same text with more findings."""
        return replace(self, findings=(*self.findings, *findings))


@dataclass(frozen=True)
class Log:
    """What one engine logged.  `engine` is the name it has in a comparison."""

    engine: str
    source: str  # the file
    form: str  # "OpenAI completions", "vLLM", …
    texts: tuple[LoggedText, ...]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def count(self) -> int:
        """How many log-probabilities there are."""
        return int(sum(np.count_nonzero(text.given) for text in self.texts))


def logged_text(
    name: str,
    where: str,
    values: Sequence[float | None],
    *,
    ids: Sequence[int] | None = None,
    pieces: Sequence[str | bytes] | None = None,
    text: str | None = None,
    whole: bool = True,
    prompt_length: int | None = None,
    top: Sequence[Top | None] | None = None,
    findings: Sequence[Finding] = (),
) -> LoggedText:
    """A text of values, where None says that the log has none.

    The first token of a text has nothing before it, which tables with gaps write as NaN.
    """
    if whole and values and values[0] != values[0]:
        values = [None, *values[1:]]
    given = np.array([value is not None for value in values], dtype=np.bool_)
    numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return LoggedText(
        name,
        where,
        numbers,
        given,
        None if ids is None else tuple(ids),
        None if pieces is None else tuple(pieces),
        text,
        whole,
        prompt_length,
        None if top is None else tuple(top),
        tuple(findings),
    )

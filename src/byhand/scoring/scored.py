"""What `byhand score` found: the true values, byhand's own float runs, and each engine's errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from byhand import display
from byhand.display import Shown, one_line
from byhand.scoring.likeness import LIKE, Likeness, likeness
from byhand.scoring.scores import Floats, Scores
from byhand.scoring.standings import (
    Standings,
    standings,
    standings_of_engine,
)
from byhand.scoring.summaries import Summary, summary, worst
from byhand.scoring.tokens import Engine, Tokens, own_run

if TYPE_CHECKING:
    from byhand.model import Model

WORST = 10  # tokens that are listed
USUAL = "bfloat16"  # the format of most engines


@dataclass(frozen=True)
class ScoredToken:
    """One scored token with everything that is known of it."""

    place: int  # among all scored tokens
    text: str  # the name of its text
    position: int
    id: int
    token: str
    logprob: float
    radius: float
    rank: int
    best: int
    margin: float
    entropy: float
    standing: str  # under the rounding of the format; "" where none was asked for
    errors: dict[str, float]  # by engine: its log-probability less the true one


@dataclass(frozen=True)
class Against:
    """One engine beside the truth."""

    engine: Engine
    errors: Floats  # its log-probability less the true one, for every token
    summary: Summary
    likenesses: tuple[Likeness, ...]  # to each format that byhand ran
    standings: Standings | None

    @property
    def name(self) -> str:
        """What the engine is called."""
        return self.engine.name

    @cached_property
    def alike(self) -> tuple[Likeness, ...]:
        """The formats whose rounding the errors look like."""
        return tuple(one for one in self.likenesses if one.kind == LIKE)


@dataclass(frozen=True)
class Scored(Shown):
    """The scores of texts, with the errors of engines.  `scores` are those of each text.

    >>> import byhand
    >>> scored = byhand.score("tiny", "a b", digits=6)
    >>> scored, [round(float(x), 6) for x in scored.truth.logprobs]
    (<Scored tiny: 1 token of 1 text, digits 6>, [-2.407606])
    """

    model: Model
    called: str  # what the reader called the model
    truth: Tokens
    runs: dict[str, Tokens]  # byhand's own float runs, by format
    wanted: str | None  # the format whose rounding the standings are about, where one was named
    engines: tuple[Engine, ...]
    eps: float  # how far from 1 a ratio is clipped

    @cached_property
    def format(self) -> str | None:
        """The format whose rounding the standings are about: the one named, else the one that the
        errors of the first engine look like, else bfloat16; None where byhand ran none."""
        if self.wanted is not None:
            return self.wanted
        alike = [one.format for own in self._likenesses.values() for one in own if one.kind == LIKE]
        found = next(iter(alike), USUAL)
        return found if found in self.runs else None

    @property
    def digits(self) -> int | None:
        """How many decimals of each log-probability were to be proven; None of floats."""
        kind, _blank, count = self.truth.numbers.partition(" ")
        return int(count) if kind == "digits" else None

    @property
    def answered(self) -> bool:
        """Whether everything asked for is proven: the decimals, and the likeliest tokens."""
        if self.digits is None:
            return True
        near = bool((self.truth.radii <= 10.0**-self.digits).all())
        return near and bool(self.truth.best_proven.all())

    @property
    def scores(self) -> tuple[Scores, ...]:
        """The scores of each text."""
        return self.truth.scores

    @cached_property
    def standings(self) -> Standings | None:
        """The standing of every token under the rounding of the format."""
        return None if self.format is None else self._under(self.format)

    def _under(self, format: str) -> Standings:
        return standings(self.truth, self.runs[format], format)

    @cached_property
    def own(self) -> Summary | None:
        """The errors of byhand's own run of the format."""
        return None if self.format is None else self._summary(own_run(self.format, self.run))

    @property
    def run(self) -> Tokens:
        """byhand's own run of the format."""
        assert self.format is not None
        return self.runs[self.format]

    def _summary(self, engine: Engine) -> Summary:
        truth = self.truth
        radii = np.where(np.isfinite(truth.radii), truth.radii, 0.0)
        return summary(engine.logprobs, truth.logprobs, radii, self.eps, engine.impossible)

    @cached_property
    def against(self) -> tuple[Against, ...]:
        """Each engine beside the truth."""
        return tuple(map(self._against, self.engines))

    @cached_property
    def _likenesses(self) -> dict[str, tuple[Likeness, ...]]:
        """What the errors of each engine look like, beside each of byhand's own runs."""
        return {engine.name: tuple(self._likeness(engine)) for engine in self.engines}

    def _likeness(self, engine: Engine) -> Iterator[Likeness]:
        truth, errors = self.truth, self.errors(engine)
        for format, run in self.runs.items():
            own = self.errors(own_run(format, run))
            yield likeness(format, errors, own, truth.logprobs, truth.text)

    def _against(self, engine: Engine) -> Against:
        like = self._likenesses[engine.name]
        format = next((one.format for one in like if one.kind == LIKE), self.format)
        under = None if format is None else self._under(format)
        own = (
            None
            if under is None
            else standings_of_engine(self.truth, engine, under, len(self.model.outputs))
        )
        return Against(engine, self.errors(engine), self._summary(engine), like, own)

    def errors(self, engine: Engine) -> Floats:
        """The engine's log-probabilities less the true ones; not a number where none is logged."""
        with np.errstate(invalid="ignore"):
            found = engine.logprobs - self.truth.logprobs
        return np.where(np.isfinite(found), found, np.nan)

    @cached_property
    def pairs(self) -> tuple[tuple[Engine, Engine, Summary], ...]:
        """Every two engines: the errors of the first beside the second."""
        nothing = np.zeros(len(self.truth))
        return tuple(
            (one, other, summary(one.logprobs, other.logprobs, nothing, self.eps, one.impossible))
            for one, other in combinations(self.engines, 2)
        )

    def worst(self, against: Against, count: int = WORST) -> tuple[ScoredToken, ...]:
        """The tokens with the engine's largest errors."""
        return tuple(self.token(int(place)) for place in worst(against.errors, count))

    def token(self, place: int) -> ScoredToken:
        """One scored token."""
        truth, under = self.truth, self.standings
        id = int(truth.ids[place])
        return ScoredToken(
            place,
            truth.samples[truth.text[place]].name,
            int(truth.position[place]),
            id,
            self.model.vocabulary.tokens[id],
            float(truth.logprobs[place]),
            float(truth.radii[place]),
            int(truth.ranks[place]),
            int(truth.best[place]),
            float(truth.margins[place]),
            float(truth.entropies[place]),
            "" if under is None else under.of(place),
            {each.name: float(each.errors[place]) for each in self.against},
        )

    def tokens(self) -> Iterator[ScoredToken]:
        """Every scored token."""
        return map(self.token, range(len(self.truth)))

    def save(self, folder: str | Path) -> None:
        """Writes the report as a page, and all data as JSON, into a folder."""
        display.save(self, folder)

    def __repr__(self) -> str:
        texts, tokens = len(self.scores), len(self.truth)
        told = f"{_count(tokens, 'token')} of {_count(texts, 'text')}, {self.truth.numbers}"
        if self.engines:
            told += ", beside " + ", ".join(one_line(engine.name) for engine in self.engines)
        return f"<Scored {one_line(self.model.name)}: {told}>"


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"

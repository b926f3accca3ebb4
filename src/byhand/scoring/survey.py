"""A survey: how often the rounding of each format says another token than the true one, and why.

A text that begins as an earlier one did repeats its numbers: tokens behind the same tokens count
once.  An error is what a run says less the true value: of ln p in nats, of the lead of the truly
likeliest token in logits.  Errors of a layer are sizes of vectors (their 2-norms), relative to the
true one: of the residual stream, and of the logits read off it, less their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from byhand import display
from byhand.display import Shown, one_line
from byhand.scoring.flips import (
    MARGINS,
    Bin,
    Flips,
    bins,
    doublings,
    foretold,
    median,
    quantiles,
)
from byhand.scoring.scores import Floats
from byhand.scoring.standings import SPREADS, TO_DEVIATION, changes_of_lead
from byhand.scoring.tokens import Tokens, Truths

if TYPE_CHECKING:
    from byhand.model import Model

SMALL = "float8_e4m3"  # the format of weights that are kept in 8 bits
QUANTILES = (0.5, 0.9, 0.99, 1.0)  # of the sizes of errors
HIGH = 0.95  # the quantile that is told of a layer beside the median


@dataclass(frozen=True)
class Run:
    """One format's run of all texts; its errors of the layers, a row for each scored token."""

    format: str
    tokens: Tokens
    streams: Floats  # (token, layer)
    read_off: Floats  # (token, layer): errors of the logits read off there


@dataclass(frozen=True)
class Layer:
    """The relative errors at one place of the residual stream."""

    address: str
    stream: float  # the median over the tokens
    stream_high: float  # the quantile HIGH
    logits: float  # of the logits read off there
    logits_high: float


@dataclass(frozen=True)
class Effects:
    """What the rounding of one format does."""

    format: str
    flips: Flips
    equal: int  # of the flips: where the run's two largest logits are equal
    failed: int  # tokens at which the run has no finite answer
    errors: tuple[float, ...]  # sizes of the errors of ln p, at QUANTILES
    changes: tuple[float, ...]  # sizes of the changes of the lead, at QUANTILES
    deviation: float  # the robust standard deviation of these changes
    foretold: float  # how many flips normal changes of this deviation would make
    near: int  # tokens whose margin is at most SPREADS deviations
    by_margin: tuple[Bin, ...]
    by_position: tuple[Bin, ...]
    layers: tuple[Layer, ...]

    @property
    def ratio(self) -> float:
        """The flips found over those foretold."""
        return self.flips.count / self.foretold if self.foretold else float("nan")


@dataclass(frozen=True)
class Survey(Shown):
    """A corpus worked out truly and in several formats.

    >>> import byhand
    >>> survey = byhand.survey("minigpt", "<en> yesterday she climb -ed", formats=["float32"])
    >>> survey, survey["float32"].flips
    (<Survey minigpt: 4 tokens of 1 text, digits 6, beside float32>, Flips(count=0, of=4))
    """

    model: Model
    called: str  # what the reader called the model
    truth: Tokens
    runs: tuple[Run, ...]
    places: tuple[str, ...]  # where the residual stream is looked at
    doubt: float = field(default=0.0)  # the largest relative radius of a true layer

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats, in the order asked for."""
        return tuple(run.format for run in self.runs)

    @property
    def proven(self) -> bool:
        """Whether the true values are proven: floats prove nothing."""
        return self.truth.proven

    @property
    def enclosed(self) -> bool:
        """Whether the true values are enclosures, rather than a run in floats."""
        return self.truth.numbers.startswith("digits")

    @property
    def answered(self) -> bool:
        """Whether the decimals asked for and each likeliest token are proven; true of floats."""
        if not self.enclosed:
            return True
        near = self.truth.radii <= 10.0 ** -int(self.truth.numbers.split()[1])
        return bool(near.all() and self.truth.best_proven.all())

    @property
    def blurred(self) -> tuple[str, ...]:
        """The formats whose usual error of ln p is less than ten times the largest true radius."""
        worst = float(self.truth.radii.max()) if self.enclosed else 0.0
        return tuple(each.format for each in self.effects if 0 < each.errors[0] < 10 * worst)

    @cached_property
    def fresh(self) -> Truths:
        """Where the tokens before are others than at every earlier place."""
        nodes: dict[tuple[int, int], int] = {}  # of the tree of all beginnings
        found: list[bool] = []
        ends: set[int] = set()
        for sample in self.truth.samples:
            node = 0
            for place, id in enumerate(sample.ids[:-1], 1):
                node = nodes.setdefault((node, id), len(nodes) + 1)
                if place >= sample.first:
                    found.append(node not in ends)
                    ends.add(node)
        return np.asarray(found, dtype=np.bool_)

    @cached_property
    def tied(self) -> Truths:
        """Where the likeliest tokens tie: proven where the true values are enclosures."""
        same: Truths = (self.truth.margins == 0) & self.fresh
        if self.enclosed:
            same &= self.truth.best_proven & (self.truth.margin_radii == 0)
        return same

    @cached_property
    def open(self) -> Truths:
        """Where the likeliest token is not proven."""
        unknown: Truths = self.fresh & ~self.truth.best_proven
        return unknown if self.enclosed else np.zeros_like(unknown)

    @cached_property
    def judged(self) -> Truths:
        """Where there is one likeliest token, it is known, and no earlier place is the same."""
        found: Truths = self.fresh & ~self.tied & ~self.open
        return found

    @cached_property
    def margins(self) -> tuple[tuple[float, float, int], ...]:
        """How many margins lie from each bound to below the next one."""
        known = self.truth.margins[self.judged]
        pairs = pairwise(MARGINS)
        return tuple(
            (low, high, int(((known >= low) & (known < high)).sum())) for low, high in pairs
        )

    @cached_property
    def effects(self) -> tuple[Effects, ...]:
        """What each format does."""
        return tuple(map(self._effects, self.runs))

    def __getitem__(self, format: str) -> Effects:
        """What one format does."""
        return self.effects[self.formats.index(format)]

    def flipped(self, run: Run) -> Truths:
        """Where a run says another token than the true one."""
        found: Truths = self._compared(run) & (run.tokens.best != self.truth.best)
        return found

    def errors(self, run: Run) -> Floats:
        """The errors of ln p; not a number where one is not finite."""
        with np.errstate(invalid="ignore"):
            found = run.tokens.logprobs - self.truth.logprobs
        return np.where(np.isfinite(found), found, np.nan)

    def changes(self, run: Run) -> Floats:
        """The changes of the lead; not a number where there is no one likeliest token."""
        return np.where(self.judged, changes_of_lead(self.truth, run.tokens), np.nan)

    def _compared(self, run: Run) -> Truths:
        found: Truths = self.judged & ~_failed(run)
        return found

    def _effects(self, run: Run) -> Effects:
        truth, compared, flipped = self.truth, self._compared(run), self.flipped(run)
        errors, changes = self.errors(run), self.changes(run)
        deviation = TO_DEVIATION * median(np.abs(changes))
        margins = np.where(compared, truth.margins, np.nan)
        positions = np.where(compared, truth.position, np.nan)
        ends = doublings(int(truth.position.max()))
        with np.errstate(invalid="ignore"):
            near = int((margins <= SPREADS * deviation).sum())
        return Effects(
            run.format,
            Flips(int(flipped.sum()), int(compared.sum())),
            int((flipped & (run.tokens.margins == 0)).sum()),
            int(_failed(run).sum()),
            quantiles(np.abs(errors), QUANTILES),
            quantiles(np.abs(changes), QUANTILES),
            deviation,
            foretold(margins[compared], deviation),
            near,
            bins(margins, MARGINS, flipped, compared, errors, changes),
            bins(positions, ends, flipped, compared, errors, changes),
            tuple(self._layer(run, place) for place in range(len(self.places))),
        )

    def _layer(self, run: Run, place: int) -> Layer:
        stream, logits = run.streams[:, place], run.read_off[:, place]
        return Layer(
            self.places[place], *quantiles(stream, (0.5, HIGH)), *quantiles(logits, (0.5, HIGH))
        )

    def save(self, folder: str | Path) -> None:
        """Writes the survey as a page, and its data as JSON, into a folder."""
        display.save(self, folder)

    def __repr__(self) -> str:
        tokens, texts = len(self.truth), len(self.truth.scores)
        told = f"{_count(tokens, 'token')} of {_count(texts, 'text')}, {self.truth.numbers}"
        beside = ", ".join(self.formats)
        return f"<Survey {one_line(self.model.name)}: {told}, beside {beside}>"


def _failed(run: Run) -> Truths:
    """Where the run has no finite answer.  A vocabulary of one word has no rival: ∞ is fine."""
    found: Truths = np.isnan(run.tokens.logprobs) | np.isnan(run.tokens.margins)
    return found


def relative_sizes(found: Floats, true: Floats) -> Floats:
    """The size of each row's error over that of the true row; 0 where both are 0."""
    with np.errstate(all="ignore"):
        off = np.linalg.norm(found - true, axis=-1)
        share = off / np.linalg.norm(true, axis=-1)
    return np.where(off == 0, 0.0, np.where(np.isnan(share), np.inf, share))


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"

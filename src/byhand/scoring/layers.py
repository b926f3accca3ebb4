"""The residual stream after each layer of a scored text, and the logits read off it, in floats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.explaining.lens import end_at, tail_of
from byhand.numbers.enclosed.enclosure import Enclosing
from byhand.plan import Plan
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer
from byhand.scoring.scores import Floats, Scores
from byhand.scoring.survey import relative_sizes
from byhand.spec import ModelSpec
from byhand.worked import Worked

LOGITS = "logits"


@dataclass(frozen=True)
class Layers:
    """One text's rows before each scored token, layer by layer."""

    streams: tuple[Floats, ...]  # (row, d) each
    logits: tuple[Floats, ...]  # (row, vocabulary) each, less the mean of the row
    doubt: float  # the largest radius of a row over its size; 0 of floats

    def errors(self, truth: Layers) -> tuple[Floats, Floats]:
        """The relative sizes of the errors, (row, layer): of the stream, and of the logits."""
        return (
            np.stack(list(map(relative_sizes, self.streams, truth.streams)), axis=-1),
            np.stack(list(map(relative_sizes, self.logits, truth.logits)), axis=-1),
        )


def places_of(spec: ModelSpec) -> tuple[str, ...]:
    """Where the stream is looked at: before the first block and after each."""
    return tuple(f"stream.{layer}" for layer in range(len(spec.blocks) + 1))


class Reader:
    """Scores texts and looks at the stream after each layer; tails of the plan are kept."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self.places = places_of(scorer.model.spec)
        self._tails: dict[int, Plan] = {}

    def read(self, sample: Sample) -> tuple[Scores, Layers]:
        """The scores of a text and its layers."""
        scores, trace = self.scorer.worked_out(sample, self.places)
        rows = list(range(sample.first - 1, len(sample.ids) - 1))
        if len(rows) not in self._tails:
            self._tails[len(rows)] = tail_of(self.scorer.model.spec, len(rows), (LOGITS,))
        tail = self._tails[len(rows)]
        streams, logits, doubts = [], [], []
        for place in self.places:
            stream = trace[place]
            ended = end_at(trace.numbers, stream, rows, tail, self.scorer.weights)[LOGITS]
            (own, off), (read, away) = _rows(stream, rows), _rows(ended, None)
            streams.append(own)
            logits.append(read - read.mean(axis=-1, keepdims=True))
            doubts += [*_shares(off, own), *_shares(away, logits[-1])]
        return scores, Layers(tuple(streams), tuple(logits), max(doubts, default=0.0))


def _rows(worked: Worked, rows: list[int] | None) -> tuple[Floats, Floats]:
    """The rows of a step as floats, and bounds of how far they are from the enclosed numbers."""
    numbers: Any = worked.numbers
    if isinstance(numbers, Enclosing):
        middles, radii = numbers.in_floats(worked.value)
    else:
        middles = np.asarray(worked, dtype=np.float64)
        radii = np.zeros_like(middles)
    return (middles, radii) if rows is None else (middles[rows], radii[rows])


def _shares(radii: Floats, rows: Floats) -> Iterator[float]:
    """The size of each row's radii over that of the row."""
    yield from relative_sizes(rows + radii, rows).tolist()

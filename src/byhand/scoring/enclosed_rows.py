"""Scores from enclosures: what is proven of each token, and how many bits are missing.

A rank is 1 and the number of tokens that are certainly likelier: the lowest that the enclosures
allow.  Entropies are worked out by the number system itself: ln Σ e^x less Σ p·x.
"""

from __future__ import annotations

from math import inf, log2
from typing import Any

import numpy as np

from byhand.missing_bits import distance_of_foremost
from byhand.numbers.base import Prediction, nearest_float
from byhand.numbers.enclosed.enclosure import Enclosing, Enclosure, Logs
from byhand.numbers.standing import ROUNDED, ahead, enclosed_entropies
from byhand.proving.digits import same_logits
from byhand.scoring.samples import Sample
from byhand.scoring.scores import Floats, Scores
from byhand.tracing import Trace

LOG2_OF_10 = log2(10)


def open_bits(trace: Trace, sample: Sample, digits: int) -> tuple[float, bool]:
    """How many bits the log-probabilities lack to lie within half a unit of so many decimals, and
    whether the likeliest token of a position is open."""
    worked = trace.steps["logprobs"]
    assert isinstance(worked.numbers, Enclosing)
    _middles, radii = worked.numbers.magnitudes(worked.value)
    missing = float(radii[sample.first - 1 :].max()) + 1 + digits * LOG2_OF_10
    open_ = any(
        not found.proven and not _tied(trace, found)
        for found in trace.steps["next"].value[sample.first - 1 :]
    )
    return missing, open_


def _tied(trace: Trace, found: Prediction) -> bool:
    """Whether all candidates have the same logit whatever the stream is."""
    candidates = found.candidates
    return len(candidates) > 1 and same_logits(
        trace.plan["logits"], trace.model.weights, candidates
    )


def _floats(trace: Trace, address: str) -> tuple[Logs, Logs]:
    numbers = trace.steps[address].numbers
    assert isinstance(numbers, Enclosing)
    return numbers.in_floats(trace.steps[address].value)


def enclosed_scores(trace: Trace, sample: Sample, name: str) -> Scores:
    """The scores of a sample whose logits, log-probabilities and next tokens are enclosed."""
    begin = sample.first - 1
    logprobs, radii = (part[begin:] for part in _floats(trace, "logprobs"))
    logits, off = (part[begin:] for part in _floats(trace, "logits"))
    best, proven, margins, margin_radii = _foremost(trace, begin)
    entropies, entropy_radii = _entropies(trace, begin)
    ids = np.asarray(sample.scored, dtype=np.int64)
    certain, _perhaps = ahead(logits, off, ids)
    ranks = 1 + certain.sum(axis=-1)
    return Scores(
        sample, name, logprobs, radii, ranks, best, proven,
        margins, margin_radii, entropies, entropy_radii,
    )  # fmt: skip


def _foremost(trace: Trace, begin: int) -> tuple[Any, Any, Floats, Floats]:
    """The likeliest token of each position, whether it is proven, and its lead with a radius."""
    found = trace.steps["next"].value
    count = len(found) - begin
    best, proven = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
    margins, radii = np.empty((2, count))
    for row in range(count):
        here = found[begin + row]
        tied = not here.proven and _tied(trace, here)
        best[row] = here.id if here.id is not None else min(here.candidates)
        proven[row] = here.proven or tied
        if tied:
            margin: Enclosure | None = Enclosure(0, 0)  # type: ignore[arg-type]
        elif here.proven:
            margin = here.margin
        else:
            margin = distance_of_foremost(trace.steps, begin + row, here.candidates)
        margins[row], radii[row] = _in_floats(margin)
    return best, proven, margins, radii


def _in_floats(number: Enclosure | None) -> tuple[float, float]:
    """A float near an enclosure, and a bound of its distance; (∞, 0) where there is no rival."""
    if number is None:
        return inf, 0.0
    if number.rad == inf:
        return 0.0, inf
    near = nearest_float(number.mid)
    off = float(abs(number.mid - type(number.mid)(near)) + number.rad)
    return near, off * ROUNDED


def _entropies(trace: Trace, begin: int) -> tuple[Floats, Floats]:
    """The entropy of each row from `begin` on, with a radius."""
    logits = trace.steps["logits"]
    numbers = logits.numbers
    assert isinstance(numbers, Enclosing)
    rows, width = logits.step.shape
    x = numbers.take_rows(logits.value, list(range(begin, rows))) if begin else logits.value
    return enclosed_entropies(numbers, x, (rows - begin, width))

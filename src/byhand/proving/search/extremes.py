"""Extremes: numbers within their ranges for which a text is most likely to fail.

A text may stay open because weights are known only within ranges, or because embeddings may be
moved.  Then it is tried with every such number at the end that lowers the lead.  If the claim fails
there, that is a counterexample with numbers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.model import Model
from byhand.numbers.base import Printed, Within
from byhand.proving.search.hulls import Embedding
from byhand.proving.search.questions import Bounded, Question
from byhand.proving.search.region_passes import Weighed, bounded, leads
from byhand.weights import Tensor, Weights

INSIDE = Fraction(1023, 1024)  # of a radius: how an end is printed or rounded may be disputed
EMBEDDINGS = "embeddings"


@dataclass(frozen=True, slots=True)
class Extreme:
    """A model with weights at ends of their ranges, and the moved embeddings of a text."""

    model: Model
    rows: npt.NDArray[Any] | None
    chosen: Mapping[str, Fraction]  # the numbers at ends of their ranges, by address


def ranged(model: Model) -> bool:
    """Whether some weights are known only within ranges."""
    return any(
        isinstance(entry, Printed | Within)
        for tensor in model.weights.values()
        if not tensor.floats
        for entry in tensor.data.flat
    )


def extreme(weighed: Weighed, tokens: Sequence[int], question: Question) -> Extreme:
    """The numbers that lower the lead of one text, as far as it is linear in them."""
    embedded = weighed.embedded(np.array([tokens]))
    if isinstance(question, Bounded):
        found = bounded(weighed.step(embedded, question.address), [], [question])
    else:
        found = leads(weighed.last(embedded), [], [question])
    slopes = found.terms[1:, 0]
    model, chosen = _concrete(weighed, slopes)
    rows = None
    if weighed.moves(len(tokens)):
        rows = _moved(weighed, Embedding(model), tokens, slopes)
        chosen |= {_address(EMBEDDINGS, place): rows[place] for place in np.ndindex(rows.shape)}
    return Extreme(model, rows, chosen)


def _concrete(weighed: Weighed, slopes: Any) -> tuple[Model, dict[str, Fraction]]:
    """The model with each weight at the end where the lead is lower.  Slopes of weights that share
    their parameters add up; a weight without a letter stays in the middle."""
    weights = weighed.model.weights
    steep: dict[str, Any] = {}
    for name, tensor in weights.items():
        form = weighed.admitted(name)
        if not tensor.floats and form.shape == tensor.shape:  # not a corner of a large table
            own = form.terms[1:, 0] != 0  # (letter, …): which letter is whose
            slope = np.tensordot(slopes[: len(own)], own[: len(slopes)], 1)
            whose = tensor.same_as or name
            if slope.shape != weights[whose].shape or not _straight(weights, tensor):
                slope = slope.T
            steep[whose] = steep.get(whose, 0.0) + slope
    tensors, chosen = dict(weights), dict[str, Fraction]()
    for name, tensor in weights.items():
        whose = tensor.same_as or name
        if whose in steep:
            down = -np.sign(steep[whose])
            down = down if _straight(weights, tensor) else down.T
            data = np.array(tensor.data)
            for place in np.ndindex(data.shape):
                entry = data[place]
                if isinstance(entry, Printed | Within):
                    at = entry.value + int(down[place]) * INSIDE * entry.radius
                    data[place] = chosen[_address(name, place)] = at
            tensors[name] = Tensor(name, data, tensor.same_as)
    return replace(weighed.model, weights=Weights(tensors)), chosen


def _straight(weights: Weights, tensor: Tensor) -> bool:
    """Whether a tensor is what it refers to, and not its transpose."""
    return tensor.same_as is None or np.array_equal(tensor.data, weights[tensor.same_as].data)


def _address(name: str, place: tuple[int, ...]) -> str:
    return f"{name}[{','.join(map(str, place))}]"


def _moved(weighed: Weighed, embedding: Embedding, tokens: Sequence[int], slopes: Any) -> Any:
    """The embeddings of a text, each entry moved to where the lead is lower."""
    first, width = weighed.numbers.weight_letters, weighed.model.spec.d_model
    rows = np.empty((len(tokens), width), dtype=object)
    for position, token in enumerate(tokens):
        middle, unsure = embedding.row(token)
        for column in range(width):
            letter = first + position * width + column
            down = -int(np.sign(slopes[letter])) if letter < len(slopes) else 0
            reach = weighed.embedding.moved - unsure[column]  # within, whatever the entry is
            rows[position, column] = middle[column] + down * max(reach, Fraction(0))
    return rows

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
from byhand.numbers.forms import Form
from byhand.proving.hulls import Embedding
from byhand.proving.questions import Bounded, Question
from byhand.proving.region_passes import Weighed, bounded, leads
from byhand.weights import Tensor, Weights

INSIDE = Fraction(999, 1000)  # of half a unit: how the end itself is printed may be disputed
EMBEDDINGS = "embeddings"


@dataclass(frozen=True, slots=True)
class Extreme:
    """A model with weights at ends of their ranges, and the moved embeddings of a text."""

    model: Model
    rows: npt.NDArray[Any] | None
    changed: Mapping[str, Any]  # the numbers that were chosen, by weight


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
    signs = -np.sign(found.terms[:, 0])
    model, changed = _concrete(weighed, signs)
    rows = None
    if weighed.moves(len(tokens)):
        rows = _moved(weighed, Embedding(model), tokens, signs)
        changed[EMBEDDINGS] = rows
    return Extreme(model, rows, changed)


def _concrete(weighed: Weighed, signs: Any) -> tuple[Model, dict[str, Any]]:
    """The model with each weight at the end that a sign names; those without a letter stay in the
    middle.  Weights that refer to others follow them."""
    made: dict[str, Tensor] = {}
    changed: dict[str, Any] = {}
    model = weighed.model
    for name in sorted(model.weights, key=lambda one: model.weights[one].same_as is not None):
        tensor = model.weights[name]
        source = made.get(str(tensor.same_as))
        if source is not None:
            straight = np.array_equal(tensor.data, model.weights[source.name].data)
            made[name] = Tensor(name, source.data if straight else source.data.T, source.name)
        elif tensor.floats or not any(isinstance(x, Printed | Within) for x in tensor.data.flat):
            made[name] = tensor
        else:
            data = _at_ends(tensor.data, weighed.admitted(name), signs)
            made[name], changed[name] = Tensor(name, data), data
    weights = Weights({name: made[name] for name in model.weights})
    return replace(model, weights=weights), changed


def _at_ends(data: Any, form: Form, signs: Any) -> Any:
    found = data.copy()
    for place in np.ndindex(data.shape):
        entry = data[place]
        if isinstance(entry, Printed | Within):
            (letters,) = np.nonzero(form.terms[(slice(1, None), 0, *place)])
            sign = int(signs[1 + letters[0]]) if len(letters) and letters[0] + 1 < len(signs) else 0
            reach = entry.radius * (INSIDE if isinstance(entry, Printed) else 1)
            found[place] = entry.value + sign * reach
    return found


def _moved(weighed: Weighed, embedding: Embedding, tokens: Sequence[int], signs: Any) -> Any:
    """The embeddings of a text, each entry moved as a sign says."""
    first, width = 1 + weighed.numbers.weight_letters, weighed.model.spec.d_model
    rows = np.empty((len(tokens), width), dtype=object)
    for position, token in enumerate(tokens):
        middle, unsure = embedding.row(token)
        for column in range(width):
            letter = first + position * width + column
            sign = int(signs[letter]) if letter < len(signs) else 0
            reach = weighed.embedding.moved - unsure[column]  # within, whatever the entry is
            rows[position, column] = middle[column] + sign * max(reach, Fraction(0))
    return rows

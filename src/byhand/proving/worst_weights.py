"""Worst weights: numbers within their ranges for which a claim about one text fails.

The lead of a text is almost linear in weights that move a little.  So it is lowest near the corner
of their ranges to which its slopes point, and the model with those weights is judged as any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.model import Model
from byhand.numbers.base import Printed, Within
from byhand.proving.domain import Region
from byhand.proving.questions import Question
from byhand.proving.region_passes import RegionPasses
from byhand.weights import Tensor, Weights

INSIDE = Fraction(1023, 1024)  # of a radius: the ends of a range may belong to another number


def worst(
    passes: RegionPasses, text: Region, question: Question
) -> tuple[Model, dict[str, Fraction]]:
    """The model with weights near the corner where the lead of one text is lowest, and those that
    have moved, by address."""
    slopes = passes.work([passes.held(text)], [question]).terms[1:, 0]
    weighed = passes.models[0][0]
    model = weighed.model
    steep: dict[str, Any] = {}  # by tensor; those that share their parameters add up
    for name, tensor in model.weights.items():
        own = weighed.weights[name].terms[1:, 0] != 0  # (letter, …): which letter is whose
        whose = tensor.same_as or name
        steep[whose] = steep.get(whose, 0.0) + np.tensordot(slopes[: len(own)], own, 1)
    tensors: dict[str, Tensor] = {}
    moved: dict[str, Fraction] = {}
    for name, tensor in model.weights.items():
        data = np.array(tensor.data)
        down = np.sign(steep[tensor.same_as or name])
        for place in _ranges(data):
            data[place] = data[place].value - int(down[place]) * INSIDE * data[place].radius
            moved[f"{name}[{','.join(map(str, place))}]"] = data[place]
        tensors[name] = Tensor(name, data, tensor.same_as)
    return replace(model, weights=Weights(tensors)), moved


def _ranges(data: Any) -> Iterator[tuple[int, ...]]:
    if data.dtype == object:
        for place in np.ndindex(*data.shape):
            if isinstance(data[place], Printed | Within):
                yield place

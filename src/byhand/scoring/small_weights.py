"""A model whose matrices are kept as 8-bit floats: weight-only quantisation, as engines do it.

Every matrix that a product in a block reads is kept as float8_e4m3: 4 bits of exponent, 4 of
significand, at most 448.  It has one scale s, the largest size of its entries over 448, rounded to
float32.  An entry w becomes the nearest such float to w/s, of two the even one.  What is read is
that float times s, rounded to float32.  Experts that are stacked in one tensor share its scale.

Embeddings, the unembedding, norms and biases stay as they are.  The result is another model: its
true numbers are not those of the first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byhand import forward
from byhand.checking.suspects.casts import rounded_to
from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.numbers.floats import Floats as FloatNumbers
from byhand.plan import WEIGHT
from byhand.scoring.scores import Floats
from byhand.scoring.survey import SMALL
from byhand.weights import Tensor, Weights

LARGEST = 448.0  # of its numbers
PRODUCTS = ("linear", "expert_linear")
PLACE = "block."


def with_small_weights(model: Model) -> Model:
    """The model with the matrices of its blocks rounded; an InputError where there are none."""
    small = _matrices(model)
    if not small:
        raise InputError(
            _("no weight can be kept as {format}").format(format=SMALL),
            where=model.name,
            expected=_("a matrix in a block"),
            found=_("none"),
        )
    wide = FloatNumbers("float64")
    tensors = dict(model.weights)
    made: dict[str, Any] = {}
    for name in small:
        own = tensors[name].same_as or name
        if own not in made:
            made[own] = rounded(np.asarray(wide.admit(tensors[name].data), dtype=np.float64))
        tensors[name] = Tensor(name, made[own], tensors[name].same_as)
    return replace(model, weights=Weights(tensors))


def _matrices(model: Model) -> list[str]:
    """The weights that are factors of products in blocks, by name."""
    found = [
        name.removeprefix(WEIGHT)
        for step in forward.plan(model.spec, 1)
        if step.op in PRODUCTS and step.address.startswith(PLACE)
        for role, name in step.inputs.items()
        if role == "weight" and name.startswith(WEIGHT)
    ]
    return list(dict.fromkeys(found))


def rounded(matrix: Floats) -> NDArray[np.float32]:
    """The matrix as its 8-bit floats say it, in float32.

    >>> rounded(np.array([[448.0, 17.0], [-1.0, 0.3]])).tolist()
    [[448.0, 16.0], [-1.0, 0.3125]]
    """
    scale = np.float64(np.float32(np.abs(matrix).max() / LARGEST))
    if not scale:
        return matrix.astype(np.float32)
    kept = np.asarray(rounded_to(SMALL, matrix / scale), dtype=np.float64)
    return (kept * scale).astype(np.float32)

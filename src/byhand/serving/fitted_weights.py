"""The weights of a changed architecture, made from the weights before.

Tensors that fit are kept.  New tensors get neutral values: a gain of 1, a bias of 0, rows of 0 for
positions, the embedding for an untied head.  Tensors without a place are dropped.  All of this is
told in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.document import words
from byhand.files.tensors import filled, usual_slopes
from byhand.language import _
from byhand.parameters import Parameter, parameters
from byhand.spec import ModelSpec
from byhand.weights import Data, Tensor, Weights

MOST_NAMED = 6  # weights that one sentence names


def fitted(weights: Weights, spec: ModelSpec) -> tuple[Weights, tuple[str, ...]]:
    """The weights for a spec, and the changes made to them in words."""
    made: dict[str, Tensor] = {}
    new: list[str] = []
    cut: list[str] = []
    wanted = parameters(spec)
    for parameter in wanted:
        name = parameter.name
        old = weights.get(name)
        if old is None:
            made[name] = Tensor(name, _new(parameter, weights, spec))
            new.append(name)
        elif old.shape == parameter.shape:
            made[name] = old
        else:
            made[name] = Tensor(name, _resized(parameter, old.data, weights))
            cut.append(name)
    for name, tensor in made.items():
        if tensor.same_as is not None and tensor.same_as not in made:
            made[name] = Tensor(name, tensor.data)  # the tensor it referred to is gone
    gone = [name for name in weights if name not in made]
    notes = []
    slopes = [name for name in (*new, *cut) if name.endswith(".slopes")]
    new, cut = ([name for name in some if name not in slopes] for some in (new, cut))
    if slopes:
        notes.append(
            _("The slopes of ALiBi are the usual ones: {names}.").format(names=_named(slopes))
        )
    if new:
        notes.append(
            _("New weights, with values that change nothing: {names}.").format(names=_named(new))
        )
    if cut:
        notes.append(
            _("Weights of another size than before, cut or filled up: {names}.").format(
                names=_named(cut)
            )
        )
    if gone:
        notes.append(
            _("Weights that have no place here any more were left out: {names}.").format(
                names=_named(gone)
            )
        )
    return Weights(made), tuple(notes)


def _named(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names[:MOST_NAMED]]
    if len(names) > MOST_NAMED:
        shown.append(_("{count} more").format(count=len(names) - MOST_NAMED))
    return words.joined(shown)


def _new(parameter: Parameter, weights: Weights, spec: ModelSpec) -> Data:
    """Neutral values for a new tensor."""
    if parameter.name == "head":
        rows = weights["embed.token"].data  # the embedding, which the tied head read
        return rows.T if spec.layout == "in_out" else rows
    if parameter.name.endswith(".slopes"):
        return _like(usual_slopes(parameter.size), weights)
    if parameter.name.endswith(".frequencies"):  # no rotation
        return _constant(parameter.shape, 0, weights)
    return _constant(parameter.shape, 1 if parameter.kind == "gain" else 0, weights)


def _resized(parameter: Parameter, old: Data, weights: Weights) -> Data:
    """The remaining part of a tensor, with neutral values around it."""
    if parameter.name.endswith(".slopes"):
        return _like(usual_slopes(parameter.size), weights)
    entry = 1 if parameter.kind == "gain" else 0
    exact = old.dtype == np.dtype(object)  # printed numbers too, beside floats from a file
    data = filled(parameter.shape, Fraction(entry)) if exact else np.full(parameter.shape, entry)
    data = np.array(data, dtype=old.dtype)
    shared = tuple(slice(min(a, b)) for a, b in zip(parameter.shape, old.shape, strict=True))
    data[shared] = old[shared]
    return data


def _constant(shape: tuple[int, ...], entry: int, weights: Weights) -> Data:
    floats = _float_type(weights)
    if floats is None:
        return filled(shape, Fraction(entry))
    return np.full(shape, entry, dtype=floats)


def _like(data: Data, weights: Weights) -> Data:
    """Exact values as floats of the model's format, if the model has floats."""
    floats = _float_type(weights)
    if floats is None or not all(isinstance(x, Fraction) for x in data.flat):
        return data
    return np.array([float(x) for x in data.flat], dtype=floats).reshape(data.shape)


def _float_type(weights: Weights) -> Any:
    """The float type of the weights; None if they are not floats."""
    table = weights.get("embed.token")
    return table.dtype if table is not None and table.floats else None

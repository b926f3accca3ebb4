"""Weights as tables: all entries of a small weight, a window of a large one.

In a tensor with more than two axes, columns are the last axis and rows all other axes in order.  So
`row` and `column` reach every entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from byhand.document.numerals import in_full
from byhand.document.step_names import weight_name
from byhand.errors import AddressError, nearest
from byhand.evaluate import Progress
from byhand.files.writing import entry_text, float_text
from byhand.language import _
from byhand.model import Model
from byhand.parameters import Parameter, parameters
from byhand.serving.edits import edited
from byhand.serving.fields import impossible
from byhand.serving.states import Library
from byhand.weights import Tensor

MOST_LISTED = 4_096  # entries of one weight that are sent without being asked for
WINDOW = 10  # rows and columns of a window


def tables(model: Model) -> Iterator[dict[str, Any]]:
    """Every tensor with its entries if they are few; otherwise `weight` gives windows."""
    for parameter in parameters(model.spec):
        tensor = model.weights[parameter.name]
        entries = None
        if tensor.size <= MOST_LISTED:
            flat = weight_texts(tensor, tensor.data.flat)
            entries = np.array(flat, object).reshape(tensor.shape).tolist()
        yield {
            "name": parameter.name,
            "title": weight_name(parameter.name),
            "shape": list(parameter.shape),
            "axes": list(parameter.axes),
            "part": parameter.part,
            "kind": parameter.kind,
            "same_as": tensor.same_as,
            "entries": entries,
        }


def weight(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """A window of one weight, starting at a row and a column."""
    model = edited(asked["state"], library).model
    parameter = _parameter(model, asked["name"])
    tensor = model.weights[parameter.name]
    columns = parameter.shape[-1] if parameter.shape else 1
    rows = prod(parameter.shape[:-1])
    row = _begin(asked, "row", rows)
    column = _begin(asked, "column", columns)
    return {
        "name": parameter.name,
        "shape": list(parameter.shape),
        "axes": list(parameter.axes),
        "row": row,
        "column": column,
        "rows": rows,
        "columns": columns,
        "entries": [
            weight_texts(
                tensor,
                (
                    tensor.data[(*_leading(parameter, one), other)]
                    for other in range(column, min(column + WINDOW, columns))
                ),
            )
            for one in range(row, min(row + WINDOW, rows))
        ],
    }


def _parameter(model: Model, name: str) -> Parameter:
    known = {parameter.name: parameter for parameter in parameters(model.spec)}
    if name not in known:
        raise AddressError(
            _("this model has no weight {name}").format(name=repr(name[:80])),
            where="name",
            hint=nearest(name[:80], known),
        )
    return known[name]


def _begin(asked: Mapping[str, Any], key: str, size: int) -> int:
    place: int = asked[key] or 0
    if place >= size:
        raise impossible(place, key, _("a place from 0 to {last}").format(last=size - 1))
    return place


def _leading(parameter: Parameter, row: int) -> tuple[int, ...]:
    """The index of a row in all axes but the last."""
    axes = parameter.shape[:-1]
    return tuple(int(place) for place in np.unravel_index(row, axes)) if axes else ()


def weight_texts(tensor: Tensor, entries: Iterable[Any]) -> list[str]:
    """Entries of one weight; among decimals, 1/2 is 0.5 as well."""
    decimals = not tensor.floats and any(
        isinstance(x, Fraction) and x.denominator % 5 == 0 and in_full(x) is not None
        for x in tensor.data.flat
    )
    return [
        (in_full(entry) if decimals and isinstance(entry, Fraction) else None)
        or weight_text(tensor, entry)
        for entry in entries
    ]


def weight_text(tensor: Tensor, entry: Any) -> str:
    """An entry as a model file writes it."""
    if tensor.dtype == np.float64:
        return np.format_float_positional(entry, trim="-")  # the shortest text that reads back
    return float_text(float(entry)) if tensor.floats else entry_text(entry)

"""Larger tensors as plain floats: heat strips, attention patterns, statistics.

The floats give colours and statistics; numbers to be read are in tables, in the number system of
the book.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.tables import WORDED
from byhand.document.parts import AttentionPattern, Column, Grid, HeadPattern, HeatStrip
from byhand.document.words import whole
from byhand.explaining.approximations import floats_near
from byhand.language import _, amount, later
from byhand.numbers.base import Printed, Unknown
from byhand.plan import WEIGHT
from byhand.worked import Worked

MOST_CELLS = 16_384  # of one strip; a larger tensor is pooled
MOST_ROWS = 256
MOST_PATTERN = 64  # positions of an attention pattern
MOST_HEADS = 16  # heads of one pattern

Array = npt.NDArray[np.float64]


def near(worked: Worked) -> Array:
    """Floats near a step's numbers; NaN at masked entries."""
    return floats_near(worked.numbers, worked.value)


def near_weight(data: npt.NDArray[Any]) -> Array:
    """Floats near a weight's numbers; NaN at masked or unknown entries."""
    if data.dtype != np.dtype(object):
        return np.asarray(data, np.float64)

    def one(entry: Any) -> float:
        match entry:
            case None | Unknown():
                return float("nan")
            case Printed(value=value):
                return float(value)
        try:
            return float(entry)
        except TypeError:  # an expression such as sqrt(2)/2
            from byhand.numbers.floats import Floats

            return float(Floats("float64").admit(np.array([entry], object))[0])

    return np.array([one(x) for x in data.flat], np.float64).reshape(data.shape)


# ------------------------------------------------------------------ heat strips


def strip_of(showing: Showing, worked: Worked, title: str = "") -> HeatStrip:
    """A step as colours."""
    step = worked.step
    values = near(worked)
    axis = step.position_axis
    labels = () if axis is None else showing.labels_along(step.axes[axis])
    heads: tuple[str, ...] = ()
    if step.axes[-1] in WORDED and step.shape[-1] <= MOST_ROWS:
        heads = tuple(showing.worded(step.axes[-1], id) for id in range(step.shape[-1]))
    if step.axes[-1] in ("key", "source_key"):
        heads = showing.labels_along(step.axes[-1])
    return _strip(step.address, title, step.axes, values, labels, heads, "step")


def weight_strip(showing: Showing, name: str, title: str = "") -> HeatStrip:
    """A weight as colours."""
    data = showing.trace.model.weights[name].data
    parameter = showing.parameters[name]
    heads: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    down, across = parameter.axes[0], parameter.axes[-1]
    if down in WORDED and parameter.shape[0] <= MOST_ROWS:
        labels = tuple(showing.worded(down, id) for id in range(parameter.shape[0]))
    if across in WORDED and parameter.shape[-1] <= MOST_ROWS:
        heads = tuple(showing.worded(across, id) for id in range(parameter.shape[-1]))
    return _strip(WEIGHT + name, title, parameter.axes, near_weight(data), labels, heads, "weight")


def _strip(
    address: str,
    title: str,
    axes: tuple[str, ...],
    values: Array,
    labels: tuple[str, ...],
    heads: tuple[str, ...],
    kind: str,
) -> HeatStrip:
    shape = values.shape
    flat = values.reshape(-1, shape[-1]) if values.ndim > 1 else values.reshape(1, -1)
    if values.ndim == 1 and axes[0] in ("pos", "query", "source"):
        flat = values.reshape(-1, 1)
    pooled = pooling(flat.shape)
    with np.errstate(over="ignore"):  # beyond float32 a colour is the strongest
        shown = pool(flat, pooled).astype(np.float32)
    finite = np.abs(values[np.isfinite(values)])
    blocks = prod(shape[:-2]) if values.ndim > 2 else 1
    if pooled != (1, 1):
        labels, heads = (), ()
        blocks = blocks if pooled[0] == 1 else 1
    return HeatStrip(
        address=address,
        title=title,
        axes=axes,
        shape=tuple(shape),
        values=shown,
        reach=float(finite.max()) if finite.size else 0.0,
        labels=labels,
        heads=heads,
        blocks=blocks,
        pooled=pooled,
        left_out=pooled_words(pooled),
        kind=kind,
    )


def pooling(shape: tuple[int, ...]) -> tuple[int, int]:
    """The number of rows and columns that one cell of a strip covers."""
    rows, columns = shape
    down = max(1, ceil(rows / MOST_ROWS))
    left = max(1, MOST_CELLS // ceil(rows / down))
    return down, max(1, ceil(columns / left))


def pool(values: Array, by: tuple[int, int]) -> Array:
    """The entry furthest from 0 of each patch; NaN if all of it is masked."""
    if by == (1, 1):
        return values
    rows, columns = values.shape
    high, wide = ceil(rows / by[0]), ceil(columns / by[1])
    padded = np.full((high * by[0], wide * by[1]), np.nan)
    padded[:rows, :columns] = values
    split = padded.reshape(high, by[0], wide, by[1]).transpose(0, 2, 1, 3)
    patches = split.reshape(high, wide, -1)
    sizes = np.where(np.isnan(patches), -1.0, np.abs(patches))
    return np.take_along_axis(patches, sizes.argmax(axis=2)[..., None], axis=2)[..., 0]


def pooled_words(pooled: tuple[int, int]) -> str:
    """What a cell of a pooled strip means; empty if it is one entry."""
    if pooled == (1, 1):
        return ""
    return _(
        "each cell is the entry furthest from 0 of {rows} × {columns}: "
        "the whole tensor would be too much for a page"
    ).format(rows=pooled[0], columns=pooled[1])


# ------------------------------------------------------------------ attention patterns


def pattern_of(showing: Showing, worked: Worked, *, forms: bool) -> AttentionPattern:
    """The attention of each head; of a long text the last positions, of many heads the first."""
    values = near(worked)
    heads, queries, keys = worked.step.shape
    first = max(0, queries - MOST_PATTERN)
    across = max(0, keys - MOST_PATTERN)
    shown = range(min(heads, MOST_HEADS))
    left_out = []
    if heads > MOST_HEADS:
        left_out.append(
            amount(heads - MOST_HEADS, later("1 more head"), later("{count} more heads"))
        )
    if first:
        left_out.append(_("the first {count} positions").format(count=whole(first)))

    def numbers(head: int) -> Any:
        return tuple(
            tuple(showing.number(worked, (head, query, key)) for key in range(keys))
            for query in range(queries)
        )

    return AttentionPattern(
        address=worked.address,
        labels=showing.labels_along(worked.step.axes[1])[first:],
        keys=showing.labels_along(worked.step.axes[2])[across:],
        patterns=tuple(
            HeadPattern(
                worked.address + write_index((head,)),
                head,
                values[head, first:, across:].astype(np.float32),
                numbers(head) if forms and not first and not across else (),
            )
            for head in shown
        ),
        left_out=", ".join(left_out),
    )


# ------------------------------------------------------------------ statistics


def statistics(tensors: Iterable[tuple[str, Array]]) -> Grid | None:
    """Statistics of tensors, a row each; None if no tensor has a finite entry."""
    rows = tuple(_statistics(*one) for one in tensors if np.isfinite(one[1]).any())
    numbers = (_("least"), _("greatest"), _("mean"), _("deviation"), _("zeros"))
    columns = (
        Column(_("tensor"), "address"),
        Column(_("shape")),
        *(Column(head, "number") for head in numbers),
        Column(_("furthest from 0"), "address"),
    )
    return Grid("", columns, rows) if rows else None


def _statistics(address: str, values: Array) -> tuple[str, ...]:
    finite = np.isfinite(values)
    known = values[finite]
    sizes = np.where(finite, np.abs(np.where(finite, values, 0.0)), -1.0)
    largest = np.unravel_index(int(sizes.argmax()), values.shape)
    numbers = (known.min(), known.max(), known.mean(), known.std())
    return (
        address,
        " × ".join(map(whole, values.shape)),
        *(f"{number:.3g}" for number in numbers),
        whole(int((known == 0).sum())),
        address + write_index(tuple(int(i) for i in largest)),
    )


def drawn(length: float) -> float:
    """A length for a drawing: 0 if it is not finite."""
    return length if isfinite(length) else 0.0


def size_of(values: Array) -> float:
    """The length of a vector, for a drawing; 0 where it has no finite length."""
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    if not largest or not isfinite(largest):
        return 0.0
    return drawn(largest * float(np.sqrt(np.nansum(np.square(values / largest)))))

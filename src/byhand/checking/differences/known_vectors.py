"""Vectors that factors by slice may be: a gain of the model, a line of the dump, 1/(position + 1).

A vector is recognised where every entry lies within the uncertainty of what was read off the claim.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.axes import Part
from byhand.checking.differences.closeness import SURE
from byhand.checking.differences.difference import Difference, Floats
from byhand.plan import WEIGHT

MOST_WEIGHTS = 400
MOST_ROWS = 8  # of a table
TABLES = ("embed.token", "embed.position")
OWN = 2.0**-22  # relative: a factor and its vector are both float32 numbers


def known_vector(
    difference: Difference, part: Part, axis: int, values: Floats, offs: Floats
) -> tuple[Floats, str] | None:
    """The vector that factors along an axis are, and how it is written; None: unknown."""
    known = np.isfinite(offs)
    if known.sum() < 3 or float(np.ptp(values[known])) == 0:
        return None
    precision = difference.scene.context.precision
    own = 2.0**-8 if precision.endswith("bfloat16") else 2.0**-10
    own = own if precision.endswith("16") else OWN
    room = (SURE * offs + own * np.abs(values))[known]
    for vector, written in _vectors(difference, part, axis):
        off = np.abs(vector[known] - values[known])
        if (off <= room).all() and float(np.ptp(vector[known])) > 10 * float(np.median(room)):
            return np.where(known, vector, 1.0), written
    return None


def _vectors(difference: Difference, part: Part, axis: int) -> Iterator[tuple[Floats, str]]:
    """Vectors of the length of an axis, and how they are written; all finite."""
    places, name = part.places[axis].astype(np.float64), part.axes[axis]
    if name in ("pos", "query", "key"):
        yield from _of_positions(places, name)
    if name in ("pos", "query", "d", "d_head", "d_ff", "head", "kv_head", "packed"):
        yield np.where(places % 2 == 0, 1.0, -1.0), "1, −1, 1, −1, …"
    for vector, written in vectors_around(difference, part.counts[axis]):
        if np.isfinite(vector).all():
            chosen = vector[part.places[axis]]
            yield chosen, written
            if chosen.all():
                yield 1 / chosen, f"1/{written}"
            yield 1 + chosen, f"1 + {written}"


def _of_positions(places: Floats, name: str) -> Iterator[tuple[Floats, str]]:
    counted = places + 1
    yield from (
        (counted, f"{name} + 1"),
        (1 / counted, f"1/({name} + 1)"),
        (np.sqrt(counted), f"√({name} + 1)"),
        (1 / np.sqrt(counted), f"1/√({name} + 1)"),
        (places, name),
        (counted[::-1], f"the number of {name} left"),
        (1 / counted[::-1], f"1/(the number of {name} left)"),
        (np.log(counted + (counted == 1)), f"ln({name} + 1)"),
    )


def vectors_around(
    difference: Difference, count: int, *, rows: bool = False
) -> Iterator[tuple[Floats, str]]:
    """The model's weights and the lines of the dump that are vectors of this length.

    With `rows`, also the first rows of its tables.
    """
    around, weights = difference.scene.context.around, difference.scene.model.weights
    if around is None:
        return
    names = [name for name, tensor in weights.items() if tensor.shape == (count,)]
    layer = difference.scene.layer(difference.target.address)
    names.sort(key=lambda name: difference.scene.layer(name) != layer)  # stable: own block first
    for name in names[:MOST_WEIGHTS]:
        vector = around.read(WEIGHT + name)
        if vector is not None:
            yield vector, WEIGHT + name
    for address in around.claimed_steps:
        if (
            difference.scene.plan[address].shape == (count,)
            and address != difference.target.address
        ):
            vector = around.claimed(address)
            if vector is not None:
                yield vector, address

"""Differences in mixed values: whose values were mixed, and by which weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attending import (
    ZERO,
    Products,
    moved_rows,
    other_heads,
    other_lines,
)
from byhand.checking.differences.attention_seen import FIT, Attention, nearest_of, roomy, spread
from byhand.checking.differences.difference import Difference, Reading
from byhand.checking.differences.sharing import Shares, readings_of
from byhand.language import _

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int_]
MOST_KEYS = 256  # positions for which values or weights are solved
SINGULAR = 1e12  # the same for weights, whose errors are told
UNKNOWN = 1e6  # condition numbers above it: nothing can be solved


def mix_readings(difference: Difference) -> Iterator[Reading]:
    """What claimed mixed values tell, where they are not the weights times the values."""
    step = difference.target
    if step.op != "mix" or not difference.whole or not difference.wrong.any():
        return
    attention = Attention.of(difference)
    if attention is None or not difference.finite.all():
        return
    v = attention.read("mixed", "v")
    if v is None:
        return
    yield from mixed_readings(attention, v, difference.claimed, roomy(difference))


def mixed_readings(
    attention: Attention, v: Floats, claimed: Floats, room: Floats
) -> Iterator[Reading]:
    """The same for mixed values that are claimed, or were solved from what comes after."""
    weights = attention.value("weights")
    if weights is None or not np.isfinite(weights).all():
        return
    weights = np.where(attention.own, weights, 0.0) if not attention.claimed("weights") else weights
    if not attention.claimed("weights"):
        yield from _through_weights(attention, v, weights, claimed, room)
    products = Products(
        attention, "mixed", ("weights", "v"), (_("weight"), _("value")), weights, v,
        np.zeros(()), claimed, room, np.ones(claimed.shape, dtype=bool),
    )  # fmt: skip
    for reader in (other_heads, _other_values, other_lines):
        found = list(reader(products))
        if found:
            yield from found
            return


def _through_weights(
    attention: Attention, v: Floats, weights: Floats, claimed: Floats, room: Floats
) -> Iterator[Reading]:
    """What the weights must have been, where there are no more keys than entries of a head."""
    scores = attention.value("scores")
    keys, width = v.shape[1:]
    if scores is None or keys > min(width, MOST_KEYS):
        return
    heads = len(claimed)
    inverse = np.asarray(np.linalg.pinv(v), dtype=np.float64)  # (kv head, width, key)
    if np.linalg.cond(v).max() > UNKNOWN:
        return
    each = spread(inverse, heads)
    found = claimed @ each
    off = np.sqrt(np.square(room) @ np.square(each))
    yield from readings_of(Shares(attention, found, off, weights, scores))


def _other_values(products: Products) -> Iterator[Reading]:
    """Values of other positions: the values are solved, compared, and tried."""
    weights, v = products.left, products.right
    queries, keys = weights.shape[1:]
    if keys > MOST_KEYS or queries != keys:
        return
    heads, wrong = len(weights), products.wrong
    own = spread(v, heads)
    for order in _shifts(keys):
        if products.fits(weights @ _taken(own, order), wrong):
            yield moved_rows(products, 1, order, np.flatnonzero(order != np.arange(keys)))
            return
    left = np.zeros((keys, keys + 1))  # how badly each value fits, in the head where it fits worst
    for head in wrong:
        near = np.sqrt(np.mean(np.square(products.room[head]), axis=1))
        matrix = weights[head] / near[:, None]
        if not np.isfinite(matrix).all() or np.linalg.cond(matrix) > SINGULAR:
            continue
        inverse = np.linalg.inv(matrix)
        found = inverse @ (products.claimed[head] / near[:, None])
        off = np.sqrt(np.square(inverse).sum(axis=1))  # (key)
        others = np.concatenate((own[head], np.zeros((1, v.shape[-1]))))
        away = np.square(found[:, None] - others[None]).mean(axis=-1) / np.square(off)[:, None]
        left = np.maximum(left, np.sqrt(away))
    order = np.array([
        nearest_of(np.flatnonzero(row <= max(FIT, 1.1 * float(row.min()))), key)
        for key, row in enumerate(left)
    ])  # fmt: skip
    other = np.flatnonzero(order != np.arange(keys))
    if not len(other) or not len(wrong):
        return
    order = np.where(order == keys, ZERO, order)
    if products.fits(weights @ _taken(own, order), wrong):
        yield moved_rows(products, 1, order, other)


def _taken(values: Floats, order: Ints) -> Floats:
    """The values of other positions."""
    return np.where((order >= 0)[None, :, None], values[:, np.maximum(order, 0)], 0.0)


def _shifts(count: int) -> Iterator[Ints]:
    """The orders in which all values are moved by a few positions, or in reverse."""
    own = np.arange(count)
    for by in (-1, 1, -2, 2):
        moved = own + by
        inside = (moved >= 0) & (moved < count)
        yield np.clip(moved, 0, count - 1)
        yield np.where(inside, moved, ZERO)
        yield moved % count
    yield own[::-1]

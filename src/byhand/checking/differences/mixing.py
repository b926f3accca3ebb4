"""Differences in mixed values: whose values were mixed, and by which weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import FIT, Attention, nearest_of, roomy, spread
from byhand.checking.differences.difference import Description, Difference, Reading
from byhand.checking.differences.head_products import Products
from byhand.checking.differences.inputs_changed import changed_inputs
from byhand.checking.differences.inputs_read import (
    ZERO,
    moved_rows,
    other_heads,
    other_lines,
    shifts,
    taken,
)
from byhand.checking.differences.shares import Shares
from byhand.checking.differences.sharing import readings_of
from byhand.language import _

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int_]
MOST_KEYS = 256  # positions for which values or weights are solved
SINGULAR = 1e12  # the same for weights, whose errors are told
CLEAR = 20.0  # × its error: a value that is surely not 0
SURE = 6.0
FEW = 8  # entries that show a dropout, at least
MOST = 0.95  # share of the kept entries that have the same factor
DROPPED = 0.1  # how far the share of zeros may be from the rate
SAME = 1e-4  # of the largest singular value: smaller ones are those of keys that are alike


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


def out_readings(difference: Difference) -> Iterator[Reading]:
    """What the attention's output tells of mixed values that nobody claims."""
    step, scene = difference.target, difference.scene
    if not step.address.endswith(".attn.out") or not difference.whole or difference.direct:
        return
    attention = Attention.of(difference)
    mixed = None if attention is None else attention.value("mixed")
    if attention is None or mixed is None or attention.claimed("mixed"):
        return
    v, weight = attention.read("mixed", "v"), difference.input("weight")
    if v is None or not difference.finite.all() or not np.isfinite(mixed).all():
        return
    heads, count, width = mixed.shape
    change, room = difference.claimed - difference.expected, roomy(difference)
    if weight is not None:
        matrix = weight if step.attributes["layout"] == "in_out" else weight.T  # (in, out)
        if matrix.shape[0] > matrix.shape[1] or np.linalg.cond(matrix) > SINGULAR:
            return
        inverse = np.asarray(np.linalg.pinv(matrix), dtype=np.float64)
        change, room = change @ inverse, np.sqrt(np.square(room) @ np.square(inverse))

    def by_head(rows: Floats) -> Floats:
        return rows.reshape(count, heads, width).transpose(1, 0, 2)

    if scene.plan[f"{attention.at}.mixed"].shape == mixed.shape:
        yield from mixed_readings(attention, v, mixed + by_head(change), by_head(room))


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
        attention, "mixed", ("weights", "v"), weights, v,
        np.zeros(()), claimed, room, np.ones(claimed.shape, dtype=bool),
    )  # fmt: skip
    for reader in (other_heads, _other_values, other_lines, changed_inputs, _dropped_values):
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
    inverse = np.asarray(np.linalg.pinv(v, rcond=SAME), dtype=np.float64)  # (kv head, width, key)
    each, own = spread(inverse, heads), spread(v, heads)
    found = weights + (claimed - weights @ own) @ each
    # keys with the same values: only their sum is known
    free = np.eye(keys) - own @ each
    unknown = np.abs(np.diagonal(free, axis1=1, axis2=2)) > SAME  # (head, key)
    variance = np.square(room)
    off = np.where(unknown[:, None], np.inf, np.sqrt(variance @ np.square(each)))
    rows = np.sqrt((variance @ np.square(each.sum(axis=2))[..., None])[..., 0])
    yield from readings_of(Shares(attention, found, off, weights, scores, rows))


def _other_values(products: Products) -> Iterator[Reading]:
    """Values of other positions: the values are solved, compared, and tried."""
    weights, v = products.left_input, products.right_input
    queries, keys = weights.shape[1:]
    heads, wrong = len(weights), products.wrong
    own = spread(v, heads)
    for order in shifts(keys):
        if products.explains(weights, taken(own, order), wrong):
            yield moved_rows(products, 1, order, np.flatnonzero(order != np.arange(keys)))
            return
    if keys > MOST_KEYS or queries != keys:
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
    if products.explains(weights, taken(own, order), wrong):
        yield moved_rows(products, 1, order, other)


def _dropped_values(products: Products) -> Iterator[Reading]:
    """Values of which some entries are 0 and the others larger, as a dropout leaves them."""
    weights, v = products.left_input, products.right_input
    group = len(weights) // len(v)
    zero, large, factors = 0, 0, []
    for head in range(0, len(weights), group):
        near = np.sqrt(np.mean(np.square(products.room[head]), axis=1))
        matrix = weights[head] / near[:, None]
        square = matrix.shape[0] == matrix.shape[1] <= MOST_KEYS
        if not square or np.linalg.cond(matrix) > SINGULAR:
            continue
        inverse = np.linalg.inv(matrix)
        found = inverse @ (products.claimed[head] / near[:, None])
        off = np.broadcast_to(np.linalg.norm(inverse, axis=1)[:, None], found.shape)
        own = v[head // group]
        tells = np.abs(own) > CLEAR * off
        gone = tells & (np.abs(found) <= SURE * off)
        kept = tells & ~gone
        zero, large = zero + int(gone.sum()), large + int(kept.sum())
        factors += list((found[kept] / own[kept]).ravel())
    if zero < FEW or large < FEW or zero + large < v.size / 8:
        return
    factor = float(np.median(factors))
    if np.mean(np.abs(np.asarray(factors) - factor) <= 0.02 * factor) < MOST:
        return
    said = _("some entries of v are 0 ({zero} of {count}) and the others {factor} times as large, "
             "as a dropout of {rate} leaves them")  # fmt: skip
    rate = f"{1 - 1 / factor:.2g}" if factor > 1 else "?"
    count = zero + large
    if factor > 1.0 and abs(zero / count - (1 - 1 / factor)) < DROPPED:
        words = {"zero": zero, "count": count, "factor": f"{factor:.4g}", "rate": rate}
        yield Description(said.format(**words), 5)

"""Attention in floats: dot products, masks, softmax and mixing, without copies per head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.numbers.floats.formats import Data
from byhand.numbers.floats.results import all_finite

CHUNK = 1 << 16  # entries done at a time, so that they stay in the cache
Mask = Sequence[Sequence[bool]]

_last_mask: tuple[Mask, Data | None] = ((), None)


def hidden(mask: Mask) -> Data | None:
    """(query, key), True where a query may not look; None where all may look at all.

    All layers of a plan share one mask, so the last one is remembered.
    """
    global _last_mask
    if _last_mask[0] is not mask:
        away = ~np.asarray(mask, dtype=bool)
        _last_mask = (mask, away if away.any() else None)
    return _last_mask[1]


def masked(data: Data, away: Data | None, below: float) -> Data:
    """The array with these entries masked; `below` is written under the mask."""
    if away is None:
        return data
    whole = np.broadcast_to(away, data.shape)
    np.copyto(data, data.dtype.type(below), where=whole)
    return np.ma.MaskedArray(data, mask=whole, copy=False)


def dot_products(q: Data, k: Data, result: Data) -> Data:
    """Into (head, query, key); query head h reads key head h // (heads / kv_heads)."""
    heads, queries, width = q.shape
    kv_heads, keys, _width = k.shape
    columns = k.transpose(0, 2, 1)
    if heads == kv_heads:
        return np.matmul(q, columns, out=result)
    groups = (kv_heads, heads // kv_heads)
    np.matmul(
        q.reshape(*groups, queries, width),
        columns[:, None],
        out=result.reshape(*groups, queries, keys),
    )
    return result


def shares(x: Data, out: Data) -> Data:
    """Into `out`: softmax over the last axis, shifted by the row's maximum."""
    rows, result = x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1])
    step = max(1, CHUNK // rows.shape[1])
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        into = result[start : start + step]
        np.subtract(part, part.max(axis=1, keepdims=True), out=into)
        np.exp(into, out=into)
        into /= np.add.reduce(into, axis=1, keepdims=True)
    return out


def mixed(weights: Data, v: Data, away: Data | None, laid: Data) -> Data:
    """Σ_key weights·v, laid in memory as (query, head, width): the heads side by side."""
    heads, queries, keys = weights.shape
    kv_heads, _keys, width = v.shape
    result = laid.transpose(1, 0, 2)
    if away is not None and not all_finite(v):  # 0·∞ is not 0: masked values are left out
        for head, query in np.ndindex(heads, queries):
            seen = ~away[head, query]
            values = v[head * kv_heads // heads, seen]
            result[head, query] = weights[head, query, seen] @ values
        return result
    if heads == kv_heads:
        return np.matmul(weights, v, out=result)
    group = heads // kv_heads
    np.matmul(
        weights.reshape(kv_heads, group, queries, keys),
        v[:, None],
        out=laid.reshape(queries, kv_heads, group, width).transpose(1, 2, 0, 3),
    )
    return result

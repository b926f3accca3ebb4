"""Routers of transformers: they flatten a batch, and tell who is chosen beside their scores."""

from __future__ import annotations

from typing import Any


def in_batch(value: Any, sides: tuple[int, int] | None) -> Any:
    """A tensor of rows, all texts one below the other, as (batch, pos, width) again."""
    if sides is None or value.ndim != 2 or len(value) != sides[0] * sides[1]:
        return value
    return value.reshape(*sides, -1)


def choice_of(output: Any) -> tuple[Any, Any] | None:
    """Who is chosen (1 or 0) and the shares, for each expert; None where a router tells neither.

    A router gives its scores, the shares of the chosen experts from the best down, and their ids.
    """
    if not isinstance(output, tuple) or len(output) != 3:
        return None
    scores, shares, ids = output
    if not all(hasattr(each, "detach") and each.ndim == 2 for each in output):
        return None
    if ids.is_floating_point() or shares.shape != ids.shape:
        return None
    empty = shares.new_zeros(scores.shape)
    return empty.scatter(1, ids, 1.0), empty.scatter(1, ids, shares)

"""Heads side by side: arrays of heads laid out as the columns of one matrix."""

from __future__ import annotations

from byhand.numbers.base import Array


def side_by_side(x: Array) -> Array:
    """(head, pos, width) → (pos, head·width), without a copy where they lie so already."""
    heads, positions, width = x.shape
    return x.transpose(1, 0, 2).reshape(positions, heads * width)

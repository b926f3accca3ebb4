"""Keys and values as caches hold them: growing, of a fixed size, with a sliding window.

Whatever a cache has room for, only positions that were read count.  A cache of a fixed size has
them in front and more room behind; a sliding window keeps the last of them alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
CACHE = "past_key_values."


def layers_of(cached: Any) -> Iterator[tuple[int, Any, Any]]:
    """The number, the keys and the values of each layer that holds any, in any version's cache."""
    cached = getattr(cached, "self_attention_cache", cached)
    layers = getattr(cached, "layers", cached)
    for number, layer in enumerate(layers if isinstance(layers, (list, tuple)) else ()):
        pair = layer if isinstance(layer, tuple) else (
            getattr(layer, "keys", None), getattr(layer, "values", None)
        )  # fmt: skip
        if len(pair) > 1 and all(hasattr(each, "detach") and each.ndim == 4 for each in pair[:2]):
            yield number, pair[0], pair[1]


def length_of(cached: Any) -> int:
    """How many positions a cache has read; 0 where there is none."""
    if hasattr(cached, "get_seq_length"):
        return int(cached.get_seq_length())
    return max((keys.shape[2] for _layer, keys, _values in layers_of(cached)), default=0)


def first_held(width: int, end: int) -> int:
    """The first position that is held, where `end` have been read and there is room for `width`."""
    return max(0, end - width)


def all_keys(weights: Array, end: int) -> Array:
    """Attention weights over all keys before `end`; keys outside of the window have none."""
    first = first_held(weights.shape[3], end)
    return np.pad(weights[..., :end], [(0, 0), (0, 0), (0, 0), (first, 0)])


def names_of(layer: int, first: int, end: int) -> tuple[str, str]:
    """What the keys and the values of some positions are called."""
    part = f"[:,{first}:{end}]" if first else ""
    return f"{CACHE}{layer}.key{part}", f"{CACHE}{layer}.value{part}"

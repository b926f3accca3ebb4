"""Another machine, in this process: its sums end in other last digits.

A processor sums in the order that suits it.  Here every sum of products and every exponential is
moved by up to a unit of the last place of what was summed, at random: further than another order
moves short sums.  What is printed all the same is the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byhand.numbers.floats import attention, operations


def sum_otherwise(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """From here on, until the test ends, floats are those of another machine."""
    random = np.random.default_rng(seed)

    def moved(result: Any, summed: Any) -> Any:
        unit = np.finfo(result.dtype).eps * np.nan_to_num(summed)
        result[...] = result + unit * random.uniform(-1, 1, result.shape)
        return result

    def times_matrix(x: Any, matrix: Any, layout: str, *rest: Any, **out: Any) -> Any:
        by = size(matrix) if layout == "in_out" else size(matrix).T
        return moved(plain["times_matrix"](x, matrix, layout, *rest, **out), size(x) @ by)

    def dot_products(q: Any, k: Any, result: Any) -> Any:
        keys = size(k).repeat(len(q) // len(k), axis=0)
        return moved(plain["dot_products"](q, k, result), size(q) @ keys.transpose(0, 2, 1))

    def shares(x: Any, out: Any) -> Any:
        return moved(plain["shares"](x, out), 2 * size(out))

    def mixed(weights: Any, v: Any, *rest: Any) -> Any:
        values = size(v).repeat(len(weights) // len(v), axis=0)
        return moved(plain["mixed"](weights, v, *rest), size(weights) @ values)

    plain = {}
    for module, function in (
        (operations, times_matrix),
        (attention, dot_products),
        (attention, shares),
        (attention, mixed),
    ):
        name = function.__name__
        plain[name] = getattr(module, name)
        monkeypatch.setattr(module, name, function)


def size(data: Any) -> Any:
    return np.abs(np.asarray(data, dtype=np.float64))

"""Parameters that are a part of a file's tensor, or are gathered of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byhand.names.pieces import (
    Columns,
    Flat,
    Form,
    Grouped,
    Later,
    Part,
    Rule,
    Sharded,
    Source,
    Turned,
)
from byhand.spec import AttentionSpec

D = 5
MATRIX = Form((6, D), ("d_ff", "d"), out=-2, matrix=True)
STACK = Form((3, 6, D), ("experts", "d_ff", "d"), out=-2, matrix=True)
BIAS = Form((6,), ("d_ff",), out=-1, matrix=False)
ATTENTION = AttentionSpec(heads=6, d_head=2, kv_heads=3)


def numbers(*shape: int) -> npt.NDArray[Any]:
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


@pytest.mark.parametrize(
    ("rules", "form", "shape", "expected"),
    [
        ((Part(1, 2),), MATRIX, (12, D), lambda x: x[6:]),
        ((Part(0, 3),), BIAS, (18,), lambda x: x[:6]),
        ((Part(1, 2, "turn"),), STACK, (3, 12, D), lambda x: x[:, 1::2]),
        ((Part(0, 2, "turn"), Turned()), STACK, (3, D, 12), lambda x: x[:, :, ::2].swapaxes(1, 2)),
        ((Part(0, 2, "turn"), Turned()), BIAS, (12,), lambda x: x[::2]),
        ((Turned(),), MATRIX, (D, 6), lambda x: x.T),
        ((Later(2),), MATRIX, (8, D), lambda x: x[2:]),
        ((Flat(),), Form((6, 1, 2), ("heads", "1", "d_head"), -1, False), (6, 2),
         lambda x: x[:, None]),
    ],
)  # fmt: skip
def test_a_part_is_a_view_of_the_file(
    rules: tuple[Rule, ...], form: Form, shape: tuple[int, ...], expected: Any
) -> None:
    source, data = Source("x.weight", rules), numbers(*shape)
    assert source.stored(form, None).shape == shape
    assert len(source.stored(form, None).axes) == len(shape)
    found = source.taken(data, form, None)
    assert found.shape == form.shape
    assert np.array_equal(found, expected(data))
    assert np.shares_memory(found, data)


@pytest.mark.parametrize("out", [-2, -1])
def test_queries_keys_and_values_by_key_heads(out: int) -> None:
    data = numbers(24, D) if out == -2 else numbers(24)
    heads = data.reshape(3, 4, 2, *data.shape[1:])  # each key head: two queries, a key, a value
    for which, rows, size in (
        ("q", heads[:, :2], 12),
        ("k", heads[:, 2], 6),
        ("v", heads[:, 3], 6),
    ):
        form = Form((size, *data.shape[1:]), ("out", "d")[: data.ndim], out, out == -2)
        source = Source("x.weight", (Grouped(which),))
        assert source.stored(form, ATTENTION).shape == data.shape
        assert np.array_equal(source.taken(data, form, ATTENTION), rows.reshape(form.shape))


def test_queries_keys_and_values_one_behind_the_other() -> None:
    data = numbers(24, D)
    for which, start, size in (("q", 0, 12), ("k", 12, 6), ("v", 18, 6)):
        form = Form((size, D), ("out", "d"), -2, True)
        source = Source("x.weight", (Columns(which),))
        assert source.stored(form, ATTENTION).shape == (24, D)
        assert np.array_equal(source.taken(data, form, ATTENTION), data[start : start + size])


@pytest.mark.parametrize("out", [-2, -1])
def test_queries_values_and_keys_in_shards(out: int) -> None:
    data = numbers(36, D) if out == -2 else numbers(36)
    shards = data.reshape(3, 3, 4, *data.shape[1:])  # each shard: q, v and k of two heads
    for which, place in (("q", 0), ("v", 1), ("k", 2)):
        form = Form((12, *data.shape[1:]), ("out", "d")[: data.ndim], out, out == -2)
        source = Source("x.weight", (Sharded(which, 3),))
        assert source.stored(form, ATTENTION).shape == data.shape
        found = source.taken(data, form, ATTENTION)
        assert np.array_equal(found, shards[:, place].reshape(form.shape))


def test_one_tensor_for_each_expert_has_the_form_of_one() -> None:
    assert Source("experts.{expert}.w1.weight").stored(STACK, None).shape == (6, D)

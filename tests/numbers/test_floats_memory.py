"""Weights as they lie in memory, products however they are cut, and room for results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from byhand.numbers.floats import FORMATS, Floats, memory, products
from byhand.numbers.floats.formats import widened
from byhand.numbers.floats.memory import IDLE, Memory

KINDS = {name: form.dtype for name, form in FORMATS.items()}


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


# ------------------------------------------------------------------ weights as they lie in memory


@pytest.mark.parametrize(
    ("format", "stored"),
    [
        ("float64", "float64"),
        ("float64", "bfloat16"),
        ("float32", "float32"),
        ("float32", "float16"),
        ("float32", "bfloat16"),
        ("bfloat16", "bfloat16"),
        ("float16", "float16"),
    ],
)
def test_weights_of_the_same_or_a_narrower_format_are_not_copied(format: str, stored: str) -> None:
    weight = random(4, 3).astype(KINDS[stored])
    assert np.shares_memory(Floats(format).admit(weight), weight)


def test_memory_mapped_weights_stay_in_their_file(tmp_path: Path) -> None:
    random(8, 4).astype(np.float32).tofile(tmp_path / "weights")
    weight = np.memmap(tmp_path / "weights", dtype=np.float32, mode="r", shape=(8, 4))
    admitted = Floats("float32").admit(weight)
    assert np.shares_memory(admitted, weight)
    assert not admitted.flags.writeable


@pytest.mark.parametrize(("format", "wide"), [("float32", np.float32), ("bfloat16", np.float32)])
def test_weights_are_converted_once_where_that_is_asked(format: str, wide: Any) -> None:
    weight = random(4, 3).astype(bfloat16)
    admitted = Floats(format, convert_once=True).admit(weight)
    assert admitted.dtype == wide
    assert np.array_equal(admitted, weight.astype(np.float32))


@pytest.mark.parametrize("convert_once", [False, True])
@pytest.mark.parametrize("format", list(FORMATS))
def test_converting_once_changes_no_number(format: str, convert_once: bool) -> None:
    numbers = Floats(format, convert_once=convert_once)
    table = numbers.admit(
        random(7, 5, seed=1).astype(bfloat16 if format != "float16" else np.float16)
    )
    x = numbers.embed(table, [3, 0, 3])
    assert x.dtype == numbers.dtype
    y = numbers.linear(x, table, layout="out_in")
    exact = table.astype(np.float64)[[3, 0, 3]] @ table.astype(np.float64).T
    assert np.allclose(
        y.astype(np.float64), exact, rtol=2.0 ** (1 - FORMATS[format].bits), atol=1e-6
    )


@pytest.mark.parametrize("layout", ["in_out", "out_in"])
@pytest.mark.parametrize("piece", [1, 7, 64, 10**6])
def test_a_narrower_matrix_is_widened_piece_by_piece(
    layout: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "PIECE", piece)
    x, weight = random(3, 9).astype(np.float32), random(9, 9, seed=1).astype(bfloat16)
    found = Floats("float32").linear(x, weight, layout=layout)
    whole = weight.astype(np.float32)
    assert np.allclose(found, x @ (whole if layout == "in_out" else whole.T), rtol=1e-5, atol=1e-5)


@given(st.integers(0, 2**16 - 1))
def test_bfloat16_is_widened_bit_by_bit(bits: int) -> None:
    x = np.array([bits], dtype=np.uint16).view(bfloat16)
    found, expected = widened(x, np.dtype(np.float32)), x.astype(np.float32)
    assert np.array_equal(found, expected, equal_nan=True)


# ------------------------------------------------------------------ products


@pytest.mark.parametrize("layout", ["in_out", "out_in"])
@pytest.mark.parametrize("rows", [1, 2, 5, 16, 32, 40, 41, 70])
@pytest.mark.parametrize("width", [1, 63, 64, 65, 300, 700])
def test_products_are_right_however_they_are_cut(rows: int, width: int, layout: str) -> None:
    x = random(rows, width)
    matrix = random(width, 1500, seed=1)
    exact = x @ matrix
    sizes = np.abs(x) @ np.abs(matrix)
    weight = matrix if layout == "in_out" else np.ascontiguousarray(matrix.T)
    for kind, bits in ((np.float32, 24), (np.float64, 53)):
        bias = random(1500, seed=2).astype(kind)
        found = products.times_matrix(x.astype(kind), weight.astype(kind), layout, bias)
        assert found.dtype == kind
        assert found.flags.c_contiguous
        limit = (width + 4) * 2.0**-bits * (sizes + np.abs(bias))
        assert (np.abs(found - (exact + bias)) <= limit + 1e-13).all()


def test_heads_are_views_and_come_back_without_a_copy() -> None:
    numbers = Floats("float32")
    x = numbers.linear(random(3, 4).astype(np.float32), random(4, 12).astype(np.float32),
                       layout="in_out", heads=3)  # fmt: skip
    assert x.shape == (3, 3, 4)
    assert np.shares_memory(numbers.merge_heads(x), x)
    packed = random(3, 18).astype(np.float32)
    for start, stride in ((0, 6), (2, 6), (4, 6), (6, 2)):
        part = numbers.split_heads(packed, start=start, heads=3, width=2, stride=stride)
        assert np.shares_memory(part, packed)
        for head in range(3):
            first = start + head * stride
            assert np.array_equal(part[head], packed[:, first : first + 2])


# ------------------------------------------------------------------ room for results


def test_results_side_by_side_in_memory_do_not_overlap() -> None:
    kind, room = np.dtype(np.float32), Memory().room
    arrays = [room((height, 100), kind) for height in (1, 30, 31, 999, 5000, 64) * 20]
    for number, array in enumerate(arrays):
        array.fill(number)
    assert all((array == number).all() for number, array in enumerate(arrays))
    assert arrays[1].ctypes.data % 64 == 0
    assert arrays[2].base is arrays[1].base


def test_a_block_of_results_is_used_again_when_its_last_array_is_gone() -> None:
    memory._idle.clear()
    kind = np.dtype(np.float32)
    first, last = Memory().room((4096,), kind), None
    place = first.base.ctypes.data
    last = first[7:9]
    del first
    assert not memory._idle
    del last
    assert [block.ctypes.data for block in memory._idle.values()] == [place]
    again = Memory().room((4096,), kind)
    assert again.base.ctypes.data == place
    assert not memory._idle


def test_a_large_array_waits_for_one_that_is_about_as_large() -> None:
    memory._idle.clear()
    kind = np.dtype(np.float32)
    place = Memory().room((1 << 20,), kind).ctypes.data
    smaller = Memory().room(((1 << 18) + 1,), kind)  # would waste three quarters
    assert smaller.ctypes.data != place
    fitting = Memory().room(((1 << 20) - 5,), kind)
    assert fitting.ctypes.data == place


def test_what_waits_is_bounded() -> None:
    memory._idle.clear()
    rooms = [Memory().room((IDLE // 16,), np.dtype(np.float32)) for _room in range(6)]
    del rooms
    assert sum(block.size for block in memory._idle.values()) == IDLE
    memory._idle.clear()

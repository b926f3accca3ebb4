"""The way +ggml: what llama.cpp's kernels give is allowed, and what a wrong layout gives is not."""

from __future__ import annotations

import numpy as np
import pytest

from byhand.errors import InputError
from byhand.files.ggml import MINIMA, addends, unpacked
from byhand.files.ggml_slips import LAYOUTS, slips
from byhand.numbers.allowed import Allowed, Range, precision
from byhand.numbers.allowed.ggml import BLOCKS
from oracles.ggml_products import KINDS, product
from oracles.gguf_files import packed

PACKED = tuple(LAYOUTS)


def matrix(name: str, seed: int, rows: int = 24, width: int = 512) -> np.ndarray:
    _kind, _shape, raw = packed(name, (rows, width), seed)
    return np.frombuffer(raw, np.uint8).reshape(-1, KINDS[name].bytes)


def admitted(numbers: Allowed, name: str, blocks: np.ndarray, width: int = 512) -> Range:
    kind = KINDS[name]

    def sizes() -> np.ndarray:
        found = addends(kind, blocks)
        assert found is not None
        return found.reshape(-1, width)

    data = unpacked(kind, blocks).reshape(-1, width)
    weight: Range = numbers.admit_weight(data, name, sizes if name in MINIMA else None)
    return weight


def rows_of(seed: int, size: float, width: int = 512) -> np.ndarray:
    """Rows with quiet and loud blocks, and one entry that is far larger than the others."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(5, width)) * size
    rows *= np.repeat(10.0 ** generator.uniform(-4, 0, (5, width // 32)), 32, axis=1)
    rows[1, 7] *= 3000
    rows[2, :64] = 0
    return rows.astype(np.float32)


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("size", [1e-6, 1.0, 300.0])
def test_what_the_kernels_give_is_allowed_and_usual(name: str, size: float) -> None:
    numbers = Allowed("float32+ggml")
    for seed in (0, 1):
        blocks, rows = matrix(name, seed), rows_of(seed, size)
        result = numbers.linear(Range(rows), admitted(numbers, name, blocks), layout="out_in")
        for gpu in (False, True):
            given = product(KINDS[name], blocks, rows, gpu=gpu).astype(np.float64)
            judged = numbers.judge(result, (), given, 0.0)
            assert judged.share <= 1, (seed, gpu)
            assert np.isfinite(result.rad).any()
            assert result.usual is not None
            far = np.abs(given - result.mid) / result.usual
            assert np.median(far) < 2, (seed, gpu)


@pytest.mark.parametrize("name", PACKED)
def test_without_the_way_the_same_numbers_are_no_rounding_of_float32(name: str) -> None:
    numbers = Allowed("float32")
    blocks, rows = matrix(name, 3), rows_of(3, 1.0)
    result = numbers.linear(Range(rows), admitted(numbers, name, blocks), layout="out_in")
    assert not numbers.judge(result, (), product(KINDS[name], blocks, rows).astype(float)).follows


@pytest.mark.parametrize("name", PACKED)
def test_no_wrong_layout_is_allowed(name: str) -> None:
    numbers = Allowed("float32+ggml")
    blocks = matrix(name, 4)
    rows = np.random.default_rng(4).normal(size=(5, 512)).astype(np.float32)
    result = numbers.linear(Range(rows), admitted(numbers, name, blocks), layout="out_in")
    found = dict(slips(KINDS[name], blocks))
    assert {"before", "behind"} <= set(found)
    for slip, entries in found.items():
        given = rows.astype(np.float64) @ entries.reshape(-1, 512).T
        assert not numbers.judge(result, (), given).follows, slip


def test_a_matrix_of_float32_changes_nothing_and_halves_round_what_meets_them() -> None:
    rows = rows_of(5, 1.0)
    data = np.random.default_rng(5).normal(size=(8, 512)).astype(np.float16)
    plain = Allowed("float32").linear(Range(rows), Range(data), layout="out_in")
    numbers = Allowed("float32+ggml")
    same = numbers.linear(Range(rows), numbers.admit_weight(data, "F32"), layout="out_in")
    assert np.array_equal(same.rad, plain.rad)
    wider = numbers.linear(Range(rows), numbers.admit_weight(data, "F16"), layout="out_in")
    given = rows.astype(np.float16).astype(np.float64) @ data.astype(np.float64).T
    assert numbers.judge(wider, (), given).follows
    assert not Allowed("float32").judge(plain, (), given).follows


def test_a_number_beyond_float16_may_become_anything() -> None:
    numbers = Allowed("float32+ggml")
    rows = np.full((1, 32), 70000.0, np.float32)
    weight = numbers.admit_weight(np.ones((1, 32), np.float16), "F16")
    assert np.isinf(numbers.linear(Range(rows), weight, layout="out_in").rad).all()
    keys = np.full((1, 1, 4), 70000.0)
    scores = numbers.scores(
        Range(keys), Range(keys), mask=[[True]], queries=[0], keys=[0], scale=None
    )
    assert np.isinf(scores.rad).all()


def test_every_packed_type_says_how_what_meets_it_is_rounded() -> None:
    assert set(BLOCKS) == set(PACKED)


@pytest.mark.parametrize(
    "name", ["bfloat16+ggml", "float32+int8+ggml", "transformers:float32+ggml"]
)
def test_only_float32_goes_with_the_way(name: str) -> None:
    with pytest.raises(InputError, match=r"llama\.cpp stores float32"):
        precision(name)


@pytest.mark.parametrize("name", ["Q4_1", "Q5_1"])
def test_terms_that_cancel_leave_what_was_rounded_of_each(name: str) -> None:
    """Every entry is 8·1/16 - 1/2: the product is 0, and that of the kernels is not."""
    kind = KINDS[name]
    blocks = np.zeros((16, kind.bytes), np.uint8)
    blocks[:, :4] = np.array([1 / 16, -1 / 2], "<f2").view(np.uint8)
    blocks[:, slice(*LAYOUTS[name].codes)] = 0x88
    numbers = Allowed("float32+ggml")
    rows = np.random.default_rng(6).normal(size=(5, 512)).astype(np.float32)
    weight = admitted(numbers, name, blocks)
    assert not np.any(weight.mid)
    given = product(kind, blocks, rows).astype(np.float64)
    assert np.abs(given).max() > 1e-4
    result = numbers.linear(Range(rows), weight, layout="out_in")
    assert numbers.judge(result, (), given).share <= 1


def test_values_below_the_normal_numbers_of_float16_are_usually_off_by_their_spacing() -> None:
    numbers = Allowed("float32+ggml")
    shares = Range(np.array([[[0.25, 0.75]]]))
    values = np.random.default_rng(7).normal(size=(1, 2, 64)) * 1e-6
    mixed = numbers.mix(shares, Range(values))
    given = shares.mid @ values.astype(np.float16).astype(np.float64)
    judged = numbers.judge(mixed, (), given)
    assert judged.follows
    assert mixed.usual is not None
    assert 0.2 < np.median(np.abs(given - mixed.mid) / mixed.usual) < 3

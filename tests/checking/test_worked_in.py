"""The format that numbers were worked out in, whatever they are kept in."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from byhand.checking.precisions import narrowest_format

NORMAL = np.random.default_rng(4).normal(size=(6, 50))
DTYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}


@pytest.mark.parametrize("name", DTYPES)
def test_numbers_of_a_narrower_format_are_known_by_themselves(name: str) -> None:
    worked_out = NORMAL.astype(DTYPES[name])
    masked = np.where(NORMAL > 1, -np.inf, worked_out.astype(np.float64))
    assert narrowest_format([worked_out.astype(np.float64), masked], "float64") == name
    if name != "float32":
        assert narrowest_format([worked_out.astype(np.float32)], "float32") == name


def test_one_array_that_needs_the_wider_format_is_enough() -> None:
    narrow, wide = NORMAL.astype(ml_dtypes.bfloat16).astype(np.float32), NORMAL.astype(np.float32)
    assert narrowest_format([narrow, wide], "float32") == "float32"
    assert narrowest_format([narrow, narrow + np.float32(2**-14)], "float32") == "float32"


def test_round_numbers_and_few_numbers_say_nothing() -> None:
    halves = np.arange(200, dtype=np.float32) / 2 % 8
    for array in (halves, np.zeros((9, 9), np.float32), np.full((40, 2), np.nan, np.float32)):
        assert narrowest_format([array], "float32") == "float32"
    few = NORMAL.astype(ml_dtypes.bfloat16).astype(np.float32)[0, :20]
    assert narrowest_format([few], "float32") == "float32"
    assert narrowest_format([], "float64") == "float64"

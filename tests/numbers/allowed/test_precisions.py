"""The classes of implementations by name."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from byhand.errors import InputError
from byhand.numbers.allowed import PRECISIONS, Allowed, Range, precision


def test_every_name_leads_to_its_precision() -> None:
    assert all(precision(name).name == name for name in PRECISIONS)
    assert {"exact", "float32", "transformers:bfloat16"} <= set(PRECISIONS)


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(InputError) as error:
        precision("bfloat61")
    assert "bfloat16" in str(error.value.hint)
    assert "transformers:float32" in str(error.value.expected)


def test_coarser_formats_allow_more() -> None:
    names = ("float64", "float32", "float16", "bfloat16")
    halves = [precision(name).store.half for name in names]
    assert halves == [2.0**-53, 2.0**-24, 2.0**-11, 2.0**-8]


def test_islands_are_finer_than_bfloat16_and_coarser_than_float64() -> None:
    assert precision("transformers:bfloat16").island.work.half == 2.0**-24
    assert precision("transformers:float64").island.work.half == 2.0**-24
    assert precision("transformers:float64").island.cast == 2.0**-24
    assert precision("bfloat16").island is precision("bfloat16")


@pytest.mark.parametrize("name", ["float16", "bfloat16", "autocast:float16"])
def test_inside_an_island_nothing_is_rounded_to_16_bits(name: str) -> None:
    x = Range(np.array([[900.0, -700.0, 300.0, 1200.0]]))  # squares that float16 does not hold
    numbers, single = Allowed(f"transformers:{name}"), Allowed("transformers:float32")
    inside = numbers.root(numbers.mean_square(x), eps=Fraction(0))
    finer = single.root(single.mean_square(x), eps=Fraction(0))
    assert (inside.radius() <= 2 * finer.radius()).all()


def test_a_number_system_says_whose_it_is() -> None:
    assert Allowed("transformers:float16").name == "allowed transformers:float16"

"""Exact weights become floats: each rounded once, to the nearest, ties to even."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from byhand.errors import InputError
from byhand.expression import parse
from byhand.numbers.base import ABSENT, Printed
from byhand.numbers.floats import FORMATS, Floats
from byhand.numbers.floats.formats import Format, narrowed
from byhand.numbers.floats.nearest import nearest

BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}
formats = st.sampled_from(list(FORMATS.values()))
sizes = st.builds(
    lambda top, bottom, power: Fraction(top, bottom) * Fraction(2) ** power,
    st.integers(-(2**60), 2**60),
    st.integers(1, 2**30),
    st.integers(-200, 60),
)


def is_nearest(value: Fraction, found: float, form: Format) -> bool:
    """Whether no neighbour is nearer, and of two that are as near, `found` is the even one."""
    here = np.array([abs(found)], dtype=form.dtype)
    assert float(here[0]) == abs(found), "not a number of the format"
    bits = here.view(BITS[form.dtype.itemsize])
    value = abs(value)
    off = abs(value - Fraction(abs(found)))
    for step in (-1, 1):
        if bits[0] == 0 and step < 0:
            continue
        neighbour = (bits + np.array([step]).astype(bits.dtype)).view(form.dtype)
        if not np.isfinite(neighbour[0]):
            continue
        other = abs(value - Fraction(float(neighbour[0])))
        if other < off or (other == off and bits[0] % 2):
            return False
    return True


@given(sizes, formats)
def test_a_rational_becomes_the_nearest_number(value: Fraction, form: Format) -> None:
    found = nearest(value, form)
    if np.isinf(found):
        assert abs(value) >= Fraction(form.largest)
    else:
        assert is_nearest(value, found, form)
        assert found == 0 or (found > 0) == (value > 0)


@given(st.integers(0, 2**15 - 1), st.sampled_from(["bfloat16", "float16"]))
def test_the_middle_of_two_neighbours_becomes_the_even_one(bits: int, name: str) -> None:
    form = FORMATS[name]
    low, high = np.array([bits, bits + 1], dtype=np.uint16).view(form.dtype).astype(float)
    if not np.isfinite([low, high]).all():
        return
    even, odd = (low, high) if bits % 2 == 0 else (high, low)
    middle = (Fraction(low) + Fraction(high)) / 2
    assert nearest(middle, form) == even
    tip = Fraction(1, 2**400)
    assert nearest(middle + tip, form) == high
    assert nearest(middle - tip, form) == low
    assert odd != even


@given(st.floats(), formats)
def test_an_array_of_float64_is_rounded_as_its_numbers_are(x: float, form: Format) -> None:
    with np.errstate(all="ignore"):
        found = float(narrowed(np.array([x]), form.dtype)[0])
    if np.isfinite(x):
        assert found == nearest(Fraction(x), form)
        assert np.signbit(found) == np.signbit(x)
    else:
        assert found == x or (np.isnan(found) and np.isnan(x))


def test_float64_goes_to_bfloat16_without_a_stop_at_float32() -> None:
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40, -1 - 2.0**-8 - 2.0**-50])
    found = narrowed(x, np.dtype(bfloat16)).astype(float)
    assert found.tolist() == [1 + 2.0**-7, 1 + 2.0**-7, -1 - 2.0**-7]


@given(st.integers(0, 2**16 - 1), st.sampled_from(["bfloat16", "float16"]))
def test_float16_and_bfloat16_are_each_rounded_to_the_other_once(bits: int, name: str) -> None:
    source, other = FORMATS[name], FORMATS["float16" if name == "bfloat16" else "bfloat16"]
    x = np.array([bits], dtype=np.uint16).view(source.dtype)
    with np.errstate(all="ignore"):
        found = float(narrowed(x, other.dtype)[0])
    if np.isfinite(x[0]):
        assert found == nearest(Fraction(float(x[0])), other)


@given(st.integers(1, 10**9), st.integers(1, 10**3), formats)
def test_a_named_weight_becomes_the_nearest_number(top: int, bottom: int, form: Format) -> None:
    value = parse(f"sqrt({top})/{bottom}")
    found = Floats(form.name).admit(np.array([value], dtype=object))[0]
    here = Fraction(float(found))
    neighbours = np.array([found], dtype=form.dtype).view(BITS[form.dtype.itemsize])
    for step in (-1, 1):
        beside = (neighbours + np.array([step]).astype(neighbours.dtype)).view(form.dtype)[0]
        middle = (here + Fraction(float(beside))) / 2
        below = middle * middle * bottom * bottom < top  # the middle lies below √top/bottom
        assert below if step < 0 else not below


def objects(*entries: Any) -> Any:
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def test_every_kind_of_exact_weight_is_admitted() -> None:
    data = objects(
        Fraction(1, 3), parse("sqrt(2)/2"), Printed(Fraction("0.1234"), 4), 3, 0.5, np.float16(0.1)
    )
    found = Floats("float64").admit(data)
    assert found.dtype == np.float64
    assert found.tolist() == [1 / 3, 0.7071067811865476, 0.1234, 3.0, 0.5, float(np.float16(0.1))]


def test_a_named_weight_that_is_a_rational_after_all_is_rounded_as_one() -> None:
    tie = parse("exp(ln(1 + 1/256))")  # the middle between 1 and 1 + 2^-7, named
    assert Floats("bfloat16").admit(objects(tie))[0] == 1


def test_absent_weights_are_masked() -> None:
    found = Floats("float16").admit(objects(Fraction(1, 2), ABSENT))
    assert found.mask.tolist() == [False, True]
    assert found.data.tolist() == [0.5, -np.inf]


@pytest.mark.parametrize(
    ("entry", "shown"),
    [(Fraction(70000), "70000"), (np.float32(70000), "70000.0"), (parse("exp(20)"), "exp(20)")],
)
def test_a_weight_too_large_for_the_format_is_refused(entry: Any, shown: str) -> None:
    data = np.array([1, entry]) if isinstance(entry, np.floating) else objects(1, entry)
    with pytest.raises(InputError) as caught:
        Floats("float16").admit(data)
    assert str(caught.value) == (
        f"the entry [1] is too large for float16\n  expected: at most 65504\n  found: {shown}"
    )


def test_numbers_beyond_all_formats_are_refused_without_being_written_out() -> None:
    with pytest.raises(InputError, match=r"the entry \[0\] is too large for float64"):
        Floats("float64").admit(objects(parse("exp(exp(10))")))
    assert Floats("float64").admit(objects(parse("exp(-exp(10))")))[0] == 0


def test_infinities_and_nan_pass_as_they_are() -> None:
    found = Floats("float16").admit(np.array([np.inf, -np.inf, np.nan]))
    assert found[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(found[2])


def test_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="not a number"):
        Floats("float32").admit(objects("1/3"))


def test_whole_numbers_and_foreign_byte_orders_are_read() -> None:
    assert Floats("float32").admit(np.array([[1, 2**24 + 1]])).tolist() == [[1.0, 2.0**24]]
    assert Floats("float32").admit(np.array([1.5], dtype=">f4")).tolist() == [1.5]

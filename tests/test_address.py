"""Addresses read back as they are written, and say what is wrong where they cannot be read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.address import Address, read_address, within, write_index
from byhand.errors import AddressError, ByhandError

NAMES = st.from_regex(r"[a-z_*][a-z0-9_*]{0,5}(\.[a-z0-9_*]{1,5}){0,3}", fullmatch=True)
WHOLES = st.integers(-999_999_999, 999_999_999)
SLICES = st.builds(slice, st.none() | WHOLES, st.none() | WHOLES)


@given(NAMES, st.lists(WHOLES | SLICES, max_size=4))
def test_an_address_reads_back_as_it_is_written(name: str, places: list[int | slice]) -> None:
    address = Address(name, tuple(places))
    assert read_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "name", "index"),
    [
        ("logits", "logits", ()),
        ("  logits [ 0 , -1 ] ", "logits", (0, -1)),
        ("block.0.attn.scores[1,2,0]", "block.0.attn.scores", (1, 2, 0)),
        ("stream.0[:,1:3]", "stream.0", (slice(None), slice(1, 3))),
        ("stream.0[ -2 : ]", "stream.0", (slice(-2, None),)),
        ("stream.0[+1]", "stream.0", (1,)),
        ("block.*.attn.out", "block.*.attn.out", ()),
        ("weight.block.0.attn.q[0,0]", "weight.block.0.attn.q", (0, 0)),
    ],
)
def test_spaces_signs_and_slices_are_read(
    text: str, name: str, index: tuple[int | slice, ...]
) -> None:
    assert read_address(text) == Address(name, index)


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "a.", ".a", "a..b", "a b", "a[", "a]", "a[0", "a[0]]", "a[[0]]", "a[0][1]",
     "[0]", "a-b", "a(0)", "a[0]b"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError) as caught:
        read_address(text)
    assert caught.value.message == "this is not an address"
    assert caught.value.found == repr(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a[]", "''"),
        ("a[,]", "''"),
        ("a[0,]", "''"),
        ("a[x]", "'x'"),
        ("a[1.5]", "'1.5'"),
        ("a[1:2:3]", "'1:2:3'"),
        ("a[- 1]", "'- 1'"),
        ("a[1000000000]", "'1000000000'"),
        ("a[٣]", "'٣'"),
    ],
)
def test_what_is_no_index_is_refused_with_the_place_that_is_wrong(text: str, found: str) -> None:
    with pytest.raises(AddressError) as caught:
        read_address(text)
    assert caught.value.message == "this is not an index"
    assert caught.value.found == found


def test_a_number_of_five_thousand_digits_is_refused_like_any_other() -> None:
    with pytest.raises(AddressError, match="this is not an index"):
        read_address(f"logits[{'9' * 5000}]")


@given(st.text("ab.[]0123:,-+ *_", max_size=12))
def test_nothing_but_our_own_error_comes_out(text: str) -> None:
    try:
        address = read_address(text)
    except ByhandError:
        return
    assert read_address(str(address)) == address


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.lists(st.integers(-6, 6), max_size=4)
)
def test_an_index_within_the_shape_means_what_it_means_in_numpy(
    sides: list[int], places: list[int]
) -> None:
    shape, table = tuple(sides), np.arange(int(np.prod(sides))).reshape(sides)
    address = Address("x", tuple(places))
    try:
        expected = table[tuple(places)]
    except IndexError:
        with pytest.raises(AddressError):
            within(address, shape)
        return
    index = within(address, shape)
    assert np.array_equal(table[index], expected)
    assert all(isinstance(place, int) and place >= 0 for place in index)


def test_an_index_outside_says_where_it_should_lie() -> None:
    with pytest.raises(AddressError) as caught:
        within(read_address("logits[0,3]"), (2, 3))
    assert caught.value.where == "logits[0,3]"
    assert caught.value.expected == "a place from 0 to 2, the shape is 2 × 3"
    assert caught.value.found == "3"


def test_too_many_places_say_how_many_there_are() -> None:
    with pytest.raises(AddressError) as caught:
        within(read_address("logits[0,1,2]"), (2, 3))
    assert caught.value.expected == "at most 2, the shape is 2 × 3"


def test_no_index_is_written_as_nothing() -> None:
    assert write_index(()) == ""

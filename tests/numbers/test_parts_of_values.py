"""Rows and columns taken out of values, and rows stacked: nothing is computed, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand.numbers.base import Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.forms import Forms, PreciseForms
from byhand.numbers.pencil import Pencil

RNG = np.random.default_rng(3)
TABLE = np.round(RNG.standard_normal((5, 6)) * 8).astype(np.float32) / 16
MATRIX = np.round(RNG.standard_normal((6, 6)) * 8).astype(np.float32) / 16
SYSTEMS = [
    *(Exact(), Balls(80), Limbs(80), Floats("float32"), Floats("bfloat16"), Pencil(3)),
    *(Forms(), PreciseForms()),
]


def systems() -> list[Numbers]:
    from byhand.numbers.tensors import Tensors

    return [*SYSTEMS, Tensors("float32")]


def same(x: Any, y: Any) -> bool:
    """The same entry; of enclosures: one that is no narrower than the one it was."""
    if isinstance(x, Enclosure):
        return x.mid == y.mid and x.rad >= y.rad
    return bool(x == y)


def normalized(numbers: Numbers) -> Any:
    """Five rows that limbs know with a radius for each row."""
    rows = numbers.embed(numbers.admit(TABLE), range(5))
    by = numbers.root(numbers.mean_square(rows), eps=Fraction(1, 3))
    return numbers.normalize(rows, by)


def rows_of(numbers: Numbers) -> Any:
    """Five rows that limbs know with a radius for each entry."""
    return numbers.linear(normalized(numbers), numbers.admit(MATRIX), layout="in_out")


@pytest.mark.parametrize("made", [normalized, rows_of])
@pytest.mark.parametrize("numbers", SYSTEMS, ids=lambda numbers: numbers.name)
def test_rows_are_taken_in_the_order_asked_for(
    numbers: Numbers, made: Callable[[Numbers], Any]
) -> None:
    rows = made(numbers)
    whole, part = numbers.entries(rows), numbers.entries(numbers.take_rows(rows, [3, 0, 3]))
    assert part.shape == (3, 6)
    for i, j in np.ndindex(3, 6):
        assert same(part[i, j], whole[(3, 0, 3)[i], j])


@pytest.mark.parametrize("made", [normalized, rows_of])
@pytest.mark.parametrize("numbers", SYSTEMS, ids=lambda numbers: numbers.name)
def test_columns_are_taken_of_every_row(numbers: Numbers, made: Callable[[Numbers], Any]) -> None:
    rows = made(numbers)
    whole, part = numbers.entries(rows), numbers.entries(numbers.take_columns(rows, [5, 1]))
    assert part.shape == (5, 2)
    for i, j in np.ndindex(5, 2):
        assert same(part[i, j], whole[i, (5, 1)[j]])


@pytest.mark.parametrize("numbers", SYSTEMS, ids=lambda numbers: numbers.name)
def test_one_number_for_each_row_is_taken_like_a_row(numbers: Numbers) -> None:
    by = numbers.root(numbers.mean_square(rows_of(numbers)), eps=Fraction(1, 3))
    whole, part = numbers.entries(by), numbers.entries(numbers.take_rows(by, [4, 4, 1]))
    assert part.shape == (3,)
    assert all(same(part[i], whole[place]) for i, place in enumerate((4, 4, 1)))


@pytest.mark.parametrize("numbers", SYSTEMS, ids=lambda numbers: numbers.name)
def test_rows_are_stacked_head_by_head(numbers: Numbers) -> None:
    rows = rows_of(numbers)
    heads = numbers.split_heads(rows, start=0, heads=2, width=3, stride=3)  # (2, 5, 3)
    exact = numbers.embed(numbers.admit(TABLE[:, :3]), [2])
    stack = numbers.entries(numbers.stack_rows([exact, heads]))
    parts, whole = numbers.entries(heads), numbers.entries(exact)
    assert stack.shape == (11, 3)
    for j in range(3):
        assert same(stack[0, j], whole[0, j])
        assert all(same(stack[1 + 5 * h + i, j], parts[h, i, j]) for h in (0, 1) for i in range(5))


def test_tensors_are_taken_and_stacked_as_floats_are() -> None:
    pytest.importorskip("torch")
    ours, theirs = Floats("float32"), systems()[-1]
    for work in (
        lambda n: n.take_rows(rows_of(n), [3, 0, 3]),
        lambda n: n.take_columns(rows_of(n), [5, 1]),
        lambda n: n.stack_rows([rows_of(n), n.embed(n.admit(TABLE), [2])]),
    ):
        np.testing.assert_allclose(work(ours), theirs.entries(work(theirs)), rtol=1e-6)


@pytest.mark.parametrize("numbers", SYSTEMS[:5], ids=lambda numbers: numbers.name)
def test_some_shares_of_a_softmax_mix_as_their_numbers_say(numbers: Numbers) -> None:
    """Of a part of a row nothing holds that is known of the whole: that shares add up to 1."""
    v = numbers.split_heads(rows_of(numbers), start=0, heads=2, width=3, stride=3)
    mask = tuple(tuple(key <= query for key in range(5)) for query in range(5))
    scores = numbers.scores(v, v, mask=mask, queries=range(5), keys=range(5))
    shares = numbers.softmax(scores)
    whole = numbers.mix(shares, v)
    parts = [
        numbers.mix(numbers.take_columns(shares, [key]), numbers.take_rows(v, [key]))
        for key in range(5)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = numbers.add(total, part)
    for one, other in zip(
        np.asarray(numbers.entries(total)).ravel(),
        np.asarray(numbers.entries(whole)).ravel(),
        strict=True,
    ):
        if isinstance(one, Enclosure):
            assert one.overlaps(other)
            assert one.rad < 1e-15
        elif isinstance(numbers, Exact):
            assert one == other
        else:
            assert float(one) == pytest.approx(float(other), abs=2e-2)


def test_a_part_of_a_limbs_row_holds_the_real_numbers_wherever_they_are() -> None:
    """Against Arb: each share of a key times its value, at a precision that leaves wide radii."""
    coarse, fine = Limbs(24), Balls(200)
    found = []
    for numbers in (coarse, fine):
        v = numbers.split_heads(rows_of(numbers), start=0, heads=2, width=3, stride=3)
        mask = ((True,) * 5,) * 5
        shares = numbers.softmax(numbers.scores(v, v, mask=mask, queries=range(5), keys=range(5)))
        part = numbers.take_columns(numbers.take_rows(shares, [2, 4]), [1])
        found.append(numbers.entries(numbers.mix(part, numbers.take_rows(v, [1]))))
    for place in np.ndindex(2, 2, 3):
        assert found[0][place].rad > 1e-12
        assert found[0][place].contains(found[1][place])

"""Hulls: every row is in its hull, and no hull has more free numbers than it needs."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from byhand.models import open_model
from byhand.proving.domain import Place, Region, Shape, Variable, Whole
from byhand.proving.search.hulls import Embedding, Hull, hull
from byhand.proving.search.region_forms import RegionForms

F = Fraction


def rows_of(*rows: list[int | Fraction]) -> list[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    return [(tuple(map(F, row)), (F(0),) * len(row)) for row in rows]


def made(found: Hull, number: int, which: int) -> list[Fraction]:
    """The row that a hull makes of a token."""
    row = [b + s * number for b, s in zip(found.base, found.slope, strict=True)]
    for weight, direction in zip(found.weights[which], found.directions, strict=True):
        row = [x + weight * d for x, d in zip(row, direction, strict=True)]
    return row


def test_rows_on_a_line_over_their_numbers_need_nothing_but_the_number() -> None:
    found = hull((2, 3, 5), rows_of([2, 7, 0], [3, 7, -1], [5, 7, -3]))
    assert found.slope == (1, 0, -1)
    assert found.base == (0, 7, 2)
    assert found.directions == ()
    assert not any(found.error)


def test_one_hot_rows_get_a_number_from_0_to_1_for_each_but_the_first() -> None:
    found = hull((0, 1, 2), rows_of([1, 0, 0], [0, 1, 0], [0, 0, 1]))
    assert found.directions == ((-1, 1, 0), (-1, 0, 1))
    assert found.ends == ((0, 1), (0, 1))
    assert found.weights == ((0, 0), (1, 0), (0, 1))


def test_columns_on_a_line_use_the_number_and_only_the_others_a_hull() -> None:
    found = hull((0, 1, 2, 3), rows_of(*([n, n * n, 2 * n * n] for n in range(4))))
    assert found.slope == (1, 0, 0)
    assert found.directions == ((0, 1, 2),)
    assert found.ends == ((0, 9),)


def test_every_row_of_random_tables_is_in_its_hull_of_the_smallest_dimension() -> None:
    random = Random(1)
    for _table in range(60):
        width, rank = random.randint(1, 6), random.randint(1, 3)
        basis = [[random.randint(-2, 2) for _column in range(width)] for _row in range(rank)]
        rows = []
        for _row in range(random.randint(2, 6)):
            weights = [F(random.randint(-3, 3), 3) for _one in basis]
            columns = zip(*basis, strict=True)
            rows.append(
                [sum(w * x for w, x in zip(weights, column, strict=True)) for column in columns]
            )
        numbers = tuple(range(len(rows)))
        found = hull(numbers, rows_of(*rows))
        for number, row in enumerate(rows):
            assert made(found, number, number) == row
        floats = np.array([[float(x) for x in row] for row in rows])
        assert len(found.directions) <= np.linalg.matrix_rank(floats - floats[0])
        assert not any(found.error)


def test_a_row_that_is_known_within_a_radius_keeps_it_as_an_error() -> None:
    rows = [((F(n), F(1)), (F(1, 100), F(0))) for n in range(3)]
    assert hull((0, 1, 2), rows).error == (F(1, 100), 0)


def test_a_relation_between_places_cancels_by_algebra() -> None:
    """b = s - a: the letters of a in the rows of a and b add up to 0."""
    model = open_model("docs/examples/thermometer.yaml")
    digits = {n: n + 2 for n in range(10)}
    shape = Shape(
        (
            Place(Whole(0, (("a", 1),)), digits),
            Place(Whole(0, (("a", -1), ("s", 1))), digits),
        ),
        (Variable("a", tuple(range(10))), Variable("s", tuple(range(19)))),
    )
    whole = shape.whole
    assert isinstance(whole, Region)
    forms = RegionForms(shape, Embedding(model))
    terms, errors, keys = forms.of([[forms.held(position, whole) for position in range(2)]])
    assert keys == ["a", "s"]
    assert not errors.any()
    total = terms.sum(axis=2)[:, 0, 0]  # of the digits' column
    assert total.tolist() == [9.0, 0.0, 9.0]

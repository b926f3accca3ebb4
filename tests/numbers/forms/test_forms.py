"""What can be asked of forms: ends, influence, cases, differences, letters of weights and texts."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from byhand.errors import InputError
from byhand.evaluate import trace
from byhand.expression import parse
from byhand.models import open_model
from byhand.numbers.base import Printed, Within
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.exact import Exact
from byhand.numbers.forms import (
    Form,
    Forms,
    PreciseForms,
    differences,
    ends,
    influence,
    take_cases,
)

SYSTEMS = pytest.mark.parametrize("numbers", [Forms(), PreciseForms()], ids=["float64", "arb"])


def form(*rows: list[float]) -> Any:
    """One case and one entry: the middle, and the coefficients of letters."""
    return np.array(rows, dtype=np.float64)[:, None]


@SYSTEMS
def test_a_digit_and_what_is_left_of_a_sum_cancel(numbers: Forms) -> None:
    digit = numbers.given(form([4.5, 4.5], [4.5, 4.5]))
    rest = numbers.given(form([4.5, 13.5], [-4.5, -4.5]))  # 9 or 18, less the digit
    low, high = ends(numbers.add(digit, rest))
    assert low == pytest.approx(np.array([[9, 18]]), abs=1e-13)
    assert (high - low < 1e-13).all()
    assert influence(numbers.add(digit, rest)).tolist() == [[[0.0, 0.0]]]


def test_forms_that_are_linear_in_letters_have_exact_ends() -> None:
    random = Random(5)
    numbers = Forms()
    matrix = np.array([[Fraction(random.randrange(-99, 99), 7) for _j in range(6)]
                       for _i in range(8)], dtype=object)  # fmt: skip
    terms = np.array([random.uniform(-3, 3) for _k in range(5 * 8)]).reshape(5, 1, 1, 8)
    low, high = ends(numbers.linear(numbers.given(terms), numbers.admit(matrix), layout="in_out"))
    for column in range(6):
        parts = [
            sum(Fraction(terms[k, 0, 0, i]) * matrix[i, column] for i in range(8)) for k in range(5)
        ]
        far = sum(map(abs, parts[1:]))
        exact = parts[0] - far, parts[0] + far
        size = sum(abs(Fraction(x) * matrix[i, column]) for (*_k, i), x in np.ndenumerate(terms))
        found = Fraction(low[0, 0, column]), Fraction(high[0, 0, column])
        assert 0 <= exact[0] - found[0] < size * Fraction(1, 2**47)
        assert 0 <= found[1] - exact[1] < size * Fraction(1, 2**47)


@SYSTEMS
def test_ends_are_rounded_outward(numbers: Forms) -> None:
    thirds = numbers.admit(np.array([Fraction(1, 3), Fraction(-2, 3), Fraction(5)], dtype=object))
    low, high = ends(thirds)
    assert [
        Fraction(x) <= y <= Fraction(z)
        for x, y, z in zip(
            low[0], (Fraction(1, 3), Fraction(-2, 3), Fraction(5)), high[0], strict=True
        )
    ] == [True] * 3
    assert low[0, 2] == high[0, 2] == 5


@SYSTEMS
def test_numbers_that_no_float_holds_are_enclosed(numbers: Forms) -> None:
    entries = [parse("sqrt(2)/2"), parse("exp(80)"), parse("exp(1000)"), Fraction(1, 10**400)]
    low, high = ends(numbers.admit(np.array(entries, dtype=object)))
    assert low[0, 0] <= 0.7071067811865476 <= high[0, 0] < 0.70710678118655
    assert low[0, 1] == pytest.approx(5.54062238439351e34) == high[0, 1] > low[0, 1]
    assert high[0, 2] == np.inf
    assert low[0, 3] <= 0 < high[0, 3] < 1e-300


@SYSTEMS
def test_differences_cancel_what_logits_share(numbers: Forms) -> None:
    logits = numbers.given(np.array([[[1.0, 2.0, 4.0]] * 2, [[9.0, 9.0, 8.0]] * 2]))
    apart = differences(logits, np.array([2, 0]))
    low, high = ends(apart)
    assert low == pytest.approx(np.array([[2, 1, 0], [0, -1, -4]]), abs=1e-13)
    assert high == pytest.approx(np.array([[4, 3, 0], [0, -1, -2]]), abs=1e-13)
    assert low[0, 2] == high[0, 2] == 0


@SYSTEMS
def test_cases_are_taken_repeated_and_joined(numbers: Forms) -> None:
    keys = numbers.given(np.arange(12.0).reshape(2, 3, 1, 1, 2))
    taken = take_cases(keys, [2, 0, 2])
    assert ends(taken)[0][:, 0, 0, 0].tolist() == pytest.approx([4 - 10, 0 - 6, 4 - 10])
    one = numbers.admit(np.array([[[7.0, 8.0]]]))
    joined = numbers.join(one, taken)
    assert joined.shape == (1, 2, 2)
    assert ends(joined)[1][:, 0, :, 0] == pytest.approx(np.array([[7, 14], [7, 6], [7, 14]]))
    assert take_cases(one, [0, 0]) is one


def test_weights_have_the_first_letters_and_texts_the_others() -> None:
    numbers = Forms(lettered=3)
    weights = np.array([Within(Fraction(1), Fraction(1, 4)), Printed(Fraction(2), 1)], dtype=object)
    first = numbers.admit(weights)
    many = numbers.admit(np.array([weights[0]] * 2, dtype=object))  # too many for one letter left
    text = numbers.given(form([0.0], [1.0]))
    late = numbers.admit(weights[:1])
    assert numbers.weight_letters == 2
    assert first.terms[:, 0].tolist() == [[1, 2], [0.25, 0], [0, pytest.approx(0.05)]]
    assert (len(many.terms), len(late.terms)) == (1, 1)
    assert many.errors[0, 0].tolist() == pytest.approx([0.25, 0.25])
    assert text.terms[:, 0, 0].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("numbers", [Exact(), Balls(64)], ids=["exact", "balls"])
def test_weights_within_a_radius_are_known_to_other_systems(numbers: Any) -> None:
    entry = numbers.admit(np.array([Within(Fraction(1, 2), Fraction(1, 8))], dtype=object))
    (double,) = numbers.entries(numbers.add(entry, entry))
    assert tuple(map(float, double.interval(10))) == pytest.approx((1, 0.25), abs=0.011)


@SYSTEMS
def test_one_key_alone_has_the_whole_share(numbers: Forms) -> None:
    scores = numbers.given(np.array([[[[1e300]]], [[[1e300]]]])[:, None])
    shares = numbers.softmax(scores)
    assert ends(shares)[0].item() == ends(shares)[1].item() == 1


@SYSTEMS
def test_equal_scores_share_equally_whatever_they_have_in_common(numbers: Forms) -> None:
    scores = numbers.given(np.array([[[[[3.0, 3.0, 3.0]]]], [[[[50.0, 50.0, 50.0]]]]]))
    low, high = ends(numbers.softmax(scores))
    assert low.ravel().tolist() == pytest.approx([1 / 3] * 3, abs=1e-12)
    assert (high - low < 1e-11).all()


@SYSTEMS
def test_shares_are_never_beyond_those_of_the_ends(numbers: Forms) -> None:
    scores = numbers.given(np.array([[[[[0.0, 0.0]]]], [[[[5.0, -5.0]]]]]))
    low, high = ends(numbers.softmax(scores))
    assert low.min() == pytest.approx(1 / (1 + np.exp(10)), rel=1e-6)
    assert high.max() == pytest.approx(1 / (1 + np.exp(-10)), rel=1e-6)


@SYSTEMS
def test_what_is_mixed_lies_between_the_values(numbers: Forms) -> None:
    scores = numbers.given(np.array([[[[[0.0, 0.0]]]], [[[[500.0, -500.0]]]]]))
    values = numbers.admit(np.array([[[10.0], [11.0]]]))
    low, high = ends(numbers.mix(numbers.softmax(scores), values))
    assert 9.999 < low.item() <= 10
    assert 11 <= high.item() < 11.001


@SYSTEMS
def test_a_row_of_zeros_over_zero_is_zero_and_other_cases_go_on(numbers: Forms) -> None:
    rows = numbers.given(np.array([[[[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 0.0]]],
                                   [[[0.0, 0.0]], [[0.0, 0.0]], [[1.0, 0.0]]]]))  # fmt: skip
    by = numbers.root(numbers.mean_square(rows), eps=Fraction(0))
    low, high = ends(numbers.normalize(rows, by))
    assert low[0].tolist() == high[0].tolist() == [[0, 0]]
    assert low[1, 0] == pytest.approx([0.6 * 2**0.5, 0.8 * 2**0.5])
    assert (low[2, 0, 0], high[2, 0, 0]) == pytest.approx((-(2**0.5), 2**0.5))


@SYSTEMS
def test_the_largest_is_proven_for_all_cases_or_undecided(numbers: Forms) -> None:
    leads = numbers.given(np.array([[[[1.0, 3.0, 2.0]]] * 2, [[[0.0, 0.5, 0.4]]] * 2]))
    (found,) = numbers.argmax(leads)
    assert (found.id, found.proven) == (1, True)
    assert float(found.margin) == pytest.approx(1, abs=0.11)
    (open_,) = numbers.argmax(numbers.given(np.array([[[[1.0, 1.2, 0.0]]], [[[0.5, 0.0, 0.1]]]])))
    assert (open_.id, open_.candidates) == (None, (0, 1))
    (tied,) = numbers.argmax(numbers.given(np.array([[[[2.0, 5.0, 5.0]]]])))
    assert (tied.id, tied.tied) == (1, (1, 2))


def test_what_forms_cannot_do_is_said() -> None:
    numbers = Forms()
    assert not numbers.learns
    with pytest.raises(InputError, match="cannot work out gradients"):
        numbers.losses(numbers.admit(np.ones((1, 2))), [0])
    with pytest.raises(InputError, match="no activation"):
        numbers.activate(numbers.admit(np.ones((1, 2))), kind="sine")
    with pytest.raises(InputError, match="not a finite number"):
        numbers.admit(np.array([np.nan]))


@SYSTEMS
def test_entries_are_enclosures_of_all_cases(numbers: Forms) -> None:
    value = numbers.given(np.array([[[1.0], [5.0]], [[0.5], [0.5]]]))
    (entry,) = numbers.entries(value)
    assert (float(entry.lower), float(entry.upper)) == pytest.approx((0.5, 5.5))


def test_overflow_claims_nothing_and_is_never_nan() -> None:
    numbers = Forms()
    huge = numbers.given(np.full((2, 1, 1, 2), 1e308))
    for value in (numbers.add(huge, huge), numbers.multiply(huge, huge), numbers.mean_square(huge)):
        assert np.isfinite(value.terms).all()
        assert np.isinf(value.errors[0]).all()
        low, high = ends(value)
        assert (low == -np.inf).all()
        assert (high == np.inf).all()


def test_an_infinite_value_that_no_query_sees_does_no_harm() -> None:
    numbers = Forms()
    values = Form(np.array([[[[[1.0], [2.0]]]]]), np.array([[[[[0.0], [np.inf]]]]]))
    scores = numbers.admit(np.array([[[0.0, 0.0], [0.0, 0.0]]]))
    scores.absent = np.array([[[[False, True], [False, False]]]])
    low, high = ends(numbers.mix(numbers.softmax(scores), values))
    assert (low[0, 0, 0, 0], high[0, 0, 0, 0]) == pytest.approx((1, 1))
    assert high[0, 0, 1, 0] == np.inf


@SYSTEMS
def test_a_trace_in_forms_holds_the_exact_one(numbers: Forms) -> None:
    model = open_model("abc")
    exact, found = trace(model, model.text), trace(model, model.text, numbers)
    for step in exact.plan:
        if step.op not in ("given", "argmax"):
            for index, entry in exact[step.address].entries():
                enclosure = found[step.address].at(index)
                assert (entry is None) == (enclosure is None)
                if entry is not None:
                    middle, radius = map(Fraction, entry.interval(40))
                    assert enclosure.overlaps(Enclosure(middle, radius))
                    assert enclosure.rad < 1e-12
    assert [one.id for one in exact.next] == [one.id for one in found.next]

"""What floats do beside being near: views, masks, ties, notes, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand.errors import InputError
from byhand.numbers.base import ABSENT, Note, Numbers
from byhand.numbers.floats import FORMATS, Floats
from byhand.numbers.tensors import Tensors
from byhand.spec import over_root

SEE_ALL = ((True, True), (True, True))
CAUSAL = ((True, False), (True, True))
SYSTEMS = [
    *(pytest.param(Floats(name), id=name) for name in FORMATS),
    *(pytest.param(Tensors(name), id=f"{name} on cpu") for name in FORMATS),
]
every_system = pytest.mark.parametrize("numbers", SYSTEMS)


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.fixture(autouse=True)
def _no_old_notes() -> None:
    for system in SYSTEMS:
        system.values[0].notes.clear()  # type: ignore[attr-defined]


# ------------------------------------------------------------------ products and heads


@every_system
def test_a_matrix_may_be_a_view_of_a_larger_one(numbers: Numbers) -> None:
    packed = numbers.admit(random(6, 12))
    x = numbers.admit(random(3, 6, seed=1))
    whole = numbers.linear(x, packed, layout="in_out")
    part = numbers.linear(x, packed[:, 4:8], layout="in_out")
    assert np.allclose(whole_of(numbers, whole)[:, 4:8], whole_of(numbers, part), rtol=0.02)


def whole_of(numbers: Numbers, value: Any) -> Any:
    array = numbers.entries(value)
    if isinstance(array, np.ma.MaskedArray):
        return np.ma.MaskedArray(array.data.astype(np.float64), mask=array.mask)
    return array.astype(np.float64)


@every_system
def test_positions_are_joined_one_after_the_other(numbers: Numbers) -> None:
    x, y = numbers.admit(random(2, 3, 4)), numbers.admit(random(2, 1, 4, seed=1))
    joined = whole_of(numbers, numbers.join(x, y))
    assert joined.shape == (2, 4, 4)
    assert np.array_equal(joined[:, :3], whole_of(numbers, x))
    assert np.array_equal(joined[:, 3:], whole_of(numbers, y))


# ------------------------------------------------------------------ masks


def scores(numbers: Numbers, q: Any, k: Any, mask: Any, table: Any = None) -> Any:
    places = tuple(range(len(mask)))
    return numbers.scores(numbers.admit(q), numbers.admit(k), scale=over_root(4), mask=mask,
                          queries=places, keys=places, table=table)  # fmt: skip


@every_system
def test_masked_scores_are_absent_and_masked_weights_are_zero(numbers: Numbers) -> None:
    found = scores(numbers, random(2, 2, 4), random(1, 2, 4, seed=1), CAUSAL)
    array = whole_of(numbers, found)
    assert array.mask.tolist() == [[[False, True], [False, False]]] * 2
    assert array.data[:, 0, 1].tolist() == [-np.inf, -np.inf]
    weights = whole_of(numbers, numbers.softmax(found))
    assert weights.mask.tolist() == array.mask.tolist()
    assert weights.data[:, 0].tolist() == [[1, 0], [1, 0]]


@every_system
def test_without_a_mask_scores_are_a_plain_array(numbers: Numbers) -> None:
    found = scores(numbers, random(1, 2, 4), random(1, 2, 4, seed=1), SEE_ALL)
    assert not isinstance(numbers.entries(found), np.ma.MaskedArray)
    assert np.allclose(whole_of(numbers, numbers.softmax(found)).sum(-1), 1, atol=0.02)


@every_system
def test_softmax_of_large_scores_does_not_overflow(numbers: Numbers) -> None:
    shares = numbers.softmax(numbers.admit(np.array([[30000.0, 30000.0], [-30000.0, 30000.0]])))
    assert whole_of(numbers, shares).tolist() == [[0.5, 0.5], [0.0, 1.0]]


@every_system
def test_absent_entries_of_a_table_mask_scores(numbers: Numbers) -> None:
    table = np.array([[[Fraction(1), ABSENT], [Fraction(2), Fraction(3)]]], dtype=object)
    zeros = np.zeros((1, 2, 4))
    found = whole_of(numbers, scores(numbers, zeros, zeros, SEE_ALL, numbers.admit(table)))
    assert found.mask.tolist() == [[[False, True], [False, False]]]
    assert found.compressed().tolist() == [1, 2, 3]


@every_system
def test_key_heads_are_shared_by_neighbouring_query_heads(numbers: Numbers) -> None:
    q, k = random(4, 2, 4), random(2, 2, 4, seed=1)
    found = whole_of(numbers, scores(numbers, q, k, SEE_ALL))
    exact = q @ k[[0, 0, 1, 1]].transpose(0, 2, 1) / 2
    assert np.allclose(found, exact, atol=0.05)


@every_system
def test_a_value_nobody_may_see_does_no_harm_even_if_it_is_infinite(numbers: Numbers) -> None:
    weights = numbers.softmax(scores(numbers, random(2, 2, 4), random(1, 2, 4), CAUSAL))
    v = numbers.admit(np.array([[[1.0, 2.0], [np.inf, 4.0]]]))
    mixed = whole_of(numbers, numbers.mix(weights, v))
    assert mixed[:, 0].tolist() == [[1, 2], [1, 2]]
    assert mixed[:, 1, 0].tolist() == [np.inf, np.inf]


# ------------------------------------------------------------------ the next token


@every_system
def test_the_lowest_id_of_equal_logits_is_next_and_the_tie_is_told(numbers: Numbers) -> None:
    found = numbers.argmax(numbers.admit(np.array([[1.0, 3.0, 2.0, 3.0], [4.0, 0.0, 0.0, 1.5]])))
    tied, clear = found
    assert (tied.id, float(tied.margin), tied.tied, tied.proven) == (1, 0.0, (1, 3), False)
    assert (clear.id, float(clear.margin), clear.tied, clear.proven) == (0, 2.5, (), False)


@every_system
def test_the_margin_is_to_the_next_smaller_logit_wherever_it_stands(numbers: Numbers) -> None:
    found = numbers.argmax(numbers.admit(np.array([[2.0, 3.0, 0.0], [0.0, 3.0, 2.5]])))
    assert [float(prediction.margin) for prediction in found] == [1.0, 0.5]


@every_system
def test_one_logit_has_no_margin(numbers: Numbers) -> None:
    (only,) = numbers.argmax(numbers.admit(np.array([[0.5]])))
    assert (only.id, only.margin) == (0, None)


@every_system
def test_with_a_nan_logit_there_is_no_next_token(numbers: Numbers) -> None:
    found = numbers.argmax(numbers.admit(np.array([[1.0, 2.0], [1.0, np.nan]])))
    assert [prediction.id for prediction in found] == [1, None]
    assert numbers.notes == [Note("not-finite", (1,))]


@every_system
def test_infinite_logits_are_compared_as_others(numbers: Numbers) -> None:
    one, two = numbers.argmax(numbers.admit(np.array([[np.inf, 1.0], [np.inf, np.inf]])))
    assert (one.id, float(one.margin), one.tied) == (0, np.inf, ())
    assert (two.id, float(two.margin), two.tied) == (0, 0.0, (0, 1))


@every_system
def test_the_loss_of_a_token_without_probability_is_infinite(numbers: Numbers) -> None:
    probs = numbers.admit(np.array([[1.0, 0.0]]))
    assert whole_of(numbers, numbers.loss(probs, target=1)).tolist() == [np.inf]
    assert numbers.notes == [Note("not-finite", (0,))]
    sure = whole_of(numbers, numbers.loss(probs, target=0))
    assert sure.tolist() == [0.0]
    assert not np.signbit(sure[0])


# ------------------------------------------------------------------ notes


@every_system
def test_a_row_of_zeros_over_zero_is_zero_and_noted(numbers: Numbers) -> None:
    x = numbers.admit(np.array([[1.0, 2.0], [0.0, 0.0]]))
    found = numbers.normalize(x, numbers.admit(np.array([2.0, 0.0])))
    assert whole_of(numbers, found).tolist() == [[0.5, 1.0], [0.0, 0.0]]
    assert numbers.notes == [Note("zero-variance", (1,))]


@every_system
def test_another_row_over_zero_is_infinite_and_noted(numbers: Numbers) -> None:
    x = numbers.admit(np.array([[1.0, 2.0], [0.0, 5.0]]))
    found = whole_of(numbers, numbers.normalize(x, numbers.admit(np.array([2.0, 0.0]))))
    assert np.isnan(found[1, 0])
    assert found[1, 1] == np.inf
    assert numbers.notes == [Note("not-finite", (1, 0))]


@every_system
def test_the_first_entry_that_overflows_is_noted_once(numbers: Numbers) -> None:
    largest: float = numbers.format.largest  # type: ignore[attr-defined]
    x = numbers.admit(np.array([[1.0, largest, 3.0, largest]]))
    found = numbers.add(x, x)
    assert whole_of(numbers, found).tolist() == [[2, np.inf, 6, np.inf]]
    assert numbers.notes == [Note("not-finite", (0, 1))]
    numbers.notes.clear()
    numbers.add(found, x)  # its input is not finite already: nothing new
    assert numbers.notes == []


def test_float16_overflows_where_float32_does_not() -> None:
    numbers = Floats("float16")
    x, weight = numbers.admit(np.array([[300.0, 300.0]])), numbers.admit(np.array([[300.0, 1.0]]).T)
    assert numbers.linear(x, weight, layout="in_out").tolist() == [[np.inf]]
    assert numbers.notes == [Note("not-finite", (0, 0))]


@every_system
def test_large_but_finite_results_are_not_noted(numbers: Numbers) -> None:
    half: float = numbers.format.largest / 2  # type: ignore[attr-defined]
    x = numbers.admit(np.array([[half, half]]))
    assert np.isfinite(whole_of(numbers, numbers.add(x, x))).all()
    assert numbers.notes == []


@every_system
def test_an_overflowing_score_is_noted_and_a_masked_one_is_not(numbers: Numbers) -> None:
    big: float = float(np.sqrt(numbers.format.largest)) * 1.5  # type: ignore[attr-defined]
    q, k = np.ones((1, 2, 4)), np.ones((1, 2, 4))
    q[0, 0], k[0, 1] = big, big  # query 0 · key 1 overflows, and is masked
    scores(numbers, q, k, CAUSAL)
    assert numbers.notes == []
    scores(numbers, q, k, SEE_ALL)
    assert numbers.notes == [Note("not-finite", (0, 0, 1))]


@every_system
def test_an_overflow_within_a_head_is_noted_where_it_stands_in_the_result(numbers: Numbers) -> None:
    big: float = float(np.sqrt(numbers.format.largest)) * 1.5  # type: ignore[attr-defined]
    x, matrix = np.zeros((2, 3)), np.zeros((3, 8))
    x[1, 2] = matrix[2, 5] = big  # position 1, entry 1 of head 2 of four
    result = numbers.linear(numbers.admit(x), numbers.admit(matrix), layout="in_out", heads=4)
    assert numbers.notes == [Note("not-finite", (2, 1, 1))]
    assert np.isinf(numbers.entries(result)[2, 1, 1].astype(float))


# ------------------------------------------------------------------ angles


@pytest.mark.parametrize("make", [Floats, Tensors])
@pytest.mark.parametrize("format", list(FORMATS))
def test_given_frequencies_turn_as_exactly_as_computed_ones(
    make: Callable[[str], Numbers], format: str
) -> None:
    numbers = make(format)
    base = Fraction(10_000)
    settings = {"positions": (5, 1000), "width": 4, "base": base, "pairing": "half"}
    given_ones = np.array([Fraction(1), Fraction(1, 100)], dtype=object)
    frequencies = numbers.admit_frequencies(given_ones)
    x = numbers.admit(random(2, 2, 6))
    found = whole_of(numbers, numbers.rotate(x, frequencies=frequencies, **settings))
    assert np.array_equal(found, whole_of(numbers, numbers.rotate(x, **settings)))


# ------------------------------------------------------------------ what is said


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0000"),
        (-0.0, "0.0000"),
        (0.5, "0.5000"),
        (-12.34567, "-12.3457"),
        (0.001, "0.0010"),
        (0.0009999, "9.999e-04"),
        (-1e-9, "-1.000e-09"),
        (99999.0, "99999.0000"),
        (123456.0, "1.235e+05"),
        (1e30, "1.000e+30"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        (np.nan, "nan"),
    ],
)
@pytest.mark.parametrize("make", [Floats, Tensors])
def test_a_float_is_shown_short(make: Callable[[str], Any], number: float, text: str) -> None:
    assert make("float64").text(np.float64(number)) == text


@pytest.mark.parametrize("make", [Floats, Tensors])
def test_an_unknown_format_is_told_with_the_known_ones(make: Callable[[str], Numbers]) -> None:
    with pytest.raises(InputError) as caught:
        make("float23")
    assert str(caught.value) == (
        "there is no float format 'float23'\n"
        "  expected: float64, float32, bfloat16, float16\n"
        "  found: float23\n"
        "  hint: did you mean float32, float64, float16?"
    )


@every_system
def test_every_entry_is_rounded_and_the_name_says_the_format(numbers: Numbers) -> None:
    assert numbers.uniform == "rounded"
    assert numbers.register(1.0) == "rounded"
    assert numbers.name.split()[0] in FORMATS


@every_system
def test_an_unknown_activation_is_an_error(numbers: Numbers) -> None:
    with pytest.raises(InputError, match="there is no activation 'swish'"):
        numbers.activate(numbers.admit(np.ones((1, 1))), kind="swish")

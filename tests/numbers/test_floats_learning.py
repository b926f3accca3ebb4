"""What the operations of learning do in floats, on NumPy arrays and on tensors alike."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Note, Numbers
from byhand.numbers.floats import FORMATS, Floats
from byhand.numbers.floats.formats import narrowed, widened
from byhand.numbers.tensors import Masked, Tensors
from byhand.spec import over_root

CAUSAL = ((True, False, False), (True, True, False), (True, True, True))
PLACES = (0, 1, 2)
HALF = Fraction(1, 2)
SYSTEMS = [make(name) for make in (Floats, Tensors) for name in FORMATS]
every_system = pytest.mark.parametrize("numbers", SYSTEMS, ids=lambda numbers: numbers.name)


@pytest.fixture(autouse=True)
def _no_old_notes() -> None:
    for system in SYSTEMS:
        system.notes.clear()


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def whole_of(numbers: Numbers, value: Any) -> Any:
    array = numbers.entries(value)
    if isinstance(array, np.ma.MaskedArray):
        return np.ma.MaskedArray(array.data.astype(np.float64), mask=array.mask)
    return array.astype(np.float64)


def close(numbers: Any, found: Any, expected: Any) -> bool:
    unit = 2.0 ** (2 - numbers.format.bits)
    return bool(np.allclose(whole_of(numbers, found), expected, rtol=4 * unit, atol=8 * unit))


def shares(numbers: Any) -> Any:
    """Attention weights of two heads over three positions, masked."""
    q, k = numbers.admit(random(2, 3, 4)), numbers.admit(random(2, 3, 4, seed=1))
    seen = {"mask": CAUSAL, "queries": PLACES, "keys": PLACES}
    return numbers.softmax(numbers.scores(q, k, scale=over_root(4), **seen))


def put_under_the_mask(value: Any, entry: float) -> Any:
    """The same masked array with another number where nobody may look."""
    if isinstance(value, Masked):
        return Masked(value.data.masked_fill(value.hidden, entry), value.hidden)
    data = np.where(value.mask, np.asarray(entry, value.data.dtype), value.data)
    return np.ma.MaskedArray(data, mask=value.mask)


# ------------------------------------------------------------------ losses


@every_system
def test_a_position_that_does_not_count_has_no_loss_and_no_gradient(numbers: Any) -> None:
    probs = numbers.admit(np.array([[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]]))
    targets = (0, UNCOUNTED, 1)
    losses = numbers.losses(probs, targets)
    assert whole_of(numbers, losses).mask.tolist() == [False, True, False]
    assert close(numbers, numbers.average(losses), [np.log(2) / 2])
    back = numbers.loss_back(probs, targets)
    assert whole_of(numbers, back).tolist() == [[-0.25, 0.25], [0, 0], [0, 0]]
    assert not numbers.notes


@every_system
def test_one_target_is_that_of_the_last_position(numbers: Any) -> None:
    probs = numbers.admit(np.array([[0.5, 0.5], [0.25, 0.75]]))
    assert whole_of(numbers, numbers.loss_back(probs, 0)).tolist() == [[0, 0], [-0.75, 0.75]]


@every_system
def test_what_stands_at_a_position_that_does_not_count_does_no_harm(numbers: Any) -> None:
    probs = numbers.admit(np.array([[np.nan, np.nan], [0.25, 0.75]]))
    targets = (UNCOUNTED, 1)
    assert close(numbers, numbers.average(numbers.losses(probs, targets)), [-np.log(0.75)])
    assert whole_of(numbers, numbers.loss_back(probs, targets)).tolist() == [[0, 0], [0.25, -0.25]]


@every_system
def test_a_target_of_probability_zero_is_noted(numbers: Any) -> None:
    probs = numbers.admit(np.array([[0.5, 0.5], [0.0, 1.0]]))
    losses = whole_of(numbers, numbers.losses(probs, (1, 0)))
    assert losses[1] == np.inf
    assert numbers.notes == [Note("not-finite", (1,))]


# ------------------------------------------------------------------ what is under a mask


@every_system
@pytest.mark.parametrize("under", [np.inf, np.nan, 7.0])
def test_what_stands_under_a_mask_is_never_read(numbers: Any, under: float) -> None:
    weights = shares(numbers)
    odd = put_under_the_mask(weights, under)
    seen = {"mask": CAUSAL, "queries": PLACES, "keys": PLACES}
    mixed, v = numbers.admit(random(2, 3, 4, seed=2)), numbers.admit(random(2, 3, 4, seed=3))
    grad = numbers.scores(mixed, v, **seen)
    bad = put_under_the_mask(grad, under)
    dot = numbers.row_dots(weights, grad)
    assert same(numbers, numbers.row_dots(odd, bad), dot)
    back = numbers.softmax_back(weights, grad, dot)
    assert same(numbers, numbers.softmax_back(odd, bad, dot), back)
    assert same(numbers, numbers.along_keys(odd, v), numbers.along_keys(weights, v))
    assert same(numbers, numbers.along_queries(odd, v), numbers.along_queries(weights, v))
    assert not numbers.notes


def same(numbers: Numbers, one: Any, other: Any) -> bool:
    a, b = whole_of(numbers, one), whole_of(numbers, other)
    return np.array_equal(np.ma.getdata(a), np.ma.getdata(b)) and np.array_equal(
        np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    )


@every_system
def test_the_gradient_of_scores_is_absent_where_the_scores_are(numbers: Any) -> None:
    weights = shares(numbers)
    grad = numbers.admit(random(2, 3, 3, seed=2))  # where a table masks, a gradient may have more
    dot = numbers.row_dots(weights, grad)
    back = whole_of(numbers, numbers.softmax_back(weights, grad, dot))
    p = np.ma.filled(whole_of(numbers, weights), 0)
    g = whole_of(numbers, grad)
    assert back.mask.tolist() == [[[not see for see in row] for row in CAUSAL]] * 2
    assert close(numbers, np_or(numbers, back), p * (g - (p * g).sum(-1, keepdims=True)))


def np_or(numbers: Numbers, array: Any) -> Any:
    """A NumPy array as a value that `entries` of the system reads."""
    return np.ma.filled(array, 0) if isinstance(numbers, Floats) else torch.tensor(array.filled(0))


@every_system
def test_a_key_gets_nothing_from_a_query_that_may_not_see_it(numbers: Any) -> None:
    weights = shares(numbers)
    y = random(2, 3, 4, seed=2)
    y[0, 0, 1], y[1, 1] = np.inf, np.nan
    found = whole_of(numbers, numbers.along_queries(weights, numbers.admit(y)))
    p = np.ma.filled(whole_of(numbers, weights), 0)
    assert np.isnan(found[1, 0]).all()
    assert np.isinf(found[0, 0, 1])
    assert close(numbers, numbers.admit(found[0, 1:]), (p[0].T @ np.nan_to_num(y[0], posinf=0))[1:])
    assert close(numbers, numbers.admit(found[1, 2]), p[1, 2, 2] * y[1, 2])


@every_system
def test_queries_that_share_a_key_head_are_weighted_with_its_keys(numbers: Any) -> None:
    x, y = random(4, 3, 3), random(2, 3, 5, seed=1)
    found = numbers.along_keys(numbers.admit(x), numbers.admit(y), scale=over_root(4))
    assert close(numbers, found, x @ y[[0, 0, 1, 1]] / 2)


# ------------------------------------------------------------------ sums and products


@every_system
def test_heads_stand_side_by_side_in_sums_and_outer_products(numbers: Any) -> None:
    x, grad = random(2, 3, 4), random(3, 5, seed=1)
    one, other = numbers.admit(x), numbers.admit(grad)
    flat = x.transpose(1, 0, 2).reshape(3, 8)
    assert close(numbers, numbers.outer(one, other, layout="in_out"), flat.T @ grad)
    assert close(numbers, numbers.outer(one, other, layout="out_in"), grad.T @ flat)
    assert close(numbers, numbers.column_sums(one, merged=True), flat.sum(0))
    assert close(numbers, numbers.column_sums(one), x.sum((0, 1)))
    assert close(numbers, numbers.column_sums(one, by=one), (x * x).sum((0, 1)))
    assert close(numbers, numbers.sum_groups(one, heads=1), x.sum(0, keepdims=True))


@every_system
def test_a_row_that_was_taken_twice_gets_both_gradients(numbers: Any) -> None:
    grad = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = numbers.scatter(numbers.admit(grad), (1, 0, 1), rows=4, scale=over_root(4))
    assert whole_of(numbers, found).tolist() == [[1.5, 2], [3, 4], [0, 0], [0, 0]]


@every_system
@pytest.mark.parametrize(("starts", "stride"), [((0, 8, 12), 2), ((0, 2, 4), 6)])
def test_packing_undoes_three_cuts(numbers: Any, starts: Any, stride: int) -> None:
    counts = (4, 2, 2) if stride == 2 else (3, 3, 3)
    packed = numbers.admit(random(5, 2 * sum(counts)))
    cuts = [
        numbers.split_heads(packed, start=start, heads=heads, width=2, stride=stride)
        for start, heads in zip(starts, counts, strict=True)
    ]
    assert same(numbers, numbers.pack_heads(*cuts, starts=starts, stride=stride), packed)


@every_system
def test_a_product_that_overflows_is_noted_and_one_that_does_not_is_not(numbers: Any) -> None:
    largest = numbers.format.largest
    big = numbers.admit(np.array([[largest, 1.0], [largest, 2.0]]))
    assert np.isinf(whole_of(numbers, numbers.outer(big, big, layout="in_out"))[0, 0])
    assert numbers.notes == [Note("not-finite", (0, 0))]
    numbers.notes.clear()
    one = numbers.admit(np.array([[1.0, 0.5], [0.0, 0.5]]))
    found = whole_of(numbers, numbers.outer(big, one, layout="in_out"))
    assert found[0, 0] == largest
    assert np.isfinite(found).all()
    assert not numbers.notes


@every_system
def test_a_scattered_row_that_overflows_is_noted(numbers: Any) -> None:
    largest = numbers.format.largest
    found = numbers.scatter(numbers.admit(np.array([[largest], [largest]])), (2, 2), rows=3)
    assert whole_of(numbers, found).tolist() == [[0], [0], [np.inf]]
    assert numbers.notes == [Note("not-finite", (2, 0))]


# ------------------------------------------------------------------ norms


@every_system
def test_a_row_without_variance_has_a_gradient_of_zero_where_nothing_comes_back(
    numbers: Any,
) -> None:
    by = numbers.admit(np.array([2.0, 0.0]))
    grad = numbers.admit(np.array([[1.0, 4.0], [0.0, 0.0]]))
    assert whole_of(numbers, numbers.normalize_back(grad, by)).tolist() == [[0.5, 2], [0, 0]]
    assert numbers.notes == [Note("zero-variance", (1,))]
    numbers.notes.clear()
    dot = numbers.admit(np.array([3.0, 0.0]))
    assert whole_of(numbers, numbers.divisor_back(dot, by)).tolist() == [-1.5, 0]
    assert whole_of(numbers, numbers.root_back(dot, by)).tolist() == [0.75, 0]
    assert not numbers.notes


@every_system
def test_a_gradient_over_zero_variance_is_not_finite_and_noted(numbers: Any) -> None:
    by = numbers.admit(np.array([0.0]))
    found = whole_of(numbers, numbers.normalize_back(numbers.admit(np.array([[1.0, -1.0]])), by))
    assert found.tolist() == [[np.inf, -np.inf]]
    assert numbers.notes == [Note("not-finite", (0, 0))]


@every_system
def test_means_and_squares_hand_back_what_they_took(numbers: Any) -> None:
    grad, x = (
        numbers.admit(np.array([3.0, -6.0])),
        numbers.admit(np.array([[1.0, 2, 3], [0, 1, 2]])),
    )
    assert whole_of(numbers, numbers.mean_back(grad, width=3)).tolist() == [[1] * 3, [-2] * 3]
    found = whole_of(numbers, numbers.mean_square_back(grad, x))
    assert found.tolist() == [[2, 4, 6], [0, -4, -8]]
    assert whole_of(numbers, numbers.center_back(x)).tolist() == [-6, -3]


# ------------------------------------------------------------------ an optimizer's step


@every_system
def test_a_norm_below_the_limit_is_not_clipped(numbers: Any) -> None:
    squares = numbers.sum_squares(numbers.admit(np.array([[1.0, 2.0], [2.0, 0.0]])))
    norm = numbers.norm(square_1=squares, square_2=numbers.admit(np.array([16.0])))
    assert whole_of(numbers, norm).tolist() == [5]
    limits = {"eps": Fraction(0)}
    assert whole_of(numbers, numbers.clip_factor(norm, limit=Fraction(6), **limits)).tolist() == [1]
    half = numbers.clip_factor(norm, limit=Fraction(5, 2), **limits)
    assert whole_of(numbers, half).tolist() == [0.5]
    x = numbers.admit(np.array([[4.0, 2.0]]))
    assert whole_of(numbers, numbers.scale_by(x, half)).tolist() == [[2, 1]]


@every_system
def test_running_means_blend_what_was_with_what_is(numbers: Any) -> None:
    x, y = numbers.admit(np.array([[1.0, 2.0]])), numbers.admit(np.array([[4.0, -2.0]]))
    assert whole_of(numbers, numbers.blend(y, of_y=HALF)).tolist() == [[2, -1]]
    assert whole_of(numbers, numbers.blend(y, x, of_y=HALF, of_x=-HALF)).tolist() == [[1.5, -2]]
    assert whole_of(numbers, numbers.blend(y, x, of_y=HALF, of_x=HALF, squared=True)).tolist() == [
        [8.5, 3]
    ]
    nine = numbers.admit(np.array([[9.0]]))
    assert whole_of(numbers, numbers.root_plus(nine, eps=HALF)).tolist() == [[3.5]]
    assert whole_of(numbers, numbers.divide(y, x)).tolist() == [[4, -1]]


def test_the_squares_of_a_large_weight_are_added_without_losing_digits() -> None:
    x = np.full((3000, 2000), 0.1, dtype=np.float32)
    found = float(Floats("float32").sum_squares(x)[0])
    assert found == pytest.approx(x.size * float(x[0, 0]) ** 2, rel=1e-6)


# ------------------------------------------------------------------ narrow formats


@pytest.mark.parametrize("format", ["bfloat16", "float16"])
def test_a_narrow_result_is_rounded_once(format: str) -> None:
    narrow, wide = Floats(format), Floats("float32")
    x, y = narrow.admit(random(2, 6, 4)), narrow.admit(random(2, 6, 4, seed=1))
    rows = narrow.admit(np.abs(random(2, 6, seed=2)) + 1)
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("total", {"term_1": x, "term_2": y, "term_3": x}, {}),
        ("column_sums", {"x": x, "by": y}, {}),
        ("row_dots", {"x": x, "y": y}, {}),
        ("sum_groups", {"x": x}, {"heads": 1}),
        ("outer", {"x": x, "grad": y}, {"layout": "in_out"}),
        ("softmax_back", {"weights": x, "grad": y, "dot": rows}, {}),
        ("normalize_back", {"grad": x, "by": rows}, {}),
        ("divisor_back", {"dot": rows, "by": rows}, {}),
        ("root_back", {"grad": rows, "root": rows}, {}),
        ("mean_square_back", {"grad": rows, "x": x}, {}),
        ("center_back", {"grad": x}, {}),
        ("mean_back", {"grad": rows}, {"width": 3}),
        ("scatter", {"grad": x[0]}, {"ids": (0, 0, 0, 1, 1, 2), "rows": 3, "scale": over_root(3)}),
        ("sum_squares", {"x": x}, {}),
        ("blend", {"x": x, "y": y}, {"of_x": Fraction(1, 3), "of_y": Fraction(1, 7)}),
        ("root_plus", {"x": rows}, {"eps": Fraction(1, 3)}),
        ("divide", {"x": x, "y": y}, {}),
    ]
    for op, values, settings in calls:
        found = getattr(narrow, op)(**values, **settings)
        lifted = {role: widened(value, np.dtype(np.float32)) for role, value in values.items()}
        expected = narrowed(getattr(wide, op)(**lifted, **settings), narrow.dtype)
        assert found.dtype == narrow.dtype, op
        assert np.array_equal(found, expected), op

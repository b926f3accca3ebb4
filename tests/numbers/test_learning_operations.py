"""Each operation of learning alone, on nasty arguments: exact, in balls, and in pencil."""

from __future__ import annotations

from fractions import Fraction
from inspect import isfunction
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st
from learning_calls import CALLS, NAMED, RATIONAL, Arguments, Drawn

from byhand.errors import InputError, Undecided
from byhand.expression import Number, parse
from byhand.numbers.adjoints import Adjoints
from byhand.numbers.base import ABSENT, Printed
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.balls.slopes import BENT, RISING, ROOTS, SLOPES, STEEPEST
from byhand.numbers.exact import Exact
from byhand.numbers.pencil import Pencil
from oracles import learning

BITS = 400
SEEDS = st.integers(0, 10**9)
RADII = (0, 0, Fraction(1, 10**15), Fraction(1, 1000), Fraction(1), Fraction(100))
POSITIVE = {
    ("losses", "probs"), ("normalize_back", "by"), ("divisor_back", "by"), ("root_back", "root"),
    ("norm", "square_0"), ("norm", "square_1"), ("norm", "square_2"), ("clip_factor", "norm"),
    ("root_plus", "x"),
}  # fmt: skip
Array = Any


def expected(operation: str, arrays: dict[str, Array], settings: dict[str, Any]) -> Array:
    """The result by definition, in the arithmetic of the entries."""
    plain = {k: v.value if isinstance(v, Number) else v for k, v in settings.items()}
    return getattr(learning, operation)(**arrays, **plain)


def as_balls(arguments: Arguments) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arguments as points of 400 bits."""
    arrays = {role: each(point, x) for role, x in arguments.arrays.items()}
    numbers = (Number, Fraction)
    settings = {
        k: point(v.value if isinstance(v, Number) else v) if isinstance(v, numbers) else v
        for k, v in arguments.settings.items()
    }
    return arrays, settings


def each(function: Any, x: Array) -> Array:
    flat = [None if entry is None else function(entry) for entry in x.ravel()]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(x.shape)


def point(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def exactly(operation: str, arguments: Arguments) -> Array:
    numbers = Exact()
    arrays = {role: numbers.admit(x) for role, x in arguments.arrays.items()}
    return getattr(numbers, operation)(**arrays, **arguments.settings)


def test_every_operation_of_learning_is_called_here() -> None:
    functions = (name for name, made in vars(Adjoints).items() if isfunction(made))
    operations = {name for name in functions if not name.startswith("_")}
    assert operations == set(CALLS) == {*RATIONAL, *NAMED}


# ----------------------------------------------------------------------- exact


@pytest.mark.parametrize("operation", RATIONAL)
@given(seed=SEEDS)
def test_rational_arguments_give_the_rational_by_definition(operation: str, seed: int) -> None:
    arguments = Drawn(seed).arguments(operation)
    found = exactly(operation, arguments)
    wanted = expected(operation, arguments.arrays, arguments.settings)
    assert found.shape == wanted.shape
    for value, truth in zip(found.ravel(), wanted.ravel(), strict=True):
        assert truth is None if value is ABSENT else value.fraction == truth


@pytest.mark.parametrize("operation", NAMED)
@given(seed=SEEDS)
def test_named_results_are_the_numbers_that_arb_finds(operation: str, seed: int) -> None:
    arguments = Drawn(seed).arguments(operation)
    found = exactly(operation, arguments)
    with ctx.workprec(BITS):
        wanted = expected(operation, *as_balls(arguments))
        for value, truth in zip(found.ravel(), wanted.ravel(), strict=True):
            assert truth is None if value is ABSENT else value.ball(BITS).overlaps(truth)


def values(*texts: str) -> tuple[Exact, Array]:
    numbers = Exact()
    return numbers, numbers.admit(np.array([parse(text) for text in texts], dtype=object))


def test_the_root_of_a_squared_gradient_is_its_size() -> None:
    numbers, g = values("e - 3", "sqrt(2) - 1 - e/7", "(1 + sqrt(3))/(e + sqrt(2))", "0", "-2/3")
    squares = numbers.blend(g, of_y=Fraction(1, 1000), squared=True)
    roots = numbers.root_plus(numbers.blend(squares, of_y=Fraction(1000)), eps=Fraction(0))
    assert [root == abs(x) for root, x in zip(roots, g, strict=True)] == [True] * 5
    assert str(roots[0]) == "3 - e"
    assert roots[2].is_name  # the letter of g, not a root of its own


def test_the_first_step_of_adam_is_a_sign_but_for_eps() -> None:
    numbers, g = values("e - 3", "1/2")
    root = numbers.root_plus(numbers.blend(g, of_y=Fraction(1), squared=True), eps=Fraction(1, 9))
    change = numbers.divide(g, root)
    assert [str(x) for x in change] == ["(27 - 9e)/(9e - 28)", "9/11"]
    assert [str(x) for x in numbers.divide(g, abs(g))] == ["-1", "1"]


def test_the_slope_of_relu_at_0_is_0_and_of_an_open_sign_undecided() -> None:
    numbers, x = values("ln(2) + ln(3) - ln(6)", "e - 2", "2 - e")
    assert [v.fraction for v in numbers.slope(x, kind="relu")] == [0, 1, 0]
    numbers, x = values("tanh(1) - (e^2 - 1)/(e^2 + 1)")  # 0, but no proof is known
    with pytest.raises(Undecided):
        numbers.slope(x, kind="relu")


def test_a_rounded_number_around_0_has_a_slope_from_0_to_1() -> None:
    numbers = Exact()
    x = numbers.admit(np.array([Printed(Fraction(0), 1), Printed(Fraction(1), 1)], dtype=object))
    slopes = numbers.slope(x, kind="relu")
    assert slopes[0].register == "enclosed"
    assert slopes[0].ball(64).contains(0)
    assert slopes[0].ball(64).contains(1)
    assert slopes[1].fraction == 1
    assert [note.kind for note in numbers.notes] == ["undecided-sign"]


def test_a_row_over_zero_is_zero_with_a_note_or_undecided() -> None:
    numbers, zeros = values("0", "0")
    nothing = numbers.admit(np.array([Fraction(0)], dtype=object))
    assert [v.fraction for v in numbers.normalize_back(zeros[None], nothing)[0]] == [0, 0]
    assert [(note.kind, note.index) for note in numbers.notes] == [("zero-variance", (0,))]
    numbers, row = values("0", "1")
    nothing = numbers.admit(np.array([Fraction(0)], dtype=object))
    with pytest.raises(Undecided, match="cannot be divided by zero"):
        numbers.normalize_back(row[None], nothing)
    for operation in (numbers.divisor_back, numbers.root_back):
        with pytest.raises(Undecided, match="cannot be divided by zero"):
            operation(row[1:], nothing)
    with pytest.raises(Undecided, match="cannot be divided by zero"):
        numbers.divide(nothing, nothing)


def test_the_loss_of_rounded_scores_is_bounded_by_the_scores() -> None:
    """A share of scores that are known to ±500 may be 0 for all that its ball says."""
    numbers = Exact()
    scores = numbers.admit(np.array([[Printed(Fraction(0), -3), Fraction(0)]], dtype=object))
    (loss,) = numbers.losses(numbers.softmax(scores), (1,))
    assert 400 < loss.ball(64).upper() < 600
    assert loss.ball(64).lower() > -100


def test_clipping_is_decided_by_order_alone() -> None:
    numbers, norm = values("e")
    kept = numbers.clip_factor(norm, limit=Fraction(3), eps=Fraction(0))
    assert kept[0].fraction == 1
    cut = numbers.clip_factor(norm, limit=Fraction(1), eps=Fraction(1))
    assert str(cut[0]) == "1/(1 + e)"
    numbers, norm = values("1 + tanh(1) - (e^2 - 1)/(e^2 + 1)")
    with pytest.raises(Undecided):
        numbers.clip_factor(norm, limit=Fraction(1), eps=Fraction(0))


def test_an_unknown_activation_has_no_slope() -> None:
    numbers, x = values("1")
    for system in (numbers, Balls(64)):
        with pytest.raises(InputError, match="there is no activation 'swish'"):
            system.slope(x, kind="swish")


# ----------------------------------------------------------------------- balls


TOGETHER = {"expert_shares_back"}  # its shares belong to its scores: no ball moves alone


@pytest.mark.parametrize("operation", sorted(set(CALLS) - TOGETHER))
@given(seed=SEEDS, bits=st.sampled_from((24, 53, 200)))
def test_balls_hold_the_result_of_every_point_in_their_arguments(
    operation: str, seed: int, bits: int
) -> None:
    arguments = Drawn(seed).arguments(operation)
    random = Random(seed)
    balls: dict[str, Array] = {}
    points: dict[str, Array] = {}
    for role, x in arguments.arrays.items():
        radii = np.array([random.choice(RADII) for _entry in x.ravel()], dtype=object)
        balls[role], points[role] = spread(x, radii.reshape(x.shape), role, operation, random)
    found = getattr(Balls(bits), operation)(**balls, **arguments.settings)
    with ctx.workprec(BITS):
        truths = expected(operation, *as_balls(Arguments(points, arguments.settings)))
        assert found.shape == truths.shape
        for ball, truth in zip(found.ravel(), truths.ravel(), strict=True):
            if ball is ABSENT or truth is None:
                assert ball is ABSENT
                assert truth is None
            elif arb(truth).is_finite():
                assert ball.overlaps(arb(truth)), f"{ball}, not {truth}"


def spread(
    x: Array, radii: Array, role: str, operation: str, random: Random
) -> tuple[Array, Array]:
    """A ball around each entry, and a number in it; none is negative where no number may be."""
    balls, points = np.empty(x.shape, dtype=object), np.empty(x.shape, dtype=object)
    for place in np.ndindex(x.shape):
        if x[place] is None:
            continue
        inside = x[place] + radii[place] * Fraction(random.randint(-16, 16), 16)
        if (operation, role) in POSITIVE:  # a probability is not even 0
            inside = max(inside, x[place] if role == "probs" else Fraction(0))
        points[place] = inside
        with ctx.workprec(BITS):
            balls[place] = point(x[place]) + arb(0, 1) * point(Fraction(radii[place]))
    return balls, points


@pytest.mark.parametrize("kind", STEEPEST)
def test_slopes_are_no_steeper_and_bend_no_more_than_is_said(kind: str) -> None:
    """In 12,000 balls that cover 0 … 12; beyond, the slope is 1 to four places."""
    count, end = 12_000, 12
    with ctx.workprec(64):
        for place in range(count):
            x = arb(fmpq(2 * place + 1, 2 * count) * end, fmpq(end, 2 * count))
            first, second = derivatives(kind, x)
            assert not first > arb(STEEPEST[kind])  # met at 0, by the slopes that never fall
            assert first > (0 if kind in RISING else 1 - arb(STEEPEST[kind]))
            assert abs(second) < arb(BENT[kind])


def derivatives(kind: str, x: arb) -> tuple[arb, arb]:
    """The first and second derivative of x·g(x), for g a distribution; or of g itself."""
    if kind in RISING:
        share = 1 / (1 + (-x).exp())
        if kind == "sigmoid":
            return share * (1 - share), share * (1 - share) * (1 - 2 * share)
        rest = 1 - x.tanh() ** 2
        return rest, -2 * x.tanh() * rest
    if kind == "gelu":
        bell = (-(x * x) / 2).exp() / (2 * arb.pi()).sqrt()
        return (1 + (x / arb(2).sqrt()).erf()) / 2 + x * bell, bell * (2 - x * x)
    if kind == "silu":
        u, du, ddu = x, arb(1), arb(0)
    else:
        root = ROOTS.get(kind)
        factor = 2 * ((2 / arb.pi()).sqrt() if root is None else arb(root))
        cubic = arb(fmpq(44715, 10**6))
        u, du = factor * (x + cubic * x * x * x), factor * (1 + 3 * cubic * x * x)
        ddu = 6 * factor * cubic * x
    share, rest = 1 / (1 + (-u).exp()), 1 / (1 + u.exp())
    once = share * rest * du
    twice = share * rest * ((rest - share) * du * du + ddu)
    return share + x * once, 2 * once + x * twice


@pytest.mark.parametrize("kind", sorted(set(SLOPES) - {"relu2"}))
def test_the_slope_of_a_wide_ball_is_bounded(kind: str) -> None:
    ball = Balls(64).slope(np.array([arb(0, 1000)], dtype=object), kind=kind)[0]
    assert ball.abs_upper() < arb(fmpq(1131, 1000))
    nowhere = Balls(64).slope(np.array([arb("nan")], dtype=object), kind=kind)[0]
    assert nowhere.abs_upper() < arb(fmpq(1131, 1000))


def test_small_slopes_keep_their_digits() -> None:
    x = np.array([arb(-30, 1e-20)], dtype=object)
    for kind in ("gelu", "gelu_tanh", "silu"):
        slope = Balls(128).slope(x, kind=kind)[0]
        assert slope.rel_accuracy_bits() > 50
        assert abs(slope) < 1e-10


def test_relu_has_the_slope_0_or_1_or_anything_between() -> None:
    balls = [arb(1, 0.5), arb(-1, 0.5), arb(0), arb(0, 1)]
    slopes = Balls(64).slope(np.array(balls, dtype=object), kind="relu")
    assert [slope == value for slope, value in zip(slopes, (1, 0, 0), strict=False)] == [True] * 3
    assert slopes[3].contains(0)
    assert slopes[3].contains(1)


def test_the_size_of_a_clip_is_never_above_1() -> None:
    norm = np.array([arb(0, 10)], dtype=object)
    factor = Balls(64).clip_factor(norm, limit=Fraction(1), eps=Fraction(0))[0]
    assert factor.contains(1)
    assert factor.upper() < arb(fmpq(1000001, 1000000))
    assert factor.contains(arb(fmpq(1, 10)))
    assert factor.lower() > 0


def test_the_loss_of_a_wide_share_comes_from_its_scores() -> None:
    numbers = Balls(64)
    probs = numbers.softmax(np.array([[arb(0, 500), arb(0)]], dtype=object))
    (loss,) = numbers.losses(probs, (1,))
    assert 400 < loss.upper() < 600
    assert loss.lower() > -1


def test_zeros_are_exactly_zero() -> None:
    numbers = Balls(64)
    probs = np.array([[arb(0.25, 0.01), arb(0.75, 0.01)]] * 2, dtype=object)
    assert all(x == 0 for x in numbers.loss_back(probs, (-1, 0))[0])
    assert all(x == 0 for x in numbers.scatter(probs, (2, 2), rows=3)[0])
    nothing = np.array([arb(0)], dtype=object)
    assert numbers.divisor_back(nothing, nothing)[0] == 0
    assert numbers.root_back(nothing, nothing)[0] == 0
    assert all(x == 0 for x in numbers.normalize_back(np.array([[arb(0)] * 2]), nothing)[0])
    assert [note.kind for note in numbers.notes] == ["zero-variance"]


# ----------------------------------------------------------------------- pencil


@pytest.mark.parametrize("operation", RATIONAL)
@given(seed=SEEDS)
def test_a_pencil_rounds_the_exact_result(operation: str, seed: int) -> None:
    arguments = Drawn(seed).arguments(operation)
    pencil = Pencil(2)
    found = getattr(pencil, operation)(**arguments.arrays, **arguments.settings)
    wanted = expected(operation, arguments.arrays, arguments.settings)
    for number, truth in zip(found.ravel(), wanted.ravel(), strict=True):
        if truth is None:
            assert number is ABSENT
        else:
            assert abs(number - truth) <= Fraction(1, 200)
            assert (number * 100).denominator == 1


def test_a_pencil_says_which_divisor_it_lost() -> None:
    pencil = Pencil(2)
    row, nothing = np.array([Fraction(1)], dtype=object), np.array([Fraction(0)], dtype=object)
    lost = "rounded to 2 decimals, the divisor of row"
    for name, roles in (("divisor_back", ("dot", "by")), ("root_back", ("grad", "root")),
                        ("divide", ("x", "y"))):  # fmt: skip
        with pytest.raises(InputError, match=lost):
            getattr(pencil, name)(**dict(zip(roles, (row, nothing), strict=True)))
    with pytest.raises(InputError, match=lost):
        pencil.normalize_back(row[None], nothing)
    assert pencil.divide(nothing, nothing)[0] == 0
    with pytest.raises(InputError, match="the probability of the target became 0"):
        pencil.losses(nothing[None], (0,))


def test_a_pencil_rounds_logarithms_slopes_and_roots() -> None:
    pencil = Pencil(3)
    half = np.array([[Fraction(1, 2)]], dtype=object)
    assert pencil.losses(half, (0,))[0] == Fraction(693, 1000)
    assert pencil.slope(half, kind="silu")[0, 0] == Fraction(740, 1000)
    assert pencil.root_plus(half, eps=Fraction(1))[0, 0] == Fraction(1707, 1000)
    assert pencil.norm(square_0=half[0], square_1=half[0])[0] == 1

"""Elementwise functions on limbs against Arb: never off by more than written, and not idly so."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from arb_oracle import LONG, as_torch, balanced, nasty, same_bits, worst_error

from byhand.numbers.enclosed.limbs import arithmetic, functions, roots
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.functions import aligned

Function = Callable[[Digits, int], Digits]

# Where arguments are looked for.  Beyond 40 or 8 most of these stand still or go their own way.
RANGES: dict[str, tuple[Fraction, Fraction]] = {
    "exp": (Fraction(-330), Fraction(1, 4)),
    "gelu": (Fraction(-30), Fraction(30)),
    "gelu_tanh": (Fraction(-20), Fraction(20)),
    "silu": (Fraction(-330), Fraction(330)),
    "reciprocal": (Fraction(1, 2**20), Fraction(2**20)),
    "root": (Fraction(0), Fraction(2**40)),
}
LIMBS = range(1, 21) if LONG else (1, 2, 3, 4, 5, 6, 7, 9, 10, 13, 20)
SAMPLES = 5200 if LONG else 24  # for each function and count of limbs; 20 counts, 6 functions
ROOTS = ("reciprocal", "root")
ERROR = {**functions.ERROR, **dict.fromkeys(ROOTS, roots.ERROR)}
TABLED = ("exp", "gelu", "gelu_tanh", "silu")


def function_of(name: str) -> Function:
    made: Function = getattr(roots if name in ROOTS else functions, name)
    return made


def grids(count: int, rng: random.Random) -> tuple[int, int]:
    """The grids of an argument and of a result of `count` limbs: aligned or not, and now and then
    much finer or coarser than each other."""
    low = -8 - 22 * (count - 1) + rng.choice([0, 0, rng.randrange(1, 22)])
    argument = low + rng.choice([0, 0, -50, -22, -7, 3, 22, 40])
    return min(argument, -1), min(low, -1)


def arguments(name: str, low: int, grid: int, count: int, rng: random.Random) -> Digits:
    least, most = RANGES[name]
    if name in TABLED and not LONG:  # the tables of wide ranges take a while
        least, most = max(least, Fraction(-4)), min(most, Fraction(4))
    if name == "reciprocal":
        least, most = max(least, Fraction(2) ** grid), min(most, Fraction(2) ** -low)
    return nasty(least, most, grid, count, rng)


@pytest.mark.parametrize("count", LIMBS)
@pytest.mark.parametrize("name", RANGES)
def test_no_result_is_off_by_more_than_written(name: str, count: int) -> None:
    rng = random.Random(f"{name} {count}")
    for _ in range(2):
        grid, low = grids(count, rng)
        x = arguments(name, low, grid, SAMPLES // 2, rng)
        made = function_of(name)(x, low)
        assert balanced(made)
        assert worst_error(name, x, made, low) <= ERROR[name]


@pytest.mark.parametrize("name", RANGES)
def test_each_bound_is_reached_within_a_factor_of_fifty(name: str) -> None:
    """So a bound a hundred times smaller would be violated."""
    rng = random.Random(name)
    x = arguments(name, -96, -96, 200, rng)
    assert worst_error(name, x, function_of(name)(x, -96), -96) > ERROR[name] / 50


@pytest.mark.parametrize("name", TABLED)
def test_far_arguments_stand_still(name: str) -> None:
    most = Fraction(1, 4) if name == "exp" else Fraction(2**40)
    for low in (-8, -30, -61) if LONG else (-29,):
        x = nasty(Fraction(-(2**40)), most, -25, 60, random.Random(name))
        made = function_of(name)(x, low)
        assert balanced(made)
        assert worst_error(name, x, made, low) <= ERROR[name]


@pytest.mark.parametrize("name", TABLED)
def test_around_the_end_of_the_table_nothing_jumps(name: str) -> None:
    """Every point near where the table ends, from both sides."""
    low = aligned(-30)
    ends = {"exp": 25, "tanh": 13, "erf": 5, "gelu": 7, "gelu_tanh": 6, "silu": 28}
    unit = 2 ** (-low)
    numbers = [
        sign * (k * unit // 16 + d)
        for sign in ((-1,) if name == "exp" else (1, -1))
        for k in range((ends[name] - 6) * 16, (ends[name] + 4) * 16)
        for d in (-1, 0, unit // 512 + 1)
    ]
    x = arithmetic.from_integers(numbers, low)
    assert worst_error(name, x, function_of(name)(x, low), low) <= ERROR[name]


@pytest.mark.parametrize("name", TABLED)
def test_every_entry_of_a_small_table_is_right(name: str) -> None:
    """Points, middles between points and what lies beside them, over the whole bend."""
    low = aligned(-50)
    unit = 2 ** (-low)
    step = 1 if LONG else 13
    numbers = [
        j * unit // 512 + d
        for j in range(-512 * 6, 0 if name == "exp" else 512 * 6, step)
        for d in (-1, 0, 1)
    ]
    x = arithmetic.from_integers(numbers, low)
    assert worst_error(name, x, function_of(name)(x, low), low) <= ERROR[name]


@pytest.mark.parametrize("name", RANGES)
def test_numpy_and_torch_give_the_same_bits(name: str) -> None:
    rng = random.Random(name)
    for count in (1, 2, 5, 10):
        grid, low = grids(count, rng)
        x = arguments(name, low, grid, 30, rng)
        assert same_bits(function_of(name)(x, low), function_of(name)(as_torch(x), low))


@pytest.mark.parametrize("name", RANGES)
def test_shapes_are_kept_and_nothing_is_changed(name: str) -> None:
    x = arithmetic.from_integers([-(2**70) if name in TABLED else 2**70] * 24, -70).reshape(2, 3, 4)
    before = x.limbs.copy()
    made = function_of(name)(x, -74)
    assert made.shape == (2, 3, 4)
    assert (x.limbs == before).all()
    one = function_of(name)(x.reshape(24), -74)
    assert (made.limbs.reshape(one.limbs.shape) == one.limbs).all()


@pytest.mark.parametrize("name", RANGES)
def test_empty_arrays_have_empty_results(name: str) -> None:
    made = function_of(name)(Digits(np.zeros((4, 0)), 14), -50)
    assert made.shape == (0,)
    assert made.low == -50


def test_simple_values_are_exact() -> None:
    zero = arithmetic.from_integers([0], -30)
    for name in ("gelu", "gelu_tanh", "silu", "root"):
        assert arithmetic.to_integers(function_of(name)(zero, -74))[0] == 0
    squares = arithmetic.from_integers([4, 9, 10**10], 0)
    assert list(arithmetic.to_fractions(roots.root(squares, -96))) == [2, 3, 10**5]
    assert arithmetic.to_fractions(roots.reciprocal(arithmetic.from_integers([8], 0), -40)) == [
        Fraction(1, 8)
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exp", 1),
        ("reciprocal", 0),
        ("reciprocal", -1),
        ("root", -1),
        ("reciprocal", 2**60),
    ],
)
def test_arguments_outside_the_domain_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=r"up to|not between|negative"):
        function_of(name)(arithmetic.from_integers([value], 0), -40)

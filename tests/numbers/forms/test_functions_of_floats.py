"""e^x and Φ(x) in float64 keep their proven errors, and so do the constants of the activations."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from flint import arb, ctx

from byhand.numbers.enclosed.balls.functions import ACTIVATIONS
from byhand.numbers.enclosed.balls.slopes import BENT, SLOPES
from byhand.numbers.forms.exponential import RELATIVE, logarithm, power, power_above, power_below
from byhand.numbers.forms.normal import normal_share
from byhand.numbers.forms.rounding import FLOOR
from byhand.numbers.forms.smooth import FUNCTIONS, RISING, SLOPE_ERROR

ENDS = [0.0, -0.0, 5e-324, -5e-324, 1e-300, 2.0**-53, -(2.0**-53), 709.0, 708.9999, -700.0, -699.9]


def nasty_exponents(count: int) -> np.ndarray:
    """Numbers of every size, halfway between multiples of ln 2, and near them."""
    random = Random(1)
    near = [(k + half) * 0.6931471805599453 * (1 + random.gauss(0, 1e-15))
            for k in range(-1000, 1020, 7) for half in (0.0, 0.5, -0.5)]  # fmt: skip
    sizes = [random.choice((-1, 1)) * 2.0 ** random.uniform(-60, 9.4) for _number in range(count)]
    return np.array([x for x in (*ENDS, *near, *sizes) if -700 <= x <= 709])


def test_e_to_the_x_is_within_its_bound() -> None:
    exponents = nasty_exponents(2000)
    with ctx.workprec(120):
        for x, y in zip(exponents.tolist(), power(exponents).tolist(), strict=True):
            real = arb(x).exp()
            assert abs(real - y) < real * RELATIVE


def test_a_logarithm_is_within_its_bound() -> None:
    random = Random(3)
    x = np.array([1.0, *(2.0 ** random.uniform(-999, 999) for _number in range(500)),
                  *(random.uniform(0.5, 2) for _number in range(500))])  # fmt: skip
    with ctx.workprec(120):
        for number, found, error in zip(x.tolist(), *map(np.ndarray.tolist, logarithm(x)),
                                        strict=True):  # fmt: skip
            assert abs(arb(number).log() - found) < error < 1e-12
    assert (logarithm(np.array([0.0, -1.0, 1e305, np.inf]))[1] == np.inf).all()


def test_powers_beyond_the_range_are_zero_or_infinite() -> None:
    x = np.array([-1e300, -701.0, 710.0, 1e300, -np.inf, np.inf])
    assert power(x).tolist() == [0.0, 0.0, np.inf, np.inf, 0.0, np.inf]
    assert power_above(x)[:2].tolist() == [FLOOR, FLOOR]
    assert (power_below(x)[2:4] < 1e308).all()


def test_the_normal_share_is_within_its_bound() -> None:
    random = Random(2)
    x = np.array([*ENDS, *(random.uniform(-41, 41) for _number in range(1500)),
                  *(k / 16 * (1 + 2.0**-52) for k in range(-640, 640, 9))])  # fmt: skip
    share, errors = normal_share(x)
    with ctx.workprec(160):
        root = -1 / arb(2).sqrt()
        for number, found, error in zip(x.tolist(), share.tolist(), errors.tolist(), strict=True):
            real = (number * root).erfc() / 2
            assert abs(real - found) < error
            assert error < 1e-14


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_slopes_are_within_their_bound(kind: str) -> None:
    x = np.array([*np.linspace(-45, 45, 400), -1e300, -800, 800, 1e300, 1e-300])
    known, slope = FUNCTIONS[kind], SLOPES[kind]()
    with ctx.workprec(4096):
        guesses = known.slope(x, known.share(x)[0])
        for number, guess in zip(x.tolist(), guesses.tolist(), strict=True):
            assert abs(slope(arb(number)) - guess) < SLOPE_ERROR


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_the_least_value_of_an_activation_is_known(kind: str) -> None:
    known, value = FUNCTIONS[kind], ACTIVATIONS[kind]()
    with ctx.workprec(64):
        cells = np.linspace(*known.least, 65).tolist()
        for low, high in pairwise(cells):
            assert -known.depth < value(arb(low).union(arb(high))) < 1e-4 - known.depth


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_an_activation_falls_up_to_its_least_value_and_then_rises(kind: str) -> None:
    """f′ has the sign of -1 below `least` and of 1 above, proven by balls on -12 … 12."""
    known, slope = FUNCTIONS[kind], SLOPES[kind]()
    first, last = known.least
    # quick_gelu(x) is silu(1.702·x)/1.702, so that its slopes change 1.702 times as fast
    steep, of = (Fraction(1702, 1000), "silu") if kind == "quick_gelu" else (Fraction(1), kind)
    assert steep * Fraction(int(BENT[of].p), int(BENT[of].q)) <= Fraction(known.bent)
    with ctx.workprec(64):
        assert slope(arb(first)) < 0 < slope(arb(last))
        assert signs(slope, arb(-12), arb(first), -1)
        assert signs(slope, arb(last), arb(12), 1)


@pytest.mark.parametrize("kind", RISING)
def test_sigmoid_and_tanh_are_within_their_bounds(kind: str) -> None:
    """Their values, slopes, and how fast slopes change: |f″| is largest where f‴ is 0."""
    known, value, slope = RISING[kind], ACTIVATIONS[kind](), SLOPES[kind]()
    x = np.array([*np.linspace(-45, 45, 400), -1e300, -800, 0, 800, 1e300, 1e-300, 2.0**-17, 1e-5])
    found, errors, slopes = known.at(x)
    with ctx.workprec(4096):
        for n, number in enumerate(x.tolist()):
            assert abs(value(arb(number)) - found[n]) <= errors[n] < 1e-14
            assert abs(slope(arb(number)) - slopes[n]) < SLOPE_ERROR
        steepest = {"sigmoid": 1 / (6 * arb(3).sqrt()), "tanh": 4 / (3 * arb(3).sqrt())}
        assert known.bent * 0.98 < steepest[kind] < known.bent


def signs(slope: object, low: arb, high: arb, sign: int, depth: int = 0) -> bool:
    """Whether the slope has this sign between two numbers: pieces are halved until it shows."""
    assert callable(slope)
    piece = low.union(high)
    if slope(piece) * sign > 0:
        return True
    middle = ((low + high) / 2).mid()
    return depth < 30 and all(
        signs(slope, *ends, sign, depth + 1) for ends in ((low, middle), (middle, high))
    )

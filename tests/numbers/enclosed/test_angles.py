"""sin, cos and the angles of RoPE on limbs, against Arb."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from arb_oracle import LONG, as_torch, balanced, nasty, precision, same_bits, worst_error
from flint import arb, fmpq, fmpz

from byhand.errors import InputError
from byhand.expression import parse
from byhand.numbers.enclosed.limbs import arithmetic, integers
from byhand.numbers.enclosed.limbs.angles import ANGLES, SINE_COSINE, sine_cosine, turns
from byhand.numbers.enclosed.limbs.arithmetic import Digits, from_integers

SAMPLES = 5200 if LONG else 16
LIMBS = range(1, 21) if LONG else (1, 2, 3, 5, 6, 9, 10, 20)


def quarter_turns(bits: int) -> list[Fraction]:
    """Numbers next to multiples of π/4, where sin or cos is near 0 or they are equal."""
    quarter = Fraction(integers.pi(bits).mid, 2 ** (bits + 2))
    return [k * quarter for k in (*range(-9, 10), 10**4, -(10**6) - 1, 2**25 + 2)]


@pytest.mark.parametrize("count", LIMBS)
def test_no_result_is_off_by_more_than_written(count: int) -> None:
    rng = random.Random(count)
    for most in (Fraction(8), Fraction(2**28)):
        low = -8 - 22 * (count - 1) if rng.random() < 0.5 else -22 * count + rng.randrange(22)
        grid = low + rng.choice([0, 0, -60, 11])
        x = nasty(-most, most, min(grid, -1), SAMPLES // 2, rng, quarter_turns(30 - low))
        for name, made in zip(("sin", "cos"), sine_cosine(x, low), strict=True):
            assert balanced(made)
            assert worst_error(name, x, made, low) <= SINE_COSINE


def test_the_bound_is_reached_within_a_factor_of_fifty() -> None:
    x = nasty(Fraction(-8), Fraction(8), -96, 200, random.Random(0))
    for name, made in zip(("sin", "cos"), sine_cosine(x, -96), strict=True):
        assert worst_error(name, x, made, -96) > SINE_COSINE / 50


def test_numpy_and_torch_give_the_same_bits() -> None:
    for low in (-30, -96, -201):
        x = nasty(Fraction(-(2**20)), Fraction(2**20), low, 40, random.Random(low))
        for one, other in zip(sine_cosine(x, low), sine_cosine(as_torch(x), low), strict=True):
            assert same_bits(one, other)


def test_arguments_beyond_the_largest_are_refused() -> None:
    with pytest.raises(InputError, match="too large"):
        sine_cosine(from_integers([2**28 + 1], 0), -40)


def worst_turn(
    made: tuple[Digits, Digits], positions: list[int], frequencies: list[arb], low: int
) -> float:
    """The largest error of (cos, sin) over all positions and pairs, in units of 2^low."""
    worst = 0.0
    unit = arb((fmpz(1), fmpz(-low)))
    for oracle, part in zip((arb.cos, arb.sin), made, strict=True):
        values = np.asarray(arithmetic.to_integers(part))
        assert part.low == low
        for p, position in enumerate(positions):
            for i, frequency in enumerate(frequencies):
                error = abs(oracle(position * frequency) * unit - fmpz(values[p, i]))
                worst = max(worst, float(error.upper()))
    return worst


@pytest.mark.parametrize("base", [Fraction(10000), Fraction(500000), Fraction(5, 2)])
@pytest.mark.parametrize("low", [-61, -96, -250])
def test_the_angles_of_rope_are_within_their_bound(base: Fraction, low: int) -> None:
    positions = [0, 1, 2, 7, 1023, 131071]
    made = turns(positions, 16, base, None, low)
    with precision(500):
        usual = [
            arb(fmpq(base.numerator, base.denominator)) ** (arb(-2 * i) / 16) for i in range(8)
        ]
        assert ANGLES / 50 < worst_turn(made, positions, usual, low) <= ANGLES


def test_given_frequencies_are_taken_as_they_are() -> None:
    given = [parse("500000^(-1/4)/8"), Fraction(1, 3), np.float32(0.1), 2, parse("1/(2*pi)")]
    positions = [0, 3, 100000]
    made = turns(positions, 10, Fraction(10000), given, -96)
    with precision(400):
        true = [
            arb(500000) ** (arb(-1) / 4) / 8,
            arb(1) / 3,
            arb(float(np.float32(0.1))),
            arb(2),
            1 / (2 * arb.pi()),
        ]
        assert worst_turn(made, positions, true, -96) <= ANGLES


def test_no_positions_have_no_angles() -> None:
    cos, sin = turns([], 8, Fraction(10000), None, -60)
    assert cos.shape == sin.shape == (0, 4)


def test_positions_beyond_the_largest_are_refused() -> None:
    with pytest.raises(InputError, match="positions go up to"):
        turns([2**28], 8, Fraction(10000), None, -60)

"""`normal`: the documented generator, recomputed from its definition with integers and balls."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from byhand.files import normal as generator
from byhand.files.normal import normal

MASK = 2**64 - 1
FIRST = [
    [0.031136605888605118, -0.01272276695817709],
    [0.025453690439462662, -0.026123203337192535],
]


def outputs(name: str, seed: int, count: int) -> list[int]:
    """SplitMix64 in plain integers, from its definition."""
    digest = hashlib.sha256(f"byhand normal {seed} {name}".encode()).digest()
    state = int.from_bytes(digest[:8], "little")
    out = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out.append(z ^ (z >> 31))
    return out


def true_value(std: Fraction, a: int, b: int) -> arb:
    """std · √(-2 ln u₁) · cos(2π u₂) at 200 bits."""
    u1, u2 = fmpq(a + 1, 2**53), fmpq(b, 2**53)
    scale = arb(fmpq(std.numerator, std.denominator))
    return scale * (-2 * arb(u1).log()).sqrt() * (2 * arb.pi() * arb(u2)).cos()


def is_nearest(value: np.float32, truth: arb) -> bool:
    """Whether no other float32 is nearer."""
    sides = (np.nextafter(value, np.float32(side)) for side in (-np.inf, np.inf))
    return all(abs(truth - arb(float(value))) < abs(truth - arb(float(other))) for other in sides)


@pytest.fixture(autouse=True)
def _at_200_bits():  # type: ignore[no-untyped-def]
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


@pytest.mark.parametrize(
    "std", [Fraction(1, 50), Fraction(1, 3), Fraction(2**50), Fraction(1, 2**59)]
)
def test_every_entry_is_the_float32_nearest_to_its_definition(std: Fraction) -> None:
    found = normal("block.0.attn.q", (30, 20), std, 7)
    bits = outputs("block.0.attn.q", 7, 1200)
    assert found.dtype == np.float32
    for i, value in enumerate(found.ravel()):
        assert is_nearest(value, true_value(std, bits[2 * i] >> 11, bits[2 * i + 1] >> 11))


def test_entries_that_float64_cannot_place_are_placed_by_balls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = normal("embed.token", (10, 30), Fraction(1, 50), 1)
    asked: list[Fraction] = []
    placed = generator._placed

    def counted(std: Fraction, u1: float, u2: float) -> np.float32:
        asked.append(std)
        return placed(std, u1, u2)

    monkeypatch.setattr(generator, "_UNSURE", 1e-3)  # now nearly all are unsure
    monkeypatch.setattr(generator, "_placed", counted)
    assert np.array_equal(normal("embed.token", (10, 30), Fraction(1, 50), 1), usual)
    assert len(asked) > 290


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0, 0),  # the largest value there is: u₁ = 2^-53
        (2**53 - 1, 5),  # u₁ = 1, so the value is 0
        (2**53 - 2, 1),  # u₁ nearly 1
        (12345, 2**51),  # a quarter turn: 0
        (12345, 2**51 + 1),  # nearly a quarter turn
        (12345, 3 * 2**51 - 1),
        (12345, 2**52),  # half a turn
        (12345, 2**53 - 1),  # nearly a whole one
        (12345, 2**50),  # an eighth
        (1544223539002442, 3072083339087737),  # two that float64 alone would round wrongly
        (4696476761828400, 8338395762043117),
    ],
)
def test_the_corners_of_the_definition_are_right(
    a: int, b: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = np.array([(a + 1) / 2**53]), np.array([b / 2**53])
    monkeypatch.setattr(generator, "_uniform", lambda *rest: pair)
    value = normal("x", (1,), Fraction(1, 50), 1)[0]
    if a == 2**53 - 1 or b == 2**51:
        assert value == 0
    else:
        assert is_nearest(value, true_value(Fraction(1, 50), a, b))


def test_name_and_seed_give_streams_of_their_own() -> None:
    first = normal("a", (8,), Fraction(1), 1)
    assert not np.any(first == normal("b", (8,), Fraction(1), 1))
    assert not np.any(first == normal("a", (8,), Fraction(1), 2))
    assert np.array_equal(first.reshape(2, 4), normal("a", (2, 4), Fraction(1), 1))


def test_the_first_entries_are_these_for_ever() -> None:
    assert normal("embed.token", (2, 2), Fraction(1, 50), 1).tolist() == FIRST


def test_the_distribution_is_normal() -> None:
    values = normal("many", (200_000,), Fraction(1), 3).astype(float)
    assert abs(values.mean()) < 0.01
    assert abs(values.std() - 1) < 0.01
    assert abs((values**4).mean() - 3) < 0.1
    assert abs(np.mean(np.abs(values) < 1) - 0.6827) < 0.005

"""What is known only within a range: every step has a range too, and the truth is in it.

The truth is worked out in Arb, by other code, for numbers drawn from the printed ones: their ends,
their middles and, where it is among them, 0.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from byhand.evaluate import work_out
from byhand.numbers.base import ABSENT, Printed
from byhand.numbers.enclosed.balls import ranges
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.exact import Exact
from byhand.numbers.exact.decide import Decisions
from byhand.numbers.exact.value import Value
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, spread

F = Fraction
Ends = tuple[Fraction, Fraction]


def often_zero(random: Random) -> Any:
    """A number printed to a few decimals, which may well be 0; or one that is known."""
    if random.random() < 0.15:
        return F(random.choice((0, 1, -1)))
    places = random.choice((0, 1, 1, 2))
    return Printed(F(random.choice((0, 0, random.randint(-30, 30)))) / 10**places, places)


def drawn(entry: Any, random: Random) -> Any:
    """One of the numbers that a printed one may be."""
    if not isinstance(entry, Printed):
        return entry
    half = F(1, 2 * 10**entry.places)
    low, high = entry.value - half, entry.value + half
    among = [low, high, entry.value, low + (high - low) * F(random.randint(0, 99), 99)]
    return random.choice([*among, *([F(0)] * 3 if low <= 0 <= high else [])])


def truth(case: Case, random: Random) -> ArbPass:
    tensors = {}
    for name, tensor in case.weights.items():
        data = np.empty(tensor.shape, dtype=object)
        for index in np.ndindex(tensor.shape):
            data[index] = drawn(tensor.data[index], random)
        tensors[name] = Tensor(name, data)
    return ArbPass(case.plan(), Weights(tensors), case.tokens, case.target)


def enclosure(entry: Any) -> Enclosure:
    return Enclosure.of(entry.ball(192)) if isinstance(entry, Value) else entry


def assert_holds(worked: Worked, oracle: ArbPass) -> None:
    for index, entry in worked.entries():
        true = oracle.values[worked.address][index]
        if entry is ABSENT:
            continue
        found = enclosure(entry)
        told = f"{worked.address}{index}: {found} and {true}"
        assert found.rad < inf, told
        assert found.overlaps(Enclosure.of(true)), told
        if isinstance(entry, Value) and entry.register == "enclosed":
            middle, radius = entry.interval(4)
            assert Enclosure(F(middle), F(radius)).overlaps(Enclosure.of(true)), told


CASES = list(
    spread(10, seed=18, entry=often_zero, wishes={"first position": 0, "extra mask": False})
)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_step_of_a_model_of_printed_zeros_has_a_range_that_holds_the_truth(
    number: int,
) -> None:
    case, random = CASES[number], Random(number)
    oracles = [truth(case, random) for _time in range(3)]
    for numbers in (Exact(), Balls(100)):
        steps = work_out(case.plan(), case.weights, case.tokens, numbers, target=case.target)
        for worked in steps.values():
            assert worked.missing is None, f"{worked.address}: {worked.missing}"
            if not worked.whole:
                for oracle in oracles:
                    assert_holds(worked, oracle)
        for position, found in enumerate(steps["next"].value):
            for oracle in oracles if found.proven else ():
                logits = oracle.values["logits"]
                best = logits[position, found.id]
                assert not any(logits[position, k] > best for k in range(case.spec.vocab))


# ------------------------------------------------------------------ one function at a time

tenths = st.integers(-60, 60).map(lambda n: F(n, 10))
intervals = st.tuples(tenths, tenths).map(lambda ends: (min(ends), max(ends)))
rows = st.lists(intervals, min_size=1, max_size=4)
inside = st.integers(0, 8).map(lambda n: F(n, 8))


def ball(ends: Ends) -> arb:
    return number(ends[0]).union(number(ends[1]))


def number(x: Fraction) -> arb:
    return arb(x.numerator) / arb(x.denominator)


def some(row: list[Ends], data: st.DataObject) -> list[arb]:
    """A row of numbers, each from its interval."""
    return [number(low + (high - low) * data.draw(inside)) for low, high in row]


@given(intervals, st.integers(1, 5), inside)
def test_powers(ends: Ends, e: int, share: Fraction) -> None:
    x = ends[0] + (ends[1] - ends[0]) * share
    found = ranges.power(ball(ends), e)
    assert found.is_finite()
    assert found.overlaps(number(x**e))
    if e % 2 == 0:
        assert found > -1e-6


@given(rows, st.sampled_from([F(0), F(1, 1000)]), st.data())
def test_normalized_rows(row: list[Ends], eps: Fraction, data: st.DataObject) -> None:
    with ctx.workprec(100):
        xs = some(row, data)
        mean = sum(xs, arb(0)) / len(xs)
        centered = data.draw(st.booleans())
        if centered:
            xs = [x - mean for x in xs]
            row = [(low - high, high - low) for low, high in [(F(-12), F(12))] * len(row)]
        found = ranges.normalized(list(map(ball, row)), number(eps), centered=centered)
        below = (sum((x * x for x in xs), arb(0)) / len(xs) + number(eps)).sqrt()
        for x, limit in zip(xs, found, strict=True):
            true = x / below if below > 0 else arb(0)
            if true.is_finite():  # else the row is nearly 0, and 0/0 is any of these
                assert limit.overlaps(true)
            assert abs(limit) <= arb(len(xs)).sqrt() * 1.001


@given(rows, st.data())
def test_shares_and_surprises(row: list[Ends], data: st.DataObject) -> None:
    with ctx.workprec(100):
        scores = some(row, data)
        powers = [score.exp() for score in scores]
        total = sum(powers, arb(0))
        for place, limit in enumerate(ranges.shares(list(map(ball, row)))):
            assert limit.overlaps(powers[place] / total)
            assert limit > -1e-6
            assert limit < 1 + 1e-6
            surprised = ranges.surprise(list(map(ball, row)), place)
            assert surprised.is_finite()
            assert surprised.overlaps((total / powers[place]).log())


def test_scores_of_any_width_have_shares_and_a_loss_that_is_known() -> None:
    numbers = Balls(80)
    probs = numbers.softmax(np.array([[arb(0, 5), arb(3, 0.5)]], dtype=object))
    (loss,) = numbers.entries(numbers.loss(probs, target=0))
    assert loss.lower > 0
    assert loss.upper < F(86, 10)  # ln(1 + e^(3.5 + 5)) = 8.5002…
    (alone,) = numbers.entries(numbers.loss(probs.copy(), target=0))
    assert alone.rad == inf or alone.upper >= loss.upper  # whose scores nobody knows


def test_a_root_of_what_may_be_zero_is_not_negative() -> None:
    found = ranges.root(arb(0, 0.04))
    assert found > -1e-9
    assert found.contains(0.2)
    assert found < 0.2001


# ------------------------------------------------------------------ and what algebra is asked


def test_algebra_is_not_asked_where_some_choice_of_the_numbers_says_no(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = Exact()
    x, y = numbers.admit(np.array([Printed(F(0), 1), Printed(F(0), 1)], dtype=object))
    asked: list[Value] = []
    monkeypatch.setattr(Decisions, "proves_zero", lambda _self, v: asked.append(v))
    (found,) = numbers.argmax(np.array([[x, y]], dtype=object))
    assert (found.candidates, asked) == ((0, 1), [])


def test_what_is_zero_for_all_of_them_is_still_proven() -> None:
    numbers = Exact()
    x, y = numbers.admit(np.array([Printed(F(0), 1), Printed(F(0), 1)], dtype=object))
    same = (x + y) * (x + y) - x * x - 2 * x * y - y * y
    assert same == 0
    (found,) = numbers.argmax(np.array([[x * y, y * x]], dtype=object))
    assert (found.proven, found.tied) == (True, (0, 1))

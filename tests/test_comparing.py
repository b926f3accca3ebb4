"""What floats made of it: errors in units of the last place, true digits, other tokens."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor, inf, log2, log10
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import byhand
from byhand.comparing import Comparison, Differing, compare
from byhand.errors import AddressError, InputError
from byhand.evaluate import prepare
from byhand.numbers.base import ABSENT, Prediction
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.floats.formats import FORMATS
from byhand.tracing import Trace
from oracles.arb_pass import ArbPass

F = Fraction
NAMES = ["float64", "float32", "bfloat16", "float16"]


def compared(name: str, format: str, **asked: Any) -> tuple[Trace, Trace, Comparison]:
    floats = byhand.trace(name, float=format, **asked)
    proven = byhand.trace(name, digits=25, **asked)
    return floats, proven, compare(floats, proven)


@pytest.mark.parametrize("format", NAMES)
def test_the_largest_error_is_found_in_units_of_the_true_value(format: str) -> None:
    form = FORMATS[format]
    floats, proven, comparison = compared("journey", format)
    assert comparison.format == format
    oracle = ArbPass(proven.plan, proven.model.weights, proven.tokens, proven.target)
    assert len(comparison.steps) == sum(not worked.whole for worked in proven.values())
    for step in comparison.steps:
        errors = {}
        for index, number in floats[step.address].entries():
            true = oracle.values[step.address][index]
            if number is ABSENT or true is None:
                continue
            with ctx.workprec(400):
                error = float(abs(true - float(number)).mid())
            size = abs(float(true))
            exponent = form.least if size < 2.0**form.least else floor(log2(size))
            errors[index] = error / 2.0 ** (exponent - form.bits + 1), error, size
        assert step.entries == len(errors)
        zeros = {index for index, (_ulps, error, size) in errors.items()
                 if size < 1e-60 and error > 1e-60}  # fmt: skip
        assert set(step.missed_zeros) == zeros
        errors = {index: found for index, found in errors.items() if index not in zeros}
        worst = max(ulps for ulps, _error, _size in errors.values())
        assert step.ulps == pytest.approx(worst, rel=1e-6, abs=1e-9), step
        assert errors[step.at][0] == pytest.approx(worst, rel=1e-6, abs=1e-9)
        digits = sorted(
            inf if error < 1e-60 else 0.0 if size < 1e-60 else max(log10(size / error), 0.0)
            for _ulps, error, size in errors.values()
        )
        assert step.fewest_digits == pytest.approx(digits[0], rel=1e-6)
        assert step.usual_digits == pytest.approx(digits[len(digits) // 2], rel=1e-6)


def test_a_float_run_of_one_rounding_is_within_half_a_unit() -> None:
    _floats, _proven, comparison = compared("minigpt", "bfloat16", only=("embed.token",))
    (step,) = comparison.steps
    assert 0 < step.ulps <= 0.5
    assert 2 < step.fewest_digits < 3.5


def test_weights_that_are_floats_are_the_numbers_themselves() -> None:
    _floats, _proven, comparison = compared("minigpt", "float32", only=("embed.token",))
    (step,) = comparison.steps
    assert (step.ulps, step.fewest_digits, step.usual_digits) == (0.0, inf, inf)


def test_coarser_formats_have_fewer_true_digits() -> None:
    digits = [compared("minigpt", name)[2]["logits"].usual_digits for name in NAMES]
    assert digits[0] > 12
    assert 4 < digits[1] < 8
    assert digits[0] > digits[1] > digits[3] > digits[2]


def test_where_the_floats_take_another_token_is_said() -> None:
    floats, proven, comparison = compared("minigpt", "bfloat16")
    assert comparison.predicted == len(proven.tokens)
    truth, rounded = proven.next or [], floats.next or []
    assert comparison.differing == tuple(
        Differing(i, a.id, b.id) for i, (a, b) in enumerate(zip(rounded, truth, strict=True))
        if a.id != b.id and b.id is not None
    )  # fmt: skip
    assert compared("minigpt", "float64")[2].differing == ()


def test_a_token_that_is_not_proven_is_not_compared() -> None:
    floats, proven, _comparison = compared("tiny", "float32")
    open_one = Prediction(None, None, False, candidates=(0, 1))
    steps = dict(proven.steps)
    steps["next"] = replace(steps["next"], value=[open_one, *steps["next"].value[1:]])
    assert compare(floats, replace(proven, steps=steps)).predicted == 1


def test_overflow_is_an_infinite_error() -> None:
    floats, proven, _comparison = compared("tiny", "float16")
    steps = dict(floats.steps)
    value = np.array(steps["logits"].value)
    value[1, 2] = np.inf
    steps["logits"] = replace(steps["logits"], value=value)
    step = compare(replace(floats, steps=steps), proven)["logits"]
    assert (step.ulps, step.at, step.fewest_digits) == (inf, (1, 2), 0.0)


def test_where_the_enclosures_are_too_wide_to_tell_it_says_so() -> None:
    floats = byhand.trace("journey", float="float64")
    model = byhand.open_model("journey")
    wide = prepare(model, numbers=Balls(40)).work()
    narrow = prepare(model, numbers=Balls(400)).work()
    for blurred, clear in zip(
        compare(floats, wide).steps, compare(floats, narrow).steps, strict=True
    ):
        assert clear.unclear == 0
        assert blurred.ulps <= clear.ulps * (1 + 1e-9)  # what is said is proven
        assert blurred.fewest_digits >= clear.fewest_digits - 1e-9
    assert compare(floats, wide)["probs"].unclear > 0
    assert compare(floats, wide)["probs"].fewest_digits == inf


def test_nothing_is_said_of_what_nobody_knows() -> None:
    floats, proven, _comparison = compared("tiny", "float32")
    steps = dict(proven.steps)
    value = np.array(steps["logits"].value)
    value[0, 0] = arb("nan")
    steps["logits"] = replace(steps["logits"], value=value)
    step = compare(floats, replace(proven, steps=steps))["logits"]
    assert (step.unclear, step.ulps) == (1, 0.0)


def test_limbs_and_balls_say_the_same_of_the_same_floats() -> None:
    model = byhand.open_model("minigpt")
    balls, limbs = (
        prepare(model, "<es> hoy", numbers=numbers, only=("block.0", "logits")).work()
        for numbers in (Balls(200), Limbs(200))
    )
    for format in ("float32", "float16"):
        floats = byhand.trace(model, "<es> hoy", float=format, only=("block.0", "logits"))
        pairs = zip(compare(floats, limbs).steps, compare(floats, balls).steps, strict=True)
        for one, other in pairs:
            assert (one.address, one.entries, one.unclear) == (other.address, other.entries, 0)
            assert one.ulps == pytest.approx(other.ulps, rel=1e-6, abs=1e-9), one
            assert one.fewest_digits == pytest.approx(other.fewest_digits, rel=1e-6)
            assert one.usual_digits == pytest.approx(other.usual_digits, rel=1e-6)


def exactly(mantissa: float, exponent: int) -> Fraction:
    return F(mantissa) * F(2) ** int(exponent)


def test_distances_from_limbs_are_just_below_those_from_their_entries() -> None:
    model = byhand.open_model("minigpt")
    numbers = Limbs(70)
    trace = prepare(model, "<es> hoy", numbers=numbers).work()
    random = np.random.default_rng(2)
    for address in ("embed.token", "block.0.attn.scores", "block.1.mlp.act", "logits"):
        worked = trace[address]
        floats = random.normal(size=worked.step.shape) * 10.0 ** random.integers(-20, 3)
        floats.flat[0] = inf
        found = numbers.apart(worked.value, floats)
        assert found.least.flat[0] == inf
        for index, entry in worked.entries():
            if np.isinf(floats[index]):
                continue
            least = exactly(found.least[index], found.exponents[index])
            if entry is ABSENT:
                assert (least, found.sizes[index]) == (0, 0)
                continue
            expected = max(abs(entry.mid - F(floats[index])) - entry.rad, F(0))
            assert expected * (1 - F(1, 10**9)) <= least <= expected
            largest = abs(entry.mid) + entry.rad
            size = exactly(found.sizes[index], found.tops[index])
            assert largest <= size <= largest * (1 + F(1, 10**9))
            assert largest < F(2) ** int(found.tops[index])


def test_on_torch_tensors_it_is_the_same() -> None:
    pytest.importorskip("torch")
    proven = byhand.trace("journey", digits=12)
    comparison = compare(byhand.trace("journey", float="float32", device="cpu"), proven)
    assert comparison["logits"].ulps < 100
    assert comparison["logits"].fewest_digits > 5


def test_a_step_is_found_by_any_of_its_names_and_all_come_in_order() -> None:
    _floats, _proven, comparison = compared("journey", "float32")
    assert comparison["stream.1"] is comparison["block.0.mlp.add"]
    assert tuple(comparison) == comparison.steps
    with pytest.raises(AddressError, match="there is no step 'logit'") as caught:
        comparison["logit"]
    assert caught.value.hint == "did you mean logits?"
    with pytest.raises(AddressError, match="next was not compared"):
        comparison["next"]


def test_only_floats_are_compared_with_enclosures_and_of_the_same_text() -> None:
    proven = byhand.trace("tiny", digits=5)
    with pytest.raises(InputError, match="only a trace in floats can be compared with a proven"):
        compare(byhand.trace("tiny"), proven)
    with pytest.raises(InputError, match="only a trace in floats can be compared with a proven"):
        compare(byhand.trace("tiny", float="float32"), byhand.trace("tiny"))
    with pytest.raises(InputError, match="not of the same model and text"):
        compare(byhand.trace("tiny", "b", float="float32"), proven)

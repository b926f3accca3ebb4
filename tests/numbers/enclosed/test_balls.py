"""Balls: every entry of every step contains the real value, and is no wider than it must be."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from math import inf, isfinite, log2
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand import forward
from byhand.errors import InputError
from byhand.evaluate import Admitted, prepare, work_out
from byhand.expression import parse
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT, Note, Prediction, Printed
from byhand.numbers.enclosed.balls.functions import ACTIVATIONS
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import EVERYTHING, Enclosure
from byhand.numbers.exact import Exact
from byhand.worked import Worked
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, given_answers, make_case, nasty, spread

F = Fraction
ZERO = Enclosure(F(0), F(0))


def steps_of(case: Case, bits: int) -> dict[str, Worked]:
    return work_out(case.plan(), case.weights, case.tokens, Balls(bits), target=case.target)


def assert_contains_arb(steps: Mapping[str, Worked], oracle: ArbPass) -> float:
    """Every entry has a point in common with the oracle's ball, whose 400 bits make it one.

    Returns the share of the entries that are known to twelve digits.
    """
    count = narrow = 0
    for address, worked in steps.items():
        if worked.step.op == "argmax":
            assert_predictions(worked.value, oracle)
        for index, found in worked.entries():
            expected = oracle.values[address][index]
            if found is ABSENT or expected is None:
                assert found is ABSENT, f"{address}{index} should be masked"
                assert expected is None, f"{address}{index} should not be masked"
                continue
            true = Enclosure.of(expected)
            assert found.overlaps(true), f"{address}{index}: {found}, not {true}"
            count += 1
            narrow += found.proves(12) or found.rad < F(1, 10**12)
    return narrow / count


def assert_predictions(predictions: list[Prediction], oracle: ArbPass) -> None:
    """What is proven is the largest by Arb; among what is undecided, the largest is."""
    vocab = oracle.plan.spec.vocab
    for position, prediction in enumerate(predictions):
        balls: Any = [oracle.values["logits"][position, token] for token in range(vocab)]
        may_be = [i for i in range(vocab) if not any(balls[i] < ball for ball in balls)]
        if prediction.proven:
            assert prediction.id == may_be[0]
            assert prediction.tied in ((), tuple(may_be))
        else:
            assert prediction.id is None
            assert set(may_be) <= set(prediction.candidates)


# ------------------------------------------------------------------ whole passes


LONG = os.environ.get("BYHAND_LONG") == "1"
CASES = list(spread(1000 if LONG else 40, seed=21, among=3 if LONG else 12))


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_every_step_contains_what_arb_says_and_is_narrow(case: Case) -> None:
    oracle = ArbPass(case.plan(), case.weights, case.tokens, case.target)
    assert assert_contains_arb(steps_of(case, 64), oracle) > 0.5
    steps = steps_of(case, 160)
    assert assert_contains_arb(steps, oracle) == 1 or has_a_row_without_variance(steps)


def has_a_row_without_variance(steps: dict[str, Any]) -> bool:
    """Whether a divisor may be 0, as that of equal entries is: then no precision helps."""
    divisors = (entry for step in steps.values() if step.step.op == "root"
                for _index, entry in step.entries())  # fmt: skip
    return any(entry.contains(0) for entry in divisors)


def test_the_cases_have_every_option_among_them() -> None:
    answers = set().union(*map(given_answers, CASES))
    for wanted in [
        ("position", "learned"), ("position", "sinusoidal"), ("rope", True),
        ("rope pairing", "half"), ("rope pairing", "interleaved"), ("rope given", True),
        ("alibi", True), ("score table", True), ("window", 1), ("packed", "concatenated"),
        ("packed", "per_head"), ("kv_heads", 1), ("heads", 4), ("place", "post"),
        ("parallel", True), ("k norm", "layernorm"), ("q norm", "rmsnorm"), ("out", False),
        ("gated", True), ("layout", "in_out"), ("layout", "out_in"), ("tied", False),
        ("activation", "gelu"), ("activation", "gelu_tanh"), ("activation", "silu"),
        ("activation", "relu"), ("activation", "identity"), ("head bias", True),
    ]:  # fmt: skip
        assert wanted in answers, wanted


def test_weights_set_by_hand_where_much_cancels_are_contained_as_well() -> None:
    for case in spread(200 if LONG else 15, seed=22, among=3, entry=nasty):
        oracle = ArbPass(case.plan(), case.weights, case.tokens, case.target)
        assert_contains_arb(steps_of(case, 100), oracle)


def huge_and_tiny(random: Random) -> Fraction:
    """Weights that no float format would like."""
    return random.choice((-1, 1)) * F(random.randint(1, 99), 7) * F(10) ** random.randint(-9, 3)


@settings(max_examples=500 if LONG else 25)
@given(st.data())
def test_random_models_with_huge_and_tiny_weights_are_contained(data: st.DataObject) -> None:
    case = make_case(
        lambda question, options: data.draw(st.sampled_from(list(options)), label=question),
        seed=data.draw(st.integers(0, 10**6)),
        largest=3,
        entry=huge_and_tiny,
    )
    oracle = ArbPass(case.plan(), case.weights, case.tokens, case.target)
    assert_contains_arb(steps_of(case, data.draw(st.sampled_from((24, 53, 200)))), oracle)


def test_the_exact_values_lie_in_the_balls() -> None:
    compared = 0
    for case in CASES[:12]:
        exact = work_out(case.plan(), case.weights, case.tokens, Exact(), target=case.target)
        for address, worked in steps_of(case, 80).items():
            for index, found in worked.entries():
                value = exact[address].at(index)
                if value is ABSENT:
                    continue
                if value.fraction is not None:
                    assert found.contains(value.fraction), f"{address}{index}"
                assert found.overlaps(Enclosure.of(value.ball(300))), f"{address}{index}"
                compared += 1
    assert compared > 1000


@pytest.mark.parametrize("name", ["tiny", "journey", "abc", "minigpt"])
def test_more_bits_make_every_ball_narrower_and_they_agree(name: str) -> None:
    model = open_model(name)
    coarse, fine = (prepare(model, numbers=Balls(bits)).work() for bits in (64, 128))
    for worked in fine.values():
        for index, narrow in worked.entries():
            if narrow is ABSENT or worked.whole:
                continue
            wide = coarse.steps[worked.address].at(index)
            assert narrow.overlaps(wide), f"{worked.address}{index}"
            assert narrow.rad <= wide.rad, f"{worked.address}{index}"
            assert narrow.rad * 2**50 <= wide.rad or narrow.rad < F(1, 2**90)


def test_minigpt_shows_what_a_float64_run_shows() -> None:
    model = open_model("minigpt")
    from byhand.numbers.floats import Floats

    floats = prepare(model, numbers=Floats("float64")).work()
    balls = prepare(model, numbers=Balls(120)).work()
    for (_i, found), expected in zip(
        balls["logits"].entries(), floats["logits"].array.ravel(), strict=True
    ):
        assert float(found) == pytest.approx(float(expected), rel=1e-9, abs=1e-11)
    assert [p.id for p in balls.next or []] == [p.id for p in floats.next or []]


# ------------------------------------------------------------------ weights


@pytest.mark.parametrize(
    "kind", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda kind: kind.__name__
)
def test_a_float_is_the_dyadic_number_it_is(kind: Any) -> None:
    data = np.array([0.1, -3.0, 0.0, 6e-5], dtype=kind)
    found = Balls(4).admit(data)
    assert [entry.mid for entry in Balls(4).entries(found)] == [F(float(x)) for x in data]
    assert all(entry.exact for entry in Balls(4).entries(found))


def test_weights_admitted_once_serve_every_precision() -> None:
    data = np.array([F(1, 3), F(3, 2**100), parse("sqrt(2)/2"), parse("sqrt(4)"), ABSENT, 7, 0.5])
    admitted = Balls(30).admit(data)
    for bits in (30, 200, 60):
        third, dyadic, root, two, absent, seven, half = Balls(bits).entries(admitted)
        assert third.contains(F(1, 3))
        assert 0 < third.rad < F(1, 2 ** (bits - 2))
        assert third.rad > F(1, 2 ** (bits + 8))
        assert root.lower**2 < F(1, 2) < root.upper**2
        assert root.rad < F(1, 2 ** (bits - 4))
        assert absent is ABSENT
        assert [x.mid for x in (dyadic, two, seven, half)] == [F(3, 2**100), 2, 7, F(1, 2)]
        assert all(x.exact for x in (dyadic, two, seven, half))


def test_a_printed_weight_is_all_that_rounds_to_it_at_every_precision() -> None:
    admitted = Balls(30).admit(np.array([Printed(F(3, 10), 2)], dtype=object))
    for bits in (10, 30, 3000):
        (found,) = Balls(bits).entries(admitted)
        assert found.contains("0.295")
        assert found.contains("0.305")
        assert not found.contains("0.2949")
        assert found.rad < F(5, 1000) * (1 + F(1, 10**6))


def test_printed_weights_carry_every_number_they_may_be() -> None:
    model = open_model("journey")
    random = Random(4)
    tensor = model.weights["block.0.attn.q"]
    printed = np.empty(tensor.shape, dtype=object)
    for index in np.ndindex(tensor.shape):
        printed[index] = Printed(tensor.data[index], 2)
    numbers = Balls(120)
    tokens = model.vocabulary.encode("the cat sat on")
    plan = forward.plan(model.spec, len(tokens))

    def worked_with(data: Any) -> dict[str, Worked]:
        weights = Admitted(model.weights, numbers)
        weights.values["block.0.attn.q"] = numbers.admit(data)
        return work_out(plan, weights, tokens, numbers)

    wide = worked_with(printed)
    for _try in range(5):
        data = np.array(tensor.data)
        for index in np.ndindex(data.shape):
            data[index] += F(random.randint(-1000, 1000), 200_000)
        for address, worked in worked_with(data).items():
            for index, narrow in worked.entries():
                if narrow is not ABSENT:
                    assert wide[address].at(index).overlaps(narrow), f"{address}{index}"
    assert wide["block.0.attn.scores"].at((0, 1, 1)).rad > F(1, 1000)


@pytest.mark.parametrize("bad", [np.array([1.0, np.inf]), np.array([F(1), float("nan")])])
def test_a_weight_that_is_no_finite_number_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="not a finite number"):
        Balls(64).admit(bad)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="not a number"):
        Balls(64).admit(np.array(["1/2"], dtype=object))


# ------------------------------------------------------------------ precision is the system's own


def test_results_do_not_depend_on_the_precision_set_in_flint() -> None:
    model = open_model("journey")

    def shown() -> list[Any]:
        worked = prepare(model, numbers=Balls(90)).work()
        return [(entry.mid, entry.rad) for _i, entry in worked["probs"].entries()]

    expected = shown()
    for precision in (10, 2000):
        with ctx.workprec(precision):
            assert shown() == expected
            assert ctx.prec == precision


def test_flint_has_its_precision_back_after_an_error() -> None:
    before = ctx.prec
    with pytest.raises(InputError, match="there is no activation 'swish'"):
        Balls(777).activate(Balls(777).admit(np.array([[1.0]])), kind="swish")
    assert ctx.prec == before


# ------------------------------------------------------------------ single operations


def row(*entries: Any) -> Any:
    result = np.empty((1, len(entries)), dtype=object)
    result[0, :] = entries
    return result


def test_a_row_of_zeros_over_zero_is_zero_with_a_note() -> None:
    numbers = Balls(64)
    x = numbers.admit([[0.0, 0.0], [1.0, 2.0]])
    found = numbers.entries(numbers.normalize(x, numbers.admit([0.0, 1.0])))
    assert found.tolist()[0] == [ZERO, ZERO]
    assert numbers.notes == [Note("zero-variance", (0,))]


def test_what_may_be_zero_divides_into_everything_and_that_stays_in_its_row() -> None:
    numbers = Balls(64)
    x = np.array([[arb(0, 1e-9), arb(0, 1e-9)], [arb(1), arb(2)]])
    by = numbers.root(numbers.mean_square(x), eps=F(0))
    root = numbers.entries(by)[0]
    assert root.lower <= 0 < root.upper < F(1, 10**8)
    found = numbers.normalize(x, by.copy())  # which does not tell what it is the root of
    assert numbers.entries(found)[0].tolist() == [EVERYTHING, EVERYTHING]
    v = np.stack([found])
    scores = numbers.scores(v, v, mask=[[True, False], [False, True]], queries=(0, 1), keys=(0, 1))
    mixed = numbers.entries(numbers.mix(numbers.softmax(scores), v))
    assert mixed[0, 0, 0] == EVERYTHING
    assert mixed[0, 1, 0].proves(12)


def test_a_softmax_of_what_nobody_knows_still_lies_between_0_and_1() -> None:
    numbers = Balls(64)
    for wide in (arb("nan"), arb(0, 10**9), arb(0, 10**30)):
        for share in numbers.entries(numbers.softmax(row(wide, arb(1))))[0]:
            assert share.contains(0.0)
            assert share.contains(1.0)
            assert share.rad < 1
    assert numbers.entries(numbers.softmax(row(arb("nan")))).tolist() == [[Enclosure(F(1), F(0))]]


def test_a_softmax_of_scores_that_differ_hugely_has_its_tiny_share() -> None:
    numbers = Balls(64)
    large, small = numbers.entries(numbers.softmax(row(arb(0), arb(-100_000))))[0]
    assert large.proves(15)
    assert small.decimal(6) == "3.56295e-43430"
    far = numbers.entries(numbers.softmax(row(arb(0), arb(-(10**18)))))[0]
    assert far[1].contains(0) or far[1].upper < F(1, 10**300)


@pytest.mark.parametrize("kind", sorted(ACTIVATIONS))
def test_activations_of_wide_narrow_and_huge_balls_contain_those_of_their_points(kind: str) -> None:
    numbers = Balls(80)
    points = [arb(x) for x in (-1e5, -40.0, -3.0, -1e-12, 0.0, 1e-300, 0.5, 7.0, 1e6)]
    for radius in (0.0, 1e-20, 0.3, 5.0, 1e7):
        balls = [arb(point, radius) for point in points]
        for ball, found in zip(
            balls, numbers.entries(numbers.activate(row(*balls), kind=kind))[0], strict=True
        ):
            with ctx.workprec(400):
                points_of = ball.lower(), ball.mid(), ball.upper()
                images = [Enclosure.of(by_definition(kind, point)) for point in points_of]
            for true in images:
                assert found.overlaps(true), (kind, ball, found, true)
            if radius == 0 and ball != 0:
                tiny = abs(found.upper) < F(1, 10**300_000)
                assert found.exact or found.proves(17) or tiny, (kind, ball, found)


def by_definition(kind: str, x: arb) -> arb:
    match kind:
        case "relu":
            return x.max(arb(0))
        case "gelu":
            return x * (1 + (x / arb(2).sqrt()).erf()) / 2
        case "gelu_tanh" | "gelu_fast" | "gelu_bloom":
            roots = {"gelu_fast": arb(7978845608) / 10**10, "gelu_bloom": arb(79788456) / 10**8}
            root = roots.get(kind, (2 / arb.pi()).sqrt())
            return x * (1 + (root * (x + arb(44715) / 10**6 * x**3)).tanh()) / 2
        case "relu2":
            return x.max(arb(0)) ** 2
        case "quick_gelu":
            return x * (1 + (x * 851 / 1000).tanh()) / 2
        case "sigmoid":
            return (1 + (x / 2).tanh()) / 2
        case "tanh":
            return x.tanh()
        case _:
            return x * (1 + (x / 2).tanh()) / 2


def test_an_activation_of_everything_is_everything() -> None:
    for kind in ACTIVATIONS:
        assert Balls(64).entries(Balls(64).activate(row(arb("nan")), kind=kind))[0, 0] == EVERYTHING


# ------------------------------------------------------------------ the next token


def predicted(*logits: Any) -> Prediction:
    (found,) = Balls(64).argmax(row(*logits))
    return found


def test_the_largest_is_proven_with_its_margin() -> None:
    found = predicted(arb(1), arb(3, 0.25), arb(2, 0.25), arb(-5, 7))
    assert (found.id, found.proven, found.tied, found.candidates) == (1, True, (), ())
    assert found.margin.contains(F(1))
    assert found.margin.contains("0.51")  # the second may be either of two
    assert found.margin.lower > F(49, 100)


def test_overlapping_balls_leave_it_open_which_is_the_largest() -> None:
    found = predicted(arb(1, 0.5), arb(0), arb(2, 0.75), arb(1.25))
    assert found == Prediction(None, None, False, candidates=(0, 2, 3))


def test_a_tie_is_proven_by_exact_numbers_alone() -> None:
    tie = predicted(arb(1), arb(2), arb(0), arb(2))
    assert tie == Prediction(1, ZERO, True, tied=(1, 3))
    assert predicted(arb(2, 1e-30), arb(2, 1e-30)).candidates == (0, 1)


def test_a_single_token_has_no_margin() -> None:
    assert predicted(arb(1, 5)) == Prediction(0, None, True)


def test_a_logit_that_nobody_knows_leaves_it_open() -> None:
    assert predicted(arb("nan"), arb(5), arb(4)).candidates == (0, 1)
    assert predicted(arb("nan"), arb("inf")).candidates == (0, 1)


def test_the_loss_of_a_probability_that_may_be_zero_is_unknown() -> None:
    numbers = Balls(64)
    assert numbers.entries(numbers.loss(row(arb(0, 0.1), arb(1)), target=0))[0] == EVERYTHING
    assert (
        numbers.entries(numbers.loss(row(arb(0.5), arb(0.5)), target=0))[0].decimal(10)
        == "0.6931471806"
    )


# ------------------------------------------------------------------ what a search needs to know


def test_magnitudes_are_the_logarithms_of_middles_and_radii() -> None:
    numbers = Balls(100)
    values = row(
        arb(8, 2**-20), arb(0), arb(0, 4), ABSENT, arb("nan"), arb(-3) ** 200, arb(2) ** -5000
    )
    middles, radii = numbers.magnitudes(values)
    assert middles[0].tolist() == pytest.approx([3, -inf, -inf, -inf, -inf, 200 * log2(3), -5000])
    assert radii[0, :5].tolist() == pytest.approx([-20, -inf, 2, -inf, inf], abs=1e-6)
    assert isfinite(radii[0, 5])
    assert radii[0, 6] == -inf


def test_magnitudes_of_absurd_sizes_are_those_of_their_enclosures() -> None:
    middles, radii = Balls(64).magnitudes(row(arb(-(10**9)).exp(), arb(10**9).exp(), arb(0)))
    assert middles[0].tolist() == [-inf, -inf, -inf]
    assert radii[0].tolist() == [pytest.approx(-(2**20), abs=2), inf, -inf]


def test_distances_from_floats_are_lower_bounds_however_small_the_numbers_are() -> None:
    numbers = Balls(100)
    tiny = arb(-1600).exp()
    values = row(arb(1), ABSENT, arb(2, 0.5), tiny, arb(-(10**18)).exp(), arb(0), arb(0, 1e-30))
    found = numbers.apart(values, np.array([[1.5, 9.0, 2.0, 0.0, 0.0, 1e-300, 1e-29]]))
    least = found.least[0] * 2.0 ** np.maximum(found.exponents[0], -900)
    assert least[:3].tolist() == [0.5, 0.0, 0.0]
    assert found.exponents[0, 3] == pytest.approx(-1600 / math.log(2), abs=60)
    assert found.exponents[0, 4] < -(10**18)
    assert (found.ulps(53, -1022)[0, 3:5] == 5e-324).all()  # not 0, and next to nothing
    assert found.digits()[0, 3:5].tolist() == [0.0, 0.0]
    assert (found.sizes[0] == 0).tolist() == [False, True, False, False, False, True, False]
    # of 0 ± 1e-30 the unit is that of 1e-30, the largest it may be, and 1e-29 is at least 9e-30 off
    unit = 2.0 ** (math.floor(math.log2(1e-30)) - 52)
    assert found.ulps(53, -1022)[0, 6] == pytest.approx(9e-30 / unit, rel=1e-6)
    assert found.ulps(53, -1022)[0, 6] <= 9e-30 / unit


def test_zeros_that_were_proven_elsewhere_are_written_in() -> None:
    numbers = Balls(100)
    values = row(arb(0, 1e-30), arb(1))
    patched = numbers.with_zeros(values, [(0, 0)])
    assert numbers.entries(patched)[0, 0] == ZERO
    assert not numbers.entries(values)[0, 0].exact


def test_a_model_without_anything_but_embeddings_is_worked_out(tiny: Model) -> None:
    numbers = Balls(64)
    worked = prepare(tiny, numbers=numbers, only=("embed.token",)).work()
    assert [entry.mid for _i, entry in worked["embed.token"].entries()] == [1, 0, 0, 1]

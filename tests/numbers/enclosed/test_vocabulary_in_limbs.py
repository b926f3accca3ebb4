"""The newer operations in limbs: the real values are inside, alone and in whole passes.

`python -m benchmarks.vocabulary` takes 100,000 samples of the operations and many more models.
"""

from __future__ import annotations

import math
import random as randoms
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from arb_oracle import nasty, worst_error
from real_values import contained
from test_kernels import stand_in
from test_limbs_passes import gpt2, random_weights
from vocabulary_samples import SAMPLES, Sampler

from byhand import forward
from byhand.evaluate import Admitted, work_out
from byhand.numbers.base import Note
from byhand.numbers.enclosed.gpu import causal_attention, visible_keys
from byhand.numbers.enclosed.gpu.repeated_pass import RepeatedPass
from byhand.numbers.enclosed.limbs import arithmetic, functions
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry
from oracles.vocabulary import Truth
from oracles.vocabulary_models import drawn_model

system = Limbs(120)


@pytest.mark.parametrize("name", SAMPLES)
def test_real_values_lie_in_what_an_operation_makes_of_enclosures(name: str) -> None:
    used = [SAMPLES[name](Sampler(Limbs(bits), np.random.default_rng(seed)))
            for seed in range(5) for bits in (60, 120)]  # fmt: skip
    assert max(used) <= 1


@pytest.mark.parametrize("name", ["soft_cap", "clamp", "rotate", "attention", "experts"])
def test_radii_are_not_much_wider_than_they_must_be(name: str) -> None:
    used = [SAMPLES[name](Sampler(system, np.random.default_rng(seed))) for seed in range(8)]
    assert max(used) > 0.5


@pytest.mark.parametrize("name", ["clamp", "affine", "attention", "experts"])
def test_tensors_work_out_the_same(name: str) -> None:
    pytest.importorskip("torch")
    for seed in range(2):
        SAMPLES[name](Sampler(Limbs(90, "cpu"), np.random.default_rng(seed)))


@pytest.mark.parametrize("name", ["quick_gelu", "gelu_fast", "gelu_bloom", "sigmoid", "tanh"])
@pytest.mark.parametrize("low", [-8, -79])
def test_no_function_is_off_by_more_than_written(name: str, low: int) -> None:
    rng = randoms.Random(f"{name} {low}")
    x = nasty(Fraction(-4), Fraction(4), low - 7, 24, rng)
    made = functions.activation(name, x, low)[0]
    assert worst_error(name, x, made, low) <= functions.ERROR[name]


# ------------------------------------------------------------------ whole passes


@pytest.mark.parametrize("seed", range(6))
def test_passes_of_models_with_every_newer_field_contain_the_real_values(seed: int) -> None:
    model = drawn_model(seed)
    numbers, truth = Limbs(90), Truth(700)
    ours, real = model.work(numbers), model.work(truth)
    for step in model.plan():
        if step.op not in ("given", "argmax"):
            made = ours[step.address].value
            contained(numbers, made, real[step.address].value)
    assert max(entry.rad for entry in numbers.entries(ours["logits"].value)[-1]) < 2.0**-50


def test_a_repeated_pass_of_such_a_model_is_as_right_as_an_ordinary_one() -> None:
    model = drawn_model(5)
    plan, numbers, finer = model.plan().only(["logits"]), Limbs(90, "cpu"), Limbs(150)
    admitted = Admitted(model.weights, numbers)

    def work(tokens: Any, system: Limbs = numbers, weights: Any = admitted) -> dict[str, Any]:
        return work_out(plan, weights, tokens, system.at(system.bits), source=model.source)

    again = RepeatedPass(work, [1, 2, 3], "cpu")
    assert again.repeats
    for text in ([1, 2, 3], [4, 0, 2]):
        mine, real = again(text)["logits"].value, work(text, finer, model.weights)["logits"].value
        both = zip(
            numbers.entries(mine).tolist()[-1], finer.entries(real).tolist()[-1], strict=True
        )
        assert all(abs(one.mid - other.mid) <= one.rad + other.rad for one, other in both)
        assert numbers.entries(mine)[-1, 0].rad < 2.0**-40


@pytest.mark.parametrize("changed", [{"sinks": True}, {"d_value": 3}])
def test_kernels_for_causal_attention_leave_out_what_they_do_not_know(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values may be wider or narrower than keys; shares beside a sink are made without kernels."""
    monkeypatch.setattr(visible_keys, "FEWEST", 1)
    monkeypatch.setattr(visible_keys, "STEP", 4)
    old = gpt2(1, 16)
    attention = old.blocks[0].attention
    assert attention is not None
    attention = replace(attention, packed=None, **changed)
    spec = replace(old, blocks=(replace(old.blocks[0], attention=attention),))
    weights = random_weights(spec, np.random.default_rng(1), "random")
    tokens, plan = [1, 4, 2, 0, 3], forward.plan(spec, 5).only(["block.0.attn.out"])
    system, finer = Limbs(80, "cpu"), Limbs(150)
    truth = work_out(plan, weights, tokens, finer)
    with stand_in(monkeypatch):
        quick = work_out(plan, weights, tokens, system)
        deferred = isinstance(quick["block.0.attn.weights"].value, causal_attention.DeferredShares)
        assert deferred == ("d_value" in changed)
        for name in ("weights", "mixed", "out"):
            address = f"block.0.attn.{name}"
            mine, real = (
                numbers.entries(steps[address].value)
                for numbers, steps in ((system, quick), (finer, truth))
            )
            for index in np.ndindex(*real.shape):
                if real[index] is not np.ma.masked:
                    one, other = mine[index], real[index]
                    assert abs(one.mid - other.mid) <= one.rad + other.rad, address
                    assert one.rad < 2.0**-40


# ------------------------------------------------------------------ what is proven


def enclosed(rows: list[list[float]], radius: float) -> Enclosed:
    digits = arithmetic.from_floats(np.array(rows))[0]
    return by_entry(digits, np.full(digits.shape, radius) if radius else None)


def ends(value: Any) -> list[list[tuple[float, float]]]:
    return [
        [(float(entry.lower), float(entry.upper)) for entry in row] for row in system.entries(value)
    ]


NO, YES, OPEN = (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)


@pytest.mark.parametrize(
    ("radius", "found"),
    [(0.0, [YES, NO, YES, NO]), (0.2, [YES, NO, YES, NO]), (0.3, [YES, OPEN, OPEN, NO])],
)
def test_a_choice_is_made_where_the_order_is_proven(radius: float, found: Any) -> None:
    scores = enclosed([[3.0, 1.0, 1.5, -2.0]], radius)
    assert ends(system.choose(scores, count=2)) == [found]


def test_numbers_too_near_for_floats_are_told_apart_and_a_tie_is_said() -> None:
    near = arithmetic.from_integers([1 << 100, (1 << 100) + 1, 5, 5], -100).reshape(2, 2)
    system.notes.clear()
    assert ends(system.choose(Enclosed(near), count=1)) == [[NO, YES], [YES, NO]]
    assert system.notes == [Note("tied-experts", (1,))]


@pytest.mark.parametrize(("rule", "found"), [("max", [NO, NO, NO, YES]), ("top2", [NO, YES] * 2)])
def test_groups_count_by_their_best_or_by_their_two_best(rule: str, found: Any) -> None:
    scores = enclosed([[2.0, 2.5, -9.0, 3.0]], 0.1)
    groups = {"groups": 2, "groups_chosen": 1, "group_rule": rule}
    made = ends(system.choose(scores, count=1, **groups))
    assert made == [[NO, YES, NO, NO] if rule == "top2" else found]


def test_an_open_choice_of_groups_leaves_their_experts_open() -> None:
    scores = enclosed([[2.0, 1.0, 2.05, 1.5, 0.0, 0.0]], 0.1)
    groups = {"groups": 3, "groups_chosen": 1, "group_rule": "max"}
    assert ends(system.choose(scores, count=1, **groups)) == [[OPEN, NO, OPEN, NO, NO, NO]]


@pytest.mark.parametrize("alone", [False, True])
def test_shares_of_an_open_choice_are_anything_from_0_to_1(alone: bool) -> None:
    scores = enclosed([[3.0, 2.9, 1.0], [3.0, 2.0, 1.0]], 0.1)
    chosen = system.choose(scores, count=1)
    shares = system.expert_shares(scores, chosen, normalised=True, alone=alone)
    first, second = ends(shares)
    assert first == [OPEN, OPEN, NO]
    assert second[1:] == [NO, NO]
    assert second[0][0] <= 1 <= second[0][1]
    assert (second[0] == YES) == (not alone)  # a softmax of one score, whatever it is


def test_an_expert_that_is_not_chosen_may_answer_anything() -> None:
    known, endless = np.zeros((1, 1)), np.full((1, 1), math.inf)
    digits = arithmetic.from_floats(np.ones((2, 1, 3)))[0]
    answers = Enclosed(digits, np.concatenate((known, endless)))
    made = system.combine(answers, enclosed([[0.5, 0.0]], 0.0))
    assert [entry.mid for entry in system.entries(made)[0]] == [Fraction(1, 2)] * 3
    assert all(entry.rad < 2.0**-100 for entry in system.entries(made)[0])


def test_what_is_proven_to_be_beyond_a_limit_is_the_limit() -> None:
    x = enclosed([[3.0, -3.0, 0.5]], 0.25)
    made = ends(system.clamp(x, least=Fraction(-1), most=Fraction(2)))
    assert np.allclose(made, [[(2.0, 2.0), (-1.0, -1.0), (0.25, 0.75)]], rtol=0, atol=0.01)


def test_a_capped_number_of_which_nothing_is_known_is_within_the_cap() -> None:
    x = enclosed([[0.0]], math.inf)
    [[capped]] = ends(system.soft_cap(x, cap=Fraction(5)))
    [[share]] = ends(system.activate(x, kind="sigmoid"))
    assert -10.2 < capped[0] < capped[1] < 10.2
    assert -0.53 < share[0] < share[1] < 1.53


def test_what_is_only_moved_stays_exact() -> None:
    x, y = (enclosed([[1.0, 2.0]], 0.0) for _part in "xy")
    heads = [Enclosed(part.digits.reshape(1, 1, 2)) for part in (x, y)]
    assert system.beside(*heads).exact
    assert system.bucket_scores(system.admit(np.float32([[1], [2]])), buckets=[[1, 0]]).exact
    assert system.clamp(x, least=Fraction(1, 2), most=Fraction(3, 2)).exact
    assert system.rescale(x, plus=Fraction(1)).exact


def test_one_plus_a_gain_is_not_rounded() -> None:
    tiny = np.float32([2.0**-100])
    made = system.affine(enclosed([[1.0]], 0.0), gain=system.admit(tiny), plus_one=True)
    assert system.entries(made)[0, 0].mid == 1 + Fraction(1, 2**100)

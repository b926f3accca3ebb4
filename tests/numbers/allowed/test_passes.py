"""Whole passes: what byhand's own floats give is allowed at every step, from the lines above and
from the text alone; and single matters: overflow, casts, notes, ties, heads, masks, orders."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand import evaluate
from byhand.evaluate import Admitted, prepare
from byhand.expression import Number, Quotient
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.base import ABSENT, Printed
from byhand.numbers.floats import Floats
from byhand.plan import Step
from byhand.worked import Worked

BUILTIN = ("tiny", "journey", "abc", "minigpt", "minigpt-init")


def claims_of(model: Model, format: str) -> dict[str, Any]:
    done = evaluate.trace(model, None, Floats(format))
    return {
        step.address: np.asarray(np.ma.getdata(done[step.address].value)).astype(np.float64)
        for step in done.plan
        if step.op not in ("given", "argmax")
    }


def judged(model: Model, claims: dict[str, Any], precision: str, *, over: bool) -> dict[Step, Any]:
    """Every claim judged; with `over`, what follows is worked out from the claims."""
    numbers = Allowed(precision)
    job = prepare(model, None, numbers)
    weights = Admitted(model.weights, numbers)
    done: dict[str, Worked] = {}
    found = {}
    for step in job.plan:
        given = {"tokens": job.tokens, "target": job.target}
        if step.op == "given":
            done[step.address] = Worked(step, given[step.address], numbers)
            continue
        worked = evaluate._work_out_step(step, done, weights, numbers)
        if step.address in claims:
            claim = claims[step.address]
            found[step.address] = numbers.judge(worked.value, (), claim)
            if over:
                value = numbers.overlay(worked.value, (), claim)
                worked = Worked(step, value, numbers)
        done[step.address] = worked
    return found


@pytest.mark.parametrize("name", BUILTIN)
@pytest.mark.parametrize(
    ("format", "precision"),
    [
        ("float64", "float64"),
        ("float32", "float32"),
        ("float32", "transformers:float32"),
        ("float32", "tf32"),
        ("bfloat16", "bfloat16"),
        ("float16", "float16"),
    ],
)
def test_byhands_own_floats_are_allowed(name: str, format: str, precision: str) -> None:
    model = open_model(name)
    claims = claims_of(model, format)
    for over in (True, False):
        for address, each in judged(model, claims, precision, over=over).items():
            assert each.possible, (address, each.share, over)
            if over and each.times is not None:
                assert each.times < 8, (address, each.times)


def test_float32_is_not_float64_and_bfloat16_is_not_float32() -> None:
    model = open_model("minigpt")
    for format, precision in (("float32", "float64"), ("bfloat16", "float32")):
        found = judged(model, claims_of(model, format), precision, over=True)
        outside = [address for address, each in found.items() if not each.possible]
        assert len(outside) > len(found) / 3


def test_a_slip_in_one_entry_is_seen_there_and_nowhere_else() -> None:
    model = open_model("minigpt")
    claims = claims_of(model, "float32")
    claims["block.1.mlp.hidden"] = claims["block.1.mlp.hidden"].copy()
    claims["block.1.mlp.hidden"][2, 7] *= 1.001
    found = judged(model, claims, "float32", over=True)
    wrong = [address for address, each in found.items() if not each.possible]
    assert wrong == ["block.1.mlp.hidden", "block.1.mlp.act"]
    assert found["block.1.mlp.hidden"].worst == (2, 7)


def test_without_rounding_the_pass_is_as_narrow_as_float64_makes_it() -> None:
    done = evaluate.trace(open_model("journey"), None, Allowed("exact"))
    assert done["logits"].value.rad.max() < 1e-12
    assert done["next"].value[-1].proven
    assert abs(done["loss"].value.mid[0] - 1.8312926370) < 1e-9


# ------------------------------------------------------------------------ single matters


def test_a_sixteen_bit_result_beyond_the_range_may_be_infinite() -> None:
    numbers = Allowed("float16")
    product = numbers.multiply(Range(np.array([300.0, 2.0])), Range(np.array([300.0, 2.0])))
    assert numbers.judge(product, (), np.array([np.inf, 4.0])).possible
    assert not numbers.judge(product, (), np.array([9e4, np.inf])).possible


def test_scores_may_overflow_before_they_are_scaled() -> None:
    numbers = Allowed("float16")
    q = Range(np.full((1, 1, 4), 150.0))
    half = Quotient(Number(Fraction(1)), Number(Fraction(2)))
    value = numbers.scores(q, q, scale=half, mask=((True,),), queries=[0], keys=[0])
    assert value.mid[0, 0, 0] == 45_000
    assert numbers.judge(value, (), np.full((1, 1, 1), np.inf)).possible


def test_what_is_tiny_may_be_flushed_to_zero() -> None:
    for name in ("float32", "bfloat16"):
        numbers = Allowed(name)
        product = numbers.multiply(Range(np.array([1e-30])), Range(np.array([1e-9])))
        assert numbers.judge(product, (), np.array([0.0])).possible
    assert not Allowed("float64").judge(
        Allowed("float64").multiply(Range(np.array([1e-30])), Range(np.array([1e-9]))),
        (), np.array([0.0]),
    ).possible  # fmt: skip


def test_weights_of_sixteen_bit_formats_are_cast_first() -> None:
    third = np.array([1 / 3], dtype=np.float32)
    assert float(Allowed("bfloat16").admit(third).mid[0]) == 0.333984375
    assert Allowed("float32").admit(third).mid is third
    assert Allowed("float32").admit(third.astype(np.float64)).relative == 2.0**-24


def test_fractions_and_printed_weights_come_with_what_they_may_be_off() -> None:
    data = np.array([Fraction(1, 3), Fraction(1, 2), Printed(Fraction(1, 4), 2), ABSENT], object)
    value = Allowed("exact").admit(data)
    assert value.rad is not None
    assert 0 < value.rad[0] < 1e-16
    assert value.rad[1] == 0
    assert value.rad[2] == pytest.approx(0.005)
    assert value.absent is not None
    assert value.absent.tolist() == [False, False, False, True]


def test_nothing_over_nothing_is_nothing_with_a_note() -> None:
    numbers = Allowed("exact")
    value = numbers.normalize(Range(np.zeros((2, 3))), Range(np.array([0.0, 1.0])))
    assert value.mid.tolist() == [[0.0] * 3] * 2
    assert value.rad is not None
    assert value.rad.max() < 1e-300
    assert [note.kind for note in numbers.notes] == ["zero-variance"]
    blurred = numbers.normalize(Range(np.zeros((1, 3)), np.full((1, 3), 1e-9)), Range(np.zeros(1)))
    assert blurred.rad is not None
    assert np.isinf(blurred.rad).all()


def test_three_terms_that_nobody_added_up_may_be_added_in_any_order() -> None:
    numbers = Allowed("bfloat16")
    a, b, c = (Range(np.array([x])) for x in (100.0, -99.5, 0.0625))
    bridged = numbers.add(numbers.add(a, b), c)
    assert numbers.judge(bridged, (), np.array([0.5])).possible  # a + (b + c), b + c = -99.5
    assert numbers.judge(bridged, (), np.array([0.5])).times < 2  # type: ignore[operator]
    claimed = numbers.overlay(numbers.add(a, b), (), np.array([0.5]))
    assert not numbers.judge(numbers.add(claimed, c), (), np.array([0.5])).possible


def test_grouped_queries_read_their_own_key_head() -> None:
    numbers = Allowed("exact")
    q, k = np.random.default_rng(0).standard_normal((2, 4, 3, 2))
    value = numbers.scores(
        Range(q), Range(k[:2]), mask=((True,) * 3,) * 3, queries=range(3), keys=range(3)
    )
    assert value.mid == pytest.approx(np.einsum("hqd,hkd->hqk", q, np.repeat(k[:2], 2, axis=0)))


def test_alibi_and_score_tables_are_part_of_the_scores() -> None:
    numbers = Allowed("float32")
    q, k = np.random.default_rng(1).standard_normal((2, 2, 3, 4)).astype(np.float32)
    slopes = np.array([0.5, 0.0625], dtype=np.float32)
    table = np.ma.MaskedArray(np.ones((2, 3, 3), dtype=np.float32), mask=False)
    table[0, 2, 1] = np.ma.masked
    value = numbers.scores(
        Range(q.astype(float)), Range(k.astype(float)), mask=((True,) * 3,) * 3, queries=range(3),
        keys=range(3), slopes=numbers.admit(slopes), table=numbers.admit(table),
    )  # fmt: skip
    distance = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    given = q @ k.transpose(0, 2, 1) - slopes[:, None, None] * distance.astype(np.float32)
    given += np.float32(1)
    assert value.absent is not None
    assert value.absent.sum() == 1
    assert 0 < numbers.judge(value, (), given).share <= 1


def test_argmax_names_those_that_may_be_the_largest() -> None:
    numbers = Allowed("float32")
    logits = Range(np.array([[1.0, 3.0, 2.9], [1.0, 3.0, 2.0]]), np.full((2, 3), 0.1))
    near, sure = numbers.argmax(logits)
    assert near.id is None
    assert near.candidates == (1, 2)
    assert (sure.id, sure.proven, sure.margin) == (1, True, 1.0)
    (tie,) = numbers.argmax(Range(np.array([[2.0, 2.0, 1.0]])))
    assert (tie.id, tie.tied, tie.proven) == (0, (0, 1), True)
    (unknown,) = numbers.argmax(Range(np.array([[2.0, 0.0]]), np.array([[0.0, np.inf]])))
    assert unknown.candidates == (0, 1)


def test_one_pass_variance_is_allowed_only_where_asked_for() -> None:
    from dataclasses import replace

    from byhand.numbers.allowed import precision

    x = (np.random.default_rng(0).standard_normal((4, 64)) + 1000).astype(np.float32)
    once = (np.square(x).mean(axis=-1) - np.square(x.mean(axis=-1))).astype(np.float64)
    for numbers, follows in (
        (Allowed("float32"), False),
        (Allowed(replace(precision("float32"), one_pass=True)), True),
    ):
        data = Range(x.astype(np.float64))
        value = numbers.mean_square(numbers.center(data, numbers.mean(data)))
        assert numbers.judge(value, (), once).possible is follows


def test_joined_and_merged_heads_are_the_same_numbers() -> None:
    numbers = Allowed("float32")
    x = Range(np.arange(12.0).reshape(1, 2, 6), np.full((1, 2, 6), 0.5))
    both = numbers.join(x, Range(np.zeros((1, 1, 6))))
    assert both.shape == (1, 3, 6)
    assert both.rad is not None
    assert both.rad[0, :, 0].tolist() == [0.5, 0.5, 0.0]
    flat = Range(np.arange(24.0).reshape(2, 12))
    heads = numbers.split_heads(flat, start=0, heads=3, width=4, stride=4)
    assert numbers.merge_heads(heads).mid.tolist() == flat.mid.tolist()
    parts = numbers.head_outputs(heads, layout="in_out")
    assert parts.mid.sum(axis=0).tolist() == flat.mid.tolist()

"""Finding the precision: what is proven is so, what is not is said, and it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import InputError, UsageError
from byhand.evaluate import Job, prepare
from byhand.expression import parse
from byhand.missing_bits import MOST_REPORTED, Shortfall, shortfall
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.proving.digits import (
    asked_steps,
    enclosing_numbers,
    prove,
    same_logits,
)
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, nasty, spread

F = Fraction
ZERO = Enclosure(F(0), F(0))


def as_checkpoint(model: Model) -> Model:
    """The model, called one of a checkpoint, for which exact numbers are not the usual ones."""
    return replace(model, spec=replace(model.spec, family="gpt2"))


def job_for(model: Model, digits: int = 12, **asked: Any) -> Job:
    return prepare(model, numbers=enclosing_numbers(model, digits), **asked)


def with_weights(model: Model, changed: Mapping[str, Any]) -> Model:
    """The model with some of its weights replaced."""
    tensors = {
        name: Tensor(name, np.array(changed[name], dtype=object)) if name in changed else tensor
        for name, tensor in model.weights.items()
    }
    return replace(model, weights=Weights(tensors))


def two_tokens(gap: Any) -> Model:
    """A vocabulary of two whose logits after "a" are √2 and √2 + gap: a head of its own, nothing
    else."""
    path = Path(__file__).parent  # only so that messages have a place
    model = open_model("tiny")
    spec = replace(model.spec, vocab=2, blocks=(), position="none", tied=False, context=4)
    root = parse("sqrt(2)")
    far = parse(f"sqrt(2) + {gap}" if gap else "2/sqrt(2)")
    table = np.array([[F(1), F(0)], [F(1), F(0)]], dtype=object)
    head = np.empty((2, 2), dtype=object)
    head[:] = [[root, far], [F(0), F(0)]]
    weights = {"embed.token": table, "head": head}
    assert spec.layout == "in_out"
    tensors = {name: Tensor(name, data) for name, data in weights.items()}
    return Model(spec, Weights(tensors), Ids(2), text="0", source=str(path))


# ------------------------------------------------------------------ what is proven is so


@pytest.mark.parametrize("digits", [1, 12, 40])
@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_every_number_of_a_pencil_sized_model_has_its_digits(name: str, digits: int) -> None:
    model = open_model(name)
    trace = prove(job_for(model, digits), digits)
    assert trace.proof is not None
    assert trace.proof.complete
    assert trace.undecided == ()
    assert trace.digits == digits
    oracle = ArbPass(trace.plan, model.weights, trace.tokens, trace.target)
    for worked in trace.values():
        for index, found in worked.entries():
            if found is not ABSENT:
                true = Enclosure.of(oracle.values[worked.address][index])
                assert found.proves(digits), f"{worked.address}{index}: {found}"
                assert found.overlaps(true) or true.contains(found)
    assert all(prediction.proven for prediction in trace.next or [])


@pytest.mark.parametrize("entry", [None, nasty], ids=["ordinary", "set by hand"])
def test_models_of_every_kind_are_proven_or_say_what_is_not(entry: Any) -> None:
    complete = 0
    cases = list(
        spread(14, seed=31, entry=entry, wishes={"first position": 0, "extra mask": False})
    )
    for case in cases:
        trace = prove(job_of(case), 15, limit=1024)
        proof = trace.proof
        assert proof is not None
        complete += proof.complete
        told = {item.address for item in proof.undecided}
        assert len(told) == min(proof.count, MOST_REPORTED)
        for worked in trace.values():
            for index, found in worked.entries():
                address = f"{worked.address}[{','.join(map(str, index))}]"
                if found is not ABSENT and proof.count <= MOST_REPORTED:
                    assert found.proves(15) or address in told, address
    assert complete >= len(cases) - 4


def job_of(case: Case) -> Job:
    model = Model(case.spec, case.weights, Ids(case.spec.vocab))
    return Job(model, case.plan(), Balls(60), "", case.tokens, case.target)


def test_the_precision_is_no_more_than_it_takes() -> None:
    model = open_model("minigpt")
    trace = prove(job_for(model, 30), 30)
    assert trace.proof is not None
    assert trace.proof.complete
    assert 100 < trace.proof.bits < 180
    assert trace.numbers.bits == trace.proof.bits  # type: ignore[attr-defined]
    assert all(entry.proves(30) for _i, entry in trace["logits"].entries())
    coarse = prove(replace(job_for(model, 30), numbers=Balls(trace.proof.bits - 40)), 30)
    assert coarse.proof is not None
    assert coarse.proof.complete  # whatever precision it begins with


def test_a_search_that_begins_with_far_too_few_bits_finds_them() -> None:
    job = replace(job_for(open_model("journey"), 20), numbers=Balls(4))
    trace = prove(job, 20)
    assert trace.proof is not None
    assert trace.proof.complete


# ------------------------------------------------------------------ what is asked


def test_asked_are_the_steps_named_else_all_else_the_last_ones() -> None:
    journey, minigpt = open_model("journey"), open_model("minigpt")
    assert asked_steps(job_for(journey, only=("stream.1", "tokens"))) == ("block.0.mlp.add",)
    assert len(asked_steps(job_for(journey))) == len(job_for(journey).plan) - 2  # tokens, target
    assert asked_steps(job_for(minigpt, target="-ió")) == ("logits", "next", "loss")


def test_where_only_the_next_token_is_asked_for_few_bits_are_enough() -> None:
    trace = prove(job_for(open_model("minigpt"), 12, only=("next",)), 12)
    assert trace.proof is not None
    assert trace.proof.complete
    assert all(prediction.proven for prediction in trace.next or [])
    assert not all(entry.proves(30) for _i, entry in trace["logits"].entries())


def test_what_depends_on_an_unknown_weight_is_not_asked_for() -> None:
    model = open_model("tiny")
    unknown = np.full(model.weights["block.0.attn.v"].shape, Unknown(), dtype=object)
    trace = prove(job_for(with_weights(model, {"block.0.attn.v": unknown})), 12)
    assert trace["block.0.attn.weights"].missing is None
    assert trace["logits"].missing is not None
    assert trace.proof is not None
    assert trace.proof.complete


def test_the_sink_sees_each_step_once_as_it_stays() -> None:
    seen: list[Worked] = []
    trace = prove(job_for(open_model("tiny")), 12, sink=seen.append)
    assert [worked.address for worked in seen] == list(trace.steps)
    assert all(trace.steps[worked.address] is worked for worked in seen)


# ------------------------------------------------------------------ zeros and ties


def test_a_true_zero_that_balls_cannot_see_is_shown_by_exact_numbers() -> None:
    trace = prove(job_for(open_model("tiny")), 12)
    assert trace.proof is not None
    assert trace.proof.by_exact == ("logits[1,2]",)
    assert trace["logits"].at((1, 2)) == ZERO
    assert trace["logits"].at((1, 2)).decimal(12) == "0"


def test_a_true_tie_that_balls_cannot_see_is_shown_by_exact_numbers() -> None:
    trace = prove(job_for(two_tokens(0)), 12)
    (found,) = trace.next or []
    assert (found.id, found.proven, found.tied, found.margin) == (0, True, (0, 1), ZERO)
    assert trace.proof is not None
    assert trace.proof.complete
    assert "next[0]" in trace.proof.by_exact


@pytest.mark.parametrize("places", [60, 300])
def test_a_near_tie_is_told_apart_by_more_bits(places: int) -> None:
    model = as_checkpoint(two_tokens(f"1/10^{places}"))  # not one for exact numbers
    trace = prove(job_for(model), 12)
    (found,) = trace.next or []
    assert (found.id, found.proven, found.tied) == (1, True, ())
    assert found.margin.contains(F(1, 10**places))
    assert found.margin.lower > 0
    assert trace.proof is not None
    assert trace.proof.complete
    assert trace.proof.bits > places * 3.3


def test_below_the_limit_a_near_tie_is_still_told_apart_by_exact_numbers() -> None:
    trace = prove(job_for(two_tokens("1/10^300")), 12, limit=256)
    (found,) = trace.next or []
    assert (found.id, found.proven) == (1, True)
    assert found.margin.contains(F(1, 10**300))


def test_in_a_larger_model_a_near_tie_beyond_the_limit_is_undecided_and_says_how_close() -> None:
    model = as_checkpoint(two_tokens("1/10^60"))  # not a model for a pencil
    trace = prove(job_for(model), 12, limit=100)
    proof = trace.proof
    assert proof is not None
    assert not proof.complete
    assert (proof.bits, proof.count) == (100, 1)
    (item,) = proof.undecided
    assert (item.address, item.asked, item.candidates) == ("next[0]", "next", (0, 1))
    assert item.enclosure.contains(F(1, 10**60)) or item.enclosure.contains(-F(1, 10**60))
    assert item.enclosure.rad < F(1, 10**25)
    assert (trace.next or [])[0].candidates == (0, 1)


def test_a_zero_in_a_larger_model_is_undecided_at_the_limit() -> None:
    model = as_checkpoint(open_model("tiny"))
    trace = prove(job_for(model), 12, limit=300)
    proof = trace.proof
    assert proof is not None
    assert (proof.bits, proof.count, proof.by_exact) == (300, 1, ())
    (item,) = proof.undecided
    assert (item.address, item.asked) == ("logits[1,2]", "digits")
    assert item.enclosure.contains(0)
    assert 0 < item.enclosure.rad < F(1, 10**80)


# ------------------------------------------------------------------ ties that the weights show


def with_twin(model: Model, id: int, twin: int) -> Model:
    """The model with the row of one token in place of another's."""
    table = np.array(model.weights["embed.token"].data)
    table[twin] = table[id]
    tensors = {**model.weights, "embed.token": Tensor("embed.token", table)}
    return replace(model, weights=Weights(tensors))


@pytest.mark.parametrize("numbers", [Balls(120), Limbs(120)], ids=["balls", "limbs"])
def test_tokens_with_the_same_weights_tie_in_a_model_of_any_size(numbers: Any) -> None:
    model = open_model("minigpt")
    plain = prove(prepare(model, numbers=numbers), 12)
    assert plain.next is not None
    best = plain.next[-1].id
    assert best is not None
    twin = next(id for id in range(model.spec.vocab) if id not in (*plain.tokens, best))
    trace = prove(prepare(with_twin(model, best, twin), numbers=numbers), 12)
    assert trace.next is not None
    assert trace.proof is not None
    found = trace.next[-1]
    pair = tuple(sorted((best, twin)))
    assert (found.id, found.proven, found.tied, found.margin) == (pair[0], True, pair, ZERO)
    assert trace.proof.complete
    assert trace.proof.bits < 200  # no precision is spent on what it cannot show
    assert trace.proof.by_exact == (f"next[{len(trace.tokens) - 1}]",)


def test_weights_that_are_printed_alike_need_not_be_the_same() -> None:
    model = two_tokens(0)
    head = np.array(model.weights["head"].data)
    head[0] = [Printed(F("1.4"), 1)] * 2
    trace = prove(job_for(with_weights(model, {"head": head})), 3)
    (found,) = trace.next or []
    assert (found.id, found.proven, found.candidates) == (None, False, (0, 1))


def test_the_bias_of_the_head_is_looked_at_too() -> None:
    model = open_model("abc")
    logits = prepare(model).plan["logits"]
    head, bias = (np.array(model.weights[name].data) for name in ("head", "head_bias"))
    rows = head.T if model.spec.layout == "in_out" else head
    rows[2] = rows[0]
    assert bias[0] != bias[2]
    weights = with_weights(model, {"head": head}).weights
    assert not same_logits(logits, weights, (0, 2))
    bias[2] = bias[0]
    weights = with_weights(model, {"head": head, "head_bias": bias}).weights
    assert same_logits(logits, weights, (0, 2))
    assert not same_logits(logits, weights, (0, 1, 2))


# ------------------------------------------------------------------ what cannot be proven


def test_printed_weights_do_not_get_narrower_and_the_search_stops() -> None:
    model = open_model("journey")
    data = np.array(model.weights["block.0.attn.q"].data)
    for index in np.ndindex(data.shape):
        data[index] = Printed(data[index], 3)
    attempts = []
    job = job_for(with_weights(model, {"block.0.attn.q": data}))
    trace = prove(job, 12, progress=lambda step: attempts.append(step.address))
    proof = trace.proof
    assert proof is not None
    assert not proof.complete
    assert proof.count > MOST_REPORTED
    assert len(proof.undecided) == MOST_REPORTED
    assert proof.undecided[0].address.startswith("block.0.attn.q[")
    assert attempts.count("block.0.attn.q") <= 4
    assert proof.bits < 400
    assert trace["block.0.attn.q"].at((0, 0, 0)).rad > F(1, 10**5)


def large(power: int) -> Model:
    """The logits of journey's first token are 10^power times what they were."""
    model = open_model("journey")
    head = np.array(model.weights["head"].data)
    head[:, 0] *= 10**power
    return with_weights(model, {"head": head})


@pytest.mark.parametrize("power", [40, 300])
def test_a_softmax_that_is_wide_at_first_does_not_end_the_search(power: int) -> None:
    model = large(power)
    job = prepare(model, numbers=Balls(80), only=("probs",))
    short = shortfall(job.work(), ("probs",), 12)
    assert short.stalled(short)  # anything between 0 and 1, at 80 bits and at 81
    trace = prove(job, 12)
    assert trace["probs[3,0]"].decimal(12) == "1.00000000000"
    assert trace.proof is not None
    assert trace.proof.bits > power * 3.3
    generation = byhand.generate(model, "the cat", count=1, digits=12)
    assert [chosen.probability.decimal(12) for chosen in generation] == ["1.00000000000"]


def test_a_layernorm_of_what_may_be_constant_is_bounded_and_the_search_ends() -> None:
    """Printed embeddings that may be equal, eps 0: nobody knows the variance."""
    model = open_model("tiny")
    data = np.array(model.weights["embed.token"].data)
    data[0, 0] = data[0, 1] = Printed(F(0), 1)
    trace = prove(job_for(with_weights(model, {"embed.token": data}), only=("logits",)), 5)
    assert trace.proof is not None
    assert not trace.proof.complete
    assert trace.proof.bits < 400
    assert max(open_one.enclosure.rad for open_one in trace.proof.undecided) < 4


def test_a_shortfall_knows_what_to_try_next() -> None:
    clear = Shortfall(count=1, bits=17.2, radius=-40)
    assert clear.next_bits(100, None) == 124
    assert Shortfall(count=1, bits=float("inf")).next_bits(100, None) == 200
    unclear = Shortfall(count=1, bits=3, near_zero=True)
    assert unclear.next_bits(400, None) == 500
    assert unclear.next_bits(400, clear) == 600
    assert Shortfall(count=1, radius=-40.5).stalled(clear)
    assert not Shortfall(count=1, radius=-50).stalled(clear)
    assert not Shortfall(count=2, radius=-40).stalled(clear)
    assert not clear.stalled(None)


# ------------------------------------------------------------------ which numbers, and errors


@pytest.mark.parametrize("digits", [0, -3, 1001, True, 2.5])
def test_a_number_of_digits_that_makes_no_sense_is_refused(digits: Any) -> None:
    with pytest.raises(UsageError, match="digits has a value that does not fit") as e:
        byhand.trace("tiny", digits=digits)
    assert e.value.expected == "a whole number from 1 to 1,000"
    assert e.value.found == str(digits)


def test_weights_that_are_no_floats_cannot_go_to_a_device() -> None:
    with pytest.raises(InputError, match="only of weights that are floats") as error:
        byhand.trace("journey", digits=5, device="cpu")
    assert error.value.where == "weight.embed.token"
    assert error.value.hint == "leave the device out"


def test_small_models_are_worked_out_in_balls() -> None:
    for name in ("tiny", "journey", "minigpt"):
        assert isinstance(enclosing_numbers(open_model(name), 12), Balls)
    assert isinstance(enclosing_numbers(open_model("minigpt"), 1000), Balls)


def test_larger_ones_are_worked_out_in_limbs_unless_a_position_at_a_time() -> None:
    minigpt = open_model("minigpt")
    assert isinstance(enclosing_numbers(minigpt, 12, positions=100), Limbs)
    assert isinstance(enclosing_numbers(minigpt, 12, positions=1), Balls)
    assert isinstance(enclosing_numbers(minigpt, 12, device="cpu"), Limbs)
    assert isinstance(enclosing_numbers(minigpt, 1000, positions=100), Balls)
    assert isinstance(enclosing_numbers(open_model("journey"), 12, positions=10**9), Balls)


def test_limbs_and_balls_prove_the_same_digits() -> None:
    model = open_model("minigpt")
    one, other = (prove(prepare(model, numbers=numbers), 15) for numbers in (Limbs(60), Balls(60)))
    assert one.proof is not None
    assert one.proof.complete
    for (index, found), (_index, expected) in zip(
        one["logits"].entries(), other["logits"].entries(), strict=True
    ):
        assert found.proves(15)
        assert found.overlaps(expected), index
    assert [p.id for p in one.next or []] == [p.id for p in other.next or []]
    assert all(p.proven for p in one.next or [])


def test_what_limbs_cannot_decide_is_told_as_balls_tell_it() -> None:
    trace = prove(prepare(open_model("minigpt"), numbers=Limbs(30)), 12, limit=40)
    proof = trace.proof
    assert proof is not None
    assert proof.count > MOST_REPORTED
    assert len(proof.undecided) == MOST_REPORTED
    for item in proof.undecided:
        assert item.asked in ("digits", "next")
        assert item.enclosure.rad > 0


def test_exact_numbers_are_not_touched(tiny: Model) -> None:
    trace = prepare(tiny, numbers=Exact()).work()
    assert trace.proof is None
    assert trace.digits is None
    assert trace.undecided == ()

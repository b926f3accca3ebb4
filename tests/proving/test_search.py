"""The search: the same answers as plain traces, counterexamples that are some, nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from benchmarks.machines import changed
from random_properties import random_property
from small_adder import adder, sums

import byhand
from byhand.errors import InputError
from byhand.model import Model
from byhand.models import open_model
from byhand.proving import search
from byhand.proving.outcome import OPEN, PROVEN, REFUTED, Outcome, leaves
from byhand.proving.properties import read_property
from byhand.proving.search import Standing, cases, prove
from byhand.weights import Tensor, Weights

THERMOMETER = "docs/examples/thermometer.yaml"
READING = {
    "property": "ice below 0, steam from 100 on",
    "texts": {"pattern": "{sign} {h} {t} {u}", "where": {"sign": "[+ -]", "h, t, u": "0..9"}},
    "claim": {
        "next": "'steam' if sign == '+' and h > 0 else "
        "'ice' if sign == '-' and 100*h + 10*t + u > 0 else 'water'"
    },
}


def with_weight(model: Model, name: str, place: tuple[int, ...], value: Any) -> Model:
    data = model.weights[name].data.copy()
    data[place] = value
    return replace(model, weights=Weights({**model.weights, name: Tensor(name, data)}))


def by(outcome: Outcome) -> list[str]:
    return [leaf.by for tree in outcome.trees for leaf in leaves(tree)]


# ----------------------------------------------------------------------- against plain traces


@pytest.mark.parametrize("fewest", [1, 64], ids=["letters", "one by one"])
def test_random_properties_have_the_answer_of_plain_traces(
    fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """benchmarks/prove_random.py does the same with thousands."""
    monkeypatch.setattr(cases, "FEWEST", fewest)
    answers, seen = set(), set()
    for seed in range(40):
        property, failing = random_property(seed)
        outcome = prove(property)
        assert outcome.answer == (REFUTED if failing else PROVEN), seed
        if outcome.counterexample:
            assert outcome.counterexample.tokens in failing
        answers.add(outcome.answer)
        seen.update(by(outcome))
    assert answers == {PROVEN, REFUTED}
    assert ("letters" in seen) == (fewest == 1)


# ----------------------------------------------------------------------- regions by letters


def test_an_adder_is_right_for_every_pair_of_numbers() -> None:
    outcome = prove(sums(2))
    assert (outcome.answer, outcome.texts) == (PROVEN, 10_000)
    assert by(outcome).count("letters") > 50
    assert outcome.passes < 3_000  # of three goals, most of them of sampled texts
    assert outcome.least is not None
    assert Fraction("0.99") < (outcome.least.lead or 0) <= 1


def test_a_margin_that_is_too_small_is_found_though_random_texts_pass() -> None:
    """Steps that rise over 2.5 units of the last place: some sums of 999 count as 1000."""
    model = adder(3, Fraction(25, 10_000))
    random = Random(1)
    for _text in range(40):
        a, b = random.randrange(1000), random.randrange(1000)
        text = f"{' '.join(f'{a:03}')} + {' '.join(f'{b:03}')} ="
        digit = byhand.trace(model, text, numbers="float64").next[-1].id
        assert digit == (a + b) // 1000
    outcome = prove(sums(3, model))
    found = outcome.counterexample
    assert outcome.answer == REFUTED
    assert found is not None
    text = model.vocabulary.decode(found.tokens)
    trace = byhand.trace(model, text)
    assert trace.next is not None
    assert trace.next[-1].id == found.found
    assert trace.next[-1].id not in found.expected
    assert found.value < found.bound if not hasattr(found.value, "mid") else (
        found.value.mid < found.bound.mid)  # fmt: skip


def test_what_rounding_leaves_open_is_decided_in_more_bits() -> None:
    """e^80 closes a ReLU of the thermometer: float64 knows nothing after it."""
    outcome = prove(read_property(READING, THERMOMETER))
    assert (outcome.answer, outcome.texts) == (PROVEN, 2_000)
    assert "letters" in by(outcome)


def test_a_fault_in_one_weight_is_found_where_one_text_of_2_000_fails() -> None:
    model = with_weight(open_model(THERMOMETER), "head_bias", (14,), Fraction(-986, 10))
    outcome = prove(read_property(READING, model))
    assert outcome.answer == REFUTED
    assert outcome.counterexample is not None
    assert model.vocabulary.decode(outcome.counterexample.tokens) == "+ 0 9 9"
    assert outcome.counterexample.address == "logits[3,13]"


# ----------------------------------------------------------------------- other claims

EVERY_TEXT = {"up to": 3, "of": ["A", "B", "C"]}


def about_abc(claim: Any, **more: Any) -> Outcome:
    tree = {"property": "abc", "texts": EVERY_TEXT, "claim": claim, **more}
    return prove(read_property(tree, "abc"))


def test_every_model_that_prints_as_abc_predicts_the_same() -> None:
    outcome = about_abc("unmoved", weights={"printed": 4})
    assert (outcome.answer, outcome.texts) == (PROVEN, 39)
    assert outcome.least is not None
    assert 0 < (outcome.least.lead or 0) < Fraction("0.0185")  # with its own numbers 0.018502…


def test_weights_that_may_vary_too_much_are_refuted_by_weights_of_that_kind() -> None:
    outcome = about_abc("unmoved", weights={"within": "0.05"})
    assert outcome.answer == REFUTED
    found = outcome.counterexample
    assert found is not None
    assert found.weights is not None
    assert abs(found.weights["embed.token[1,0]"] - Fraction("0.4819")) < Fraction("0.05")
    moved = changed(open_model("abc"), found.weights)
    told = byhand.trace(moved, moved.vocabulary.decode(found.tokens), only=["next"]).next
    assert told is not None
    assert told[-1].id == found.found
    assert (found.found,) != found.expected


def test_a_rounded_model_is_compared_with_the_one_it_was_rounded_from() -> None:
    """Each of them predicts something for sure; that they predict the same is the claim."""
    own = open_model("abc")
    other = with_weight(own, "head_bias", (0,), own.weights["head_bias"].data[0] - Fraction(1, 10))
    rounded = {"rounded to": "bfloat16"}
    property = read_property({"texts": EVERY_TEXT, "weights": rounded, "claim": "unmoved"}, own)
    assert prove(property).answer == PROVEN
    outcome = prove(replace(property, model=other))
    assert outcome.answer == REFUTED
    assert outcome.counterexample is not None
    text = own.vocabulary.decode(outcome.counterexample.tokens)
    before, after = byhand.trace(own, text).next, byhand.trace(other, text).next
    assert before is not None
    assert after is not None
    assert before[-1].id != after[-1].id


def test_embeddings_may_be_moved_a_little_and_not_much() -> None:
    assert about_abc("unmoved", embeddings={"within": "0.0002"}).answer == PROVEN
    found = about_abc("unmoved", embeddings={"within": "0.1"}).counterexample
    assert found is not None
    assert found.weights is not None
    table = open_model("abc").weights["embed.token"].data
    for position, token in enumerate(found.tokens):
        for column in range(2):
            moved = found.weights[f"embeddings[{position},{column}]"] - table[token, column]
            assert abs(moved) <= Fraction(1, 10)


def test_abc_agrees_with_itself_and_is_not_constant() -> None:
    assert about_abc({"same as": "abc"}).answer == PROVEN
    assert about_abc("constant").answer == REFUTED


# ----------------------------------------------------------------------- interrupted, shared


def test_a_search_that_runs_out_of_time_is_open_and_goes_on_from_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LATER", 0.0)  # a unit ends after its first pass
    journal = tmp_path / "adder.journal"
    property = sums(2)

    def soon(_standing: Standing) -> None:
        if len(journal.read_text().splitlines()) > 20:
            raise KeyboardInterrupt

    first = prove(property, resume=journal, progress=soon)
    assert (first.answer, first.why) == (OPEN, "interrupted")
    kept = journal.read_text()
    journal.write_text(kept + '{"goal": 0, "at": "00')  # torn
    standings: list[Standing] = []
    second = prove(property, resume=journal, progress=standings.append)
    assert second.answer == PROVEN
    assert journal.read_text().startswith(kept)
    assert by(second) == by(prove(property))
    assert standings[0].done > 0
    assert standings[-1].done == pytest.approx(1)
    assert second.passes < prove(property).passes
    again = prove(property, resume=journal)
    assert (again.answer, again.passes) == (PROVEN, 0)


def test_a_journal_of_another_model_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "a.journal"
    prove(sums(2), resume=journal, seconds=0)
    with pytest.raises(InputError, match="another model or property"):
        prove(sums(2, adder(2, Fraction(1, 200))), resume=journal)
    journal.write_text("[1]\n")
    with pytest.raises(InputError, match="not the journal of a proof"):
        prove(sums(2), resume=journal)


def test_no_time_leaves_everything_open() -> None:
    outcome = prove(sums(2), seconds=0)
    assert (outcome.answer, outcome.why) == (OPEN, "out of time")
    assert outcome.open


def test_two_processes_find_the_same_answer() -> None:
    one, two = prove(sums(2)), prove(sums(2), jobs=2)
    assert two.answer == one.answer == PROVEN
    assert two.texts == one.texts
    assert json.dumps(sorted(by(two))).count("letters") > 50

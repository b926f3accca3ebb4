"""Outcomes: how they print themselves, what they count, and their JSON document."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from byhand.document.media.json.proof import decimal_below, document_of, write_json
from byhand.proving.outcome import Outcome, share_decided
from outcomes import left_open, proven, refuted


def test_an_outcome_prints_itself_in_a_line() -> None:
    assert repr(proven()) == "<Outcome of tiny: proven for 9 texts in 2 cases>"
    assert repr(refuted()) == "<Outcome of tiny: refuted by 'b c'>"
    assert repr(left_open()) == "<Outcome of tiny: open, 33.3% decided>"


def test_the_share_decided_is_that_of_the_texts() -> None:
    assert (proven().decided, left_open().decided) == (1.0, pytest.approx(1 / 3))
    assert share_decided(()) == 1.0, "nothing is left of nothing"


def test_the_command_that_traces_a_counterexample_can_be_typed() -> None:
    assert refuted().trace_command == "byhand trace tiny 'b c'"
    elsewhere = replace(refuted(), called="my models/odd.yaml")
    assert elsewhere.trace_command == "byhand trace 'my models/odd.yaml' 'b c'"
    assert proven().trace_command is None


def written(outcome: Outcome) -> Any:
    out = StringIO()
    write_json(outcome, out)
    assert json.loads(out.getvalue()) == json.loads(json.dumps(document_of(outcome)))
    return json.loads(out.getvalue())


def test_the_document_of_a_proof_has_its_counts_and_its_least_lead() -> None:
    found = written(proven())
    assert found["answer"] == "proven"
    assert (found["texts"], found["cases"], found["passes"], found["decided"]) == (9, 2, 7, 1.0)
    assert found["property"] == {"texts": {"up to": 2}, "claim": {"next": ["a"]}}
    assert found["goals"] == [{"texts": 9, "cases": 2, "undecided": 0}]
    assert found["least"] == {
        "lead": "0.1428571428",
        "goal": 0,
        "text": "b c",
        "where": {"x": [1, 2], "y": [0, 1, 2]},
    }
    assert found["counterexample"] is found["why"] is None
    assert found["open"] == []


def test_the_document_of_a_refutation_has_the_text_and_the_number_that_goes_wrong() -> None:
    assert written(refuted())["counterexample"] == {
        "goal": 0,
        "text": "b c",
        "tokens": [{"id": 1, "text": "b"}, {"id": 2, "text": "c"}],
        "values": {"x": 1, "y": 2},
        "expected": [{"id": 0, "text": "a"}],
        "found": {"id": 2, "text": "c"},
        "address": "logits[1,0]",
        "value": {"value": "1/4", "decimal": "0.2500000000"},
        "bound": {"value": "1/2", "decimal": "0.5000000000"},
        "weights": None,
        "trace": "byhand trace tiny 'b c'",
    }


def test_the_document_of_what_is_open_has_the_regions_that_are_left() -> None:
    found = written(left_open())
    assert (found["answer"], found["why"]) == ("open", "out of time")
    assert found["open"] == [{"goal": 0, "where": {"x": [1, 2], "y": [0, 1, 2]}, "texts": 6}]
    assert found["decided"] == pytest.approx(1 / 3)


@given(some.fractions(), some.integers(1, 12))
def test_a_lead_is_never_written_larger_than_it_is(number: Fraction, digits: int) -> None:
    below = Fraction(decimal_below(number, digits))
    assert below <= number
    assert number - below <= abs(number) * Fraction(10) ** (1 - digits)

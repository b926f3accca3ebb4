"""The JSON document: its keys, and the numbers in it."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.document.media.json.records import float_data
from byhand.document.media.json.trace import document_of, write_json
from byhand.expression import LONGEST_TEXT, Name, leaves, parse
from byhand.numbers.exact import Exact

DOCUMENT = ["model", "numbers", "tokens", "letters", "steps", "next", "loss"]
STEP = {"address", "op", "reads", "axes", "shape", "register", "formula", "value"}
STEP_MAY = {"decimal", "registers", "notes", "missing"}
NEXT = {"position", "token", "id", "margin", "proven", "tied"}


def depth_and_shape(value: Any) -> list[int]:
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0]
    return shape


def steps(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {step["address"]: step for step in document["steps"]}


@pytest.fixture(scope="module")
def tiny_document() -> dict[str, Any]:
    stream = io.StringIO()
    write_json(byhand.trace("tiny", "a b", target="b"), stream)
    document: dict[str, Any] = json.loads(stream.getvalue())
    return document


@pytest.mark.parametrize("name", ["tiny", "journey", "abc-walkthrough"])
def test_the_document_has_the_keys_it_is_documented_with(name: str) -> None:
    document = json.loads(json.dumps(document_of(byhand.trace(name))))
    assert list(document) == DOCUMENT
    for step in document["steps"]:
        assert set(step) >= STEP, step["address"]
        assert set(step) <= STEP | STEP_MAY, step["address"]
        if step["value"] is not None:
            assert depth_and_shape(step["value"]) == step["shape"]
        if step.get("decimal") is not None:
            assert depth_and_shape(step["decimal"]) == step["shape"]
    for found in document["next"] or []:
        assert set(found) == NEXT
    for letter in document["letters"].values():
        assert set(letter) == {"definition", "decimal"}


def test_exact_and_named_values_are_text_with_proven_decimals_beside(
    tiny_document: dict[str, Any],
) -> None:
    weights = steps(tiny_document)["block.0.attn.weights"]
    assert weights["value"] == [[["1", None], ["1/(1 + e)", "e/(1 + e)"]]]
    assert weights["decimal"] == [[["1.0000000000", None], ["0.2689414214", "0.7310585786"]]]
    assert weights["register"] == "named"
    assert weights["registers"] == [[["exact", None], ["named", "named"]]]
    assert steps(tiny_document)["logits"]["value"] == [["1", "-1", "0"], ["1", "-1", "0"]]
    assert "registers" not in steps(tiny_document)["logits"]


def test_tokens_next_and_loss(tiny_document: dict[str, Any]) -> None:
    assert tiny_document["tokens"] == [{"id": 0, "text": "a"}, {"id": 1, "text": "b"}]
    assert tiny_document["next"][1] == {
        "position": 1,
        "token": "a",
        "id": 0,
        "margin": {"value": "1", "decimal": "1.0000000000"},
        "proven": True,
        "tied": [],
    }
    assert tiny_document["loss"] == {
        "target": "b",
        "value": "ln(1 + e + e^2)",
        "decimal": "2.4076059644",
    }


def test_without_a_target_there_is_no_loss_and_a_tie_is_listed() -> None:
    document = document_of(byhand.trace("tiny", "c"))
    assert document["loss"] is None
    assert document["next"][0]["tied"] == [0, 1, 2]
    notes = steps(document)["block.0.attn.norm.normalized"]["notes"]
    assert notes == [{"kind": "zero-variance", "index": [0]}]


def test_every_value_reads_back_to_the_same_number() -> None:
    trace = byhand.trace("tiny", "a b")
    again = Exact()
    for address, step in steps(document_of(trace)).items():
        for index, entry in trace[address].entries():
            text = step["value"]
            for place in index:
                text = text[place]
            if text is not None:
                assert again.scalar(parse(text)).decimal(12) == entry.decimal(12)


def test_every_letter_in_a_form_is_defined() -> None:
    document = document_of(byhand.trace("journey"))
    definitions = [letter["definition"] for letter in document["letters"].values()]
    forms = [document["loss"]["value"], *(d for d in definitions if len(d) <= LONGEST_TEXT)]
    names = {leaf.text for f in forms for leaf in leaves(parse(f)) if isinstance(leaf, Name)}
    assert names - {"e", "pi"} <= set(document["letters"])
    assert document["loss"]["decimal"] == "1.8312926370"


def test_a_form_too_long_is_told_by_its_own_address() -> None:
    step = steps(document_of(byhand.trace("journey")))["block.0.mlp.add"]
    assert step["value"][3][3] == "block.0.mlp.add[3,3]"
    assert step["decimal"][3][3] == "-0.2445950578"


def test_a_value_that_became_a_letter_is_told_by_its_own_address_too() -> None:
    trace = byhand.trace("minigpt-init", "she", exact=True, only="block.0.mlp.out")
    document = document_of(trace, ["block.0.mlp.out"])
    values = steps(document)["block.0.mlp.out"]["value"][0]
    assert values[63] == "block.0.mlp.out[0,63]"
    assert document["letters"] == {}


def test_an_enclosed_value_has_a_middle_and_a_radius_and_an_unknown_one_a_reason() -> None:
    document = document_of(byhand.trace("abc-walkthrough"))
    middle = steps(document)["stream.0"]["value"][0][0]
    assert set(middle) == {"mid", "rad"}
    assert middle["mid"] == "0.8828000000"
    logits = steps(document)["logits"]
    assert (logits["value"], logits["register"]) == (None, None)
    assert logits["missing"] == {"kind": "unknown", "cause": "weight.block.0.attn.qkv"}
    assert document["next"] is None


def test_rounded_values_are_decimals() -> None:
    document = document_of(byhand.trace("tiny", "a b", decimals=2))
    assert document["numbers"] == "decimals 2"
    weights = steps(document)["block.0.attn.weights"]
    assert weights["value"] == [[["1.00", None], ["0.27", "0.73"]]]
    assert weights["register"] == "rounded"


def test_only_the_steps_asked_for_are_in_it() -> None:
    document = document_of(byhand.trace("tiny", "a b", only="logits"), ["logits"])
    assert list(steps(document)) == ["logits"]


# ------------------------------------------------------------------ floats


def test_floats_are_numbers_that_read_back_to_themselves_in_their_format() -> None:
    for format in ("float64", "float32", "float16", "bfloat16"):
        trace = byhand.trace("minigpt-init", "she climb", float=format, only=["logits", "next"])
        document = document_of(trace, ["logits"])
        step = steps(json.loads(json.dumps(document, allow_nan=False)))["logits"]
        array = trace["logits"].array
        assert step["register"] == "rounded"
        assert "decimal" not in step
        assert (np.array(step["value"]).astype(array.dtype) == array).all()
        assert document["numbers"] == format


def test_the_shortest_decimal_of_a_float_is_written() -> None:
    assert float_data(np.float32([0.1, 1e-20])) == [0.1, 1e-20]
    assert float_data(np.array([[0.1, 2.0]])) == [[0.1, 2.0]]
    assert float_data(np.asarray(np.float16(0.1))) == 0.1


def test_what_json_has_no_number_for_is_text_and_what_is_masked_is_null() -> None:
    array = np.ma.MaskedArray(
        np.float32([[1, -np.inf], [np.nan, np.inf]]), mask=[[False, True], [False, False]]
    )
    assert float_data(array) == [[1.0, None], ["nan", "inf"]]

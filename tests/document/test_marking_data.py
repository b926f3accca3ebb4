"""The JSON document of a marking: always valid, in a shape that programs can rely on."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import marking_samples as samples
from byhand.checking.verdicts import Marking, Verdict
from byhand.document.media.json.marking import document_of, write_json
from byhand.document.media.json.records import number
from marking_samples import marked, marking_of


def read(marking: Marking, **further: Any) -> Any:
    to = io.StringIO()
    write_json(marking, to, **further)

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(to.getvalue(), parse_constant=refuse)


@pytest.mark.parametrize("name", ["good", "faulty", "by_hand", "large", "batch"])
def test_what_is_written_reads_back(name: str) -> None:
    marking = getattr(samples, name)()
    assert read(marking) == document_of(marking)
    assert read(marking, gradebook={"lines": []})["gradebook"] == {"lines": []}


def test_the_shape_of_the_document() -> None:
    document = read(samples.faulty())
    assert list(document) == ["model", "follows", "passed", "summary", "texts"]
    (text,) = document["texts"]
    assert list(text) == [
        "text", "label", "tokens", "precision", "follows", "passed", "first_error", "lines",
        "unmatched", "readings",
    ]  # fmt: skip
    assert (document["follows"], text["follows"]) == (False, False)
    assert (document["passed"], text["passed"]) == (False, False)
    assert text["first_error"] == "block.3.mlp.act"
    line = text["lines"][2]
    assert list(line) == [
        "address", "name", "source", "verdict", "follows", "share", "times", "unusual", "near",
            "entries",
        "outside", "worst", "reason", "like", "blocks", "uses", "suspects", "described", "tied",
        "ask",
    ]  # fmt: skip
    assert line["name"] == "transformer.h.3.mlp.act"
    assert line["worst"] == {
        "address": "block.3.mlp.act[3,7]",
        "index": [3, 7],
        "claimed": 0.84125,
        "expected": 0.84113,
        "allowed": 3e-7,
        "difference": pytest.approx(0.00012),
    }
    assert line["suspects"][0]["kind"] == "gelu-kind"
    assert set(line["suspects"][0]["evidence"]) >= {"entries", "lines", "fitted", "left", "alike"}
    assert text["unmatched"][0]["hint"] == "did you mean transformer.h.9.mlp.act?"


def test_verdicts_are_words_that_no_language_changes() -> None:
    (text,) = read(samples.faulty())["texts"]
    assert [(line["verdict"], line["follows"]) for line in text["lines"]] == [
        ("unsupported", False), ("right", True), ("error", False), ("carried", True),
        ("right", True), ("unjudged", None),
    ]  # fmt: skip


def test_what_is_no_number_in_json_is_text() -> None:
    marking = marking_of(
        marked("logits", Verdict.ERROR, float("inf"), claimed=float("nan"), allowed=float("inf"))
    )
    line = read(marking)["texts"][0]["lines"][0]
    assert line["share"] == "inf"
    assert (line["worst"]["claimed"], line["worst"]["allowed"]) == ("nan", "inf")
    assert [number(x) for x in (None, float("-inf"), 0.5)] == [None, "-inf", 0.5]


def test_nothing_marked_is_a_document_too() -> None:
    assert read(Marking("tiny", ()))["texts"] == []
    assert read(marking_of())["texts"][0]["lines"] == []

"""Claims about all texts of a model, asked from the page: proven, refuted, or refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from asking import asked, state

from byhand.errors import ByhandError, InputError
from byhand.serving import all_texts

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
CLOCK = {"model": {"file": (EXAMPLES / "clock.yaml").read_text("utf-8")}}


def proven(claim: str | None, texts: str | None = None, **more: Any) -> dict[str, Any]:
    """What is answered about the clock."""
    given = {"claim": claim, "texts": texts, **more}
    return asked("prove", state=CLOCK, **{key: one for key, one in given.items() if one})


def squares(html: str) -> list[tuple[str, str]]:
    """How each square was decided, and what is in it."""
    return re.findall(r'<td class="by-(\w+)[^"]*">([^<]*)', html)


def test_without_a_claim_the_texts_to_choose_from_are_told() -> None:
    found = proven(None)
    assert found["choices"] == [
        {"value": "1", "count": 7},
        {"value": "2", "count": 49},
        {"value": "up to 2", "count": 56},
    ]
    assert (found["texts"], found["names"]) == ("2", ["a", "b"])
    assert "html" not in found


def test_the_table_has_what_comes_next_after_every_text_and_opens_each() -> None:
    found = proven("table", "2")
    assert squares(found["html"]) == [
        ("each", str((a + b) % 7)) for a in range(7) for b in range(7)
    ]
    assert found["opens"] == [f"{a} {b}" for a in range(7) for b in range(7)]


def test_a_true_rule_is_proven_for_every_text() -> None:
    found = proven("function", "2", expression="(a + b) % 7")
    assert (found["answer"], found["example"]) == ("proven", None)
    assert "It holds for all 49 texts." in found["html"]
    assert [text for _kind, text in squares(found["html"])] == [
        str((a + b) % 7) for a in range(7) for b in range(7)
    ]
    assert len(found["opens"]) == 49


def test_a_false_rule_is_refuted_by_a_text_that_the_page_can_open() -> None:
    found = proven("function", "2", expression="(a + b) % 7 if a < 6 else 0")
    assert found["answer"] == "refuted"
    first, second = map(int, found["example"].split())
    assert first == 6
    assert (first + second) % 7 != 0
    looked = asked("look", state={**CLOCK, "text": found["example"]})
    assert looked["next"]["token"] == str((first + second) % 7)


def test_one_token_after_all_texts_is_claimed() -> None:
    assert proven("next", "2", token="3")["answer"] == "refuted"
    assert proven("constant", "2")["answer"] == "refuted"


def test_an_edited_model_is_judged_with_its_edits() -> None:
    weights = {f"head[{row},0]": "0" for row in range(6)}
    edited = {"model": CLOCK["model"], "weights": weights}
    rule = {"texts": "2", "claim": "function", "expression": "(a + b) % 7"}
    assert asked("prove", state=edited, **rule)["answer"] == "refuted"


def test_a_model_with_too_many_texts_is_refused_with_a_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(all_texts, "MOST_TEXTS", 6)
    with pytest.raises(InputError, match="too many") as refused:
        proven("table")
    assert refused.value.expected == "at most 6 texts"


def test_of_a_larger_vocabulary_shorter_texts_come_first() -> None:
    found = asked("prove", state=state("minigpt"))
    assert (found["texts"], found["names"]) == ("1", ["a"])


@pytest.mark.parametrize(
    "request_",
    [
        {"claim": "next"},
        {"claim": "function", "expression": "   "},
        {"claim": "function", "expression": "a + nobody"},
        {"claim": "function", "expression": "__import__('os')"},
        {"claim": "always"},
        {"claim": "table", "texts": "9"},
        {"claim": "next", "token": "nowhere"},
    ],
)
def test_what_cannot_be_asked_is_refused(request_: dict[str, str]) -> None:
    with pytest.raises(ByhandError):
        proven(request_.pop("claim"), **request_)


def test_texts_of_several_lengths_are_listed_the_shorter_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = proven("table", "up to 2")
    assert found["opens"][:8] == ["0", "1", "2", "3", "4", "5", "6", "0 0"]
    assert found["html"].count("<tr>") == 1 + 56  # the heads, and every text
    monkeypatch.setattr(all_texts, "MOST_ROWS", 10)
    fewer = proven("table", "up to 2")
    assert fewer["opens"] == found["opens"][:10]
    assert "46 more texts" in fewer["html"]

"""The page of a hand-set model: its answers, its table of scores, the names of its dimensions."""

from __future__ import annotations

from typing import Any

import pytest
from asking import asked

from byhand.errors import InputError

MODEL = """\
name: answers
vocabulary: [a, b]
outputs: [none, one, both]
text: a b b
target: both
model:
  stream: [a, b, seen-a, seen-b]
  context: 4
  layers: 1
  attention: {heads: 2, d_head: 1, queries: false, score_table: true, nothing: zero}
  mlp: none
weights:
  embed.token: {entries: {"a,a": 1, "b,b": 1}}
  block.0.attn.v: {entries: {"a,0": 1, "b,1": 1}}
  block.0.attn.score_table: [first, previous]
  block.0.attn.out: {entries: {"0,seen-a": 1, "1,seen-b": 1}}
  head: {entries: {"seen-a,one": 2, "seen-b,both": 3, "a,none": 1}}
"""
STATE: dict[str, Any] = {"model": {"file": MODEL}, "text": "a b b", "target": "both"}


def test_the_page_knows_the_answers_beside_the_tokens() -> None:
    look = asked("look", state=STATE)
    assert (look["model"]["vocabulary"], look["model"]["outputs"]) == (
        ["a", "b"], ["none", "one", "both"],
    )  # fmt: skip
    assert (look["next"]["token"], look["loss"]["target"]) == ("both", "both")


@pytest.mark.parametrize("question", ["learn", "trace", "explain", "practice", "prove", "file"])
def test_every_question_about_it_has_an_answer(question: str) -> None:
    more: dict[str, Any] = {
        "practice": {"address": "next[2]", "answer": "both"},
        "prove": {"claim": "next", "token": "both", "texts": "2"},
    }.get(question, {})
    assert asked(question, state=STATE, **more)


def test_an_edit_of_the_architecture_keeps_the_names_and_the_answers() -> None:
    kept = asked("file", state={**STATE, "architecture": {"causal": "false"}})["text"]
    assert "stream: [a, b, seen-a, seen-b]" in kept
    assert "outputs: [none, one, both]" in kept
    with pytest.raises(InputError, match="since the outputs are other words"):
        asked("file", state={**STATE, "architecture": {"tied": "true"}})

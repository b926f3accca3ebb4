"""A model with a sink and experts in its trace, its book and its spreadsheet."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from recalculating import by_formulas
from test_spreadsheet import assert_says, saved

import byhand
from budgets import LONG
from byhand.document.compose.trace import document
from byhand.document.media.terminal.parts import Terminal
from byhand.editions import make_book
from byhand.files import parse_model
from byhand.model import Model

FILE = """
vocabulary: [a, b]
text: a b
target: b
model:
  d_model: 2
  layers: 1
  position: {kind: rope, magnitude: 5/4}
  attention: {heads: 1, sinks: true, out: false, scale: none}
  mlp: {d_ff: 2, activation: relu, experts: 3, chosen: 2, bias: true, normalised: NORMALISED}
weights:
  embed.token: identity
  block.0.attn.q: identity
  block.0.attn.k: identity
  block.0.attn.v: identity
  block.0.attn.sinks: [1]
  block.0.mlp.router: [[1, 2, 2], [3, 1, 1]]
  block.0.mlp.router_bias: [0, 0, 0]
  block.0.mlp.hidden: [[[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [0, 1]]]
  block.0.mlp.hidden_bias: zeros
  block.0.mlp.out: [[[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [0, 1]]]
  block.0.mlp.out_bias: ones
"""


@cache
def model(normalised: str = "true") -> Model:
    return parse_model(FILE.replace("NORMALISED", normalised), "experts.yaml")


@pytest.mark.parametrize("normalised", ["true", "false"][: 1 + LONG])
def test_another_program_works_the_spreadsheet_out_alike(normalised: str, tmp_path: Path) -> None:
    trace = byhand.trace(model(normalised))
    floats = byhand.trace(model(normalised), numbers="float64")
    assert assert_says(by_formulas(saved(trace, tmp_path)), floats) == 118


def test_the_terminal_says_who_answers_and_where_scores_tie() -> None:
    lines = list(Terminal(100).lines(document(byhand.trace(model()))))
    shown = "\n".join(lines)
    assert "block.0.mlp.chosen = 1 for the 2 largest of router, else 0" in shown
    assert "position 1 (b): experts have equal scores here; the first of them is chosen" in shown
    assert "e^(25/16)/(e^(25/16) + e^1)" in shown  # the sink is in the sum
    assert "with W_out, expert 2 = 1   2" in shown


def test_one_number_tells_how_it_was_chosen() -> None:
    trace = byhand.trace(model())
    assert [str(trace["block.0.mlp.chosen"][1, k]) for k in range(3)] == ["1", "1", "0"]
    assert str(trace["block.0.attn.weights"][0, 0, 0]) == "e^(9/16)/(1 + e^(9/16))"


def test_the_book_has_a_passage_on_the_router() -> None:
    passages = (passage for page in make_book(model()).pages for passage in page.passages)
    (router,) = (passage for passage in passages if passage.title == "Who answers")
    assert "the 2 with the largest scores answer" in " ".join(router.sentences)

"""The parts of a document, on models that between them use every option of the spec."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import byhand
from byhand import evaluate
from byhand.document.compose.tables import Window
from byhand.document.compose.trace import document
from byhand.document.compose.working import workings
from byhand.document.media.json.trace import document_of
from byhand.document.media.terminal.ink import width_of
from byhand.document.media.terminal.parts import Terminal
from byhand.document.parts import Loss, NotWorked, Predictions, Stage, StepPart, Title
from byhand.document.words import token_label
from byhand.errors import InputError
from byhand.files import parse_model
from byhand.model import Model
from byhand.numbers.pencil import Pencil
from byhand.tokens import Vocabulary
from oracles.architectures import Case, nasty, spread

CASES = tuple(spread(8, seed=11, among=3, entry=nasty))


def model_of(case: Case) -> tuple[Model, str, str]:
    """A case as a model with a vocabulary, its text and its target."""
    words = tuple(f"w{id}" for id in range(case.spec.vocab))
    model = Model(case.spec, case.weights, Vocabulary(words))
    return model, " ".join(words[id] for id in case.tokens), words[case.target]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("decimals", [None, 4])
def test_every_kind_of_model_can_be_shown(case: Case, decimals: int | None) -> None:
    model, text, target = model_of(case)
    numbers = None if decimals is None else Pencil(decimals)
    try:
        trace = evaluate.trace(model, text, numbers, target=target, head_outputs=True)
    except InputError:
        if decimals is None:
            raise
        return  # what rounding made 0 cannot be divided by
    parts = list(document(trace))
    lines = list(Terminal(80).lines(parts))
    assert [line for line in lines if width_of(line) > 80] == []
    shown = {part.address for part in parts if isinstance(part, StepPart)}
    assert shown == set(trace.steps) - {"next", "target", "loss"}
    assert trace._repr_html_().count("<table>") >= len(shown)
    assert len(document_of(trace)["steps"]) == len(trace.steps)
    for address in trace.steps:
        assert list(Terminal(80).lines(workings(trace, address)))


def test_the_parts_come_in_the_order_of_the_spine() -> None:
    parts = list(document(byhand.trace("journey")))
    assert isinstance(parts[0], Title)
    stages = [part.title for part in parts if isinstance(part, Stage)]
    assert stages == [
        "Tokens",
        "Embedding",
        "Block 0 · attention",
        "Block 0 · MLP",
        "Next token",
        "Loss",
    ]
    assert isinstance(parts[-1], Loss)
    assert sum(isinstance(part, Predictions) for part in parts) == 1


def test_parts_hold_trees_and_words_but_no_escape_codes() -> None:
    assert "\\x1b" not in repr(list(document(byhand.trace("tiny", "a b"))))


def test_a_window_shows_the_ends_of_what_is_large() -> None:
    window = Window(rows=4, columns=3, heads=1)
    assert window.row_places(4) == (0, 1, 2, 3)
    assert window.row_places(20) == (0, 1, 2, 3, 4, 5, 18, 19)
    assert window.column_places(64) == (0, 1, 2, 3, 63)
    assert window.head_places(4) == (0, 1)
    assert Window().column_places(12) == tuple(range(12))


def test_weights_are_shown_where_they_are_first_read() -> None:
    steps = {p.address: p for p in document(byhand.trace("tiny")) if isinstance(p, StepPart)}
    assert [given.title for given in steps["embed.token"].given] == ["E"]
    assert steps["logits"].given == ()  # tied: E was shown before
    assert [(g.title, g.word) for g in steps["block.0.attn.q"].given] == [("W_q", "identity")]
    out = steps["block.0.mlp.norm.out"].given
    assert [(g.title, g.word) for g in out] == [("gain", "ones"), ("bias", "zeros")]
    (table,) = steps["embed.token"].given
    assert [row.label for row in table.rows] == ["a", "b", "c"]


def test_steps_with_one_reason_for_being_unknown_are_told_together() -> None:
    parts = list(document(byhand.trace("abc-walkthrough")))
    (missing,) = [part for part in parts if isinstance(part, NotWorked)]
    assert missing.reason == "not worked out: weight.block.0.attn.qkv is unknown"
    assert missing.steps[-1].address == "next"
    assert len(missing.steps) == 16


def test_each_position_leaves_the_exact_numbers_once() -> None:
    trace = byhand.trace("abc-walkthrough")
    assert [(c.address, c.position) for c in trace.crossings] == [
        ("embed.token", 0),
        ("embed.token", 1),
        ("embed.token", 2),
    ]


def test_rows_beyond_a_boundary_depend_on_what_is_not_exact() -> None:
    beyond = byhand.trace("tiny", "a b").beyond_boundary
    assert ("block.0.attn.weights", 1) not in beyond
    assert ("block.0.attn.mixed", 1) in beyond
    assert ("logits", 1) in beyond  # exact again, but the documents stop before
    assert {row for row in beyond if row[1] == 0} == set()


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("cat", "cat"),
        (" ", "' '"),
        ("\n", r"'\n'"),
        ("\x1b[31m", r"'\x1b[31m'"),
        ("x" * 30, "x" * 23 + "…"),
    ],
)
def test_a_token_that_does_not_print_is_quoted_and_a_long_one_cut(token: str, label: str) -> None:
    assert token_label(token) == label


def test_nothing_a_model_says_reaches_the_terminal_as_an_escape_code() -> None:
    tiny = byhand.open_model("tiny")
    model = replace(
        tiny,
        spec=replace(tiny.spec, name="x\x1b[31m"),
        vocabulary=Vocabulary(("a", "\x1b", "\n"), "characters"),
        about="red \x1b[31m",
        notes=("bell \x07",),
    )
    lines = "\n".join(Terminal(80).lines(document(byhand.trace(model, "\x1b\n"))))
    assert "\x1b" not in lines
    assert "\x07" not in lines
    assert r"text     '\x1b\n'" in lines


def marks_of(model: str | Model, text: str | None = None) -> dict[str, list[str]]:
    parts = document(byhand.trace(model, text))
    return {p.address: [m.text for m in p.remarks] for p in parts if isinstance(p, StepPart)}


EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
SMALL = """
vocabulary: [a, b]
text: a b
model:
  d_model: 2
  layers: 1
  attention: {heads: 1}
  mlp: {d_ff: 2, activation: gelu}
weights:
  embed.token: identity
  block.*.attn.q: identity
  block.*.attn.k: identity
  block.*.attn.v: identity
  block.*.attn.out: zeros
  block.*.mlp.hidden: identity
  block.*.mlp.out: zeros
"""


def test_a_boundary_says_why_it_is_one() -> None:
    marks = marks_of(str(EXAMPLES / "thermometer.yaml"))
    (scores,) = marks["block.0.attn.scores"]
    assert scores.endswith("leave the exact numbers here: a weight read here is not rational")
    (back,) = marks["block.0.mlp.act"]
    assert back.endswith("are back in the exact numbers here: relu cuts the names off")
    (back,) = marks["block.0.attn.weights"]
    assert back.endswith("are back in the exact numbers here: the names cancel")


def test_a_boundary_at_the_scale_or_the_activation_says_so() -> None:
    marks = marks_of(parse_model(SMALL))
    assert "the scale is not rational" in marks["block.0.attn.scores"][0]
    assert "the activation is not rational" in marks["block.0.mlp.act"][0]


def test_a_position_that_reads_a_named_key_says_that_it_was_the_other() -> None:
    scaled = SMALL.replace("heads: 1", "heads: 1, scale: none, score_table: true")
    table = "context: 2\n  layers: 1"
    looking = scaled.replace("layers: 1", table).replace(
        "embed.token: identity",
        "embed.token: [[sqrt(2), 0], [0, 1]]\n"
        "  block.0.attn.score_table: [[[0, masked], [0, masked]]]",
    )
    (mark,) = marks_of(parse_model(looking))["block.0.attn.mixed"]
    assert mark == (
        "position 1 (b) leaves the exact numbers here: another position read here has left them"
    )


def test_a_float_that_is_too_large_is_told_where_it_is_and_leaves_no_next_token() -> None:
    text = (Path(byhand.__file__).parent / "models" / "tiny.yaml").read_text("utf-8")
    text = text.replace("- [1, 0]  # a", "- [300, 0]  # a")
    text = text.replace("attn.q: identity", "attn.q: [[300, 0], [0, 1]]")
    trace = byhand.trace(parse_model(text), "a b", float="float16")
    told = "\n".join(Terminal(80).lines(document(trace)))
    assert "position 0 (a): a number here is too large for this format" in told
    assert "0 a  →  ?   the logits are not numbers" in told

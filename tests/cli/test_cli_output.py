"""What people see: whole pages against snapshots, and the facts in them one by one.

`pytest --snapshot-update` rewrites the snapshots: read the difference before committing it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from byhand.document.media.terminal.ink import width_of
from byhand.models import builtin_names

Call = Callable[..., Any]

PAGES = {
    "tiny": ["trace", "tiny", "a b"],
    "tiny c": ["trace", "tiny", "c"],
    "tiny with a target": ["trace", "tiny", "a b", "--target", "b"],
    "tiny stopped at the boundary": ["trace", "tiny", "--stop-at-boundary"],
    "tiny in Spanish": ["trace", "tiny", "--lang", "es"],
    "tiny with a pencil": ["trace", "tiny", "--decimals", "2"],
    "tiny by heads": ["trace", "tiny", "--heads", "--only", "block.0.attn.head_out"],
    "journey": ["trace", "journey"],
    "journey with a pencil": ["trace", "journey", "--decimals", "2"],
    "journey stopped at the boundary": ["trace", "journey", "--stop-at-boundary"],
    "abc-walkthrough": ["trace", "abc-walkthrough"],
    "abc-walkthrough in Spanish": ["trace", "abc-walkthrough", "--lang", "es"],
    "the shapes of minigpt-init": ["trace", "minigpt-init", "--shapes"],
    "the shapes of abc-walkthrough in Spanish": [
        "trace", "abc-walkthrough", "--shapes", "--lang", "es",
    ],
    "the embedding of minigpt-init": ["trace", "minigpt-init", "--exact", "--only", "embed.token"],
    "the first scores of minigpt-init": [
        "trace", "minigpt-init", "she climb", "--exact", "--only", "block.0.attn.weights",
    ],
    "minigpt-init in floats": [
        "trace", "minigpt-init", "<en> today she climb -s", "--float", "float64",
        "--only", "block.0.attn.weights", "--only", "logits", "--only", "next",
    ],
    "tiny in bfloat16 as TransformerLens calls it": [
        "trace", "tiny", "--float", "bfloat16", "--names", "tl",
    ],
    "count minigpt-init": ["count", "minigpt-init"],
    "count abc-walkthrough in Spanish": ["count", "abc-walkthrough", "--lang", "es"],
    "models": ["models"],
    "models in Spanish": ["models", "--lang", "es"],
    "help": ["--help"],
    "help on trace": ["trace", "--help"],
    "help on trace in Spanish": ["trace", "--help", "--lang", "es"],
    "help on count": ["count", "-h"],
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_as_it_was_and_fits_80_columns(
    byhand: Call, snapshot: SnapshotAssertion, page: str
) -> None:
    shown = byhand(*PAGES[page])
    assert shown.status == 0
    assert shown.err == ""
    assert shown.out == snapshot
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []
    assert "\x1b" not in shown.out


WORKINGS = {
    "a score": ["tiny", "block.0.attn.scores[0,1,1]"],
    "a row of weights": ["tiny", "block.0.attn.weights[0,1,:]"],
    "a masked weight": ["tiny", "block.0.attn.weights[0,0,1]"],
    "a number that came back": ["tiny", "block.0.attn.norm.normalized[1,0]"],
    "a token": ["tiny", "tokens[1]"],
    "the next token": ["tiny", "next[-1]"],
    "a weight": ["tiny", "weight.embed.token[1,1]"],
    "an unknown weight": ["abc-walkthrough", "weight.head_bias[0]"],
    "a printed weight": ["abc-walkthrough", "weight.head[0,1]"],
    "an enclosed number": ["abc-walkthrough", "stream.0[1,0]"],
    "a number nobody knows": ["abc-walkthrough", "logits[0,1]"],
    "a loss in letters": ["journey", "loss[0]"],
    "a mean of named numbers": ["journey", "block.0.mlp.norm.mean[1]"],
    "a long sum": ["minigpt-init", "block.0.attn.q[0,0,0]"],
    "a rotated entry": ["minigpt-init", "block.0.attn.q_rotated[0,1,8]"],
    "a slice of a large weight": ["minigpt-init", "weight.embed.token[0]"],
}


@pytest.mark.parametrize("page", WORKINGS)
def test_the_working_of_a_number_is_as_it_was(
    byhand: Call, snapshot: SnapshotAssertion, page: str
) -> None:
    model, address = WORKINGS[page]
    shown = byhand(
        "trace", model, *(["she climb"] * (model == "minigpt-init")), "--exact", "--at", address
    )
    assert (shown.status, shown.err) == (0, "")
    assert shown.out == snapshot
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []


def test_the_working_of_a_rounded_number_uses_the_rounded_numbers(byhand: Call) -> None:
    shown = byhand("trace", "journey", "--decimals", "2", "--at", "probs[3,4]").out
    assert "= e^0.10/(e^0.05 + e^0.34 + e^0.10 + e^0.17 + e^0.10 + e^0.02)" in shown
    assert shown.endswith("  ≈ 0.16\n")


# ------------------------------------------------------------------ the facts of the documents


def test_the_weights_come_in_the_form_of_the_document_simplified_and_in_decimals(
    byhand: Call,
) -> None:
    out = byhand("trace", "tiny", "a b").out
    assert "√ 1 b     e^1/(e^1 + e^2)     e^2/(e^1 + e^2)" in out
    assert "= 1/(1 + e)         = e/(1 + e)" in out
    assert "≈ 0.2689            ≈ 0.7311" in out


def test_boundary_and_return_are_marked_in_words_and_with_a_sign(byhand: Call) -> None:
    lines = byhand("trace", "tiny", "a b").out.splitlines()
    left = lines.index(
        "  ↗ position 1 (b) leaves the exact numbers here: powers of e do not cancel"
    )
    back = lines.index("  ↙ position 1 (b) is back in the exact numbers here: the names cancel")
    address = [line.split(" = ")[0] for line in lines[:left] if line.startswith("block")][-1]
    assert address == "block.0.attn.weights"
    address = [line.split(" = ")[0] for line in lines[:back] if line.startswith("block")][-1]
    assert address == "block.0.attn.norm.normalized"


def test_a_three_way_tie_is_told_and_so_is_zero_variance(byhand: Call) -> None:
    out = byhand("trace", "tiny", "c").out
    assert "0 c  →  a   a, b and c tie; the lowest id is taken, proven" in out
    assert out.count("so this is 0/0; taken as the limit") == 2


@pytest.mark.parametrize("text", ["a", "b", "c", *(f"{x} {y}" for x in "abc" for y in "abc")])
def test_every_text_of_tiny_can_be_shown(byhand: Call, text: str) -> None:
    shown = byhand("trace", "tiny", text)
    assert shown.status == 0
    assert shown.out.count(" proven") >= len(text.split())


def test_the_loss_is_a_named_number_with_proven_digits(byhand: Call) -> None:
    out = byhand("trace", "journey", "--only", "loss").out
    assert "after position 3 (on) the text goes on with mat" in out
    assert "  = -ln(p1)\n" in out
    assert "  ≈ 1.8313\n" in out
    assert "  where p1 = probs[3,4] ≈ 0.1602\n" in out


def test_every_letter_that_is_shown_is_defined(byhand: Call) -> None:
    out = byhand("trace", "journey", "--only", "loss").out
    used = set(re.findall(r"\b[a-zμσ]\d+\b", out))
    defined = set(re.findall(r"where ([a-zμσ]\d+) =", out))
    assert used == defined != set()


def test_a_position_stops_at_its_boundary_as_in_the_documents(byhand: Call) -> None:
    out = byhand("trace", "tiny", "--stop-at-boundary").out
    assert "■ position 1 (b) stops at named softmax" in out
    mixed = out[out.index("block.0.attn.mixed") :]
    assert "1 b" not in mixed.split("──")[0]
    assert "position 0 (a) stays exact to the next token" in out
    assert "0 a  →  a   ahead by 1, proven" in out


def test_what_is_left_out_of_a_large_table_is_said(byhand: Call) -> None:
    out = byhand("trace", "minigpt-init", "--exact", "--only", "embed.token").out
    assert "… left out: 59 more columns" in out
    assert "--at 'embed.token[7,0]'" in out


def test_steps_that_cannot_be_known_are_shown_with_the_reason(byhand: Call) -> None:
    shown = byhand("trace", "abc-walkthrough")
    assert shown.status == 0
    assert "not worked out: weight.block.0.attn.qkv is unknown" in shown.out
    assert "next = argmax(logits)" in shown.out
    assert "0.8828 ± " in shown.out


def test_only_shows_what_was_asked_for(byhand: Call) -> None:
    out = byhand("trace", "tiny", "--only", "block.*.attn.scores", "--only", "next").out
    heads = re.findall(r"^([\w.]+) = ", out, re.MULTILINE)
    assert heads == ["block.0.attn.scores", "next"]


def test_pencil_numbers_are_called_rounded_and_prove_nothing(byhand: Call) -> None:
    out = byhand("trace", "journey", "--decimals", "2").out
    assert "~ rounded" in out
    assert "not proven" in out
    assert "  ≈ 1.83\n" in out


@pytest.mark.parametrize("name", builtin_names())
def test_models_lists_every_model_with_its_size(byhand: Call, name: str) -> None:
    lines = byhand("models").out.splitlines()
    assert any(re.fullmatch(rf"{name} +[\d,]+ parameters", line) for line in lines)


def test_count_says_the_formula_and_the_total_to_the_digit(byhand: Call) -> None:
    out = byhand("count", "minigpt-init").out
    assert "4·d² = 4·64² = 16,384" in out
    assert re.search(r"total +103,680\n", out)
    assert re.search(r"without biases +103,040\n", out)


BARE = """
vocabulary: [x, y]
model: {d_model: 4, context: 8, layers: 1, attention: {heads: 2}, mlp: {d_ff: 8}}
"""


def test_an_architecture_without_weights_can_be_counted_and_planned(
    byhand: Call, tmp_path: Path
) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text(BARE, "utf-8")
    counted = byhand("count", str(path))
    assert (counted.status, "unique" in counted.out) == (0, False)
    assert "pos 3 × d 4" in byhand("trace", str(path), "x y x", "--shapes").out
    assert "pos 8 × d 4" in byhand("trace", str(path), "--shapes").out

"""`byhand explain`: what is said first, how sums close, which numbers, and what is refused."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byhand.document.media.terminal.ink import width_of

Call = Callable[..., Any]

HEADINGS = [
    "What the numbers say",
    "Where the logit comes from",
    "What it would say after every step",
    "What the heads read and write",
    "Where the residual stream goes",
    "How the layers are doing",
]


def headings(out: str) -> list[str]:
    return [line.strip("─ ") for line in out.splitlines() if line.startswith("── ")]


# ------------------------------------------------------------------ what is said


def test_facts_come_first_and_then_the_sum_that_closes(byhand: Call) -> None:
    shown = byhand("explain", "abc")
    assert (shown.status, shown.err) == (0, "")
    assert headings(shown.out) == HEADINGS
    assert "After C (position 2) comes A, ahead of C by 11.1660, proven." in shown.out
    assert "A against C after position 2 (C): logit A − C" in shown.out
    assert "  = remainder: exactly 0\n" in shown.out
    assert shown.out.index("comes A") < shown.out.index("remainder")


@pytest.mark.parametrize("model", ["tiny", "abc", "journey", "minigpt", "abc-walkthrough"])
def test_every_model_is_explained_within_80_columns(byhand: Call, model: str) -> None:
    shown = byhand("explain", model)
    assert shown.status == 0
    assert headings(shown.out) == HEADINGS
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []


@pytest.mark.parametrize(("options", "terms"), [([], 12), (["--only", "attribution"], 14)])
def test_the_terms_shown_add_up_to_the_sum_shown(
    byhand: Call, options: list[str], terms: int
) -> None:
    shown = byhand("explain", "minigpt", *options).out
    lines = shown.split("logit -ió − -í\n")[1].split("= remainder")[0].splitlines()
    numbers = [re.search(r"[+-]\d+\.\d+", line) for line in lines]
    *found, total = [float(number[0]) for number in numbers if number]
    assert len(found) == terms
    assert sum(found) == pytest.approx(total, abs=terms * 0.00005)


def test_of_many_terms_the_rest_is_one_line_and_all_shows_every_one(byhand: Call) -> None:
    short = byhand("explain", "minigpt").out
    assert "3 more terms" in short
    assert "block.1.attn.head_out[2]" not in short
    every = byhand("explain", "minigpt", "--only", "attribution", "--all").out
    assert "more terms" not in every
    assert "block.1.attn.head_out[2]" in every


def test_only_shows_a_section_in_full(byhand: Call) -> None:
    shown = byhand("explain", "abc", "--only", "lens")
    assert headings(shown.out) == ["What it would say after every step"]
    assert "who leads after each position" in shown.out
    assert (
        "after position 2 (C) comes A, ahead by 11.1660, proven" in shown.out
    )  # no facts: said here
    several = byhand("explain", "abc", "--only", "health,lens", "--only", "norms")
    assert headings(several.out) == [
        "What it would say after every step",
        "How the layers are doing",
        "Norms before or after",
    ]


def test_a_length_says_which_texts_are_all_looked_at(byhand: Call) -> None:
    shown = byhand("explain", "abc", "--only", "inputs", "--length", "1")
    assert "There are 3 texts of one token." in shown.out
    assert "“CB”" not in shown.out
    refused = byhand("explain", "abc", "--only", "inputs", "--length", "4")
    assert (refused.status, refused.out) == (2, "")
    assert "expected: a length from 1 to 3" in refused.err
    elsewhere = byhand("explain", "abc", "--only", "lens", "--length", "2")
    assert (elsewhere.status, elsewhere.out) == (2, "")
    assert "--length is for the section inputs" in elsewhere.err


def test_a_table_of_every_text_says_what_it_leaves_out(byhand: Call) -> None:
    shown = byhand("explain", "journey", "--only", "inputs", "--length", "1")
    assert "Longer texts, of up to 4 tokens, are not looked at." in " ".join(shown.out.split())
    assert "Longer texts" not in byhand("explain", "abc", "--only", "inputs").out


def test_nothing_is_called_unproven_above_a_table_that_proves_it(byhand: Call) -> None:
    alone = byhand("explain", "abc", "--only", "inputs", "--float", "float32").out
    assert alone.splitlines()[0] == "abc"
    assert "numbers" not in alone.splitlines()[2]
    beside = byhand("explain", "abc", "--only", "inputs,lens", "--float", "float32").out
    for shown in (alone, beside):
        assert "Every prediction is proven." in shown
        assert "not proven" not in shown


def test_a_length_asks_for_the_texts_where_nothing_else_is_asked_for(byhand: Call) -> None:
    shown = byhand("explain", "journey", "--length", "1")
    assert "There are 6 texts of one token." in shown.out
    assert (
        "texts" in json.loads(byhand("explain", "journey", "--length", "1", "--json").out)["inputs"]
    )


def test_the_final_stream_is_a_sum_that_closes_too(byhand: Call) -> None:
    shown = byhand("explain", "abc", "--only", "stream", "--position", "0")
    assert headings(shown.out) == ["What the residual stream is made of"]
    assert "the final residual stream at position 0 (A)" in shown.out
    assert "= remainder: exactly 0" in shown.out


def test_another_position_and_other_tokens_can_be_explained(byhand: Call) -> None:
    shown = byhand("explain", "abc", "--position", "0", "--only", "attribution")
    assert "B against C after position 0 (A): logit B − C" in shown.out
    shown = byhand("explain", "abc", "--token", "B", "--only", "attribution")
    assert "logit B − A" in shown.out  # the strongest other one
    shown = byhand("explain", "abc", "--token", "B", "--against", "C", "--only", "attribution")
    assert "logit B − C" in shown.out
    shown = byhand("explain", "abc", "--alone", "--only", "attribution")
    assert "the logit of A after position 2 (C)" in shown.out
    assert "+14.9363" in shown.out


def test_neurons_and_keys_divide_the_sum_further(byhand: Call) -> None:
    shown = byhand("explain", "abc", "--neurons", "--keys", "--only", "attribution").out
    assert "block.0.mlp.act[7]" in shown
    assert "block.0.attn.head_out.key[0,2]" in shown
    assert "= remainder: exactly 0" in shown


@pytest.mark.parametrize(
    ("options", "closing"),
    [
        (["--exact"], "remainder: exactly 0"),
        (["--digits", "12"], "remainder: proven to contain 0, radius "),
        (["--float", "float32"], "remainder: rounded, "),
        (["--decimals", "2"], "remainder: rounded, 0.01 of 11.10"),
    ],
)
def test_the_numbers_say_how_the_sum_closes(byhand: Call, options: list[str], closing: str) -> None:
    shown = byhand("explain", "abc", "--only", "attribution", *options)
    assert shown.status == 0
    assert closing in shown.out


def test_a_model_whose_weights_are_unknown_says_so_and_shows_the_rest(byhand: Call) -> None:
    shown = byhand("explain", "abc-walkthrough", "--only", "attribution,geometry")
    assert shown.status == 0
    assert "not worked out: weight.block.0.attn.qkv is unknown" in shown.out
    assert "stream.0[0]" in shown.out


def test_it_speaks_spanish(byhand: Call) -> None:
    shown = byhand("explain", "abc", "--only", "attribution", "--lang", "es")
    assert "= resto: exactamente 0" in shown.out


# ------------------------------------------------------------------ data and pages


def test_the_data_are_one_document_with_addresses(byhand: Call) -> None:
    shown = byhand("explain", "abc", "--json")
    document = json.loads(shown.out)
    assert document["token"] == {"id": 0, "text": "A"}
    (found,) = (
        term
        for term in document["attribution"]["logits"]["terms"]
        if term["source"] == "weight.head_bias"
    )
    assert found["numbers"][1] == {
        "address": "explain.logits.weight.head_bias[2,1]",
        "value": "1241/10000",
        "decimal": "0.1241000000",
    }
    assert document["attribution"]["logits"]["closes"] == "exact"
    assert document["lens"][-1]["address"] == "explain.lens.block.0.mlp.add[2]"


def test_a_report_is_written_whole_and_nothing_else_is_left(byhand: Call, tmp_path: Path) -> None:
    path = tmp_path / "abc.html"
    path.write_text("before")
    shown = byhand("explain", "abc", "--report", str(path))
    assert shown.status == 0
    assert shown.err == f"the report is in {path}\n"
    assert path.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_report_into_a_folder_that_is_closed_is_refused(byhand: Call, tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IREAD | stat.S_IEXEC)
    shown = byhand("explain", "abc", "--report", str(tmp_path / "abc.html"))
    assert shown.status == 2
    assert "cannot be written" in shown.err


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--position", "3"], "the text has no position 3\n  expected: a whole number from 0 to 2"),
        (["--position", "x"], "--position has a value that does not fit"),
        (["--token", "D"], "'D' is not in the vocabulary\n  expected: A, B, C"),
        (["--against", "D"], "'D' is not in the vocabulary"),
        (["--against", "A"], "a token cannot be compared with itself\n  found: A"),
        (["--token", "B", "--against", "B"], "a token cannot be compared with itself\n  found: B"),
        (["--alone", "--against", "B"], "--alone and --against exclude each other"),
        (["--only", "lense"], "--only has a value that does not fit\n  expected: facts, attribut"),
        (["--report", "/nowhere/at/all.html"], "no such folder: /nowhere/at"),
        (["ABCA"], "the text is too long for this model\n  expected: at most 3 tokens"),
        (["--digits", "9", "--float", "float32"], "--digits and --float exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_shown(
    byhand: Call, arguments: list[str], said: str
) -> None:
    shown = byhand("explain", "abc", *arguments)
    assert (shown.status, shown.out) == (2, "")
    assert said in shown.err


def test_gradients_are_said_and_found(byhand: Call) -> None:
    told = byhand("explain", "journey", "--only", "gradients")
    assert told.status == 0
    assert "what the gradient expects" in told.out
    assert "the position table" in told.out
    data = json.loads(byhand("explain", "journey", "--only", "gradients", "--json").out)
    assert [each["part"] for each in data["gradients"]["words"]] == [
        f"embed.token[{place}]" for place in range(4)
    ]

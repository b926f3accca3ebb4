"""--digits as a user sees it: pages against snapshots, what is said of what cannot be proven."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

import byhand as package
from byhand.document.media.terminal.ink import width_of

Call = Callable[..., Any]

PAGES = {
    "tiny": ["trace", "tiny", "a b", "--digits", "12"],
    "tiny in Spanish": ["trace", "tiny", "--digits", "12", "--lang", "es"],
    "journey": ["trace", "journey", "--digits", "12"],
    "journey to 50 digits": [
        "trace", "journey", "--digits", "50",
        "--only", "block.0.attn.weights", "--only", "logits", "--only", "next", "--only", "loss",
    ],
    "journey to 200 digits": ["trace", "journey", "--digits", "200", "--only", "loss"],
    "abc": ["trace", "abc", "--digits", "12"],
    "minigpt": ["trace", "minigpt", "--digits", "12", "--only", "logits", "--only", "next"],
    "the first weights of minigpt": [
        "trace", "minigpt", "<en> today she climb -s", "--digits", "9",
        "--only", "block.0.attn.weights",
    ],
    "journey as TransformerLens calls it": [
        "trace", "journey", "--digits", "6", "--names", "tl", "--only", "block.0.attn.scores",
    ],
    "workings": [
        "trace", "journey", "--digits", "20", "--at", "block.0.attn.weights[0,3,1]",
        "--at", "block.0.attn.weights[0,0,1]", "--at", "next[2]", "--at", "loss[0]",
        "--at", "embed.token[0,2]",
    ],
}  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_proven_digits_is_as_it_was_and_fits_80_columns(
    byhand: Call, snapshot: SnapshotAssertion, page: str
) -> None:
    shown = byhand(*PAGES[page])
    assert (shown.status, shown.err) == (0, "")
    assert re.sub(r"\d+ bits", "… bits", shown.out) == snapshot  # how many is found on the way
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []


def test_the_page_says_once_what_the_digits_mean_and_how_many_tokens_are_proven(
    byhand: Call,
) -> None:
    out = byhand("trace", "journey", "--digits", "12").out
    assert out.count("within one unit of the last place") == 1
    assert re.search(r"12 significant digits, proven; worked out with \d+ bits\n", out)
    assert "  proven   4 of 4 next tokens\n" in out
    assert out.count(", proven\n") == 4


def test_the_digits_are_those_of_the_exact_numbers(byhand: Call) -> None:
    exact = package.trace("journey")
    out = byhand("trace", "journey", "--digits", "30", "--only", "loss").out
    assert f"≈ {exact.loss.significant(30)}\n" in out


def test_a_number_that_is_known_exactly_is_shown_as_it_is(byhand: Call) -> None:
    out = byhand("trace", "tiny", "--digits", "12", "--only", "block.0.attn.weights").out
    assert "    0 a   1                ·\n" in out
    assert "    1 b   0.268941421370   0.731058578630\n" in out


# ------------------------------------------------------------------ what cannot be proven


def test_what_is_not_proven_is_told_on_stderr_and_the_page_stays(byhand: Call) -> None:
    shown = byhand("trace", "abc-walkthrough", "--digits", "8")
    assert shown.status == 1
    assert shown.err.startswith("not proven to 8 digits, with ")
    assert "  embed.token[0,0] = 1.19880 ± 0.000051\n" in shown.err
    assert shown.err.endswith("  and 8 more\n")
    assert len(shown.err.splitlines()) == 12
    assert "8 significant digits, not all proven" in shown.out
    assert "± 0 A    1.19880 ± 0.000051" in shown.out


def test_fewer_digits_of_the_same_numbers_are_proven(byhand: Call) -> None:
    shown = byhand("trace", "abc-walkthrough", "--digits", "3")
    assert (shown.status, shown.err) == (0, "")


TIE = """\
name: tie
vocabulary: [a, b]
text: a
model: {d_model: 1, context: 1, layers: 0, position: none, final_norm: none, head: {tied: false}}
weights:
  embed.token: [[1], [1]]
  head: [[sqrt(2)*sqrt(3), sqrt(6)]]
"""


@pytest.fixture
def tie(tmp_path: Path) -> str:
    path = tmp_path / "tie.yaml"
    path.write_text(TIE)
    return str(path)


def test_a_tie_that_algebra_shows_is_reported_as_one(byhand: Call, tie: str) -> None:
    shown = byhand("trace", tie, "--digits", "12")
    assert (shown.status, shown.err) == (0, "")
    assert "  0 a  →  a   a and b tie; the lowest id is taken, proven\n" in shown.out
    assert "  exactly  next[0], settled by exact arithmetic\n" in shown.out


# ------------------------------------------------------------------ data


def test_json_has_middle_radius_and_proven_digits(byhand: Call) -> None:
    document = json.loads(byhand("trace", "journey", "--digits", "15", "--json").out)
    assert document["digits"] == 15
    assert document["bits"] > 50
    assert document["undecided"] == {"count": 0, "first": []}
    loss = document["loss"]
    truth = Fraction(package.trace("journey").loss.decimal(60))
    apart = abs(truth - Fraction(loss["value"]["mid"]))
    assert 0 < apart <= Fraction(loss["value"]["rad"]) < Fraction(1, 10**15)
    assert loss["decimal"] == "1.83129263704711"
    scores = next(s for s in document["steps"] if s["address"] == "block.0.attn.scores")
    assert scores["value"][0][0][1] is None
    assert scores["decimal"][0][0][0].startswith("0.29711456051804")
    assert [found["proven"] for found in document["next"]] == [True] * 4
    assert document["next"][0]["margin"]["decimal"] == "0.172403907104723"


def test_json_names_what_is_not_proven(byhand: Call) -> None:
    shown = byhand("trace", "abc-walkthrough", "--digits", "8", "--json")
    assert shown.status == 1
    undecided = json.loads(shown.out)["undecided"]
    assert undecided["count"] == 18
    first = undecided["first"][0]
    assert (first["address"], first["asked"]) == ("embed.token[0,0]", "digits")
    assert first["enclosure"] == {"mid": "1.19880", "rad": "0.000051"}


def test_a_golden_folder_has_values_radii_and_all_digits(byhand: Call, tmp_path: Path) -> None:
    shown = byhand("trace", "journey", "--digits", "30", "--out", str(tmp_path / "golden"))
    assert (shown.status, shown.out) == (0, "")
    assert shown.err == f"saved 31 steps in {tmp_path / 'golden'}\n"
    saved = package.open_trace(tmp_path / "golden")
    truth = package.trace("journey")["logits[3,1]"]
    assert saved.enclosure("logits[3,1]").decimal(30) == truth.significant(30)


# ------------------------------------------------------------------ generating


def test_generated_tokens_are_proven_with_digits_of_their_probability(byhand: Call) -> None:
    shown = byhand("generate", "journey", "the cat", "-n", "2", "--digits", "12")
    assert (shown.status, shown.err) == (0, "")
    assert "12 significant digits, proven, within one unit of the last place" in shown.out
    assert "  2  cat           ≈ 0.251972683401  proven\n" in shown.out
    assert re.search(r"\n\n  Proven with \d+ bits\.\n$", shown.out)


ALONE = """\
name: alone
vocabulary: [a]
text: a
model: {d_model: 1, layers: 0}
weights: {embed.token: [[1]]}
"""


def test_a_probability_that_is_known_exactly_says_so(byhand: Call, tmp_path: Path) -> None:
    path = tmp_path / "alone.yaml"
    path.write_text(ALONE)
    shown = byhand("generate", str(path), "-n", "1", "--digits", "6")
    assert "  1  a             = 1  proven\n" in shown.out


def test_a_long_probability_has_lines_of_its_own(byhand: Call) -> None:
    shown = byhand("generate", "journey", "the cat", "-n", "1", "--digits", "90")
    assert "  2  cat           proven\n     ≈ 0.25197268340" in shown.out
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []


def test_generated_data_has_enclosures(byhand: Call) -> None:
    document = json.loads(byhand("generate", "journey", "-n", "1", "--digits", "6", "--json").out)
    assert document["digits"] == 6
    assert document["bits"] > 20
    (chosen,) = document["generated"]
    assert set(chosen["probability"]) == {"mid", "rad"}
    assert (chosen["decimal"], chosen["proven"]) == ("0.205800", True)


# ------------------------------------------------------------------ wrong calls


@pytest.mark.parametrize("digits", ["0", "-3", "1001", "12.5", "many", "1" * 50])
def test_a_number_of_digits_that_makes_no_sense_is_refused(byhand: Call, digits: str) -> None:
    shown = byhand("trace", "tiny", "--digits", digits)
    assert shown.status == 2
    assert shown.err.startswith("error: --digits has a value that does not fit\n")
    assert "expected: a whole number from 1 to 1,000\n" in shown.err


@pytest.mark.parametrize("other", [["--exact"], ["--decimals", "2"]])
@pytest.mark.parametrize("command", ["trace", "generate"])
def test_digits_exclude_other_numbers(byhand: Call, command: str, other: list[str]) -> None:
    shown = byhand(command, "tiny", "--digits", "3", *other)
    assert shown.status == 2
    assert "exclude each other\n  hint: leave one of them out\n" in shown.err


def test_generating_does_not_compare(byhand: Call) -> None:
    shown = byhand("generate", "tiny", "--digits", "3", "--float", "float32")
    assert shown.status == 2
    assert "hint: byhand trace compares floats with proven digits\n" in shown.err


def test_enclosures_have_no_boundary_to_stop_at(byhand: Call) -> None:
    shown = byhand("trace", "tiny", "--digits", "3", "--stop-at-boundary")
    assert shown.status == 2
    assert "hint: enclosures have no boundary: leave --digits out\n" in shown.err

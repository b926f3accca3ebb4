"""`byhand generate` as people and programs see it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from byhand.document.media.terminal.ink import width_of
from byhand.numbers.base import Prediction
from byhand.numbers.exact import Exact
from patience import PATIENCE

Call = Callable[..., Any]

PAGES = {
    "tiny": ["tiny", "c"],
    "tiny in Spanish": ["tiny", "c", "--lang", "es"],
    "tiny with a pencil": ["tiny", "c", "--decimals", "2"],
    "tiny drawn": ["tiny", "a", "--temperature", "1.5", "--top-k", "2", "--seed", "7"],
    "journey": ["journey"],
    "journey, a word at a time": ["journey", "the", "-n", "3"],
    "the help": ["--help"],
    "the help in Spanish": ["--help", "--lang", "es"],
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_generate_is_as_it_was_and_fits_80_columns(
    byhand: Call, snapshot: SnapshotAssertion, page: str
) -> None:
    shown = byhand("generate", *PAGES[page])
    assert (shown.status, shown.err) == (0, "")
    assert shown.out == snapshot
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []
    assert "\x1b" not in shown.out


def test_a_token_has_its_probability_in_proven_decimals_and_in_its_form(byhand: Call) -> None:
    out = byhand("generate", "tiny", "a").out
    assert "  1  a             ≈ 0.6652  proven  = e^2/(1 + e + e^2)\n" in out


def test_a_tie_is_told_and_so_is_a_full_context(byhand: Call) -> None:
    out = byhand("generate", "tiny", "c").out
    assert "≈ 0.3333  a, b and c tie; the lowest id is taken, proven\n" in out
    assert out.endswith("\n  c a a\n\n  The model's context of 2 tokens is full.\n")


def test_floats_are_never_called_proven(byhand: Call) -> None:
    out = byhand("generate", "tiny", "a", "--float", "float32").out
    assert "  1  a               0.6652\n" in out
    assert "proven" not in out


def test_minigpt_goes_on_for_twenty_tokens_unless_told(byhand: Call) -> None:
    assert len(re.findall(r"^ +\d+  \S", byhand("generate", "minigpt-init").out, re.M)) == 20
    shown = byhand("generate", "minigpt-init", "--count", "3").out
    assert len(re.findall(r"^ +\d+  \S", shown, re.M)) == 3


def test_json_is_one_document(byhand: Call) -> None:
    shown = byhand("generate", "tiny", "c", "--json", "-n", "2")
    assert shown.status == 0
    assert json.loads(shown.out) == {
        "model": "tiny",
        "numbers": "exact",
        "tokens": [{"id": 2, "text": "c"}],
        "sampling": None,
        "seed": None,
        "generated": [
            {
                "position": 1,
                "id": 0,
                "token": "a",
                "text": " a",
                "probability": "1/3",
                "decimal": "0.3333333333",
                "proven": True,
                "tied": [0, 1, 2],
                "rank": 1,
                "chance": None,
            },
            {
                "position": 2,
                "id": 0,
                "token": "a",
                "text": " a",
                "probability": "e^2/(1 + e + e^2)",
                "decimal": "0.6652409558",
                "proven": True,
                "tied": [],
                "rank": 1,
                "chance": None,
            },
        ],
        "added": " a a",
        "text": "c a a",
        "ended": "count",
    }


def test_json_of_floats_has_numbers_and_that_of_a_pencil_has_its_decimals(byhand: Call) -> None:
    shown = json.loads(byhand("generate", "tiny", "a", "--json", "--float", "float64").out)
    assert shown["generated"][0]["probability"] == pytest.approx(0.6652409557748219, rel=1e-15)
    assert shown["generated"][0]["decimal"] is None
    assert shown["numbers"] == "float64"
    shown = json.loads(byhand("generate", "tiny", "a", "--json", "--decimals", "2").out)
    assert shown["generated"][0]["probability"] == shown["generated"][0]["decimal"] == "0.67"


def test_a_form_too_long_to_write_is_told_by_its_address_in_the_trace(byhand: Call) -> None:
    token = json.loads(byhand("generate", "journey", "--json").out)["generated"][0]
    assert (token["probability"], token["decimal"]) == ("probs[3,1]", "0.2058001857")
    address = token["probability"]
    traced = json.loads(byhand("trace", "journey", "--json", "--only", "probs").out)
    row, column = (int(place) for place in re.findall(r"\d+", address))
    assert traced["steps"][0]["decimal"][row][column] == token["decimal"]


def test_what_was_drawn_can_be_drawn_again_by_the_seed_that_is_told(byhand: Call) -> None:
    settings = ["generate", "minigpt-init", "-n", "8", "--temperature", "1.2", "--top-p", "0.9"]
    first = json.loads(byhand(*settings, "--json").out)
    again = byhand(*settings, "--seed", str(first["seed"]), "--json")
    assert json.loads(again.out) == first
    shown = byhand(*settings, "--seed", str(first["seed"])).out
    assert f"drawn    temperature 1.2, top-p 0.9, seed {first['seed']}\n" in shown
    assert first["text"] in " ".join(shown.split())
    assert all(token["proven"] is False for token in first["generated"])


WRONG = {
    "temperature 0": (["--temperature", "0"], "a number above 0"),
    "no temperature": (["--temperature", "warm"], "a number such as 0.7"),
    "a negative temperature": (["--temperature=-1"], "a number such as 0.7"),
    "top-k 0": (["--top-k", "0"], "a whole number of at least 1"),
    "top-p above 1": (["--top-p", "1.01"], "a number above 0 and at most 1"),
    "no tokens": (["-n", "0"], "a whole number of at least 1"),
    "half a token": (["-n", "1.5"], "a whole number of at least 0"),
    "a seed in words": (["--seed", "lucky", "--top-k", "2"], "a whole number of at least 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_option_of_generate_says_what_is_expected(byhand: Call, case: str) -> None:
    arguments, expected = WRONG[case]
    shown = byhand("generate", "tiny", "a", *arguments)
    assert (shown.status, shown.out) == (2, "")
    assert f"does not fit\n  expected: {expected}\n  found: " in shown.err


def test_other_wrong_calls_are_told(byhand: Call) -> None:
    shown = byhand("generate", "tiny", "a", "--seed", "1")
    assert shown.err.startswith("error: a seed is given, but nothing is drawn\n")
    shown = byhand("generate", "tiny", "a b a")
    assert (shown.status, shown.out) == (2, "")
    assert shown.err.startswith("error: the text is too long for this model\n")
    shown = byhand("generate", "abc-walkthrough")
    assert shown.status == 2
    assert "hint: weight.block.0.attn.qkv is unknown\n" in shown.err


def doubtful(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Makes the exact numbers undecided after so many tokens."""
    argmax, calls = Exact.argmax, []

    def instead(self: Exact, x: Any) -> list[Prediction]:
        calls.append(x)
        found = argmax(self, x)
        return found if len(calls) <= after else [Prediction(None, None, False, candidates=(0, 1))]

    monkeypatch.setattr(Exact, "argmax", instead)


def test_what_came_before_an_undecided_token_is_shown_and_the_answer_is_no(
    byhand: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubtful(monkeypatch, after=1)
    shown = byhand("generate", "tiny", "a")
    assert shown.status == 1
    assert "  1  a             ≈ 0.6652  proven" in shown.out
    assert shown.out.endswith("\n\n  a a\n")
    message = "error: next[1]: the next token cannot be decided between 'a', 'b'\n"
    assert shown.err == message


def test_json_of_an_undecided_generation_has_what_came_and_no_end(
    byhand: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubtful(monkeypatch, after=1)
    shown = byhand("generate", "tiny", "a", "--json")
    assert shown.status == 1
    assert [token["token"] for token in json.loads(shown.out)["generated"]] == ["a"]
    assert json.loads(shown.out)["ended"] is None


def test_an_interrupted_generation_leaves_what_came_on_the_screen() -> None:
    command = ["generate", "minigpt-init", "-n", "9000", "--float", "float32"]
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from dataclasses import replace
import byhand.models
whole = byhand.models.open_model
def endless(name):
    model = whole(name)
    return replace(model, spec=replace(model.spec, context=None))
byhand.models.open_model = endless
from byhand.cli import main
main({command})
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert process.stdout is not None
    seen = ""
    while "\n    10  " not in seen:  # a line a token, as they come
        seen += process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors == "\ninterrupted\n"
    tokens = re.findall(r"^ +\d+  (\S+)", seen + rest, re.M)
    text = (seen + rest).rpartition("\n\n")[2].split()
    told = ["<en>", "yesterday", "she", "climb", "-ed", "=", "ella", "sub", *tokens]
    assert text[: len(told)] == told
    assert len(text) <= len(told) + 1  # one may have been chosen and not yet told
    assert len(tokens) >= 3


STORIES = Path(os.environ.get("BYHAND_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.skipif(not STORIES.exists(), reason="the model stories260K is not here")
def test_a_trained_model_tells_its_story(byhand: Call) -> None:
    prompt = "Once upon a time, there was a little"
    shown = byhand("generate", str(STORIES / "stories260K"), prompt, "-n", "22")
    assert (shown.status, shown.err) == (0, "")
    assert "  14  ' Lily'" in shown.out
    assert shown.out.endswith(
        "  Once upon a time, there was a little girl named Lily. She loved to play\n"
        "  outside in the park.\n"
    )

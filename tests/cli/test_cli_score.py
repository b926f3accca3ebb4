"""`byhand score` on the command line: its exit status, its data, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from calling import Outcome

LOG = Path(__file__).parents[2] / "docs" / "examples" / "scores" / "half.jsonl"
Call = Callable[..., Outcome]


def test_data_go_to_stdout_and_the_page_to_its_file(byhand: Call, tmp_path: Path) -> None:
    page = tmp_path / "score.html"
    done = byhand("score", "tiny", "a b", "--json", "--html", str(page))
    assert done.status == 0
    document = json.loads(done.out)
    (token,) = document["tokens"]
    assert token["logprob"] == pytest.approx(-2.40760596)
    assert token["entropy"] == pytest.approx(0.83239583)
    assert document["perplexity"] == pytest.approx(11.10733787)
    assert str(page) in done.err
    assert page.read_text("utf-8").startswith("<!doctype html>")


def test_a_run_beside_the_truth_tells_what_rounding_can_change(byhand: Call) -> None:
    done = byhand("score", "minigpt", "--digits", "6", "--float", "bfloat16")
    assert done.status == 0
    assert "byhand in bfloat16" in done.out
    assert "near tie" in done.out
    assert "-2.314332" in done.out  # six decimals of climb


def test_a_survey_tells_flips_by_format_and_writes_its_page(byhand: Call, tmp_path: Path) -> None:
    asked = ("score", "minigpt", "--survey", "--formats", "bfloat16,float8_e4m3")
    done = byhand(*asked, "--out", str(tmp_path / "out"))
    assert done.status == 0
    assert "How often another token?" in done.out
    assert "changes the model" in done.out
    data = json.loads((tmp_path / "out" / "survey.json").read_text("utf-8"))
    assert [each["format"] for each in data["formats"]] == ["bfloat16", "float8_e4m3"]
    assert sum(each["tokens"] for each in data["margins"]) == data["judged"] == data["tokens"] == 7
    assert (tmp_path / "out" / "survey.html").read_text("utf-8").count("<svg") == 6
    again = byhand(*asked, "--json")
    assert json.loads(again.out) == data


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tiny", "a b", "--clip", "1.5"], "--clip has a value that does not fit"),
        (["tiny", "a b", "--digits", "40"], "a whole number from 1 to 12"),
        (["tiny", "a b", "--float", "fp8"], "float64, float32, bfloat16, float16"),
        (["tiny", "a"], "there is no token to score"),
        (["tiny", "a b", "--against", "nothere.jsonl"], "nothere.jsonl"),
        (["tiny", "a b", "--against", str(LOG)], "the log has none of these texts"),
        (["tiny", "a b", "--out", str(LOG)], "a folder"),
        (["tiny", "a b", "--survey", "--against", str(LOG)], "--survey and --against exclude"),
        (["tiny", "a b", "--survey", "--clip", "0.1"], "--survey and --clip exclude"),
        (["tiny", "a b", "--formats", "float32"], "--formats belongs to a survey"),
        (["tiny", "a b", "--survey", "--formats", "fp8"], "some of float32, float16, bfloat16"),
        (["tiny", "a b", "--survey", "--float", "bfloat16"], "float64"),
        (["tiny", "a", "--survey"], "there is no token to score"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_why(
    byhand: Call, arguments: list[str], said: str
) -> None:
    done = byhand("score", *arguments)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err

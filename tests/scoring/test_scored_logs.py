"""Logs beside the true values: what `byhand score` says of them, and the dump it asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand as face
from byhand.document.parts import Finding, LeftOut
from byhand.document.reports import score_report
from byhand.scoring.scored import Scored
from byhand.scoring.scorer import Scorer
from byhand.scoring.texts import read_texts
from calling import Outcome

TEXTS = [
    "<en> yesterday she climb -ed = ella sub -ió <end>",
    "<en> today I walk -0 = yo camin -o <end>",
    "<es> hoy nosotros camin -amos = we walk -0 <end>",
    "<es> ayer ellos camin -aron = they walk -ed <end>",
]
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "scores"
Change = Callable[[list[float]], list[Any]]


def rows(change: Change, format: str = "float32") -> list[dict[str, Any]]:
    """What an engine in a float format logs for the texts, with something done to its values."""
    model = face.open_model("minigpt")
    scorer = Scorer(model, format)
    return [
        {"input_ids": scores.sample.ids, "logprobs": [None, *change(scores.logprobs.tolist())]}
        for scores in scorer.score(read_texts(model, TEXTS))
    ]


def scored(folder: Path, lines: list[dict[str, Any]]) -> Scored:
    path = folder / "engine.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return face.score("minigpt", against=path, float="float64")


def findings(of: Scored) -> str:
    return " ".join(of.engines[0].findings)


def test_the_texts_of_a_log_are_scored_where_none_are_given(tmp_path: Path) -> None:
    found = scored(tmp_path, rows(list))
    assert len(found.truth.samples) == 4
    assert findings(found) == ""
    assert np.abs(found.engines[0].logprobs - found.truth.logprobs).max() < 1e-5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda values: [value / log(10) for value in values], "logarithms to base 10"),
        (lambda values: [value / log(2) for value in values], "logarithms to base 2"),
        (lambda values: [float(np.exp(value)) for value in values], "probabilities"),
        (lambda values: [-1.0, *values[:-1]], "one place late"),
    ],
)
def test_a_log_of_something_else_is_said_and_no_dump_is_asked_for(
    change: Change, says: str, tmp_path: Path
) -> None:
    found = scored(tmp_path, rows(change))
    assert says in findings(found)
    parts = list(score_report(found).parts())
    told = [part for part in parts if isinstance(part, Finding)]
    assert any("first find out what the values" in str(part) for part in told)
    assert not any(
        isinstance(part, LeftOut) and "check" in str(part) for part in score_report(found).parts()
    )


@pytest.mark.parametrize("low", [-9999.0, -3.4028234663852886e38, "-inf"])
def test_what_stands_for_minus_infinity_counts_as_that(low: Any, tmp_path: Path) -> None:
    found = scored(tmp_path, rows(lambda values: [low, *values[1:]]))
    (against,) = found.against
    assert against.summary.impossible == len(TEXTS)
    assert against.summary.largest < 1e-5
    assert "what stands for it" in findings(found)


def test_a_token_called_impossible_is_no_rounding_and_is_pointed_to(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (EXAMPLES / "half.jsonl").read_text().splitlines()]
    lines[1]["logprobs"][4] = "-inf"
    found = scored(tmp_path, lines)
    told = " ".join(str(part) for part in score_report(found).parts())
    assert "most look like rounding of float16, but not all" in told
    assert "the first token that engine calls impossible is token 4 of text 2" in told


def test_where_an_engine_says_another_token_its_largest_errors_say_so(
    tmp_path: Path, byhand: Callable[..., Outcome]
) -> None:
    path = tmp_path / "shifted.jsonl"
    path.write_text((EXAMPLES / "shifted.jsonl").read_text().splitlines()[16])
    found = byhand("score", "minigpt", f"--against={path}")
    line = next(line for line in found.out.splitlines() if "vosotros" in line and "-9.2" in line)
    assert line.split()[-1] == "flipped"


def test_a_temperature_is_seen_through_the_logits_of_the_model(tmp_path: Path) -> None:
    model = face.open_model("minigpt")
    scorer = Scorer(model, "float32")
    lines = []
    for sample in read_texts(model, TEXTS):
        logits = scorer.logits(sample) / 0.7
        logs = logits - np.log(np.exp(logits).sum(axis=1))[:, None]
        values = logs[np.arange(len(logits)), list(sample.scored)]
        lines.append({"input_ids": sample.ids, "logprobs": [None, *values.tolist()]})
    assert "divided by 0.7" in findings(scored(tmp_path, lines))


def test_errors_that_only_look_coarse_ask_for_a_dump_without_a_precision(
    byhand: Callable[..., Outcome],
) -> None:
    found = byhand("score", "minigpt", "--against", str(EXAMPLES / "half.jsonl"), "--float=float64")
    told = " ".join(found.out.split())
    assert found.status == 0
    assert "look like rounding of float16" in told
    assert "Open: a run in floats stands for the truth" in told
    assert "if half works in a finer format than float16" in told
    assert "byhand check minigpt dump.safetensors" in told
    assert "--precision" not in told


def test_a_log_that_is_cut_off_is_refused(tmp_path: Path, byhand: Callable[..., Outcome]) -> None:
    path = tmp_path / "engine.jsonl"
    path.write_text(json.dumps(rows(list)[0])[:-5])
    found = byhand("score", "minigpt", "--against", str(path))
    assert (found.status, found.out) == (2, "")
    assert "cut off" in found.err

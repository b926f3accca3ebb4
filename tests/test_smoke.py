"""Everything once, in a few seconds: if this fails, look here first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import byhand
from byhand.cli import main


def test_tiny_goes_out_of_the_exact_numbers_and_comes_back() -> None:
    trace = byhand.trace("tiny", "a b")
    assert str(trace["block.0.attn.weights[0,1,1]"]) == "e/(1 + e)"
    assert trace["block.0.attn.weights"].register == "named"
    assert trace["logits"].register == "exact"
    assert [int(x.fraction) for x in trace["logits[1]"]] == [1, -1, 0]
    assert [prediction.proven for prediction in trace.next] == [True, True]


def test_journey_has_a_named_loss() -> None:
    trace = byhand.trace("journey")
    assert trace.loss.register == "named"
    assert trace.loss.decimal(4) == "1.8313"
    assert trace.token(trace.next[-1].id) == "cat"


def test_a_pencil_rounds_every_line() -> None:
    trace = byhand.trace("journey", decimals=2)
    assert {step.register for step in trace.values()} == {"exact", "rounded"}


def test_minigpt_is_counted() -> None:
    assert byhand.count("minigpt-init").total == 103_680


def test_a_trace_is_saved_and_opened(tmp_path: Path) -> None:
    byhand.trace("tiny", "a b").save(tmp_path / "golden")
    saved = byhand.open_trace(tmp_path / "golden")
    assert saved["logits[1]"].tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    "call",
    [
        ["models"],
        ["count", "tiny"],
        ["trace", "tiny", "c"],
        ["trace", "abc-walkthrough"],
        ["trace", "minigpt-init", "--shapes"],
        ["trace", "tiny", "--at", "block.0.attn.scores[0,1,1]", "--lang", "es"],
        ["trace", "tiny", "--stop-at-boundary"],
    ],
    ids=" ".join,
)
def test_a_command_prints_something(call: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(call)
    assert ended.value.code in (0, None)
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["trace", "tiny", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["next"][1]["token"] == "a"
    assert document["next"][1]["proven"] is True

"""`byhand.testing`: what a port's own test suite calls, and what it says when the port is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.checking.verdicts import Verdict
from byhand.errors import ByhandError
from byhand.testing import assert_follows
from marking_samples import marked, marking_of


@pytest.fixture(scope="module")
def dump() -> dict[str, Any]:
    """What a right port would hand over: every step as float32."""
    trace = byhand.trace("minigpt", float="float32")
    steps = [step.address for step in trace.plan if step.op not in ("given", "argmax", "scores")]
    return {name: np.ma.getdata(trace[name].value) for name in steps}


def test_a_right_port_passes_and_the_marking_comes_back(dump: dict[str, Any]) -> None:
    marking = assert_follows("minigpt", dump)
    assert marking.follows
    assert [line.address for line in marking][-1] == "loss"


def test_a_wrong_port_fails_with_the_line_and_the_table(dump: dict[str, Any]) -> None:
    wrong = {**dump, "block.0.mlp.act": np.maximum(dump["block.0.mlp.hidden"], 0)}
    with pytest.raises(AssertionError) as failure:
        assert_follows("minigpt", wrong)
    first, *rest = str(failure.value).splitlines()
    assert first.startswith("first error: block.0.mlp.act — not rounding (")
    assert any(line.startswith("  ✗  block.0.mlp.act") for line in rest)
    assert any("entries are beyond what rounding allows" in line for line in rest)


def test_the_claims_may_be_given_in_pieces(dump: dict[str, Any]) -> None:
    pieces = [{name: value} for name, value in dump.items()]
    assert len(list(assert_follows("minigpt", pieces))) == len(dump)


def test_a_name_that_stands_for_nothing_is_warned_of(dump: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match=r"block\.0\.mlp\.cat"):
        assert_follows("minigpt", {**dump, "block.0.mlp.cat": np.zeros(3, np.float32)})


def test_a_test_that_tests_nothing_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"block.0.mlp.cat": np.zeros(3, np.float32)}
    with pytest.raises(ByhandError, match="none of the claims is about this model"):
        assert_follows("minigpt", nothing)
    unjudged = marking_of(marked("logits", Verdict.UNJUDGED, reason="weight.head is unknown"))
    monkeypatch.setattr("byhand.api.check", lambda *_, **__: unjudged)
    with pytest.raises(AssertionError, match="nothing can be judged: 1 line"):
        assert_follows("minigpt", nothing)


def test_a_line_that_nobody_can_judge_does_not_pass_unless_it_may(dump: dict[str, Any]) -> None:
    sparse = {name: dump[name] for name in ("embed.token", "logits")}
    with pytest.raises(AssertionError, match="1 cannot be judged"):
        assert_follows("minigpt", sparse)
    assert not assert_follows("minigpt", sparse, allow_unjudged=True).passed


def test_a_line_that_rounding_hardly_explains_does_not_even_pass_where_unjudged_ones_may(
    dump: dict[str, Any],
) -> None:
    sparse = {"embed.token": dump["embed.token"], "logits": dump["logits"][:, ::-1].copy()}
    with pytest.raises(AssertionError, match="times what rounding usually does"):
        assert_follows("minigpt", sparse, precision="bfloat16", allow_unjudged=True)


@pytest.mark.parametrize("allow", [False, True])
def test_a_step_of_another_shape_does_not_pass(dump: dict[str, Any], allow: bool) -> None:
    other = {**dump, "block.0.attn.out": np.zeros((3, 5), np.float32)}
    with pytest.raises(AssertionError, match="another shape"):
        assert_follows("minigpt", other, allow_unjudged=allow)


def test_pytest_shows_the_line_of_the_test_and_not_byhands_own(
    tmp_path: Path, dump: dict[str, Any]
) -> None:
    np.savez(tmp_path / "dump.npz", **{**dump, "logits": dump["logits"] + np.float32(1)})
    (tmp_path / "test_port.py").write_text(PORT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_port.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert '>       assert_follows("minigpt", "dump.npz")' in done.stdout
    assert "E       AssertionError: first error: logits" in done.stdout
    assert "raise AssertionError" not in done.stdout


PORT = """\
from byhand.testing import assert_follows

def test_the_port():
    assert_follows("minigpt", "dump.npz")
"""

"""`byhand check`: what is taken for a file and what for the text, what is said, and the status."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import byhand.api as api
import marking_samples as samples
from byhand.checking import documents
from byhand.checking.verdicts import Marking, Verdict
from byhand.cli.check import Asked, read_arguments
from byhand.document.media.terminal.ink import width_of
from byhand.errors import UsageError
from marking_samples import marked, marking_of, text_of

Call = Callable[..., Any]

RIGHT = """\
text: a b
claims:
  stream.0: [[1.000, 0.000], [1.000, 1.000]]
  block.0.attn.scores[0,1]: [1.000, 2.000]
  block.0.attn.weights[0,1]: [0.269, 0.731]
"""
WRONG = RIGHT.replace("0.269", "0.310")


@pytest.fixture
def right(tmp_path: Path) -> str:
    path = tmp_path / "right.yaml"
    path.write_text(RIGHT)
    return str(path)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    return str(path)


@pytest.fixture
def judging(monkeypatch: pytest.MonkeyPatch) -> Callable[[Marking], dict[str, Any]]:
    """Lets the judge say something; returns what it was asked."""
    asked: dict[str, Any] = {}

    def saying(marking: Marking) -> dict[str, Any]:
        def check(model: Any, *claims: Any, **rest: Any) -> Marking:
            asked.update(rest, model=model.name, claims=[str(claim) for claim in claims])
            return marking

        monkeypatch.setattr(api, "check", check)
        return asked

    return saying


# ------------------------------------------------------------------ the answer


def test_what_follows_is_status_0(byhand: Call, right: str) -> None:
    shown = byhand("check", "tiny", right)
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.startswith("all 3 lines follow (as written; at most ")
    assert "  ✓  block.0.attn.weights[0,1]" in shown.out


def test_what_does_not_follow_is_status_1_and_told_in_the_first_line(
    byhand: Call, wrong: str
) -> None:
    shown = byhand("check", "tiny", wrong)
    assert shown.status == 1
    first = shown.out.splitlines()[0]
    assert first.startswith("first error: block.0.attn.weights[0,1] — not rounding (")
    assert "  ✗  block.0.attn.weights[0,1]" in shown.out
    assert "block.0.attn.weights[0,1,0]: 0.310 claimed, 0.26894 ± " in shown.out
    assert "wrong.yaml:5" in shown.out


def test_a_saved_trace_follows(byhand: Call, tmp_path: Path) -> None:
    folder = str(tmp_path / "golden")
    assert byhand("trace", "minigpt", "--float", "float32", "--out", folder).status == 0
    shown = byhand("check", "minigpt", folder)
    assert shown.status == 0
    assert "lines follow (float32; at most " in shown.out


def test_what_cannot_be_judged_has_not_passed_unless_it_may(
    byhand: Call, judging: Call, right: str
) -> None:
    judging(marking_of(marked("logits", Verdict.UNJUDGED, reason="weight.head is unknown")))
    shown = byhand("check", "tiny", right)
    assert shown.status == 1
    assert "weight.head is unknown" in shown.out
    assert "not passed: 1 line cannot be judged\nhint: " in shown.err
    assert byhand("check", "tiny", right, "--allow-unjudged").status == 0


def test_what_is_not_known_to_be_near_does_not_pass_even_where_unjudged_lines_may(
    byhand: Call, judging: Call, right: str
) -> None:
    judging(marking_of(marked("logits", Verdict.UNJUDGED, reason="too many steps", near=False)))
    shown = byhand("check", "tiny", right, "--allow-unjudged")
    assert shown.status == 1
    assert shown.err == (
        "not passed: 1 line is not known to be near to what is expected\n"
        "hint: claim more of the steps before them\n"
    )


def test_a_blank_line_beside_a_right_one_does_not_keep_it_from_passing(
    byhand: Call, judging: Call, right: str
) -> None:
    blank = marked("loss", Verdict.UNJUDGED, reason="left blank", blank=True)
    judging(marking_of(marked("logits"), blank))
    assert byhand("check", "tiny", right).status == 0
    judging(marking_of(blank))
    shown = byhand("check", "tiny", right)
    assert (shown.status, shown.err.splitlines()[0]) == (1, "not passed: nothing is filled in")


@pytest.mark.parametrize(("said", "status"), [("[a, a]", 0), ("[b, a]", 1), ("[c, b]", 1)])
def test_a_wrong_next_token_is_never_right(
    byhand: Call, tmp_path: Path, said: str, status: int
) -> None:
    """Of tiny the next tokens after a and b are a and a, proven."""
    path = tmp_path / "next.yaml"
    path.write_text(f"text: a b\nclaims: {{next: {said}}}\n")
    shown = byhand("check", "tiny", str(path))
    assert shown.status == status
    assert ("✗  next" in shown.out) == bool(status)


def test_claims_about_nothing_at_all_are_status_2(byhand: Call, tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("text: a b\nclaims: {block.7.mlp.cat: [1.0]}\n")
    shown = byhand("check", "tiny", str(path))
    assert (shown.status, shown.out) == (2, "")
    assert "none of the claims is about this model\n" in shown.err
    assert "  found: block.7.mlp.cat\n" in shown.err


def test_names_that_stand_for_nothing_are_told_on_stderr_and_in_the_data(
    byhand: Call, tmp_path: Path
) -> None:
    path = tmp_path / "typo.yaml"
    path.write_text(RIGHT + "  block.0.attn.wieghts: [1.0]\n")
    shown = byhand("check", "tiny", str(path), "--json")
    assert shown.status == 0
    assert "block.0.attn.wieghts (typo.yaml:6)" in shown.err
    assert "    hint: did you mean block.0.attn.weights" in shown.err
    (text,) = json.loads(shown.out)["texts"]
    assert [each["name"] for each in text["unmatched"]] == ["block.0.attn.wieghts"]


def test_the_data_are_one_document(byhand: Call, wrong: str) -> None:
    shown = byhand("check", "tiny", wrong, "--json")
    assert shown.status == 1
    document = json.loads(shown.out)
    assert (document["model"], document["follows"]) == ("tiny", False)
    assert document["texts"][0]["first_error"] == "block.0.attn.weights[0,1]"


def test_only_some_lines_count(byhand: Call, wrong: str) -> None:
    shown = byhand("check", "tiny", wrong, "--only", "block.0.attn.scores")
    assert shown.status == 0
    assert shown.out.startswith("the line follows")
    missing = byhand("check", "tiny", wrong, "--only", "logits")
    assert missing.status == 2
    assert "no claim is about 'logits'" in missing.err


def test_all_folds_nothing(byhand: Call, judging: Call, right: str) -> None:
    judging(samples.large())
    folded, whole = byhand("check", "tiny", right), byhand("check", "tiny", right, "--all")
    assert "…" in folded.out
    assert "…" not in whole.out
    assert len(whole.out.splitlines()) > len(list(samples.large()))


def test_what_was_asked_is_handed_on(byhand: Call, judging: Call, right: str) -> None:
    asked = judging(samples.good())
    byhand(
        "check", "tiny", right, "b a", "--target", "c", "--precision", "bfloat16", "--no-suspects"
    )
    assert asked.pop("progress") is None
    assert asked == {
        "model": "tiny", "claims": [right], "text": "b a", "target": "c",
        "precision": "bfloat16", "suspects": False, "optimizer": None, "names": None,
        "source": None, "segments": None,
    }  # fmt: skip


def test_spanish_fits_the_page_too(byhand: Call, judging: Call, right: str) -> None:
    judging(samples.faulty())
    shown = byhand("check", "tiny", right, "--lang", "es")
    assert [line for line in shown.out.splitlines() if width_of(line) > 80] == []


# ------------------------------------------------------------------ files and text


def test_the_last_argument_is_the_text_where_it_is_no_file(right: str, wrong: str) -> None:
    assert read_arguments("tiny", (right,), None) == Asked((right,), None)
    assert read_arguments("tiny", (right, "a b"), None) == Asked((right,), "a b")
    assert read_arguments("tiny", (right, wrong), None) == Asked((right, wrong), None)
    assert read_arguments("tiny", (right,), "a b") == Asked((right,), "a b")
    assert read_arguments("tiny", (right, ""), None) == Asked((right,), "")
    assert read_arguments("tiny", (right, "a\0" * 5000), None).text == "a\0" * 5000


@pytest.mark.parametrize("name", ["claims.yaml", "dump.NPZ", "sub/values.safetensors", "x.pt"])
def test_what_ends_like_a_file_of_claims_is_never_taken_for_text(name: str) -> None:
    assert read_arguments("tiny", (name,), None) == Asked((name,), None)


def test_a_file_that_is_not_there_is_said_to_be_missing(byhand: Call, right: str) -> None:
    for arguments in (["nowhere.yaml"], ["nowhere", right], [right, "nowhere", "--text", "a b"]):
        shown = byhand("check", "tiny", *arguments)
        assert shown.status == 2
        assert "there is no file 'nowhere" in shown.err


def test_a_text_that_is_also_a_file_can_be_given_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, right: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    assert read_arguments("tiny", (right, "a"), None) == Asked((right, "a"), None)
    assert read_arguments("tiny", (right,), "a") == Asked((right,), "a")


def test_without_claims_the_document_of_a_built_in_model_is_checked() -> None:
    document = documents.of("journey")
    assert document is not None
    assert read_arguments("journey", (), None) == Asked((document,), None)
    assert read_arguments("journey", ("the cat",), None) == Asked((document,), "the cat")


def test_without_claims_and_without_a_document_the_call_is_wrong(byhand: Call) -> None:
    with pytest.raises(UsageError, match="CLAIMS is missing"):
        read_arguments("tiny", (), None)
    shown = byhand("check", "tiny")
    assert shown.status == 2
    assert shown.err.startswith("error: CLAIMS is missing\n  expected: ")
    assert "journey" in shown.err


def test_a_wrong_model_is_told_as_everywhere(byhand: Call, right: str) -> None:
    shown = byhand("check", "tinny", right)
    assert shown.status == 2
    assert "there is no model 'tinny'" in shown.err


def test_a_wrong_precision_is_told(byhand: Call, right: str) -> None:
    shown = byhand("check", "tiny", right, "--precision", "float23")
    assert shown.status == 2
    assert "float23" in shown.err


# ------------------------------------------------------------------ the report


def test_the_report_is_written_whole_beside_what_is_printed(
    byhand: Call, wrong: str, tmp_path: Path
) -> None:
    report = tmp_path / "out.html"
    report.write_text("old")
    shown = byhand("check", "tiny", wrong, "--report", str(report))
    assert shown.status == 1
    assert shown.out.startswith("first error: ")
    assert shown.err == f"the report is in {report}\n"
    assert report.read_text("utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "wrong.yaml"]


def test_what_cannot_be_written_is_told_before_the_work(
    byhand: Call, judging: Call, right: str, tmp_path: Path
) -> None:
    asked = judging(samples.good())
    for option in ("--report", "--gradebook"):
        for path in (str(tmp_path), str(tmp_path / "no" / "out.html"), "", "a\0b"):
            shown = byhand("check", "tiny", right, option, path)
            assert (shown.status, shown.out) == (2, "")
            assert "cannot be written" in shown.err
    assert asked == {}


def test_a_report_that_fails_leaves_the_old_one(
    byhand: Call, right: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "out.html"
    report.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("byhand.drafts.os.fsync", full)
    shown = byhand("check", "tiny", right, "--report", str(report))
    assert shown.status == 2
    assert "No space left on device" in shown.err
    assert report.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "right.yaml"]


# ------------------------------------------------------------------ worksheets


def classroom() -> Marking:
    """Three sheets: all right; a slip carried forward; the same slip and a blank."""
    slip = marked("block.0.attn.scores", Verdict.ERROR, 9.0, format=None, suspects=(samples.SCALE,))
    return Marking(
        "journey",
        (
            text_of(marked("block.0.attn.scores"), marked("logits"), label="Ana"),
            text_of(slip, marked("logits", Verdict.CARRIED), label="Ben"),
            text_of(slip, label="Cleo"),
        ),
    )


def test_a_gradebook_has_a_row_a_student_and_the_commonest_mistakes(
    byhand: Call, judging: Call, right: str, tmp_path: Path
) -> None:
    judging(classroom())
    grades = tmp_path / "grades.csv"
    shown = byhand("check", "journey", right, "--gradebook", str(grades))
    assert shown.status == 1
    assert (
        shown.out
        == """\
3 sheets, 50% on average

  student   marks    %   1 2
  Ana      2 of 2  100   ✓ ✓
  Ben      1 of 2   50   ✗ →
  Cleo     0 of 2    0   ✗ ·

  ✓ right   → carried forward   ✗ error here   · left blank
  1 block.0.attn.scores   2 logits

The commonest mistakes
  2 of 3: it follows if the scores are not divided by √d_head
    Ben and Cleo, at block.0.attn.scores
"""
    )
    assert shown.err == f"the marks are in {grades}\n"
    rows = list(csv.reader(grades.read_text("utf-8").splitlines()))
    assert [row[:4] for row in rows] == [
        ["student", "total", "out of", "percent"],
        ["Ana", "2", "2", "100"],
        ["Ben", "1", "2", "50"],
        ["Cleo", "0", "2", "0"],
    ]


def test_a_gradebook_as_data_has_the_marks_and_the_comments(
    byhand: Call, judging: Call, right: str, tmp_path: Path
) -> None:
    judging(classroom())
    shown = byhand("check", "journey", right, "--gradebook", str(tmp_path / "g.csv"), "--json")
    book = json.loads(shown.out)["gradebook"]
    assert [sheet["total"] for sheet in book["sheets"]] == ["2", "1", "0"]
    assert book["sheets"][1]["marks"][1]["comment"] == "follows from your line above"
    assert book["mistakes"][0]["students"] == ["Ben", "Cleo"]


def test_several_sheets_are_followed_by_how_the_class_did(
    byhand: Call, judging: Call, right: str, tmp_path: Path
) -> None:
    judging(classroom())
    alone = byhand("check", "journey", right)
    written = byhand("check", "journey", right, "--gradebook", str(tmp_path / "g.csv"), "--all")
    for shown in (alone.out, written.out):
        assert shown.startswith("first error: Ben, block.0.attn.scores — ")
        assert "── Cleo · the cat sat on" in shown
        assert shown.index("── Cleo") < shown.index("3 sheets, 50% on average")


def test_a_single_sheet_is_marked_too(byhand: Call, right: str, tmp_path: Path) -> None:
    shown = byhand("check", "tiny", right, "--gradebook", str(tmp_path / "g.csv"))
    assert shown.status == 0
    assert shown.out.startswith("right: 3 of 3 (100%)\n")


# ------------------------------------------------------------------ what is written over


@pytest.mark.parametrize("option", ["--report", "--gradebook"])
def test_the_claims_are_not_written_over(byhand: Call, right: str, option: str) -> None:
    refused = byhand("check", "tiny", right, option, right)
    assert refused.status == 2
    assert "this file is named twice" in refused.err
    assert Path(right).read_text() == RIGHT


def test_report_and_gradebook_are_two_files(byhand: Call, right: str, tmp_path: Path) -> None:
    one = str(tmp_path / "out")
    assert byhand("check", "tiny", right, "--report", one, "--gradebook", one).status == 2


@pytest.mark.parametrize("option", ["--report", "--gradebook"])
def test_a_pipe_is_written_into_and_a_link_stays_one(
    byhand: Call, right: str, tmp_path: Path, option: str
) -> None:
    pipe, real, link = (tmp_path / name for name in ("pipe", "real", "link"))
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert byhand("check", "tiny", right, option, str(pipe)).status == 0
        assert len(os.read(end, 65536)) > 50
    finally:
        os.close(end)
    assert pipe.is_fifo()
    real.write_text("")
    link.symlink_to(real)
    assert byhand("check", "tiny", right, option, str(link)).status == 0
    assert link.is_symlink()
    assert real.read_text()

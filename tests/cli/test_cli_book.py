"""`byhand book`: what is written, what is said, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]
PAGES = {"whole", "tokens", "attention", "block", "next", "losses", "backward", "step",
         "explained", "exact", "parameters"}  # fmt: skip


def test_a_book_is_written_and_where_it_is_said_on_stderr(byhand: Call, tmp_path: Path) -> None:
    made = byhand("book", "tiny", "--out", str(tmp_path / "book"))
    assert (made.status, made.out) == (0, "")
    assert made.err == f"the book is in {tmp_path / 'book' / 'index.html'}\n"
    assert {path.stem for path in (tmp_path / "book").glob("*.html")} == {*PAGES, "index"}


def test_it_can_be_written_again_into_the_same_folder(byhand: Call, tmp_path: Path) -> None:
    for text in ("a b", "b a"):
        assert byhand("book", "tiny", text, "--out", str(tmp_path)).status == 0
    assert "b a" in (tmp_path / "whole.html").read_text()


def test_target_claims_and_numbers_reach_the_book(byhand: Call, tmp_path: Path) -> None:
    claims = tmp_path / "homework.yaml"
    claims.write_text("claims:\n  block.0.attn.weights[0,1]: [0.269, 0.713]\n")
    out = tmp_path / "book"
    made = byhand(
        "book", "tiny", "--target", "c", "--claims", str(claims), "--out", str(out)
    )  # fmt: skip
    assert made.status == 0
    assert "homework.yaml:2" in (out / "attention.html").read_text()
    assert "next-loss" in (out / "next.html").read_text()
    assert byhand("book", "tiny", "--decimals", "2", "--out", str(out)).status == 0
    assert "rounded to 2 decimals" in (out / "attention.html").read_text()
    assert "exact.html" not in (out / "index.html").read_text()  # nothing stays exact


def test_with_no_claims_nothing_is_checked(byhand: Call, tmp_path: Path) -> None:
    assert byhand("book", "journey", "--claims", "none", "--out", str(tmp_path)).status == 0
    assert "does not follow" not in (tmp_path / "attention.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "error: --out is missing\n  expected: a folder\n  hint: see byhand book --help\n"),
        (("--blanks", "3", "--out", "x"), "error: --blanks needs --worksheet\n"),
        (("--ask", "values", "--out", "x"), "error: --ask needs --worksheet\n"),
        (
            ("--digits", "5", "--float", "float32", "--out", "x"),
            "error: --digits and --float exclude each other\n  hint: leave one of them out\n",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    byhand: Call, arguments: tuple[str, ...], complaint: str
) -> None:
    refused = byhand("book", "tiny", *arguments)
    assert (refused.status, refused.err) == (2, complaint)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("--blanks", "0"),
            "error: a worksheet needs blanks\n"
            "  expected: a whole number from 1 to 10,000\n  found: 0\n",
        ),
        (
            ("--ask", "values,colours"),
            "error: a worksheet cannot ask for 'colours'\n"
            "  expected: values, shapes, counts, gradients, step\n  found: 'colours'\n",
        ),
    ],
)
def test_a_worksheet_that_cannot_be_is_refused_before_a_page_is_written(
    byhand: Call, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    out = tmp_path / "book"
    refused = byhand("book", "tiny", "--worksheet", *arguments, "--out", str(out))
    assert (refused.status, refused.err) == (2, complaint)
    assert not out.exists()


def test_a_worksheet_asks_for_the_kinds_that_were_said(byhand: Call, tmp_path: Path) -> None:
    made = byhand(
        "book", "tiny", "--worksheet", "--ask", "shapes, counts", "--blanks", "4",
        "--out", str(tmp_path),
    )  # fmt: skip
    assert made.status == 0
    lines = (tmp_path / "worksheet.yaml").read_text("utf-8").partition("claims:\n")[2].splitlines()
    assert len(lines) == 4
    assert all(line.startswith("  count.") for line in lines)


def test_a_file_in_the_place_of_the_folder_is_left_alone(byhand: Call, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("mine")
    refused = byhand("book", "tiny", "--out", str(file))
    assert refused.status == 2
    assert "expected: a folder" in refused.err
    assert file.read_text() == "mine"


def test_an_unknown_address_gets_the_nearest(byhand: Call, tmp_path: Path) -> None:
    refused = byhand("book", "tiny", "--at", "block.0.attn.scorse", "--out", str(tmp_path))
    assert refused.status == 2
    assert "did you mean block.0.attn.scores" in refused.err

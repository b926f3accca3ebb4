"""Every command that a book or a sheet prints works as it stands, where the reader is."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest
from worksheet_samples import make_worksheet

from byhand.document.media.typst import typst_source
from byhand.editions import make_edition
from byhand.files.document import parse_model
from calling import Outcome

MODEL = Path("my models", "deep one.yaml")
TINY = Path(__file__).parents[2] / "src" / "byhand" / "models" / "tiny.yaml"


def deep() -> str:
    """A model file of four blocks, whose name is not what its reader calls it."""
    text = TINY.read_text("utf-8").replace("name: tiny", "name: somebody's").replace(
        "layers: 1", "layers: 4"
    )  # fmt: skip
    block = "".join(line + "\n" for line in text.splitlines() if line.startswith("  block.0."))
    return text + "".join(block.replace("block.0.", f"block.{layer}.") for layer in (1, 2, 3))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reader is: the model lies in a folder of its own."""
    (tmp_path / MODEL).parent.mkdir()
    (tmp_path / MODEL).write_text(deep(), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(folder: Path) -> Iterator[str]:
    """The commands with arguments that stand on pages and in claims files."""
    for path in sorted(folder.glob("*.html")):
        for code in re.findall(r"<code>(byhand \w+ .*?)</code>", path.read_text("utf-8")):
            yield unescape(code)
    for path in sorted(folder.glob("*.yaml")):
        yield from re.findall(r"(?m)^# (byhand \w+ .*)$", path.read_text("utf-8"))


@pytest.mark.parametrize("size", ["pencil", "toy", "large"])
def test_whatever_a_book_prints_runs(
    size: str,
    folder: Path,
    byhand: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as as_if:
        if size != "pencil":
            as_if.setattr("byhand.evaluate.PENCIL_SIZED", 1)
            as_if.setattr("byhand.document.compose.book.edition.MOST_LAYERS", 2)
        if size == "large":
            as_if.setattr("byhand.editions.TOY_PARAMETERS", 1)
        made = byhand("book", str(MODEL), "b a", "--out", "the book", "--target", "c")
    assert made.status == 0, made.err
    commands = set(printed(Path("the book")))
    assert any("deep one.yaml' 'b a'" in command for command in commands) or size == "pencil"
    if size == "large":
        assert {command.split()[1] for command in commands} >= {"trace", "book", "explain"}
    for command in sorted(commands):
        done = byhand(*shlex.split(command)[1:])
        assert (done.status, done.err.partition("error")[1]) == (0, ""), (command, done.err)


def test_a_page_too_large_for_its_workings_names_a_number_that_there_is(
    folder: Path, byhand: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byhand.document.media.html.page.MOST_EMBEDDED", 10)
    assert byhand("book", str(MODEL), "--out", "brief").status == 0
    commands = sorted(set(printed(Path("brief"))))
    assert commands
    for command in commands:
        done = byhand(*shlex.split(command)[1:])
        assert done.status == 0, (command, done.err)


@pytest.mark.parametrize("where", ["the book", "elsewhere/the book"])
def test_what_a_sheet_prints_marks_it_in_its_folder(
    where: str, folder: Path, byhand: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = byhand("book", str(MODEL), "b a", "--out", where, "--worksheet", "--blanks", "6")
    assert made.status == 0, made.err
    monkeypatch.chdir(where)
    (command,) = {c for c in printed(Path()) if c.startswith("byhand check")}
    assert shlex.split(command)[2] == os.path.relpath(folder / MODEL)
    os.replace("worksheet-key.yaml", "worksheet.yaml")
    done = byhand(*shlex.split(command)[1:])
    assert done.status == 0, done.err
    assert "6 of 6" in done.out


def test_a_built_in_model_goes_by_its_name() -> None:
    sheet = make_worksheet("tiny", blanks=4)
    assert sheet.command == "byhand check tiny worksheet.yaml"


def test_a_model_that_was_opened_goes_by_where_it_lies(folder: Path) -> None:
    opened = parse_model(MODEL.read_text("utf-8"), str(MODEL))
    edition = make_edition(opened, "b a")
    assert edition.command == "'my models/deep one.yaml' 'b a'"


def test_what_is_typeset_prints_the_same_commands(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from byhand.document.media.html import pages
    from byhand.editions import make_book

    monkeypatch.setattr("byhand.evaluate.PENCIL_SIZED", 1)
    book = make_book(str(MODEL), "b a")
    web = {unescape(c) for page in pages(book).values()
           for c in re.findall(r"<code>(byhand \w+ .*?)</code>", page)}  # fmt: skip
    paper = set(re.findall(r'command: "(byhand .*?)"', typst_source(book)))
    assert paper
    assert paper <= web

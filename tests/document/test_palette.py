"""Every colour has one name, and no page, book or spreadsheet has a colour of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import byhand
from byhand.document import palette
from byhand.document.media.html.style import colours, style
from byhand.document.media.typst.writing import design

SOURCE = Path(byhand.__file__).parent
ROOMS = (SOURCE / "document", SOURCE / "serving")
FILES = [
    path
    for room in ROOMS
    for path in sorted(room.rglob("*"))
    if path.suffix in {".css", ".js", ".typ", ".py"} and path.name != "palette.py"
]
SHEETS = [path for path in FILES if path.suffix == ".css"]
COLOUR = re.compile(r"#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b")
SHADOWS = {"#0003", "#0004", "#0005", "#0007", "#fff"}  # black seen through, and blank paper


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_colours_stand_in_the_palette_alone(path: Path) -> None:
    text = re.sub(r"#bad?ge|&#\d+;", "", path.read_text("utf-8"))
    assert set(COLOUR.findall(text)) <= SHADOWS


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_a_sheet_uses_no_name_that_nothing_sets(path: Path) -> None:
    sheets = "".join(sheet.read_text("utf-8") for sheet in SHEETS)
    drawn = "".join(source.read_text("utf-8") for source in FILES if source.suffix != ".css")
    known = {*palette.LIGHT, *re.findall(r"--([\w-]+):", sheets + drawn)}
    known |= {f"p-{name}" for name in palette.LIGHT}
    known |= set(re.findall(r'"--([\w-]+)"', drawn))
    assert set(re.findall(r"var\(--([\w-]+)\)", path.read_text("utf-8"))) <= known


def test_each_scheme_has_every_colour() -> None:
    assert palette.LIGHT.keys() == palette.DARK.keys() == palette.PRINTED.keys()
    assert colours().count("--named:") == 3
    assert style("book.css").startswith(colours())


def test_paper_reads_the_same_palette() -> None:
    assert f'named: rgb("{palette.LIGHT["named"]}")' in design()

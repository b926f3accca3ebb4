"""Claims in rows of cells, from a CSV file or a spreadsheet: an address, then its values.

    address,value
    text,the cat sat on
    "block.0.attn.scores[0,1,1]",0.30
    block.0.attn.add[3],-0.06,0.49,0.72,0.34

A row with several values is a list.  A first row of headings is skipped, and so are rows whose
first cell is empty or begins with #.  CSV files may also be separated by semicolons or tabs.

Of an xlsx file the first sheet is read.  A number counts with the decimals that its cell shows: 0.3
in the format 0.00 is 0.30.  A cell in the general format shows the digits it was typed with.  A
formula counts as its last result.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable
from datetime import date, time
from pathlib import Path
from typing import Any

from byhand.checking.claims import Sheet
from byhand.checking.readers.handwriting import HEADING, sheet_of
from byhand.checking.readers.tensors import open_zip
from byhand.errors import InputError
from byhand.files import tree
from byhand.files.mapped import shown
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _

TITLES = ("address", "name", "step")
SEPARATORS = (",", ";", "\t")
Row = tuple[int, list[str]]  # line number and cells


def read_csv(path: Path) -> Sheet:
    """The claims of a CSV file."""
    text = tree.text_of(path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    rows: list[Row] = []
    try:
        for cells in reader:
            rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise InputError(
            _("this is not CSV: {problem}").format(problem=error),
            where=f"{path}:{reader.line_num}",
        ) from None
    return sheet_of_rows(str(path), rows)


def _separator(text: str) -> str:
    """The separator after the first cell: a comma, a semicolon or a tab."""
    for line in text.splitlines()[:50]:
        outside, depth = "", 0
        for sign in line:
            depth += (sign == "[") - (sign == "]")
            outside += sign if depth <= 0 else ""
        found = [sign for sign in SEPARATORS if sign in outside]
        if found and not line.startswith("#"):
            return min(found, key=outside.index)
    return ","


def sheet_of_rows(source: str, rows: Iterable[Row]) -> Sheet:
    """The sheet of rows of text cells."""
    entries: dict[str, Node] = {}
    titles = True
    for line, found in rows:
        cells = _whole_index([cell.strip() for cell in found])
        name = cells[0] if cells else ""
        if not name or name.startswith("#"):
            continue
        if titles and name.lower() in TITLES and _is_title(cells):
            titles = False
            continue
        titles = False
        node = _node(source, line, name, cells[1:])
        if name in entries:
            first = entries[name].line
            raise node.wrong(
                _("this address is given twice"),
                expected=_("each address once"),
                found=_("{key} on line {line} and again here").format(key=shown(name), line=first),
            )
        entries[name] = node
    return sheet_of(source, Table(source, 1, "", entries))


def _is_title(cells: list[str]) -> bool:
    return len(cells) < 2 or cells[1].lower().startswith("value") or not cells[1]


def _whole_index(cells: list[str]) -> list[str]:
    """The cells, with an address that was split at its commas joined again."""
    for end, cell in enumerate(cells):
        if "]" in cell and "[" in cells[0] and "]" not in cells[0]:
            return [",".join(cells[: end + 1]), *cells[end + 1 :]]
    return cells


def _node(source: str, line: int, name: str, cells: list[str]) -> Node:
    """One value, or the list of several.

    Blanks at the end may lie outside the row: `matches` decides, which knows the step.
    """
    filled = max((place for place, cell in enumerate(cells) if cell), default=-1) + 1
    if name in HEADING:
        return Scalar(source, line, name, ",".join(cells[:filled]))
    scalars = [Scalar(source, line, name, cell) for cell in cells]
    if len(scalars) <= 1 or not filled:
        return scalars[0] if scalars else Scalar(source, line, name, "")
    return List(source, line, name, tuple(scalars))


# ------------------------------------------------------------------ spreadsheets


MOST_BYTES = 256 * 2**20  # after unpacking
MOST_ROWS = 100_000
_PLACES = re.compile(r"#?,?#*0(?:\.(?P<places>0+))?(?P<percent>%?)(?P<power>E\+0+)?")


def read_spreadsheet(path: Path) -> Sheet:
    """The claims of the first sheet."""
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise InputError(
            _("spreadsheets are read with openpyxl, which is not installed"),
            where=str(path),
            hint=_("pip install 'byhand[xlsx]', or save the sheet as CSV"),
        ) from None
    broken = _("this is not a whole xlsx file: {reason}")
    with open_zip(path, MOST_BYTES, broken) as archive:
        _refuse_entities(path, archive)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            rows = _rows(path, book)
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # openpyxl raises many kinds of errors for a broken file
        reason = shown(str(error) or type(error).__name__)
        raise InputError(broken.format(reason=reason), where=str(path)) from None
    return sheet_of_rows(str(path), rows)


def _refuse_entities(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuses a spreadsheet whose XML defines entities."""
    for member in archive.namelist():
        if member.endswith((".xml", ".rels")):
            with archive.open(member) as file:
                if b"<!DOCTYPE" in file.read(4096).upper():
                    raise InputError(
                        _("this is not a spreadsheet that is read: it defines entities"),
                        where=f"{path}: {shown(member)}",
                    )


def _rows(path: Path, book: Any) -> list[Row]:
    found: list[Row] = []
    sheet = book.worksheets[0]
    sheet.reset_dimensions()  # a file may declare a wrong size
    for line, row in enumerate(sheet.iter_rows(), 1):
        if line > MOST_ROWS:
            raise InputError(
                _("the file is too large"),
                where=str(path),
                expected=_("at most {count} rows").format(count=f"{MOST_ROWS:,}"),
            )
        found.append((line, [_text(path, line, cell) for cell in row]))
    return found


def _text(path: Path, line: int, cell: Any) -> str:
    """The text that the cell shows."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, (bool, date, time)):
        raise InputError(
            _("a cell holds no number"),
            where=f"{path}:{line}",
            expected=_("a number or text"),
            found=shown(str(value)),
            hint=_("give the column the format of text or of numbers"),
        )
    if isinstance(value, (int, float)):
        return _shown_number(value, str(cell.number_format))
    return str(value)


def _shown_number(value: float, format: str) -> str:
    """A number with the decimals that its format shows."""
    match = _PLACES.fullmatch(format.split(";")[0])
    if match is None or (match["percent"] and match["power"]):
        return repr(value)
    places = len(match["places"] or "")
    if match["power"]:
        return f"{value:.{places}e}"
    if match["percent"]:
        return f"{value * 100:.{places}f}%"
    return f"{value:.{places}f}"

"""Claims in rows of cells: an address, then its value or values.

    address,value
    text,the cat sat on
    "block.0.attn.scores[0,1,1]",0.30
    block.0.attn.add[3],-0.06,0.49,0.72,0.34

A row with several values is a list.  A first row of headings is passed over, and so is a row whose
first cell is empty or begins with #.  CSV files may also be separated by semicolons or tabs;
spreadsheets (`spreadsheet`) have the same rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from byhand.checking.claims import Sheet
from byhand.checking.reading.written import HEADING, sheet_of
from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.files.tree import LARGEST_FILE, List, Node, Scalar, Table
from byhand.language import _

TITLES = ("address", "name", "step")
SEPARATORS = (",", ";", "\t")
Row = tuple[int, list[str]]  # the line, and its cells


def read_csv(path: Path) -> Sheet:
    """The claims of a CSV file."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror), where=str(path)
        ) from None
    if len(raw) > LARGEST_FILE:
        raise InputError(
            _("the file is too large"),
            where=str(path),
            expected=_("at most {count} bytes").format(count=f"{LARGEST_FILE:,}"),
            hint=_("large arrays belong in a safetensors or npz file"),
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            _("the file is not UTF-8 text"),
            where=f"{path}:{raw.count(10, 0, error.start) + 1}",
            found=f"0x{raw[error.start]:02x}",
        ) from None
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
    """The sign that ends the first cell that has an end: a comma, a semicolon or a tab."""
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
    """The sheet of rows of cells that are still text."""
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
    """The cells with an address put together again that its commas have split."""
    for end, cell in enumerate(cells):
        if "]" in cell and "[" in cells[0] and "]" not in cells[0]:
            return [",".join(cells[: end + 1]), *cells[end + 1 :]]
    return cells


def _node(source: str, line: int, name: str, cells: list[str]) -> Node:
    """One value, or the list of several; blanks at the end of a row may be cells that are no part
    of it, which is known where the step is."""
    filled = max((place for place, cell in enumerate(cells) if cell), default=-1) + 1
    if name in HEADING:
        return Scalar(source, line, name, ",".join(cells[:filled]))
    scalars = [Scalar(source, line, name, cell) for cell in cells]
    if len(scalars) <= 1 or not filled:
        return scalars[0] if scalars else Scalar(source, line, name, "")
    return List(source, line, name, tuple(scalars))

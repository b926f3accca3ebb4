"""A saved spreadsheet worked out again by a program that is not byhand, and read by its names.

`formulas` works a workbook out in Python; LibreOffice is asked where it is installed.  Neither is
given a chance to trust the numbers that stand beside the formulas: `without_results` spoils them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl

from byhand.publication import spreadsheet_of
from byhand.tracing import Trace

SPOILED = "-987654.5"
_RESULT = re.compile(r'(<c [^>]*?)(?: t="\w+")?(>\s*<f[^>]*>[^<]*</f>)<v>[^<]*</v>')
_RANGE = re.compile(
    r"'?(?P<sheet>.*?)'?!\$(?P<a>[A-Z]+)\$(?P<b>\d+)(?::\$(?P<c>[A-Z]+)\$(?P<d>\d+))?"
)


@dataclass(frozen=True)
class Recalculated:
    """The cells of a workbook after recalculation, by sheet and cell; names lead to ranges."""

    cells: Mapping[tuple[str, str], Any]
    names: Mapping[str, tuple[str, tuple[tuple[str, ...], ...]]]

    def table(self, name: str) -> list[list[Any]]:
        """The rows of the range that a defined name stands for; None where a cell is empty."""
        sheet, rows = self.names[name]
        return [[self.cells.get((sheet.upper(), at)) for at in row] for row in rows]

    def beside(self, name: str, right: int) -> list[Any]:
        """The column so many columns beside a one-column table."""
        sheet, rows = self.names[name]
        return [self.cells.get((sheet.upper(), moved(row[0], right))) for row in rows]


def save_spreadsheet(trace: Trace, path: Path) -> None:
    """Writes the spreadsheet of a trace."""
    path.write_bytes(spreadsheet_of(trace))


def moved(at: str, right: int) -> str:
    letters, digits = re.fullmatch(r"([A-Z]+)(\d+)", at).groups()  # type: ignore[union-attr]
    column = openpyxl.utils.column_index_from_string(letters) + right
    return openpyxl.utils.get_column_letter(column) + digits


def names_of(path: Path) -> dict[str, tuple[str, tuple[tuple[str, ...], ...]]]:
    """Every defined name with its sheet and the cells of its range, row by row."""
    book = openpyxl.load_workbook(path)
    found = {}
    for name, defined in book.defined_names.items():
        match = _RANGE.fullmatch(defined.attr_text)
        assert match is not None, defined.attr_text
        area = f"{match['a']}{match['b']}:{match['c'] or match['a']}{match['d'] or match['b']}"
        rows = openpyxl.utils.cell.rows_from_range(area)
        found[name] = match["sheet"], tuple(map(tuple, rows))
    return found


def change(path: Path, name: str, row: int, column: int, value: Any) -> None:
    """Types a value into a cell of a table, as a user does; what was typed loses nothing else."""
    book = openpyxl.load_workbook(path)
    sheet, rows = names_of(path)[name]
    book[sheet][rows[row][column]].value = value
    book.save(path)


def paste(path: Path, found: Recalculated, source: str, target: str) -> None:
    """Copies a range and pastes it over another, as values."""
    book = openpyxl.load_workbook(path)
    sheet, rows = names_of(path)[target]
    for cells, values in zip(rows, found.table(source), strict=True):
        for cell, value in zip(cells, values, strict=True):
            if value is not None:
                book[sheet][cell].value = value
    book.save(path)


def type_token(path: Path, position: int, token: str, name: str = "tokens") -> None:
    """Types another token into its cell, left of its id."""
    book = openpyxl.load_workbook(path)
    sheet, rows = names_of(path)[name]
    book[sheet][moved(rows[position][0], -1)].value = token
    book.save(path)


def without_results(path: Path) -> int:
    """Puts a wrong number beside every formula; returns how many formulas there are."""
    spoiled = path.with_suffix(".spoiled")
    count = 0
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(spoiled, "w") as new:
        for item in old.namelist():
            data = old.read(item)
            if item.startswith("xl/worksheets/sheet"):
                text, spoilt = _RESULT.subn(rf"\1\2<v>{SPOILED}</v>", data.decode())
                count += spoilt
                data = text.encode()
            new.writestr(item, data)
    spoiled.replace(path)
    return count


class Workbook:
    """A workbook that the package `formulas` has read, to be worked out as often as one likes."""

    def __init__(self, path: Path) -> None:
        import formulas

        self.path = path
        self.names = names_of(path)
        self.model = formulas.ExcelModel().loads(str(path)).finish(circular=False)

    def recalculated(self, typed: Mapping[str, Any] | None = None) -> Recalculated:
        """All cells after some were typed into; they are said as `cell` and `token_cell` do."""
        cells: dict[tuple[str, str], Any] = {}
        for key, value in self.model.calculate(inputs=dict(typed or {})).items():
            match = re.fullmatch(r"'\[.*?\](?P<sheet>.*)'!(?P<cell>[A-Z]+\d+)", str(key))
            if match is not None and hasattr(value, "value"):
                cells[match["sheet"].upper(), match["cell"]] = _plain(value.value[0, 0])
        return Recalculated(cells, self.names)

    def cell(self, name: str, row: int, column: int) -> str:
        """A cell of a table, as `formulas` calls it."""
        sheet, rows = self.names[name]
        return f"'[{self.path.name}]{sheet.upper()}'!{rows[row][column]}"

    def pasted(self, found: Recalculated, source: str, target: str) -> dict[str, Any]:
        """What is typed when one range is copied and pasted over another, as values."""
        return {
            self.cell(target, row, column): value
            for row, values in enumerate(found.table(source))
            for column, value in enumerate(values)
            if value is not None
        }

    def token_cell(self, position: int, name: str = "tokens") -> str:
        """The cell in which a token is typed: left of its id."""
        sheet, rows = self.names[name]
        return f"'[{self.path.name}]{sheet.upper()}'!{moved(rows[position][0], -1)}"


def by_formulas(path: Path) -> Recalculated:
    """The workbook worked out by the package `formulas`."""
    return Workbook(path).recalculated()


def _plain(value: Any) -> Any:
    """A number or a text; None for what `formulas` calls empty."""
    if type(value).__name__ in ("XlError", "Token") or str(value) == "empty":
        return None if str(value) == "empty" else str(value)
    return value.item() if hasattr(value, "item") else value


RECALCULATING = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>{mode}</value></prop></item>
</oor:items>
"""  # 0: always, 1: never


def by_libreoffice(path: Path, folder: Path, *, recalculate: bool = True) -> Recalculated:
    """The workbook opened, recalculated and saved by LibreOffice."""
    (folder / "profile" / "user").mkdir(parents=True, exist_ok=True)
    (folder / "profile" / "user" / "registrymodifications.xcu").write_text(
        RECALCULATING.format(mode=0 if recalculate else 1)
    )
    (folder / "out").mkdir(exist_ok=True)
    subprocess.run(
        [
            shutil.which("soffice") or "soffice",
            "--headless",
            f"-env:UserInstallation=file://{folder / 'profile'}",
            "--convert-to",
            "ods",
            "--outdir",
            str(folder / "out"),
            str(path),
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    cells = dict(_cells_of_ods(folder / "out" / f"{path.stem}.ods"))
    return Recalculated(cells, names_of(path))


def _cells_of_ods(path: Path) -> Iterator[tuple[tuple[str, str], Any]]:
    """The cells of an OpenDocument sheet, which keeps every digit where xlsx keeps fifteen."""
    from xml.etree import ElementTree

    spaces = {
        "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
        "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    }
    table, office = (f"{{{spaces[name]}}}" for name in ("table", "office"))
    with zipfile.ZipFile(path) as archive:
        root = ElementTree.fromstring(archive.read("content.xml"))
    for sheet in root.iter(table + "table"):
        name = str(sheet.get(table + "name")).upper()
        row = 0
        for line in sheet.iter(table + "table-row"):
            column = 0
            for cell in line:
                repeated = int(cell.get(table + "number-columns-repeated", "1"))
                kind = cell.get(office + "value-type")
                if kind is not None:
                    value: Any = "".join(cell.itertext())
                    if kind == "float":
                        value = float(str(cell.get(office + "value")))
                    for offset in range(repeated):
                        letter = openpyxl.utils.get_column_letter(column + offset + 1)
                        yield (name, f"{letter}{row + 1}"), value
                column += repeated
            row += int(line.get(table + "number-rows-repeated", "1"))

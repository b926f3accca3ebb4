"""Claims in an xlsx file: the first sheet, in the rows of `rows`.

A number counts with the decimals that its cell shows: 0.3 in the format 0.00 is 0.30.  A cell in
the general format shows the digits it was typed with.  Formulas are worth what they gave last.
"""

from __future__ import annotations

import re
import zipfile
from datetime import date, time
from pathlib import Path
from typing import Any

from byhand.checking.claims import Sheet
from byhand.checking.reading.rows import Row, sheet_of_rows
from byhand.checking.reading.zipped import BROKEN, check_size
from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.language import _

MOST_BYTES = 256 * 2**20  # unpacked
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
    _refuse_bombs(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            rows = _rows(path, book)
        finally:
            book.close()
    except InputError:
        raise
    except Exception as error:  # openpyxl raises whatever it stumbles over in a broken file
        raise _broken(path, error) from None
    return sheet_of_rows(str(path), rows)


def _refuse_bombs(path: Path) -> None:
    """Refuses a file that unpacks to too much, or whose XML defines entities."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_size(path, archive, MOST_BYTES)
            for member in archive.namelist():
                if member.endswith((".xml", ".rels")):
                    with archive.open(member) as file:
                        if b"<!DOCTYPE" in file.read(4096).upper():
                            raise InputError(
                                _("this is not a spreadsheet that is read: it defines entities"),
                                where=f"{path}: {shown(member)}",
                            )
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(path),
        ) from None
    except BROKEN as error:
        raise _broken(path, error) from None


def _broken(path: Path, error: Exception) -> InputError:
    reason = shown(str(error) or type(error).__name__)
    return InputError(
        _("this is not a whole xlsx file: {reason}").format(reason=reason), where=str(path)
    )


def _rows(path: Path, book: Any) -> list[Row]:
    found: list[Row] = []
    sheet = book.worksheets[0]
    sheet.reset_dimensions()  # a file may say that it is larger than it is
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
    """What the cell shows."""
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

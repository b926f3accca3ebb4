"""The claims file of a worksheet: with blanks, or filled in with the key's answers.

`byhand check` reads it (docs/claims.md).  Where numbers are written with a decimal comma, the
numbers of a row are separated by semicolons; a decimal point is read as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from byhand.document.compose.worksheet.sheet import Blank, Given, Worksheet, quoted
from byhand.document.numerals import localised
from byhand.language import _

BLANK = "_"


def claims_text(sheet: Worksheet, *, filled: bool = False) -> str:
    """The file as text; with `filled`, the key's answers are in it."""
    return "\n".join(_lines(sheet, filled)) + "\n"


def head_lines(sheet: Worksheet, student: str) -> Iterator[str]:
    """What a sheet says about itself, above its claims."""
    yield f"student: {quoted(student)}" if student else "student:"
    yield f"text: {quoted(sheet.text)}"
    if sheet.target is not None:
        yield f"target: {quoted(sheet.target)}"
    if sheet.decimals is not None:
        yield f"precision: decimals:{sheet.decimals}"
    if sheet.exact:
        yield "numbers: exact"
    if comma():
        yield "decimal: comma"
    if sheet.rule is not None:
        yield f"optimizer: {sheet.rule.kind} lr={sheet.rule.rate}"
    yield "marks:"
    yield from (f"  {quoted_key(blank.address)}: 1" for blank in sheet.blanks)


def _lines(sheet: Worksheet, filled: bool) -> Iterator[str]:
    if filled:
        yield "# " + _("The key to the worksheet.")
    else:
        yield "# " + _how_to_fill(sheet)
        yield "# " + _("Then:")
        yield f"# {sheet.command}"
    yield from head_lines(sheet, _("the key") if filled else sheet.student)
    yield ""
    yield "claims:"
    for blank in sheet.blanks:
        yield f"  {quoted_key(blank.address)}: {_value(blank, filled)}"
    yield from given_part(sheet)


def _how_to_fill(sheet: Worksheet) -> str:
    if sheet.planted is not None:
        return _(
            "Write the number of the line, and its right numbers with semicolons between them."
        )
    if sheet.exact:
        return _("Write an exact number in place of each _, such as 1/2, sqrt(2) or e^2.")
    if comma():
        return _("Write a number in place of each _, with a decimal comma or a point.")
    return _("Write a number in place of each _, with a decimal point.")


def comma() -> bool:
    """Whether the language spoken writes a decimal comma."""
    return localised("0.5") != "0.5"


def given_part(sheet: Worksheet) -> Iterator[str]:
    """The lines that are printed on the sheet; numbers have a decimal point here."""
    if sheet.planted is not None:
        yield ""
        yield "working:  # " + _("printed on the sheet, with one wrong line")
        yield from _printed(sheet.planted.lines)
    if sheet.given:
        yield ""
        yield "given:  # " + _("printed on the sheet, to be left as it is")
        yield from _printed(sheet.given)


def _printed(lines: Iterable[Given]) -> Iterator[str]:
    yield from (f"  {quoted_key(line.address)}: {line.value}" for line in lines)


def _value(blank: Blank, filled: bool) -> str:
    if not filled:
        said = [BLANK] * len(blank.answers)
    elif comma():
        said = [quoted(localised(answer)) for answer in blank.answers]
    else:
        said = [quoted(answer) for answer in blank.answers]
    if not blank.row:
        return said[0]
    if comma():
        return "; ".join(said if not filled else map(localised, blank.answers))
    return f"[{', '.join(said)}]"


def quoted_key(address: str) -> str:
    """An address as a YAML key, in quotes if it contains a colon."""
    return json.dumps(address) if ": " in address or ":" in address else address

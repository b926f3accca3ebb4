"""The claims file of a worksheet: with blanks, or filled in with the key's answers.

`byhand check` reads it (docs/claims.md).  Numbers have a decimal point in every language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from byhand.document.compose.worksheet.sheet import Blank, Worksheet
from byhand.language import _

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ]*[A-Za-z0-9]|[A-Za-z]")
_WORDS_OF_YAML = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "masked"}
BLANK = "_"


def claims_text(sheet: Worksheet, *, filled: bool = False) -> str:
    """The file as text; with `filled`, the key's answers are in it."""
    return "\n".join(_lines(sheet, filled)) + "\n"


def _lines(sheet: Worksheet, filled: bool) -> Iterator[str]:
    if filled:
        yield "# " + _("The key to the worksheet.")
    else:
        yield "# " + _("Write a number in place of each _, with a decimal point. Then:")
        yield f"# {sheet.command}"
    yield f"student: {quoted(_('the key'))}" if filled else "student:"
    yield f"text: {quoted(sheet.text)}"
    if sheet.target is not None:
        yield f"target: {quoted(sheet.target)}"
    if sheet.decimals is not None:
        yield f"precision: decimals:{sheet.decimals}"
    if sheet.rule is not None:
        yield f"optimizer: {sheet.rule.kind} lr={sheet.rule.rate}"
    yield "marks:"
    yield from (f"  {quoted_key(blank.address)}: 1" for blank in sheet.blanks)
    yield ""
    yield "claims:"
    for blank in sheet.blanks:
        yield f"  {quoted_key(blank.address)}: {_value(blank, filled)}"
    yield from given_part(sheet)


def given_part(sheet: Worksheet) -> Iterator[str]:
    """The lines that are printed on the sheet."""
    if sheet.given:
        yield ""
        yield "given:  # " + _("printed on the sheet, to be left as it is")
        yield from (f"  {quoted_key(given.address)}: {given.value}" for given in sheet.given)


def _value(blank: Blank, filled: bool) -> str:
    said = [quoted(answer) if filled else BLANK for answer in blank.answers]
    return f"[{', '.join(said)}]" if blank.row else said[0]


def quoted(text: str) -> str:
    """A word, a number or a text as YAML writes it.

    >>> print(quoted("the cat"), quoted("on"), quoted("0.25"), quoted("a: b"))
    the cat "on" 0.25 "a: b"
    """
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return text
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return json.dumps(text, ensure_ascii=False)


def quoted_key(address: str) -> str:
    """An address as a YAML key, in quotes if it contains a colon."""
    return json.dumps(address) if ": " in address or ":" in address else address

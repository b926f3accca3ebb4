"""Ink: the few colours of the terminal, or none.  Every colour only repeats a sign."""

from __future__ import annotations

import os
import textwrap
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any, TextIO

_CODES = {
    "strong": "1",
    "quiet": "2",
    "exact": "32",
    "named": "33",
    "enclosed": "36",
    "rounded": "35",
    "stage": "1;34",
    "leaves": "33",
    "returns": "32",
    "wrong": "1;31",
}
_SECOND = "\ue000"  # placeholder for the second column of a wide character; no text contains it


@dataclass(frozen=True, slots=True)
class Ink:
    """Colours text where `colour` is on."""

    colour: bool = False

    def __call__(self, text: str, kind: str | None) -> str:
        code = _CODES.get(kind or "")
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and code and text else text


def ink_for(stream: TextIO) -> Ink:
    """Colour on a terminal, unless NO_COLOR is set or the terminal has none."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Ink(stream.isatty() and not plain)


def width_of(text: str) -> int:
    """The columns of a text on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


@cache
def _columns(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def wrap(text: str, width: int, **how: Any) -> list[str]:
    """The text wrapped to a width in columns, where textwrap counts characters."""
    if text.isascii():
        return textwrap.wrap(text, width, **how)
    stretched = "".join(sign + _SECOND * (width_of(sign) - 1) for sign in text)
    if stretched != text:
        width -= 1  # a break inside a wide character moves its second column to the next line
    return [line.replace(_SECOND, "") for line in textwrap.wrap(stretched, width, **how)]


def padded(text: str, width: int) -> str:
    """The text padded with blanks to a width."""
    return text + " " * (width - width_of(text))

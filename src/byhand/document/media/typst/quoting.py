"""Words and values as Typst writes them.

Whatever a model, a text or a document says stands in strings, so nothing of it is ever read as
markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BREAKS = re.compile(r"(?<=[.\[,_/])(?=\w)")  # where an address may go on in the next line
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
NO_WIDTH = "\u200b"


def string(text: str) -> str:
    r"""A string of Typst.

    >>> print(string('a "b" \\ c'))
    "a \"b\" \\ c"
    """
    return '"' + "".join(map(_character, text)) + '"'


def _character(sign: str) -> str:
    if sign in '"\\':
        return "\\" + sign
    if sign == "\t" or (ord(sign) >= 32 and ord(sign) != 127):
        return sign
    return "\\u{" + format(ord(sign), "x") + "}"


def array(items: Iterable[str]) -> str:
    """An array of values that are written already; of one, too."""
    return "(" + "".join(f"{item}, " for item in items) + ")"


def content(*values: str) -> str:
    """Values that are written already, one behind the other, as content."""
    return "[" + "".join(f"#{value};" for value in values) + "]"


def words(text: str) -> str:
    """Plain words, with the apostrophes that print has."""
    return string(_APOSTROPHE.sub("’", text))


def prose(text: str) -> str:
    """A sentence as content; what stands between backticks is code, and a line may end."""
    found: list[str] = []
    for line in text.split("\n"):
        found += ["linebreak()"] * bool(found)
        pieces = line.split("`")
        if len(pieces) % 2 == 0:  # a backtick without its partner stands for itself
            pieces = [line]
        found += (code(p) if k % 2 else words(p) for k, p in enumerate(pieces) if p)
    return content(*found)


def code(text: str) -> str:
    """An address or a word of the text; a long one may be broken behind its points."""
    return f"code({string(_BREAKS.sub(NO_WIDTH, text))})"


def call(name: str, *arguments: str, **named: str) -> str:
    """A function of the design with what it is given."""
    given = [*arguments, *(f"{key.replace('_', '-')}: {value}" for key, value in named.items())]
    return f"{name}({', '.join(given)})"


def length(millimetres: float) -> str:
    """A length in millimetres, as Typst writes it."""
    return f"{millimetres:.3f}mm"


def yes(value: bool) -> str:
    """A truth value, as Typst writes it."""
    return "true" if value else "false"

"""Words and values in Typst's syntax.

Texts from models and documents are strings, so none of them is read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_BREAKS = re.compile(r"(?<=[.\[,_/])(?=\w)")  # where an address may break
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
    """An array of written values, also with a single one."""
    return "(" + "".join(f"{item}, " for item in items) + ")"


def content(*values: str) -> str:
    """Written values as content, in order."""
    return "[" + "".join(f"#{value};" for value in values) + "]"


def words(text: str) -> str:
    """Plain words, with typographic apostrophes."""
    return string(_APOSTROPHE.sub("’", text))


def prose(text: str) -> str:
    """A sentence as content; text between backticks is code, in which a line may break."""
    found: list[str] = []
    for line in text.split("\n"):
        found += ["linebreak()"] * bool(found)
        pieces = line.split("`")
        if len(pieces) % 2 == 0:  # an unpaired backtick stands for itself
            pieces = [line]
        found += (code(p) if k % 2 else words(p) for k, p in enumerate(pieces) if p)
    return content(*found)


def code(text: str) -> str:
    """An address or a word of the text; a long one may break after its dots."""
    return f"code({string(_BREAKS.sub(NO_WIDTH, text))})"


def call(name: str, *arguments: str, **named: str) -> str:
    """A call of a function of the design."""
    given = [*arguments, *(f"{key.replace('_', '-')}: {value}" for key, value in named.items())]
    return f"{name}({', '.join(given)})"


def length(millimetres: float) -> str:
    """A length in millimetres, as Typst writes it."""
    return f"{millimetres:.3f}mm"


def yes(value: bool) -> str:
    """A truth value, as Typst writes it."""
    return "true" if value else "false"

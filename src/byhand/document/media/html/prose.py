"""Sentences as HTML: prose with code in it, remarks, what is left out."""

from __future__ import annotations

import re
from html import escape

from byhand.document.numerals import written
from byhand.document.parts import Remark
from byhand.language import _

MARKS = {
    "leaves": "↗",
    "returns": "↙",
    "stops": "■",
    "limit": "!",
    "open": "?",
    "claim": "✗",
    "carried": "→",
    "closing": "=",
}


def prose(text: str) -> str:
    """A sentence; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def sentence(text: str) -> str:
    """With a capital letter, as sentences on a page begin; addresses stay as they are."""
    first = text.split(" ", 1)[0]
    as_it_is = first == "byhand" or set(".[`") & set(first.rstrip("."))
    return text if as_it_is else text[:1].upper() + text[1:]


def told(text: str) -> str:
    """A sentence of a terminal as a page has it: a capital, a full stop, numbers as written."""
    stopped = text if text.endswith((".", ":", "?", "…")) else text + "."
    return sentence(written(stopped))


def remark(mark: Remark) -> str:
    """A boundary, a return, or what does not follow."""
    sign = MARKS.get(mark.kind, "")
    shown = f'<span class="sign" aria-hidden="true">{sign}</span>' if sign else ""
    text = prose(sentence(mark.text))
    return f'<p class="remark {escape(mark.kind)}">{shown}<span>{text}</span></p>'


def defined_words() -> str:
    """What stands before a number with letters in it."""
    return _("Written as what it is, with a letter for each number that has a name of its own:")


def left_out(text: str, command: str = "") -> str:
    """What is not shown, and how to see it."""
    how = f" <code>{escape(command)}</code>" if command else ""
    return f'<p class="left-out">{prose(sentence(text))}{how}</p>'

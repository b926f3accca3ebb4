"""Sentences as HTML: prose with code, remarks, omissions."""

from __future__ import annotations

import re

from byhand.document.media.html.markup import Markup, element, escape
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
_CODE_OR_BREAK = re.compile(r"`([^`]+)`|\n")


def prose(text: str) -> Markup:
    """A sentence; text between backticks is code, in which a line may break."""

    def drawn(found: re.Match[str]) -> str:
        return f"<code>{found[1]}</code>" if found[1] else "<br>"

    return Markup(_CODE_OR_BREAK.sub(drawn, escape(text)))


def sentence(text: str) -> str:
    """The sentence with a capital letter; addresses stay as they are."""
    first = text.split(" ", 1)[0]
    as_it_is = first == "byhand" or set(".[`") & set(first.rstrip("."))
    return text if as_it_is else text[:1].upper() + text[1:]


def told(text: str) -> str:
    """A terminal's sentence for a page: a capital, a full stop, localised numbers."""
    stopped = text if text.endswith((".", ":", "?", "…")) else text + "."
    return sentence(written(stopped))


def remark(mark: Remark) -> Markup:
    """A boundary, a return, or a printed number that does not follow."""
    sign = MARKS.get(mark.kind, "")
    shown = element("span", sign, class_="sign", aria_hidden="true") if sign else ""
    text = element("span", prose(sentence(mark.text)))
    return element("p", shown, text, class_=f"remark {mark.kind}")


def defined_words() -> str:
    """The words before a number with letters."""
    return _("Written as what it is, with a letter for each number that has a name of its own:")


def left_out(text: str, command: str = "") -> Markup:
    """What is left out, and how to see it."""
    how = element("code", command) if command else ""
    return element("p", prose(sentence(text)), " " if command else "", how, class_="left-out")


def also_left_out(what: str) -> Markup:
    """What a table or a picture leaves out; empty if nothing."""
    return left_out(_("left out: {what}").format(what=what)) if what else Markup()

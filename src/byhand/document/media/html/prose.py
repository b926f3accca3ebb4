"""Sentences as HTML: prose with code, remarks, omissions."""

from __future__ import annotations

import re

from byhand.document.media.html.markup import Markup, element, escape
from byhand.document.media.wording import MARKS, left_out_words, sentence
from byhand.document.parts import Remark

_CODE_OR_BREAK = re.compile(r"`([^`]+)`|\n")


def prose(text: str) -> Markup:
    """A sentence; text between backticks is code, in which a line may break."""

    def drawn(found: re.Match[str]) -> str:
        return f"<code>{found[1]}</code>" if found[1] else "<br>"

    together = escape(text).replace("≈ ", "≈\N{NO-BREAK SPACE}")  # a sign stays with its number
    return Markup(_CODE_OR_BREAK.sub(drawn, together))


def remark(mark: Remark) -> Markup:
    """A boundary, a return, or a printed number that does not follow."""
    sign = MARKS.get(mark.kind, "")
    shown = element("span", sign, class_="sign", aria_hidden="true") if sign else ""
    text = element("span", prose(sentence(mark.text)))
    return element("p", shown, text, class_=f"remark {mark.kind}")


def address(text: str) -> Markup:
    """An address, as code."""
    return element("code", text, class_="address")


def left_out(text: str, command: str = "") -> Markup:
    """What is left out, and how to see it."""
    how = element("code", command) if command else ""
    return element("p", prose(sentence(text)), " " if command else "", how, class_="left-out")


def also_left_out(what: str) -> Markup:
    """What a table or a picture does not show; nothing where it shows all."""
    return left_out(left_out_words(what)) if what else Markup()

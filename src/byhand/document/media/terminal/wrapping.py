"""Words wrapped to a terminal's width, where wide characters take two columns."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document.media.terminal.ink import width_of
from byhand.document.words import HARD_SPACE


def broken(
    text: str, width: int, first: str = "", indent: str = "", apart: bool = False
) -> Iterator[str]:
    """The text in lines of at most so many columns, broken at its blanks.

    A word that is wider than a line is cut where each line ends; `apart`: it begins a line of its
    own.  Blanks within a line stay as they are, hard ones become blanks.  `first` stands before the
    first line, `indent` before the others.
    """
    if not text.strip():
        return
    if width_of(first) + width_of(text) <= width:
        yield _shown(first, text.lstrip(" "))
        return
    lead, line, gap = first, "", ""
    for word in _words(text):
        if not word.strip(" "):
            gap = word
            continue
        too_wide = line and width_of(lead + line + gap + word) > width
        if too_wide and (apart or width_of(indent + word) <= width):
            yield _shown(lead, line)
            lead, line, gap = indent, "", ""
        line += gap * bool(line) + word
        gap = ""
        while (
            width_of(lead + line) > width and len(pieces := _cut(line, width - width_of(lead))) > 1
        ):
            yield _shown(lead, pieces[0])
            lead, line = indent, pieces[1].lstrip(" ")
    yield _shown(lead, line)


def _words(text: str) -> Iterator[str]:
    """Words and the blanks between them, alternating."""
    word = ""
    for sign in text:
        if word and (sign == " ") != (word[-1] == " "):
            yield word
            word = ""
        word += sign
    if word:
        yield word


def _cut(word: str, width: int) -> tuple[str, ...]:
    """As much of a word as fits (at least one character), and the rest."""
    at = 1
    while at < len(word) and width_of(word[: at + 1]) <= width:
        at += 1
    return (word[:at], word[at:]) if at < len(word) else (word,)


def _shown(lead: str, line: str) -> str:
    return (lead + line).replace(HARD_SPACE, " ").rstrip()

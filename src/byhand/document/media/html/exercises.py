"""Exercises on a page: fields to type an answer into, what is said about it, and answers to keep.

Without the script the fields are lines to write on.  The script tells whether an answer is right,
and saves what was typed as a sheet for `byhand check`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.media.html.prose import address, prose
from byhand.document.parts.exercises import WORD, AnswerField, AnswerSheets
from byhand.language import _

STYLE, SCRIPT = "exercises.css", "exercises.js"


def answer_field(part: AnswerField) -> Markup:
    """The fields of an answer, and a place for what is said about it."""
    count = len(part.right)
    inputs = joined((_input(part, at, count) for at in range(count)), " ")
    button = element("button", _("Check"), type="button", hidden=True)
    return element(
        "div",
        element("span", _("your answer"), " ", address(part.address), class_="asked-for"),
        element("span", inputs, class_="row" if count > 1 else None),
        button,
        element("p", role="status"),
        class_="answering",
        role="group",
        aria_label=_("your answer at {address}").format(address=part.address),
        data_answer=json.dumps(_told(part), ensure_ascii=False),
    )


def _input(part: AnswerField, at: int, count: int) -> Markup:
    name = _("number {at} of {count}").format(at=at + 1, count=count)
    return element(
        "input",
        class_="word" if part.kind == WORD else "form" if part.kind != "number" else None,
        aria_label=name if count > 1 else _("your answer"),
        autocomplete="off",
        autocapitalize="off",
        spellcheck="false",
    )


def _told(part: AnswerField) -> dict[str, object]:
    """What the script has to know of an exercise."""
    return {
        "address": part.address,
        "kind": part.kind,
        "right": part.right,
        "wrong": part.wrong,
        "slip": part.slip,
        "sheet": part.sheet,
        "places": part.places,
    }


def answer_sheets(part: AnswerSheets) -> Iterator[Markup]:
    """Each sheet with its command, and a button that saves what was typed."""
    for sheet in part.sheets:
        save = _("Save my answers as {file}").format(file=sheet.file.rpartition("/")[2])
        yield element(
            "div",
            element("button", save, type="button", hidden=True),
            element("p", prose(f"`{sheet.command}`")),
            class_="sheet",
            data_file=sheet.file,
            data_text=sheet.text,
        )
    words = {
        "right": _("✓ Right."),
        "more": _("✓ Right so far. Give {places} decimals."),
        "exactly": _("✓ Right, rounded. Now write it exactly."),
        "slip": _("✗ Not right. A known slip gives this answer: {slip}"),
        "wrong": _("✗ Not right. Work it out once more."),
        "some": _("✗ Not right: number {numbers}."),
        "blank": _("Write every number first."),
        "unread": _("This cannot be read. Write a number, such as {examples}."),
        "done": _("{right} of {count} right"),
        "point": _("."),
    }
    yield element("p", role="status", class_="done")
    safe = json.dumps(words, ensure_ascii=False).replace("<", "\\u003c")
    yield element("script", Markup(safe), type="application/json", id="exercise-words")

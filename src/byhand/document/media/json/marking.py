"""A marking as data: the JSON document of `byhand check --json`.

    {"model", "follows", "passed", "summary",
     "texts": [{"text", "label", "tokens", "precision", "follows", "passed", "first_error",
                "lines": [{"address", "name", "source", "verdict", "follows", "share", "times",
                           "unusual", "near", "entries", "outside", "reason", "like", "blocks",
                           "uses",
                           "worst": {"address", "index", "claimed", "expected", "allowed",
                                     "difference"},
                           "suspects": [{"kind", "sentence", "change", "share", "times",
                                         "evidence": {"entries", "lines", "without", "fitted",
                                                      "left", "alike"}}],
                           "described": [sentence], "tied": sentence,
                           "ask": step}],
                "unmatched": [{"name", "source", "reason", "hint", "misfit"}],
                "readings": [{"name", "how", "count"}]}]}

`near`: as near to what is expected as rounding usually leaves it, where that is known.
`follows`: no line was found that does not follow.  `passed`: moreover, something was judged, and
everything could be.  `suspects` are causes, confirmed by working the edited plan out; `described`
is true of the numbers, whatever the cause; `tied` tells of experts with equal scores; `ask` is the
step to dump next.  A verdict is one of right, carried, unsupported, error, unjudged.  Numbers that
JSON lacks are text: "inf", "nan".
"""

from __future__ import annotations

from typing import Any, TextIO

from byhand.checking.gradebooks import Gradebook, decimal
from byhand.checking.grading import Graded
from byhand.checking.verdicts import Marked, MarkedText, Marking
from byhand.document.compose.marking import summary
from byhand.document.media.json.records import number, plain, write_document


def write_json(marking: Marking, to: TextIO, **further: Any) -> None:
    """Writes the document, one marked line on each line; `further` is added at its end."""
    data = document_of(marking)
    texts = data.pop("texts")
    one_a_line = ("texts", "lines", "unmatched", "readings")
    write_document({**data, **further, "texts": texts}, to, one_a_line)


def document_of(marking: Marking) -> dict[str, Any]:
    """The document as Python data."""
    return {
        "model": marking.model,
        "follows": marking.follows,
        "passed": marking.passed,
        "summary": summary(marking),
        "texts": [_text(text) for text in marking.texts],
    }


def _text(text: MarkedText) -> dict[str, Any]:
    first = text.first_error
    return {
        "text": text.text,
        "label": text.label,
        "tokens": list(map(int, text.tokens)),
        **_beside(text),
        "precision": text.precision,
        "follows": text.follows,
        "passed": text.passed,
        "first_error": None if first is None else first.address,
        "lines": [_line(line) for line in text.lines],
        "unmatched": plain(text.unmatched),
        "readings": plain(text.readings),
    }


def _beside(text: MarkedText) -> dict[str, Any]:
    """What is read beside the text, where anything is."""
    found: dict[str, Any] = {}
    if text.source is not None:
        found["source"] = {"text": text.source.text, "tokens": list(text.source.tokens)}
    if text.segments is not None:
        found["segments"] = list(text.segments)
    return found


def _line(line: Marked) -> dict[str, Any]:
    return {
        "address": line.address,
        "name": line.claim.name,
        "source": line.claim.source,
        "verdict": line.verdict.name.lower(),
        "follows": line.verdict.follows,
        "share": number(line.share),
        "times": number(line.times),
        "unusual": line.unusual,
        "near": line.near,
        "entries": line.entries,
        "outside": line.outside,
        "worst": None
        if line.worst is None
        else {"address": line.worst_address, **plain(line.worst)},
        "reason": line.reason,
        "like": line.like,
        "blocks": list(line.blocks),
        "uses": list(line.uses),
        "suspects": plain(line.suspects),
        "described": list(line.described),
        "tied": line.tied,
        "ask": line.ask,
    }


def gradebook_data(book: Gradebook) -> dict[str, Any]:
    """A class as data for JSON; marks are decimals as text, as in the CSV."""
    return {
        "lines": list(book.lines),
        "names": list(book.names or book.lines),
        "sheets": [_sheet(sheet) for sheet in book.sheets],
        "mistakes": [
            {key: value for key, value in plain(mistake).items() if key != "of"}
            for mistake in book.mistakes
        ],
    }


def _sheet(sheet: Graded) -> dict[str, Any]:
    return {
        "student": sheet.student,
        "total": decimal(sheet.total),
        "out_of": decimal(sheet.out_of),
        "percent": None if sheet.percent is None else decimal(sheet.percent, 1),
        "marks": [
            {
                "address": line.address,
                "mark": decimal(line.mark),
                "out_of": decimal(line.out_of),
                "outcome": line.outcome,
                "comment": line.comment,
            }
            for line in sheet.lines
        ],
    }

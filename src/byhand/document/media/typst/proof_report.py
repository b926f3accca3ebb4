"""The report of a proof as Typst source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.media.typst import parts as drawn
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.numbers import Inscriber
from byhand.document.media.typst.quoting import array, call, content, prose, string, words
from byhand.document.media.wording import sentence, told
from byhand.document.parts import Answer, Section, Title
from byhand.language import _, spoken


def report_source(title: Title, found: Answer, sections: Sequence[Section]) -> str:
    """The source that the design stands before."""
    return "\n".join(_lines(title, found, sections)) + "\n"


def _lines(title: Title, found: Answer, sections: Sequence[Section]) -> Iterator[str]:
    pen = Inscriber(TypstMaths(_("."), finite=True))
    name = words(sentence(title.name))
    yield f"#show: it => book(title: {name}, language: {string(spoken())}, it)"
    yield "#" + call(
        "report-head",
        words("byhand prove"),
        name,
        prose(title.about) if title.about else "none",
        array(array([words(key), prose(fact)]) for key, fact in title.facts),
    )
    yield "#" + drawn.draw(found, pen)
    for section in sections:
        yield "#" + call(
            "report-section",
            words(section.title),
            prose(told(section.about)) if section.about else "none",
            content(*(drawn.draw(part, pen) for part in section.parts)),
        )

"""The report of a proof shown: as lines, as its own page, as a PDF, and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from byhand.document.compose.proof import report, sections, title
from byhand.document.compose.proof.answers import answer
from byhand.language import _

if TYPE_CHECKING:
    from byhand.document.media.terminal.ink import Ink
    from byhand.proving.outcome import Outcome


def lines(outcome: Outcome, width: int, ink: Ink, called: str = "") -> Iterator[str]:
    """The lines for a terminal; `called` is what the reader called the model."""
    from byhand.document.media.terminal.parts import Terminal

    return Terminal(width, ink).lines(report(outcome, called))


def proof_page(outcome: Outcome, called: str = "") -> str:
    """A self-contained HTML page."""
    from byhand.document.media.html.mathml import Mathml
    from byhand.document.media.html.numbers import Inscriber
    from byhand.document.media.html.proof_page import page

    pen = Inscriber(Mathml(_("."), finite=True))
    return page(title(outcome), answer(outcome), tuple(sections(outcome, called)), pen)


def proof_pdf(outcome: Outcome, called: str = "") -> bytes:
    """The report typeset; an InputError where Typst is not installed."""
    from byhand.document.media.typst.proof_report import report_source
    from byhand.document.media.typst.writing import typeset

    found = tuple(sections(outcome, called))
    return typeset(report_source(title(outcome), answer(outcome), found))


def notebook_cell(outcome: Outcome) -> str:
    """One piece of HTML for a notebook: the answer and every section."""
    from byhand.document.cells import parts_cell

    found = title(outcome)
    shown = (part for section in sections(outcome) for part in section.parts)
    sheets = ("explained.css", "proof.css")
    return parts_cell((found, answer(outcome), *shown), sheets=sheets)

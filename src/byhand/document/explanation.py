"""An explanation shown: as lines, as its own page, and below the cell of a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.sections import section, sections, title
from byhand.language import _

if TYPE_CHECKING:
    from byhand.document.media.terminal.ink import Ink
    from byhand.explaining import Explanation

CHEAP = ("attribution", "lens")  # sections that need no further run of a model


def lines(
    found: Explanation, only: Sequence[str], width: int, ink: Ink, *, every: bool = False
) -> Iterator[str]:
    """The lines for a terminal; everything is worked out before the first line."""
    from byhand.document.media.terminal.parts import Terminal

    shown = tuple(sections(found, only, every=every))
    return Terminal(width, ink).lines((title(found, only), *shown))


def page(found: Explanation, only: Sequence[str] = (), *, every: bool = False) -> str:
    """A self-contained HTML page, with every section in full."""
    from byhand.document.compose.book.numbers import decimal_weights
    from byhand.document.media.html.explanation_page import page
    from byhand.document.media.html.mathml import Mathml
    from byhand.document.media.html.numbers import Inscriber

    shown = tuple(sections(found, only, every=every, full=True))
    finite = found.small and decimal_weights(found.model)
    return page(title(found, only), shown, Inscriber(Mathml(_("."), finite=finite)))


def notebook_cell(found: Explanation) -> str:
    """One piece of HTML: the facts if they are cheap, the terms of the logit, the lens."""
    from byhand.document.cells import parts_cell

    only = ("facts", *CHEAP) if found.small else CHEAP
    name = _("{model}: what the numbers say").format(model=found.model.name)
    shown = (section(Scope(found), each) for each in only)
    return parts_cell((part for each in shown for part in each.parts), name)

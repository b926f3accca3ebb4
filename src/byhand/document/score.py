"""The report on scored texts shown: as its own page, in a notebook, and saved as a folder."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from byhand.document.compose.score import report, sections, title
from byhand.language import _

if TYPE_CHECKING:
    from byhand.scoring.scored import Scored

PAGE, DATA = "score.html", "score.json"  # the files of a folder


def score_page(scored: Scored) -> str:
    """A self-contained HTML page."""
    from byhand.document.media.html.mathml import Mathml
    from byhand.document.media.html.numbers import Inscriber
    from byhand.document.media.html.score_page import page

    pen = Inscriber(Mathml(_("."), finite=True))
    shown = title(scored)
    name = _("{model}: scored").format(model=shown.name)
    return page(shown, tuple(sections(scored)), pen, name, "byhand score")


def notebook_cell(scored: Scored) -> str:
    """One piece of HTML for a notebook."""
    from byhand.document.cells import parts_cell

    shown = (part for section in sections(scored) for part in section.parts)
    return parts_cell((title(scored), *shown), sheets=("explained.css", "score.css"))


def save(scored: Scored, folder: str | Path) -> tuple[Path, Path]:
    """Writes the page and the data into a folder, which is made where it is missing."""
    from byhand.document.media.json.score import write_json
    from byhand.drafts import write_whole

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    data = StringIO()
    write_json(scored, data)
    write_whole(place / DATA, data.getvalue().encode())
    write_whole(place / PAGE, score_page(scored).encode())
    return place / PAGE, place / DATA


__all__ = ["notebook_cell", "report", "save", "score_page", "title"]

"""A survey shown: as its own page, in a notebook, and saved as a folder."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from byhand.document.compose.survey import report, sections, title
from byhand.language import _

if TYPE_CHECKING:
    from byhand.scoring.survey import Survey

PAGE, DATA = "survey.html", "survey.json"  # the files of a folder


def survey_page(survey: Survey) -> str:
    """A self-contained HTML page."""
    from byhand.document.media.html.mathml import Mathml
    from byhand.document.media.html.numbers import Inscriber
    from byhand.document.media.html.score_page import page

    pen = Inscriber(Mathml(_("."), finite=True))
    shown = title(survey)
    name = _("{model}: surveyed").format(model=shown.name)
    return page(shown, tuple(sections(survey)), pen, name, "byhand score --survey")


def notebook_cell(survey: Survey) -> str:
    """One piece of HTML for a notebook."""
    from byhand.document.cells import parts_cell

    shown = (part for section in sections(survey) for part in section.parts)
    return parts_cell((title(survey), *shown), sheets=("explained.css", "score.css"))


def save(survey: Survey, folder: str | Path) -> tuple[Path, Path]:
    """Writes the page and the data into a folder, which is made where it is missing."""
    from byhand.document.media.json.survey import write_json
    from byhand.drafts import write_whole

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    data = StringIO()
    write_json(survey, data)
    write_whole(place / DATA, data.getvalue().encode())
    write_whole(place / PAGE, survey_page(survey).encode())
    return place / PAGE, place / DATA


__all__ = ["notebook_cell", "report", "save", "survey_page", "title"]

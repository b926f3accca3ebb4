"""What scoring found shown: in a terminal, as a page of its own, in a notebook, and as a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from byhand.document.parts import Part, Section, Stage, Title
from byhand.language import _

if TYPE_CHECKING:
    from byhand.scoring.scored import Scored
    from byhand.scoring.survey import Survey

SHEETS = ("explained.css", "score.css")  # of a notebook's cell


@dataclass(frozen=True)
class Report:
    """A report: what its page and its files are called, and what they hold."""

    kind: str  # the name of its files, without an ending
    command: str  # what makes it
    name: str  # of the page's window
    title: Title
    sections: Callable[..., Iterable[Section]]  # without plots where `drawn` is False
    write_json: Callable[[TextIO], None]

    def parts(self) -> Iterator[Part]:
        """The report for a terminal: no plots."""
        yield self.title
        for section in self.sections(drawn=False):
            yield Stage(section.title, section.about)
            yield from section.parts

    def page(self) -> str:
        """A self-contained HTML page."""
        from byhand.document.media.html.mathml import Mathml
        from byhand.document.media.html.numbers import Inscriber
        from byhand.document.media.html.score_page import page

        pen = Inscriber(Mathml(_("."), finite=True))
        return page(self.title, tuple(self.sections()), pen, self.name, self.command)

    def cell(self) -> str:
        """One piece of HTML for a notebook."""
        from byhand.document.cells import parts_cell

        shown = (part for section in self.sections() for part in section.parts)
        return parts_cell((self.title, *shown), sheets=SHEETS)

    def save(self, folder: str | Path) -> Path:
        """Writes the page and the data into a folder, which is made where it is missing."""
        from byhand.drafts import write_whole

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        data = StringIO()
        self.write_json(data)
        write_whole(place / f"{self.kind}.json", data.getvalue().encode())
        write_whole(place / f"{self.kind}.html", self.page().encode())
        return place / f"{self.kind}.html"


def score_report(scored: Scored) -> Report:
    """The report on scored texts."""
    from byhand.document.compose.score import sections, title
    from byhand.document.media.json.score import write_json

    shown = title(scored)
    name = _("{model}: scored").format(model=shown.name)
    found, data = partial(sections, scored), partial(write_json, scored)
    return Report("score", "byhand score", name, shown, found, data)


def survey_report(survey: Survey) -> Report:
    """The report on a survey."""
    from byhand.document.compose.survey import sections, title
    from byhand.document.media.json.survey import write_json

    shown = title(survey)
    name = _("{model}: surveyed").format(model=shown.name)
    found, data = partial(sections, survey), partial(write_json, survey)
    return Report("survey", "byhand score --survey", name, shown, found, data)


def report_of(found: Scored | Survey) -> Report:
    """The report on what was found."""
    from byhand.scoring.survey import Survey

    return survey_report(found) if isinstance(found, Survey) else score_report(found)


def notebook_cell(found: Scored | Survey) -> str:
    """One piece of HTML for a notebook."""
    return report_of(found).cell()


def save(found: Scored | Survey, folder: str | Path) -> None:
    """Writes the page and the data into a folder."""
    report_of(found).save(folder)

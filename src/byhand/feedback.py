"""The feedback on a class's worksheets: a page for each student, one for the class, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from byhand.checking.gradebooks import Gradebook, as_csv, gradebook
from byhand.checking.verdicts import Marking
from byhand.document.compose.feedback import feedback
from byhand.document.compose.grades import class_table
from byhand.document.compose.worksheet.sheet import file_stem
from byhand.drafts import write_all
from byhand.language import _

INDEX, TABLE = "index.html", "gradebook.csv"


def write_feedback(
    marking: Marking, folder: str | Path, tokens: Sequence[str] = ()
) -> tuple[Path, ...]:
    """Writes the pages and the table into a folder; returns their paths, the class first.

    `tokens` are the words that the model predicts, in the order of their ids.
    """
    return write_all(feedback_files(marking, tokens), Path(folder))


def feedback_files(marking: Marking, tokens: Sequence[str] = ()) -> dict[str, bytes]:
    """File name → contents, in the language spoken."""
    from byhand.document.media.html.feedback import class_page, feedback_page

    book = gradebook(marking.texts)
    names = _files(book)
    about = {TABLE: _("the marks as a table (CSV)")}
    files = {INDEX: class_page(class_table(book), names, about).encode()}
    for graded, text, name in zip(book.sheets, marking.texts, names, strict=True):
        part = feedback(graded, model=marking.model, text=text.text, tokens=tokens)
        files[name] = feedback_page(part, back=INDEX).encode()
    return {**files, TABLE: as_csv(book).encode()}


def _files(book: Gradebook) -> list[str]:
    """The file of each student: feedback-ana-maria.html, with a number where names are alike."""
    found: list[str] = []
    for sheet in book.sheets:
        stem = "feedback" + file_stem(sheet.student).removeprefix("worksheet")
        name, again = stem, 1
        while f"{name}.html" in found:
            again += 1
            name = f"{stem}-{again}"
        found.append(f"{name}.html")
    return found

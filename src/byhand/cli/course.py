"""`byhand course`: the course on transformers as pages, with exercises and their keys."""

from __future__ import annotations

from byhand.cli.book import chosen_folder
from byhand.cli.printing import talk
from byhand.cli.speaking import as_command, flag, later, option
from byhand.language import _


@as_command(
    later("a course on transformers: pages, exercises, keys"),
    later(
        "Writes a course into a folder: eleven chapters with live numbers, and a glossary. Each "
        "chapter has five exercises, which byhand check marks."
    ),
)
@option("--out", "DIR", later("the folder to write into"))
@flag("--pdf", later("also as a typeset PDF"))
def command(out: str | None, pdf: bool) -> int:
    """Writes the course; returns the exit status."""
    from byhand.cli.progress import telling
    from byhand.courses import PDF, make_course, publish_course

    folder = chosen_folder(out, "byhand course")
    with telling(_("writing the course")):
        paths = publish_course(make_course(), folder, pdf=pdf)
    talk(_("the course is in {file}").format(file=paths[0]))
    if pdf:
        talk(_("typeset: {file}").format(file=folder / PDF))
    talk(
        _("answer sheets: {folder}; their keys: {keys}").format(
            folder=folder / "answers", keys=folder / "keys"
        )
    )
    return 0

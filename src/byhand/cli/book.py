"""`byhand book`: the whole working of a text as pages, a PDF, a spreadsheet or a worksheet."""

from __future__ import annotations

from pathlib import Path

import click

from byhand.cli.choosing import DASHES, beside_options, numbers_options
from byhand.cli.completing import listed
from byhand.cli.printing import talk
from byhand.cli.speaking import as_text_command, flag, later, option, whole_number
from byhand.errors import OutputError, UsageError
from byhand.language import _
from byhand.options import Chosen

NO_CLAIMS = "none"  # in place of a file: check nothing


def _words(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """A list of words, separated by commas."""
    return None if value is None else tuple(word.strip() for word in value.split(","))


@as_text_command(
    later("the whole working as a book: pages, worksheets, PDF, spreadsheet"),
    later(
        "Writes a book of a model and a text into a folder. Its pages open from disk; each "
        "is a sequence of short passages with formulas in this model's numbers and the "
        "figure of the whole pass. Of a larger model, the pages say how much they show and "
        "what they leave out."
    ),
)
@option("--out", "DIR", later("the folder to write into"))
@beside_options
@option("--target", "WORD", later("the word that should come next: adds the loss"))
@option(
    "--claims",
    "FILE",
    later(
        "somebody's working: the book says which lines do not follow; without it, the "
        "document behind a built-in model; none: check nothing"
    ),
    multiple=True,
)
@option(
    "--at",
    "ADDRESS",
    later("show these numbers too, however large the model is; may be repeated"),
    multiple=True,
)
@flag("--pdf", later("also as a typeset PDF"))
@flag("--xlsx", later("also as a spreadsheet of live formulas"))
@flag("--worksheet", later("also with blanks to fill in, and a key that byhand check marks by"))
@option(
    "--ask",
    "KINDS",
    shell_complete=listed("values", "shapes", "counts", "gradients", "step"),
    help=later(
        "what a worksheet asks for: values, shapes, counts, gradients, step, or some of them with "
        "commas; without it, the first three"
    ),
    callback=_words,
)
@option("--blanks", "N", later("how many blanks a worksheet has"), callback=whole_number)
@option(
    "--level",
    "LEVEL",
    later(
        "what a worksheet is about: spread (lines here and there), row (of attention), block, "
        "pass (the whole), mistake (find it), or backward"
    ),
)
@option(
    "--students",
    "NAMES",
    later("a copy for each student: names with commas, or a text file with one name a line"),
)
@option("--seed", "N", later("another choice of blanks for each number"), callback=whole_number)
@numbers_options
def command(
    model: str,
    text: str | None,
    source: str | None,
    segments: tuple[int, ...] | None,
    out: str | None,
    target: str | None,
    claims: tuple[str, ...],
    at: tuple[str, ...],
    pdf: bool,
    xlsx: bool,
    worksheet: bool,
    ask: tuple[str, ...] | None,
    blanks: int | None,
    level: str | None,
    students: str | None,
    seed: int | None,
    chosen: Chosen,
) -> int:
    """Writes the book that the command line asks for; returns the exit status."""
    from byhand.cli.progress import telling
    from byhand.cli.trace import hinting, steps_of
    from byhand.editions import make_edition
    from byhand.models import open_model
    from byhand.number_choice import numbers_for
    from byhand.publication import Wanted, publish, questioning

    chosen.refuse_comparison()
    questions = questioning(
        worksheet,
        blanks=blanks,
        ask=ask,
        decimals=chosen.decimals,
        seed=seed,
        level=level,
        exact=chosen.exact,
        students=None if students is None else _names(students),
        dashes=DASHES,
    )
    folder = chosen_folder(out, "byhand book")
    with hinting(model, steps_of(at)), telling() as progress:
        opened = open_model(model)
        edition = make_edition(
            opened,
            text,
            called=model,
            source=source,
            segments=segments,
            target=target,
            claims=_claims(claims),
            at=at,
            numbers=numbers_for(opened, chosen),
            digits=chosen.digits,
            progress=progress,
        )
    with telling(_("writing the book")):
        paths = publish(edition, folder, Wanted(pdf, xlsx, questions))
    for path in paths:
        _tell(path)
    return 0


def _tell(path: Path) -> None:
    """Says where a file is; for pages, where to begin."""
    from byhand.publication import PDF, XLSX

    if path.name == PDF:
        text = _("typeset: {file}")
    elif path.name == XLSX:
        text = _("with live formulas: {file}")
    elif path.stem.startswith("worksheet"):
        text = _("worksheet: {file}")
    elif path.name == "index.html":
        text = _("the book is in {file}")
    else:
        return
    talk(text.format(file=path))


def _names(given: str) -> tuple[str, ...]:
    """The students' names: from a file with one a line, or separated by commas."""
    path = Path(given)
    try:
        there = "," not in given and path.is_file()
        text = path.read_text("utf-8") if there else given
    except (OSError, ValueError) as error:
        raise UsageError(
            _("the names cannot be read"), where="--students", found=str(error)
        ) from None
    names = text.splitlines() if there else text.split(",")
    found = tuple(name.strip() for name in names if name.strip())
    if not found:
        raise UsageError(
            _("there is no name"),
            where="--students",
            expected=_("names with commas, or a text file with one name a line"),
        )
    return found


def _claims(claims: tuple[str, ...]) -> tuple[str, ...] | None:
    """The files of claims; None for the model's default, and `none` checks nothing."""
    if claims == (NO_CLAIMS,):
        return ()
    return claims or None


def chosen_folder(out: str | None, command: str) -> Path:
    """The folder to write into; an OutputError before the work starts."""
    if out is None:
        raise UsageError(
            _("{name} is missing").format(name="--out"),
            expected=_("a folder"),
            hint=_("see {command} --help").format(command=command),
        )
    folder = Path(out)
    try:
        there = folder.exists()
        is_folder = folder.is_dir()
    except (OSError, ValueError):  # too long a name, or a NUL in it
        there, is_folder = True, False
    if not out or (there and not is_folder):
        raise OutputError(
            _("cannot be written"), where=repr(out), expected=_("a folder"), found=_("a file")
        )
    return folder

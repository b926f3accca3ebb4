"""`byhand book`: the whole working of a text as pages to read, and what goes with them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from byhand.cli.choosing import Chosen, numbers_options
from byhand.cli.speaking import Command, Option, language_option, later, whole_number
from byhand.errors import OutputError, UsageError
from byhand.language import _

if TYPE_CHECKING:
    from byhand.publishing.book import Book
    from byhand.publishing.making import Edition

NO_CLAIMS = "none"  # said instead of a file: check nothing


@click.command(
    cls=Command,
    short_help=later("the whole working as a book: pages, worksheets, PDF, spreadsheet"),
    help=later(
        "Writes a book of a model and a text into a folder: pages that open from disk, each a "
        "sequence of short passages with the formula in this model's numbers and the figure of "
        "the whole pass. How much of a larger model they show, and what they leave out, they say."
    ),
    arguments={
        "MODEL": later(
            "a built-in model (see byhand models), a model file, or the folder of a checkpoint"
        ),
        "[TEXT]": later("the text; without it, the model's own"),
    },
)
@click.argument("model", metavar="MODEL")
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--out", cls=Option, metavar="DIR", help=later("the folder to write into"))
@click.option(
    "--target",
    cls=Option,
    metavar="WORD",
    help=later("the word that should come next: adds the loss"),
)
@click.option(
    "--claims",
    cls=Option,
    multiple=True,
    metavar="FILE",
    help=later(
        "somebody's working: the book tells what of it does not follow; without it, the document "
        "that a built-in model comes from; none: check nothing"
    ),
)
@click.option(
    "--at",
    cls=Option,
    multiple=True,
    metavar="ADDRESS",
    help=later("show these numbers too, however large the model is; may be repeated"),
)
@click.option("--pdf", cls=Option, is_flag=True, help=later("also as a typeset PDF"))
@click.option(
    "--xlsx", cls=Option, is_flag=True, help=later("also as a spreadsheet of live formulas")
)
@click.option(
    "--worksheet",
    cls=Option,
    is_flag=True,
    help=later("also with blanks to fill in, and a key that byhand check marks by"),
)
@click.option(
    "--blanks",
    cls=Option,
    callback=whole_number,
    metavar="N",
    help=later("how many blanks a worksheet has"),
)
@click.option(
    "--seed",
    cls=Option,
    callback=whole_number,
    metavar="N",
    help=later("another choice of blanks for each number"),
)
@numbers_options
@language_option
def command(
    model: str,
    text: str | None,
    out: str | None,
    target: str | None,
    claims: tuple[str, ...],
    at: tuple[str, ...],
    pdf: bool,
    xlsx: bool,
    worksheet: bool,
    blanks: int | None,
    seed: int | None,
    chosen: Chosen,
) -> int:
    from byhand.cli.progress import telling
    from byhand.cli.trace import hinting, steps_of
    from byhand.models import open_model
    from byhand.publishing.making import bind, make_edition
    from byhand.publishing.speaking import spoken

    if chosen.compares:
        raise UsageError(
            _("{one} and {other} exclude each other").format(one="--digits", other="--float"),
            hint=_("leave one of them out"),
        )
    if not worksheet:
        _refuse_alone({"--blanks": blanks, "--seed": seed}, "--worksheet")
    folder = _folder(out)
    with hinting(model, steps_of(at)), telling() as progress:
        opened = open_model(model)
        edition = make_edition(
            opened,
            text,
            called=model,
            target=target,
            claims=_claims(claims),
            at=at,
            numbers=chosen.numbers(opened),
            digits=chosen.digits,
            progress=progress,
        )
    book = bind(edition, spoken())
    _write(edition, book, Wanted(folder, pdf, xlsx, worksheet, blanks, seed, chosen.decimals))
    return 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written, and where."""

    folder: Path
    pdf: bool
    xlsx: bool
    worksheet: bool
    blanks: int | None
    seed: int | None
    decimals: int | None


def _write(edition: Edition, book: Book, wanted: Wanted) -> None:
    """Writes the pages and what else was asked for, and tells where each is."""
    from byhand.golden.folder import writing
    from byhand.publishing.html import write_book

    with writing(wanted.folder):
        first = write_book(book, wanted.folder)[0]
    _tell(_("the book is in {file}"), first)
    if wanted.pdf:
        from byhand.publishing.typst import write_pdf

        path = wanted.folder / "book.pdf"
        write_pdf(book, path)
        _tell(_("typeset: {file}"), path)
    if wanted.xlsx:
        from byhand.publishing.spreadsheet import save_spreadsheet

        path = wanted.folder / "book.xlsx"
        save_spreadsheet(edition.trace, path)
        _tell(_("with live formulas: {file}"), path)
    if wanted.worksheet:
        from byhand.publishing.worksheets import write_worksheet

        for path in write_worksheet(
            book,
            edition.trace,
            wanted.folder,
            blanks=wanted.blanks,
            decimals=wanted.decimals,
            seed=wanted.seed or 0,
            pdf=wanted.pdf,
        ):
            _tell(_("worksheet: {file}"), path)


def _tell(text: str, path: Path) -> None:
    print(text.format(file=path), file=sys.stderr)


def _refuse_alone(options: dict[str, int | None], needed: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(_("{name} needs {other}").format(name=name, other=needed))


def _claims(claims: tuple[str, ...]) -> tuple[str, ...] | None:
    """The files of claims; None leaves it to the model, and `none` checks nothing."""
    if claims == (NO_CLAIMS,):
        return ()
    return claims or None


def _folder(out: str | None) -> Path:
    """The folder to write into; an OutputError now rather than after long work."""
    if out is None:
        raise UsageError(
            _("{name} is missing").format(name="--out"),
            expected=_("a folder"),
            hint=_("see {command} --help").format(command="byhand book"),
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

"""A source of Typst → a PDF, which appears whole or not at all.

The file is accessible if possible (PDF/UA-1: tagged, with texts for formulas and figures).  The
same book always gives the same bytes.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any

from byhand.document.book import Book
from byhand.document.media.typst.pages import typst_source
from byhand.document.palette import LIGHT
from byhand.drafts import write_whole
from byhand.errors import InputError
from byhand.language import _

ACCESSIBLE = "ua-1"
DESIGN = ("book.typ", "explained.typ", "proofs.typ")


def write_pdf(book: Book, path: str | os.PathLike[str]) -> None:
    """Typesets a book.  Without Typst, an InputError says what to install."""
    write_whole(Path(path), typeset(typst_source(book)), make_folder=True)


def typeset(source: str) -> bytes:
    """The PDF of a source.

    Typst's own fonts are the same everywhere, so they are tried first.  For missing characters the
    system's fonts are used.  A character missing there too is drawn as a box, which an accessible
    file may not have.
    """
    typst = compiler()
    whole = (design() + "\n" + source).encode()
    for own_fonts, standards in ((True, [ACCESSIBLE]), (False, [ACCESSIBLE]), (False, [])):
        try:
            found = typst.compile(
                whole, format="pdf", ignore_system_fonts=own_fonts, pdf_standards=standards
            )
        except typst.TypstError as error:
            if not standards or "could not be displayed" not in str(error):
                raise
        else:
            assert isinstance(found, bytes)
            return found
    raise AssertionError("unreachable: the last try returns or raises")


def design() -> str:
    """The design of a book, as the start of a source."""
    folder = resources.files(__package__)
    colours = ", ".join(f'{name}: rgb("{colour}")' for name, colour in LIGHT.items())
    looks = "".join(folder.joinpath(name).read_text("utf-8") for name in DESIGN)
    return f"#let colours = ({colours})\n{looks}"


def compiler() -> Any:
    """The package typst; an InputError where it is not installed."""
    try:
        import typst
    except ModuleNotFoundError:
        raise InputError(
            _("PDF is typeset with Typst, which is not installed"),
            hint=_("pip install 'byhand[pdf]'"),
        ) from None
    return typst

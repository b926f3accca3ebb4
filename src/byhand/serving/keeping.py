"""What a person can take away from a State: its model as a model file, or one page of it.

The file reads back to the very model that was shown.  The page is the book in a single file: it
opens from disk, and needs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.files.writing import write_model
from byhand.language import _, spoken
from byhand.publishing.book import Book, Page
from byhand.publishing.html.page import pages
from byhand.publishing.making import LARGE, Edition, bind
from byhand.publishing.showing import Showing
from byhand.serving.editing import edited
from byhand.serving.passing import Pass, pass_of
from byhand.serving.requests import a_state, only
from byhand.serving.states import Library, State

EDITED = "edited"
ONE_PAGE = "whole"


def file(library: Library, request: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """The model of a State as a model file, with its text and target as the default ones."""
    only(request, "state")
    state = a_state(request, "state")
    model = edited(state, library).model
    if state.text is not None:
        model.vocabulary.encode(state.text)  # refused here rather than when the file is read
        model = replace(model, text=state.text)
    if state.target is not None:
        model.vocabulary.id(state.target)
        model = replace(model, target=state.target)
    name = file_name(model.name, state)
    if state.edited:
        model = replace(model, spec=replace(model.spec, name=name))
    return {"name": f"{name}.yaml", "text": write_model(model)}


def share(
    library: Library, request: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """A State as one page, everything in it."""
    only(request, "state")
    state = a_state(request, "state")
    found = pass_of(state, library, None, progress)
    if found.edition.scale == LARGE:
        raise InputError(
            _("this model is too large for one page"),
            hint=_("byhand book writes it as several pages"),
        )
    return {"name": f"{file_name(found.model.name, state)}.html", "html": _page(found)}


def file_name(name: str, state: State) -> str:
    """A name that every disk can hold; of an edited model, said so."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60] or "model"
    return f"{plain}-{EDITED}" if state.edited and not plain.endswith(EDITED) else plain


def _page(found: Pass) -> str:
    """The passages of every page of the book, one after the other."""
    edition = found.edition
    whole = Edition(
        trace=edition.trace,
        inventory=edition.inventory,
        scale=edition.scale,
        showing=Showing(
            edition.trace,
            everything=edition.everything,
            claims={},
            window=edition.showing.window,
        ),
        command=edition.command,
    )
    book = bind(whole, spoken())
    single = replace(book, pages=(_joined(book),))
    html = pages(single)[f"{ONE_PAGE}.html"]
    # The other files of a book are not there: what leads to them leads to the top.
    return re.sub(r'href="[a-z]+\.html(#[^"]*)?"', 'href="#main"', html)


def _joined(book: Book) -> Page:
    return Page(
        ONE_PAGE,
        book.title,
        book.about,
        tuple(passage for page in book.pages for passage in page.passages),
    )

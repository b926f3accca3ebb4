"""Downloads of a State: its trace as JSON, its model as a model file, all of it as one page.

The file reads back to the very model that was shown.  The page is the book in a single file: it
opens from disk, and needs nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from byhand.document.book import Book, Page
from byhand.document.compose.book import bind
from byhand.document.compose.book.edition import LARGE
from byhand.document.compose.book.numbers import Showing
from byhand.document.media.html.served import ONE_PAGE, single_page
from byhand.document.media.json.trace import document_of
from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.files.writing import write_model
from byhand.language import _, spoken
from byhand.model import Model
from byhand.serving.edits import edited
from byhand.serving.states import Library, State
from byhand.serving.worked_state import Pass, pass_of, trace_of

EDITED = "edited"
OVERVIEW = "whole"  # the chapter that tells in short what the others tell
MOST_EDITS_SAID = 12  # of the edits, on a page
MOST_ENTRIES = 400_000  # of one trace


def trace(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """Every number of a State, or those of the steps asked for."""
    found = trace_of(asked["state"], library, progress)
    wanted = asked["only"]
    shown = set(found.plan.matching(wanted)) if wanted else set(found.steps)
    entries = sum(prod(step.shape) for step in found.plan if step.address in shown)
    if entries > MOST_ENTRIES:
        raise InputError(
            _("these are too many numbers for one answer"),
            where="only",
            expected=_("at most {count} numbers").format(count=f"{MOST_ENTRIES:,}"),
            found=f"{entries:,}",
            hint=_("ask for some steps only"),
        )
    return document_of(found, wanted)


def file(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """The model of a State as a model file, with its text and target as the default ones."""
    state = asked["state"]
    name, text = _kept(state, edited(state, library).model)
    return {"name": name, "text": text}


def _kept(state: State, model: Model) -> tuple[str, str]:
    """The name of a model file and what is in it."""
    if state.text is not None:
        model.vocabulary.encode(state.text)  # refused here rather than when the file is read
        model = replace(model, text=state.text)
    if state.target is not None:
        model.vocabulary.id(state.target)
        model = replace(model, target=state.target)
    name = file_name(model.name, state)
    if state.edited:
        model = replace(model, spec=replace(model.spec, name=name))
    return f"{name}.yaml", write_model(model)


def share(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """A State as one page, everything in it."""
    state = asked["state"]
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
    """The passages of every page of the book, one after the other; then the model file."""
    edition, state = found.edition, found.state
    name, text = _kept(state, found.model)
    showing = Showing(edition.trace, everything=edition.everything, window=edition.showing.window)
    own = name if state.edited or state.name is None else state.name
    whole = replace(edition, showing=showing, command=found.command_for(own))
    book = bind(whole, spoken())
    single = replace(book, pages=(_joined(book, state),))
    return single_page(single, name, text)


def _joined(book: Book, state: State) -> Page:
    """Every chapter; of the overview what is given, so that all workings have room on one page."""
    passages = tuple(
        passage
        for page in book.pages
        for passage in page.passages[: 1 if page.slug == OVERVIEW else None]
    )
    about = " ".join(said for said in (book.about, _edits(state)) if said)
    return Page(ONE_PAGE, book.title, about, passages)


def _edits(state: State) -> str:
    """What was changed of the model, so that nobody takes it for the one of that name."""
    made = [f"`{key} = {value}`" for key, value in (*state.architecture, *state.weights)]
    if not made:
        return ""
    more = f" + {len(made) - MOST_EDITS_SAID}" if len(made) > MOST_EDITS_SAID else ""
    return _("Changed by hand: {edits}.").format(edits=", ".join(made[:MOST_EDITS_SAID]) + more)

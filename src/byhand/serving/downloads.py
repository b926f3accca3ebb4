"""Downloads of a State: its trace as JSON, its model as a model file, its book as one page.

The model file reads back to exactly the model shown.  The page is the book in a single file, which
opens from disk without other files.
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
OVERVIEW = "whole"  # the chapter that summarises the others
MOST_EDITS_SAID = 12  # edits listed on a page
MOST_ENTRIES = 400_000  # entries of one trace


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
    """The model of a State as a model file, with the State's text and target as defaults."""
    state = asked["state"]
    name, text = _kept(state, edited(state, library).model)
    return {"name": name, "text": text}


def _kept(state: State, model: Model) -> tuple[str, str]:
    """The name and the text of a model file."""
    if state.text is not None:
        model.read(state.text)  # an error now rather than when the file is read
        model = replace(model, text=state.text)
    if state.target is not None:
        model.outputs.id(state.target)
        model = replace(model, target=state.target)
    name = file_name(model.name, state)
    if state.edited:
        model = replace(model, spec=replace(model.spec, name=name))
    return f"{name}.yaml", write_model(model)


def share(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """A State as one page with everything in it."""
    state = asked["state"]
    found = pass_of(state, library, None, progress)
    if found.edition.scale == LARGE:
        raise InputError(
            _("this model is too large for one page"),
            hint=_("byhand book writes it as several pages"),
        )
    return {"name": f"{file_name(found.model.name, state)}.html", "html": _page(found)}


def file_name(name: str, state: State) -> str:
    """A file name that every file system allows; that of an edited model says so."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60] or "model"
    return f"{plain}-{EDITED}" if state.edited and not plain.endswith(EDITED) else plain


def _page(found: Pass) -> str:
    """The passages of every page of the book in order, then the model file."""
    edition, state = found.edition, found.state
    name, text = _kept(state, found.model)
    showing = Showing(edition.trace, everything=edition.everything, window=edition.showing.window)
    own = name if state.edited or state.name is None else state.name
    whole = replace(edition, showing=showing, command=found.command_for(own))
    book = bind(whole, spoken())
    single = replace(book, pages=(_joined(book, state),))
    return single_page(single, name, text)


def _joined(book: Book, state: State) -> Page:
    """All chapters; of the overview only the facts, so that one page has room for all workings."""
    passages = tuple(
        passage
        for page in book.pages
        for passage in page.passages[: 1 if page.slug == OVERVIEW else None]
    )
    about = " ".join(said for said in (book.about, _edits(state)) if said)
    return Page(ONE_PAGE, book.title, about, passages)


def _edits(state: State) -> str:
    """The edits of the model in words, so that nobody takes it for the original."""
    said = []
    if state.lessons:
        steps = sum(lesson.steps for lesson in state.lessons)
        said.append(_("It has learned for {steps} steps, in float64.").format(steps=steps))
    by_hand = (pair for lesson in state.lessons for pair in lesson.weights)
    made = [f"`{key} = {value}`" for key, value in (*state.architecture, *by_hand, *state.weights)]
    if made:
        more = f" + {len(made) - MOST_EDITS_SAID}" if len(made) > MOST_EDITS_SAID else ""
        edits = ", ".join(made[:MOST_EDITS_SAID]) + more
        said.append(_("Changed by hand: {edits}.").format(edits=edits))
    return " ".join(said)

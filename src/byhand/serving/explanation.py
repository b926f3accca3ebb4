"""Why a token comes next, for the page: what each part adds to its logit, and the logit lens.

What the numbers say is found by `byhand.explaining`; here it becomes floats and words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byhand.document import words
from byhand.document.compose.book.edition import LARGE
from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.explaining.approximations import floats_near, near_entry
from byhand.explaining.attribution import attribute
from byhand.explaining.lens import look as through_lens
from byhand.language import _
from byhand.serving.requests import a_place, a_state, a_text, only
from byhand.serving.states import Library
from byhand.serving.worked_state import Pass, pass_of

MOST_LEADERS = 5  # words of one row of the lens


def explain(
    library: Library, request: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """The terms of a logit, and the lens, at one position."""
    only(request, "state", "position", "token")
    found = pass_of(a_state(request, "state"), library, a_place(request, "position"), progress)
    if found.edition.scale == LARGE:
        raise InputError(
            _("this model is too large to be explained here"),
            hint=_("byhand explain works it out on the command line"),
        )
    token = _token(found, a_text(request, "token"))
    return {
        "position": found.position,
        "token": None if token is None else _label(found, token),
        "attribution": None if token is None else _attribution(found, token),
        "lens": _lens(found),
    }


def _token(found: Pass, said: str | None) -> int | None:
    """The token asked for, else the one that is predicted; None where nothing is."""
    if said is not None:
        return found.model.vocabulary.id(said)
    predictions = found.trace.next
    return None if predictions is None else predictions[found.position].id


def _label(found: Pass, id: int) -> str:
    return words.token_label(found.trace.token(id))


def _attribution(found: Pass, token: int) -> dict[str, Any]:
    trace, place = found.trace, found.position
    table = attribute(trace, positions=[place], tokens=[token])
    terms = []
    for term in table.terms:
        value = None
        if term.missing is None:
            value = _finite(floats_near(term.numbers, term.value)[0, 0])
        terms.append(
            {
                "name": term.source.name,
                "kind": term.source.kind,
                "layer": term.source.layer,
                "value": value,
            }
        )
    logits = trace.steps["logits"]
    total = None
    if logits.missing is None:
        total = _finite(floats_near(logits.numbers, logits.value)[place, token])
    return {"terms": terms, "total": total, "closes": table.closes}


def _lens(found: Pass) -> list[dict[str, Any]]:
    """After each side-trip: what the end of the model would have made of the stream."""
    rows = []
    for row in through_lens(found.trace, [found.position]).rows:
        shares = None if row.probs is None else _shares(found, row.probs)
        rows.append(
            {
                "address": row.step,
                "kind": row.stop.kind,
                "layer": row.stop.layer,
                "token": None
                if row.leader is None or row.leader.id is None
                else _label(found, row.leader.id),
                "proven": row.proven,
                "words": shares,
            }
        )
    return rows


def _shares(found: Pass, probs: Any) -> list[dict[str, Any]]:
    near = np.array([near_entry(entry) for entry in probs], np.float64)
    order = np.argsort(-np.nan_to_num(near), kind="stable")[:MOST_LEADERS]
    return [
        {"token": _label(found, int(id)), "id": int(id), "share": _finite(near[id])} for id in order
    ]


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None

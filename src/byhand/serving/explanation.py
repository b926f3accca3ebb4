"""The explanation of a token for the page: each part's share in its logit, and the logit lens.

`byhand.explaining` finds the numbers; here they become floats and words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from byhand.document.compose.book.edition import LARGE
from byhand.document.compose.book.strips import near
from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.explaining.approximations import floats_near, near_entry
from byhand.explaining.attribution import attribute
from byhand.explaining.lens import look as through_lens
from byhand.language import _
from byhand.serving.states import Library
from byhand.serving.worked_state import Pass, pass_of

MOST_LEADERS = 5  # words of one row of the lens


def explain(
    library: Library, asked: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """The terms of a logit, and the lens, at one position."""
    found = pass_of(asked["state"], library, asked["position"], progress)
    if found.edition.scale == LARGE:
        raise InputError(
            _("this model is too large to be explained here"),
            hint=_("byhand explain works it out on the command line"),
        )
    said = asked["token"]
    token = found.next_id if said is None else found.model.outputs.id(said)
    return {
        "position": found.position,
        "token": None if token is None else found.answer(token),
        "attribution": None if token is None else _attribution(found, token),
        "lens": _lens(found),
    }


def _attribution(found: Pass, token: int) -> dict[str, Any]:
    trace, place = found.trace, found.position
    table = attribute(trace, positions=[place], tokens=[token])
    terms = [
        {
            "name": term.source.name,
            "kind": term.source.kind,
            "layer": term.source.layer,
            "value": None
            if term.missing is not None
            else float(floats_near(term.numbers, term.value)[0, 0]),
        }
        for term in table.terms
    ]
    logits = trace.steps["logits"]
    total = None if logits.missing is not None else float(near(logits)[place, token])
    return {"terms": terms, "total": total, "closes": table.closes}


def _lens(found: Pass) -> list[dict[str, Any]]:
    """The lens after each side-trip: the predictions if the model ended there."""
    return [
        {
            "address": row.step,
            "kind": row.stop.kind,
            "layer": row.stop.layer,
            "token": None
            if row.leader is None or row.leader.id is None
            else found.answer(row.leader.id),
            "proven": row.proven,
            "words": None if row.probs is None else _shares(found, row.probs),
        }
        for row in through_lens(found.trace, [found.position]).rows
    ]


def _shares(found: Pass, probs: Any) -> list[dict[str, Any]]:
    shares = np.array([near_entry(entry) for entry in probs], np.float64)
    order = np.argsort(-np.nan_to_num(shares), kind="stable")[:MOST_LEADERS].tolist()
    return [{"token": found.answer(id), "id": id, "share": float(shares[id])} for id in order]

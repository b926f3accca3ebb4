"""The whole trace of a State, as `byhand trace --json` says it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from byhand.document.media.json.trace import document_of
from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.language import _
from byhand.serving.requests import a_state, only, some_texts
from byhand.serving.states import Library
from byhand.serving.worked_state import trace_of

MOST_ENTRIES = 400_000  # of one answer


def trace(
    library: Library, request: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """Every number of a State, or those of the steps asked for."""
    only(request, "state", "only")
    found = trace_of(a_state(request, "state"), library, progress)
    wanted = some_texts(request, "only")
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

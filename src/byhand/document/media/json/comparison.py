"""A comparison as data: the JSON document of `byhand trace --float FORMAT --digits N --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.document.media.json.records import enclosure_data, float_data, number
from byhand.document.media.json.trace import in_style, proof_data, step_record

if TYPE_CHECKING:
    from byhand.comparing import StepComparison
    from byhand.document.compose.comparison import Compared


def comparison_data(found: Compared) -> dict[str, Any]:
    """The largest error of each step, and the next tokens of both runs."""
    trace = found.proven
    return {
        "model": trace.model.name,
        "numbers": found.floats.numbers.name,
        "true": trace.numbers.name,
        **proof_data(trace),
        "tokens": [{"id": id, "text": trace.token(id)} for id in trace.tokens],
        "steps": in_style([_step(found, step) for step in found.steps], trace.plan, found.names),
        "next": _next(found),
    }


def _step(found: Compared, step: StepComparison) -> dict[str, Any]:
    true = found.proven.steps[step.address]
    value, decimal = enclosure_data(true.at(step.at), found.digits)
    return {
        **step_record(true.step),
        "entries": step.entries,
        "ulps": number(step.ulps),
        "at": list(step.at),
        "missed_zeros": [list(at) for at in step.missed_zeros],
        "unclear": step.unclear,
        "true": {"value": value, "decimal": decimal},
        "float": float_data(np.asarray(found.floats.steps[step.address].at(step.at))),
        "digits": number(step.fewest_digits),
        "usual_digits": number(step.usual_digits),
    }


def _next(found: Compared) -> list[dict[str, Any]] | None:
    trace, digits = found.proven, found.digits
    if trace.next is None or found.floats.next is None:
        return None
    return [
        {
            "position": position,
            "id": one.id,
            "token": None if one.id is None else trace.token(one.id),
            "proven": one.proven,
            "margin": None if one.margin is None else enclosure_data(one.margin, digits)[0],
            "float_id": other.id,
            "float_token": None if other.id is None else trace.token(other.id),
            "same": one.id == other.id if one.proven else None,
        }
        for position, (one, other) in enumerate(zip(trace.next, found.floats.next, strict=True))
    ]

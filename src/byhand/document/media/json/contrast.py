"""A change of weights as data for JSON: how far every step moved, and what is predicted now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byhand.document.media.json.records import number
from byhand.document.media.json.trace import in_style, proof_data, step_record

if TYPE_CHECKING:
    from byhand.contrasting import Bounds, Predicted, StepContrast
    from byhand.document.compose.contrast import Contrasted


def contrast_data(found: Contrasted) -> dict[str, Any]:
    """Both models, every step that is shown, and the predictions."""
    trace = found.trace
    return {
        "model": trace.model.name,
        "original": found.original.model.name,
        "numbers": trace.numbers.name,
        "proven": found.contrast.proven,
        **proof_data(trace),
        "settings": list(found.contrast.settings),
        "tokens": [{"id": id, "text": trace.token(id)} for id in trace.tokens],
        "steps": in_style([_step(found, step) for step in found.steps], trace.plan, found.names),
        "next": [_predicted(found, each) for each in found.contrast.predicted],
    }


def _step(found: Contrasted, step: StepContrast) -> dict[str, Any]:
    return {
        **step_record(found.trace.steps[step.address].step),
        "entries": step.entries,
        "largest": _bounds(step.largest),
        "at": list(step.at),
        "rms": _bounds(step.rms),
        "size": _bounds(step.size),
        "share": None if step.share is None else _bounds(step.share),
        "proven": step.proven,
        "unlike": step.unlike,
    }


def _bounds(found: Bounds) -> dict[str, Any]:
    exact = None if found.exact is None else str(found.exact)
    return {"least": number(found.least), "most": number(found.most), "exact": exact}


def _predicted(found: Contrasted, each: Predicted) -> dict[str, Any]:
    trace = found.trace
    ids = {"original": each.original, "now": each.now}
    return {
        "position": each.position,
        **{f"{name}_id": id for name, id in ids.items()},
        **{name: None if id is None else trace.answer(id) for name, id in ids.items()},
        "changed": each.changed,
        "divergence": None if each.divergence is None else _bounds(each.divergence),
        "proven": each.proven,
    }

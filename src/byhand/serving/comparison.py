"""The comparison of two States: the first step at which they differ, and the differences.

The States may differ in text, model or numbers; common steps are compared place by place.
`changes` decides whether two numbers are equal.  The sizes of differences are floats, for drawings
and not for proofs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.document import words
from byhand.document.compose.book.strips import near
from byhand.document.numerals import localised
from byhand.document.step_names import step_name
from byhand.evaluate import Progress
from byhand.language import _
from byhand.serving.changes import Mask, changes
from byhand.serving.passages import map_of
from byhand.serving.states import Library
from byhand.serving.views import loss_of, next_of
from byhand.serving.worked_state import Pass, pass_of
from byhand.tracing import Trace
from byhand.worked import Worked

BOTH, FIRST, SECOND = "both", "a", "b"
MOST_MOVED = 12  # words whose probabilities are listed

Array = npt.NDArray[np.float64]


def compare(
    library: Library, asked: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """The comparison of two States, step by step."""
    sides = (pass_of(asked[key], library, asked["position"], progress) for key in ("a", "b"))
    one, other = sides
    steps = _steps(one.trace, other.trace)
    parted = [step for step in steps if step["same"] is False]
    return {
        "a": _side(one),
        "b": _side(other),
        "steps": steps,
        "first": parted[0]["address"] if parted else None,
        "next": {"a": next_of(one), "b": next_of(other)},
        "loss": {"a": loss_of(one), "b": loss_of(other)},
        "words": _words(one, other),
        "map": map_of(one, tuple(step["address"] for step in parted)),
        "sentences": list(_sentences(one, other, steps, parted)),
    }


def _side(found: Pass) -> dict[str, Any]:
    trace = found.trace
    return {
        "model": words.printable(trace.model.name),
        "text": trace.text,
        "numbers": trace.numbers.name,
        "numbers_about": words.numbers_name(trace.numbers, trace.proof),
        "tokens": [found.label(id) for id in trace.tokens],
        "notes": list(found.notes),
    }


# ------------------------------------------------------------------ steps


def _steps(one: Trace, other: Trace) -> list[dict[str, Any]]:
    """The steps of both in the order of the pass; a step of only one keeps its place there."""
    differing = {change.address: change.mask for change in changes(one, other)}
    found = [_step(one.steps[a], other.steps.get(a), differing) for a in one.steps]
    places = {a: i for i, a in enumerate(one.steps)}
    result: list[dict[str, Any]] = list(found)
    for address, worked in other.steps.items():
        if address not in places:
            result.append(_line(worked, SECOND))
    order = _order(one, other)
    return sorted(result, key=lambda line: order[line["address"]])


def _order(one: Trace, other: Trace) -> dict[str, float]:
    """Each step's place; steps of the second State alone follow their predecessors there."""
    order: dict[str, float] = {address: float(i) for i, address in enumerate(one.steps)}
    last, more = -1.0, 0
    for address in other.steps:
        if address in order:
            last, more = order[address], 0
        else:
            more += 1
            order[address] = last + more / (1 + len(other.steps))
    return order


def _line(worked: Worked, where: str) -> dict[str, Any]:
    return {
        "address": worked.address,
        "name": step_name(worked.address),
        "in": where,
        "same": None,
        "largest": None,
        "at": None,
        "places": None,
        "a": None,
        "b": None,
    }


def _step(one: Worked, other: Worked | None, differing: Mapping[str, Mask]) -> dict[str, Any]:
    if other is None:
        return _line(one, FIRST)
    line = _line(one, BOTH)
    if one.missing is not None or other.missing is not None:
        return line
    if len(one.step.shape) != len(other.step.shape):
        return line
    both = zip(one.step.shape, other.step.shape, strict=True)
    shared = tuple(slice(min(sizes)) for sizes in both)
    mask = differing.get(one.address)
    line["same"] = mask is None or not mask[shared].any()
    if one.whole:
        return line
    x, y = near(one), near(other)
    return line | _distances(x[shared], y[shared], one.step.position_axis)


def _distances(x: Array, y: Array, axis: int | None) -> dict[str, Any]:
    """The largest difference, its place, and the largest at each position."""
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.abs(x - y)
    away = np.where(np.isnan(away), 0.0, away)  # masked in one or both
    if away.size == 0:
        return {}
    at = np.unravel_index(int(np.argmax(away)), away.shape)
    places = None
    if axis is not None:
        rest = tuple(i for i in range(away.ndim) if i != axis)
        places = away.max(axis=rest).tolist()
    return {
        "largest": float(away[at]),
        "at": [int(i) for i in at],
        "places": places,
        "a": float(x[at]),
        "b": float(y[at]),
    }


# ------------------------------------------------------------------ the end


def _words(one: Pass, other: Pass) -> list[dict[str, Any]] | None:
    """The words after the last position, with their probabilities on both sides."""
    sides = (one.trace, other.trace)
    if any(side.next is None or side.steps["probs"].missing is not None for side in sides):
        return None
    tables = [
        {
            side.answer(id): float(p)
            for id, p in enumerate(near(side.steps["probs"])[found.position])
        }
        for side, found in zip(sides, (one, other), strict=True)
    ]
    every = dict.fromkeys([*tables[0], *tables[1]])
    ranked = sorted(every, key=lambda token: -max(table.get(token, 0.0) for table in tables))
    return [
        {
            "token": words.token_label(token),
            "a": tables[0].get(token),
            "b": tables[1].get(token),
        }
        for token in ranked[:MOST_MOVED]
    ]


def _sentences(
    one: Pass, other: Pass, steps: list[dict[str, Any]], parted: list[dict[str, Any]]
) -> list[str]:
    said = []
    shared = [step for step in steps if step["in"] == BOTH]
    alone = len(steps) - len(shared)
    if not parted:
        said.append(_("Every number that both have is the same."))
    else:
        said.append(
            _(
                "They first differ at `{address}`; of {count} shared steps, {same} are the same."
            ).format(
                address=parted[0]["address"], count=len(shared), same=len(shared) - len(parted)
            )
        )
        measured = [step for step in parted if step["largest"] and isfinite(step["largest"])]
        if measured:
            worst = max(measured, key=lambda step: float(step["largest"]))
            where = worst["address"] + "[" + ",".join(map(str, worst["at"])) + "]"
            said.append(
                _("They are furthest apart at `{address}`: {size}.").format(
                    address=where, size=localised(f"{worst['largest']:.4g}")
                )
            )
    if alone:
        said.append(_("{count} steps are in one of them only.").format(count=alone))
    tokens = [found.next_token for found in (one, other)]
    if None not in tokens:
        if tokens[0] == tokens[1]:
            said.append(_("Both say `{token}` next.").format(token=tokens[0]))
        else:
            said.append(
                _("The first says `{one}` next, the second `{other}`.").format(
                    one=tokens[0], other=tokens[1]
                )
            )
    return said

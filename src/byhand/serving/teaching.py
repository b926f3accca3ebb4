"""The view of learning: the losses of a State's lessons, its loss now, and every weight's gradient.

learn      the losses of all lessons, and on request the gradients that the next step would use
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from byhand import learning
from byhand.backward import adjoint
from byhand.document import words
from byhand.document.compose.book.strips import near
from byhand.document.step_names import weight_name
from byhand.evaluate import Progress
from byhand.model import Model
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Numbers
from byhand.numbers.floats import Floats
from byhand.parameters import learned, size_of
from byhand.plan import GRAD, WEIGHT
from byhand.reading import read
from byhand.serving.edits import edited
from byhand.serving.learned import lesson_on
from byhand.serving.states import LEARNED_IN, Library, State
from byhand.serving.tables import weight_texts
from byhand.serving.worked_state import brief
from byhand.tracing import Trace
from byhand.worked import Worked

MOST_HEATED = 3_000  # parameters of a model whose every gradient is sent
MOST_EXACT = 100  # parameters of a model whose first gradients are exact


def learn(library: Library, asked: Mapping[str, Any], progress: Progress | None) -> dict[str, Any]:
    """The losses before each step of a State's lessons and after the last."""
    found = edited(asked["state"], library, progress)
    losses = [] if found.pupil is None else [*found.pupil.losses, found.pupil.after]
    answer: dict[str, Any] = {"losses": losses}
    if asked["gradients"]:
        answer |= next_step(asked["state"], found.model, progress)
    return answer


def next_step(state: State, model: Model, progress: Progress | None) -> dict[str, Any]:
    """What the next step learns from, its loss, and the gradients of all weights."""
    found = read(model, state.text, target=state.target)
    text, target = found.text, found.target
    asked = lesson_on(model, text, target)
    numbers = _numbers(state, model)
    trace = asked.job(adjoint(asked.passes), numbers, {}).work(progress=progress)
    grads = {p.name: near(trace[GRAD + WEIGHT + p.name]) for p in learned(model.spec)}
    return {
        "text": text,
        "target": target,
        "counted": sum(id != UNCOUNTED for id in asked.batch.targets) if target is None else 1,
        "loss": float(learning.loss_of(trace)),
        "norm": float(np.sqrt(sum(float((grad**2).sum()) for grad in grads.values()))),
        "largest": max((float(np.abs(grad).max()) for grad in grads.values()), default=0.0),
        "numbers": numbers.name,
        "numbers_about": words.numbers_name(numbers, None),
        "weights": list(_weights(model, grads, trace)),
    }


def _numbers(state: State, model: Model) -> Numbers:
    """Exact numbers for the first step of a very small model, float64 for any other."""
    numbers = state.numbers_for(model)
    exact = numbers.name == "exact" and size_of(model.spec) <= MOST_EXACT and not state.lessons
    return numbers if exact else Floats(LEARNED_IN)


def _weights(model: Model, grads: Mapping[str, Any], trace: Trace) -> Iterator[dict[str, Any]]:
    """Every learned weight with the size of its gradient; of a small model, all entries of both."""
    few = size_of(model.spec) <= MOST_HEATED
    for parameter in learned(model.spec):
        tensor, grad = model.weights[parameter.name], grads[parameter.name]
        entries = None
        if few:
            flat = weight_texts(tensor, tensor.data.flat)
            entries = np.array(flat, object).reshape(tensor.shape).tolist()
        yield {
            "name": parameter.name,
            "title": weight_name(parameter.name),
            "shape": list(parameter.shape),
            "axes": list(parameter.axes),
            "entries": entries,
            "gradients": grad.tolist() if few else None,
            "forms": _forms(trace[GRAD + WEIGHT + parameter.name]),
            "norm": float(np.sqrt((grad**2).sum())),
            "largest": float(np.abs(grad).max()),
        }


def _forms(worked: Worked) -> list[Any] | None:
    """The short forms of exact gradients, null where a form is long; None for floats."""
    if worked.numbers.name != "exact":
        return None
    forms = [str(entry) if brief(entry) else None for entry in worked.array.flat]
    nested: list[Any] = np.array(forms, object).reshape(worked.step.shape).tolist()
    return nested

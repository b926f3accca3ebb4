"""Working a plan out: every step in a number system, one after the other.

plan (value-free steps) + weights + tokens + numbers → Trace
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from byhand import forward
from byhand.errors import ByhandError, InputError, ShapeError, Undecided
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT, Numbers, Unknown
from byhand.passes import no_key
from byhand.plan import WEIGHT, Plan, Step
from byhand.tracing import Missing, Trace, Worked
from byhand.weights import Weights

Progress = Callable[[Step], None]


def trace(
    model: Model,
    text: str | None = None,
    numbers: Numbers | None = None,
    *,
    target: str | None = None,
    only: Iterable[str] = (),
    head_outputs: bool = False,
    progress: Progress | None = None,
) -> Trace:
    """The whole working of one text, or of just the steps asked for and what they need.

    Without a text, the model's own; without numbers, exact ones; a target asks for the loss.
    """
    if text is None and model.text is None:
        raise InputError(
            _("this model has no default text"), where=model.source, hint=_("give a text")
        )
    words = model.text if text is None else text
    assert words is not None
    if target is None and (text is None or text == model.text):
        target = model.target
    tokens = model.vocabulary.encode(words)
    goal = None if target is None else model.vocabulary.id(target)
    plan = forward.plan(model.spec, len(tokens), target=goal is not None, head_outputs=head_outputs)
    wanted = tuple(only)
    if wanted:
        plan = plan.only(plan.matching(wanted))
    if numbers is None:
        from byhand.numbers.exact import Exact

        numbers = Exact()
    steps = work_out(plan, model.weights, tokens, numbers, target=goal, progress=progress)
    return Trace(model, plan, numbers, words, tokens, steps, goal)


def work_out(
    plan: Plan,
    weights: Weights,
    tokens: Sequence[int],
    numbers: Numbers,
    *,
    target: int | None = None,
    given: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> dict[str, Worked]:
    """The plan's steps with their values, in order.  What cannot be known is marked missing.

    `given` holds, by address, values that stand in for what a step would give; with
    `plan.only([address], given=…)` a single step is worked out again from given inputs.
    """
    ids = {"tokens": tuple(tokens), "target": target}
    instead = {plan[address].address: value for address, value in (given or {}).items()}
    admitted = _Admitted(weights, numbers)
    done: dict[str, Worked] = {}
    for step in plan:
        _check_reach(step, weights)
    for step in plan:
        if progress:
            progress(step)
        if step.op == "given":
            done[step.address] = Worked(step, ids[step.address], numbers)
        elif step.address in instead:
            done[step.address] = Worked(step, _admit(step, instead[step.address], numbers), numbers)
        else:
            done[step.address] = _work_out_step(step, done, admitted, numbers)
    return done


def _work_out_step(
    step: Step, done: dict[str, Worked], admitted: _Admitted, numbers: Numbers
) -> Worked:
    arguments: dict[str, Any] = dict(step.attributes)
    for role, address in step.inputs.items():
        if address.startswith(WEIGHT):
            name = address.removeprefix(WEIGHT)
            if admitted.unknown(name):
                return Worked(step, None, numbers, missing=Missing("unknown", address))
            arguments[role] = admitted[name]
        elif (cause := done[address].missing) is not None:
            return Worked(step, None, numbers, missing=cause)
        else:
            arguments[role] = done[address].value
    numbers.notes.clear()
    try:
        value = getattr(numbers, step.op)(**arguments)
    except Undecided as error:
        missing = Missing("undecided", step.address, error.message)
        return Worked(step, None, numbers, missing=missing)
    except ByhandError as error:
        error.where = error.where or step.address
        raise
    return Worked(step, value, numbers, tuple(numbers.notes))


def _check_reach(step: Step, weights: Weights) -> None:
    """Refuses a table of scores that, together with the mask, leaves a query no key."""
    if step.op != "scores" or "table" not in step.inputs:
        return
    table = weights[step.inputs["table"].removeprefix(WEIGHT)].data
    settings = step.attributes
    for head in range(step.shape[0]):
        for query, row in enumerate(settings["mask"]):
            place = settings["queries"][query]
            seen = (table[head, place, key] for key, see in zip(settings["keys"], row, strict=True)
                    if see)  # fmt: skip
            if all(entry is ABSENT for entry in seen):
                error = no_key(query)
                error.where = f"{step.address}[{head},{query}]"
                raise error


def _admit(step: Step, value: Any, numbers: Numbers) -> Any:
    data = np.asarray(value)
    if data.shape != step.shape:
        raise ShapeError(
            _("the given value has another shape than its step"),
            where=step.address,
            expected=" × ".join(map(str, step.shape)),
            found=" × ".join(map(str, data.shape)),
        )
    return numbers.admit(data)


class _Admitted:
    """The weights as values of one number system, each admitted once."""

    def __init__(self, weights: Weights, numbers: Numbers) -> None:
        self.weights = weights
        self.numbers = numbers
        self.values: dict[str, Any] = {}

    def unknown(self, name: str) -> bool:
        data = self.weights[name].data
        return data.dtype == np.object_ and any(isinstance(x, Unknown) for x in data.flat)

    def __getitem__(self, name: str) -> Any:
        if name not in self.values:
            try:
                self.values[name] = self.numbers.admit(self.weights[name].data)
            except ByhandError as error:
                error.where = error.where or WEIGHT + name
                raise
        return self.values[name]

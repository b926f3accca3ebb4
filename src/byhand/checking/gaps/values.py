"""The values over a gap: the model's, kept, and those of an edited plan from the edit on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from byhand.checking.claims import Floats
from byhand.checking.gaps.middles import Middles
from byhand.checking.replay import IDS, Line, Replay
from byhand.errors import ByhandError
from byhand.model import Model
from byhand.numbers.allowed import Range
from byhand.plan import WEIGHT, Plan, Step

# what an operation may raise that meets the numbers of another mistake
STUMBLES = (TypeError, ValueError, LookupError, AttributeError, AssertionError)
EACH = 60_000.0  # nanoseconds of a step, whatever its size
PRODUCT = 0.1  # of a multiplication inside a product of matrices
SLOW = 16.0  # of an entry of a step that is more than a sum


class Values:
    """The steps before one line in plain float64, from the claimed lines above it."""

    def __init__(self, replay: Replay, line: Line) -> None:
        self.replay = replay
        self.line = line
        self.target = line.claim.address
        self.numbers = Middles(sum(each.size for each in replay.model.weights.values()))
        self._steps = {step.address: step for step in replay.plan}
        self._known = replay.complete - {self.target}
        self._kept: dict[str, Any] = {}
        self.worked = 0.0  # about how many nanoseconds it took so far

    def read(self, address: str) -> Floats:
        """The value of a step of the model, or of a weight."""
        value: Range = self._value(address, {})
        return np.asarray(value.mid, dtype=np.float64)

    def part(self, value: Floats) -> Floats:
        """The part of the target that is claimed."""
        return value[self.line.claim.index] if self.line.claim.index else value

    def changed(self, plan: Plan) -> list[Step]:
        """The steps of an edited plan that the target needs and that differ from the model's."""
        touched: set[str] = set()
        fresh: list[Step] = []
        for step in plan:
            address = step.address
            if address in self._known:
                continue
            if self._steps.get(address) is not step or not touched.isdisjoint(step.inputs.values()):
                touched.add(address)
                fresh.append(step)
        needed, used = {self.target}, []
        for step in reversed(fresh):
            if step.address in needed:
                needed.update(step.inputs.values())
                used.append(step)
        return used[::-1]

    def price(self, plan: Plan) -> float:
        """About how many nanoseconds an edited plan takes."""
        return sum(_work(step, self.replay.model) for step in self.changed(plan))

    def predicted(self, plan: Plan) -> Floats | None:
        """What an edited plan gives for the claimed part; None where it cannot be worked out."""
        try:
            fresh = self.worked_out(self.changed(plan))
        except (ByhandError, *STUMBLES):
            return None
        value = fresh.get(self.target)
        if value is None:
            return self.part(self.read(self.target))
        return self.part(np.asarray(value.mid, dtype=np.float64))

    def after(self, address: str) -> list[Step]:
        """The steps from a step to the target that read it, directly or not."""
        touched = {address}
        later = []
        for step in self._steps.values():
            if step.address not in self._known and not touched.isdisjoint(step.inputs.values()):
                touched.add(step.address)
                later.append(step)
        needed, used = {self.target}, []
        for step in reversed(later):
            if step.address in needed:
                needed.update(step.inputs.values())
                used.append(step)
        return used[::-1]

    def onward(self, address: str, value: Floats, steps: Sequence[Step]) -> Floats:
        """The target, if a step has another value; `steps` are those of `after`."""
        fresh = self.worked_out(steps, {address: Range(value)})
        return np.asarray(fresh[self.target].mid, dtype=np.float64)

    def worked_out(
        self, steps: Sequence[Step], given: Mapping[str, Range] | None = None
    ) -> dict[str, Any]:
        """These steps, worked out one after the other; what they read besides is the model's."""
        fresh: dict[str, Any] = dict(given or {})
        for step in steps:
            fresh[step.address] = self._work(step, fresh)
        return fresh

    def _value(self, address: str, fresh: dict[str, Any]) -> Any:
        if address in fresh:
            return fresh[address]
        if address.startswith(WEIGHT):
            if address not in self._kept:
                name = address.removeprefix(WEIGHT)
                self._kept[address] = self.numbers.weight(self.replay.weights[name])
            return self._kept[address]
        own = self.replay.plan.known.get(address, address)
        if own in fresh:
            return fresh[own]
        if own not in self._kept:
            self._kept[own] = self._model_value(own)
        return self._kept[own]

    def _model_value(self, address: str) -> Any:
        step = self._steps[address]
        if step.op == "given":
            text = self.replay.text
            ids = {"tokens": text.tokens, "target": text.target, "targets": text.targets}
            return ids[address]
        if address in self._known:
            return self.replay.from_claims(step).value
        return self._work(step, {})

    def _work(self, step: Step, fresh: dict[str, Any]) -> Any:
        arguments = dict(step.attributes)
        for role, address in step.inputs.items():
            arguments[role] = self._value(address, fresh)
        self.worked += _work(step, self.replay.model)
        value = getattr(self.numbers, step.op)(**arguments)
        lines = self.replay.lines.get(step.address, ())
        if lines and step.address != self.target and step.address not in IDS:
            value = self.replay._laid_over(value, lines)
        return value


def _work(step: Step, model: Model) -> float:
    """About how long a step takes, in nanoseconds."""
    size = float(prod(step.shape))
    if step.op == "linear" and (name := step.inputs["weight"]).startswith(WEIGHT):
        outputs = step.shape[-1] * (step.shape[0] if len(step.shape) == 3 else 1)
        return EACH + PRODUCT * size * model.weights[name.removeprefix(WEIGHT)].size / outputs
    return EACH + size * (SLOW if step.op in ("scores", "mix", "softmax", "activate") else 2.0)

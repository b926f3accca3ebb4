"""What the cells show before anything is changed: the pass worked out once in float64.

A spreadsheet program works the formulas out itself; viewers that do not, and LibreOffice when it
opens a file, show the numbers that stand beside them.  They are those of `byhand` in the format
that spreadsheets use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, isfinite
from typing import Any

from byhand.document.media.xlsx.pages import LARGEST, POWERS, PROBABILITY, TOKEN
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.numbers.base import ABSENT
from byhand.numbers.floats import Floats
from byhand.plan import Plan
from byhand.tracing import Worked
from byhand.working import Index

NOT_A_NUMBER = "#NUM!"  # as a spreadsheet says it
Shown = float | str | None  # None: the cell stays empty


class Values:
    """The number of every cell, in float64."""

    def __init__(
        self, model: Model, plan: Plan, tokens: Sequence[int], target: int | None,
        labels: Sequence[str],
    ) -> None:  # fmt: skip
        self.plan = plan
        self.labels = labels
        self._rows: dict[tuple[str, Index], tuple[float, list[float | None]]] = {}
        self._tensors = model.weights
        self._numbers = numbers = Floats("float64")
        self._weights: dict[str, Any] = {}
        self.steps: Mapping[str, Worked] = work_out(
            plan, model.weights, tokens, numbers, target=target
        )

    def absent(self, address: str, index: Index) -> bool:
        return self._raw(address, index) is ABSENT

    def of(self, address: str, index: Index) -> Shown:
        """What the cell of an entry, or of a line of working, shows."""
        name, mark, part = address.partition("~")
        value = self._part(name, mark + part, index) if mark else self._raw(address, index)
        if value is None or isinstance(value, str):
            return value
        return value if isfinite(value) else NOT_A_NUMBER

    def _raw(self, address: str, index: Index) -> float | None:
        worked = self.steps[self.plan[address].address]
        if worked.step.op == "argmax":
            found = worked.value[index[0]].id
            return float("nan") if found is None else float(found)
        if worked.whole:
            return float(worked.value[index[0]] if index else worked.value)
        entry = worked.at(index)
        return None if entry is ABSENT else float(entry)

    def _part(self, address: str, part: str, index: Index) -> Shown:
        if part in (TOKEN, PROBABILITY):
            chosen = self._raw("next", index)
            if chosen is None or not isfinite(chosen):
                return NOT_A_NUMBER
            id = int(chosen)
            return self.labels[id] if part == TOKEN else self._raw("probs", (*index, id))
        largest, powers = self._shifted(address, index[:-1] if part == POWERS else index)
        if part == LARGEST:
            return largest
        if part == POWERS:
            return powers[index[-1]]
        return sum(power for power in powers if power is not None)

    def _shifted(self, address: str, row: Index) -> tuple[float, list[float | None]]:
        """The largest score of a row, and e to the power of each score less that."""
        if (address, row) not in self._rows:
            x = self.plan[address].inputs["x"]
            scores = [self._raw(x, (*row, key)) for key in range(self.plan[x].shape[-1])]
            largest = max(score for score in scores if score is not None)
            powers = [None if score is None else exp(score - largest) for score in scores]
            self._rows[address, row] = largest, powers
        return self._rows[address, row]

    def weight(self, name: str, index: Index) -> float:
        """A weight as the nearest float64."""
        if name not in self._weights:
            self._weights[name] = self._numbers.admit(self._tensors[name].data)
        return float(self._weights[name][index])

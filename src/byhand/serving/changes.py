"""What changed from one pass to the other: which numbers, and how the prediction moved.

Numbers are compared by their own equality: exact ones by their forms, enclosures by whether they
are the same set.  What is not seen to be the same counts as changed.
A step whose rule, inputs and weights are the same has the same numbers and is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.document.compose.book.strips import near
from byhand.document.compose.forms import floats
from byhand.numbers.base import ABSENT
from byhand.numbers.exact.value import Value
from byhand.plan import WEIGHT, Step
from byhand.serving.forms_alike import Forms
from byhand.tracing import Trace, Worked

MOST_ADDRESSES = 5_000

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class StepChange:
    """The numbers of one step that are not what they were; `mask` has the shape it has now."""

    address: str
    mask: Mask

    @property
    def count(self) -> int:
        """The number of entries that changed."""
        return int(self.mask.sum())


def changes(before: Trace, after: Trace) -> list[StepChange]:
    """The steps that changed, in spine order, with which of their numbers did."""
    same: set[str] = set()
    found = []
    weights = _Weights(before, after)
    alike = before.numbers.name == after.numbers.name
    forms = Forms()
    for address, now in after.steps.items():
        then = before.steps.get(address)
        if then is not None and alike and _by_construction(then, now, same, weights, before, after):
            same.add(address)
            continue
        mask = _differing(then, now, alike, forms)
        if mask.any():
            found.append(StepChange(address, mask))
        elif then is not None and then.step.shape == now.step.shape:
            same.add(address)
    return found


def addresses(changed: list[StepChange]) -> Iterator[str]:
    """The address of every number that changed."""
    for change in changed:
        for index in np.argwhere(change.mask):
            yield change.address + write_index(tuple(map(int, index)))


class _Weights:
    """Which weights are the same in both models."""

    def __init__(self, before: Trace, after: Trace) -> None:
        self.before, self.after = before.model.weights, after.model.weights
        self.known: dict[str, bool] = {}

    def same(self, name: str) -> bool:
        if name not in self.known:
            one, other = self.before.get(name), self.after.get(name)
            self.known[name] = one is other or (
                one is not None and other is not None and _same_data(one.data, other.data)
            )
        return self.known[name]


def _same_data(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype != np.dtype(object):
        return bool(np.array_equal(one, other))
    return all(a is b or a == b for a, b in zip(one.flat, other.flat, strict=True))


def _by_construction(
    then: Worked, now: Worked, same: set[str], weights: _Weights, before: Trace, after: Trace
) -> bool:
    """Whether a step is worked out by the same rule from the same numbers."""
    old, new = then.step, now.step
    if (old.op, old.shape, dict(old.inputs)) != (new.op, new.shape, dict(new.inputs)):
        return False
    if new.op == "given":
        return bool(then.value == now.value)
    if old.attributes != new.attributes:
        return False
    return all(
        weights.same(read.removeprefix(WEIGHT)) if read.startswith(WEIGHT) else read in same
        for read in new.reads
    )


def _differing(then: Worked | None, now: Worked, alike: bool, forms: Forms) -> Mask:
    """Where the numbers of a step are others than before; what is new has changed."""
    shape = now.step.shape
    mask: Mask = np.ones(shape, np.bool_)
    if now.missing is not None:
        return mask if then is not None and then.missing is None else ~mask
    if then is None or then.missing is not None or len(then.step.shape) != len(shape):
        return mask
    shared = tuple(slice(min(a, b)) for a, b in zip(shape, then.step.shape, strict=True))
    if now.whole:
        return _differing_ids(then, now, mask, now.step)
    if alike and floats(now.array) and floats(then.array):
        one, other = now.array[shared], then.array[shared]
        mask[shared] = np.ma.getmaskarray(one) != np.ma.getmaskarray(other)
        mask[shared] |= np.ma.filled(np.ma.asarray(one != other), False)
        return mask
    if not alike:
        one, other = near(now)[shared], near(then)[shared]
        mask[shared] = ~((one == other) | (np.isnan(one) & np.isnan(other)))
        return mask
    for index in product(*(range(part.stop) for part in shared)):
        mask[index] = not _equal(then.at(index), now.at(index), forms)
    return mask


def _differing_ids(then: Worked, now: Worked, mask: Mask, step: Step) -> Mask:
    """Tokens and predictions are words; of a prediction, the word counts and not its margin."""
    if not step.shape:
        mask[()] = then.value != now.value
        return mask
    for place in range(min(step.shape[0], then.step.shape[0])):
        one, other = then.value[place], now.value[place]
        mask[place] = getattr(one, "id", one) != getattr(other, "id", other)
    return mask


def _equal(one: Any, other: Any, forms: Forms) -> bool:
    if one is ABSENT or other is ABSENT:
        return one is other
    if isinstance(one, Value) and isinstance(other, Value):
        return forms.same(one, other)
    return bool(one == other)  # of enclosures: the same set, so that nothing tells them apart

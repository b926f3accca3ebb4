"""The numbers and weights that differ between two passes, step by step.

Exact numbers are equal if their forms are, enclosures if they are the same set.  Numbers that are
not known to be equal count as changed.  A step with the same rule, inputs and weights has the same
numbers and is not compared.
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
from byhand.model import Model
from byhand.numbers.base import ABSENT
from byhand.numbers.exact.value import Atom, Value
from byhand.plan import WEIGHT, Step
from byhand.tracing import Trace
from byhand.weights import Tensor
from byhand.worked import Worked

MOST_ADDRESSES = 5_000

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class StepChange:
    """The changed numbers of one step; `mask` has the step's current shape."""

    address: str
    mask: Mask

    @property
    def count(self) -> int:
        """The number of entries that changed."""
        return int(self.mask.sum())


def changes(before: Trace, after: Trace) -> list[StepChange]:
    """The changed steps, in spine order, each with its changed numbers."""
    changed = changed_weights(before.model, after.model)
    same = {WEIGHT + name for name in after.model.weights if name not in changed}
    found = []
    alike = before.numbers.name == after.numbers.name
    forms = Forms()
    for address, now in after.steps.items():
        then = before.steps.get(address)
        if then is not None and alike and _by_construction(then, now, same):
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


def changed_weights(before: Model, after: Model) -> list[str]:
    """The weights with a changed entry, and new weights."""
    return [
        name
        for name, tensor in after.weights.items()
        if not _same_data(before.weights.get(name), tensor)
    ]


def _same_data(one: Tensor | None, other: Tensor) -> bool:
    if one is None or one is other:
        return one is other
    if one.shape != other.shape or one.data.dtype != other.data.dtype:
        return False
    if one.data.dtype != np.dtype(object):
        return bool(np.array_equal(one.data, other.data))
    return all(a is b or a == b for a, b in zip(one.data.flat, other.data.flat, strict=True))


def _by_construction(then: Worked, now: Worked, same: set[str]) -> bool:
    """Whether a step has the same rule, the same inputs and the same weights."""
    old, new = then.step, now.step
    if (old.op, old.shape, dict(old.inputs)) != (new.op, new.shape, dict(new.inputs)):
        return False
    if new.op == "given":
        return bool(then.value == now.value)
    if old.attributes != new.attributes:
        return False
    return same.issuperset(new.reads)


def _differing(then: Worked | None, now: Worked, alike: bool, forms: Forms) -> Mask:
    """The entries of a step that differ from those before; new entries count as changed."""
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
    """Tokens and predictions compared as words; the margin of a prediction does not count."""
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
    return bool(one == other)  # enclosures: the same set


# ------------------------------------------------------------------ exact numbers of two passes


class Forms:
    """The forms of exact values, each as a small number: equal forms are equal values.

    Each pass has its own number space, so `==` cannot compare two passes.  A form does not depend
    on the space: a rational times a fraction of polynomials in names, each name given by its
    function and its argument's form.  Different forms are different numbers, or equal ones without
    a proof.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._atoms: dict[tuple[int, int], int] = {}  # (space, atom) → form
        self._spaces: dict[int, Any] = {}  # kept alive, so that no id is reused

    def same(self, one: Value, other: Value) -> bool:
        """Whether two values have the same form, and so are the same number."""
        if one.fraction is not None or other.fraction is not None:
            return bool(one.fraction == other.fraction)
        if one.q != other.q or len(one.atoms) != len(other.atoms):
            return False
        if not one.ball().overlaps(other.ball()):  # a fast test that usually decides
            return False
        if _coefficients(one) != _coefficients(other):
            return False
        return self.of(one) == self.of(other)

    def of(self, value: Value) -> int:
        """The number of a value's form."""
        if value.num is None or value.den is None:
            return self._number(("rational", str(value.q)))
        atoms = [self._atom(value.space.atoms[at], value.space) for at in value.atoms]
        return self._number(
            ("fraction", str(value.q), _terms(value.num, atoms), _terms(value.den, atoms))
        )

    def _atom(self, atom: Atom, space: Any) -> int:
        known = self._atoms.get((id(space), atom.id))
        if known is not None:
            return known
        self._spaces[id(space)] = space
        argument = None if atom.argument is None else self.of(atom.argument)
        wide = None
        if atom.wide is not None:
            wide = frozenset(
                (tuple(sorted(self._atom(space.atoms[at], space) for at in factors)), str(q))
                for factors, q in atom.wide.items()
            )
        # A printed number is an interval, which does not say which number it is.
        own = (id(space), atom.id) if atom.kind == "printed" else ()
        radius = None if atom.radius is None else str(atom.radius)
        found = self._number((atom.kind, argument, wide, atom.degree, atom.turn, radius, own))
        self._atoms[id(space), atom.id] = found
        return found

    def _number(self, form: Any) -> int:
        return self._numbers.setdefault(form, len(self._numbers))


def _coefficients(value: Value) -> tuple[list[Any], ...]:
    return tuple(sorted(p.coeffs()) for p in (value.num, value.den) if p is not None)


def _terms(polynomial: Any, atoms: list[int]) -> frozenset[Any]:
    """The terms of a polynomial, independent of the order of its names."""
    return frozenset(
        (tuple(sorted((atoms[i], e) for i, e in enumerate(exponents) if e)), str(coefficient))
        for exponents, coefficient in polynomial.to_dict().items()
    )

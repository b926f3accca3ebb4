"""Weights that are known only within ranges, as a property says: the model with such weights.

    printed: 4            any numbers that print as these with four decimals
    within: 1e-4          any numbers at most so far from these
    known to: bfloat16    any numbers that bfloat16 rounds to the same as these
    rounded to: bfloat16  these numbers, rounded to bfloat16: one model

Buffers, such as tables of scores, are not weights.  Weights that refer to each other stay the same.
A weight that is not rational, such as sqrt(2), is taken with 60 decimals before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.errors import nearest
from byhand.expression import Expression
from byhand.files import scalars
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import ABSENT, Printed, Unknown, Within
from byhand.numbers.floats.formats import FORMATS, Format
from byhand.parameters import learned
from byhand.weights import Data, Tensor, Weights

DECIMALS = 60  # of numbers that are not rational
WORDS = ("printed", "within", "known to", "rounded to")
Change = Callable[[Fraction], Any]


def read_weights(node: Node | None, model: Model) -> Model:
    """The model with weights as the property says; the model itself where it says nothing."""
    if node is None:
        return model
    changes: dict[str, Change] = {}
    for names, change in _changes(node, model):
        changes.update(dict.fromkeys(names, change))
    made: dict[str, Tensor] = {}
    for name in sorted(model.weights, key=lambda one: model.weights[one].same_as is not None):
        tensor = model.weights[name]
        if tensor.same_as in made:
            made[name] = _shared(tensor, model.weights[str(tensor.same_as)], made[tensor.same_as])
        elif name in changes:
            made[name] = Tensor(name, _changed(tensor, changes[name]), tensor.same_as)
        else:
            made[name] = tensor
    return replace(model, weights=Weights({name: made[name] for name in model.weights}))


def read_distance(node: Node | None) -> Fraction:
    """How far each entry of an embedding may be moved: {within: 0.01}."""
    if node is None:
        return Fraction(0)
    if not isinstance(node, Table):
        raise node.impossible("{within: 0.01}")
    node.only("within")
    return _distance(node.needed("within"))


def _distance(node: Node) -> Fraction:
    number = scalars.number(node)
    if number < 0:
        raise node.impossible(_("a number that is not negative"))
    return number


def _changes(node: Node, model: Model) -> Iterator[tuple[list[str], Change]]:
    """The names of weights, and what becomes of them: for all, or by patterns of names."""
    if not isinstance(node, Table) or not node.entries:
        raise node.impossible("{printed: 4}, {within: 1e-4}, {rounded to: bfloat16}")
    every = [parameter.name for parameter in learned(model.spec)]
    if not any(word in node.entries for word in WORDS):
        for pattern, inner in node.entries.items():
            if not isinstance(inner, Table):
                raise inner.impossible("{printed: 4}, {within: 1e-4}, {rounded to: bfloat16}")
            inner.only(*WORDS)
            yield _matching([pattern], every, model, inner), _change(inner)
        return
    node.only(*WORDS, "of")
    of = node.get("of")
    names = every
    if of is not None:
        items = of.items if isinstance(of, List) else (of,)
        names = _matching([scalars.text(item) for item in items], every, model, of)
    yield names, _change(node)


def _matching(patterns: list[str], every: list[str], model: Model, node: Node) -> list[str]:
    """The weights that patterns name; one that refers to another stands for that one."""
    found: dict[str, None] = {}
    for pattern in patterns:
        names = [
            name for name in every if fnmatchcase(name, pattern) or name.startswith(pattern + ".")
        ]
        if not names:
            raise node.wrong(
                _("this model has no weight {name}").format(name=repr(pattern)),
                expected=", ".join(every) if len(every) <= 12 else None,
                found=pattern,
                hint=nearest(pattern, every),
            )
        found.update((model.weights[name].same_as or name, None) for name in names)
    return list(found)


def _change(node: Table) -> Change:
    given = [word for word in WORDS if word in node.entries]
    if len(given) != 1:
        raise node.wrong(
            _("weights are given in one way"), expected=_("one of {names}").format(
                names=", ".join(WORDS)), found=node.keys(),
        )  # fmt: skip
    (word,) = given
    inner = node.entries[word]
    if word == "printed":
        places = scalars.whole(inner, 0, 40)
        return lambda value: Printed(round(value, places), places)
    if word == "within":
        radius = _distance(inner)
        return lambda value: Within(value, radius)
    form = FORMATS[scalars.word(inner, *FORMATS)]
    if word == "rounded to":
        return lambda value: rounded(value, form, inner)
    return lambda value: _known_to(value, form, inner)


def rounded(value: Fraction, form: Format, node: Node | None = None) -> Fraction:
    """The number of a format that is nearest, ties to even."""
    if value == 0:
        return value
    unit = _unit(value, form)
    found = round(value / unit) * unit
    if abs(found) > Fraction(form.largest):
        at = node or Scalar("", 0, "weights", str(value))
        raise at.wrong(
            _("a weight is too large for {format}").format(format=form.name), found=str(value)[:60]
        )
    return found


def _unit(value: Fraction, form: Format) -> Fraction:
    """The unit in the last place of a number of this size."""
    top, bottom = abs(value.numerator), value.denominator
    exponent = top.bit_length() - bottom.bit_length()
    if Fraction(2) ** exponent > abs(value):
        exponent -= 1
    return Fraction(2) ** (max(exponent, form.least) - form.bits + 1)


def _known_to(value: Fraction, form: Format, node: Node) -> Within:
    """All numbers that a format rounds to the same number as this one, and the two ends."""
    stored = rounded(value, form, node)
    if stored == 0:
        half = Fraction(2) ** (form.least - form.bits)
        return Within(Fraction(0), half)
    above = _unit(stored, form) / 2
    below = above
    size = abs(stored)
    if size.numerator & (size.numerator - 1) == 0 and size > Fraction(2) ** form.least:
        below = above / 2  # the numbers below a power of two are twice as near
    low, high = size - below, size + above
    middle = (low + high) / 2
    return Within(middle if stored > 0 else -middle, (high - low) / 2)


# --------------------------------------------------------------------------- tensors


def _changed(tensor: Tensor, change: Change) -> Data:
    """The entries, each changed; what is not known stays so."""
    data = np.empty(tensor.size, dtype=object)
    flat = tensor.data.astype(np.float64).ravel() if tensor.floats else tensor.data.ravel()
    made: dict[Any, Any] = {}
    for place, entry in enumerate(flat):
        if entry is ABSENT or isinstance(entry, Unknown | Printed | Within):
            data[place] = entry
            continue
        if entry not in made:
            made[entry] = change(_rational(entry))
        data[place] = made[entry]
    return data.reshape(tensor.shape)


def _rational(entry: Any) -> Fraction:
    """The number; one that is not rational is taken with so many decimals, proven."""
    if not isinstance(entry, Expression):
        return Fraction(entry)
    from byhand.numbers.exact import Exact  # only now: few models need it
    from byhand.numbers.exact.decimals import rounded as to_decimals

    return to_decimals(Exact().scalar(entry), DECIMALS)


def _shared(tensor: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """A reference to the changed tensor, turned where it was turned."""
    turned = tensor.shape != before.shape or tensor.data.strides != before.data.strides
    return Tensor(tensor.name, after.data.T if turned else after.data, tensor.same_as)

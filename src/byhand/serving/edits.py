"""The model of a State, with all its edits.

First the architecture is changed (`settings`), then the weights are made to fit (`fitted_weights`),
then the lessons are learned (`learned`), then single entries are set, each written as a model file
writes it: 0.2, -3/2, sqrt(2)/2, unknown.
Further changes that the edits needed are told in words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.address import Address, read_address, within, write_index
from byhand.errors import AddressError, ByhandError, InputError, nearest
from byhand.evaluate import Progress
from byhand.files import scalars
from byhand.files.literals import Literals
from byhand.files.tree import List, Scalar, Table
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Printed
from byhand.parameters import Parameter, parameters
from byhand.plan import WEIGHT
from byhand.serving.cache import Cache
from byhand.serving.fitted_weights import fitted
from byhand.serving.learned import Pupil, taught
from byhand.serving.lessons import Pairs
from byhand.serving.settings import changed_spec
from byhand.serving.states import Library, State, base_model
from byhand.weights import Data, Tensor, Weights

MOST_COPIED = 20_000_000  # largest tensor in which an entry can be edited
FLOAT_DIGITS = 25  # digits of an expression, before it is rounded to a float


@dataclass(frozen=True)
class Edited:
    """A model with the edits of a State, and the further changes that they needed."""

    model: Model
    notes: tuple[str, ...] = ()
    pupil: Pupil | None = None  # after its lessons, before the last edits by hand


_EDITED: Cache[Edited] = Cache(12)


def edited(state: State, library: Library, progress: Progress | None = None) -> Edited:
    """The model of a State, with its lessons and its edits."""
    key = (
        library.number,
        state.name,
        state.file,
        state.architecture,
        state.lessons,
        state.weights,
        state.own_target,
        state.language,
    )
    return _EDITED.of(key, lambda: _edit(state, library, progress))


def _edit(state: State, library: Library, progress: Progress | None) -> Edited:
    before = model = base_model(state, library)
    notes: list[str] = []
    if state.architecture:
        spec = changed_spec(model.spec, state.architecture)
        weights, said = fitted(model.weights, spec)
        notes += said
        model = replace(model, spec=spec, weights=weights)
    pupil = None
    if state.lessons:

        def edit(model: Model, entries: Pairs) -> Model:
            return replace(model, weights=_with_entries(model, before, entries)[0])

        start = (library.number, state.name, state.file, state.architecture)
        pupil = taught(model, state.lessons, start, edit, progress)
        model = pupil.model
    if state.weights:
        weights, said = _with_entries(model, before, state.weights)
        notes += said
        model = replace(model, weights=weights)
    if not state.own_target:
        model = replace(model, target=None)  # an explicit target counts, even none
    return Edited(model, tuple(notes), pupil)


# ------------------------------------------------------------------ single entries


def _with_entries(model: Model, before: Model, entries: Pairs) -> tuple[Weights, tuple[str, ...]]:
    tensors = dict(model.weights)
    wanted = {parameter.name: parameter for parameter in parameters(model.spec)}
    earlier = {parameter.name: parameter for parameter in parameters(before.spec)}
    copies: dict[str, Data] = {}
    notes: dict[str, None] = {}
    for said, text in entries:
        address = read_address(said.removeprefix(WEIGHT))
        here = wanted.get(address.name)
        if here is None or _outside(address, here):
            there = earlier.get(address.name)
            if there is None or _outside(address, there):
                raise _no_place(address, here, wanted)
            note = _("The edit of `{address}` has no place in this architecture.")
            notes[note.format(address=str(address))] = None
            continue
        index = tuple(int(place) for place in within(address, here.shape) if isinstance(place, int))
        try:
            entry = _entry(text, here, tensors[address.name].data, index)
        except ByhandError as error:
            error.where = WEIGHT + str(address)
            raise
        if rounded := _rounded(text, entry, address):
            notes[rounded] = None
        for name in _set(tensors, copies, address.name, index, entry):
            note = _("`{other}` is the same as `{name}`: both were changed.")
            notes[note.format(other=name, name=address.name)] = None
    return Weights(tensors), tuple(notes)


def _outside(address: Address, parameter: Parameter) -> bool:
    """Whether the index does not name exactly one entry."""
    if len(address.index) != len(parameter.shape):
        return True
    return not all(
        isinstance(place, int) and -size <= place < size
        for place, size in zip(address.index, parameter.shape, strict=True)
    )


def _no_place(
    address: Address, parameter: Parameter | None, wanted: dict[str, Parameter]
) -> AddressError:
    if parameter is None:
        return AddressError(
            _("this model has no weight {name}").format(name=repr(address.name[:80])),
            where=f"weights.{str(address)[:80]}",
            hint=nearest(address.name[:80], wanted),
        )
    last = tuple(size - 1 for size in parameter.shape)
    return AddressError(
        _("this is not the address of one number"),
        where=f"weights.{str(address)[:80]}",
        expected=_("an address from {first} to {last}").format(
            first=parameter.name + write_index((0,) * len(last)),
            last=parameter.name + write_index(last),
        ),
        found=str(address)[:80],
    )


def _entry(text: str, parameter: Parameter, data: Data, index: tuple[int, ...]) -> Any:
    """The entry that a text means, in the grammar of its tensor."""
    node = Scalar("weights", 1, parameter.name, text.strip())
    if data.dtype != np.dtype(object):
        return _float(node, data)
    one = Parameter(parameter.name, (1,), parameter.axes[-1:], parameter.part, parameter.kind)
    row = List("weights", 1, parameter.name, (node,))
    printed = next((x.places for x in data.flat if isinstance(x, Printed)), None)
    if printed is not None:
        table = Table("weights", 1, parameter.name, {"values": row})
        return Literals().read_printed(table, one, printed)[0]
    masked = parameter.name.endswith(".score_table")
    return Literals().read(row, one, masked=masked)[0]


def _float(node: Scalar, data: Data) -> Any:
    """The nearest float in the tensor's format."""
    if data.size > MOST_COPIED:
        raise InputError(
            _("this weight is too large to be edited"),
            expected=_("at most {count} numbers").format(count=f"{MOST_COPIED:,}"),
            found=f"{data.size:,}",
        )
    value = scalars.value_of(node)
    if not isinstance(value, Fraction):
        from byhand.numbers.exact import Exact

        value = Fraction(str(Exact().scalar(value).decimal(FLOAT_DIGITS)))
    with np.errstate(over="ignore"):
        try:
            found = data.dtype.type(float(value))
        except OverflowError:
            found = data.dtype.type(np.inf)
    if not np.isfinite(found):
        raise InputError(
            _("the number is too large for {format}").format(format=data.dtype.name),
            expected=_("a finite number"),
            found=node.text[:60],
        )
    return found


def _rounded(text: str, entry: Any, address: Address) -> str | None:
    """A note that a float does not hold the written number exactly; None if it does."""
    if not isinstance(entry, np.generic):
        return None
    try:
        same = Fraction(text.strip()) == Fraction(float(entry))
    except (ValueError, ZeroDivisionError):
        same = False
    if same:
        return None
    return _("`{address}` holds floats: {text} became {found}.").format(
        address=str(address), text=text.strip(), found=repr(float(entry))
    )


def _set(
    tensors: dict[str, Tensor],
    copies: dict[str, Data],
    name: str,
    index: tuple[int, ...],
    entry: Any,
) -> list[str]:
    """Sets an entry in every tensor with the same parameters; returns the names of the others."""
    owner = tensors[name].same_as or name
    family = [other for other, t in tensors.items() if other == owner or t.same_as == owner]
    if name not in family:
        family = [name]
    first = tensors[name].data
    turned = {
        other: tensors[other].shape != first.shape or tensors[other].data.strides != first.strides
        for other in family
    }
    if name not in copies:
        copy = np.array(first)
        for other in family:
            copies[other] = copy.T if turned[other] else copy
            tensors[other] = Tensor(other, copies[other], tensors[other].same_as)
    copies[name][index] = entry
    return [other for other in family if other != name]

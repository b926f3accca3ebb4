"""What a dump is read against: the plan, the names that are known, and the other arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand import forward
from byhand.address import write_index
from byhand.checking.claims import Entry, Unmatched
from byhand.evaluate import work_out
from byhand.model import Model
from byhand.names.engines import TensorName, tensor_names
from byhand.numbers.floats import Floats
from byhand.plan import Plan, Step
from byhand.spec import BlockSpec

Sides = tuple[tuple[str, ...], ...]  # one group of axes for each side of an array
Read = list[Entry | Unmatched]  # what an entry is read as; empty: it is left out without a word
LAYER = re.compile(r"(?:^|[./])(\d{1,6})(?=[./]|$)")


@dataclass(frozen=True)
class View:
    """The plan for the dump's length, and everything that the dump names."""

    model: Model
    plan: Plan
    text: Text | None  # None: with padding, or several texts
    entries: Mapping[str, Entry]
    known: Callable[[str], str | None]  # the address of the step that a name means

    def has(self, address: str) -> bool:
        """Whether the plan has a step of this address."""
        return address in self.plan.known

    def module(self, name: str) -> str | None:
        """The address of what a module gives; None where the module is unknown."""
        found = self.known(name) or self.known(name.replace(".attn.", ".self_attn."))
        return found if found is not None and self.has(found) else None

    def block(self, at: str) -> BlockSpec | None:
        """The block of an address such as block.3.attn; None where the model has none."""
        number = int(at.split(".")[1])
        return self.plan.spec.blocks[number] if number < len(self.plan.spec.blocks) else None

    def first(self, *addresses: str) -> str | None:
        """The first of some addresses that the plan has."""
        return next((self.plan.known[each] for each in addresses if self.has(each)), None)

    @cached_property
    def tensors(self) -> dict[str, TensorName]:
        """llama.cpp's names of the plan's steps; of several steps of a name, the first."""
        found: dict[str, TensorName] = {}
        for _step, row in tensor_names(self.plan.spec, self.plan.known):
            found.setdefault(row.name, row)
        return found

    @cached_property
    def decided(self) -> dict[str, Any]:
        """What was decided about the whole dump, once."""
        return {}

    def true(self, address: str) -> npt.NDArray[np.float64] | None:
        """What the model gives at a step, in float64; None where that is not known."""
        if address not in self._true:
            self._true[address] = self.text.true(self.model, address) if self.text else None
        return self._true[address]

    @cached_property
    def _true(self) -> dict[str, npt.NDArray[np.float64] | None]:
        return {}


@dataclass(frozen=True, slots=True)
class Text:
    """The tokens of a dump that has no padding, and their positions."""

    tokens: tuple[int, ...]
    positions: tuple[int, ...] | None = None

    def true(self, model: Model, address: str) -> npt.NDArray[np.float64] | None:
        """What the model gives at a step, in float64; None where that is not known."""
        if model.spec.encoder is not None:
            return None
        plan = forward.plan(model.spec, len(self.tokens), positions=self.positions)
        if address not in plan.known:
            return None
        part = plan.only([address])
        worked = work_out(part, model.weights, self.tokens, Floats("float64"))
        found = worked[plan[address].address]
        value = np.asarray(found.value) if found.missing is None else np.zeros(0, object)
        return value if value.dtype.kind == "f" else None


# ------------------------------------------------------------------ arrays


def moved(entry: Entry, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Entry:
    """The entry with its numbers moved; its blanks and its slack move along."""
    slack, claimed = entry.slack, entry.claimed
    return replace(
        entry,
        values=change(entry.values),
        slack=change(slack) if isinstance(slack, np.ndarray) else slack,
        claimed=None if claimed is None else change(claimed),
    )


def called(entry: Entry, address: str, how: str = "", **changes: Any) -> Entry:
    """The entry at an address of byhand's, with how it was read."""
    said = entry.said or entry.name
    return replace(entry, name=address, said=said, read=how or entry.read, **changes)


def aside(entry: Entry, reason: str, hint: str | None = None) -> Unmatched:
    """An entry whose name is understood and which is no step of the plan."""
    return Unmatched(entry.said or entry.name, entry.source, reason, hint)


def fitted(entry: Entry, address: str, sides: Sides, view: View) -> Entry | None:
    """The entry in the axes of a step, where its sides are these; None where they do not fit.

    Sides of length 1 may come and go, groups may be split, and all sides may be reversed, as ggml
    counts them.  Keys may be padded.  A single position is the last one.
    """
    step = view.plan[address]
    lengths = dict(zip(step.axes, step.shape, strict=True))
    one = next((axis for axis in ("pos", "query") if axis in lengths), None)
    for last in (False, True) if one is not None and lengths[one] > 1 else (False,):
        sizes = {**lengths, one: 1} if last and one is not None else lengths
        for reverse in (False, True):
            found = _fitted(entry, step, sides, sizes, reverse)
            if found is None:
                continue
            index = ""
            if last:
                place = slice(lengths[one or ""] - 1, lengths[one or ""])
                cut = tuple(place if axis == one else slice(None) for axis in step.axes)
                index = write_index(cut)
            return called(found, step.address + index)
    return None


def _fitted(
    entry: Entry, step: Step, sides: Sides, sizes: Mapping[str, int], reverse: bool
) -> Entry | None:
    shape = entry.values.shape[::-1] if reverse else entry.values.shape
    plain = tuple(size for size in shape if size != 1)
    if reverse and len(plain) < 2:
        return None
    apart: Sides = tuple((axis,) for group in sides for axis in group)
    for groups in dict.fromkeys((sides, apart)):
        named = [(group, prod(sizes[axis] for axis in group)) for group in groups]
        wanted = [(group, size) for group, size in named if size != 1]
        if len(wanted) != len(plain) or not all(map(_fits, wanted, plain)):
            continue
        keys = next((at for at, (group, _s) in enumerate(wanted) if group == ("key",)), None)
        flat = [axis for group in groups for axis in group]

        def change(
            array: npt.NDArray[Any], keys: int | None = keys, flat: Sequence[str] = flat
        ) -> npt.NDArray[Any]:
            array = (array.T if reverse else array).reshape(plain)
            if keys is not None:
                array = array.take(range(sizes["key"]), axis=keys)
            array = array.reshape([sizes[axis] for axis in flat])
            return array.transpose([flat.index(axis) for axis in step.axes])

        return moved(entry, change)
    return None


def _fits(wanted: tuple[tuple[str, ...], int], found: int) -> bool:
    group, size = wanted
    return found == size or (group == ("key",) and found > size)


def columns(entry: Entry, widths: Sequence[int]) -> list[Entry] | None:
    """The entry cut along its last side; None where that is of another length."""
    if not entry.values.ndim or entry.values.shape[-1] != sum(widths):
        return None
    ends = np.cumsum([0, *widths])
    return [
        moved(entry, lambda array, a=int(a), b=int(b): array[..., a:b])  # type: ignore[misc]
        for a, b in pairwise(ends)
    ]

"""Addresses: the name of a step, and with an index the name of one number in it.

    >>> read_address("block.0.attn.scores[1,2,0]")
    Address(name='block.0.attn.scores', index=(1, 2, 0))
    >>> str(read_address("logits[ -1 , : ]"))
    'logits[-1,:]'

One index syntax everywhere: whole numbers (from the end where negative) and slices, one an axis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from byhand.errors import AddressError
from byhand.language import _

Index = tuple[int | slice, ...]

_ADDRESS = re.compile(r"\s*([\w*]+(?:\.[\w*]+)*)\s*(?:\[([^\[\]]*)\])?\s*")
_WHOLE = r"([+-]?[0-9]{1,9})"
_PLACE = re.compile(rf"\s*(?:{_WHOLE}|{_WHOLE}?\s*:\s*{_WHOLE}?)\s*")


@dataclass(frozen=True, slots=True)
class Address:
    """A step's name; `index` is empty where the whole step is meant."""

    name: str
    index: Index = ()

    def __str__(self) -> str:
        return self.name + write_index(self.index)


def write_index(index: Index) -> str:
    """The index as it stands behind a name: [1,:,0], or nothing."""
    if not index:
        return ""
    return "[" + ",".join(map(_write_place, index)) + "]"


def _write_place(place: int | slice) -> str:
    if isinstance(place, int):
        return str(place)
    start, stop = ("" if end is None else str(end) for end in (place.start, place.stop))
    return f"{start}:{stop}"


def read_address(text: str) -> Address:
    """The address a text spells; an AddressError if it spells none."""
    match = _ADDRESS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise AddressError(
            _("this is not an address"),
            expected=_("a name such as logits or block.0.attn.scores[1,2,0]"),
            found=repr(text),
        )
    name, inside = match.groups()
    if inside is None:
        return Address(name)
    return Address(name, tuple(_read_place(part, text) for part in inside.split(",")))


def _read_place(part: str, text: str) -> int | slice:
    match = _PLACE.fullmatch(part)
    if match is None:
        raise AddressError(
            _("this is not an index"),
            where=text,
            expected=_("whole numbers and slices, such as [0,2] or [:,1:3]"),
            found=repr(part),
        )
    whole, start, stop = match.groups()
    if whole is not None:
        return int(whole)
    return slice(int(start) if start else None, int(stop) if stop else None)


def within(address: Address, shape: tuple[int, ...]) -> Index:
    """The index with every place checked against the shape and counted from the start."""
    index = address.index
    if len(index) > len(shape):
        raise AddressError(
            _("too many places in the index"),
            where=str(address),
            expected=_("at most {count}, the shape is {shape}").format(
                count=len(shape), shape=" × ".join(map(str, shape))
            ),
            found=str(len(index)),
        )
    checked: list[int | slice] = []
    for place, size in zip(index, shape, strict=False):
        if isinstance(place, slice):
            checked.append(place)
        elif -size <= place < size:
            checked.append(place % size)
        else:
            raise AddressError(
                _("the index lies outside the step"),
                where=str(address),
                expected=_("a place from 0 to {last}, the shape is {shape}").format(
                    last=size - 1, shape=" × ".join(map(str, shape))
                ),
                found=str(place),
            )
    return tuple(checked)

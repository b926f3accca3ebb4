"""Names with an index, in which tokens may stand for places: probs[3,mat], weights[0,on,cat].

Along the vocabulary a word is its id; along the positions it is where it stands in the text.  A
word is put in quotes where it holds a comma or a bracket, or spells a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from byhand.address import Address, Index, read_address, within
from byhand.checking.matching.texts import Row
from byhand.errors import AddressError
from byhand.language import _
from byhand.model import Model

POSITIONS = ("pos", "query", "key")
VOCABULARY = "vocab"
_NAME = re.compile(r"\s*(?P<name>[^\[\]]*?)\s*(?:\[(?P<inside>.*)\])?\s*", re.DOTALL)
_PLACE = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^,"'\[\]]*))\s*""")
_NUMBERS = re.compile(r"\s*[-+]?[0-9]*\s*(?::\s*[-+]?[0-9]*\s*)?")


@dataclass(frozen=True, slots=True)
class Word:
    """A token in an index."""

    text: str


@dataclass(frozen=True, slots=True)
class Named:
    """A name as claims have it, with the places of its index."""

    name: str
    places: tuple[int | slice | Word, ...] = ()


def read_name(text: str) -> Named:
    """The name and the index of a claim; an AddressError if the index cannot be read."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise AddressError(
            _("this is not an address"),
            expected=_("a name such as logits or block.0.attn.scores[1,2,0]"),
            found=repr(text[:80]),
        )
    if match["inside"] is None:
        return Named(match["name"])
    return Named(match["name"], tuple(_places(match["inside"], text)))


def _places(inside: str, text: str) -> list[int | slice | Word]:
    found: list[int | slice | Word] = []
    at = 0
    while True:
        match = _PLACE.match(inside, at)
        if match is None or (match.end() < len(inside) and inside[match.end()] != ","):
            raise AddressError(
                _("this is not an index"),
                where=text[:80],
                expected=_("whole numbers, slices and tokens, such as [0,2], [:,1:3] or [-1,cat]"),
                found=repr(inside[:40]),
            )
        found.append(_place(match, text))
        if match.end() == len(inside):
            return found
        at = match.end() + 1


def _place(match: re.Match[str], text: str) -> int | slice | Word:
    bare = match["bare"]
    if bare is None:
        return Word(match["single"] if match["double"] is None else match["double"])
    if bare.strip() and not _NUMBERS.fullmatch(bare):
        return Word(bare.strip())
    return read_address(f"x[{bare}]").index[0]  # raises where nothing is there


def index_of(
    named: Named, axes: Sequence[str], shape: tuple[int, ...], row: Row, model: Model
) -> Index:
    """The index in numbers, each place inside the shape; an AddressError where it is not."""
    places: list[int | slice] = []
    for at, place in enumerate(named.places):
        if isinstance(place, Word):
            place = _looked_up(place, named, axes[at] if at < len(axes) else "", row, model)
        places.append(place)
    checked = within(Address(named.name, tuple(places)), shape)
    return tuple(
        slice(*place.indices(size)[:2]) if isinstance(place, slice) else place
        for place, size in zip(checked, shape, strict=False)
    )


def _looked_up(word: Word, named: Named, axis: str, row: Row, model: Model) -> int:
    if axis not in (VOCABULARY, *POSITIONS):
        raise AddressError(
            _("there are no tokens along this axis"),
            where=named.name,
            expected=_("a whole number or a slice along {axis}").format(axis=axis or _("nothing")),
            found=repr(word.text[:40]),
        )
    id = model.vocabulary.id(word.text)
    if axis == VOCABULARY:
        return id
    found = [place for place, token in enumerate(row.tokens) if token == id]
    if len(found) != 1:
        raise AddressError(
            _("{token} does not name one position").format(token=repr(word.text[:40])),
            where=named.name,
            expected=_("a token that is in the text once, or the number of the position"),
            found=_("positions {places}").format(places=", ".join(map(str, found)))
            if found
            else _("no such token in the text"),
        )
    return row.before + found[0]

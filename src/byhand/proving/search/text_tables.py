"""The texts of a region as arrays: one row a text, and the tree of their common prefixes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.proving.domain import Place, Region, Whole

Ids = npt.NDArray[np.int64]
NONE = -1  # no token
DRAWN = 4096  # assignments from which texts are sampled


@dataclass(frozen=True)
class Texts:
    """Texts of one length, sorted by their tokens; `values` are those of the variables."""

    names: tuple[str, ...]
    values: Ids  # (text, variable)
    tokens: Ids  # (text, position)

    def __len__(self) -> int:
        return len(self.tokens)

    def assigned(self, text: int) -> dict[str, int]:
        """The values of the variables of one text."""
        return dict(zip(self.names, self.values[text].tolist(), strict=True))

    def all_assigned(self) -> Iterator[dict[str, int]]:
        """The values of the variables, text by text."""
        for row in self.values.tolist():
            yield dict(zip(self.names, row, strict=True))

    @cached_property
    def branches(self) -> Ids:
        """For each text, the first position at which it differs from the text before it."""
        found = np.zeros(len(self.tokens), dtype=np.int64)
        if len(found) > 1:
            differ = self.tokens[1:] != self.tokens[:-1]
            found[1:] = np.where(differ.any(axis=1), differ.argmax(axis=1), self.tokens.shape[1])
        return found


def texts_of(region: Region) -> Texts:
    """Every text of a region.  Its box must fit into memory."""
    names = tuple(region.allowed)
    sides = [np.array(region.allowed[name], dtype=np.int64) for name in names]
    values = np.empty((region.box, len(names)), dtype=np.int64)
    for place, side in enumerate(np.meshgrid(*sides, indexing="ij") if sides else []):
        values[:, place] = side.ravel()
    return _texts(region, names, values)


def sampled(region: Region, count: int, seed: int = 0) -> Texts:
    """Up to so many texts of a region, at random.  Where most values have no text, they are few."""
    chance = np.random.default_rng(seed)
    names = tuple(region.allowed)
    values = np.empty((DRAWN, len(names)), dtype=np.int64)
    for place, name in enumerate(names):
        values[:, place] = chance.choice(region.allowed[name], DRAWN)
    return _texts(region, names, values, most=count)


def joined(parts: Sequence[Texts]) -> tuple[Texts, Ids]:
    """The texts of several regions of one shape, sorted, and the region that each comes from."""
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    values = np.concatenate([part.values for part in parts])
    tokens = np.concatenate([part.tokens for part in parts])
    order = np.lexsort(tokens.T[::-1])
    return Texts(parts[0].names, values[order], tokens[order]), owners[order]


def _texts(region: Region, names: tuple[str, ...], values: Ids, most: int | None = None) -> Texts:
    """The texts of some assignments, sorted; those without a text are left out."""
    column = {name: place for place, name in enumerate(names)}
    met = np.ones(len(values), dtype=bool)
    for condition in region.shape.conditions:
        met &= _numbers(condition, values, column) >= 0
    tokens = np.empty((len(values), len(region.shape.places)), dtype=np.int64)
    for position, place in enumerate(region.shape.places):
        if isinstance(place.value, Whole):
            tokens[:, position] = _tokens(place, _numbers(place.value, values, column))
            met &= tokens[:, position] != NONE
    values, tokens = values[met][:most], tokens[met][:most]
    for position, place in enumerate(region.shape.places):
        if not isinstance(place.value, Whole):
            function = place.value.function
            rows = (dict(zip(names, row, strict=True)) for row in values.tolist())
            tokens[:, position] = [place.tokens[int(function(assigned))] for assigned in rows]
    order = np.lexsort(tokens.T[::-1])
    return Texts(names, values[order], tokens[order])


def _numbers(number: Whole, values: Ids, column: dict[str, int]) -> Any:
    """A whole number of each text.  Where int64 is too short, Python's integers are not."""
    most = np.abs(values).max(axis=0, initial=0).tolist()
    size = abs(number.constant) + sum(abs(f) * most[column[name]] for name, f in number.factors)
    kind: Any = np.int64 if size < 2**62 else object
    found = np.full(len(values), number.constant, dtype=kind)
    for name, factor in number.factors:
        found += factor * values[:, column[name]].astype(kind)
    return found


def _tokens(place: Place, numbers: Any) -> Ids:
    """The tokens of a place's numbers; NONE where a number has no token."""
    known = sorted(place.tokens)
    if not known:
        return np.full(len(numbers), NONE, dtype=np.int64)
    table = np.array([*(place.tokens[number] for number in known), NONE], dtype=np.int64)
    numbered = np.array(known, dtype=numbers.dtype)
    where = np.minimum(np.searchsorted(numbered, numbers), len(known) - 1)
    found: Ids = np.where(numbered[where] == numbers, table[where], NONE)
    return found

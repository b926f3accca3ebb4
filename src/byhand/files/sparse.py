"""Sparse weights: `entries: {"0,4": 1, "digit,sum": 1/2}`; every other entry is 0.

A place is written as an index or, where its side has names, as a name: a token, a dimension of the
stream, a unit of an MLP.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from byhand.errors import nearest
from byhand.files.literals import Literals, shape_of
from byhand.files.tree import Node, Table
from byhand.language import _
from byhand.parameters import Parameter
from byhand.weights import Data

_INDEX = re.compile(r"[0-9]{1,9}")

Names = tuple[Sequence[str], ...]  # of each side; empty where it has none


def read_entries(node: Table, parameter: Parameter, names: Names, literals: Literals) -> Data:
    """The tensor of a table with `entries`, and with `else` for all the others."""
    node.only("entries", "else")
    table = node.entries["entries"]
    if not isinstance(table, Table):
        raise table.wrong(_("entries is a table by place"), expected='{"0,4": 1}')
    masked = parameter.name.endswith(".score_table")
    data = np.empty(parameter.shape, dtype=object)
    rest = node.get("else")
    data.fill(Fraction(0) if rest is None else literals.read_entry(rest, masked=masked))
    places = _Places(parameter, names)
    first: dict[tuple[int, ...], str] = {}
    for key, value in table.entries.items():
        place = places.read(key, value)
        if place in first:
            raise value.wrong(
                _("this entry is given twice"),
                expected=_("each entry once"),
                found=f"{first[place]} · {key}",
            )
        first[place] = key
        data[place] = literals.read_entry(value, masked=masked)
    return data


class _Places:
    """Reads places of one tensor, such as "0,4" or "digit,sum"."""

    def __init__(self, parameter: Parameter, names: Names) -> None:
        self.parameter = parameter
        self.names = names
        self.ids = [{name: id for id, name in enumerate(side)} for side in names]

    def read(self, key: str, node: Node) -> tuple[int, ...]:
        words = self._cut(key, node)
        return tuple(self._index(side, word, node) for side, word in enumerate(words))

    def _cut(self, key: str, node: Node) -> list[str]:
        """One word a side.  Only tokens may hold a comma, and no tensor has two sides of them."""
        words = key.split(",")
        spare = len(words) - len(self.names)
        for side, ids in enumerate(self.ids):
            whole = ",".join(words[side : side + spare + 1])
            if spare > 0 and (whole in ids or whole.strip() in ids):
                return [*words[:side], whole, *words[side + spare + 1 :]]
        if spare:
            raise node.wrong(
                _("an entry needs one index for each side of {name}").format(
                    name=self.parameter.name
                ),
                expected=shape_of(self.parameter),
                found=key,
            )
        return words

    def _index(self, side: int, word: str, node: Node) -> int:
        ids, size = self.ids[side], self.parameter.shape[side]
        for spelled in (word, word.strip()):
            if spelled in ids:
                return ids[spelled]
        spelled = word.strip()
        numbered = not any(map(_INDEX.fullmatch, ids))  # else a number is a name, never an index
        if numbered and _INDEX.fullmatch(spelled) and int(spelled) < size:
            return int(spelled)
        sorts = [_("a number from 0 to {last}").format(last=size - 1)] * numbered
        sorts += [_("one of {names}").format(names=", ".join(list(ids)[:12]))] * bool(ids)
        raise node.wrong(
            _("{name} has no such place").format(name=self.parameter.name),
            expected=f"{self.parameter.axes[side]}: {'; '.join(sorts)}",
            found=repr(spelled),
            hint=nearest(spelled, ids) if ids else None,
        )

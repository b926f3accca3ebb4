"""Entries of a matrix that differ: each adds a multiple of one column of X to one output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.checking.differences.difference import Reading
from byhand.checking.differences.product import CHANCE, GOOD, Product, by_chance
from byhand.checking.differences.told import numbered, told
from byhand.checking.suspects.rewritings import EntriesSet
from byhand.language import _

MOST_ENTRIES = 8  # that differ, and in how many columns they are looked for
MOST_IN_A_COLUMN = 3
FACTORS = (0.0, -1.0, 2.0, 0.5, 4.0, 0.25, 10.0, 0.1, 1000.0, 0.001)


@dataclass(frozen=True)
class _Entry:
    row: int
    column: int
    acts: float
    sure: float  # one standard deviation of what it acts as


def entry_readings(product: Product) -> Iterator[Reading]:
    """The few entries that act as other numbers, if they explain every column that differs."""
    columns = product.wrong_columns
    if not 0 < len(columns) <= MOST_ENTRIES or product.count < 3:
        return
    entries: list[_Entry] = []
    for column in columns.tolist():
        found = _in_a_column(product, column)
        if found is None:
            return
        entries += found
    if len(entries) > MOST_ENTRIES:
        return
    known = [_recognised(product, entry) for entry in entries]
    values = [entry.acts if value is None else value for entry, (value, _why) in
              zip(entries, known, strict=True)]  # fmt: skip
    places = tuple((entry.row, int(product.columns[entry.column])) for entry in entries)
    first = entries[0]
    words: dict[str, Any] = {
        "place": product.at(first.row, first.column),
        "acts": told(values[0], first.sure),
        "own": f"{product.matrix[first.row, first.column]:.6g}",
        "why": known[0][1],
        "count": len(entries),
    }
    if len(entries) == 1:
        said = _(
            "it follows if one weight differs: {place} acts as {acts}{why}; the file has {own}"
        )
        change = _("look for what changes {place} when the weights are loaded")
    else:
        said = _("it follows if {count} weights differ: {place} acts as {acts}{why}, the file has "
                 "{own}; and so on")  # fmt: skip
        change = _("look for what changes {place} and {more} when the weights are loaded")
        words["more"] = numbered([product.at(each.row, each.column) for each in entries[1:]])
    fitted = sum(value is None for value, _why in known)
    yield product.rewritten("weight-entry", said, change, EntriesSet(places, tuple(values)),
                            fitted=fitted, unlikely=len(entries), **words)  # fmt: skip


def _in_a_column(product: Product, column: int) -> list[_Entry] | None:
    """The few entries of one column that explain it; None if there are none."""
    room = product.room[:, column]
    aim = product.off[:, column] / room
    terms = product.x / room[:, None]
    sizes = np.square(terms).sum(axis=0)
    whole, left = float(aim @ aim), aim
    chosen: list[int] = []
    for _turn in range(min(MOST_IN_A_COLUMN, (product.count - 1) // 2)):
        with np.errstate(all="ignore"):
            gains = np.where(sizes > 0, np.square(terms.T @ left) / sizes, 0.0)
        gains[chosen] = 0.0
        place = int(gains.argmax())
        before = float(left @ left)
        chosen.append(place)
        part = terms[:, chosen]
        factors, *_rest = np.linalg.lstsq(part, aim, rcond=None)
        left = aim - part @ factors
        freedom = product.count - len(chosen)
        rest = float(left @ left)
        if rest <= GOOD**2 * freedom:
            share = max(rest, freedom) / whole
            rivals = np.sort(gains)[-2] if len(gains) > 1 else 0.0
            alone = before - rivals > 4 * max(rest, freedom)
            if by_chance(len(gains) ** len(chosen), share, freedom) > CHANCE or not alone:
                return None
            sure = 1 / np.sqrt(np.square(part).sum(axis=0))
            return [
                _Entry(row, column, float(product.matrix[row, column] + factor), float(each))
                for row, factor, each in zip(chosen, factors, sure, strict=True)
            ]
    return None


def _recognised(product: Product, entry: _Entry) -> tuple[float | None, str]:
    """What an entry acts as, where that is a number from elsewhere, and where it is from."""
    matrix, row, column = product.matrix, entry.row, entry.column
    own = float(matrix[row, column])
    near = 5 * entry.sure + 1e-6 * abs(own)
    if abs(entry.acts - own) < 4 * near:
        return None, ""
    for factor in FACTORS:
        if abs(factor * own - entry.acts) <= near:
            said = {0.0: _(", it is 0"), -1.0: _(", its sign is changed")}
            return factor * own, said.get(factor, _(", {factor} times as much")).format(
                factor=f"{factor:g}")  # fmt: skip
    inputs, outputs = matrix.shape
    around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    if inputs == outputs:
        around.append((column, row))
    for at in around:
        if 0 <= at[0] < inputs and 0 <= at[1] < outputs and abs(matrix[at] - entry.acts) <= near:
            return float(matrix[at]), _(", which is {at}").format(at=product.at(*at))
    flipped = _flipped(own, entry.acts, near)
    return (None, "") if flipped is None else (flipped[0], _(", bit {bit} is flipped").format(
        bit=flipped[1]))  # fmt: skip


def _flipped(own: float, acts: float, near: float) -> tuple[float, int] | None:
    """The float32 number with one bit changed that is as near as needed, and the bit."""
    bits = np.float32(own).view(np.uint32)
    with np.errstate(all="ignore"):
        all_ = (bits ^ (np.uint32(1) << np.arange(32, dtype=np.uint32))).view(np.float32)
        close = np.flatnonzero(np.abs(all_.astype(np.float64) - acts) <= near)
    if len(close) != 1 or abs(float(all_[close[0]]) - own) < 8 * near:
        return None
    return float(all_[close[0]]), int(close[0])

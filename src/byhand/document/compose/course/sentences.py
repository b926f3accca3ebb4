"""Sentences of the course with their numbers: `{pass address}` becomes what a trace holds there.

`{cat stream.0[3]}` is a number or a row as a book says it, `{cat loss|2}` has two decimals.
`count.…` are counts, `run.…` numbers of a recorded run, `norms pre.12.losses[-1]` of the comparison
of norms.  `{cat exp loss|2}` is e to a number, `{cat ln count.vocabulary|4}` a logarithm.  A
token stands between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from byhand.address import Address, read_address, within, write_index
from byhand.document import words
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.spoken_numbers import NEAR, together
from byhand.document.compose.course.materials import Materials, Reading
from byhand.document.compose.course.syllabus import Both
from byhand.document.compose.forms import PLACES, weight_cell
from byhand.document.compose.tables import entry_of
from byhand.document.numerals import localised
from byhand.language import whole
from byhand.plan import WEIGHT

if TYPE_CHECKING:
    from byhand.models.records import NormsRecord, TrainingRecord

_PLACE = re.compile(r"\{(\w+) ([^{}|]+)(?:\|(\d+))?\}")
_TOKENS = ("tokens", "next")
NORMS = "norms"  # in place of a pass
_FUNCTIONS = {"exp": Decimal.exp, "ln": Decimal.ln}
_SPARE = 20  # decimals of a number before a function is taken of it


def told(said: Both, materials: Materials) -> str:
    """A sentence in the language spoken, with its numbers."""
    return _PLACE.sub(lambda found: _number(found, materials), said.said)


def all_told(several: Iterable[Both], materials: Materials) -> tuple[str, ...]:
    """Several sentences, each with its numbers."""
    return tuple(told(said, materials) for said in several)


def _number(found: re.Match[str], materials: Materials) -> str:
    name, address = found[1], found[2]
    places = None if found[3] is None else int(found[3])
    if name == NORMS:
        return _rounded(_of_norms(materials.norms, address), places)
    return said_at(materials.readings[name], address, places)


def said_at(reading: Reading, address: str, places: int | None = None) -> str:
    """What a pass holds at an address, for a sentence."""
    function, _space, inside = address.partition(" ")
    if inside:
        number = _FUNCTIONS[function](_precisely(reading, inside))
        return NEAR + localised(f"{number:.{PLACES if places is None else places}f}")
    if address.startswith("count."):
        return whole(reading.counts[address])
    if address.startswith("run."):
        assert reading.record is not None
        return _rounded(_of_run(reading.record, address), places)
    edition = reading.worked
    if address.startswith(WEIGHT):
        return _weight(edition, address)
    wanted = read_address(address)
    if wanted.name in _TOKENS:
        return f"`{token_at(edition, address)}`"
    worked = edition.trace.worked(wanted)
    index = within(wanted, worked.step.shape)
    if not index and worked.step.shape == (1,):
        index = (0,)
    if len(index) == len(worked.step.shape):
        return _entry(edition, address, index, places)
    rest = [(*index, column) for column in range(worked.step.shape[-1])]
    return together([_entry(edition, address, at, places) for at in rest])


def _entry(edition: Edition, address: str, index: tuple[Any, ...], places: int | None) -> str:
    worked = edition.trace.worked(read_address(address))
    cell = edition.showing.cell(worked, index)
    if places is None and cell.register == "named" and edition.showing.by_decimals:
        places = PLACES  # the form would be long
    if places is None or cell.masked:
        return edition.showing.said(worked, index)
    text = edition.trace.places(worked.address + write_index(index), places)
    if cell.register == "exact" and worked.at(index) == Fraction(text):
        return localised(text.rstrip("0").rstrip(".") or "0")
    return NEAR + localised(text)


def _precisely(reading: Reading, address: str) -> Decimal:
    """A count, or a number of the pass with digits to spare."""
    if address.startswith("count."):
        return Decimal(reading.counts[address])
    return Decimal(reading.worked.trace.places(address, _SPARE))


def token_at(edition: Edition, address: str) -> str:
    """The token at an address of `tokens` or `next`."""
    wanted = read_address(address)
    place = wanted.index[0]
    assert isinstance(place, int)
    if wanted.name == "next":
        predictions = edition.trace.next
        assert predictions is not None
        id = predictions[place].id
        assert id is not None
        return words.token_label(edition.trace.answer(id))
    return words.token_label(edition.trace.token(edition.trace.tokens[place]))


def _weight(edition: Edition, address: str) -> str:
    wanted = read_address(address)
    data = edition.trace.model.weights[wanted.name.removeprefix(WEIGHT)].data
    said = [edition.showing.cell_said(weight_cell(one)) for one in row_of_weights(edition, address)]
    return said[0] if len(_whole_index(wanted, data.shape)) == data.ndim else together(said)


def row_of_weights(edition: Edition, address: str) -> list[Any]:
    """The numbers of a row of a weight, or the one at an address."""
    wanted = read_address(address)
    data = edition.trace.model.weights[wanted.name.removeprefix(WEIGHT)].data
    index = _whole_index(wanted, data.shape)
    if len(index) == data.ndim:
        return [entry_of(data, index)]
    return [entry_of(data, (*index, column)) for column in range(data.shape[-1])]


def _whole_index(wanted: Address, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an address without slices."""
    return tuple(place for place in within(wanted, shape) if isinstance(place, int))


# ------------------------------------------------------------------ recorded runs


def _of_run(record: TrainingRecord, address: str) -> float:
    """A number of a run: `run.losses[0]`, `run.clipped` (how many), `run.levels.uniform`."""
    name, index = _named(address.removeprefix("run."))
    first, _dot, rest = name.partition(".")
    found: Any = record.settings[first] if first in record.settings else getattr(record, first)
    if isinstance(found, Mapping):
        return float(found[rest])
    if isinstance(found, tuple) and index is None:
        return float(max(found) if rest == "largest" else len(found))
    if index is not None:
        found = found[index]
    return float(found[1] if isinstance(found, tuple) else found)


def _of_norms(record: NormsRecord, address: str) -> float:
    """A number of the comparison of norms: `pre.12.losses[-1]`, `rate`, `steps`."""
    name, index = _named(address)
    if index is None:
        return float(getattr(record, name))
    place, depth, kind = name.split(".")
    curve = record.curve(place, int(depth))
    numbers: tuple[float, ...] = getattr(curve, kind)
    return numbers[index]


def _named(text: str) -> tuple[str, int | None]:
    name, _bracket, index = text.partition("[")
    return name, int(index.rstrip("]")) if index else None


def _rounded(number: float, places: int | None) -> str:
    if number == int(number):
        return whole(int(number))
    return localised(f"{number:.4g}" if places is None else f"{number:.{places}f}")

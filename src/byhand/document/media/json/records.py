"""Numbers, tokens and predictions as data for JSON, for every JSON document.

Floats are JSON numbers, the shortest that read back to the same float in their format.  Numbers
that JSON lacks are text: "inf", "-inf", "nan".  An enclosure is {"mid", "rad"}, two decimals as
text, beside its proven digits.

A form that is too long to write is replaced by the address of its entry; the step's formula and
inputs define it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, TextIO

import numpy as np

from byhand.document.compose.forms import Forms, enclosed_cell, floats, is_letter, letters_in
from byhand.expression import write
from byhand.model import Model
from byhand.numbers.base import ABSENT, Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.tokens import Source
from byhand.tracing import Trace
from byhand.worked import Missing

PLACES = 10  # decimals beside a form
GUARD = 3  # extra digits of a midpoint, so that its rounding adds little to the radius


def write_document(
    document: dict[str, Any], to: TextIO, listed: Sequence[str] = ("steps",)
) -> None:
    """Writes a document as JSON, a line for each field; `listed` lists have a line an entry."""
    to.write(_block(document, listed) + "\n")


def _block(record: dict[str, Any], listed: Sequence[str]) -> str:
    fields = []
    for key, value in record.items():
        text = _json(value)
        if key in listed and value:
            nested = any(name in listed for name in value[0])
            entries = [_block(each, listed) for each in value] if nested else map(_json, value)
            text = "[\n" + ",\n".join(entries) + "\n]"
        fields.append(f"{_json(key)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def beside_data(
    model: Model, source: Source | None, segments: Sequence[int] | None
) -> dict[str, Any]:
    """The source that an encoder reads, with its tokens, and the kinds of tokens; {} of neither."""
    found: dict[str, Any] = {}
    if source is not None:
        words = model.source_vocabulary.tokens
        tokens = [{"id": id, "text": words[id]} for id in source.tokens]
        found["source"] = {"text": source.text, "tokens": tokens}
    if segments is not None:
        found["segments"] = list(segments)
    return found


class Records:
    """Writes the numbers of one trace; the letters they use are defined at the end."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.forms = Forms(trace.numbers, PLACES, trace.digits)
        self.forms.label(trace)
        self.used: dict[str, None] = {}  # letters, in the order of their use

    def token(self, id: int | None) -> dict[str, Any] | None:
        """The word of an output with its id."""
        return None if id is None else {"id": id, "text": self.trace.answer(id)}

    def tokens(self) -> list[dict[str, Any]]:
        """The tokens of the text."""
        return [{"id": id, "text": self.trace.token(id)} for id in self.trace.tokens]

    def beside(self) -> dict[str, Any]:
        """What is read beside the text: the source of an encoder, the kinds of tokens."""
        return beside_data(self.trace.model, self.trace.source, self.trace.segments)

    def number(self, entry: Any, address: str) -> dict[str, Any]:
        """One number with its address."""
        value, decimal = self.value(entry, address)
        return {"address": address, "value": value, "decimal": decimal}

    def bare(self, entry: Any) -> dict[str, Any] | None:
        """One number without an address; None if there is none."""
        if entry is None:
            return None
        value, decimal = self.value(entry, None)
        return {"value": value, "decimal": decimal}

    def value(self, entry: Any, address: str | None) -> tuple[Any, str | None]:
        """(value, decimal) of an entry, as data for JSON."""
        if entry is ABSENT:
            return None, None
        if isinstance(entry, Enclosure):
            return enclosure_data(entry, self.forms.digits)
        if floats(np.asarray(entry)):
            return float_data(np.asarray(entry)), None
        if self.forms.writer is None:
            text = self.forms.text(entry)
            return text, text
        if self.trace.numbers.register(entry) == "enclosed":
            return _interval_data(*entry.interval(PLACES)), None
        tree = self.forms.in_place(entry)
        if tree is None or is_letter(tree):
            return address, entry.decimal(PLACES)
        self.used.update(dict.fromkeys(letters_in(tree)))
        return write(tree), entry.decimal(PLACES)

    def letters(self) -> dict[str, Any]:
        """The letters used so far, and their definitions."""
        return {
            letter.name: {"definition": write(letter.definition), "decimal": letter.decimal}
            for letter in self.forms.definitions(list(self.used))
        }

    def next(self) -> list[dict[str, Any] | None] | None:
        """The prediction after every position."""
        found = self.trace.next
        if found is None:
            return None
        return [self.prediction(position, prediction) for position, prediction in enumerate(found)]

    def prediction(self, position: int, found: Prediction | None) -> dict[str, Any] | None:
        """The prediction after a position; None if unknown."""
        if found is None:
            return None
        return {
            "position": position,
            "token": None if found.id is None else self.trace.answer(found.id),
            "id": found.id,
            "margin": self.bare(found.margin),
            "proven": found.proven,
            "tied": list(found.tied),
            **({"candidates": list(found.candidates)} if found.id is None else {}),
        }


def enclosure_data(entry: Enclosure, digits: int) -> tuple[dict[str, str], str | None]:
    """(midpoint and radius, proven digits); None for the digits if not one is proven."""
    middle, radius = entry.interval(digits + GUARD)
    shown = enclosed_cell(entry, digits).decimal if entry.exact else entry.decimal(digits)
    proven = None if shown is None or "±" in shown else shown
    return _interval_data(middle, radius), proven


def _interval_data(middle: str, radius: str) -> dict[str, str]:
    return {"mid": middle, "rad": "inf" if radius == "∞" else radius}


def float_data(array: Any) -> Any:
    """Floats as nested lists; None where masked."""
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(array).flat
        seen = zip(array.data.flat, hidden, strict=True)
        flat: list[Any] = [None if masked else _number(x) for x, masked in seen]
    else:
        flat = [_number(x) for x in array.flat]
    for size in reversed(array.shape):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat[0]


def _number(entry: Any) -> float | str | None:
    """The shortest decimal that reads back to the float; its name if it is not finite."""
    return number(float(str(entry)))


def number(value: float | None) -> float | str | None:
    """A rounded number; its name if JSON lacks it."""
    if value is None:
        return None
    return float(value) if isfinite(value) else str(float(value))


def plain(found: Any) -> Any:
    """Records of rounded numbers, as data for JSON."""
    if is_dataclass(found) and not isinstance(found, type):
        return picked(found, *(field.name for field in fields(found)))
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    if isinstance(found, bool) or found is None or isinstance(found, str | int):
        return found
    return number(found)


def picked(found: Any, *names: str) -> dict[str, Any]:
    """Some attributes of an object, each under its name."""
    return {name: plain(getattr(found, name)) for name in names}


def missing(found: Missing | None) -> dict[str, Any] | None:
    """Why there is no number, as in the trace's document; None if there is one."""
    return None if found is None else picked(found, "kind", "cause")

"""Trace → the JSON document of `byhand trace --json`: every number, with its form and decimals.

Floats are JSON numbers, the shortest that read back to the same float in their format; what JSON
has no number for is text: "inf", "-inf", "nan".  An enclosure is {"mid", "rad"}, two decimals as
text, with its proven digits beside.

A form that is too long to write is told by the address of its own entry: the step's formula and
reads say how it comes about.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import isfinite
from typing import Any, TextIO

import numpy as np

from byhand.address import write_index
from byhand.document.compose.forms import Forms, enclosed_cell, is_letter, letters_in
from byhand.expression import write
from byhand.numbers.base import ABSENT, Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.plan import Plan, Step
from byhand.tracing import Trace, Worked

PLACES = 10  # decimals beside a form
GUARD = 3  # digits of a middle beyond those asked for, so that its rounding adds little to a radius


def write_json(trace: Trace, to: TextIO, only: Iterable[str] = (), names: str = "byhand") -> None:
    """Writes the document, one line a step, with the steps' names in some style."""
    document = document_of(trace, only)
    document["steps"] = in_style(document["steps"], trace.plan, names)
    write_document(document, to)


def write_plan_json(
    plan: Plan, to: TextIO, only: Iterable[str] = (), names: str = "byhand"
) -> None:
    """Writes a plan alone: its steps without values."""
    wanted = tuple(only)
    shown = set(plan.matching(wanted)) if wanted else {step.address for step in plan}
    steps = in_style([step_record(s) for s in plan if s.address in shown], plan, names)
    write_document({"model": plan.spec.name, "length": plan.length, "steps": steps}, to)


def document_of(trace: Trace, only: Iterable[str] = ()) -> dict[str, Any]:
    """The document as Python data."""
    data = TraceData(trace)
    wanted = tuple(only)
    shown = set(trace.plan.matching(wanted)) if wanted else set(trace.steps)
    steps = [data.step(worked) for worked in trace.values() if worked.address in shown]
    next, loss = data.next(), data.loss()
    return {
        "model": trace.model.name,
        "numbers": trace.numbers.name,
        **proof_data(trace),
        "tokens": [{"id": id, "text": trace.token(id)} for id in trace.tokens],
        "letters": data.letters(),
        "steps": steps,
        "next": next,
        "loss": loss,
    }


def proof_data(trace: Trace) -> dict[str, Any]:
    """Of proven digits: how many were asked for, the precision it took, what was not proven."""
    proof = trace.proof
    if proof is None:
        return {}
    return {
        "digits": proof.digits,
        "bits": proof.bits,
        "undecided": {
            "count": proof.count,
            "first": [
                {
                    "address": one.address,
                    "asked": one.asked,
                    "enclosure": enclosure_data(one.enclosure, proof.digits)[0],
                    "candidates": list(one.candidates),
                }
                for one in proof.undecided
            ],
        },
        "by_exact": list(proof.by_exact),
    }


def in_style(steps: list[dict[str, Any]], plan: Plan, style: str) -> list[dict[str, Any]]:
    """The steps under their names in a style; byhand's own stands beside as "byhand"."""
    if style == "byhand":
        return steps
    called = plan.in_style(style)
    return [
        {
            **step,
            "address": called[step["address"]],
            "byhand": step["address"],
            "reads": [called.get(read, read) for read in step["reads"]],
        }
        for step in steps
    ]


def step_record(step: Step) -> dict[str, Any]:
    """What a step is, without its value."""
    return {
        "address": step.address,
        "op": step.op,
        "reads": list(step.reads),
        "axes": list(step.axes),
        "shape": list(step.shape),
        "formula": step.formula,
    }


def write_document(document: dict[str, Any], to: TextIO) -> None:
    """Writes a document as JSON, one line a step."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    to.write("{")
    for place, (key, value) in enumerate(document.items()):
        to.write(",\n" if place else "\n")
        if key == "steps" and value:
            lines = ",\n".join(map(text, value))
            to.write(f"{text(key)}: [\n{lines}\n]")
        else:
            to.write(f"{text(key)}: {text(value)}")
    to.write("\n}\n")


class TraceData:
    """Writes the steps and numbers of one trace; the letters they use are told at the end."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.forms = Forms(trace.numbers, PLACES, trace.digits)
        self.forms.label(trace)
        self.used: dict[str, None] = {}  # letters, in the order of their use

    def step(self, worked: Worked) -> dict[str, Any]:
        record = step_record(worked.step)
        record["register"] = worked.register
        if worked.missing is not None:
            missing = {"kind": worked.missing.kind, "cause": worked.missing.cause}
            return {**record, "value": None, "decimal": None, "missing": missing}
        if worked.step.op == "argmax":
            return {**record, "value": [found.id for found in worked.value]}
        if worked.whole:
            value = worked.value
            return {**record, "value": list(value) if isinstance(value, tuple) else value}
        if floats(worked.array):
            return {**record, "value": float_data(worked.array), **self.notes(worked)}
        uniform = worked.numbers.uniform is not None
        if not uniform and len(registers_of(worked)) > 1:
            record["registers"] = _nested(worked, worked.register_at)
        entries = {
            index: self.value(entry, worked.address + write_index(index))
            for index, entry in worked.entries()
        }
        record["value"] = _nested(worked, lambda index: entries[index][0])
        record["decimal"] = _nested(worked, lambda index: entries[index][1])
        return {**record, **self.notes(worked)}

    def notes(self, worked: Worked) -> dict[str, Any]:
        notes = [{"kind": note.kind, "index": list(note.index)} for note in worked.notes]
        return {"notes": notes} if notes else {}

    def value(self, entry: Any, address: str | None) -> tuple[Any, str | None]:
        """(value, decimal) of an entry as JSON has them."""
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
        return {
            letter.name: {"definition": write(letter.definition), "decimal": letter.decimal}
            for letter in self.forms.definitions(list(self.used))
        }

    def next(self) -> list[dict[str, Any]] | None:
        found = self.trace.next
        if found is None:
            return None
        return [self.prediction(position, prediction) for position, prediction in enumerate(found)]

    def prediction(self, position: int, found: Prediction) -> dict[str, Any]:
        margin = None
        if found.margin is not None:
            value, decimal = self.value(found.margin, None)
            margin = {"value": value, "decimal": decimal}
        return {
            "position": position,
            "token": None if found.id is None else self.trace.token(found.id),
            "id": found.id,
            "margin": margin,
            "proven": found.proven,
            "tied": list(found.tied),
            **({"candidates": list(found.candidates)} if found.id is None else {}),
        }

    def loss(self) -> dict[str, Any] | None:
        if self.trace.loss is None or self.trace.target is None:
            return None
        value, decimal = self.value(self.trace.steps["loss"].at((0,)), "loss[0]")
        return {"target": self.trace.token(self.trace.target), "value": value, "decimal": decimal}


def registers_of(worked: Worked) -> set[str]:
    """The registers that entries of a step have."""
    found = (worked.register_at(index) for index, _entry in worked.entries())
    return {register for register in found if register is not None}


def enclosure_data(entry: Enclosure, digits: int) -> tuple[dict[str, str], str | None]:
    """(middle and radius, proven digits): as many as are proven; None where not one is."""
    middle, radius = entry.interval(digits + GUARD)
    shown = enclosed_cell(entry, digits).decimal if entry.exact else entry.decimal(digits)
    proven = None if shown is None or "±" in shown else shown
    return _interval_data(middle, radius), proven


def _interval_data(middle: str, radius: str) -> dict[str, str]:
    return {"mid": middle, "rad": "inf" if radius == "∞" else radius}


def floats(array: Any) -> bool:
    """Whether these are floats, not exact values or decimals worked out by hand."""
    return isinstance(array, np.ndarray) and array.dtype != np.dtype(object)


def float_data(array: Any) -> Any:
    """Floats as JSON has them, in lists of lists; None where masked."""
    if isinstance(array, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(array).flat
        seen = zip(array.data.flat, hidden, strict=True)
        flat: list[Any] = [None if masked else _number(x) for x, masked in seen]
    else:
        flat = [_number(x) for x in array.flat]
    for size in reversed(array.shape):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat[0]


def _number(entry: Any) -> float | str:
    """The shortest decimal that reads back to the float; its name where it is not finite."""
    number = float(str(entry))
    return number if isfinite(number) else str(number)


def _nested(worked: Worked, at: Any) -> Any:
    """A list of lists with what `at` says of each index."""

    def level(index: tuple[int, ...]) -> Any:
        if len(index) == len(worked.step.shape):
            return at(index)
        return [level((*index, i)) for i in range(worked.step.shape[len(index)])]

    return level(())

"""What manifest.json says: which facts of a trace stand beside its numbers, and under what names.

The numbers themselves are in values.safetensors, so nothing here grows with them: a step of a
large model costs a few lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from byhand.document.compose.forms import DIGITS
from byhand.document.media.json.records import enclosure_data, float_data
from byhand.document.media.json.trace import proof_data, step_record
from byhand.errors import InputError
from byhand.golden.layout import Form
from byhand.language import _
from byhand.numbers.base import Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.plan import Plan
from byhand.tracing import Trace, Worked
from byhand.version import __version__

FORMAT, VERSION = "byhand trace", 1
MANIFEST, VALUES, EXACT = "manifest.json", "values.safetensors", "exact.json"
RADIUS = ".rad"  # behind the name of a step: the tensor of its radii
BYHAND = "byhand"  # the style of names that needs no translation


# ------------------------------------------------------------------ names


class Names:
    """What each step is called in the files: its address, or its name in another style."""

    def __init__(self, plan: Plan, style: str = BYHAND) -> None:
        self.style = style
        self._names = plan.in_style(style)

    def __getitem__(self, address: str) -> str:
        """The name of a step; what has none in this style, and every weight, keeps its address."""
        return self._names.get(address, address)


# ------------------------------------------------------------------ facts


def heading(trace: Trace, names: Names, exact: bool) -> dict[str, Any]:
    """What is known before any number is."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "byhand": __version__,
        "text": trace.text,
        "model": trace.model.name,
        "numbers": trace.numbers.name,
        **proof_data(trace),
        "names": names.style,
        "exact": EXACT if exact else None,
        "tokens": [{"id": id, "text": trace.token(id)} for id in trace.tokens],
    }


def aliases(plan: Plan, steps: Iterable[str], names: Names) -> dict[str, str]:
    """The second names of the steps that are there."""
    there = set(steps)
    return {alias: names[to] for alias, to in plan.aliases.items() if to in there}


def step_facts(worked: Worked) -> dict[str, Any]:
    """A step of which every entry has the same register: all but its numbers."""
    record = step_record(worked.step)
    record["register"] = worked.register
    if worked.missing is not None:
        record["missing"] = {"kind": worked.missing.kind, "cause": worked.missing.cause}
    if worked.notes:
        record["notes"] = [{"kind": n.kind, "index": list(n.index)} for n in worked.notes]
    return record


def finished(
    record: Mapping[str, Any], form: Form | None, names: Names, radius: bool = False
) -> dict[str, Any]:
    """The record under its name in the files, with the format of its numbers; and, where it has
    one, the name of the tensor of its radii."""
    address = record["address"]
    styled = {} if names.style == BYHAND else {"byhand": address}
    return {
        **record,
        "address": names[address],
        **styled,
        "reads": [names[read] for read in record["reads"]],
        "dtype": None if form is None else str(form.dtype),
        **({"radius": names[address] + RADIUS} if radius else {}),
    }


def predictions(trace: Trace) -> list[dict[str, Any]] | None:
    """The next token after each position, its margin as a float or an enclosure."""
    if trace.next is None:
        return None
    return [_prediction(trace, place, found) for place, found in enumerate(trace.next)]


def _prediction(trace: Trace, position: int, found: Prediction) -> dict[str, Any]:
    return {
        "position": position,
        "token": None if found.id is None else trace.token(found.id),
        "id": found.id,
        "margin": None if found.margin is None else _number(found.margin, trace.digits),
        "proven": found.proven,
        "tied": list(found.tied),
        **({"candidates": list(found.candidates)} if found.candidates else {}),
    }


def loss(trace: Trace) -> dict[str, Any] | None:
    """The loss as a float or an enclosure, where there is a target."""
    if trace.loss is None or trace.target is None:
        return None
    return {
        "target": trace.token(trace.target),
        **_number(trace.steps["loss"].at((0,)), trace.digits),
    }


def _number(value: Any, digits: int | None) -> dict[str, Any]:
    """A float or an enclosure as `byhand trace --json` writes it."""
    if isinstance(value, Enclosure):
        middle, decimal = enclosure_data(value, digits or DIGITS)
        return {"value": middle, "decimal": decimal}
    return {"value": float_data(np.asarray(value)), "decimal": None}


# ------------------------------------------------------------------ there and back


def as_json(document: Mapping[str, Any]) -> bytes:
    """The text of a JSON file of ours: one line a step, a token or a value."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def part(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n" + ",\n".join(f"  {text(item)}" for item in value) + "\n ]"
        if isinstance(value, dict) and value:
            lines = (f"  {text(key)}: {text(item)}" for key, item in value.items())
            return "{\n" + ",\n".join(lines) + "\n }"
        return text(value)

    parts = ",\n".join(f" {text(key)}: {part(value)}" for key, value in document.items())
    return f"{{\n{parts}\n}}\n".encode()


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; an InputError where there is none."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise not_a_trace(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:  # broken JSON, or no text at all
        raise not_a_trace(path, str(error)) from None
    if not isinstance(data, dict):
        raise not_a_trace(path, _("not an object"))
    return data


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, whatever its format and version are."""
    manifest = read_json(folder / MANIFEST)
    if "format" not in manifest:
        raise not_a_trace(folder / MANIFEST, _("no format"))
    return manifest


def is_trace(folder: Path) -> bool:
    """Whether a folder holds a trace, of whatever version."""
    try:
        return bool(manifest_of(folder)["format"] == FORMAT)
    except InputError:
        return False


def not_a_trace(path: Path, found: str) -> InputError:
    """The error for a file that is not what byhand writes."""
    return InputError(
        _("this is not a saved trace"),
        where=str(path),
        expected=_("a folder written by byhand trace --out"),
        found=found,
    )

"""The contents of manifest.json: facts about a trace, and the names of its steps.

The numbers themselves are in values.safetensors, so a step of a large model takes a few lines here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from byhand.document.media.json.records import beside_data
from byhand.document.media.json.trace import TraceData, proof_data, step_record
from byhand.files.saved import EXACT, FORMAT, VERSION
from byhand.files.tensor_file import Form
from byhand.plan import Plan
from byhand.tracing import Trace
from byhand.version import __version__
from byhand.worked import Worked

RADIUS = ".rad"  # suffix of the tensor of a step's radii
BYHAND = "byhand"  # the style of names that needs no translation


# ------------------------------------------------------------------ names


class Names:
    """The names of the steps in the files: addresses, or names in another style."""

    def __init__(self, plan: Plan, style: str = BYHAND) -> None:
        self.style = style
        self._names = plan.in_style(style)

    def __getitem__(self, address: str) -> str:
        """The name of a step; weights and steps without a name keep their address."""
        return self._names.get(address, address)


# ------------------------------------------------------------------ facts


def heading(trace: Trace, names: Names, exact: bool) -> dict[str, Any]:
    """The facts that are known before the steps are worked out."""
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
        **beside_data(trace.model, trace.source, trace.segments),
    }


def outcome(trace: Trace) -> dict[str, Any]:
    """The next token after each position and the loss, in floats or enclosures."""
    data = TraceData(trace)
    return {"next": data.next(), "loss": data.loss()}


def aliases(plan: Plan, steps: Iterable[str], names: Names) -> dict[str, str]:
    """The aliases of these steps."""
    there = set(steps)
    return {alias: names[to] for alias, to in plan.aliases.items() if to in there}


def step_facts(worked: Worked) -> dict[str, Any]:
    """The facts about a step whose entries all have the same register, without its numbers."""
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
    """The record with the step's name in the files and the format of its numbers; with `radius`,
    also the name of the tensor of its radii."""
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


# ------------------------------------------------------------------ as text


def as_json(document: Mapping[str, Any]) -> bytes:
    """The bytes of a JSON file with one line for each step, token or value."""

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

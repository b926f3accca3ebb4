"""The journal of a search: every cut and every decided case as a line of JSON, as it is found.

A line names its goal and the path to its case: "" is all of the domain, and each cut goes on with
"0" (the variable has one of the values named) or "1" (another one).  A search that was interrupted
goes on from its journal; a torn last line is as if it had not been written.  From the lines the
trees of an outcome are made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np

from byhand.drafts import writing
from byhand.errors import InputError
from byhand.language import _
from byhand.model import Model
from byhand.proving.domain import Region
from byhand.proving.outcome import Leaf, Split, Tree
from byhand.proving.properties import Property

FORMAT = "byhand journal 1"
Line = dict[str, Any]  # goal, at, and: cut, first | by, lead, next, texts, where


class Journal:
    """The lines of a search, kept in memory and, where there is a path, in a file."""

    def __init__(self, property: Property, path: str | Path | None = None) -> None:
        self.property = property
        self.lines: list[dict[str, Line]] = [{} for _goal in property.goals]
        self.path = None if path is None else Path(path)
        self._file: IO[str] | None = None
        if self.path is not None:
            self._open(self.path)

    def _open(self, path: Path) -> None:
        """Reads what is there and opens the file for more."""
        head = {"format": FORMAT, "property": identity(self.property)}
        whole = 0
        if path.exists() and path.stat().st_size:
            whole = self._read(path, head)
        with writing(path):
            self._file = path.open("r+" if whole else "w", encoding="utf-8", newline="\n")
            self._file.seek(whole)
            self._file.truncate()
            if not whole:
                self._write(head)

    def _read(self, path: Path, head: Line) -> int:
        """Takes over the lines of a file; returns the length of those that are whole."""
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        try:
            first, *rest = [json.loads(line) for line in data[:whole].splitlines()] or [None]
            if not isinstance(first, dict) or first.get("format") != FORMAT:
                raise ValueError
            if first == head:
                for line in rest:
                    if line.get("by") != "open":  # which is tried again
                        self.lines[line["goal"]][line["at"]] = line
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise InputError(
                _("this is not the journal of a proof"), where=str(path), expected=FORMAT
            ) from error
        if first != head:
            raise InputError(
                _("this is the journal of another model or property"),
                where=str(path),
                hint=_("give another file, or remove it to begin anew"),
            )
        return whole

    def add(self, lines: Sequence[Line]) -> None:
        """Adds lines; what is written here is there after an interruption."""
        for line in lines:
            self.lines[line["goal"]][line["at"]] = line
            if self._file is not None:
                self._write(line)
        if self._file is not None:
            self._file.flush()

    def _write(self, line: Line) -> None:
        assert self._file is not None
        self._file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def left(self, goal: int, share: float = 1.0) -> Iterator[tuple[str, Any, float]]:
        """The regions of a goal that are neither cut nor decided: their paths, their values, and
        their share of the domain, where the goal has this one."""
        lines = self.lines[goal]
        shares = {"": share}
        for path, region in regions(self.property.goals[goal].shape.whole, lines):
            own = shares.pop(path)
            if path in lines:
                if "cut" in lines[path] and region is not None:
                    parts = region.cut(lines[path]["cut"], tuple(lines[path]["first"]))
                    boxes = [0 if part is None else part.box for part in parts]
                    for which, box in enumerate(boxes):
                        shares[f"{path}{which}"] = own * box / max(1, sum(boxes))
            elif region is None:
                self.add([{"goal": goal, "at": path, "by": "none"}])
            else:
                yield path, region.allowed, own

    def tree(self, goal: int) -> Tree:
        """The tree of a goal; what has no line is open."""
        lines = self.lines[goal]
        made: dict[str, Tree] = {}
        found = list(regions(self.property.goals[goal].shape.whole, lines))
        for path, region in reversed(found):
            line = lines.get(path, {"by": "open"})
            if "cut" in line and region is not None:
                parts = made.pop(path + "0"), made.pop(path + "1")
                made[path] = Split(region, line["cut"], tuple(line["first"]), parts)
            else:
                made[path] = _leaf(region, line)
        return made[""]


def regions(whole: Region | None, lines: Mapping[str, Line]) -> Iterator[tuple[str, Region | None]]:
    """The regions that some lines speak of, each before its parts."""
    todo: list[tuple[str, Region | None]] = [("", whole)]
    while todo:
        path, region = todo.pop()
        yield path, region
        line = lines.get(path)
        if line is not None and "cut" in line and region is not None:
            first, second = region.cut(line["cut"], tuple(line["first"]))
            todo += [(path + "1", second), (path + "0", first)]


def _leaf(region: Region | None, line: Line) -> Leaf:
    if region is None:
        return Leaf(None, "none")
    lead = line.get("lead")
    return Leaf(
        region,
        line["by"],
        None if lead is None else Fraction(lead),
        tuple(line.get("next", ())),
        tuple(line.get("where", ())),
        line.get("texts"),
    )


def identity(property: Property) -> str:
    """What tells a property and its models from all others, as a hexadecimal number."""
    told = sha256(json.dumps(property.source, sort_keys=True, default=str).encode())
    told.update(f"{len(property.goals)} {property.moved}".encode())
    for model in (property.model, property.own):
        told.update(identity_of_model(model).encode())
    return told.hexdigest()


def identity_of_model(model: Model) -> str:
    """What tells a model, its architecture and every weight, from all others."""
    told = sha256(repr(model.spec).encode())
    for name, tensor in model.weights.items():
        told.update(f"{name} {tensor.shape} {tensor.dtype}".encode())
        if tensor.floats:
            told.update(np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8).data)
        else:
            told.update(repr(tensor.data.tolist()).encode())
        tensor.release()
    return told.hexdigest()


def rounded_down(lead: Fraction, digits: int = 4) -> str:
    """A decimal that is at most the lead, with so many significant digits, as text."""
    if lead == 0:
        return "0"
    exponent = len(str(abs(lead.numerator))) - len(str(lead.denominator))
    places = max(0, digits - exponent)
    scaled = lead.numerator * 10**places // lead.denominator  # rounded down, also below 0
    sign, size = "-" * (scaled < 0), abs(scaled)
    if places == 0:
        return f"{sign}{size}"
    text = f"{size:0{places + 1}d}"
    return f"{sign}{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".")

"""Inventories and the list of models as data: `byhand count --json` and `byhand models --json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from byhand.document.media.json.records import plain

if TYPE_CHECKING:
    from byhand.counting import Inventory, Line
    from byhand.model import Model


def inventory_data(inventory: Inventory) -> dict[str, Any]:
    """The inventory as JSON has it."""
    return {
        "model": inventory.model,
        "total": inventory.total,
        "without_biases": inventory.without_biases,
        "norms": inventory.norms,
        "unique": inventory.unique,
        "tied": inventory.tied,
        "shared": [{"name": name, "same_as": owner} for name, owner in inventory.shared],
        "lines": [_line(line) for line in inventory.lines],
        "buffers": [_line(line) for line in inventory.buffers],
        "numbers": inventory.numbers,
    }


def _line(line: Line) -> dict[str, Any]:
    return {**plain(line), "symbols": dict(line.symbols)}


def models_data(found: Iterable[tuple[Model, int]]) -> list[dict[str, Any]]:
    """The models, each with its own text and how many parameters it has."""
    return [
        {"name": m.name, "about": m.about, "text": m.text, "target": m.target, "parameters": n}
        for m, n in found
    ]

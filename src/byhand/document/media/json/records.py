"""What every part of the JSON document is written with: numbers with addresses, and plain ones."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from byhand.document.media.json.trace import TraceData
from byhand.numbers.base import Prediction

if TYPE_CHECKING:
    from byhand.explaining import Explanation
    from byhand.tracing import Missing


class Records:
    """Writes tokens, numbers and predictions of one explanation."""

    def __init__(self, found: Explanation, writer: TraceData | None = None) -> None:
        self.found = found
        self.writer = TraceData(found.trace) if writer is None else writer

    def token(self, id: int | None) -> dict[str, Any] | None:
        return None if id is None else {"id": id, "text": self.found.trace.token(id)}

    def number(self, entry: Any, address: str) -> dict[str, Any]:
        """One number with its address."""
        value, decimal = self.writer.value(entry, address)
        return {"address": address, "value": value, "decimal": decimal}

    def bare(self, entry: Any) -> dict[str, Any] | None:
        """One number that has no address of its own; None where there is none."""
        if entry is None:
            return None
        value, decimal = self.writer.value(entry, None)
        return {"value": value, "decimal": decimal}

    def prediction(self, position: int, found: Prediction | None) -> dict[str, Any] | None:
        return None if found is None else self.writer.prediction(position, found)


def missing(found: Missing) -> dict[str, str]:
    """Why there is no number, as the trace's document says it."""
    return {"kind": found.kind, "cause": found.cause}


def number(value: float | None) -> float | str | None:
    """A rounded number; its name where JSON has no such number."""
    if value is None:
        return None
    return float(value) if isfinite(value) else str(float(value))


def plain(found: Any) -> Any:
    """Records of rounded numbers as JSON has them."""
    if is_dataclass(found) and not isinstance(found, type):
        return {field.name: plain(getattr(found, field.name)) for field in fields(found)}
    if isinstance(found, list | tuple):
        return [plain(each) for each in found]
    if isinstance(found, bool) or found is None or isinstance(found, str | int):
        return found
    return number(found)

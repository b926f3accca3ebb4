"""Values of a log: numbers, ids, pieces of text and lists of them, or an error that says where."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.language import _

LARGEST_ID = 2**31 - 1
SPELLED = {  # JSON has no such numbers, so programs write them as texts
    "nan": float("nan"), "inf": float("inf"), "infinity": float("inf"), "+inf": float("inf"),
    "-inf": float("-inf"), "-infinity": float("-inf"),
}  # fmt: skip
NUMERAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
AS_ID = "token_id:"  # how vLLM writes the id of a token in place of its text


def refuse(where: str, message: str, expected: str, found: object) -> NoReturn:
    """Raises the error of a log that is not as its form should be."""
    raise InputError(message, where=where, expected=expected, found=shown(found))


def malformed(where: str, expected: str, found: object) -> NoReturn:
    """Raises the error of a value of the wrong kind."""
    refuse(where, _("the log is malformed"), expected, found)


def number(value: Any, where: str) -> float | None:
    """A number of a log; None where it is null."""
    if value is None:
        return None
    if isinstance(value, str):  # as programs write numbers that JSON does not know
        value = SPELLED.get(value.strip().lower(), value)
        value = float(value) if isinstance(value, str) and NUMERAL.fullmatch(value) else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        malformed(where, _("a number or null"), value)
    try:
        return float(value)
    except OverflowError:
        malformed(where, _("a number that a float can hold"), value)


def numbers(value: Any, where: str) -> list[float | None]:
    """A list of numbers, or nulls."""
    entries = sequence(value, where, _("a list of numbers"))
    return [number(entry, f"{where}[{place}]") for place, entry in enumerate(entries)]


def token_id(value: Any, where: str) -> int:
    """A token id, which may be written as a text: JSON has only texts as keys."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():  # as tables with gaps keep whole numbers
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_ID:
        malformed(where, _("a token id"), value)
    return value


def token_ids(value: Any, where: str) -> list[int]:
    """A list of token ids."""
    entries = sequence(value, where, _("a list of token ids"))
    return [token_id(entry, f"{where}[{place}]") for place, entry in enumerate(entries)]


def sequence(value: Any, where: str, expected: str | None = None) -> Sequence[Any]:
    """A list."""
    if not isinstance(value, list | tuple):
        malformed(where, expected or _("a list"), value)
    return value


def mapping(value: Any, where: str, expected: str | None = None) -> Mapping[str, Any]:
    """An object."""
    if not isinstance(value, Mapping):
        malformed(where, expected or _("an object"), value)
    return value


def words(value: Any, where: str) -> str:
    """A text."""
    if not isinstance(value, str):
        malformed(where, _("a text"), value)
    return value


def text_or_none(value: Any) -> str | None:
    """The value where it is a text."""
    return value if isinstance(value, str) else None


def same_length(where: str, *named: tuple[str, Sequence[Any]]) -> None:
    """Raises an error unless these lists are equally long."""
    if len({len(entries) for _name, entries in named}) > 1:
        found = ", ".join(f"{name}: {len(entries)}" for name, entries in named)
        refuse(where, _("these lists should be equally long"), _("one entry a token"), found)


def ids_in_pieces(pieces: Sequence[str | bytes]) -> list[int] | None:
    """The ids, where every piece is the id of a token and no text."""
    found = []
    for piece in pieces:
        if not isinstance(piece, str) or not piece.startswith(AS_ID):
            return None
        numeral = piece.removeprefix(AS_ID)
        if not (numeral.isascii() and numeral.isdigit() and len(numeral) <= 10):
            return None
        found.append(int(numeral))
    return found or None

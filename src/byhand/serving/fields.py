"""Readers of JSON values: a text, a place, a flag; an error names the key and what was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from byhand.errors import InputError, nearest
from byhand.language import _

LONGEST_TEXT = 20_000  # characters
MOST_TEXTS = 100  # of a list


def table(data: Any, where: str) -> Mapping[str, Any]:
    """A table, with any keys."""
    if not isinstance(data, dict):
        raise InputError(_("a table is missing"), where=where, expected="{…}", found=_said(data))
    return data


def refuse_others(data: Mapping[str, Any], known: Iterable[str], where: str | None = None) -> None:
    """Raises an InputError if a table has an unknown key."""
    for key in data:
        if key not in known:
            raise InputError(
                _("there is no key {key} here").format(key=repr(key[:60])),
                where=where,
                expected=", ".join(known),
                found=key[:60],
                hint=nearest(key[:60], known),
            )


def missing(key: str, where: str | None = None, expected: str | None = None) -> InputError:
    """The error for a missing key."""
    message = _("the key {key} is missing").format(key=repr(key))
    return InputError(message, where=where, expected=expected)


def text(data: Any, where: str, most: int = LONGEST_TEXT) -> str:
    """A text of at most `most` characters."""
    if not isinstance(data, str):
        raise InputError(
            _("some text is missing"), where=where, expected=_("text"), found=_said(data)
        )
    if len(data) > most:
        raise InputError(
            _("this text is too long"),
            where=where,
            expected=_("at most {count} characters").format(count=f"{most:,}"),
            found=f"{len(data):,}",
        )
    return data


def texts(data: Any, where: str) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(data, list) or not all(isinstance(one, str) for one in data):
        raise impossible(data, where, _("a list of texts"))
    if len(data) > MOST_TEXTS or any(len(one) > LONGEST_TEXT for one in data):
        expected = _("at most {count} of them").format(count=MOST_TEXTS)
        raise impossible(len(data), where, expected)
    return tuple(data)


def place(data: Any, where: str) -> int:
    """A whole number from 0."""
    if isinstance(data, bool) or not isinstance(data, int) or not 0 <= data < 10**9:
        raise impossible(data, where, _("a whole number"))
    return data


def flag(data: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(data, bool):
        raise impossible(data, where, "true, false")
    return data


def word(data: Any, where: str, choices: Iterable[str]) -> str:
    """One of some words."""
    said = text(data, where)
    if said not in choices:
        raise impossible(said, where, ", ".join(choices))
    return said


def impossible(found: Any, where: str, expected: str) -> InputError:
    """The error for a value that is not allowed there."""
    said = str(found)[:60]
    message = _("{found} is not possible here").format(found=said)
    return InputError(message, where=where, expected=expected, found=said)


def _said(data: Any) -> str:
    """The JSON value that was found, for messages."""
    match data:
        case None:
            return _("nothing")
        case str():
            return data[:60] or _("nothing")
        case list():
            return _("a list of {count}").format(count=len(data))
        case dict():
            return _("a table with the keys {keys}").format(
                keys=", ".join(str(key)[:40] for key in list(data)[:8])
            )
    return str(data)[:60]

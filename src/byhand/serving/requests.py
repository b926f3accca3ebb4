"""The keys of a request: each is read once, and what is wrong is said with its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byhand.errors import InputError, nearest
from byhand.language import _
from byhand.serving.states import LONGEST_TEXT, State, read_state

Request = Mapping[str, Any]


def only(request: Request, *known: str) -> None:
    """Refuses any other key than these."""
    for key in request:
        if key not in known:
            raise InputError(
                _("there is no key {key} here").format(key=repr(str(key)[:60])),
                expected=", ".join(known),
                found=str(key)[:60],
                hint=nearest(str(key)[:60], known),
            )


def a_state(request: Request, key: str) -> State:
    """The State under a key."""
    if key not in request:
        raise InputError(_("the key {key} is missing").format(key=repr(key)))
    return read_state(request[key], key)


def a_text(request: Request, key: str) -> str | None:
    """A text, or None where it is not given."""
    value = request.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong(key, _("text"), value)
    if len(value) > LONGEST_TEXT:
        raise _wrong(key, _("at most {count} characters").format(count=f"{LONGEST_TEXT:,}"), "…")
    return value


def needed_text(request: Request, key: str) -> str:
    """A text that must be there."""
    value = a_text(request, key)
    if value is None:
        raise InputError(_("the key {key} is missing").format(key=repr(key)))
    return value


def a_place(request: Request, key: str) -> int | None:
    """A whole number from 0, or None where it is not given."""
    value = request.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise _wrong(key, _("a whole number"), value)
    return value


def a_flag(request: Request, key: str) -> bool:
    """True or false; false where it is not given."""
    value = request.get(key, False)
    if not isinstance(value, bool):
        raise _wrong(key, "true, false", value)
    return value


def some_texts(request: Request, key: str, most: int = 100) -> tuple[str, ...]:
    """A list of texts, empty where it is not given."""
    value = request.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _wrong(key, _("a list of texts"), value)
    if len(value) > most or any(len(one) > LONGEST_TEXT for one in value):
        raise _wrong(key, _("at most {count} of them").format(count=most), len(value))
    return tuple(value)


def _wrong(key: str, expected: str, found: Any) -> InputError:
    return InputError(
        _("{found} is not possible here").format(found=str(found)[:60]),
        where=key,
        expected=expected,
        found=str(found)[:60],
    )

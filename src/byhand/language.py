"""The language of messages.  They are written in English and translated by gettext.

>>> from byhand.language import _, speak
>>> speak("es"); _("hint")
'pista'
>>> speak("en"); _("hint")
'hint'
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from gettext import NullTranslations, translation
from pathlib import Path

LANGUAGES = ("en", "es")
_catalogue = NullTranslations()


def speak(language: str) -> None:
    """Sets the language of all further messages (one of LANGUAGES)."""
    global _catalogue
    folder = Path(__file__).parent / "locale"
    _catalogue = translation("byhand", folder, [language], fallback=True)


def spoken() -> str:
    """The language spoken now: one of LANGUAGES."""
    return _catalogue.info().get("language", "en")[:2] or "en"


@contextmanager
def speaking(which: str | None) -> Iterator[str]:
    """Speaks a language inside the block (None: the one spoken), and afterwards the old one."""
    global _catalogue
    before = _catalogue
    if which is not None:
        speak(which)
    try:
        yield spoken()
    finally:
        _catalogue = before


def preferred() -> str:
    """The language of the user's locale, where byhand speaks it; else English."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(variable):
            return value[:2] if value[:2] in LANGUAGES else "en"
    return "en"


def _(message: str) -> str:
    """The message in the language spoken now."""
    return _catalogue.gettext(message)


def later(message: str) -> str:
    """Marks a message that is translated when it is shown."""
    return message


def amount(count: int, one: str, many: str) -> str:
    """A number with its noun: `one` for a single thing, else `many`, which says {count}."""
    return _(one) if count == 1 else _(many).format(count=whole(count))


def whole(count: int) -> str:
    """A whole number with thousands separated as the language does: 4,096 or 4 096."""
    return f"{count:,}".replace(",", _(","))

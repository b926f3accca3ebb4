"""The language of a book while it is made or shown, and back to the one spoken before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from byhand import language


def spoken() -> str:
    """The language spoken now: en, es."""
    return language._catalogue.info().get("language", "en")[:2] or "en"


@contextmanager
def speaking(which: str | None) -> Iterator[str]:
    """Speaks a language (or goes on with the one spoken) and then the one before again."""
    before = language._catalogue
    if which is not None:
        language.speak(which)
    try:
        yield spoken()
    finally:
        language._catalogue = before

"""Checks of the places asked for, and reports of what the work is for.

A progress sees every step that is worked out.  A `Watcher` also hears what the steps are for: an
explanation works one text out many times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from byhand.errors import AddressError
from byhand.evaluate import Progress
from byhand.language import _


def check_inside(places: Iterable[int], count: int, outside: str, least: int = 0) -> None:
    """Raises an AddressError, `outside`, unless least ≤ place < count for each place."""
    for place in places:
        if not least <= place < count:
            raise AddressError(
                outside,
                expected=_("a place from 0 to {last}").format(last=count - 1),
                found=str(place),
            )


@runtime_checkable
class Watcher(Protocol):
    """A progress that is also told what the steps are for."""

    def doing(self, what: str, done: int, of: int) -> None:
        """Hears that `what` is worked on and that `done` of its `of` pieces are done."""


def tell_doing(progress: Progress | None, what: str, done: int = 0, of: int = 1) -> None:
    """Tells a Watcher what the next steps are for."""
    if isinstance(progress, Watcher):
        progress.doing(what, done, of)

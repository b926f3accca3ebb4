"""What is asked of an explanation: places that must lie inside, and who is told what goes on.

A progress sees every step that is worked out.  One that also is a `Watcher` is told what the steps
are for: an explanation works one text out many times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from byhand.errors import AddressError
from byhand.evaluate import Progress
from byhand.language import _


def check_inside(places: Iterable[int], count: int, outside: str, least: int = 0) -> None:
    """An AddressError, which says what is outside, unless each place is below the count."""
    for place in places:
        if not least <= place < count:
            raise AddressError(
                outside,
                expected=_("a place from 0 to {last}").format(last=count - 1),
                found=str(place),
            )


@runtime_checkable
class Watcher(Protocol):
    """Somebody who wants to know what the steps are for."""

    def doing(self, what: str, done: int, of: int) -> None:
        """`what` is worked on: so many pieces of so many are done."""


def tell_doing(progress: Progress | None, what: str, done: int = 0, of: int = 1) -> None:
    """Says what the next steps are for."""
    if isinstance(progress, Watcher):
        progress.doing(what, done, of)

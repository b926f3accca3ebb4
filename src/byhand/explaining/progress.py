"""What an explanation is busy with, for whoever waits.

A progress sees every step that is worked out.  One that also is a `Watcher` is told what the steps
are for: an explanation works one text out many times.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from byhand.evaluate import Progress


@runtime_checkable
class Watcher(Protocol):
    """Somebody who wants to know what the steps are for."""

    def doing(self, what: str, done: int, of: int) -> None:
        """`what` is worked on: so many pieces of so many are done."""


def tell_doing(progress: Progress | None, what: str, done: int = 0, of: int = 1) -> None:
    """Says what the next steps are for."""
    if isinstance(progress, Watcher):
        progress.doing(what, done, of)

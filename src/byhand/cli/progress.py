"""What is being worked on, told on stderr while it takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from byhand.language import _

if TYPE_CHECKING:
    from byhand.plan import Step

PATIENCE = 0.7  # seconds before anything is told


@contextmanager
def telling() -> Iterator[Callable[[Step], None] | None]:
    """A callback for the steps worked on, which may be told what they are for (`doing`); None where
    nobody sees stderr."""
    if not sys.stderr.isatty():
        yield None
        return
    status = _Status()
    try:
        yield status
    finally:
        status.stop()


class _Status:
    def __init__(self) -> None:
        self.started = time.monotonic()
        self.shown: Any = None
        self.seen: set[str] = set()  # the steps of this pass; a proof may take several
        self.passes = 1
        self.purpose = ""  # what the passes are for, where that was said

    def doing(self, what: str, done: int, of: int) -> None:
        """What the next steps are for, and how much of that is done."""
        self.seen.clear()
        self.passes = 1
        self.purpose = what
        if of > 1:
            self.purpose = _("{what} ({done} of {count})").format(
                what=what, done=f"{done:,}", count=f"{of:,}"
            )

    def step(self, step: Step) -> None:
        if step.address in self.seen:
            self.seen.clear()
            self.passes += 1
        self.seen.add(step.address)
        if self.shown is None and time.monotonic() - self.started > PATIENCE:
            self.shown = _spinner()
            self.shown.start()
        if self.shown is not None:
            text = _("working out {address} (step {count})")
            if self.passes > 1:
                text = _("working out {address} (step {count} of pass {passes})")
            said = text.format(address=step.address, count=len(self.seen), passes=self.passes)
            if self.purpose:
                said = f"{self.purpose}: {said}"
            self.shown.renderable.update(text=said)

    __call__ = step

    def stop(self) -> None:
        if self.shown is not None:
            self.shown.stop()


def _spinner() -> Any:
    """A line on stderr that moves and goes away.  What is printed elsewhere is not touched: rich
    would else send it to stderr as well."""
    from rich.console import Console  # heavy, and only needed when it takes long
    from rich.live import Live
    from rich.spinner import Spinner

    return Live(
        Spinner("dots"),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )

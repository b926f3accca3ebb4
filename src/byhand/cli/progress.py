"""What is being worked on, told on stderr while it takes long: one line, which then goes away.

It is there where a terminal sees it and the work has taken longer than PATIENCE.  Of rich only
what is documented is used here, so that any version will do.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

from byhand.language import _, whole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from byhand.plan import Step

PATIENCE = 0.7  # seconds before anything is told
PACE = 0.1  # seconds for which a frame stands
FRAMES = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")  # what moves, and what does where signs are few


@contextmanager
def telling(at_first: str | None = None) -> Iterator[Callable[[Step], None] | None]:
    """A callback for the steps worked on, which may be told what they are for (`doing`); None where
    nobody sees stderr.  Before the first step, what is said `at_first` is told."""
    if not can_move():
        yield None
        return
    status = Status(at_first or _("getting ready"))
    with shown_later(status):
        yield status


def can_move() -> bool:
    """Whether stderr leads to a terminal on which a line can be written anew."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


class Status:
    """The line: which step of which pass is being worked out."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.seen: set[str] = set()  # the steps of this pass; a proof may take several
        self.passes = 1
        self.purpose = ""  # what the passes are for, where that was said
        self.frames = _frames()

    def doing(self, what: str, done: int, of: int) -> None:
        """What the next steps are for, and how much of that is done."""
        self.seen.clear()
        self.passes = 1
        self.purpose = what
        if of > 1:
            self.purpose = _("{what} ({done} of {count})").format(
                what=what, done=whole(done), count=whole(of)
            )
        self.text = self.purpose

    def step(self, step: Step) -> None:
        """Says which step is being worked out, and in which pass."""
        if step.address in self.seen:
            self.seen.clear()
            self.passes += 1
        self.seen.add(step.address)
        text = _("working out {address} (step {count})")
        if self.passes > 1:
            text = _("working out {address} (step {count} of pass {passes})")
        said = text.format(address=step.address, count=len(self.seen), passes=self.passes)
        self.text = f"{self.purpose}: {said}" if self.purpose else said

    def __call__(self, step: Step) -> None:
        self.step(step)

    def __rich__(self) -> Text:
        """The line as rich draws it, cut where the terminal ends."""
        from rich.text import Text

        frame = self.frames[int(time.monotonic() / PACE) % len(self.frames)]
        return Text(f"{frame} {self.text}", no_wrap=True, overflow="ellipsis")


@contextmanager
def shown_later(status: Status) -> Iterator[None]:
    """Shows the status when PATIENCE is over, also while a single step takes long."""
    shown: list[Live] = []

    def show() -> None:
        shown.append(_live(status))
        shown[0].start(refresh=True)

    waiting = Timer(PATIENCE, show)
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()
        waiting.join()  # it may be about to show the line
        for live in shown:
            live.stop()


def _live(status: Status) -> Live:
    """A line on stderr that moves and goes away.  What is printed elsewhere is not touched: rich
    would else send it to stderr as well."""
    from rich.live import Live  # heavy, and only needed when it takes long

    return Live(
        status,
        console=talk_console(),
        refresh_per_second=1 / PACE,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def talk_console() -> Console:
    """rich on stderr.  The cursor stays where it can be seen: whoever stops the program with
    Ctrl-Z, or kills it, would be left without one."""
    from rich.console import Console

    class Steady(Console):
        def show_cursor(self, show: bool = True) -> bool:
            return False

    return Steady(stderr=True)


def _frames() -> str:
    moving, plain = FRAMES
    try:
        moving.encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        return plain
    return moving

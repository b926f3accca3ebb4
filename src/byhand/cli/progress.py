"""The progress line on stderr: one line during long work, removed afterwards.

It appears on a terminal, if the work takes longer than PATIENCE.  Only documented features of rich
are used, so that any version works.
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

PATIENCE = 0.7  # seconds before the line appears
PACE = 0.1  # seconds for each frame
FRAMES = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")  # frames, and those for terminals with few characters


@contextmanager
def telling(at_first: str | None = None) -> Iterator[Callable[[Step], None] | None]:
    """A callback for each step; its `doing` says what the steps are for.  None without a terminal.

    Before the first step, the line shows `at_first`.
    """
    if not can_move():
        yield None
        return
    status = Status(at_first or _("getting ready"))
    with shown_later(status):
        yield status


def can_move() -> bool:
    """Whether stderr is a terminal on which a line can be overwritten."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


class Status:
    """The line: which step of which pass is being worked out."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.seen: set[str] = set()  # steps of this pass; a proof may take several passes
        self.passes = 1
        self.purpose = ""  # what the passes are for, if `doing` was called
        self.frames = _frames()

    def doing(self, what: str, done: int, of: int) -> None:
        """Sets the purpose of the next steps, and how much of it is done."""
        self.seen.clear()
        self.passes = 1
        self.purpose = what
        if of > 1:
            self.purpose = _("{what} ({done} of {count})").format(
                what=what, done=whole(done), count=whole(of)
            )
        self.text = self.purpose

    def step(self, step: Step) -> None:
        """Shows the step being worked out, and its pass."""
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
        """The line for rich, cut at the terminal's width."""
        from rich.text import Text

        frame = self.frames[int(time.monotonic() / PACE) % len(self.frames)]
        return Text(f"{frame} {self.text}", no_wrap=True, overflow="ellipsis")


@contextmanager
def shown_later(status: Status) -> Iterator[None]:
    """Shows the status after PATIENCE, also during a single long step."""
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
    """The moving line on stderr; output elsewhere is left alone."""
    from rich.live import Live  # heavy, and only needed for long work

    return Live(
        status,
        console=talk_console(),
        refresh_per_second=1 / PACE,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def talk_console() -> Console:
    """A rich console on stderr that never hides the cursor, even if the program is killed."""
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

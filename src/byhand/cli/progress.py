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
from typing import TYPE_CHECKING, Any

from byhand.language import _, whole

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from byhand.plan import Step

PATIENCE = 0.7  # seconds before the line appears
PACE = 0.1  # seconds for each frame
KNOWN_AFTER = 2.0  # seconds of a search after which its pace is known
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


class Searching(Status):
    """The line of a search: how much of its domain is decided, and about how long it goes on."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.began: tuple[float, float] | None = None  # the time and the share at first

    def __call__(self, standing: Any) -> None:
        """Shows the share of the domain that is decided (`done`), and the cases so far."""
        now, share = time.monotonic(), standing.done
        self.began = self.began or (now, share)
        said = _("proving: {share}% of the texts decided, {cases} cases")
        left = _left(now - self.began[0], share - self.began[1], 1 - share)
        self.text = said.format(share=percent(share), cases=whole(standing.cases)) + left


def percent(share: float) -> str:
    """A share of 0 to 1 in percent; never 100 before it is all of it."""
    return "100" if share >= 1 else f"{min(100 * share, 99.9):.1f}"


def _left(seconds: float, gained: float, rest: float) -> str:
    """About how long it takes, at the pace so far; empty while there is nothing to tell it by."""
    if seconds < KNOWN_AFTER or gained <= 0 or rest <= 0:
        return ""
    return ", " + _("about {time} left").format(time=duration(seconds * rest / gained))


def duration(seconds: float) -> str:
    """A time in the unit that fits it: 40 s, 12 min, 3.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def searching() -> Iterator[Searching | None]:
    """A callback for the standing of a search; None without a terminal."""
    if not can_move():
        yield None
        return
    status = Searching(_("getting ready"))
    with shown_later(status):
        yield status


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

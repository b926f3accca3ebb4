"""What a test gets from a call of the command line (`byhand` in conftest makes such calls)."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """What a call of the command line left behind."""

    status: int
    out: str
    err: str


def interruptible() -> None:
    """For a child, before it runs: Ctrl-C reaches it even where the tests run in the background.

    Whoever is started there has SIGINT ignored, and so have its children.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""Interruptions by Ctrl-C and SIGTERM: the step is finished and the run saved before it stops."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop, and is saved: it can go on from `step`."""

    def __init__(self, folder: Path, step: int, steps: int, first: bool) -> None:
        super().__init__(f"{folder}: {step}/{steps}")
        self.first = first  # whether this process is the one that writes
        self.folder = folder
        self.step = step
        self.steps = steps


class Wish:
    """Whether someone has asked this process to stop."""

    def __init__(self) -> None:
        self.stop = False


@contextmanager
def listening() -> Iterator[Wish]:
    """Records the first signal as a wish; a second one stops the process at once."""
    wish = Wish()
    if threading.current_thread() is not threading.main_thread():  # signals are not for us
        yield wish
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def hear(number: int, frame: FrameType | None) -> None:
        wish.stop = True
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in SIGNALS:
        signal.signal(number, hear)
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

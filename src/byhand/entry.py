"""The door of the command line: `byhand …` and `python -m byhand …` come in here.

What must hold before the first command is imported, and after the last one has ended: Ctrl-C is
quiet, and the three standard streams are there.  What is said and done is in `byhand.cli`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from byhand.exit_status import INTERRUPTED

MOMENT = 0.05  # seconds


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command line, and ends the process with its exit status."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in a background
    if listens:
        signal.signal(signal.SIGINT, _leave)
    _open_the_closed()
    from byhand.cli import main as commands

    if listens:
        sys.unraisablehook = _not_lost
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = commands.run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # again, while the first one was being told
        status = INTERRUPTED
    if listens:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to tell
    sys.exit(status)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """An exception in the middle of an import would show where it was, or get lost there."""
    os._exit(INTERRUPTED)


def _not_lost(dropped: sys.UnraisableHookArgs) -> None:
    """An interruption that falls into a callback is dropped by Python; it comes again when the
    callback is over."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    from threading import Timer

    Timer(MOMENT, os.kill, (os.getpid(), signal.SIGINT)).start()


def _open_the_closed() -> None:
    """A stream that the caller has closed leads nowhere from here on.  Else the next file opened
    would take its number, and what a library writes on stderr would stand in that file."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free

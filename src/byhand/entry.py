"""The entry point of the command line, for `byhand …` and `python -m byhand …`.

It guarantees that Ctrl-C is quiet and that the three standard streams are open.  This holds before
the first command is imported and after the last one has ended.  The commands are in `byhand.cli`.
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
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else in background
    if listens:
        signal.signal(signal.SIGINT, _leave)
    _open_the_closed()
    from byhand.cli import main as commands

    if listens:
        sys.unraisablehook = _not_lost
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = commands.run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # a second one, while the first was being reported
        status = INTERRUPTED
    if listens:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to report
    sys.exit(status)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the process at once: an exception during an import would print a trace, or get lost."""
    os._exit(INTERRUPTED)


def _not_lost(dropped: sys.UnraisableHookArgs) -> None:
    """Raises an interruption again that Python has dropped because it fell into a callback."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    from threading import Timer

    Timer(MOMENT, os.kill, (os.getpid(), signal.SIGINT)).start()


def _open_the_closed() -> None:
    """Opens the standard streams that the caller has closed, on the null device.  Else the next
    file opened would take their number, and a library's output on stderr would go into that
    file."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free

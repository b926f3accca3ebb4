"""A terminal for tests: a pseudo-terminal, a small reading of what it would show, and a command.

The commands run in children of a server that has imported them already (`multiprocessing`'s
forkserver), so that a call costs little.  A test acts on what it sees, never on time.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from threading import Event
from typing import Any

PATIENCE = 60.0  # seconds for what must happen at last
CTRL_C = b"\x03"
PLAIN = {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "OMP_NUM_THREADS": "1"}
UNSET = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "LANG", "LC_MESSAGES")
_CODES = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]")
READY = (  # what commands import when they need it
    "cli", "checking.trials", "evaluate", "explaining", "generating", "models", "proving",
    "numbers.enclosed", "numbers.exact", "numbers.floats", "editions",
    "document.compose.trace", "document.media.terminal.parts", "proofs", "document.compose.proof",
)  # fmt: skip

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload([f"byhand.{one}" for one in READY] + ["rich.progress", "terminals"])


# ------------------------------------------------------------------ what a terminal shows


class Screen:
    """The lines a terminal of some width shows after some bytes; it never scrolls."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0
        self.wrapped: list[int] = []  # the rows that went on below because they were too long
        self.cursor = True

    def show(self, text: str) -> Screen:
        for found in _CODES.finditer(text):
            self._code(*found.groups()) if found[2] else self._sign(found[0])
        return self

    def _sign(self, sign: str) -> None:
        if sign == "\r":
            self.column = 0
        elif sign == "\n":
            self._down()
        else:
            if self.column == self.columns:
                self.wrapped.append(self.row)
                self._down()
                self.column = 0
            line = self.rows[self.row]
            line.extend(" " * (self.column - len(line)))
            line[self.column : self.column + 1] = sign
            self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def _code(self, numbers: str, letter: str) -> None:
        if letter == "A":
            self.row = max(self.row - int(numbers or 1), 0)
        elif letter == "K":
            del self.rows[self.row][0 if numbers == "2" else self.column :]
        elif numbers == "?25":
            self.cursor = letter == "h"
        else:
            assert letter == "m", f"a code that this terminal does not know: {numbers}{letter}"

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.rows]

    @property
    def too_long(self) -> list[str]:
        """The lines that the terminal had to break itself, as they were meant."""
        found: list[str] = []
        for row in self.wrapped:
            further = row - 1 in self.wrapped
            piece = self.lines[row + 1]
            found[-1:] = [found[-1] + piece] if further else [*found[-1:], self.lines[row] + piece]
        return found


# ------------------------------------------------------------------ a command on a terminal


@dataclass
class Terminal:
    """What a command leaves on a terminal while it runs and when it has ended."""

    columns: int
    main: int  # our end of the pseudo-terminal
    process: Any
    said: bytes = b""
    status: int | None = None
    modes_kept: bool = False
    end: float = field(default_factory=lambda: time.monotonic() + PATIENCE)

    def until(self, words: str) -> None:
        """Reads until the terminal was sent some words."""
        while words.encode() not in self.said:
            assert self._read(), f"ended without {words!r}: {self.text}"

    def press(self, keys: bytes) -> None:
        os.write(self.main, keys)

    def resize(self, columns: int) -> None:
        """As a window that is pulled: the program gets a SIGWINCH."""
        self.columns = columns
        _resize(self.main, columns)

    def close(self) -> Terminal:
        """Reads to the end of the command."""
        while self._read():
            pass
        self.process.join(PATIENCE)
        self.status = self.process.exitcode
        return self

    def _read(self) -> bool:
        ready = wait([self.main, self.process.sentinel], PATIENCE)
        assert ready, f"nothing happens any more after {self.text!r}"
        assert time.monotonic() < self.end, f"goes on and on: {self.text[-1000:]!r}"
        if self.main not in ready and not select.select([self.main], [], [], 0)[0]:
            return False
        self.said += os.read(self.main, 65536)
        return True

    @property
    def text(self) -> str:
        return self.said.decode("utf-8", "replace")

    @property
    def screen(self) -> Screen:
        return Screen(self.columns).show(self.text)


@contextmanager
def running(
    *arguments: str,
    columns: int = 80,
    holds: str | None = None,
    before: Callable[[], None] | None = None,
    folder: str | None = None,
    **settings: str,
) -> Iterator[Terminal]:
    """`byhand …` on a terminal.  Progress is told at once; at the step `holds` the command waits
    for Ctrl-C or for a new size.  `before` is called in its process, before it starts."""
    main, end = os.openpty()
    _resize(main, columns)
    modes = termios.tcgetattr(end)
    call = Call(arguments, os.ttyname(end), holds, before, folder or os.getcwd(), settings)
    process = _server.Process(target=call)
    process.start()
    seen = Terminal(columns, main, process)
    try:
        yield seen
        seen.modes_kept = termios.tcgetattr(end) == modes
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        os.close(main)
        os.close(end)


def on_a_terminal(*arguments: str, **rest: Any) -> Terminal:
    """`byhand …` on a terminal, to its end."""
    with running(*arguments, **rest) as seen:
        return seen.close()


def _resize(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


# ------------------------------------------------------------------ in the child


@dataclass(frozen=True)
class Call:
    """A call of the command line, as the child makes it."""

    arguments: tuple[str, ...]
    terminal: str
    holds: str | None
    before: Callable[[], None] | None
    folder: str
    settings: Mapping[str, str]

    def __call__(self) -> None:
        from byhand import entry
        from byhand.cli import progress

        os.chdir(self.folder)
        for name in UNSET:
            os.environ.pop(name, None)
        os.environ.update(PLAIN, **self.settings)
        self._take_the_terminal()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        progress.Timer = AtOnce  # type: ignore[assignment]
        if self.holds is not None:
            progress.Status.step = held(progress.Status.step, self.holds)  # type: ignore[assignment]
        if self.before is not None:
            self.before()
        entry.main(self.arguments)

    def _take_the_terminal(self) -> None:
        """It is stdin, stdout and stderr, and Ctrl-C on it is for us."""
        os.setsid()
        terminal = os.open(self.terminal, os.O_RDWR)
        for number in (0, 1, 2):
            lead(number, terminal)
        os.close(terminal)


def lead(number: int, to: int) -> None:
    """Lets stdin, stdout or stderr lead to a file."""
    os.dup2(to, number)
    stream = open(  # noqa: SIM115
        number,
        "r" if number == 0 else "w",
        buffering=1 if number == 2 or os.isatty(number) else -1,
        encoding=os.environ.get("PYTHONIOENCODING", "utf-8"),
        closefd=False,
    )
    setattr(sys, ("stdin", "stdout", "stderr")[number], stream)


class AtOnce:
    """A timer that is over when it starts."""

    daemon = True

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self.start = action

    def cancel(self) -> None: ...

    def join(self) -> None: ...


def held(step: Callable[[Any, Any], None], address: str) -> Callable[[Any, Any], None]:
    """A callback that waits at one step until the size of the terminal changes, or Ctrl-C."""
    resized = Event()
    signal.signal(signal.SIGWINCH, lambda _number, _frame: resized.set())

    def told(self: Any, at: Any) -> None:
        step(self, at)
        if at.address == address:
            resized.wait()

    return told

"""Output on both streams: parts and data on stdout, talk on stderr.

Parts are as wide as the terminal, with colours if it has any.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

from byhand.document.media.terminal.ink import ink_for, wrap

if TYPE_CHECKING:
    from byhand.document.parts import Part, Section

NARROWEST, USUAL = 40, 80
WIDEST = 110  # a longer line is hard to read, however wide the terminal


def columns_of(stream: TextIO) -> int | None:
    """The width of the stream's terminal in columns; None if it has no terminal."""
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    try:
        columns = int(said) if said.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return columns or USUAL  # 0: unknown


def width_of_output() -> int:
    """The terminal's width, at most WIDEST; the usual width if stdout is no terminal."""
    return min(max(columns_of(sys.stdout) or USUAL, NARROWEST), WIDEST)


def print_parts(parts: Iterable[Part | Section]) -> None:
    """Prints parts on stdout as they come; in a pipe, tables of formulas are not broken."""
    from byhand.document.media.terminal.parts import Terminal

    piped = columns_of(sys.stdout) is None
    for line in Terminal(width_of_output(), ink_for(sys.stdout), piped=piped).lines(parts):
        print(line)


def print_data(data: Any) -> None:
    """Prints one JSON document on stdout."""
    print(json.dumps(data, ensure_ascii=False, indent=1))


def escape_for_json(stream: TextIO) -> None:
    """Makes the stream write what its encoding lacks as \\u00e9: in JSON, the same text."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="byhand.json")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error("byhand.json", _escaped)


def talk(text: str, *, to_copy: bool = False) -> None:
    """Prints a message on stderr, wrapped unless it is to be copied; errors are ignored."""
    columns = None if to_copy else columns_of(sys.stderr)
    try:
        for line in text.split("\n"):
            for piece in [line] if columns is None else broken(line, columns):
                print(piece, file=sys.stderr)
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


def broken(line: str, columns: int) -> list[str]:
    """A line of a message, wrapped; continuation lines are indented."""
    further = " " * (len(line) - len(line.lstrip()) + 2)
    pieces = wrap(
        line,
        columns,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return pieces or [""]


def drop(stream: TextIO) -> None:
    """Drops what is still in the buffer, so that it is not written at exit either."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError:  # not a file: it keeps its buffer
        return

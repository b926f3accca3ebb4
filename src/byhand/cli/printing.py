"""Parts and lines on the terminal: as wide as it is, in colour where it has any."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from byhand.render.ink import Ink, ink_for

if TYPE_CHECKING:
    from byhand.render.parts import Part

WIDEST = 110  # a longer line is hard to read, however wide the terminal


def width_of_output() -> int:
    """The terminal's width within reason; 80 where stdout is no terminal."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    return min(max(columns, 40), WIDEST)


def print_parts(parts: Iterable[Part]) -> None:
    """Prints parts on stdout as they come."""
    from byhand.render.terminal import Terminal

    for line in Terminal(width_of_output(), ink_for(sys.stdout)).lines(parts):
        print(line)


def print_lines(write: Callable[[int, Ink], Iterable[str]]) -> None:
    """Prints the lines that `write` makes for a width and an ink."""
    for line in write(width_of_output(), ink_for(sys.stdout)):
        print(line)

"""Parts on the terminal: as wide as it is, in colour where it has any."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable

from byhand.render.ink import ink_for
from byhand.render.parts import Part
from byhand.render.terminal import Terminal


def print_parts(parts: Iterable[Part]) -> None:
    """Prints parts on stdout as they come."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    for line in Terminal(width, ink_for(sys.stdout)).lines(parts):
        print(line)

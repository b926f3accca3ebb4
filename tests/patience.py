"""How long tests wait for what must happen at last: an end to hanging, never a measure of speed.

A test waits for the event itself (a line, a file, a process that ends).  Only where the event never
comes does this time run out, so it is longer than anything takes on the busiest machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 600.0  # seconds


def until(true: Callable[[], bool], every: float = 0.02) -> None:
    """Looks now and then, until it is so."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came about"
        time.sleep(every)

"""How much is tried: a part in an ordinary run, all of it in the long tests (`make test-long`)."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("BYHAND_LONG"))


def examples(all: int) -> int:
    """How many of these examples hypothesis makes up in this run."""
    return all if LONG else all // 4

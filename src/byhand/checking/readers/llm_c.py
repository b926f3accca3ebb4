"""Claims in the debug state of llm.c: ids, targets, logits, loss and gradients in one binary.

The sides of logits and gradients are the model's, so they stay one row of numbers here;
`dumps.states` cuts it up.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byhand.checking.claims import Entry, Sheet
from byhand.checking.readers.binaries import small_enough
from byhand.errors import InputError
from byhand.language import _

MAGICS = {20240327: 2, 20240803: 1}  # of gpt2 and llama3: where the header has batch and length
HEADER = 1024  # bytes
STATE = "llm.c state"
MOST_IDS = 2**26


def is_state(path: Path) -> bool:
    """Whether a file begins as such a state does."""
    try:
        with path.open("rb") as file:
            return int.from_bytes(file.read(4), "little") in MAGICS
    except OSError:
        return False


def read_state(path: Path) -> Sheet:
    """The state: its ids and targets, and all other numbers as one claim."""
    try:
        size = path.stat().st_size
        small_enough(size, str(path))
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(path),
        ) from None
    whole = len(data) >= HEADER and len(data) % 4 == 0
    header = np.frombuffer(data[:HEADER], "<i4") if whole else np.zeros(4, np.int32)
    at = MAGICS.get(int(header[0]), 1)
    rows, length = (int(each) for each in header[at : at + 2])
    count = rows * length if 0 < rows < MOST_IDS and 0 < length < MOST_IDS else 0
    if not 0 < count < MOST_IDS or len(data) < HEADER + 8 * count + 4:
        raise InputError(
            _("this is not a whole state of llm.c"),
            where=str(path),
            expected=_("ids, targets, logits and a loss behind the header"),
            found=_("{count} bytes").format(count=f"{len(data):,}"),
        )
    ids, targets = (
        np.frombuffer(data, "<i4", count, HEADER + 4 * count * part).reshape(rows, length)
        for part in (0, 1)
    )
    floats = np.frombuffer(data, "<f4", offset=HEADER + 8 * count)
    entry = Entry(STATE, floats, str(path), format="float32")
    return Sheet(str(path), (entry,), tokens=ids.astype(np.int64), targets=targets.astype(np.int64))

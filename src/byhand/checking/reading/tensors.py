"""Claims in a safetensors file, memory-mapped: nothing is read before somebody looks at it.

`files.mapped` checks the header and maps the floats.  What it has no use for is read here: the
texts of `__metadata__`, and whole numbers of any width, which are ids and masks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Sheet
from byhand.checking.reading.arrays import sheet_of_arrays, unreadable
from byhand.checking.reading.written import HEADING
from byhand.errors import InputError
from byhand.files.mapped import open_tensors
from byhand.language import _

METADATA = "__metadata__"
WHOLE = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8",
}  # fmt: skip


def read_tensors(path: Path) -> Sheet:
    """The claims of a safetensors file; `__metadata__` may say the text, target and precision."""
    stored = open_tensors(path)  # its header is sound, or this has said why not
    header = _Header.of(path)
    unread: list[Entry] = []

    def named() -> Iterator[tuple[str, npt.NDArray[Any]]]:
        for name, tensor in stored.items():
            if tensor.floats:
                yield name, tensor.array()
            elif tensor.dtype in WHOLE:
                yield name, header.whole(name)
            else:
                unread.append(unreadable(name, tensor.where, tensor.dtype))

    metadata = header.entries.get(METADATA, {})
    heading = {key: text for key, text in metadata.items() if key in HEADING}
    sheet = sheet_of_arrays(str(path), named(), heading)
    if not sheet.entries and not unread:
        raise InputError(
            _("there are no claims"),
            where=str(path),
            expected=_("names with arrays"),
            found=_("nothing"),
        )
    return replace(sheet, entries=(*sheet.entries, *unread))


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a file that `open_tensors` has found sound."""

    path: Path
    start: int  # of the data
    entries: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> _Header:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            return cls(path, 8 + length, json.loads(file.read(length)))

    def whole(self, name: str) -> npt.NDArray[Any]:
        """A tensor of whole numbers, which are few: read, not mapped."""
        entry = self.entries[name]
        dtype, shape = np.dtype(WHOLE[entry["dtype"]]), tuple(entry["shape"])
        offset = self.start + entry["data_offsets"][0]
        if not math.prod(shape):
            return np.zeros(shape, dtype)
        return np.fromfile(self.path, dtype, math.prod(shape), offset=offset).reshape(shape)

"""Claims in a safetensors file, memory-mapped: nothing is read before somebody looks at it.

`files.mapped` checks the header and maps the numbers.  The texts of its metadata are the heading;
whole numbers of any width are ids and masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from byhand.checking.claims import Entry, Sheet
from byhand.checking.reading.arrays import sheet_of_arrays, unreadable
from byhand.checking.reading.written import HEADING
from byhand.errors import InputError
from byhand.files.mapped import open_file
from byhand.language import _


def read_tensors(path: Path) -> Sheet:
    """The claims of a safetensors file; its metadata may say the text, target and precision."""
    stored, texts = open_file(path)
    unread: list[Entry] = []

    def named() -> Iterator[tuple[str, npt.NDArray[Any]]]:
        for name, tensor in stored.items():
            if tensor.floats:
                yield name, tensor.array()
            elif tensor.whole:
                yield name, tensor.ids()
            else:
                unread.append(unreadable(name, tensor.where, tensor.dtype))

    heading = {key: text for key, text in texts.items() if key in HEADING}
    sheet = sheet_of_arrays(str(path), named(), heading)
    if not sheet.entries and not unread:
        raise InputError(
            _("there are no claims"),
            where=str(path),
            expected=_("names with arrays"),
            found=_("nothing"),
        )
    return replace(sheet, entries=(*sheet.entries, *unread))

"""Tables of rollouts in files of arrays: npz, and Parquet where pyarrow is installed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from byhand.checking.readers.tensors import array_of, open_zip
from byhand.errors import InputError
from byhand.files.mapped import shown
from byhand.language import _
from byhand.scoring.logs.content import Entry

ZIP, PARQUET = b"PK\x03\x04", b"PAR1"
MOST_ROWS = 10_000_000
MOST_BYTES = 256 * 2**20  # unpacked: they become lists of numbers


def read_npz(path: Path) -> list[Entry]:
    """The arrays of a file as one table; nothing is unpickled."""
    found: dict[str, Any] = {}
    with open_zip(path, MOST_BYTES, _("this is not a whole npz file: {reason}")) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            where = f"{path}: {shown(name)}"
            if name in found or not member.filename.endswith(".npy"):
                raise InputError(
                    _("this is not an array"),
                    where=where,
                    expected=_("arrays as NumPy saves them: .npy"),
                    found=shown(member.filename),
                )
            with archive.open(member) as file:
                array = array_of(file, member.file_size, where)
            if array.dtype.kind in "biufU":
                found[name] = array.tolist()
    return [Entry(str(path), found)]


def read_parquet(path: Path, data: bytes) -> list[Entry]:
    """The rows of a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            _("to read Parquet, byhand needs the pyarrow library"),
            where=str(path),
            hint="pip install 'byhand[ray]'",
        ) from None
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(data))
        if table.num_rows > MOST_ROWS:
            raise InputError(
                _("the file is too large"),
                where=str(path),
                expected=_("at most {count} rows").format(count=f"{MOST_ROWS:,}"),
                found=f"{table.num_rows:,}",
            )
        rows = table.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = shown(str(error).partition("\n")[0])
        raise InputError(
            _("this is not a whole Parquet file: {reason}").format(reason=reason), where=str(path)
        ) from None
    return [
        Entry(_("{file}: row {row}").format(file=path, row=place), row)
        for place, row in enumerate(rows)
    ]

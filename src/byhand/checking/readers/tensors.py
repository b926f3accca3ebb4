"""Claims in files of named arrays: safetensors and npz.  Nothing is unpickled.

A safetensors file is mapped into memory by `files.mapped`, so data are read only when used.  Its
metadata are the heading; whole numbers of any width are ids and masks.

An npz file is a zip.  The header of each member is read before its data.  An array larger than its
bytes, or a file that unpacks to more than `MOST_BYTES`, is refused before memory is allocated.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Entry, Sheet
from byhand.checking.readers.arrays import no_claims, sheet_of_arrays, unreadable
from byhand.checking.readers.handwriting import HEADING
from byhand.errors import InputError
from byhand.files.mapped import open_file, shown
from byhand.language import _


def read_tensors(path: Path) -> Sheet:
    """The claims of a safetensors file; its metadata may give text, target and precision."""
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
        no_claims(str(path))
    return replace(sheet, entries=(*sheet.entries, *unread))


# ------------------------------------------------------------------ npz


MOST_BYTES = 8 * 2**30  # after unpacking
MOST_MEMBERS = 100_000
LONGEST_HEADER = 10_000  # bytes, NumPy's limit
BROKEN = (  # what zipfile and NumPy raise for a damaged file; the header of an array is Python
    zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError, RuntimeError,
    SyntaxError, TokenError, TypeError, OverflowError,
)  # fmt: skip


def read_zipped(path: Path) -> Sheet:
    """The claims of an npz file."""
    with open_zip(path, MOST_BYTES, _("this is not a whole npz file: {reason}")) as archive:
        arrays = dict(_arrays(path, archive))
    if not arrays:
        no_claims(str(path))
    return sheet_of_arrays(str(path), arrays.items())


@contextmanager
def open_zip(path: Path, most: int, broken: str) -> Iterator[zipfile.ZipFile]:
    """A zip that unpacks to at most `most` bytes; `broken` is the message for a damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            if size > most or len(members) > MOST_MEMBERS:
                raise InputError(
                    _("the file is too large"),
                    where=str(path),
                    expected=_("at most {count} bytes").format(count=f"{most:,}"),
                    found=_("{count} bytes, unpacked").format(count=f"{size:,}"),
                )
            yield archive
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(path),
        ) from None
    except BROKEN as error:
        reason = shown(str(error) or type(error).__name__)
        raise InputError(broken.format(reason=reason), where=str(path)) from None


def _arrays(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    seen: set[str] = set()
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        where = f"{path}: {shown(name)}"
        if name in seen:
            raise InputError(
                _("a name is in the file twice"),
                where=where,
                expected=_("each name once"),
                found=shown(name),
            )
        seen.add(name)
        if not member.filename.endswith(".npy"):
            raise InputError(
                _("this is not an array"),
                where=where,
                expected=_("arrays as NumPy saves them: .npy"),
                found=shown(member.filename),
            )
        with archive.open(member) as file:
            yield name, array_of(file, member.file_size, where)


def array_of(file: IO[bytes], size: int, where: str) -> npt.NDArray[Any]:
    """One array, after its header has been checked against the number of bytes."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file, max_header_size=LONGEST_HEADER)
    if dtype.hasobject:
        raise InputError(
            _("an array of objects is not read"),
            where=where,
            expected=_("floats"),
            found=_("pickled objects"),
            hint=_("save arrays of numbers: nothing is unpickled"),
        )
    count = math.prod(shape)
    size -= file.tell()
    if min(shape, default=0) < 0:
        raise InputError(
            _("an array has a side that is less than nothing"),
            where=where,
            expected=_("a shape of whole numbers that are not negative"),
            found=str(shape),
        )
    if count * dtype.itemsize > size:
        raise InputError(
            _("the array ends before its last number"),
            where=where,
            expected=_("{count} bytes").format(count=f"{count * dtype.itemsize:,}"),
            found=_("{count} bytes").format(count=f"{size:,}"),
        )
    data = file.read(count * dtype.itemsize)
    return np.frombuffer(data, dtype, count).reshape(shape, order="F" if fortran else "C")

"""Claims in folders of .npy files, and in raw binaries that a manifest explains.

    text: the cat sat on
    arrays:
      - {name: Qcur-0, file: q.bin, dtype: float32, shape: [4, 8]}
      - {name: l_out-0, file: dump.bin, offset: 128, dtype: bfloat16, shape: [8, 4], order: ggml}

Numbers are little-endian.  `order` C (the last side runs fastest) is the usual one, F the other way
round; with `ggml`, the shape is written as ggml has it, the fastest side first.  The files lie in
the folder of the manifest, or below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from byhand.checking.claims import Sheet
from byhand.checking.readers.arrays import no_claims, sheet_of_arrays
from byhand.checking.readers.handwriting import HEADING
from byhand.checking.readers.tensors import BROKEN, MOST_BYTES, array_of
from byhand.errors import InputError
from byhand.files import scalars
from byhand.files.mapped import shown
from byhand.files.tree import List, Node, Scalar, Table
from byhand.language import _

ARRAYS = "arrays"
KEYS = ("name", "file", "dtype", "shape", "offset", "order")
ORDERS = ("C", "F", "ggml")
MOST_FILES = 100_000
DTYPES: dict[str, npt.DTypeLike] = {
    "float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": ml_dtypes.bfloat16,
    "int64": "<i8", "int32": "<i4", "int16": "<i2", "int8": "i1",
    "uint32": "<u4", "uint16": "<u2", "uint8": "u1", "bool": "?",
}  # fmt: skip


# ------------------------------------------------------------------ folders of .npy files


def read_npy_folder(path: Path) -> Sheet | None:
    """The claims of the .npy files in a folder and below it; None where there are none.

    A file is named by its path without its ending: layers/0/mlp.npy is layers/0/mlp.
    """
    files = sorted(_npy_files(path))
    if not files:
        return None
    return sheet_of_arrays(str(path), ((_name(path, file), _npy(file)) for file in files))


def _npy_files(path: Path) -> Iterator[Path]:
    for count, file in enumerate(path.rglob("*.npy")):
        if count >= MOST_FILES:
            raise InputError(
                _("the folder has too many files"),
                where=str(path),
                expected=_("at most {count} files").format(count=f"{MOST_FILES:,}"),
            )
        if file.is_file():
            yield file


def _name(folder: Path, file: Path) -> str:
    return file.relative_to(folder).with_suffix("").as_posix()


def _npy(file: Path) -> npt.NDArray[Any]:
    size = file.stat().st_size
    small_enough(size, str(file))
    try:
        with file.open("rb") as data:
            return array_of(data, size, str(file))
    except BROKEN as error:
        reason = shown(str(error) or type(error).__name__)
        raise InputError(
            _("this is not an array: {reason}").format(reason=reason), where=str(file)
        ) from None
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(file),
        ) from None


def small_enough(size: int, where: str) -> None:
    """Refuses a file of more bytes than are read."""
    if size > MOST_BYTES:
        raise InputError(
            _("the file is too large"),
            where=where,
            expected=_("at most {count} bytes").format(count=f"{MOST_BYTES:,}"),
            found=_("{count} bytes").format(count=f"{size:,}"),
        )


# ------------------------------------------------------------------ manifests


def sheet_of_manifest(path: Path, table: Table) -> Sheet:
    """The claims of raw binaries, by the manifest at `path`."""
    table.only(*HEADING, ARRAYS)
    node = table.entries[ARRAYS]
    items = node.items if isinstance(node, List) else ()
    if not items:
        raise node.wrong(_("the manifest lists no arrays"), expected=_("a list of arrays"))
    heading = {
        key: scalars.text(value)
        for key, value in table.entries.items()
        if key in HEADING and isinstance(value, Scalar) and value.text.strip()
    }
    named: dict[str, Any] = {}
    for item in items:
        name, array = _described(path.parent, item)
        if name in named:
            raise item.wrong(_("a name is in the file twice"), expected=_("each name once"),
                             found=shown(name))  # fmt: skip
        named[name] = array
    sheet = sheet_of_arrays(str(path), named.items(), heading)
    return sheet if sheet.entries else no_claims(str(path), named)


def _described(folder: Path, node: Node) -> tuple[str, npt.NDArray[Any]]:
    if not isinstance(node, Table):
        raise node.wrong(_("an array of a manifest is a table"), expected=", ".join(KEYS))
    node.only(*KEYS)
    name = scalars.text(node.needed("name"))
    dtype = np.dtype(DTYPES[scalars.word(node.needed("dtype"), *DTYPES)])
    shape = _shape(node.needed("shape"))
    given = node.get("offset")
    offset = 0 if given is None else scalars.whole(given, most=2**62)
    order_node = node.get("order")
    order = "C" if order_node is None else scalars.word(order_node, *ORDERS)
    size = math.prod(shape) * dtype.itemsize
    data = _bytes(_file(folder, node.needed("file")), offset, size, node)
    array = np.frombuffer(data, dtype)
    if order == "F":
        return name, array.reshape(shape, order="F")
    return name, array.reshape(shape[::-1] if order == "ggml" else shape)


def _shape(node: Node) -> tuple[int, ...]:
    if not isinstance(node, List) or len(node.items) > 8:
        raise node.wrong(_("a shape is a list of whole numbers"), expected="[4, 8]")
    return tuple(scalars.whole(item, most=2**40) for item in node.items)


def _file(folder: Path, node: Node) -> Path:
    """A file in the folder of the manifest, or below it."""
    text = scalars.text(node)
    path = Path(text)
    try:
        inside = not path.is_absolute() and ".." not in path.parts
        there = inside and (folder / path).is_file()
    except (OSError, ValueError):
        inside = there = False
    if not inside:
        raise node.wrong(_("the file is not in the folder of the manifest"),
                         expected=_("a path below it"), found=shown(text))  # fmt: skip
    if not there:
        raise node.wrong(_("there is no file {name}").format(name=repr(text[:80])),
                         expected=_("a file of numbers"), found=shown(text))  # fmt: skip
    return folder / path


def _bytes(file: Path, offset: int, size: int, node: Node) -> bytes:
    small_enough(size, node.where)
    try:
        there = file.stat().st_size
        if offset + size > there:
            raise node.wrong(
                _("the array ends before its last number"),
                expected=_("{count} bytes").format(count=f"{offset + size:,}"),
                found=_("{count} bytes").format(count=f"{there:,}"),
            )
        with file.open("rb") as data:
            data.seek(offset)
            return data.read(size)
    except OSError as error:
        raise InputError(
            _("the file cannot be read: {reason}").format(reason=error.strerror or error),
            where=str(file),
        ) from None

"""Safetensors files, written tensor by tensor in any order.

Shapes and formats are known before the numbers, so the header comes first.  Each tensor is written
when it is ready, so the file is never held in memory.  `files.mapped` reads the format, which
allows no gaps.  Wider numbers come first, so each tensor begins at a multiple of its width.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np
import numpy.typing as npt

FORMATS: Mapping[np.dtype[Any], str] = {  # as headers spell them
    np.dtype(np.int64): "I64",
    np.dtype(np.float64): "F64",
    np.dtype(np.float32): "F32",
    np.dtype(ml_dtypes.bfloat16): "BF16",
    np.dtype(np.float16): "F16",
}
WIDEST = 8  # bytes of a number


@dataclass(frozen=True, slots=True)
class Form:
    """The shape and format of a tensor, before its numbers are known."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of bytes of the array."""
        return self.dtype.itemsize * math.prod(self.shape)


class TensorFile:
    """A safetensors file being written: the header at once, the tensors in any order."""

    def __init__(
        self, path: Path, tensors: Mapping[str, Form], metadata: Mapping[str, str]
    ) -> None:
        self._forms = dict(tensors)
        self._begins, header = _lay_out(self._forms, metadata)
        self._start = len(header)
        self._left = set(self._forms)
        self._file: BinaryIO = path.open("wb")
        try:
            self._file.write(header)
            self._file.flush()
            _reserve(self._file.fileno(), self._start + sum(f.size for f in self._forms.values()))
        except BaseException:
            self.__exit__()
            raise

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Writes the numbers of one tensor to their place."""
        form = self._forms[name]
        if (array.dtype, array.shape) != (form.dtype, form.shape):
            raise ValueError(f"{name}: {array.dtype} {array.shape}, not {form.dtype} {form.shape}")
        width = form.dtype.itemsize
        little = np.ascontiguousarray(array).view(f"u{width}").astype(f"<u{width}", copy=False)
        self._file.seek(self._start + self._begins[name])
        self._file.write(little.reshape(-1).data)
        self._left.remove(name)

    def finish(self) -> None:
        """Syncs the file to disk; a tensor that was never put is an error."""
        if self._left:
            raise ValueError(f"never written: {', '.join(sorted(self._left))}")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, *stopped_by: object) -> None:
        with suppress(OSError):  # errors that matter were raised before
            self._file.close()


def _lay_out(
    tensors: Mapping[str, Form], metadata: Mapping[str, str]
) -> tuple[dict[str, int], bytes]:
    """Where each tensor begins in the data, and all bytes that come before the data."""
    begins: dict[str, int] = {}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    at = 0
    for name, form in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        begins[name] = at
        header[name] = {
            "dtype": FORMATS[form.dtype],
            "shape": list(form.shape),
            "data_offsets": [at, at + form.size],
        }
        at += form.size
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % WIDEST)
    return begins, len(text).to_bytes(8, "little") + text


def _reserve(descriptor: int, size: int) -> None:
    """Reserves the room on the disk, so that a full disk is found before the work."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):  # not supported here
            raise

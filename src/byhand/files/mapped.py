"""Safetensors files, memory-mapped: every tensor a read-only view of the file, none of it copied.

    8 bytes    N, the length of the header (unsigned, little-endian)
    N bytes    JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
    the rest   the data, which the tensors cover without a gap and without an overlap

The whole header is checked first: a file with a false size is refused before memory is allocated
for it.  The format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import mmap
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import ml_dtypes
import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.weights import Data

LONGEST_HEADER = 100_000_000  # bytes, as the format says
LARGEST = 2**63 - 1  # largest size or offset
MOST_AXES = 32  # NumPy's limit
BLOCK = 1 << 20  # entries checked at a time
LARGE = 1 << 24  # bytes from which on a tensor is read ahead, and let go of
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64, "I64": 64,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
}  # fmt: skip
FLOATS: Mapping[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
WHOLE: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4",
        "I32": "<i4", "U64": "<u8", "I64": "<i8",
    }.items()
}  # fmt: skip
METADATA = "__metadata__"
_EXPONENT = {"F64": 0x7FF << 52, "F32": 0xFF << 23, "F16": 0x1F << 10, "BF16": 0xFF << 7}


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor of a file: its header, and its data on request."""

    name: str
    dtype: str  # as in the header: F32, BF16, I64, …
    shape: tuple[int, ...]
    file: Path
    _offset: int = field(repr=False)
    _bytes: mmap.mmap = field(repr=False, compare=False)

    @property
    def where(self) -> str:
        """The file and the tensor, for messages."""
        return f"{self.file}: {shown(self.name)}"

    @property
    def floats(self) -> bool:
        """Whether it holds floats that byhand reads."""
        return self.dtype in FLOATS

    @property
    def holds(self) -> np.dtype[Any]:
        """The float format of its entries."""
        return FLOATS[self.dtype]

    @property
    def bits(self) -> Fraction:
        """What an entry takes in the file."""
        return Fraction(BITS[self.dtype])

    @property
    def packed(self) -> bool:
        """Whether its numbers have to be worked out of codes."""
        return False

    def expect(self) -> None:
        """Asks the system to read the data ahead, since it will be needed soon."""
        self._advise("MADV_WILLNEED")

    def release(self) -> None:
        """Lets go of the memory that the data takes; whoever reads on has it read again."""
        self._advise("MADV_DONTNEED")

    def _advise(self, name: str) -> None:
        advice = getattr(mmap, name, None)
        size = prod(self.shape) * BITS[self.dtype] // 8
        if advice is None or size < LARGE:  # not every system takes advice
            return
        first = -(-self._offset // mmap.PAGESIZE) * mmap.PAGESIZE  # whole pages of its own
        last = (self._offset + size) // mmap.PAGESIZE * mmap.PAGESIZE
        with suppress(OSError):
            self._bytes.madvise(advice, first, last - first)

    def octets(self) -> Data:
        """The data as bytes, whatever they stand for; of entries of 8 bits, one byte each."""
        size = prod(self.shape) * BITS[self.dtype] // 8
        shape = self.shape if BITS[self.dtype] == 8 else (size,)
        if not size:
            return np.zeros(shape, np.uint8)
        return np.frombuffer(self._bytes, np.uint8, size, self._offset).reshape(shape)

    def array(self) -> Data:
        """The data as a read-only view of the file; InputError unless it holds floats."""
        if not self.floats:
            raise InputError(
                _("the tensor {name} holds no floats byhand reads").format(name=shown(self.name)),
                where=self.where,
                expected=", ".join(FLOATS),
                found=self.dtype,
            )
        return self._view(FLOATS[self.dtype])

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers or truth values."""
        return self.dtype in WHOLE

    def ids(self) -> Data:
        """The data as a read-only view of whole numbers; InputError unless it holds them."""
        if not self.whole:
            raise InputError(
                _("the tensor {name} holds no ids").format(name=shown(self.name)),
                where=self.where,
                expected=", ".join(WHOLE),
                found=self.dtype,
            )
        return self._view(WHOLE[self.dtype])

    def finite(self) -> Data:
        """The same view, after a check that every entry is finite."""
        data = self.array()
        exponent = _EXPONENT[self.dtype]
        bits = self._view(np.dtype(f"<u{FLOATS[self.dtype].itemsize}")).reshape(-1)
        room = np.empty(min(BLOCK, bits.size), bits.dtype)
        for start in range(0, bits.size, BLOCK):
            block = bits[start : start + BLOCK]
            masked = np.bitwise_and(block, bits.dtype.type(exponent), out=room[: block.size])
            if masked.max() == exponent:  # all bits of the exponent set: infinity or NaN
                at = start + int(masked.argmax())
                raise self._not_finite(data, at)
        return data

    def _view(self, dtype: np.dtype[Any]) -> Data:
        size = 1
        for side in self.shape:
            size *= side
        if not size:
            return np.zeros(self.shape, dtype)
        flat = np.frombuffer(self._bytes, dtype, count=size, offset=self._offset)
        return flat.reshape(self.shape)

    def _not_finite(self, data: Data, at: int) -> InputError:
        index = np.unravel_index(at, data.shape)
        return InputError(
            _("{name}[{index}] is not a number").format(
                name=shown(self.name), index=",".join(map(str, index))
            ),
            where=str(self.file),
            expected=_("a finite number"),
            found=str(float(data[index])),
        )


def open_tensors(path: Path) -> dict[str, Stored]:
    """Every tensor of the file by name, in the order of the data; InputError if it is not whole."""
    return open_file(path)[0]


def open_file(path: Path) -> tuple[dict[str, Stored], Mapping[str, str]]:
    """Every tensor of the file, and the texts of its metadata."""
    try:
        with open(path, "rb", opener=plain_file) as file:
            size = file.seek(0, 2)
            entries, start, texts = _header(path, file, size)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(
            _("the file cannot be read: {reason}").format(
                reason=getattr(error, "strerror", None) or error
            ),
            where=str(path),
        ) from None
    return {
        name: Stored(name, entry.dtype, entry.shape, path, start + entry.begin, mapped)
        for name, entry in entries.items()
    }, texts


def plain_file(name: str, flags: int) -> int:
    """Opens plain files only: a pipe could block for ever."""
    descriptor = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, _("it is not a plain file"))
    return descriptor


# ------------------------------------------------------------------ the header


@dataclass(frozen=True, slots=True)
class _Entry:
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _header(
    path: Path, file: BinaryIO, size: int
) -> tuple[dict[str, _Entry], int, Mapping[str, str]]:
    """The entries in the order of their data, where the data begins, and the metadata."""
    if size < 8:
        _refuse(path, _("it is too short"), at_least(8), bytes_of(size))
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > LONGEST_HEADER:
        limit = _("a header of at most {count} bytes").format(count=f"{LONGEST_HEADER:,}")
        _refuse(path, _("its header is too long"), limit, bytes_of(length))
    start = 8 + length
    if start > size:
        _refuse(path, _("it ends within its header"), at_least(start), bytes_of(size))
    table = _json(path, file.read(length))
    texts = _texts(path, table.pop(METADATA, None))
    entries = {name: _entry(path, name, value) for name, value in table.items()}
    ordered = dict(sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)))
    end = 0
    for name, entry in ordered.items():
        if entry.begin != end:
            _refuse(
                path,
                _("the data of its tensors overlaps") if entry.begin < end
                else _("there is a gap between the data of its tensors"),
                _("data_offsets that begin at {start}").format(start=f"{end:,}"),
                f"{entry.begin:,}",
                name,
            )  # fmt: skip
        end = entry.end
    if start + end != size:
        reason = (
            _("it is truncated") if size < start + end else _("it has more data than its header")
        )
        _refuse(path, reason, bytes_of(start + end), bytes_of(size))
    return ordered, start, texts


class _Twice(ValueError):
    """A name that occurs twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        seen: set[str] = set()
        for name, _value in pairs:
            if name in seen:
                raise _Twice(name)
            seen.add(name)
    return table


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _json(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
        if not text.startswith("{"):
            raise ValueError
        table = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except _Twice as error:
        reason = _("a name is in its header twice")
        _refuse(path, reason, _("each name once"), shown(str(error)))
    except (ValueError, RecursionError):
        found = shown(raw[:40].decode("utf-8", "replace"))
        _refuse(path, _("its header is not a JSON object"), '{"name": {…}, …}', found)
    assert isinstance(table, dict)
    return table


def _texts(path: Path, found: Any) -> Mapping[str, str]:
    """The metadata; MLX writes null if there are none."""
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        expected = _("a table of texts")
        _refuse(path, _("its header is malformed"), expected, shown(found), METADATA)
    return found


def _entry(path: Path, name: str, value: Any) -> _Entry:
    def malformed(expected: str, found: object) -> NoReturn:
        _refuse(path, _("its header is malformed"), expected, shown(found), name)

    if not name.isascii() and name.encode("utf-8", "replace").decode() != name:
        malformed(_("a name in Unicode"), ascii(name))
    if not isinstance(value, dict):
        malformed('{"dtype", "shape", "data_offsets"}', value)
    for key in ("dtype", "shape", "data_offsets"):
        if key not in value:
            malformed(key, ", ".join(value) or _("nothing"))
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        malformed(_("a dtype of {names}").format(names=", ".join(BITS)), dtype)
    if not _whole_numbers(shape) or len(shape) > MOST_AXES:
        malformed(_("a shape of at most {count} whole numbers").format(count=MOST_AXES), shape)
    if not _whole_numbers(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        malformed(_("data_offsets [begin, end]"), offsets)
    bits = BITS[dtype]
    for side in shape:
        bits *= side
        if bits > LARGEST:
            malformed(_("a shape of fewer than 2^63 bits"), shape)
    if bits != 8 * (offsets[1] - offsets[0]):
        _refuse(
            path,
            _("a tensor's data has another size than its shape"),
            _("{size} for {shape} of {dtype}").format(
                size=_("{count} bits").format(count=f"{bits:,}")
                if bits % 8
                else bytes_of(bits // 8),
                shape=sides(shape),
                dtype=dtype,
            ),
            bytes_of(offsets[1] - offsets[0]),
            name,
        )
    return _Entry(dtype, tuple(shape), offsets[0], offsets[1])


def _whole_numbers(found: Any) -> bool:
    return isinstance(found, list) and all(type(x) is int and 0 <= x <= LARGEST for x in found)


# ------------------------------------------------------------------ words


def _refuse(
    path: Path, reason: str, expected: str, found: str, tensor: str | None = None
) -> NoReturn:
    raise InputError(
        _("this is not a whole safetensors file: {reason}").format(reason=reason),
        where=str(path) if tensor is None else f"{path}: {shown(tensor)}",
        expected=expected,
        found=found,
    )


def bytes_of(count: int) -> str:
    """A number of bytes, for messages."""
    return _("{count} bytes").format(count=f"{count:,}")


def at_least(count: int) -> str:
    """A minimum of bytes, for messages."""
    return _("at least {count} bytes").format(count=f"{count:,}")


def sides(shape: Sequence[int]) -> str:
    """A shape as messages write it: 2×3; empty for a single number."""
    return "×".join(map(str, shape)) or _("one number")


def shown(found: object) -> str:
    """What was found in a file, for a message: one printable line, not too long."""
    if not isinstance(found, str):
        try:
            found = json.dumps(found, ensure_ascii=False, default=float)
        except (ValueError, OverflowError, RecursionError):  # very many digits, or nested lists
            found = _("too much to show")
    line = found if found.isprintable() else ascii(found)
    return line if len(line) <= 80 else line[:79] + "…"

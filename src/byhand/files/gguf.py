"""GGUF files, memory-mapped: settings, and tensors whose blocks stay packed until they are read.

    4 bytes    GGUF
    u32, u64, u64   the version (2 or 3), how many tensors, how many settings
    settings   a name, a type, a value; an array has a type and a length before its values
    tensors    a name, how many sides, the sides (the innermost first), a type, an offset
    padding    to the alignment, 32 unless general.alignment says otherwise
    the rest   the data; each offset counts from here and is a multiple of the alignment

All numbers are little-endian; a text is its length and its bytes.  The whole header is checked
first: what it promises must lie within the file, so a false count cannot ask for memory.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from byhand.errors import InputError
from byhand.files.ggml import MINIMA, TYPES, UNREAD, Type, addends, unpacked
from byhand.files.ggml_slips import slips
from byhand.files.mapped import LARGEST, at_least, bytes_of, plain_file, shown, sides
from byhand.language import _
from byhand.weights import Data

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_AXES = 4
MOST_SETTINGS = 65_536
MOST_TENSORS = 1_000_000
MOST_TEXTS = 1 << 24  # of one array
LONGEST_NAME = 65_535  # bytes of a setting's or a tensor's name
ALIGNMENT, LARGEST_ALIGNMENT = "general.alignment", 1 << 20
SPLIT_COUNT, SPLIT_NUMBER = "split.count", "split.no"
_SCALARS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?",
    10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_TEXT, _ARRAY = 8, 9
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
_READ_AT_A_TIME = 1 << 20  # entries


@dataclass(frozen=True, slots=True)
class Packed:
    """One tensor of a file: its header, and its numbers on request."""

    name: str
    type: Type
    shape: tuple[int, ...]  # the innermost side last
    file: Path
    _offset: int = field(repr=False)
    _bytes: mmap.mmap = field(repr=False, compare=False)

    @property
    def where(self) -> str:
        """The file and the tensor, for messages."""
        return f"{self.file}: {shown(self.name)}"

    @property
    def size(self) -> int:
        """The number of entries."""
        return _size(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The float format that holds every number of this type exactly."""
        return self.type.dtype

    @property
    def bits(self) -> Fraction:
        """How many bits an entry takes in the file, scales included."""
        return Fraction(8 * self.type.bytes, self.type.block)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the file's name, which is opened there."""
        return _again, (self.file, self.name)

    def blocks(self) -> Data:
        """The bytes of the tensor, one row a block: a read-only view of the file."""
        count = self.size // self.type.block
        flat = np.frombuffer(
            self._bytes, np.uint8, count=count * self.type.bytes, offset=self._offset
        )
        return flat.reshape(count, self.type.bytes)

    def array(self) -> Data:
        """The numbers, exactly; InputError where one is infinite or none at all."""
        blocks = self.blocks()
        if self.type.plain:
            data = blocks.view(self.type.plain).reshape(self.shape)
            return self._finite(data, data.astype(self.dtype, copy=False))
        out = np.empty((len(blocks), self.type.block), self.dtype)
        some = max(1, _READ_AT_A_TIME // self.type.block)
        for start in range(0, len(blocks), some):
            part = blocks[start : start + some]
            with np.errstate(all="ignore"):  # infinite scales are told below
                out[start : start + some] = unpacked(self.type, part)
        return self._finite(out.reshape(self.shape), out.reshape(self.shape))

    @property
    def of_two_terms(self) -> bool:
        """Whether entries are scale·code + minimum."""
        return self.type.name in MINIMA

    def addends(self) -> Data:
        """The sums of the sizes of an entry's terms; its own size where it has one."""
        found = addends(self.type, self.blocks()) if self.of_two_terms else None
        return np.abs(self.array()) if found is None else found.reshape(self.shape)

    def misread(self) -> Iterator[tuple[str, Data]]:
        """What readers make of the blocks by mistake: the mistake's name, and the numbers."""
        if self.type.unpack is not None:
            for name, numbers in slips(self.type, self.blocks()):
                yield name, numbers.reshape(self.shape)

    def _finite(self, stored: Data, data: Data) -> Data:
        if stored.dtype.kind != "i" and (at := _first_infinite(stored)) is not None:
            index = ",".join(map(str, at))
            raise InputError(
                _("{name}[{index}] is not a number").format(name=shown(self.name), index=index),
                where=str(self.file),
                expected=_("a finite number"),
                found=str(float(data[at])),
            )
        return data


@dataclass(frozen=True)
class Contents:
    """What a GGUF file holds, or all parts of one: its settings and its tensors."""

    path: Path  # of the first part
    settings: Mapping[str, Any]  # numbers, texts, truth values; arrays, lists of texts
    tensors: Mapping[str, Packed]


def open_gguf(path: Path) -> Contents:
    """The file, with all its other parts where it is one of several."""
    first = _first_part(path)
    contents = _open(first)
    count = contents.settings.get(SPLIT_COUNT, 0)
    part = _PART.fullmatch(first.name)
    if not isinstance(count, int) or count <= 1:
        return contents
    if part is None or int(part[3]) != count:
        raise InputError(
            _("this is one of {count} parts, and its name does not tell the others'").format(
                count=count
            ),
            where=str(first),
            expected=f"….gguf: …-00001-of-{count:05}.gguf",
            found=first.name,
        )
    tensors = dict(contents.tensors)
    for number in range(1, count):
        other = _open(first.with_name(f"{part[1]}-{number + 1:05}-of-{part[3]}.gguf"))
        if other.settings.get(SPLIT_NUMBER) != number:
            _refuse(other.path, _("it is another part"), f"{SPLIT_NUMBER} = {number}",
                    shown(_plain(other.settings.get(SPLIT_NUMBER))))  # fmt: skip
        for name, tensor in other.tensors.items():
            if name in tensors:
                reason = _("a name is in its header twice")
                _refuse(other.path, reason, _("each name once"), shown(name))
            tensors[name] = tensor
    return Contents(first, contents.settings, tensors)


def _again(path: Path, name: str) -> Packed:
    """A tensor of a file that another process has opened."""
    tensors = _opened_again(path)
    if name not in tensors:
        raise InputError(
            _("the tensor {name} is missing").format(name=shown(name)), where=str(path)
        )
    return tensors[name]


@lru_cache(maxsize=64)
def _opened_again(path: Path) -> Mapping[str, Packed]:
    return _open(path).tensors


def _first_part(path: Path) -> Path:
    part = _PART.fullmatch(path.name)
    if part is None or int(part[2]) == 1:
        return path
    return path.with_name(f"{part[1]}-00001-of-{part[3]}.gguf")


def _open(path: Path) -> Contents:
    try:
        with open(path, "rb", opener=plain_file) as file:
            size = file.seek(0, 2)
            if size < 24:
                _refuse(path, _("it is too short"), at_least(24), bytes_of(size))
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(
            _("the file cannot be read: {reason}").format(
                reason=getattr(error, "strerror", None) or error
            ),
            where=str(path),
        ) from None
    return _Header(path, mapped, size).contents()


# ------------------------------------------------------------------ the header


class _Header:
    """A place in the header, which moves on as numbers and texts are read."""

    def __init__(self, path: Path, mapped: mmap.mmap, size: int) -> None:
        self.path, self.mapped, self.size = path, mapped, size
        self.place = 0

    def contents(self) -> Contents:
        """The settings and the tensors, after all checks."""
        magic = self.taken(4)
        if magic != MAGIC:
            _refuse(self.path, _("it begins with something else"), repr(MAGIC)[1:], repr(magic)[1:])
        version = self.number("<u4")
        if version not in VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS
            found = _("big-endian numbers") if swapped else str(version)
            _refuse(self.path, _("byhand does not read its version"), "2, 3", found)
        tensors = self.count("<u8", MOST_TENSORS, 25)
        settings = self.settings(self.count("<u8", MOST_SETTINGS, 13))
        entries = dict(self.entries(tensors))
        alignment = self.alignment(settings)
        start = -(-self.place // alignment) * alignment
        self.lie_apart(entries, start, alignment)
        return Contents(
            self.path,
            settings,
            {
                name: Packed(name, kind, shape, self.path, start + offset, self.mapped)
                for name, (kind, shape, offset) in entries.items()
            },
        )

    # -------------------------------------------------------------- numbers and texts

    def taken(self, count: int) -> bytes:
        """The next bytes."""
        if count > self.size - self.place:
            reason = _("it ends within its header")
            _refuse(self.path, reason, at_least(self.place + count), bytes_of(self.size))
        self.place += count
        return self.mapped[self.place - count : self.place]

    def number(self, format: str) -> Any:
        """The next number, of a NumPy format."""
        dtype = np.dtype(format)
        return np.frombuffer(self.taken(dtype.itemsize), dtype)[0].item()

    def count(self, format: str, most: int, least_bytes: int) -> int:
        """The next number, which counts things of so many bytes at least."""
        found = int(self.number(format))
        if found > most or found * least_bytes > self.size - self.place:
            fits = min(most, (self.size - self.place) // least_bytes)
            expected = _("at most {count}").format(count=f"{fits:,}")
            _refuse(self.path, _("it promises more than it holds"), expected, f"{found:,}")
        return found

    def text(self, at: str, longest: int = 1 << 30) -> str:
        """The next text, in UTF-8."""
        raw = self.taken(self.count("<u8", longest, 1))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            found = shown(raw[:40].decode("utf-8", "replace"))
            _refuse(self.path, _("a text in it is not Unicode"), "UTF-8", found, at)

    def value(self, kind: int, at: str) -> Any:
        """The next value of a type."""
        if kind == _TEXT:
            return self.text(at)
        if kind == _ARRAY:
            return self.array(at)
        if kind not in _SCALARS:
            known = ", ".join(map(str, range(13)))
            _refuse(self.path, _("it has an unknown type of values"), known, str(kind), at)
        raw = self.number("<u1" if kind == 7 else _SCALARS[kind])
        return bool(raw) if kind == 7 else raw

    def array(self, at: str) -> Any:
        """The next array: numbers as a view of the file, texts as a list."""
        kind = self.number("<u4")
        if kind == _TEXT:
            return [self.text(at) for _each in range(self.count("<u8", MOST_TEXTS, 8))]
        if kind not in _SCALARS:
            reason = _("arrays within arrays") if kind == _ARRAY else str(kind)
            expected = _("an array of numbers or of texts")
            _refuse(self.path, _("it has an unknown type of values"), expected, reason, at)
        dtype = np.dtype("<u1" if kind == 7 else _SCALARS[kind])
        count = self.count("<u8", LARGEST, dtype.itemsize)
        view = np.frombuffer(self.mapped, dtype, count=count, offset=self.place)
        self.place += count * dtype.itemsize
        return view

    # -------------------------------------------------------------- what they say

    def settings(self, count: int) -> dict[str, Any]:
        """The settings by name."""
        found: dict[str, Any] = {}
        for _each in range(count):
            name = self.text("", LONGEST_NAME)
            if name in found:
                _refuse(self.path, _("a name is in its header twice"), _("each name once"),
                        shown(name))  # fmt: skip
            found[name] = self.value(self.number("<u4"), name)
        return found

    def entries(self, count: int) -> dict[str, tuple[Type, tuple[int, ...], int]]:
        """Each tensor's type, shape and offset by its name."""
        found: dict[str, tuple[Type, tuple[int, ...], int]] = {}
        for _each in range(count):
            name = self.text("", LONGEST_NAME)
            if name in found:
                _refuse(self.path, _("a name is in its header twice"), _("each name once"),
                        shown(name))  # fmt: skip
            axes = self.number("<u4")
            if not 1 <= axes <= MOST_AXES:
                expected = _("a shape of at most {count} whole numbers").format(count=MOST_AXES)
                _refuse(self.path, _("its header is malformed"), expected, str(axes), name)
            shape = struct.unpack(f"<{axes}Q", self.taken(8 * axes))[::-1]
            kind = self.type_of(self.number("<u4"), name)
            self.check_shape(name, shape, kind)
            found[name] = kind, shape, self.number("<u8")
        return found

    def type_of(self, number: int, name: str) -> Type:
        """The type of this number; InputError if byhand does not read it."""
        if (kind := TYPES.get(number)) is None:
            raise InputError(
                _("byhand does not read the type of {name}").format(name=shown(name)),
                where=f"{self.path}: {shown(name)}",
                expected=", ".join(sorted(each.name for each in TYPES.values())),
                found=UNREAD.get(number, str(number)),
            )
        return kind

    def check_shape(self, name: str, shape: tuple[int, ...], kind: Type) -> None:
        """Refuses sides that no file can hold, and rows that are no whole blocks."""
        if not all(1 <= side <= LARGEST for side in shape) or _size(shape) > LARGEST:
            expected = _("sides from 1 on, fewer than 2^63 entries")
            _refuse(self.path, _("its header is malformed"), expected, sides(shape), name)
        if shape[-1] % kind.block:
            expected = _("rows of a multiple of {count} entries, for {type}").format(
                count=kind.block, type=kind.name
            )
            _refuse(self.path, _("its header is malformed"), expected, str(shape[-1]), name)

    def alignment(self, settings: Mapping[str, Any]) -> int:
        """What offsets are multiples of."""
        found = settings.get(ALIGNMENT, 32)
        whole = type(found) is int and 1 <= found <= LARGEST_ALIGNMENT
        if not whole or found & (found - 1):
            expected = _("a power of 2, up to {most}").format(most=f"{LARGEST_ALIGNMENT:,}")
            _refuse(
                self.path, _("its header is malformed"), expected, shown(_plain(found)), ALIGNMENT
            )
        return int(found)

    def lie_apart(
        self,
        entries: Mapping[str, tuple[Type, tuple[int, ...], int]],
        start: int,
        alignment: int,
    ) -> None:
        """Refuses tensors that overlap, are not aligned, or end beyond the file."""
        end = 0
        for name, (kind, shape, offset) in sorted(entries.items(), key=lambda item: item[1][2]):
            if offset % alignment:
                expected = _("an offset that is a multiple of {count}").format(count=alignment)
                _refuse(self.path, _("its header is malformed"), expected, f"{offset:,}", name)
            if offset < end:
                expected = _("an offset of at least {start}").format(start=f"{end:,}")
                reason = _("the data of its tensors overlaps")
                _refuse(self.path, reason, expected, f"{offset:,}", name)
            end = offset + _size(shape) // kind.block * kind.bytes
            if start + end > self.size:
                reason = _("it is truncated")
                _refuse(self.path, reason, at_least(start + end), bytes_of(self.size), name)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size


def _first_infinite(data: Data) -> tuple[int, ...] | None:
    """The index of the first entry that is not a finite number."""
    flat = data.reshape(-1)
    for start in range(0, flat.size, _READ_AT_A_TIME):
        finite = np.isfinite(flat[start : start + _READ_AT_A_TIME])
        if not finite.all():
            at = np.unravel_index(start + int(finite.argmin()), data.shape)
            return tuple(int(place) for place in at)
    return None


def _plain(found: Any) -> Any:
    """A value for a message: arrays as lists."""
    return found[:8].tolist() if isinstance(found, np.ndarray) else found


def _refuse(path: Path, reason: str, expected: str, found: str, at: str | None = None) -> NoReturn:
    raise InputError(
        _("this is not a whole GGUF file: {reason}").format(reason=reason),
        where=str(path) if not at else f"{path}: {shown(at)}",
        expected=expected,
        found=found,
    )

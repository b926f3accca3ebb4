"""Weights: named tensors of exact numbers.

"0.2" is 1/5 and a float32 is the dyadic rational it is.  A tensor's data is a NumPy float array, or
an object array.  Objects are Fraction, Expression (`sqrt(2)/2`), Printed, Within, Unknown or ABSENT
(`masked`).  Nothing here computes with them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from math import prod
from threading import Lock
from typing import Any, Protocol
from weakref import ref

import numpy as np
import numpy.typing as npt

from byhand.expression import Expression

Data = npt.NDArray[Any]
RECENT = 1 << 28  # bytes of unpacked tensors that stay open: 256 MB


class Pages(Protocol):
    """A part of a file that is mapped into memory."""

    def expect(self) -> None:
        """It will be needed soon."""

    def release(self) -> None:
        """It is not needed for now."""


class Tensor:
    """One tensor.  `same_as` names the tensor whose parameters these are: tied or referenced.

    The data is read-only: tensors that refer to each other share it.  A tensor made by `Tensor.at`
    knows its shape from the start and opens its data when first asked for it.  `stored` is the
    format of its file, such as BF16 or Q4_K, and `bits` what an entry takes there; both are None
    for numbers that are written out.
    """

    __slots__ = (
        "_data", "_kept", "_open", "_unpacked", "addends", "bits", "dtype", "misread", "name",
        "pages", "portable", "same_as", "shape", "stored",
    )  # fmt: skip

    def __init__(self, name: str, data: Data, same_as: str | None = None) -> None:
        self.name = name
        self.same_as = same_as
        self.shape: tuple[int, ...] = tuple(data.shape)
        self.dtype: np.dtype[Any] = data.dtype
        self.stored: str | None = None
        self.bits = Fraction(8 * data.dtype.itemsize) if self.floats else None
        # of entries that are sums of two terms, the sums of their sizes; None: they are not
        self.addends: Callable[[], Data] | None = None
        # what readers of its format may make of it by mistake: a name and the entries, each
        self.misread: Callable[[], Iterator[tuple[str, Data]]] | None = None
        self.portable = False
        self.pages: tuple[Pages, ...] = ()  # where its data lies in files, while it is mapped
        self._data: Data | None = _read_only(data)
        self._open: Callable[[], Data] | None = None
        self._kept = True
        self._unpacked: Callable[[], Data | None] = _nothing  # or a weak reference

    @classmethod
    def at(
        cls,
        name: str,
        opening: Callable[[], Data],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        same_as: str | None = None,
        *,
        kept: bool = True,
        stored: str | None = None,
        bits: Fraction | None = None,
        addends: Callable[[], Data] | None = None,
        misread: Callable[[], Iterator[tuple[str, Data]]] | None = None,
        portable: bool = False,
        pages: tuple[Pages, ...] = (),
    ) -> Tensor:
        """A tensor whose data `opening` gives when it is first needed.

        Data that is not `kept` is packed in its file: it is unpacked again whenever it is needed,
        unless somebody holds it still or it is one of the last that were.  It is `portable` if
        another process can open it from the functions that are given here.
        """
        tensor = cls(name, np.empty(0, dtype), same_as)
        tensor.shape = shape
        tensor._data, tensor._open, tensor._kept = None, opening, kept
        tensor.stored, tensor.addends, tensor.misread = stored, addends, misread
        tensor.portable, tensor.pages = portable, pages
        tensor.bits = tensor.bits if bits is None else bits
        return tensor

    @property
    def data(self) -> Data:
        """The entries as a read-only array, opened when first read."""
        if self._data is not None:
            return self._data
        assert self._open is not None
        if (data := self._unpacked()) is None:
            data = _read_only(self._open())
            if self._kept:
                self._data, self._open = data, None
            else:
                self._unpacked = ref(data)
                _RECENT.hold(data)
        return data

    def expect(self) -> None:
        """Has the data read from its file ahead of its use, where that helps."""
        for pages in self.pages:
            pages.expect()

    def release(self) -> None:
        """Lets go of memory until the data is read again: a view of a file stays valid."""
        for pages in self.pages:
            pages.release()

    @property
    def size(self) -> int:
        """The number of entries."""
        return prod(self.shape)

    @property
    def expressions(self) -> bool:
        """Whether an entry is an expression, such as sqrt(2)/2, rather than a rational."""
        return not self.floats and any(isinstance(x, Expression) for x in self.data.flat)

    @property
    def floats(self) -> bool:
        """Whether the entries are floats, rather than objects."""
        return self.dtype != np.dtype(object)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the data, opened; a portable tensor opens its file there."""
        if not self.portable:
            return Tensor, (self.name, np.array(self.data), self.same_as)
        ways: dict[str, Any] = {"stored": self.stored, "bits": self.bits, "addends": self.addends,
                "misread": self.misread, "kept": False, "portable": True}  # fmt: skip
        made = partial(Tensor.at, **ways)
        return made, (self.name, self._open, self.shape, self.dtype, self.same_as)

    def __repr__(self) -> str:
        return f"<Tensor {self.name}: {'×'.join(map(str, self.shape))} {self.dtype}>"


class _Recent:
    """Holds the arrays that were unpacked last, RECENT bytes of them at most."""

    def __init__(self) -> None:
        self.arrays: deque[Data] = deque()
        self.size = 0
        self.lock = Lock()

    def hold(self, data: Data) -> None:
        """Holds this array, and lets go of the oldest."""
        with self.lock:
            self.arrays.append(data)
            self.size += data.nbytes
            while self.size > RECENT:
                self.size -= self.arrays.popleft().nbytes


_RECENT = _Recent()


def _nothing() -> None:
    """No array was unpacked yet."""


def _read_only(data: Data) -> Data:
    frozen = data.view()
    frozen.flags.writeable = False
    return frozen


class Weights(Mapping[str, Tensor]):
    """The tensors of a model by name, in spine order."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = dict(tensors)

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def finer_than_float32(self) -> bool:
        """Whether a tensor holds float64, which float32 would round."""
        return any(tensor.dtype == np.float64 for tensor in self._tensors.values())

    def __repr__(self) -> str:
        size = sum(tensor.size for tensor in self._tensors.values())
        return f"<Weights: {len(self)} tensors, {size:,} numbers>"

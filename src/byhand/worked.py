"""A worked step: its value in a number system, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from byhand import decimals
from byhand.display import Shown
from byhand.errors import ByhandError, InputError, Undecided
from byhand.language import _
from byhand.numbers.base import ABSENT, REGISTERS, Note, Numbers, nearest_float
from byhand.plan import GRAD, SCORES, Step

WHOLE = ("given", "argmax")  # operations whose values are ids, not numbers of the number system
ABSENT_AS = dict.fromkeys(SCORES, -np.inf) | {"softmax": 0.0}  # a masked entry, in floats


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a step has no value: an unknown weight, or a decision that could not be made."""

    kind: str  # "unknown" | "undecided"
    cause: str  # the weight that is unknown, or the step that could not be decided
    message: str = ""

    def error(self, address: str) -> ByhandError:
        """The error for reading the value of a missing step."""
        if self.kind == "undecided":
            return Undecided(self.message, where=self.cause)
        return InputError(
            _("{name} cannot be worked out").format(name=address),
            hint=_("{name} is unknown").format(name=self.cause),
        )


@dataclass(frozen=True)
class Worked(Shown):
    """A step with its value, or with the reason why it has none.

    An index gives an entry or a part of the value, `numpy.asarray` all of it in floats.

    >>> import byhand, numpy
    >>> weights = byhand.trace("tiny", "a b")["block.0.attn.weights"]
    >>> weights
    <block.0.attn.weights 1×2×2 named: [[[1, ·], [1/(1 + e), e/(1 + e)]]]>
    >>> weights[0, 1, 1], weights.register_at((0, 0, 0)), weights.step.reads
    (e/(1 + e), 'exact', ('block.0.attn.scores',))
    >>> numpy.asarray(weights).round(2).tolist()
    [[[1.0, 0.0], [0.27, 0.73]]]
    """

    step: Step
    value: Any
    numbers: Numbers
    notes: tuple[Note, ...] = ()
    missing: Missing | None = None

    @property
    def address(self) -> str:
        """The name of the step, such as block.0.attn.scores."""
        return self.step.address

    @property
    def whole(self) -> bool:
        """Whether the entries are ids, not numbers of the number system."""
        return self.step.op in WHOLE and self.step.axes in ((), ("pos",), ("source",))

    @cached_property
    def array(self) -> Any:
        """The value as an array on this machine."""
        return self.numbers.entries(self.value)

    def __getitem__(self, index: Any) -> Any:
        """An entry or a part of the value; where the step is missing, the error that says why."""
        if self.missing is not None:
            raise self.missing.error(self.address)
        if self.whole:
            return self.value[index[0] if isinstance(index, tuple) else index]
        return decimals.handed_out(_absent_or(self.array[index]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Ids as int64, floats as they are, other numbers as the nearest float64; for an enclosure,
        that of its midpoint.  A masked score is -∞ and a masked attention weight 0.

        Raises the error that says why where a step is missing, or an id or a number is unknown.
        """
        if self.missing is not None:
            raise self.missing.error(self.address)
        found = self.value if self.whole else self._in_floats()
        if self.step.op == "argmax":
            found = [prediction.id for prediction in self.value]
            if None in found:
                place = f"{self.address}[{found.index(None)}]"
                raise Undecided(_("the next token is undecided"), where=place)
        dtype = dtype or (np.int64 if self.whole else None)
        if copy is None:  # no word for NumPy before version 2
            return np.asarray(found, dtype)
        return np.array(found, dtype, copy=copy)

    def _in_floats(self) -> np.ndarray[Any, Any]:
        if isinstance(self.array, np.ndarray) and self.array.dtype != np.dtype(object):
            data = np.array(np.ma.getdata(self.array))  # a copy: nobody writes into a trace
            if isinstance(self.array, np.ma.MaskedArray):
                data[np.ma.getmaskarray(self.array)] = self.absent
            return data
        flat = [self.absent if x is ABSENT else nearest_float(x) for _index, x in self.entries()]
        return np.asarray(flat, dtype=np.float64).reshape(self.step.shape)

    @property
    def absent(self) -> float:
        """A masked entry in floats: a score is -∞, a weight or a gradient 0, a loss no number."""
        if self.address.startswith(GRAD):
            return 0.0
        return ABSENT_AS.get(self.step.op, np.nan)

    def at(self, index: tuple[int, ...]) -> Any:
        """One entry; ABSENT where it is masked."""
        return _absent_or(self.array[index])

    def entries(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Every entry with its index; masked ones are ABSENT.  Empty where the step is missing."""
        if self.missing is None and not self.whole:
            for index in product(*map(range, self.step.shape)):
                yield index, self.at(index)

    def register_at(self, index: tuple[int, ...]) -> str | None:
        """The register of one entry; None where it is masked or missing."""
        if self.missing is not None:
            return None
        if self.whole:
            return self.register
        entry = self.at(index)
        return None if entry is ABSENT else self.numbers.register(entry)

    @cached_property
    def register(self) -> str | None:
        """The weakest register of the entries; None where the step is missing."""
        if self.missing is not None:
            return None
        if self.step.op == "given" and self.whole:
            return "exact"
        if self.numbers.uniform or self.whole:
            return self.numbers.uniform or "exact"
        return weakest(self.numbers.register(x) for _i, x in self.entries() if x is not ABSENT)

    @cached_property
    def row_registers(self) -> tuple[str, ...]:
        """The weakest register of each position's entries; empty where there are no positions."""
        axis = self.step.position_axis
        if axis is None or self.missing is not None:
            return ()
        if self.numbers.uniform or self.whole:
            return (self.register or "exact",) * self.step.shape[axis]
        rows: list[list[str]] = [[] for _row in range(self.step.shape[axis])]
        for index, entry in self.entries():
            if entry is not ABSENT:
                rows[index[axis]].append(self.numbers.register(entry))
        return tuple(map(weakest, rows))

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.step.shape))
        if self.missing is not None:
            return f"<{self.address} {shape} {self.missing.kind}: {self.missing.cause}>"
        shown = self.value if self.whole else self.array
        if self.step.op == "argmax":
            shown = ["?" if found.id is None else found.id for found in self.value]
        return f"<{self.address} {shape} {self.register}: {_short(shown)}>"


def _absent_or(entry: Any) -> Any:
    """The entry; ABSENT where NumPy has it masked."""
    return ABSENT if entry is np.ma.masked else entry


def weakest(registers: Any) -> str:
    """The weakest of some registers; "exact" where there are none."""
    return max(registers, key=REGISTERS.index, default="exact")


def _short(value: Any, width: int = 60) -> str:
    if isinstance(value, np.ndarray) and value.size > width:  # too many to fit
        first = value[(0,) * (value.ndim - 1)][:width]
        return ("[" * (value.ndim - 1) + _plain(first))[: width - 1] + "…"
    text = _plain(value)
    return text if len(text) <= width else text[: width - 1] + "…"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return "·" if _absent_or(value) is ABSENT else str(value)

"""The recording of array code as the lines of a Triton kernel.

`Recorded` rows stand in for rows of entries.  Their operations are written down in Triton, in the
same order.  So a kernel made of the lines (fused.py, kernels.py) gives the bits of the array code.
Nothing is run here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from byhand.numbers.enclosed.limbs.engine import Array, Elementwise, Recorded

ENTRIES = 1  # the length that a recorded row claims; no line depends on it
ROUNDS = 1.5 * 2.0**52  # added and taken off again, it rounds what is below 2^51 to integers


class Row(Recorded):
    """One row of entries: the name of the variable that holds it now."""

    shape = (ENTRIES,)

    def __init__(self, recorder: Recorder, name: str = "0.0") -> None:
        self.engine = recorder
        self.name = name

    def set(self, line: str) -> None:
        """Notes a line and takes its result."""
        self.name = self.engine.note(line)

    def __setitem__(self, index: Any, value: Row) -> None:
        self.name = value.name

    def __getitem__(self, index: None) -> Rows:
        return Rows(self.engine, [self])

    def _made(self, sign: str, other: Row | float) -> str:
        name: str = self.engine.note(f"{self.name} {sign} {name_of(other)}")
        return name

    def __add__(self, other: Row | float) -> Row:
        return Row(self.engine, self._made("+", other))

    def __sub__(self, other: Row | float) -> Row:
        return Row(self.engine, self._made("-", other))

    def __mul__(self, other: Row | float) -> Row:
        return Row(self.engine, self._made("*", other))

    def __truediv__(self, other: Row | float) -> Row:
        return Row(self.engine, self._made("/", other))

    def __abs__(self) -> Row:
        return Row(self.engine, self.engine.note(f"tl.maximum({self.name}, -{self.name})"))

    def __iadd__(self, other: Row | float) -> Row:
        self.name = self._made("+", other)
        return self

    def __isub__(self, other: Row | float) -> Row:
        self.name = self._made("-", other)
        return self

    def __imul__(self, other: Row | float) -> Row:
        self.name = self._made("*", other)
        return self


def name_of(value: Row | float) -> str:
    """The value as it is written in a line."""
    return value.name if isinstance(value, Row) else repr(float(value))


class Rows(Recorded):
    """Several rows: limbs, or rows taken from a table."""

    def __init__(self, recorder: Recorder, rows: Sequence[Row]) -> None:
        self.engine = recorder
        self.rows = list(rows)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and that of entries, which stands for any."""
        return len(self.rows), ENTRIES

    def __getitem__(self, index: Any) -> Any:
        index = index[0] if isinstance(index, tuple) else index
        return Rows(self.engine, self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __setitem__(self, index: int, value: Any) -> None:
        if isinstance(value, Row):
            self.rows[index].name = value.name
        else:
            self.rows[index].set(f"zero + {float(value)!r}")

    def __iadd__(self, other: Rows) -> Rows:
        for row, more in zip(self.rows, other.rows, strict=True):
            row += more
        return self

    def __imul__(self, factor: Row | float) -> Rows:
        for row in self.rows:
            row *= factor
        return self


class Columns(Recorded):
    """A table in the device's memory: rows that a point is looked up in."""

    def __init__(self, recorder: Recorder, name: str, shape: Sequence[int], first: int = 0) -> None:
        self.engine = recorder
        self.name = name
        self.shape = tuple(shape)
        self.first = first

    def row(self, i: int, at: str) -> Row:
        """One row of the table, loaded at the places of the entries."""
        place = f"{self.name} + {(self.first + i) * self.shape[1]} + {at}"
        return Row(self.engine, self.engine.note(f"tl.load({place})"))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            first, stop, _step = index.indices(self.shape[0])
            shape = (stop - first, self.shape[1])
            return Columns(self.engine, self.name, shape, self.first + first)
        return self.row(index, "0")

    @property
    def rows(self) -> list[Row]:
        """The rows of a table with one point, the same for every entry."""
        return [self.row(i, "0") for i in range(self.shape[0])]


class Recorder(Elementwise):
    """The functions elementwise code is written in, noted down line by line."""

    name = "recorder"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> str:
        """Notes a line; returns the name of its result."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {line}")
        return name

    def empty(self, shape: Sequence[int], like: Array) -> Array:
        if len(shape) == 1:
            return Row(self)
        return Rows(self, [Row(self) for _ in range(shape[0])])

    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        """Rows of zeros."""
        return Rows(self, [Row(self, "zero") for _ in range(shape[0])])

    def rint(self, array: Row, out: Row | None = None) -> Row:
        """The nearest integers, for numbers below 2^51 in size."""
        out = Row(self) if out is None else out
        self.round_to(array, 1.0, out)
        return out

    def carry(self, limb: Row, above: Row, base: float, over: Row, back: Row) -> None:
        """Notes the carry from one limb to the limb above it."""
        self.scale(limb, 1.0 / base, over)
        self.rint(over, over)
        self.scale(over, base, back)
        limb -= back
        above += over

    def scale(self, array: Row, factor: float, out: Row) -> None:
        out.set(f"{array.name} * {factor!r}")

    def round_to(self, array: Row, unit: float, out: Row) -> None:
        large = ROUNDS * unit
        out.set(f"{array.name} + {large!r}")
        out.set(f"{out.name} - {large!r}")

    def carry_scaled(self, limbs: Rows, unit: float, base: float) -> None:
        for i in range(len(limbs.rows) - 1, 0, -1):
            over = Row(self)
            self.round_to(limbs.rows[i], unit / base ** (i - 1), over)
            limbs.rows[i] -= over
            limbs.rows[i - 1] += over

    def index(self, limb: Row, offset: int, columns: int) -> Row:
        moved = self.note(f"{limb.name} + {float(offset)!r}")
        kept = self.note(f"tl.minimum(tl.maximum({moved}, 0.0), {float(columns - 1)!r})")
        return Row(self, self.note(f"{kept}.to(tl.int32)"))

    def take(self, table: Columns, index: Row) -> Rows:
        return Rows(self, [table.row(i, index.name) for i in range(table.shape[0])])

    def diagonal(self, x: Rows, y: Rows, first: int, last: int, of: int, out: Row) -> None:
        out.set(f"{x.rows[first].name} * {y.rows[of - first].name}")
        for i in range(first + 1, last):
            out.set(f"{out.name} + {x.rows[i].name} * {y.rows[of - i].name}")

    def multiply_add(self, total: Row, x: Row, y: Row) -> None:
        total.set(f"{total.name} + {x.name} * {y.name}")

    def positive(self, array: Row) -> Row:
        return Row(self, self.note(f"tl.where({array.name} >= 0, zero + 1.0, zero)"))

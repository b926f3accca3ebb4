"""A whole elementwise function as a kernel of the GPU: limbs are read once and written once.

The array code of polynomials.py and exponential.py is not written a second time: it runs once on
`Recorded` rows, which note every operation as a line of Triton, and the lines become the kernel.
So the same operations are done in the same order (no fused multiply-add is allowed), and the bits
are those of the array code.  Many limbs make a long program, which compilers are slow with: it is
cut into kernels that hand rows on.  Where Triton is missing or has no compiler, `worked` says so
and the array code itself is used.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from byhand.numbers.enclosed.engine import Array, Elementwise, Recorded
from byhand.numbers.enclosed.polynomials import Table

BLOCK = 128
LINES = 450  # of one kernel: two seconds to compile
PIECE = 1 << 22  # entries at a time, which bounds the memory between kernels
ENTRIES = 1  # what a recorded row says its length is; no line depends on it


class Row(Recorded):
    """One row of entries: the name of the variable that holds it now."""

    shape = (ENTRIES,)

    def __init__(self, recorder: Recorder, name: str = "0.0") -> None:
        self.engine = recorder
        self.name = name

    def set(self, line: str) -> None:
        self.name = self.engine.note(line)

    def __setitem__(self, index: Any, value: Row) -> None:
        self.name = value.name

    def __add__(self, other: Row) -> Row:
        return Row(self.engine, self.engine.note(f"{self.name} + {other.name}"))

    def __iadd__(self, other: Row) -> Row:
        self.set(f"{self.name} + {other.name}")
        return self

    def __isub__(self, other: Row) -> Row:
        self.set(f"{self.name} - {other.name}")
        return self

    def __imul__(self, other: Row) -> Row:
        self.set(f"{self.name} * {other.name}")
        return self


class Rows(Recorded):
    """Rows one above another: limbs, or what was taken from a table."""

    def __init__(self, recorder: Recorder, rows: Sequence[Row]) -> None:
        self.engine = recorder
        self.rows = list(rows)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), ENTRIES

    def __getitem__(self, index: Any) -> Any:
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


class Columns(Recorded):
    """A table in the device's memory: rows that a point is looked up in."""

    def __init__(self, recorder: Recorder, name: str, shape: Sequence[int], first: int = 0) -> None:
        self.engine = recorder
        self.name = name
        self.shape = tuple(shape)
        self.first = first

    def row(self, i: int, at: str) -> Row:
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
        """Of a table with one point: the same for every entry."""
        return [self.row(i, "0") for i in range(self.shape[0])]


class Recorder(Elementwise):
    """The functions elementwise code is written in, noted down line by line."""

    name = "recorder"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {line}")
        return name

    def empty(self, shape: Sequence[int], like: Array) -> Array:
        if len(shape) == 1:
            return Row(self)
        return Rows(self, [Row(self) for _ in range(shape[0])])

    def scale(self, array: Row, factor: float, out: Row) -> None:
        out.set(f"{array.name} * {factor!r}")

    def round_to(self, array: Row, unit: float, out: Row) -> None:
        large = 1.5 * 2.0**52 * unit
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


def worked(
    function: Callable[..., Array], tables: Sequence[Any], x: Array, limbs: int
) -> Array | None:
    """function(*tables, x) by kernels, x (n, entries); None where there are none to be had."""
    triton = _triton()
    if triton is None or x.device.type != "cuda" or not x.shape[1]:
        return None
    arrays = [table.rows if isinstance(table, Table) else table for table in tables]
    shapes = tuple(tuple(array.shape) for array in arrays)
    plain = tuple(
        replace(table, rows=None) if isinstance(table, Table) else None for table in tables
    )
    kernels, slots = _kernels(function, plain, shapes, x.shape[0])
    made = x.new_empty((limbs, x.shape[1]))
    between = x.new_empty((max(slots, 1), min(PIECE, x.shape[1])))
    try:
        for start in range(0, x.shape[1], PIECE):
            count = min(PIECE, x.shape[1] - start)
            for kernel in kernels:
                kernel[(triton.cdiv(count, BLOCK),)](
                    x, made, between, *arrays, start, count, x.shape[1], enable_fp_fusion=False
                )
    except (RuntimeError, OSError):  # no compiler on this machine
        _unavailable.append(True)
        return None
    return made


_unavailable: list[bool] = []


def _triton() -> Any:
    if _unavailable:
        return None
    try:
        return import_module("triton")
    except ImportError:
        return None


@lru_cache(256)
def _kernels(
    function: Callable[..., Array],
    tables: tuple[Table | None, ...],
    shapes: tuple[tuple[int, ...], ...],
    n: int,
) -> tuple[list[Any], int]:
    """The kernels, to be run one after another, and how many rows they hand on."""
    sources, slots = sources_of(function, tables, shapes, n)
    jit, language = import_module("triton").jit, import_module("triton.language")
    made = []
    for source in sources:
        file = f"<byhand kernel {abs(hash(source)):x}>"
        # where Triton looks the lines of a function up
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        names: dict[str, Any] = {"tl": language}
        exec(compile(source, file, "exec"), names)
        made.append(jit(names["kernel"]))
    return made, slots


def sources_of(
    function: Callable[..., Array],
    tables: Sequence[Table | None],
    shapes: Sequence[tuple[int, ...]],
    n: int,
) -> tuple[list[str], int]:
    """Kernels of at most about LINES lines, and how many rows they hand on to each other."""
    recorder = Recorder()
    columns = [Columns(recorder, f"table{i}", shape) for i, shape in enumerate(shapes)]
    given = [
        part if table is None else replace(table, rows=part)
        for table, part in zip(tables, columns, strict=True)
    ]
    x = Rows(recorder, [Row(recorder, f"x{i}") for i in range(n)])
    made = function(*given, x)
    results = [row.name for row in made.rows]
    arguments = ", ".join(["x", "out", "between", *(part.name for part in columns)])
    lines = recorder.lines
    used = [set(_NAME.findall(line.partition("=")[2])) for line in lines]
    # what later lines and the results read of the lines before each line
    alive: list[set[str]] = [set(results)]
    for i in range(len(lines) - 1, -1, -1):
        alive.append((alive[-1] - {f"v{i}"}) | used[i])
    alive = alive[::-1]
    parts = -(-len(lines) // LINES)
    cuts = [len(lines) * k // parts for k in range(parts + 1)]
    sources, most = [], 0
    for first, last in pairwise(cuts):
        enter = sorted(alive[first] - _inputs(n)) if first else []
        leave = sorted(alive[last] - _inputs(n)) if last < len(lines) else []
        most = max(most, len(leave))
        inputs = sorted(set().union(*used[first:last], results) & _inputs(n))
        whole = {name for name in (*enter, *leave) if ".to(tl.int32)" in lines[int(name[1:])]}
        body = [
            *(
                f"{name} = tl.load(x + {name[1:]} * length + start + at, inside, 0.0)"
                for name in inputs
            ),
            *(
                f"{name} = tl.load(between + {slot} * size + at, inside, 0.0)"
                + (".to(tl.int32)" if name in whole else "")
                for slot, name in enumerate(enter)
            ),
            *lines[first:last],
            *(
                f"tl.store(between + {slot} * size + at, {name}"
                + (".to(tl.float64), inside)" if name in whole else ", inside)")
                for slot, name in enumerate(leave)
            ),
        ]
        if last == len(lines):
            body += [
                f"tl.store(out + {i} * length + start + at, {name}, inside)"
                for i, name in enumerate(results)
            ]
        sources.append(
            "\n    ".join(
                [
                    f"def kernel({arguments}, start, count, entries):",
                    f"at = tl.program_id(0).to(tl.int64) * {BLOCK} + tl.arange(0, {BLOCK})",
                    "inside = at < count",
                    "length = at * 0 + entries  # 64-bit integers",
                    f"size = tl.minimum(length, {PIECE})",
                    f"zero = tl.zeros(({BLOCK},), tl.float64)",
                    *body,
                ]
            )
            + "\n"
        )
    return sources, most


_NAME = re.compile(r"\b[vx]\d+\b")


def _inputs(n: int) -> set[str]:
    return {f"x{i}" for i in range(n)}

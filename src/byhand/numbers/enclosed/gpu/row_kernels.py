"""Triton kernels that walk along rows: one program for each row, as far as the row reaches.

As in kernels.py the array code runs once on recorded rows.  Here a program works on one piece of
its row after another, and gathers sums and maxima of the row on the way.  It may read and write

    entries   limbs (n, …): each row begins at a place of its own, and so does each limb
    rows      numbers of the row, the same for all its entries, (n, rows)
    keys      numbers of the column, the same for some rows, (groups, columns)
    tables    of functions (polynomials.py)

Sums of integers are exact in any order; a caller that sums other numbers must allow for any order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.gpu.recording import Columns, Recorder, Row, Rows
from byhand.numbers.enclosed.limbs.engine import Array, engine_of

BLOCK = 128
LEAST = -1.7e308  # below every number


@dataclass(frozen=True, slots=True)
class RowResults:
    """The results of a program for one piece of a row."""

    out: Rows
    sums: Sequence[Row] = ()
    largest: Sequence[Row] = ()
    place_of_largest: Row | None = None  # the value, and where it is largest


@dataclass(frozen=True, slots=True)
class RowInputs:
    """The inputs of a program: limbs, numbers of the row and of columns, powers of two, tables."""

    entries: list[Rows]
    rows: list[Rows]
    keys: list[Row]
    powers: list[Row]
    tables: list[Any]
    place: Row  # of the entry in its row


Program = Callable[..., RowResults]  # (RowInputs, *settings)


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the rows of an array of limbs begin, and how far the next limb is: (rows,) integers."""

    limbs: Array
    n: int
    starts: Array
    steps: Array


@dataclass(frozen=True, slots=True)
class Walk:
    """How far to walk: `seen` entries of each row count, up to `stop` are written (0 beyond)."""

    seen: Array  # (rows,) integers
    stop: Array
    rows: int
    columns: int
    rows_of_a_group: int  # the number of rows that share the numbers of columns


def plain_walk(like: Array) -> tuple[Walk, Callable[[Array], RowLayout]]:
    """The walk along all entries of arrays (n, rows, columns) with the layout of this one."""
    _n, rows, columns = like.shape
    ends = like.new_zeros(rows, dtype=_integers(like, 32)) + columns
    starts = like.new_zeros(rows, dtype=_integers(like, 64)) + columns
    starts = starts.cumsum(0) - columns
    steps = like.new_zeros(rows, dtype=_integers(like, 64)) + rows * columns

    def layout(array: Array) -> RowLayout:
        return RowLayout(array.contiguous(), int(array.shape[0]), starts, steps)

    return Walk(ends, ends, rows, columns, rows), layout


def _integers(like: Array, bits: int) -> Any:
    return getattr(engine_of(like).module, f"int{bits}")


def run(
    program: Program,
    settings: tuple[Any, ...],
    walk: Walk,
    entries: Sequence[RowLayout],
    out: RowLayout,
    *,
    rows: Sequence[Array] = (),
    keys: Sequence[Array] = (),
    powers: Sequence[int] = (),
    tables: Sequence[tuple[Any, Array]] = (),
    results: int,
) -> Array:
    """Runs the program along all rows; its sums, maxima and the place: (results, rows)."""
    shape = Shape(
        tuple(layout.n for layout in entries),
        tuple(int(array.shape[0]) for array in rows),
        len(keys),
        len(powers),
        tuple((plain, tuple(array.shape)) for plain, array in tables),
    )
    kernel = _kernel(program, settings, shape)
    found = walk.seen.new_empty((max(1, results), walk.rows), dtype=out.limbs.dtype)
    pointers = [walk.seen, walk.stop]
    for layout in (*entries, out):
        pointers += [layout.limbs, layout.starts, layout.steps]
    pointers += [*rows, *keys, *(array for _plain, array in tables), found]
    numbers = [walk.rows, walk.columns, walk.rows_of_a_group, *powers]
    kernels.launch(kernel, walk.rows, pointers, numbers)
    return found[:results]


@dataclass(frozen=True, slots=True)
class Shape:
    """The settings of a kernel besides its program."""

    entries: tuple[int, ...]
    rows: tuple[int, ...]
    keys: int
    powers: int
    tables: tuple[tuple[Any, tuple[int, ...]], ...]


@lru_cache(1024)
def _kernel(program: Program, settings: tuple[Any, ...], shape: Shape) -> Any:
    return kernels.compiled(source_of(program, settings, shape))


def source_of(program: Program, settings: tuple[Any, ...], shape: Shape) -> str:
    """The kernel: the numbers of a row, its pieces one after another, and what was gathered."""
    recorder = Recorder()
    given = RowInputs(
        [Rows(recorder, [Row(recorder, f"x{a}_{i}") for i in range(n)])
         for a, n in enumerate(shape.entries)],
        [Rows(recorder, [Row(recorder, f"r{a}_{i}") for i in range(n)])
         for a, n in enumerate(shape.rows)],
        [Row(recorder, f"k{a}_0") for a in range(shape.keys)],
        [Row(recorder, f"p{a}_0") for a in range(shape.powers)],
        [_table(recorder, f"table{a}", plain, size)
         for a, (plain, size) in enumerate(shape.tables)],
        Row(recorder, "here"),
    )  # fmt: skip
    made = program(given, *settings)
    used = set(_NAMES.findall("\n".join([*recorder.lines, *(row.name for row in made.out.rows)])))
    before, gather, after = _gathering(made)
    body = ["at = start + lane", "inside = at < stop", "visible = at < seen"]
    body.append("here = at.to(tl.float64)")
    for a, n in enumerate(shape.entries):
        for i in range(n):
            if f"x{a}_{i}" in used:
                body.append(f"x{a}_{i} = tl.load(a{a}_at + a{a}_step * {i} + at, visible, 0.0)")
    body += [f"k{a}_0 = tl.load(keys{a}_at + at, visible, 0.0)" for a in range(shape.keys)]
    body += recorder.lines
    for i, row in enumerate(made.out.rows):
        body.append(
            f"tl.store(out_at + out_step * {i} + at, tl.where(visible, {row.name}, 0.0), inside)"
        )
    rest = [f"tl.store(out_at + out_step * {i} + at, zero, at < stop)"
            for i in range(len(made.out.rows))]  # fmt: skip
    lines = [
        f"def kernel({', '.join(_arguments(shape))}):",
        *_head(shape, used),
        *before,
        f"for start in range(0, seen, {BLOCK}):",
        *("    " + line for line in (*body, *gather)),
        f"for start in range((seen + {BLOCK - 1}) // {BLOCK} * {BLOCK}, stop, {BLOCK}):",
        "    at = start + lane",
        *("    " + line for line in rest),
        *(f"tl.store(found + count * {i} + row, {line})" for i, line in enumerate(after)),
    ]
    return "\n    ".join(lines) + "\n"


def _arrays(shape: Shape) -> list[str]:
    """The names of the arrays of limbs that are read, and of the one that is written."""
    return [*(f"a{a}" for a in range(len(shape.entries))), "out"]


def _arguments(shape: Shape) -> list[str]:
    """The names of the kernel's arguments, in the order of `run`."""
    arguments = ["seen_of", "stop_of"]
    for name in _arrays(shape):
        arguments += [name, f"{name}_starts", f"{name}_steps"]
    arguments += [f"rows{a}" for a in range(len(shape.rows))]
    arguments += [f"keys{a}" for a in range(shape.keys)]
    arguments += [f"table{a}" for a in range(len(shape.tables))]
    return [*arguments, "found", "count", "columns", "share",
            *(f"e{a}" for a in range(shape.powers))]  # fmt: skip


def _head(shape: Shape, used: set[str]) -> list[str]:
    """The lines before the first piece: where the row lies, and the numbers that are its own."""
    head = [
        "row = tl.program_id(0).to(tl.int64)",
        "seen = tl.load(seen_of + row)",
        "stop = tl.load(stop_of + row)",
        f"zero = tl.zeros(({BLOCK},), tl.float64)",
        f"lane = tl.arange(0, {BLOCK})",
        "wide = lane.to(tl.int64) * 0",
    ]
    for name in _arrays(shape):
        head.append(f"{name}_at = {name} + tl.load({name}_starts + row)")
        head.append(f"{name}_step = tl.load({name}_steps + row)")
    for a, n in enumerate(shape.rows):
        for i in range(n):
            if f"r{a}_{i}" in used:
                head.append(f"r{a}_{i} = zero + tl.load(rows{a} + count * {i} + row)")
    for a in range(shape.keys):
        head.append(f"keys{a}_at = keys{a} + (row // share) * columns")
    for a in range(shape.powers):
        head.append(f"p{a}_0 = ((wide + e{a} + 1023) << 52).to(tl.float64, bitcast=True)")
    return head


def _gathering(made: RowResults) -> tuple[list[str], list[str], list[str]]:
    """Sums and maxima of a row: lines before its pieces, in each piece, and the results."""
    before, within, after = [], [], []
    for i, row in enumerate(made.sums):
        before.append(f"sum{i} = zero")
        within.append(f"sum{i} = sum{i} + tl.where(visible, {row.name}, 0.0)")
        after.append(f"tl.sum(sum{i}, 0)")
    for i, row in enumerate(made.largest):
        before.append(f"most{i} = zero + {LEAST!r}")
        within.append(f"most{i} = tl.maximum(most{i}, tl.where(visible, {row.name}, {LEAST!r}))")
        after.append(f"tl.max(most{i}, 0)")
    if made.place_of_largest is not None:
        value = made.place_of_largest.name
        before += [f"best = zero + {LEAST!r}", "place = zero"]
        within.append(f"better = visible & ({value} > best)")
        within.append(f"best = tl.where(better, {value}, best)")
        within.append("place = tl.where(better, here, place)")
        after.append("tl.min(tl.where(best == tl.max(best, 0), place, 1e300), 0)")
    return before, within, after


def _table(recorder: Recorder, name: str, plain: Any, size: tuple[int, ...]) -> Any:
    part = Columns(recorder, name, size)
    return part if plain is None else replace(plain, rows=part)


_NAMES = re.compile(r"\b[xr]\d+_\d+\b")

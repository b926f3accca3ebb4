"""Whole elementwise functions as Triton kernels: limbs are read once and written once.

The array code of `limbs.polynomials` and `limbs.exponential` is not written a second time.  It runs
once on `Recorded` rows, which note every operation as a line of Triton; the lines become the
kernel.  So the same operations are done in the same order (no fused multiply-add is allowed), and
the bits are those of the array code.  Many limbs make a long program, which compiles slowly: it is
cut into kernels that pass rows on.  Without kernels, `run` returns None and the array code itself
is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.gpu.recording import Columns, Recorder, Row, Rows
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.polynomials import Table

BLOCK = 128
LINES = 450  # of one kernel: two seconds to compile
PIECE = 1 << 22  # entries at a time, which bounds the memory between kernels


def run(
    function: Callable[..., Array], tables: Sequence[Any], x: Array, limbs: int
) -> Array | None:
    """function(*tables, x) by kernels, x (n, entries); None where there are no kernels."""
    if x.device.type != "cuda" or not x.shape[1] or not kernels.usable(x):
        return None
    arrays = [table.rows if isinstance(table, Table) else table for table in tables]
    shapes = tuple(tuple(array.shape) for array in arrays)
    plain = tuple(
        replace(table, rows=None) if isinstance(table, Table) else None for table in tables
    )
    parts, slots = _kernels(function, plain, shapes, x.shape[0])
    made = x.new_empty((limbs, x.shape[1]))
    between = x.new_empty((max(slots, 1), min(PIECE, x.shape[1])))
    try:
        given = [x, made, between, *arrays]
        begun = [kernels.ready(kernel, [*given, 0, 128, 4096]) for kernel in parts]
        if not all(begun):
            return None
        for start in range(0, x.shape[1], PIECE):
            count = min(PIECE, x.shape[1] - start)
            for kernel in parts:
                kernel[(-(-count // BLOCK),)](
                    *given, start, count, x.shape[1], enable_fp_fusion=False
                )
    except Exception as error:  # as in `kernels.run`
        kernels.give_up(error)
        return None
    return made


@lru_cache(256)
def _kernels(
    function: Callable[..., Array],
    tables: tuple[Table | None, ...],
    shapes: tuple[tuple[int, ...], ...],
    n: int,
) -> tuple[list[Any], int]:
    """The kernels, to be run one after another, and how many rows they pass on."""
    sources, slots = sources_of(function, tables, shapes, n)
    return [kernels.compiled(source) for source in sources], slots


def sources_of(
    function: Callable[..., Array],
    tables: Sequence[Table | None],
    shapes: Sequence[tuple[int, ...]],
    n: int,
) -> tuple[list[str], int]:
    """Kernels of at most about LINES lines, and how many rows they pass on to each other."""
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
        sources.append(_source(arguments, body))
    return sources, most


def _source(arguments: str, body: Sequence[str]) -> str:
    """One kernel of these lines."""
    head = [
        f"def kernel({arguments}, start, count, entries):",
        f"at = tl.program_id(0).to(tl.int64) * {BLOCK} + tl.arange(0, {BLOCK})",
        "inside = at < count",
        "length = at * 0 + entries  # 64-bit integers",
        f"size = tl.minimum(length, {PIECE})",
        f"zero = tl.zeros(({BLOCK},), tl.float64)",
    ]
    return "\n    ".join([*head, *body]) + "\n"


_NAME = re.compile(r"\b[vx]\d+\b")


def _inputs(n: int) -> set[str]:
    return {f"x{i}" for i in range(n)}

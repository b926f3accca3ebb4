"""Limb arithmetic as Triton kernels of the GPU: every limb is read once and written once.

The array code of `limbs.array_code` runs once on `Recorded` rows and becomes a kernel, as in
`fused`.  Arrays of any strides are read in place, broadcast rows too, and powers of two are
arguments.  So a kernel depends only on the numbers of limbs and on where they go.  Where Triton is
missing or cannot compile, a warning says so once and `run` returns None.  Then the array code
itself is used: slower, with the same bits.

Compiling takes longer than a pass.  `in_background`, kernels are compiled by other processes, and
the array code is used as long as they are not ready.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from byhand.language import _
from byhand.numbers.enclosed.gpu import compiling
from byhand.numbers.enclosed.gpu.decisions import Now, answers
from byhand.numbers.enclosed.gpu.recording import Recorder, Row, Rows
from byhand.numbers.enclosed.limbs.engine import Array, Recorded

BLOCK = 128
DIMENSIONS = 4  # after axes that lie one in another are joined
EXPONENT = 1000  # powers of two beyond this are not made in kernels
NARROW = 1 << 31
LINES = 1200  # of a kernel

Program = Callable[..., Rows]  # (arrays, powers, *settings)


class NoKernels(UserWarning):
    """The warning that a GPU works without kernels: proofs are the same and take longer."""


_given_up: list[str] = []


def given_up() -> str | None:
    """Why no kernels are used in this process; None as long as none has failed."""
    return _given_up[0] if _given_up else None


def give_up(reason: Exception) -> None:
    """Stops the use of kernels; a warning says so once."""
    if not _given_up:
        _given_up.append(f"{type(reason).__name__}: {reason}".split("\n", 1)[0][:200])
        warnings.warn(
            _("no kernels for this GPU, so proofs take longer ({reason})").format(
                reason=_given_up[0]
            ),
            NoKernels,
            stacklevel=2,
        )


def triton() -> Any:
    """Triton, or None where it is missing or a kernel has failed."""
    if _given_up:
        return None
    try:
        return import_module("triton")
    except ImportError as error:
        give_up(error)
        return None


def usable(array: Array) -> bool:
    """Whether kernels can work on this array."""
    return not isinstance(array, np.ndarray | Recorded) and _on_gpu(array) and triton() is not None


def _on_gpu(array: Any) -> bool:
    return bool(array.is_cuda and array.itemsize == 8 and array.is_floating_point())


def run(
    program: Program,
    settings: tuple[Any, ...],
    arrays: Sequence[Array],
    powers: Sequence[int],
    limbs: int,
    out: Array | None = None,
) -> Array | None:
    """program(arrays, powers of two, *settings), entry by entry; None where no kernel can run.

    Arrays are (limbs, *shape), shapes are broadcast; `out` may be one of them.
    """
    key = (
        program,
        settings,
        limbs,
        len(powers),
        *((array.shape, array.stride()) for array in arrays),
        None if out is None else (out.shape, out.stride()),
    )
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) > PLANS:
            _plans.clear()
        plan = _plans[key] = _plan(program, settings, arrays, len(powers), limbs, out)
    if plan.kernel is None or any(abs(power) > EXPONENT for power in powers):
        return None
    made = arrays[0].new_empty(plan.shape) if out is None else out
    if plan.count:
        try:
            numbers = [plan.count, *powers, *plan.numbers]
            if not ready(plan.kernel, [*arrays, made, *numbers]):
                return None
            launch(plan.kernel, -(-plan.count // BLOCK), [*arrays, made], numbers)
        except Exception as error:  # Triton's compilers raise errors of many kinds
            give_up(error)
            return None
    return made


@dataclass(frozen=True, slots=True)
class Plan:
    """How a program is run on arrays with this layout."""

    kernel: Any  # None: it cannot be run
    shape: tuple[int, ...]
    count: int
    numbers: list[int]  # sizes and strides


_plans: dict[Any, Plan] = {}
PLANS = 1 << 14


def _plan(
    program: Program,
    settings: tuple[Any, ...],
    arrays: Sequence[Array],
    powers: int,
    limbs: int,
    out: Array | None,
) -> Plan:
    shape = tuple(np.broadcast_shapes(*(tuple(array.shape[1:]) for array in arrays)))
    every = [*arrays, arrays[0].new_empty((limbs, *shape)) if out is None else out]
    count = prod(shape)
    sizes, steps = _joined(shape, [_strides(array, shape) for array in every])
    counts = tuple(int(array.shape[0]) for array in arrays)
    kernel = None
    if len(sizes) <= DIMENSIONS:
        kernel = _kernel(program, settings, counts, powers, len(sizes), count < NARROW - BLOCK)
    numbers = sizes[1:]
    for array, step in zip(every, steps, strict=True):
        numbers += [array.stride(0), *step]
    return Plan(kernel, (limbs, *shape), count, numbers)


def launch(kernel: Any, programs: int, arrays: Sequence[Array], numbers: Sequence[int]) -> None:
    """Runs a compiled kernel again without a lookup: nothing in it is specialised."""
    ready = _ready.get(kernel)
    if ready is not None and max(numbers) < NARROW:
        ready[programs, 1, 1](*arrays, *numbers)
        return
    made = kernel[(programs,)](*arrays, *numbers, enable_fp_fusion=False)
    if callable(getattr(type(made), "__getitem__", None)):
        _ready[kernel] = made


_ready: dict[Any, Any] = {}


# ------------------------------------------------------------------ compiling in the background


_patience = [False]
_compiling: dict[Any, Future[None]] = {}


@contextmanager
def in_background() -> Iterator[None]:
    """Inside, passes do not wait for kernels, unless their decisions are noted."""
    before, _patience[0] = _patience[0], True
    try:
        yield
    finally:
        _patience[0] = before


def patient() -> bool:
    """Whether kernels that are not compiled are to be done without."""
    return _patience[0] and isinstance(answers(), Now)


def ready(kernel: Any, arguments: Sequence[Any]) -> bool:
    """Whether the kernel is to be launched; if not, it is being compiled."""
    if kernel in _ready:
        return True
    if kernel not in _compiling:
        if not patient():
            return True
        kinds = [str(one.dtype).rpartition(".")[2] if hasattr(one, "dtype") else one
                 for one in arguments]  # fmt: skip
        device = next(one.device for one in arguments if hasattr(one, "device"))
        _compiling[kernel] = compiling.submit(_sources[kernel], kinds, device.index or 0)
    if patient() and not _compiling[kernel].done():
        return False
    _compiling[kernel].exception()  # waits; an error comes again when the kernel is launched
    return True


_sources: dict[Any, str] = {}


def _strides(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """How far the next entry is along each axis of the broadcast shape."""
    own = tuple(array.shape[1:])
    steps = array.stride()[1:]
    missing = len(shape) - len(own)
    return (0,) * missing + tuple(
        0 if size == 1 else step for size, step in zip(own, steps, strict=True)
    )


def _joined(
    shape: tuple[int, ...], steps: Sequence[tuple[int, ...]]
) -> tuple[list[int], list[list[int]]]:
    """Fewer axes: those of one entry are dropped, and those that lie one in another are joined."""
    kept = [axis for axis, size in enumerate(shape) if size != 1]
    groups: list[list[int]] = []
    for axis in kept:
        if groups and all(step[groups[-1][-1]] == step[axis] * shape[axis] for step in steps):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    if not groups:
        return [1], [[0] for _step in steps]
    sizes = [prod(shape[axis] for axis in group) for group in groups]
    return sizes, [[step[group[-1]] for group in groups] for step in steps]


@lru_cache(4096)
def _kernel(*wanted: Any) -> Any:
    """The kernel for the arguments of `source_of`; None where it is too long to compile."""
    source = source_of(*wanted)
    return None if source.count("\n") > LINES else compiled(source)


@lru_cache(4096)
def compiled(source: str) -> Any:
    """The kernel of this source, compiled when it is first launched."""
    arguments = source[source.index("(") + 1 : source.index(")")].split(", ")
    # one kernel for all sizes and alignments: compiling takes longer than they save
    made = specialised(
        source, do_not_specialize=arguments, do_not_specialize_on_alignment=arguments
    )
    _sources[made] = source
    return made


def specialised(source: str, **settings: Any) -> Any:
    """The kernel of this source; compiled for sizes and alignments but for the settings."""
    jit, language = import_module("triton").jit, import_module("triton.language")
    file = f"<byhand kernel {abs(hash(source)):x}>"
    # Triton reads the lines of a function there
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {"tl": language}
    exec(compile(source, file, "exec"), names)
    return jit(names[source[len("def ") : source.index("(")]], **settings)


def source_of(
    program: Program,
    settings: tuple[Any, ...],
    counts: tuple[int, ...],
    powers: int,
    dimensions: int,
    narrow: bool,
) -> str:
    """The kernel: places in memory, the entries read, the program, the entries written."""
    recorder = Recorder()
    arrays = [
        Rows(recorder, [Row(recorder, f"x{a}_{i}") for i in range(count)])
        for a, count in enumerate(counts)
    ]
    made = program(arrays, [Row(recorder, f"p{k}") for k in range(powers)], *settings)
    pointers = [*(f"a{a}" for a in range(len(counts))), "out"]
    axes = range(dimensions)
    sizes = [f"size{axis}" for axis in axes]
    strides = [name for p in pointers for name in (f"{p}_limb", *(f"{p}_{axis}" for axis in axes))]
    exponents = [f"e{k}" for k in range(powers)]
    arguments = ", ".join([*pointers, "count", *exponents, *sizes[1:], *strides])
    start = "tl.program_id(0)" if narrow else "tl.program_id(0).to(tl.int64)"
    lines = [
        f"at = {start} * {BLOCK} + tl.arange(0, {BLOCK})",
        "inside = at < count",
        "wide = at.to(tl.int64) * 0",
        f"zero = tl.zeros(({BLOCK},), tl.float64)",
    ]
    rest = "at"
    for axis, next_axis in pairwise(reversed(axes)):
        lines.append(f"i{axis} = ({rest} % {sizes[axis]}).to(tl.int64)")
        lines.append(f"r{next_axis} = {rest} // {sizes[axis]}")
        rest = f"r{next_axis}"
    lines.append(f"i0 = {rest}.to(tl.int64)")
    for k in range(powers):
        lines.append(f"p{k} = ((wide + {exponents[k]} + 1023) << 52).to(tl.float64, bitcast=True)")
    for p in pointers:
        lines.append(f"{p}_at = {p} + (" + " + ".join(f"i{k} * {p}_{k}" for k in axes) + ")")
        lines.append(f"{p}_step = wide + {p}_limb")
    text = "\n".join([*recorder.lines, *(row.name for row in made.rows)])
    used = set(_NAMES.findall(text))
    for a, count in enumerate(counts):
        for i in range(count):
            if f"x{a}_{i}" in used:
                lines.append(f"x{a}_{i} = tl.load(a{a}_at + a{a}_step * {i}, inside, 0.0)")
    lines += recorder.lines
    for i, row in enumerate(made.rows):
        lines.append(f"tl.store(out_at + out_step * {i}, {row.name}, inside)")
    return "\n    ".join([f"def kernel({arguments}):", *lines]) + "\n"


_NAMES = re.compile(r"\bx\d+_\d+\b")

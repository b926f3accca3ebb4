"""The array functions that limb arithmetic is written in, and NumPy's engine for them.

All engines do the same IEEE float64 operations in the same order, on integers that float64 holds
exactly, so they give the same bits.  An engine for other arrays registers itself: that of torch
tensors is `gpu.tensor_engine`.  What the arrays mean is not known here.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

try:  # the same function without its wrapping, which takes as long as a thousand products
    from numpy._core.multiarray import c_einsum as _einsum
except ImportError:
    from numpy import einsum as _einsum

Array = Any


class Elementwise(ABC):
    """The functions that elementwise code is written in; limbs are rows of arrays."""

    name: ClassVar[str]

    @abstractmethod
    def empty(self, shape: Sequence[int], like: Array) -> Array:
        """Float64 entries not yet written."""

    @abstractmethod
    def take(self, table: Array, index: Array) -> Array:
        """table[:, index] of a table (n, columns): (n, *index.shape); index as `index` makes it."""

    @abstractmethod
    def multiply_add(self, total: Array, x: Array, y: Array) -> None:
        """total += x·y, where the product and the sum are exact."""

    @abstractmethod
    def diagonal(self, x: Array, y: Array, first: int, last: int, of: int, out: Array) -> None:
        """out = Σ x[i]·y[of - i] over first <= i < last, where every partial sum is exact."""

    @abstractmethod
    def scale(self, array: Array, factor: float, out: Array) -> None:
        """out = array·factor."""

    @abstractmethod
    def round_to(self, array: Array, unit: float, out: Array) -> None:
        """out = the nearest multiples of a power of two, for |array| <= 2^51 units.

        Adding 1.5·2^52 units rounds to whole units, and taking it off again is exact.
        """

    @abstractmethod
    def carry_scaled(self, limbs: Array, unit: float, base: float) -> None:
        """From the last limb to the first: moves to limb i - 1 the multiple of its unit nearest to
        limb i.  Limb 0 is in multiples of `unit`, limb i of unit/base^i.  The last limb is only
        read: the caller drops it."""

    @abstractmethod
    def index(self, limb: Array, offset: int, columns: int) -> Array:
        """limb + offset as an index array that `take` reads, kept within the columns."""

    @abstractmethod
    def positive(self, array: Array) -> Array:
        """1.0 where an entry is >= 0, else 0.0."""


class Engine(Elementwise):
    """Array functions; `like` names the engine's device by one of its arrays."""

    module: Any  # NumPy or torch, for functions that both have under one name

    def root(self, array: Array) -> Array:
        """√, correctly rounded by IEEE 754."""
        return self.module.sqrt(array)

    def clip(self, array: Array, least: float | None, most: float | None) -> Array:
        """The entries, none below `least`, none above `most`."""
        return self.module.clip(array, least, most)

    def concatenate(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        """The arrays one after another along an axis."""
        return self.module.concatenate(tuple(arrays), axis)

    def moveaxis(self, array: Array, source: int, target: int) -> Array:
        """The array with one axis at another place."""
        return self.module.moveaxis(array, source, target)

    def broadcast(self, array: Array, shape: Sequence[int]) -> Array:
        """The array in a larger shape; nothing is copied."""
        return self.module.broadcast_to(array, tuple(shape))

    @abstractmethod
    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        """Float64 zeros."""

    @abstractmethod
    def constant(self, array: Any, like: Array) -> Array:
        """A NumPy array of this machine as an array of the device of `like`."""

    @abstractmethod
    def to_numpy(self, array: Array) -> Any:
        """The array as a NumPy array of this machine."""

    @abstractmethod
    def floats(self, array: Array) -> Array:
        """A fresh float64 copy of an array of any float format: exact."""

    @abstractmethod
    def rough(self, array: Array) -> Array:
        """The array in float32, where its products are faster; else as it is."""

    @abstractmethod
    def rint(self, array: Array, out: Array | None = None) -> Array:
        """The nearest integers, ties to even, as float64."""

    @abstractmethod
    def largest(self, array: Array) -> float:
        """The largest absolute value, 0 for an empty array.  Waits for the device."""

    @abstractmethod
    def least_above_zero(self, array: Array, above: float = 0.0) -> float:
        """An estimate, without proof, of the smallest entry > 0; infinite where there is none.

        What is not larger than `above` counts as 0.
        """

    @abstractmethod
    def fits(self, limb: Array, most: float) -> bool:
        """True only if no entry is larger in size; on a device, kept with room."""

    @abstractmethod
    def empty_in_front(self, limbs: Array) -> int:
        """How many of limbs[0], limbs[1], … are zero everywhere; not the last."""

    @abstractmethod
    def holds(self, condition: Array) -> bool:
        """True only if all entries are; on a device it may be False without a reading."""

    @abstractmethod
    def places(self, condition: Array) -> list[tuple[int, ...]]:
        """The indices where the condition is true.  Waits for the device."""

    @abstractmethod
    def empty_rows(self, limbs: Array) -> Array:
        """True for each row along the last axis that is zero in all limbs."""

    @abstractmethod
    def range(self, array: Array) -> tuple[float, float]:
        """The smallest and the largest entry, (0, 0) for an empty array.  Waits for the device."""

    @abstractmethod
    def where(self, condition: Array, yes: Array, no: Array | float) -> Array:
        """Entries of `yes` where the condition holds, of `no` elsewhere."""

    @abstractmethod
    def carry(self, limb: Array, above: Array, base: float, over: Array, back: Array) -> None:
        """limb = base·over + rest with over = rint(limb/base): keeps the rest, above += over.

        `over` and `back` are scratch of the shape of the limb; base is a power of two.
        """

    @abstractmethod
    def cholesky(self, matrix: Array, more: float) -> Array | None:
        """The lower factor of matrix + more·I; None where the decomposition did not end."""

    @abstractmethod
    def contiguous(self, array: Array) -> Array:
        """The array, entry after entry in memory."""

    @abstractmethod
    def piece_of(self, array: Array) -> int:
        """How many entries at a time an elementwise function should work on."""

    @abstractmethod
    def device_of(self, array: Array) -> Any:
        """A hashable key of the array's device."""


@lru_cache(4096)
def _number(value: float) -> Array:
    """A constant in the form that NumPy handles fastest."""
    return np.array(value)


class NumPyEngine(Engine):
    """The functions on NumPy arrays."""

    name = "numpy"
    module = np
    piece = 16384  # entries: larger pieces leave the caches, smaller ones cost Python time

    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        return np.zeros(shape)

    def empty(self, shape: Sequence[int], like: Array) -> Array:
        return np.empty(shape)

    def constant(self, array: Any, like: Array) -> Array:
        return array

    def to_numpy(self, array: Array) -> Any:
        return np.asarray(array)

    def floats(self, array: Array) -> Array:
        return np.array(array, dtype=np.float64)

    def rough(self, array: Array) -> Array:
        return array.astype(np.float32)

    def squares(self, array: Array) -> Array:
        """Σ x² along the last axis, summed in any order."""
        return _einsum("...i,...i->...", array, array)

    def rint(self, array: Array, out: Array | None = None) -> Array:
        return np.rint(array, out=out)

    def largest(self, array: Array) -> float:
        return float(max(array.max(), -array.min())) if array.size else 0.0

    def least_above_zero(self, array: Array, above: float = 0.0) -> float:
        return float(np.where(array > above, array, np.inf).min()) if array.size else float("inf")

    def fits(self, limb: Array, most: float) -> bool:
        return self.largest(limb) <= most

    def empty_in_front(self, limbs: Array) -> int:
        first = 0
        while first < len(limbs) - 1 and self.largest(limbs[first]) == 0.0:
            first += 1
        return first

    def holds(self, condition: Array) -> bool:
        return bool(condition.all())

    def places(self, condition: Array) -> list[tuple[int, ...]]:
        return [tuple(map(int, index)) for index in np.argwhere(condition)]

    def empty_rows(self, limbs: Array) -> Array:
        return np.abs(limbs).max(-1).max(0) == 0.0

    def range(self, array: Array) -> tuple[float, float]:
        return (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)

    def where(self, condition: Array, yes: Array, no: Array | float) -> Array:
        return np.where(condition, yes, no)

    def take(self, table: Array, index: Array) -> Array:
        return table.take(index, 1, np.empty((table.shape[0], *index.shape)), "clip")

    def multiply_add(self, total: Array, x: Array, y: Array) -> None:
        total += x * y

    def diagonal(self, x: Array, y: Array, first: int, last: int, of: int, out: Array) -> None:
        if last - first == 1:
            np.multiply(x[first], y[of - first], out)
            return
        # one pass that multiplies and adds: about twice as fast as products and sums apart
        stop = of - last
        turned = y[of - first : (stop if stop >= 0 else None) : -1]
        _einsum("i...,i...->...", x[first:last], turned, out=out)

    def carry(self, limb: Array, above: Array, base: float, over: Array, back: Array) -> None:
        np.multiply(limb, 1.0 / base, out=over)
        np.rint(over, out=over)
        np.multiply(over, base, out=back)
        np.subtract(limb, back, out=limb)
        np.add(above, over, out=above)

    def scale(self, array: Array, factor: float, out: Array) -> None:
        np.multiply(array, _number(factor), out)

    def round_to(self, array: Array, unit: float, out: Array) -> None:
        large = _number(1.5 * 2.0**52 * unit)
        np.add(array, large, out)
        np.subtract(out, large, out)

    def carry_scaled(self, limbs: Array, unit: float, base: float) -> None:
        add, subtract, last = np.add, np.subtract, limbs.shape[0] - 1
        over = np.empty(limbs.shape[1:])
        limb = limbs[last]
        for i in range(last, 0, -1):
            large = _number(1.5 * 2.0**52 * unit / base ** (i - 1))
            add(limb, large, over)
            subtract(over, large, over)
            if i < last:
                subtract(limb, over, limb)
            limb = limbs[i - 1]
            add(limb, over, limb)

    def index(self, limb: Array, offset: int, columns: int) -> Array:
        return (limb + offset).astype(np.intp)  # `take` keeps it within the columns

    def positive(self, array: Array) -> Array:
        return (array >= 0).astype(np.float64)

    def cholesky(self, matrix: Array, more: float) -> Array | None:
        shifted = np.array(matrix)
        shifted[np.diag_indices(len(shifted))] += more
        try:
            found = np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            return None
        return found if np.isfinite(found).all() else None

    def contiguous(self, array: Array) -> Array:
        return np.ascontiguousarray(array)

    def piece_of(self, array: Array) -> int:
        return self.piece

    def device_of(self, array: Array) -> Any:
        return "numpy"


NUMPY = NumPyEngine()


class Recorded:
    """An array that notes what is done to it (`gpu.recording`); it brings its own engine."""

    engine: Any


_registered: dict[type, Engine] = {}


def register(kind: type, engine: Engine) -> None:
    """Registers the engine for arrays of this kind."""
    _registered[kind] = engine


def engine_of(array: Array) -> Engine:
    """The engine of an array's kind."""
    if type(array) is np.ndarray or isinstance(array, (np.ndarray, np.generic)):
        return NUMPY
    if isinstance(array, Recorded):
        engine: Engine = array.engine
        return engine
    for kind, registered in _registered.items():
        if isinstance(array, kind):
            return registered
    raise TypeError(f"no engine works on {type(array).__name__}")


# --------------------------------------------------------------------------------- in pieces


def threads() -> int:
    """The number of threads of elementwise functions: OMP_NUM_THREADS, else all."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdigit() and int(said) else os.cpu_count() or 1


@lru_cache(4)
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="byhand-limbs")


def in_pieces(
    function: Callable[..., Array], arrays: Sequence[Array], results: Sequence[int]
) -> list[Array]:
    """Runs an elementwise function over pieces that fit in the cache.

    Each array is (limbs, *shape) with one shape for all; the function takes the same with shape
    (entries,), and gives a tuple of arrays (limbs, entries), whose limb counts are `results`.
    """
    engine, first = engine_of(arrays[0]), arrays[0]
    shape = first.shape[1:]
    flat = [engine.contiguous(array).reshape(array.shape[0], -1) for array in arrays]
    size = flat[0].shape[1]
    made = [engine.empty((count, size), first) for count in results]
    step = engine.piece_of(first)

    def work(start: int) -> None:
        stop = min(start + step, size)
        parts = function(*(array[:, start:stop] for array in flat))
        for target, part in zip(made, parts, strict=True):
            target[:, start:stop] = part

    starts = range(0, size, step)
    if engine is NUMPY and len(starts) > 1 and threads() > 1:
        list(_pool(threads()).map(work, starts))
    else:
        for start in starts:
            work(start)
    return [array.reshape(array.shape[0], *shape) for array in made]

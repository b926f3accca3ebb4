"""The weights of `Limbs`: arrays of floats, each taken as a dyadic rational.

Digits, slices and norms of a weight are made when first needed and kept; they do not depend on the
precision.  Enclosed arrays are in values.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.gpu.decisions import Now, answers, outside_the_pass
from byhand.numbers.enclosed.limbs import kept_bounds
from byhand.numbers.enclosed.limbs.arithmetic import (
    WIDTH,
    Digits,
    add,
    cut,
    from_floats,
    from_integers,
)
from byhand.numbers.enclosed.limbs.engine import Array, engine_of, register
from byhand.numbers.enclosed.limbs.radii import TINY, length, plus, slack, times
from byhand.numbers.enclosed.limbs.slices import Matrix
from byhand.numbers.enclosed.limbs.spectral import frobenius, spectral_norm

PLACES = {2: 11, 4: 24, 8: 53}  # binary digits of floats of so many bytes, at most
RANGE = 300  # weights are 0 or between 2^-300 and 2^300: float32's are between 2^-149 and 2^128


def typical_of(numbers: Any) -> float:
    """The root mean square of a row."""
    return math.sqrt(float((numbers * numbers).sum()) / max(1, numbers.shape[0]))


class Token(int):
    """A token's id, with its place in an array on the device that other texts may overwrite."""

    where: Any

    @staticmethod
    def row(ids: Sequence[int], where: Any) -> list[Token]:
        """Tokens for some ids of one table."""
        made = [Token(one) for one in ids]
        for token in made:
            token.where = where
        return made


class Weight:
    """An array of weights: floats, some of which may be absent."""

    def __init__(self, floats: Array, hidden: Any = None) -> None:
        self.floats = floats  # (…), in the format it came in, on the device
        self.hidden = hidden  # True where an entry is absent; None: nowhere
        self.shape: tuple[int, ...] = tuple(floats.shape)
        self.ndim = len(self.shape)
        self.roundings = 0  # of each of `floats`; 0: they are the weights
        self._made: dict[Any, Any] = {}
        self._host: Any = None  # the same in the memory of this machine, until it is hashed
        self._digest: str | None = None
        kept_bounds.register(self)

    def __len__(self) -> int:
        return self.shape[0]

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = outside_the_pass(lambda: kept_bounds.once(self, key, make))
        return self._made[key]

    @property
    def digest(self) -> str | None:
        """The hash of the entries, where bounds of them may be kept."""
        if self._host is not None:
            self._digest, self._host = kept_bounds.digest_of(self._host), None
        return self._digest

    def part(self, place: int) -> Weight:
        """The weight at this place of the first axis: the matrix of one expert."""
        made: Weight = self._once(("part", place), lambda: Weight(self.floats[place]))
        return made

    @property
    def plus_one(self) -> Weight:
        """1 + each entry: its digits are exact, its floats are rounded once."""
        made: Weight = self._once("plus one", lambda: PlusOne(self))
        return made

    @property
    def digits(self) -> Digits:
        """All entries, exactly; those that are absent are 0."""
        made: Digits = self._once("digits", lambda: from_floats(self.floats)[0])
        return made

    def rows(self, ids: Sequence[int]) -> Digits:
        """The rows of these ids, exactly."""
        if ids and isinstance(ids[0], Token):
            return self._rows_at(ids[0].where)
        if not isinstance(answers(), Now):  # positions, the same in every pass
            kept: Digits = self._once(("rows", tuple(ids)), lambda: self._some(ids))
            return kept
        return self._some(ids)

    def _some(self, ids: Sequence[int]) -> Digits:
        if "digits" in self._made:
            return self.digits[list(ids)]
        return from_floats(self.floats[list(ids)])[0]

    def _rows_at(self, places: Array) -> Digits:
        """The rows whose ids are on the device, on the grid of the whole table."""
        top, low = self._once("grid", self._grid)
        engine = engine_of(self.floats)
        rows = engine.floats(self.floats[places])
        return cut(rows, top, low)

    def _grid(self) -> tuple[int, int]:
        """Every entry is a multiple of 2^low and at most 2^(top - 1) in size."""
        engine = engine_of(self.floats)
        size = abs(engine.floats(self.floats))
        least = engine.least_above_zero(size)
        if least == math.inf:
            return WIDTH, 0
        top = math.frexp(engine.largest(size))[1] + 1
        low = math.frexp(least)[1] - PLACES[self.floats.itemsize]
        return low + WIDTH * -(-(top - low) // WIDTH), low

    @property
    def largest(self) -> float:
        """The largest |entry|."""
        found: float = self._once("largest", lambda: _largest(self.floats))
        return found

    @property
    def typical(self) -> float:
        """The root mean square."""
        found: float = self._once(
            "typical", lambda: typical_of(engine_of(self.floats).floats(self.floats))
        )
        return found

    def matrix(self, layout: str) -> Matrix:
        """The whole matrix as slices, (inputs, outputs)."""

        def make() -> Matrix:
            floats = self._oriented(layout)
            if not by_residues(floats):
                return Matrix(floats)
            from byhand.numbers.enclosed.gpu.residues import ResidueMatrix

            return Matrix(floats, ResidueMatrix(floats.T, *self._once("grid", self._grid)))

        made: Matrix = self._once(("matrix", layout), make)
        return made

    def head_matrix(self, layout: str, head: int, width: int) -> Matrix:
        """The inputs of one head as slices."""
        part = slice(head * width, (head + 1) * width)
        made: Matrix = self._once(
            ("matrix", layout, head, width), lambda: Matrix(self._oriented(layout)[part])
        )
        return made

    def _oriented(self, layout: str) -> Array:
        return self.floats if layout == "in_out" else self.floats.T

    def column_norms(self, layout: str, gain: Weight | None = None) -> Array:
        """A bound of the Euclidean length of each output's weights, times a gain of the inputs."""

        def make() -> Array:
            data = self._oriented(layout)
            engine = engine_of(data)
            step = max(1, (1 << 22) // max(1, data.shape[0]))
            factor = None if gain is None else engine.floats(gain.floats)[:, None]
            parts = []
            for start in range(0, data.shape[1], step):
                part = engine.floats(data[:, start : start + step])
                if factor is not None:
                    part *= factor  # one rounding an entry
                rounded = slack(1 if gain is None else 1 + gain.roundings)
                parts.append(length(part, 0) * rounded + (0.0 if factor is None else TINY))
            return engine.concatenate(parts)

        return self._once(("columns", layout, gain), make)

    def columns_of(self, layout: str) -> Callable[[Weight | None], Array]:
        """A function from a gain to the norms of the columns."""
        return lambda gain: self.column_norms(layout, gain)

    def norms_of(self, layout: str, outputs: slice | None) -> Callable[[Weight | None], float]:
        """A function from a gain to the spectral norm."""
        return lambda gain: self.norm(layout, outputs, gain=gain)

    def largest_column(self, layout: str) -> float:
        """The largest of the column norms."""
        columns = self.column_norms(layout)
        return float(self._once(("column", layout), lambda: engine_of(columns).largest(columns)))

    def typical_column(self, layout: str, gain: Weight | None) -> float:
        """The root mean square of the column norms."""
        columns = self.column_norms(layout, gain)
        return float(self._once(("typical", layout, gain), lambda: typical_of(columns)))

    def norms_of_parts(
        self, layout: str, starts: tuple[int, ...], width: int
    ) -> Callable[[Weight | None], Array]:
        """A function from a gain to the norms of `width` outputs from each start."""

        def make(gain: Weight | None) -> Array:
            norms = [self.norm(layout, slice(k, k + width), gain=gain) for k in starts]
            return engine_of(self.floats).constant(np.array(norms), self.floats)

        return lambda gain: self._once(("norms", layout, starts, width, gain), lambda: make(gain))

    def norm(
        self,
        layout: str,
        outputs: slice | None = None,
        inputs: slice | None = None,
        gain: Weight | None = None,
    ) -> float:
        """A proven bound of the spectral norm of a part, of diag(gain)·W where a gain is given.

        A whole matrix has the norm of its transpose: a backward pass finds it made.
        """
        if not (outputs or inputs or gain):
            layout = "in_out"
        places = tuple((part.start, part.stop) if part else None for part in (outputs, inputs))

        def make() -> float:
            part = self._oriented(layout)[inputs or slice(None), outputs or slice(None)]
            data = engine_of(part).floats(part)
            if gain is None:
                return spectral_norm(data)
            data *= engine_of(data).floats(gain.floats)[:, None]  # one rounding an entry
            off = times((1 + gain.roundings) * 2.0**-52, frobenius(data))
            return float(plus(spectral_norm(data), off, 2.0**-900))

        return float(self._once(("norm", layout, places, gain), make))


def by_residues(floats: Array) -> bool:
    """Whether products with these weights are made by residues: on a GPU."""
    return not isinstance(floats, np.ndarray) and bool(floats.is_cuda)


class PlusOne(Weight):
    """1 + w for each entry of a weight."""

    def __init__(self, weight: Weight) -> None:
        super().__init__(engine_of(weight.floats).floats(weight.floats) + 1.0)
        self.roundings = 1
        self._weight = weight

    @property
    def digest(self) -> str | None:
        """That of the weight, told from it."""
        return None if self._weight.digest is None else "1+" + self._weight.digest

    @property
    def digits(self) -> Digits:
        """All entries, exactly."""

        def make() -> Digits:
            return add(self._weight.digits, from_integers([1], 0, self.floats))

        made: Digits = self._once("digits", make)
        return made

    @property
    def largest(self) -> float:
        """A bound of the largest |entry|."""
        return super().largest * slack(1)


def _largest(floats: Array) -> float:
    return engine_of(floats).largest(engine_of(floats).floats(floats))


def read_weight(data: Any, device: Any = None) -> Weight:
    """The weight of an array of floats, or of objects each of which is a dyadic rational."""
    hidden = None
    if isinstance(data, np.ma.MaskedArray):
        hidden, data = np.ma.getmaskarray(data), data.filled(0)
    if isinstance(data, np.ndarray | list | tuple):
        array = np.asarray(data)
        if array.dtype == object:
            absent = np.array([entry is ABSENT for entry in array.flat]).reshape(array.shape)
            hidden = absent if absent.any() else None
        if array.dtype.kind not in "fV" or array.dtype.itemsize > np.dtype(np.float64).itemsize:
            array = np.array([_float(entry) for entry in array.flat]).reshape(array.shape)
        data = array
    host = data if isinstance(data, np.ndarray) else None
    if device is not None:
        moved = torch_devices().from_numpy(data) if isinstance(data, np.ndarray) else data
        data = moved.to(device)
    _check(data)  # on the device, where that is faster
    if hidden is not None and not hidden.any():
        hidden = None
    made = Weight(data, hidden)
    made._host = host
    return made


def torch_devices() -> Any:
    """The module of torch's devices; importing it makes limb arithmetic work on tensors."""
    from byhand.numbers import devices  # which says how torch is installed where it is missing
    from byhand.numbers.enclosed.gpu.tensor_engine import KIND, TENSORS

    register(KIND, TENSORS)
    return devices


def _check(floats: Array) -> None:
    """Raises an error for floats that are not finite, or outside the sizes that slices hold."""
    engine = engine_of(floats)
    wide = engine.floats(floats)
    size = abs(wide)
    if not bool((size < math.inf).all()):
        raise InputError(_("not a finite number"), found="nan, inf")
    some = size[size > 0]
    if math.prod(some.shape) == 0:
        return
    for extreme in (float(some.min()), float(some.max())):
        if not 2.0**-RANGE <= extreme <= 2.0**RANGE:
            raise InputError(
                _("a weight is too large or too small"),
                expected=_("0, or sizes from 2^-{most} to 2^{most}").format(most=RANGE),
                found=str(extreme),
            )


def _float(entry: Any) -> float:
    """An entry that is a float exactly; 0 where it is absent."""
    if entry is ABSENT:
        return 0.0
    if isinstance(entry, np.integer | np.bool_):
        entry = int(entry)
    if isinstance(entry, int | float | Fraction | np.floating):
        value = float(entry)
        if not math.isfinite(value) or Fraction(value) == Fraction(*entry.as_integer_ratio()):
            return value
    raise InputError(
        _("this number is not a float, and large models are proven from floats"),
        expected=_("a float, as checkpoints hold them"),
        found=str(entry)[:60],
    )

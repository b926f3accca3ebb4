"""What travels between the operations of `Limbs`: weights, and enclosed arrays with their radii.

A `Weight` is an array of floats, every entry the dyadic rational it is; what operations need of it
(digits, slices, norms) is made when first asked for and kept, and does not depend on the precision.

An `Enclosed` is an array of midpoints (`Digits`) and what is known about how far the real values
are from them:

    ball   for each row along the last axis, the Euclidean length of (real - midpoint)
    box    for each entry, |real - midpoint|; the radius of an entry is the smaller of the two

None says: no difference.  Either may be worked out only when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.engine import NUMPY, Array, module_of
from byhand.numbers.enclosed.limbs import (
    APPROX,
    Digits,
    approx,
    from_floats,
    magnitude,
    to_fractions,
)
from byhand.numbers.enclosed.radii import TINY, Bound, largest, length, plus, slack, times
from byhand.numbers.enclosed.slices import Matrix
from byhand.numbers.enclosed.spectral import frobenius, spectral_norm

NEAR = 1.0 + 2 * APPROX  # from an approximation to a bound of what it approximates
RANGE = 300  # weights are 0 or between 2^-300 and 2^300: float32's are between 2^-149 and 2^128
BEYOND = 420  # values are below 2^420, else nothing is said of them: no product leaves float64


def typical_of(numbers: Any) -> float:
    """The root mean square of a row."""
    return math.sqrt(float((numbers * numbers).sum()) / max(1, numbers.shape[0]))


class Weight:
    """An array of weights: floats, some of which may be absent."""

    def __init__(self, floats: Array, hidden: Any = None) -> None:
        self.floats = floats  # (…), in the format it came in, on the device
        self.hidden = hidden  # True where an entry is absent; None: nowhere
        self.shape: tuple[int, ...] = tuple(floats.shape)
        self.ndim = len(self.shape)
        self._made: dict[Any, Any] = {}

    def __len__(self) -> int:
        return self.shape[0]

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @property
    def digits(self) -> Digits:
        """All entries, exactly; those that are absent are 0."""
        made: Digits = self._once("digits", lambda: from_floats(self.floats)[0])
        return made

    def rows(self, ids: Sequence[int]) -> Digits:
        """Some rows, exactly."""
        if "digits" in self._made:
            return self.digits[list(ids)]
        return from_floats(self.floats[list(ids)])[0]

    @property
    def largest(self) -> float:
        """The largest |entry|."""
        found: float = self._once("largest", lambda: _largest(self.floats))
        return found

    @property
    def typical(self) -> float:
        """The root mean square."""
        found: float = self._once(
            "typical", lambda: typical_of(module_of(self.floats).floats(self.floats))
        )
        return found

    def matrix(self, layout: str) -> Matrix:
        """The whole as slices, (inputs, outputs)."""
        made: Matrix = self._once(("matrix", layout), lambda: Matrix(self._oriented(layout)))
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
            engine = module_of(data)
            step = max(1, (1 << 22) // max(1, data.shape[0]))
            factor = None if gain is None else engine.floats(gain.floats)[:, None]
            parts = []
            for start in range(0, data.shape[1], step):
                part = engine.floats(data[:, start : start + step])
                if factor is not None:
                    part *= factor  # one rounding an entry
                parts.append(length(part, 0) * slack(1) + (0.0 if factor is None else TINY))
            return engine.concatenate(parts)

        return self._once(("columns", layout, gain), make)

    def columns_of(self, layout: str) -> Callable[[Weight | None], Array]:
        return lambda gain: self.column_norms(layout, gain)

    def norms_of(self, layout: str, outputs: slice | None) -> Callable[[Weight | None], float]:
        return lambda gain: self.norm(layout, outputs, gain=gain)

    def largest_column(self, layout: str) -> float:
        """The largest of the column norms."""
        columns = self.column_norms(layout)
        return float(self._once(("column", layout), lambda: module_of(columns).largest(columns)))

    def norms_of_parts(
        self, layout: str, starts: tuple[int, ...], width: int
    ) -> Callable[[Weight | None], Array]:
        """The norms of so many outputs from each start on, where the weights are."""

        def make(gain: Weight | None) -> Array:
            norms = [self.norm(layout, slice(k, k + width), gain=gain) for k in starts]
            return module_of(self.floats).constant(np.array(norms), self.floats)

        return lambda gain: self._once(("norms", layout, starts, width, gain), lambda: make(gain))

    def norm(
        self,
        layout: str,
        outputs: slice | None = None,
        inputs: slice | None = None,
        gain: Weight | None = None,
    ) -> float:
        """A proven bound of the spectral norm of a part, of diag(gain)·W where a gain is given."""
        places = tuple((part.start, part.stop) if part else None for part in (outputs, inputs))

        def make() -> float:
            part = self._oriented(layout)[inputs or slice(None), outputs or slice(None)]
            data = module_of(part).floats(part)
            if gain is None:
                return spectral_norm(data)
            data *= module_of(data).floats(gain.floats)[:, None]  # one rounding an entry
            return float(plus(spectral_norm(data), times(2.0**-52, frobenius(data)), 2.0**-900))

        return float(self._once(("norm", layout, places, gain), make))


def _largest(floats: Array) -> float:
    return module_of(floats).largest(module_of(floats).floats(floats))


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
            array = np.array([_float(entry) for entry in array.flat]).reshape(array.shape)
        elif array.dtype.kind in "iub":
            array = np.array([_float(int(entry)) for entry in array.flat]).reshape(array.shape)
        elif array.dtype.itemsize > np.dtype(np.float64).itemsize:
            array = np.array([_float(entry) for entry in array.flat]).reshape(array.shape)
        data = array
    _check(data)
    if device is not None:
        data = (tensors().from_numpy(data) if isinstance(data, np.ndarray) else data).to(device)
    if hidden is not None and not hidden.any():
        hidden = None
    return Weight(data, hidden)


def tensors() -> Any:
    """The module that imports torch: only for who has asked for a device."""
    return import_module("byhand.numbers.tensors")


def _check(floats: Array) -> None:
    """Refuses what is not finite, and a span of magnitudes that slices cannot hold."""
    engine = module_of(floats)
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
    if isinstance(entry, int | float | Fraction | np.floating):
        value = float(entry)
        if not math.isfinite(value) or Fraction(value) == Fraction(*entry.as_integer_ratio()):
            return value
    raise InputError(
        _("this number is not a float, and large models are proven from floats"),
        expected=_("a float, as checkpoints hold them"),
        found=str(entry)[:60],
    )


# ------------------------------------------------------------------ enclosed arrays


@dataclass(frozen=True, slots=True)
class Origin:
    """Which operation made a value of which one, where a later operation can make use of it.

    `local` bounds |midpoint - operation(midpoints of the source)|, row by row.
    """

    kind: str  # "mean" | "mean_square" | "root" | "affine" | "softmax"
    source: Enclosed
    local: Bound = None
    more: Any = None


Lazy = Any  # a Bound, or a function without arguments that gives one


class Enclosed:
    """An array whose real values are proven to lie near its midpoints."""

    __slots__ = ("_approx", "_ball", "_box", "_norms", "_parts", "digits", "hidden", "origin")

    def __init__(
        self,
        digits: Digits,
        ball: Lazy = None,
        *,
        box: Lazy = None,
        hidden: Array = None,
        parts: Callable[[tuple[int, ...], int], Array] | None = None,
        origin: Origin | None = None,
    ) -> None:
        if digits.top > BEYOND and magnitude(digits) >= 2.0**BEYOND:
            digits = Digits(digits.engine.zeros((1, *digits.shape), digits.limbs), 0)
            ball = digits.engine.zeros(digits.shape[:-1], digits.limbs) + math.inf
            box, parts, origin = None, None, None
        self.digits = digits
        self.hidden = hidden  # True where an entry is absent, of the whole shape; None: nowhere
        self.origin = origin
        self._ball = ball
        self._box = box
        self._parts = parts
        self._norms: Array = None
        self._approx: Array = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.digits.shape

    @property
    def ndim(self) -> int:
        return self.digits.ndim

    @property
    def width(self) -> int:
        return self.digits.shape[-1]

    @property
    def exact(self) -> bool:
        return self._ball is None

    @property
    def ball(self) -> Bound:
        if callable(self._ball):
            self._ball = self._ball()
        return self._ball

    @property
    def box(self) -> Bound:
        """Bounds entry by entry: the smaller of ball and box; None: exact."""
        if self.exact:
            return None
        if callable(self._box):
            self._box = self._box()
        if self._box is None:
            return module_of(self.ball).broadcast(self.ball[..., None], self.shape)
        return self._box

    @property
    def has_box(self) -> bool:
        return self._box is not None

    def parts(self, starts: Sequence[int], width: int) -> Array:
        """Bounds for so many columns of each row, one row of bounds for each start."""
        if self._parts is None:
            return module_of(self.ball).broadcast(self.ball, (len(starts), *self.ball.shape))
        return self._parts(tuple(starts), width)

    @property
    def approx(self) -> Array:
        """The midpoints, each within APPROX of itself."""
        if self._approx is None:
            self._approx = approx(self.digits)
        return self._approx

    @property
    def norms(self) -> Array:
        """A bound of the Euclidean length of each row of midpoints."""
        if self._norms is None:
            self._norms = length(self.approx) * NEAR
        return self._norms

    @property
    def most(self) -> Array:
        """A bound of the largest |midpoint| of each row."""
        return largest(abs(self.approx)) * NEAR


class Entries:
    """An enclosed array to be indexed: single entries are `Enclosure`s, made when asked for."""

    def __init__(self, digits: Digits, radii: Callable[[], Any], hidden: Any) -> None:
        self._digits = digits
        self._radii = radii
        self._hidden = hidden
        self.shape = digits.shape
        self.ndim = digits.ndim
        self.size = digits.size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        """An entry (masked where it is absent) or, for fewer indices, a part of the array."""
        hidden = None if self._hidden is None else self._hidden[index]
        digits = self._digits[index]
        if digits.ndim:
            return Entries(digits, lambda: _at(self._radii(), index), hidden)
        if hidden is not None and bool(hidden):
            return np.ma.masked
        radius = _at(self._radii(), index)
        mid = to_fractions(digits.reshape(1))[0]
        return Enclosure(mid, Fraction(0) if radius is None else rational_radius(float(radius)))

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def tolist(self) -> Any:
        return [row.tolist() if isinstance(row, Entries) else row for row in self]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        made = np.empty(self.shape, dtype=object)
        for index in np.ndindex(*self.shape):
            made[index] = self[index]
        return made

    def __repr__(self) -> str:
        first: Any = self
        while isinstance(first, Entries) and len(first):
            first = first[0]
        more = "…" if self.size > 1 else ""
        return "[" * self.ndim + f"{first}{more}" + "]" * self.ndim


def _at(radii: Any, index: Any) -> Any:
    return None if radii is None else radii[index]


def rational_radius(radius: float) -> Fraction | float:
    """The radius as it stands in an Enclosure."""
    return math.inf if math.isinf(radius) else Fraction(radius)


def entries_of(value: Enclosed | Weight) -> Entries:
    """Any value of `Limbs` to be indexed on this machine."""
    if isinstance(value, Weight):
        return Entries(value.digits, lambda: None, value.hidden)
    engine = value.digits.engine
    digits = value.digits
    if engine is not NUMPY:
        digits = Digits(engine.to_numpy(digits.limbs), digits.top)
    hidden = value.hidden
    if hidden is not None and not isinstance(hidden, np.ndarray):
        hidden = engine.to_numpy(hidden)
    kept: list[Any] = []

    def radii() -> Any:
        if not kept:
            box = value.box
            kept.append(None if box is None else module_of(box).to_numpy(box))
        return kept[0]

    return Entries(digits, radii, hidden)

"""Enclosed arrays with their radii: the values of the operations of `Limbs`.

An `Enclosed` is an array of midpoints (`Digits`) with bounds of the distance of the real values:

    ball   for each row along the last axis, the Euclidean length of (real - midpoint)
    box    for each entry, |real - midpoint|; the radius of an entry is the smaller of the two

None means no difference.  Either may be worked out on demand.  Weights are in `weights`.

`zeros` says which entries are known to be exactly 0, though others of the row are not known
exactly: gradients are full of them (units that did not fire, rows that nobody took, positions that
do not count), and no ball proves a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.limbs.arithmetic import (
    APPROX,
    Digits,
    approx,
    magnitude,
    to_fractions,
)
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of
from byhand.numbers.enclosed.limbs.radii import Bound, largest, length
from byhand.numbers.enclosed.limbs.weights import Weight

NEAR = 1.0 + 2 * APPROX  # factor from an approximation to an upper bound
BEYOND = 420  # values above 2^420 count as unknown, so that products fit float64


@dataclass(frozen=True, slots=True)
class Origin:
    """The operation that made a value and its source, for the radius rules of later operations.

    `local` bounds |midpoint - operation(midpoints of the source)|, row by row.
    """

    kind: str  # "mean", "mean_square", "root", "affine", "softmax", …: an operation, or a fact
    source: Enclosed
    local: Bound = None
    more: Any = None


Lazy = Any  # a Bound, or a function without arguments that gives one


class Enclosed:
    """An array whose real values are proven to lie near its midpoints."""

    __slots__ = (
        "_approx", "_ball", "_box", "_norms", "_parts", "_zeros", "digits", "hidden", "origin",
    )  # fmt: skip

    def __init__(
        self,
        digits: Digits,
        ball: Lazy = None,
        *,
        box: Lazy = None,
        hidden: Array = None,
        parts: Callable[[tuple[int, ...], int], Array] | None = None,
        origin: Origin | None = None,
        zeros: Lazy = None,
    ) -> None:
        if digits.top > BEYOND and magnitude(digits) >= 2.0**BEYOND:
            digits = Digits(digits.engine.zeros((1, *digits.shape), digits.limbs), 0)
            ball = digits.engine.zeros(digits.shape[:-1], digits.limbs) + math.inf
            box, parts, origin, zeros = None, None, None, None
        self.digits = digits
        self.hidden = hidden  # True where an entry is absent, of the whole shape; None: nowhere
        self.origin = origin
        self._ball = ball if zeros is None else self._narrowed(ball, rows=True)
        self._box = box if zeros is None else self._narrowed(box)
        self._parts = parts
        self._zeros = None if ball is None else zeros
        self._norms: Array = None
        self._approx: Array = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of numbers."""
        return self.digits.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def width(self) -> int:
        """The number of entries of a row."""
        return self.shape[-1]

    @property
    def exact(self) -> bool:
        """Whether the midpoints are the numbers themselves."""
        return self._ball is None

    @property
    def ball(self) -> Bound:
        """A bound of the Euclidean distance of each row from its midpoints; None: exact."""
        if callable(self._ball):
            self._ball = self._ball()
        return self._ball

    @property
    def zeros(self) -> Array:
        """True where an entry is known to be exactly 0; None: nowhere."""
        if self.exact:
            return self.approx == 0.0
        if callable(self._zeros):
            self._zeros = self._zeros()
        return self._zeros

    @property
    def has_zeros(self) -> bool:
        """Whether some entries may be known to be exactly 0."""
        return self.exact or self._zeros is not None

    @property
    def box(self) -> Bound:
        """Bounds for each entry: the smaller of ball and box; None: exact."""
        if self.exact:
            return None
        if callable(self._box):
            self._box = self._box()
        if self._box is None:
            rows = engine_of(self.ball).broadcast(self.ball[..., None], self.shape)
            if self._zeros is None:
                return rows
            self._box = engine_of(rows).where(self.zeros, 0.0, rows)
        return self._box

    def _narrowed(self, bound: Lazy, *, rows: bool = False) -> Lazy:
        """The bound, worked out on demand, and 0 where the entries are known to be 0."""
        if bound is None:
            return None

        def narrowed() -> Bound:
            known = bound() if callable(bound) else bound
            zeros = self.zeros.all(-1) if rows else self.zeros
            return engine_of(known).where(zeros, 0.0, known)

        return narrowed

    @property
    def has_box(self) -> bool:
        """Whether bounds for the entries were given, beside those for the rows."""
        return self._box is not None or self._zeros is not None

    @property
    def has_parts(self) -> bool:
        """Whether bounds for some columns of a row are known apart from those of the row."""
        return self._parts is not None

    def parts(self, starts: Sequence[int], width: int) -> Array:
        """Bounds for `width` columns of each row, one row of bounds for each start."""
        if self._parts is None:
            return engine_of(self.ball).broadcast(self.ball, (len(starts), *self.ball.shape))
        return self._parts(tuple(starts), width)

    @property
    def approx(self) -> Array:
        """The midpoints as floats, with a relative error of at most APPROX."""
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


def constant(digits: Digits, shape: tuple[int, ...], value: float) -> Array:
    """An array filled with one number, on the device of the digits."""
    return digits.engine.zeros(shape, digits.limbs) + value


def by_entry(
    digits: Digits, box: Bound, origin: Origin | None = None, zeros: Lazy = None
) -> Enclosed:
    """A value with bounds for each entry: one number for each row of something."""
    if box is None:
        return Enclosed(digits, origin=origin)
    return Enclosed(digits, lambda: length(box), box=box, origin=origin, zeros=zeros)


def evaluated(x: Enclosed) -> Enclosed:
    """The same value with all bounds worked out and without its origin."""
    if x.exact:
        return Enclosed(x.digits, hidden=x.hidden)
    if not x.has_box:
        return Enclosed(x.digits, x.ball, hidden=x.hidden)
    box = x.box
    return Enclosed(x.digits, lambda: length(box), box=box, hidden=x.hidden, zeros=x.zeros)


def lasting(x: Enclosed) -> Enclosed:
    """A copy of the value in memory of its own."""
    digits = Digits(x.digits.limbs * 1.0, x.digits.top)
    if x.exact:
        return Enclosed(digits, hidden=x.hidden)
    if not x.has_box:
        return Enclosed(digits, x.ball * 1.0, hidden=x.hidden)
    box = x.box * 1.0
    return Enclosed(digits, lambda: length(box), box=box, hidden=x.hidden, zeros=x.zeros)


class Entries:
    """An enclosed array to be indexed: single entries are `Enclosure`s, made on demand."""

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
        """The entries as lists of lists."""
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
    """The radius for an Enclosure: a Fraction, or infinite."""
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
            kept.append(None if box is None else engine_of(box).to_numpy(box))
        return kept[0]

    return Entries(digits, radii, hidden)

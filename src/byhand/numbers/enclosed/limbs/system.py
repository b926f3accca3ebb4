"""The precision, the device and the grids of limb arithmetic.

Digits far below the radius are not worked out: the grid of a result is the radius of an entry less
GUARD bits.  So the work falls from layer to layer as the radius grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.enclosed.enclosure import Enclosing
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.arithmetic import (
    HALF,
    PRODUCT,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.constants import Constant
from byhand.numbers.enclosed.limbs.engine import engine_of
from byhand.numbers.enclosed.limbs.radii import Bound, exponent_of, plus, spread, times
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, constant
from byhand.numbers.enclosed.limbs.weights import torch_devices

COARSEST = 200  # the coarsest grid; squares of it are still floats
GUARD = 5  # bits below the radius of an entry that are still worked out
FINEST = -900  # the finest grid of all, of squares and of quotients; it is still a float
NEGLIGIBLE = 2.0**-960  # a radius of zeros, with what bounds add for numbers too small for floats
LOST = -8  # the grid of unknown numbers, whose digits do not matter


class System(Enclosing):
    """A precision, `bits` being the finest grid, and a device, or None for NumPy."""

    uniform: ClassVar[str | None] = "enclosed"
    limit: ClassVar[int] = 480  # squares of the finest grid are still floats

    def __init__(self, bits: int, device: str | None = None) -> None:
        super().__init__()
        if not 1 <= bits <= self.limit:
            raise InputError(
                _("the precision is out of range"),
                expected=_("1 to {most} bits").format(most=self.limit),
                found=str(bits),
            )
        self.bits = bits
        self.along_the_stream = True  # sublayers from middles; False: step by step, the cross-check
        self.device: Any = None
        if device is not None:
            self.device = torch_devices().find_device(device)

    @property
    def name(self) -> str:
        place = "" if self.device is None else f" on {self.device}"
        return f"enclosures, {self.bits} bits{place}"

    def at(self, bits: int) -> Self:
        """The same system at another precision; they share admitted weights."""
        other = type(self)(bits)
        other.device = self.device
        other.along_the_stream = self.along_the_stream
        return other

    def step_by_step(self) -> Self:
        """The same system, where every step has a radius by its own rule alone."""
        other = self.at(self.bits)
        other.along_the_stream = False
        return other

    def grid(self, radius: Bound, width: int = 1, finest: int | None = None) -> int:
        """The grid for rows of this Euclidean radius; the finest for exact rows.

        `finest` says how fine the grid may be where that is not 2^-bits.
        """
        end = -self.bits if finest is None else max(finest, FINEST)
        least = _least(radius)
        if least is None:
            endless = radius is not None and _endless(radius)
            return max(end, LOST) if endless else end
        wanted = exponent_of(least / math.sqrt(width)) - GUARD
        return min(COARSEST, max(end, wanted))

    def settled(self, digits: Digits, ball: Bound = None, **more: Any) -> Enclosed:
        """The value of exact digits, or of digits rounded to the grid that their radius needs."""
        low = self.grid(ball, digits.shape[-1] if digits.ndim else 1)
        if digits.low >= low:
            return Enclosed(digits, ball, **more)
        local = HALF * math.ldexp(1.0, low)
        rounded = arithmetic.regrid(digits, low=low)
        box = more.pop("box", None)
        if box is not None:
            more["box"] = lambda: plus(box(), local)
        return Enclosed(rounded, self.rounded(ball, local, digits), **more)

    def rounded(self, ball: Bound, local: Bound, digits: Digits) -> Bound:
        """The radius of rows whose entries were rounded by `local` each."""
        return self.rows(plus(ball, spread(local, digits.shape[-1])), digits)

    def rows(self, bound: Bound, digits: Digits) -> Bound:
        """The bound with one entry for each row, where it may be a single number."""
        if isinstance(bound, float):
            return constant(digits, digits.shape[:-1], bound)
        return bound

    def enclosed(self, x: Any) -> Enclosed:
        """The value; a weight becomes an exact value."""
        if isinstance(x, Enclosed):
            return x
        hidden = None if x.hidden is None else x.digits.engine.constant(x.hidden, x.digits.limbs)
        if x.ndim < 2:  # one number for each row
            return Enclosed(x.digits, hidden=hidden)
        return self.settled(x.digits, hidden=hidden)

    def with_zeros(self, value: Any, places: Sequence[tuple[int, ...]]) -> Enclosed:
        """The value with the entries at these places set to 0, which they are known to be."""
        x = self.enclosed(value)
        gone = x.approx != x.approx
        for place in places:
            gone[place] = True
        digits = Digits(x.digits.engine.where(gone, 0.0, x.digits.limbs), x.digits.top)
        if x.exact:
            return Enclosed(digits, hidden=x.hidden)
        zeros = gone | x.zeros if x.has_zeros else gone
        return Enclosed(digits, lambda: x.ball, box=lambda: x.box, hidden=x.hidden, zeros=zeros)

    def scaled(self, x: Enclosed, factor: Constant) -> Enclosed:
        """x·c; radius |c|·rho plus ‖x‖ times the error of c."""
        zeros = (lambda: x.zeros) if x.has_zeros else None
        if factor.power is not None:  # a power of two moves the point
            size = math.ldexp(1.0, factor.power)
            ball = times(x.ball, size)
            box = (lambda: times(x.box, size)) if x.has_box else None
            moved = arithmetic.shift(x.digits, factor.power)
            return Enclosed(moved, ball, box=box, hidden=x.hidden, zeros=zeros)
        ball = times(x.ball, factor.size)
        if factor.error:
            ball = plus(ball, times(x.norms, factor.error))
        exact = x.digits.low + factor.digits(x.digits.limbs).low
        low = max(self.grid(ball, x.width, min(-self.bits, x.digits.low)), exact)
        digits = without_empty_limbs(
            arithmetic.multiply(x.digits, factor.digits(x.digits.limbs), low)
        )
        local = PRODUCT * math.ldexp(1.0, low) if low > exact else None

        def entries() -> Bound:
            sizes = abs(x.approx) * NEAR
            return plus(times(x.box, factor.size), times(sizes, factor.error), local)

        box = entries if x.has_box else None
        ball = self.rounded(ball, local, digits)
        return Enclosed(digits, ball, box=box, hidden=x.hidden, zeros=zeros)

    def constant(self, value: Expression | Fraction) -> Constant:
        """A constant of the plan, with 64 bits more than the numbers have."""
        return Constant.of(value, self.bits + 64)


def _least(radius: Bound) -> float | None:
    """The smallest radius that is neither negligible nor infinite; None where there is none."""
    if radius is None:
        return None
    if isinstance(radius, float):
        return radius if 0.0 < radius < math.inf else None
    if not math.prod(radius.shape):
        return None
    least = engine_of(radius).least_above_zero(radius, NEGLIGIBLE)
    return least if least < math.inf else None


def _endless(radius: Bound) -> bool:
    if isinstance(radius, float):
        return radius == math.inf
    return engine_of(radius).holds(radius == math.inf)

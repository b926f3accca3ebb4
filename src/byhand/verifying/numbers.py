"""The checker's numbers: Arb balls, balls with letters, and rationals; functions of all three.

A number is an `arb`, which contains the real value; or a `Form`, a ball and letters that may each
be anything from -1 to 1, for many values at once; or an `fmpq`, which is the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import isqrt, prod
from typing import Any

from flint import arb, arb_series, fmpq

from byhand import expression as tree
from byhand.language import _

Number = Any  # arb, fmpq or Form
NARROW = 30  # bits that a ball knows, from which on its ends need not be looked at apart


class Wrong(Exception):
    """What a certificate says does not hold, or cannot be decided here: the reason."""


def too_close() -> Wrong:
    """The reason where balls decide nothing and there are no rational numbers to do so."""
    return Wrong(_("too close for balls, and not all numbers are rational: cannot be decided"))


class Form:
    """centre + Σ letter · coefficient, for any letters from -1 to 1; all of them are balls."""

    __slots__ = ("centre", "letters")

    def __init__(self, centre: arb, letters: Mapping[Any, arb]) -> None:
        self.centre, self.letters = centre, letters

    @property
    def far(self) -> arb:
        """How far letters move it at most."""
        return sum(map(abs, self.letters.values()), arb(0)).upper()

    def __add__(self, other: Number) -> Any:
        if not isinstance(other, Form):
            return Form(self.centre + other, self.letters)
        return Form(self.centre + other.centre, _sums(self.letters, other.letters))

    def __mul__(self, other: Number) -> Any:
        """The product; what is quadratic in letters widens the centre."""
        if not isinstance(other, Form):
            return Form(self.centre * other, {key: x * other for key, x in self.letters.items()})
        one, two = self * other.centre, other * self.centre
        square = self.far * other.far * arb(0, 1)
        return Form(one.centre + square, _sums(one.letters, two.letters))

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Number) -> Any:
        return self + -other

    def __rsub__(self, other: Number) -> Any:
        return -self + other

    __radd__, __rmul__ = __add__, __mul__


def _sums(one: Mapping[Any, Any], two: Mapping[Any, Any]) -> dict[Any, Any]:
    return {**one, **{key: one[key] + x if key in one else x for key, x in two.items()}}


def ends(x: Number) -> tuple[Number, Number]:
    """Two numbers between which a number lies."""
    if isinstance(x, Form):
        return (x.centre - x.far).lower(), (x.centre + x.far).upper()
    return (x.lower(), x.upper()) if isinstance(x, arb) else (x, x)


def middle(x: Number) -> Any:
    """About where a number lies, to compare it with others of its kind."""
    return x if isinstance(x, fmpq) else float((x.centre if isinstance(x, Form) else x).mid())


class Bend:
    """A rising or falling function: of rationals, of balls, and of forms as a line."""

    def __init__(
        self, smooth: Callable[[Any], Any], exact: Callable[[fmpq], Any], positive: bool = False
    ) -> None:
        self.smooth, self.exact = smooth, exact  # smooth: of balls and of power series
        self.positive = positive  # whether it is one of positive numbers only

    def __call__(self, x: Number) -> Number:
        """The value, or for all numbers of a ball or a form something that contains the value."""
        if isinstance(x, arb):
            return self.over(x)
        if isinstance(x, Form):
            slope, shift = self.line(*ends(x))
            return x * slope + shift
        found = self.exact(x)
        if found is None:
            raise too_close()
        return found

    def over(self, x: arb) -> arb:
        """A ball that contains the values over a ball."""
        if self.positive and not x > 0:
            return arb.nan()
        narrow = x.is_exact() or x.rel_accuracy_bits() > NARROW
        found: arb = self.smooth(x) if narrow else self.smooth(x.lower())
        return found if narrow else found.union(self.smooth(x.upper()))

    def line(self, low: arb, high: arb) -> tuple[arb, arb]:
        """A slope and a shift: f(t) is in slope · t + shift for all t between, by Taylor."""
        x = low.union(high)
        constant = self.over(x)
        try:
            near, wide = (self.smooth(arb_series([at, 1], 3)) for at in (x.mid(), x))
        except ValueError:  # a series through a pole
            return arb(0), constant
        missed = (wide[2] * x.rad() * x.rad()).union(arb(0))
        shift = near[0] - near[1] * x.mid() + missed
        better = shift.is_finite() and not shift.rad() > constant.rad()
        return (near[1], shift) if better else (arb(0), constant)


class Gate(Bend):
    """x · gate(x), where the gate rises from 0 to 1."""

    def __init__(self, gate: Callable[[Any], Any]) -> None:
        super().__init__(lambda x: x * gate(x), lambda x: x if x == 0 else None)
        self.gate = Bend(gate, self.exact)

    def over(self, x: arb) -> arb:
        return x * self.gate.over(x)


class Relu(Bend):
    """The larger of a number and 0."""

    def over(self, x: arb) -> arb:
        return arb(0) if x <= 0 else x.nonnegative_part()

    def line(self, low: arb, high: arb) -> tuple[arb, arb]:
        if low >= 0 or high <= 0:
            return arb(int(low >= 0)), arb(0)
        slope = (high / (high - low)).mid()
        return slope, arb(0).union(-slope * low).union((1 - slope) * high)


class Square(Bend):
    """The square, which falls and rises."""

    def over(self, x: arb) -> arb:
        return (x * x).nonnegative_part()


class Norm(Bend):
    """1/√ of a mean square.  A row of zeros stays zero: the limit where eps vanishes."""

    def __call__(self, x: Number) -> Number:
        return x if not isinstance(x, Form) and x == 0 else super().__call__(x)


def _root(x: fmpq) -> fmpq | None:
    top, bottom = isqrt(int(x.p)), isqrt(int(x.q))
    return fmpq(bottom, top) if top * top == x.p and bottom * bottom == x.q else None


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + (-x).exp())


def _tanh_gate(x: Any) -> Any:
    return _sigmoid((x + x * x * x * 44715 / 1000000) * (8 / arb.pi()).sqrt())


EXP = Bend(lambda x: x.exp(), lambda x: fmpq(1) if x == 0 else None)
INVERSE = Bend(lambda x: 1 / x, lambda x: 1 / x, positive=True)
SQUARE = Square(lambda x: x * x, lambda x: x * x)
INVERSE_ROOT = Norm(lambda x: x.rsqrt(), _root, positive=True)
ACTIVATIONS: dict[str, Callable[[Number], Number]] = {
    "relu": Relu(arb.nonnegative_part, lambda x: max(x, fmpq(0))),
    "gelu": Gate(lambda x: (1 + (x / arb(2).sqrt()).erf()) / 2),
    "gelu_tanh": Gate(_tanh_gate),
    "silu": Gate(_sigmoid),
    "identity": lambda x: x,
}


def ball(value: Any) -> arb:
    """A number of a model file as a ball."""
    match value:
        case Fraction() | int():
            return arb(fmpq(value.numerator, value.denominator))
        case tree.Number(value=x):
            return ball(x)
        case tree.Name(text=name):
            return arb.pi() if name == "pi" else arb.const_e()
        case tree.Negative(of=x):
            return -ball(x)
        case tree.Sum(terms=parts):
            return sum(map(ball, parts), arb(0))
        case tree.Product(factors=parts):
            return prod(map(ball, parts), start=arb(1))
        case tree.Quotient(top=x, bottom=y):
            return ball(x) / ball(y)
        case tree.Power(base=x, exponent=y):
            power = tree.rational(y)
            whole = power is not None and power.denominator == 1
            return ball(x) ** int(power or 0) if whole else (ball(x).log() * ball(y)).exp()
        case tree.Call(function="relu", argument=x):
            return ball(x).nonnegative_part()
        case tree.Call(function="step", argument=x):
            inside = ball(x)
            return arb(1) if inside > 0 else arb(0) if inside <= 0 else arb(0).union(arb(1))
        case tree.Call(function=name, argument=x):
            found: arb = getattr(ball(x), "log" if name == "ln" else name)()
            return found
    raise Wrong(_("a weight is not known"))

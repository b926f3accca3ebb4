"""Values and the names they are written in.  The space does the arithmetic.

A value is  q · num/den:  a rational times a reduced fraction of primitive integer polynomials in
*atoms*, the names.  A rational number has no polynomials at all.  An atom is one of

    exp      e^x                        sqrt     the positive square root of x
    ln       the logarithm of x > 0     root     the positive n-th root of x, n odd
    cos      *twice* the cosine of x    sin      *twice* the sine of x
    pi       π                          tanh, erf, relu   of x
    letter   stands for a larger value, its definition
    printed  a number known only to lie in an interval

(twice, because 2cos x and 2sin x make every angle formula one with integer coefficients).
"""

from __future__ import annotations

from fractions import Fraction
from functools import total_ordering
from numbers import Rational
from typing import TYPE_CHECKING, Any

from flint import arb, fmpq, fmpz, fmpz_mpoly, fmpz_poly

from byhand.display import Shown
from byhand.errors import InputError
from byhand.expression import Expression, write
from byhand.language import _
from byhand.numbers.exact import decimals
from byhand.numbers.written import asked

if TYPE_CHECKING:
    from byhand.numbers.exact.space import Space

Monomial = tuple[int, ...]  # atom ids, one for each factor
Terms = tuple[tuple[Monomial, ...], tuple[fmpz, ...]]  # of a polynomial: exponents, coefficients
Key = tuple[tuple[int, ...], Terms | None, Terms | None]


def spelled(p: fmpz_mpoly) -> Terms:
    """A hashable key: equal for equal polynomials of one ring, and only for those.

    Not `str(p)`: python-flint 0.9 keeps the memory of every text it writes of a polynomial.
    """
    return tuple(p.monoms()), tuple(p.coeffs())


class Atom:
    """One name.  It is made once, by its space, and never changes its meaning."""

    __slots__ = (
        "argument",
        "ball",
        "bits",
        "bound",
        "degree",
        "enclosed",
        "how",
        "id",
        "kind",
        "minimal",
        "power",
        "radius",
        "turn",
        "wide",
    )

    def __init__(self, number: int, kind: str) -> None:
        self.id = number
        self.kind = kind
        self.argument: Value | None = None  # the function's argument; a letter's definition
        self.wide: dict[Monomial, fmpq] | None = None  # a letter for a sum too wide for a fraction
        self.how: How | None = None  # how a wide sum was made
        self.degree = 0  # n, where this atom's n-th power is a polynomial of lower ones
        self.power: Value | None = None  # that polynomial
        self.minimal: fmpz_poly | None = None  # or the minimal polynomial, of 2cos(2π/turn)
        self.turn = 0
        self.radius: fmpq | None = None  # of a printed number
        self.enclosed = False  # depends on a printed number
        self.bound: arb | None = None  # a ball in which it is known to lie
        self.ball: arb | None = None
        self.bits = 0


class How:
    """How a value was made, as one line of working: shown, never computed with."""

    __slots__ = ("operation", "parts", "position")

    def __init__(self, operation: str, *parts: Any, position: int = 0) -> None:
        self.operation = operation
        self.parts = parts
        self.position = position


@total_ordering
class Value(Shown):
    """A real number, exactly: rational, or written in names.

    >>> import byhand
    >>> loss = byhand.trace("journey").loss
    >>> loss, loss.places(4), loss.significant(12), float(loss), loss.register
    ((10·ln(u5) - u4 - 2·u3 - u1)/10, '1.8313', '1.83129263705', 1.831292637047109, 'named')
    >>> loss.letters["u5"][:35], len(loss.letters)
    ('1 + e^((2·u1 + 3·u2 + 5·u3 + 4·u4)/', 34)

    Operators mix with int and Fraction.  `==` is True only if algebra proves it, False only if
    enclosures separate the two; otherwise it raises Undecided, and so does every order.
    Values are not hashable: two forms of one number may need a proof to be seen as equal.
    """

    __slots__ = (
        "_ball",
        "_bits",
        "_fine",
        "_key",
        "_letter",
        "_sign",
        "atoms",
        "den",
        "how",
        "num",
        "q",
        "size",
        "space",
    )
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        space: Space,
        q: fmpq,
        num: fmpz_mpoly | None = None,
        den: fmpz_mpoly | None = None,
        atoms: tuple[int, ...] = (),
        size: int = 1,
        how: How | None = None,
    ) -> None:
        self.space = space
        self.q = q
        self.num = num
        self.den = den
        self.atoms = atoms
        self.size = size  # the number of terms; far beyond every budget where degrees are huge
        self.how = how
        self._ball: arb | None = None
        self._bits = 0
        self._letter: Value | None = None
        self._fine: tuple[int, Value] | None = None
        self._key: Key | None = None
        self._sign: int | None = None

    # ------------------------------------------------------------------- what it is

    @property
    def key(self) -> Key:
        """A key: equal for values whose forms are rational multiples of each other."""
        if self._key is None:
            num = None if self.num is None else spelled(self.num)
            den = None if self.den is None else spelled(self.den)
            self._key = (self.atoms, num, den)
        return self._key

    @property
    def rational(self) -> bool:
        """Whether the value is written without a name."""
        return self.num is None

    @property
    def is_name(self) -> bool:
        """A rational times one atom."""
        return (
            self.num is not None
            and self.size == 2
            and len(self.atoms) == 1
            and self.num.degrees() == (1,)
        )

    @property
    def fraction(self) -> Fraction | None:
        """The rational number it is, or None."""
        if self.num is not None:
            return None
        return Fraction(int(self.q.p), int(self.q.q))

    @property
    def fraction_part(self) -> Fraction:
        """q, the rational factor of its form."""
        return Fraction(int(self.q.p), int(self.q.q))

    @property
    def register(self) -> str:
        """exact (a rational), named, or enclosed (it depends on a printed number)."""
        if self.num is None:
            return "exact"
        atoms = self.space.atoms
        return "enclosed" if any(atoms[i].enclosed for i in self.atoms) else "named"

    def times(self, c: fmpq, how: How | None = None) -> Value:
        """c times this value, in the same form."""
        if c == 0:
            return Value(self.space, c)
        if c == 1 and how is None:
            return self
        if how is None:
            how = How("linear", (c,), (self,))
        value = Value(self.space, self.q * c, self.num, self.den, self.atoms, self.size, how)
        value._key = self._key
        if self._letter is not None:
            value._letter = value if self._letter is self else self._letter.times(c)
        return value

    def made(self, how: How) -> Value:
        """The same value with another line of working."""
        value = Value(self.space, self.q, self.num, self.den, self.atoms, self.size, how)
        value._key, value._ball, value._bits = self._key, self._ball, self._bits
        value._letter, value._sign = self._letter, self._sign
        if self._letter is self:
            value._letter = value
        return value

    # ------------------------------------------------------------------- enclosures and text

    def ball(self, bits: int = 64) -> arb:
        """Returns an Arb ball, computed with `bits` bits, that contains the real value."""
        return self.space.ball(self, bits)

    def __float__(self) -> float:
        """The float64 nearest to the value; of an enclosed one, nearest to its middle."""
        return decimals.float_of(self)

    def __int__(self) -> int:
        """The value rounded towards 0: proven, or Undecided."""
        if (fraction := self.fraction) is not None:
            return int(fraction)
        nearest = int(self.rounded(0))
        if nearest and (self < nearest if nearest > 0 else self > nearest):
            return nearest - 1 if nearest > 0 else nearest + 1
        return nearest

    def places(self, count: int) -> str:
        """The value with so many digits behind the point: within one unit of the last, proven.

        It is the rounding half away from zero wherever that can be proven, which is always for a
        rational.  Values of more than 30 digits before the point come as by `significant`.
        Raises Undecided where the value is enclosed too widely for it.
        """
        return decimals.decimal(self, asked(count, 0))

    def decimal(self, places: int) -> str:
        """The older word for `places`."""
        return self.places(places)

    def significant(self, digits: int) -> str:
        """The value with so many significant digits: within one unit of the last, proven."""
        return decimals.significant(self, asked(digits, 1))

    def interval(self, places: int) -> tuple[str, str]:
        """Decimals (middle, radius): the real value lies within radius of middle, proven."""
        return decimals.interval(self, places)

    def rounded(self, places: int) -> Fraction:
        """The value rounded to so many decimals, half away from zero: proven, or Undecided."""
        return decimals.rounded(self, places)

    def expression(self) -> Expression:
        """The simplified form as a tree; its letters are those of the space's own writer."""
        return self.space.own_writer.simplified(self)

    @property
    def letters(self) -> dict[str, str]:
        """The definitions of the letters in its form, and of the letters in those, as text."""
        from byhand.expression import Name, leaves, write

        todo, found = [self.expression()], dict[str, str]()
        known = self.space.own_writer.definitions()
        for tree in todo:  # grows as definitions bring further letters
            for leaf in leaves(tree):
                if isinstance(leaf, Name) and leaf.text in known and leaf.text not in found:
                    found[leaf.text] = write(known[leaf.text].expression)
                    todo.append(known[leaf.text].expression)
        return found

    def __str__(self) -> str:
        return write(self.expression())

    def __repr__(self) -> str:
        return str(self)

    # ------------------------------------------------------------------- arithmetic

    def _operand(self, other: object) -> Value | None:
        if isinstance(other, Value):
            if other.space is not self.space:
                raise InputError(_("these two values come from different number spaces"))
            return other
        if isinstance(other, Rational):
            return self.space.value(Fraction(other))
        if isinstance(other, fmpz | fmpq):
            return Value(self.space, fmpq(other))
        return None

    def __add__(self, other: Any) -> Value:
        value = self._operand(other)
        return NotImplemented if value is None else self.space.add(self, value)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Value:
        value = self._operand(other)
        return NotImplemented if value is None else self.space.subtract(self, value)

    def __rsub__(self, other: Any) -> Value:
        value = self._operand(other)
        return NotImplemented if value is None else self.space.subtract(value, self)

    def __mul__(self, other: Any) -> Value:
        value = self._operand(other)
        return NotImplemented if value is None else self.space.multiply(self, value)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Value:
        value = self._operand(other)
        return NotImplemented if value is None else self.space.divide(self, value)

    def __rtruediv__(self, other: Any) -> Value:
        value = self._operand(other)
        return NotImplemented if value is None else self.space.divide(value, self)

    def __pow__(self, exponent: int) -> Value:
        if not isinstance(exponent, int):
            return NotImplemented
        return self.space.integer_power(self, exponent)

    def __neg__(self) -> Value:
        return self.times(fmpq(-1))

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return self if self.space.sign(self) >= 0 else -self

    # ------------------------------------------------------------------- comparisons

    def _compared(self, other: object) -> int | None:
        if isinstance(other, float):
            other = self.space.value(other)
        value = self._operand(other)
        return None if value is None else self.space.compare(self, value)

    def __eq__(self, other: object) -> bool:
        order = self._compared(other)
        return NotImplemented if order is None else order == 0

    def __lt__(self, other: Any) -> bool:
        order = self._compared(other)
        return NotImplemented if order is None else order < 0

    def __bool__(self) -> bool:
        return self.space.sign(self) != 0

"""exp, √, ln, rational powers, tanh, erf and relu of values, with the rules that undo each other.

A positive value is split into positive factors v = q · f₁^k₁ · f₂^k₂ · …; then √v and ln v are put
together from √fᵢ and ln fᵢ, so √2·√3 = √6 and ln(1/v) = -ln v hold by form.  Exponents that are
rational multiples of each other share one name e^(x/N).
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from flint import fmpq, fmpz, fmpz_mpoly
from flint.utils.flint_exceptions import DomainError

from byhand.errors import InputError, Undecided
from byhand.language import _
from byhand.numbers.exact.decide import Decisions
from byhand.numbers.exact.names import HALF, MINUS_ONE, ONE
from byhand.numbers.exact.value import Atom, How, Value

FACTORED_BITS = 90  # integers up to this size are factored completely
MOST_BITS = 1 << 16  # of an integer power, before it stays e^(q·ln p)
DEEPEST_ROOT = 64  # p^(1/64) is six nested roots
FEW_TERMS = 3  # exponents of so many terms are taken apart: e^(1 + √2) = e · e^√2


def integer_factors(n: fmpz) -> list[tuple[fmpz, int]]:
    """n > 0 as a product of powers; every base a prime, but for a large part left whole."""
    if n.bit_length() <= FACTORED_BITS:
        return [(fmpz(p), int(k)) for p, k in n.factor()]
    found = []
    rest = n
    for p in range(2, 1000):
        k = 0
        while rest % p == 0:
            rest, k = rest // p, k + 1
        if k:
            found.append((fmpz(p), k))
    if rest.bit_length() <= FACTORED_BITS:
        return found + ([] if rest == 1 else [(fmpz(p), int(k)) for p, k in rest.factor()])
    root = rest.isqrt()
    return [*found, (root, 2) if root * root == rest else (rest, 1)]


def factored(p: fmpz_mpoly) -> tuple[fmpz, list[tuple[fmpz_mpoly, int]]] | None:
    """p as a constant and powers of irreducible factors; None where FLINT does not give them."""
    try:
        unit, found = p.factor()
    except OverflowError:  # python-flint sorts the factors, and fails on very large coefficients
        return None
    return unit, [(f, int(k)) for f, k in found]


class ExponentClass:
    """The rational multiples of one exponent that are written as powers of one name."""

    def __init__(self, unit: Value) -> None:
        self.unit = unit
        self.divisor = 1  # the name is e^(unit/divisor)
        self.largest = 0  # the largest power of it in use
        self.atom: Atom | None = None


class Functions(Decisions):
    """The functions a transformer needs."""

    _exponents: dict[object, ExponentClass]
    _roots: dict[object, Atom]

    # ------------------------------------------------------------------- taking apart

    def factors_of(self, p: fmpz_mpoly) -> tuple[fmpz, list[tuple[fmpz_mpoly, int]]]:
        """(c, factors): p = c · product of the factors' powers, taken apart as far as is cheap."""
        if len(p) == 1 or (len(p) <= 2 * self.limits.terms and p.total_degree() <= 16):
            found = factored(p)
            if found is not None:
                return found
        try:
            return fmpz(1), [(p.sqrt(), 2)]
        except DomainError:
            return fmpz(1), [(p, 1)]

    def split(self, v: Value) -> tuple[fmpq, list[tuple[Value, int]]]:
        """(q, factors) with v = q · Π f^k, q > 0, and every f a positive name or polynomial.

        v must be proven positive.  A letter is split as its definition.
        """
        v = self.fine(v)
        if v.is_name:
            a = self.atoms[v.atoms[0]]
            if a.kind == "letter" and a.argument is not None:
                v = self.fine(a.argument).times(v.q)
        if v.num is None or v.den is None:
            return v.q, []
        q, found = v.q, []
        one = v.den.context().constant(1)
        try:
            for side, p in ((1, v.num), (-1, v.den)):
                unit, factors = self.factors_of(p)
                q *= fmpq(unit) ** side
                for f, k in factors:
                    if f.is_constant():
                        q *= fmpq(f.leading_coefficient()) ** (side * k)
                        continue
                    factor = self.make(ONE, f, one, v.atoms)
                    if self.sign(factor) < 0:
                        factor, q = factor.times(MINUS_ONE), q * (-1) ** k
                    seen = self.use(factor)
                    q *= abs(seen.q) ** (side * k)
                    found.append((seen.times(1 / abs(seen.q)), side * k))
        except Undecided:  # some factor's sign is open, but v itself is positive
            seen = self.letter(v)
            return abs(seen.q), [(seen.times(1 / abs(seen.q)), 1)]
        return q, found

    # ------------------------------------------------------------------- roots and powers

    def sqrt(self, x: Value) -> Value:
        """The square root, x ≥ 0 proven.  Raises InputError where x < 0, else Undecided."""
        sign = self.sign(x)
        if sign < 0:
            raise InputError(_("the square root of a negative number"), found=str(x))
        if sign == 0:
            return self.plain(fmpq(0), How("sqrt", x))
        q, factors = self.split(x)
        result = self.plain(1 / fmpq(q.q))  # √(a/b) = √(a·b) / b
        for p, k in integer_factors(q.p * q.q):
            result = result.times(fmpq(p) ** (k // 2))
            if k % 2:
                result = self.multiply(result, self.square_root_name(self.plain(fmpq(p))))
        for f, k in factors:
            result = self.multiply(result, self.integer_power(f, k // 2))
            if k % 2:
                result = self.multiply(result, self.square_root_name(f))
        return result.made(How("sqrt", x))

    def square_root_name(self, f: Value) -> Value:
        """√f as a name, f a positive factor; √(e^x) is e^(x/2)."""
        if f.is_name and f.q == 1:
            a = self.atoms[f.atoms[0]]
            if a.kind == "exp" and a.argument is not None:
                return self.exp(a.argument.times(HALF))
            if a.kind == "root" and a.argument is not None:
                found = self.rational_power(a.argument, fmpq(1, 2 * a.degree))
                if found is not None:
                    return found
        a = self.atom("sqrt", (int(f.q.p), f.key), f)
        a.degree, a.power = 2, f
        return self.power(a)

    def rational_power(self, f: Value, r: fmpq) -> Value | None:
        """f^r for a positive factor f: through √ and n-th roots; None where it stays e^(r·ln f)."""
        whole = r.floor()
        rest = r - whole
        bits = f.q.p.bit_length() if f.num is None else MOST_BITS // self.limits.degree
        if abs(whole) * bits > MOST_BITS:
            return None
        two, odd = fmpz(1), rest.q
        while odd % 2 == 0:
            two, odd = two * 2, odd // 2
        if two > DEEPEST_ROOT or odd > self.limits.degree:
            return None
        # rest = a/two + b/odd + an integer
        a = int(rest.p * pow(int(odd), -1, int(two)) % two) if two > 1 else 0
        b = int(rest.p * pow(int(two), -1, int(odd)) % odd) if odd > 1 else 0
        whole += (rest - fmpq(a, two) - fmpq(b, odd)).p
        result = self.integer_power(f, int(whole))
        if a:
            root = f
            while two > 1:
                root, two = self.sqrt(root), two // 2
            result = self.multiply(result, self.integer_power(root, a))
        if b:
            name, n = self.root_name(f, int(odd))
            if name is None:
                return None
            result = self.multiply(result, self.integer_power(self.power(name), b * n // int(odd)))
        return result

    def root_name(self, f: Value, n: int) -> tuple[Atom | None, int]:
        """(name, m): the m-th root of f under one name, where n divides m; roots are merged."""
        key = (int(f.q.p), f.key)
        old = self._roots.get(key)
        m = lcm(n, old.degree) if old else n
        if m > self.limits.degree:
            return None, 0
        if old is not None and old.degree == m:
            return old, m
        a = self.atom("root", (key, m), f, place=old)
        a.degree, a.power = m, f
        self._roots[key] = a
        if old is not None:
            self.refine(old, (a.id,), self.ring(1)[1][0] ** (m // old.degree))
        return a, m

    # ------------------------------------------------------------------- ln and exp

    def ln(self, x: Value) -> Value:
        """The natural logarithm, x > 0 proven.  Raises InputError where x ≤ 0, else Undecided."""
        if self.sign(x) <= 0:
            raise InputError(_("the logarithm of a number that is not positive"), found=str(x))
        q, factors = self.split(x)
        parts: list[tuple[fmpq, Value]] = []
        for n, side in ((q.p, 1), (q.q, -1)):
            parts += [
                (fmpq(side * k), self.logarithm_name(self.plain(fmpq(p))))
                for p, k in integer_factors(n)
            ]
        parts += [(fmpq(k), self.logarithm_name(f)) for f, k in factors]
        total = self.combine([c for c, _v in parts], [v for _c, v in parts])
        return total.made(How("ln", x))

    def logarithm_name(self, f: Value) -> Value:
        """ln f for a positive factor f; ln(e^x) is x, ln √x is (ln x)/2."""
        if f.is_name and f.q == 1:
            a = self.atoms[f.atoms[0]]
            if a.kind == "exp" and a.argument is not None:
                return a.argument
            if a.kind in ("sqrt", "root") and a.argument is not None:
                return self.ln(a.argument).times(fmpq(1, a.degree))
        return self.power(self.atom("ln", (int(f.q.p), f.key), f))

    def exp(self, x: Value) -> Value:
        """e^x; logarithms in the exponent leave it: e^(a + r·ln f) = f^r · e^a."""
        how = How("exp", x)
        x = self.use(x)
        outside = self.plain(ONE)
        for r, f, name in self.logarithms_in(x):
            power = self.rational_power(f, r)
            if power is not None:
                outside = self.multiply(outside, power)
                x = self.use(self.combine((ONE, -r), (x, name)))
        parts = self.terms_apart(x) if x.q != 0 else []
        limit = self.limits.degree
        if any(abs(part.q.p) > limit or part.q.q > limit for part in parts):
            parts = [x]
        for part in parts:
            outside = self.multiply(outside, self.exponential_name(part))
        return outside.made(how)

    def logarithms_in(self, x: Value) -> list[tuple[fmpq, Value, Value]]:
        """(r, f, ln f) for the terms r·ln f of x."""
        if x.num is None or x.den is None or not x.den.is_one():
            return []
        found = []
        for m, c in x.num.terms():
            if sum(m) == 1:
                a = self.atoms[x.atoms[m.index(1)]]
                if a.kind == "ln" and a.argument is not None:
                    found.append((x.q * c, a.argument, self.power(a)))
        return found

    def terms_apart(self, x: Value) -> list[Value]:
        """The terms of x, if they are few; else x whole."""
        if x.num is None or x.den is None or not x.den.is_one():
            return [x]
        if not 1 < len(x.num) <= FEW_TERMS:
            return [x]
        return [
            self.from_terms(
                {tuple(i for i, e in zip(x.atoms, m, strict=True) for _k in range(e)): x.q * c}
            )
            for m, c in x.num.terms()
        ]

    def exponential_name(self, x: Value) -> Value:
        """e^x as a power of one name for all rational multiples of x, or as a name of its own."""
        found = self._exponents.get(x.key)
        if found is None:
            unit = self.plain(ONE) if x.num is None else x.times(1 / abs(x.q))
            found = self._exponents[x.key] = ExponentClass(unit)
        ratio = x.q * found.unit.q  # x = ratio · unit, and the unit's coefficient is 1 or -1
        divisor = lcm(int(ratio.q), found.divisor)
        e = int(ratio * divisor)
        largest = max(abs(e), found.largest * (divisor // found.divisor))
        if largest > self.limits.degree:  # huge powers would hang gcd
            size = abs(ratio)
            a = self.atom("exp", (x.key, int(size.p), int(size.q)), found.unit.times(size))
            return self.power(a, 1 if ratio > 0 else -1)
        if found.atom is None or divisor != found.divisor:
            old = found.atom
            argument = found.unit.times(fmpq(1, divisor))
            found.atom = self.atom("exp", (x.key, divisor), argument, place=old)
            if old is not None and old is not found.atom:
                image = self.ring(1)[1][0] ** (divisor // found.divisor)
                self.refine(old, (found.atom.id,), image)
            found.divisor = divisor
        found.largest = largest
        return self.power(found.atom, e)

    # ------------------------------------------------------------------- the others

    def odd_function(self, kind: str, x: Value) -> Value:
        """tanh or erf: a name, with f(-x) = -f(x) and f(0) = 0."""
        how = How(kind, x)
        x = self.use(x)
        if x.q == 0:
            return self.plain(x.q, how)
        minus = x.q < 0
        argument = x.times(MINUS_ONE) if minus else x
        q = argument.q
        a = self.atom(kind, (int(q.p), int(q.q), x.key), argument)
        return self.power(a).times(MINUS_ONE if minus else ONE, how)

    def relu(self, x: Value) -> tuple[Value, bool]:
        """(max(0, x), decided): where the sign of x is open, it stays a name."""
        try:
            return (x if self.sign(x) > 0 else self.plain(fmpq(0))).made(How("relu", x)), True
        except Undecided:
            seen = self.use(x)
            unit = seen.times(1 / abs(seen.q))
            a = self.atom("relu", (int(unit.q.p), unit.key), unit)
            return self.power(a).times(abs(seen.q), How("relu", x)), False

    def value(self, number: Fraction | float) -> Value:
        """The value of a rational; a float is the dyadic rational it is."""
        if isinstance(number, float) and (number != number or number in (INFINITE, -INFINITE)):
            raise InputError(_("not a finite number"), found=str(number))
        p, q = number.as_integer_ratio()
        return self.plain(fmpq(p, q))


INFINITE = float("inf")

"""exp, √, ln, rational powers, tanh, erf and relu of values, with the rules of inverses.

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
from byhand.numbers.exact.multiples import Multiples
from byhand.numbers.exact.names import HALF, MINUS_ONE, ONE
from byhand.numbers.exact.value import Atom, How, Value

FACTORED_BITS = 90  # integers up to this size are factored completely
MOST_BITS = 1 << 16  # of an integer power, before it stays e^(q·ln p)
DEEPEST_ROOT = 64  # p^(1/64) is six nested roots
FEW_TERMS = 3  # exponents of so many terms are taken apart: e^(1 + √2) = e · e^√2


def exponent_in(n: fmpz, b: fmpz) -> tuple[int, fmpz]:
    """(k, rest): n = b^k · rest, and b does not divide the rest."""
    if n % b != 0:
        return 0, n
    k, rest = exponent_in(n // b, b * b)  # by squares: fast for powers of thousands
    return (2 * k + 2, rest // b) if rest % b == 0 else (2 * k + 1, rest)


def integer_factors(n: fmpz) -> list[tuple[fmpz, int]]:
    """n > 0 as a product of powers; every base a prime, but for a large part left whole."""
    if n.bit_length() <= FACTORED_BITS:
        return [(fmpz(p), int(k)) for p, k in n.factor()]
    found = []
    rest = n
    for p in range(2, 1000):
        k, rest = exponent_in(rest, fmpz(p))
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


def coprime_basis(numbers: list[fmpz]) -> list[fmpz]:
    """Pairwise coprime integers, no powers of others, of which the numbers are products."""
    todo, basis = [n for n in numbers if n > 1], list[fmpz]()
    while todo:
        x = todo.pop()
        for y in basis:
            common = x.gcd(y)
            if common > 1:
                basis.remove(y)
                todo += [n for n in (common, x // common, y // common) if n > 1]
                break
        else:
            basis.append(x)
    return [root_of_power(n) for n in basis]


def root_of_power(n: fmpz) -> fmpz:
    """The smallest r of which n is a power."""
    for k in range(2, n.bit_length() + 1 if n.bit_length() <= FACTORED_BITS else 12):
        r = n.root(k)
        if r > 1 and r**k == n:
            return root_of_power(r)
    return n


class Functions(Decisions):
    """The functions a transformer needs."""

    _exponents: dict[object, Multiples]
    _roots: dict[object, Atom]
    _logarithms: dict[fmpz, Atom]  # of pairwise coprime integers

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
        a = self.atom("sqrt", self.argument_key(f), f)
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
        for part, k in self.parts_of(f) if b else ():
            name, n = self.root_name(part, int(odd))
            if name is None:
                return None
            power = self.integer_power(self.power(name), k * b * n // int(odd))
            result = self.multiply(result, power)
        return result

    def parts_of(self, f: Value) -> list[tuple[Value, int]]:
        """An integer as its primes, so that their roots are shared; anything else whole."""
        if f.num is not None:
            return [(f, 1)]
        return [(self.plain(fmpq(p)), k) for p, k in integer_factors(f.q.p)]

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
            parts += [(fmpq(side * k), self.power(a)) for k, a in self.integer_logarithm(n)]
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
        return self.power(self.atom("ln", self.argument_key(f), f))

    def integer_logarithm(self, n: fmpz) -> list[tuple[int, Atom]]:
        """(k, ln b) such that ln n is the sum of k · ln b, over integers b without common factors.

        ln 10 is a name until ln 2 or ln 5 is met; then it becomes ln 2 + ln 5.
        """
        found, rest = [], n
        for b, atom in list(self._logarithms.items()):
            k, rest = exponent_in(rest, b)
            if k:
                found.append((k, atom))
            common = rest.gcd(b)
            if common > 1:
                self.split_logarithm(b, common)
                return self.integer_logarithm(n)
        if rest > 1:
            b = root_of_power(rest)
            found.append((exponent_in(rest, b)[0], self.new_logarithm(b, None)))
        return found

    def new_logarithm(self, b: fmpz, place: Atom | None) -> Atom:
        """The name of ln b, where b is an integer that no logarithm is known of."""
        atom = self.atom("ln", (1, 1, int(b)), self.plain(fmpq(b)), place=place)
        self._logarithms[b] = atom
        return atom

    def split_logarithm(self, b: fmpz, common: fmpz) -> None:
        """ln b becomes a sum over the coprime parts of b."""
        old = self._logarithms.pop(b)
        terms: dict[int, int] = {}
        for part in coprime_basis([common, b // common]):
            terms[self.new_logarithm(part, old).id] = exponent_in(b, part)[0]
        atoms = self.sorted(terms)
        gens = self.ring(len(atoms))[1]
        image = sum((x * terms[i] for x, i in zip(gens, atoms, strict=True)), gens[0] * 0)
        self.refine(old, atoms, image)

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
        """e^x as a power of one name, shared by all multiples of x whose powers stay small."""
        multiples = self._exponents.get(x.key)
        if multiples is None:
            unit = self.plain(ONE) if x.num is None else x.times(1 / abs(x.q))
            multiples = self._exponents[x.key] = Multiples(unit)
        found, k, finer = multiples.find(x.q / multiples.unit.q, self.limits.degree)
        old = found.atom
        if old is None or finer > 1:
            found.divisor *= finer
            key = (x.key, found.number, found.divisor)
            found.atom = self.atom("exp", key, multiples.named(found), place=old)
            if old is not None:
                self.refine(old, (found.atom.id,), self.ring(1)[1][0] ** finer)
        assert found.atom is not None
        return self.power(found.atom, k)

    # ------------------------------------------------------------------- the others

    def odd_function(self, kind: str, x: Value) -> Value:
        """tanh or erf: a name, with f(-x) = -f(x) and f(0) = 0."""
        how = How(kind, x)
        x = self.use(x)
        if x.q == 0:
            return self.plain(x.q, how)
        minus = x.q < 0
        argument = x.times(MINUS_ONE) if minus else x
        a = self.atom(kind, self.argument_key(argument), argument)
        return self.power(a).times(MINUS_ONE if minus else ONE, how)

    def relu(self, x: Value) -> tuple[Value, bool]:
        """(max(0, x), decided): where the sign of x is undecided, the result is a name."""
        try:
            return (x if self.sign(x) > 0 else self.plain(fmpq(0))).made(How("relu", x)), True
        except Undecided:
            seen = self.use(x)
            unit = seen.times(1 / abs(seen.q))
            a = self.atom("relu", self.argument_key(unit), unit)
            return self.power(a).times(abs(seen.q), How("relu", x)), False

    def step(self, x: Value) -> Value:
        """1 where x > 0, else 0: proven, or Undecided."""
        return self.plain(ONE if self.sign(x) > 0 else fmpq(0), How("step", x))

    def value(self, number: Fraction | float) -> Value:
        """The value of a rational; a float is the dyadic rational it is."""
        try:
            p, q = number.as_integer_ratio()
        except (ValueError, OverflowError):  # NaN, infinity
            raise InputError(_("not a finite number"), found=str(number)) from None
        return self.plain(fmpq(int(p), int(q)))

"""sin and cos, with angle sums, multiples of one angle, and rational multiples of π.

Every angle x is handled as the pair (2cos x, 2sin x), in which all formulas have integer
coefficients: with c = 2cos x and s = 2sin x, s² = 4 - c², and 2cos kx and 2sin kx are D_k(c) and
s·E_{k-1}(c) for monic polynomials D and E with D_{k+1} = c·D_k - D_{k-1}, and likewise E.

2cos(2π/n) is an algebraic integer.  Where square roots give it (n = 2^a·m, m of 1, 3, 5, 15) it is
written with them; otherwise it is a name with its minimal polynomial.
"""

from __future__ import annotations

from math import lcm

from flint import fmpq, fmpz, fmpz_mpoly, fmpz_poly

from byhand.numbers.exact.functions import Functions
from byhand.numbers.exact.multiples import MultipleClass, Multiples
from byhand.numbers.exact.names import HALF, MINUS_ONE, ONE
from byhand.numbers.exact.value import Atom, How, Value

Pair = tuple[Value, Value]  # 2cos x, 2sin x
LARGEST_MULTIPLE = 32  # 2cos(kx) is a polynomial of degree k
LARGEST_DEGREE = 48  # of the minimal polynomial of 2cos(2π/n)
LARGEST_TURN = 400
ROOTS_OF_TWO = 64  # the largest power of two in n for which nested roots are written


def multiples(k: int, modulus: fmpz_poly | None = None) -> tuple[fmpz_poly, fmpz_poly]:
    """(D_k, E_{k-1}) as polynomials in c, for k ≥ 0, reduced by the minimal polynomial of c."""
    x = fmpz_poly([0, 1])
    d, d_next = fmpz_poly([2]), x
    e, e_next = fmpz_poly([0]), fmpz_poly([1])
    for _step in range(k):
        d, d_next = d_next, x * d_next - d
        e, e_next = e_next, x * e_next - e
        if modulus is not None:
            d_next, e_next = divmod(d_next, modulus)[1], divmod(e_next, modulus)[1]
    return d, e


class Angles(Functions):
    """sin, cos and π."""

    _angles: dict[object, Multiples]
    _turns: dict[int, MultipleClass]  # 0: turns that could be merged; n: the others, by n

    def pi(self) -> Value:
        """π."""
        return self.power(self.atom("pi", ()))

    def cos(self, x: Value) -> Value:
        """The cosine of x."""
        return self.circle(x)[0].times(HALF, How("cos", x))

    def sin(self, x: Value) -> Value:
        """The sine of x."""
        return self.circle(x)[1].times(HALF, How("sin", x))

    def circle(self, x: Value) -> Pair:
        """(2cos x, 2sin x); a sum of few terms is taken apart by the angle sums."""
        x = self.use(x)
        parts = self.terms_apart(x) if x.q != 0 else []
        result = self.plain(fmpq(2)), self.plain(fmpq(0))
        for part in parts:
            result = self.turned(result, self.circle_of_term(part))
        return result

    def turned(self, first: Pair, second: Pair) -> Pair:
        """The pair of the sum of two angles."""
        (c, s), (d, t) = first, second
        if s.q == 0 and c.num is None and c.q == 2:
            return second
        return (
            self.total([(HALF, c, d), (-HALF, s, t)]),
            self.total([(HALF, s, d), (HALF, c, t)]),
        )

    def circle_of_term(self, x: Value) -> Pair:
        """(2cos x, 2sin x) of an angle that is a rational times one value."""
        if x.is_name and self.atoms[x.atoms[0]].kind == "pi":
            pair = self.circle_of_turn(x.q / 2)
            if pair is not None:
                return pair
        if x.key not in self._angles:
            self._angles[x.key] = Multiples(x.times(1 / x.q))
        multiples = self._angles[x.key]
        most = min(LARGEST_MULTIPLE, self.limits.degree)
        found, k, finer = multiples.find(x.q / multiples.unit.q, most)
        if found.atom is None or finer > 1:
            found.divisor *= finer
            key = (x.key, found.number, found.divisor)
            names = self.names_of_angle(key, multiples.named(found), found)
            self.merge(found, *names, finer, None)
        return self.multiple(found, k)

    def names_of_angle(self, key: object, x: Value, found: MultipleClass) -> tuple[Atom, Atom]:
        """The names 2cos x and 2sin x, finer than those of the class and in their place."""
        c = self.atom("cos", key, x, place=found.atom)
        s = self.atom("sin", key, x, place=found.other)
        s.degree = 2
        s.power = self.from_terms({(c.id, c.id): MINUS_ONE, (): fmpq(4)})
        return c, s

    def merge(
        self, found: MultipleClass, c: Atom, s: Atom | None, ratio: int, modulus: fmpz_poly | None
    ) -> None:
        """Replaces the names of a class by c and s, of an angle `ratio` times finer."""
        old_cos, old_sin = found.atom, found.other
        found.atom, found.other = c, s
        if old_cos is not None and old_cos is not c:
            cosine, sine = self.polynomials(found, ratio, modulus)
            if old_sin is not None:
                self.refine(old_sin, *sine)
            self.refine(old_cos, *cosine)

    def polynomials(
        self, found: MultipleClass, k: int, modulus: fmpz_poly | None
    ) -> tuple[tuple[tuple[int, ...], fmpz_mpoly], tuple[tuple[int, ...], fmpz_mpoly]]:
        """2cos kx and 2sin kx, k ≥ 0, as polynomials in the names of the class."""
        c, s = found.atom, found.other
        assert c is not None
        d, e = multiples(k, modulus)
        cosine = (c.id,), self.in_one_name(d)
        if s is not None:
            gens = self.ring(2)[1]
            atoms = self.sorted((s.id, c.id))
            sine = gens[atoms.index(s.id)] * self.move(self.in_one_name(e), (c.id,), atoms)
            return cosine, (atoms, sine)
        assert modulus is not None  # n divisible by 4: 2sin(2π/n) = 2cos(2π(n/4 - 1)/n)
        own, _e = multiples(found.divisor // 4 - 1, modulus)
        return cosine, ((c.id,), self.in_one_name(divmod(own * e, modulus)[1]))

    def in_one_name(self, p: fmpz_poly) -> fmpz_mpoly:
        """A polynomial in one variable, in the ring of one name."""
        x = self.ring(1)[1][0]
        return sum((x**k * c for k, c in enumerate(p.coeffs())), x * 0)

    def multiple(self, found: MultipleClass, k: int, modulus: fmpz_poly | None = None) -> Pair:
        """The pair of k times the angle of the class."""
        (atoms, cosine), (both, sine) = self.polynomials(found, abs(k), modulus)
        one, two = self.ring(len(atoms))[0].constant(1), self.ring(len(both))[0].constant(1)
        return (
            self.make(ONE, cosine, one, atoms),
            self.make(ONE if k > 0 else MINUS_ONE, sine, two, both),
        )

    # ------------------------------------------------------------------- rational parts of a turn

    def circle_of_turn(self, t: fmpq) -> Pair | None:
        """The pair of 2πt; None where its names have too large a degree."""
        t -= t.floor()
        n = int(t.q)
        two, rest = n & -n, n // (n & -n)
        if two <= ROOTS_OF_TWO and rest in (1, 3, 5, 15):
            return self.with_square_roots(t, two, rest)
        if n % 4 == 2:  # half a turn more or less changes both signs
            pair = self.circle_of_turn(t - HALF)
            return pair and (pair[0].times(MINUS_ONE), pair[1].times(MINUS_ONE))
        found = self._turns.setdefault(0, MultipleClass(0, ONE))
        merged = lcm(n, found.divisor)
        if not self.is_manageable(merged):
            if not self.is_manageable(n):
                return None
            found, merged = self._turns.setdefault(n, MultipleClass(n, ONE)), n
        modulus = fmpz_poly.cos_minpoly(merged)
        if found.atom is None or merged != found.divisor:
            finer = merged // found.divisor
            found.divisor = merged
            self.merge(found, *self.names_of_turn(merged, modulus, found), finer, modulus)
        k = int(t * merged)
        return self.multiple(found, k if 2 * k <= merged else k - merged, modulus)

    def is_manageable(self, n: int) -> bool:
        """Whether the cosine of the n-th part of a turn has a small minimal polynomial."""
        return n <= LARGEST_TURN and int(fmpz(n).euler_phi()) <= 2 * LARGEST_DEGREE

    def names_of_turn(
        self, n: int, modulus: fmpz_poly, found: MultipleClass
    ) -> tuple[Atom, Atom | None]:
        """The names of 2cos and 2sin of 2π/n; without the sine where the cosine gives it."""
        angle = self.pi().times(fmpq(2, n))
        key = ("turn", found.number, n)
        if n % 4 == 0:
            c = self.atom("cos", key, angle, place=found.atom)
            s = None
        else:
            c, s = self.names_of_angle(key, angle, found)
            s.turn = n
        c.turn, c.minimal, c.degree = n, modulus, modulus.degree()
        return c, s

    def with_square_roots(self, t: fmpq, two: int, rest: int) -> Pair:
        """The pair of 2πt, where the denominator of t is two·rest: a power of two, and 1 to 15."""
        k = int(t.p)
        result = self.power_of_two_turn(k * pow(rest, -1, two) % two if two > 1 else 0, two)
        for m in (3, 5):
            if rest % m == 0:
                share = k * pow(two * rest // m, -1, m) % m
                result = self.turned(result, self.repeated(self.third_or_fifth(m), share))
        return result

    def third_or_fifth(self, m: int) -> Pair:
        """The pair of 2π/3 or 2π/5."""
        if m == 3:
            return self.plain(MINUS_ONE), self.sqrt(self.plain(fmpq(3)))
        root = self.sqrt(self.plain(fmpq(5)))
        return (
            self.combine((HALF, -HALF), (root, self.plain(ONE))),
            self.sqrt(self.combine((HALF, HALF), (self.plain(fmpq(5)), root))),
        )

    def power_of_two_turn(self, k: int, n: int) -> Pair:
        """The pair of 2πk/n, n a power of two."""
        if n <= 4:
            quarter = k * (4 // n) % 4
            return (
                self.plain(fmpq((2, 0, -2, 0)[quarter])),
                self.plain(fmpq((0, 2, 0, -2)[quarter])),
            )
        c, m = self.plain(fmpq(0)), 4
        while m < n:  # 2cos(x/2) = √(2 + 2cos x)
            c, m = self.sqrt(self.add(c, self.plain(fmpq(2)))), 2 * m
        quarter = n // 4
        return self.cosine_multiple(c, k), self.cosine_multiple(c, quarter - k)

    def cosine_multiple(self, c: Value, k: int) -> Value:
        """2cos kx, given 2cos x."""
        value, after = self.plain(fmpq(2)), c
        for _step in range(abs(k)):
            value, after = after, self.subtract(self.multiply(c, after), value)
        return value

    def repeated(self, pair: Pair, k: int) -> Pair:
        """(2cos kx, 2sin kx), from those of x."""
        result = self.plain(fmpq(2)), self.plain(fmpq(0))
        for _step in range(k):
            result = self.turned(result, pair)
        return result

"""The field operations on values, and the normal form they end in.

Equal forms are equal numbers, always: every step is an identity, and every divisor and every
conjugate used is proven not to be zero.  Different forms may be equal numbers; `decide` finds out.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, ctx, fmpq, fmpq_mat, fmpq_poly, fmpz, fmpz_mpoly

from byhand.numbers.exact.names import ONE, OVERSIZE, ZERO, Names
from byhand.numbers.exact.value import Atom, How, Monomial, Terms, Value, spelled

Part = tuple[fmpq, Value, Value]  # one product c · x · y of a sum
LONGEST_INVERSE = 10_000  # bits, about, of the coefficients of an inverse modulo a polynomial


class Field(Names):
    """Sums, products and the normal form."""

    # ------------------------------------------------------------------- the normal form

    def reduce(self, p: fmpz_mpoly, atoms: tuple[int, ...]) -> fmpz_mpoly:
        """p with every power replaced that a relation replaces; `atoms` must be closed."""
        for k, i in enumerate(atoms):  # newest first: a relation has only older atoms beside it
            a = self.atoms[i]
            if a.degree and p.degrees()[k] >= a.degree:
                old, relation = self.relation(a)
                p = p % self.move(relation, old, atoms)
        return p

    def nonzero(self, p: fmpz_mpoly, atoms: tuple[int, ...]) -> bool:
        """True if balls prove that p is not zero; False says nothing."""
        return any(not self.polynomial_ball(p, atoms, bits).contains(0) for bits in (64, 512))

    def cancel(self, a: fmpz_mpoly, b: fmpz_mpoly) -> tuple[fmpz_mpoly, fmpz_mpoly]:
        """a and b without a common factor: the greatest, where it is cheap enough to find.

        FLINT's gcd cannot be interrupted, so degrees and terms are looked at first; and at huge
        degrees it has returned nonsense, so its answer is checked.
        """
        small = max(*a.degrees(), *b.degrees()) <= 4 * self.limits.degree
        if not small or len(a) + len(b) > 4 * self.limits.work:
            return a, b
        common = a.gcd(b)
        if common.is_zero() or common.is_one():
            return a, b
        (first, rest), (second, remainder) = divmod(a, common), divmod(b, common)
        return (first, second) if rest.is_zero() and remainder.is_zero() else (a, b)

    def make(
        self,
        q: fmpq,
        n: fmpz_mpoly,
        d: fmpz_mpoly,
        atoms: tuple[int, ...],
        how: How | None = None,
    ) -> Value:
        """q · n/d in normal form, where d is known not to be zero."""
        if q == 0 or n.is_zero():
            return self.plain(ZERO, how)
        if any(self.atoms[i].degree for i in atoms):
            n, d, atoms = self.without_roots_below(n, d, atoms)
            if n.is_zero():
                return self.plain(ZERO, how)
        if not d.is_constant() and not n.is_constant():
            n, d = self.cancel(n, d)
        above, n = n.primitive()
        if n.leading_coefficient() < 0:
            n, above = -n, -above
        q = q * above
        if not d.is_one():
            below, d = d.primitive()
            if d.leading_coefficient() < 0:
                d, below = -d, -below
            q = q / below
        degrees = list(map(max, n.degrees(), d.degrees()))
        used = tuple(i for i, degree in zip(atoms, degrees, strict=True) if degree)
        if not used:
            return self.plain(q, how)
        size = len(n) + len(d) if max(degrees) <= self.limits.degree else OVERSIZE
        n, d = self.move(n, atoms, used), self.move(d, atoms, used)
        value = self.plain(q, how)
        value.num, value.den, value.atoms, value.size = n, d, used, size
        return value

    def without_roots_below(
        self, n: fmpz_mpoly, d: fmpz_mpoly, atoms: tuple[int, ...]
    ) -> tuple[fmpz_mpoly, fmpz_mpoly, tuple[int, ...]]:
        """n/d with powers replaced by relations, and with roots moved out of d."""
        tops, bottoms = n.degrees(), d.degrees()
        if not any(
            self.atoms[i].degree and (tops[k] >= self.atoms[i].degree or bottoms[k])
            for k, i in enumerate(atoms)
        ):
            return n, d, atoms
        closed = self.closure(atoms)
        n = self.reduce(self.move(n, atoms, closed), closed)
        d = self.reduce(self.move(d, atoms, closed), closed)
        for k, i in enumerate(closed):
            a = self.atoms[i]
            if a.degree and d.degrees()[k]:
                factor = self.conjugate(a, k, d, closed)
                if factor is None or len(factor) * max(len(n), len(d)) > self.limits.work:
                    continue
                norm = self.reduce(d * factor, closed)
                # The norm is d times the factor: if it is not zero, the factor is not.
                if self.nonzero(norm, closed):
                    n, d = self.reduce(n * factor, closed), norm
        return n, d, closed

    def conjugate(
        self, a: Atom, k: int, d: fmpz_mpoly, atoms: tuple[int, ...]
    ) -> fmpz_mpoly | None:
        """A factor of d that removes the k-th atom; None where none is known."""
        gens = self.ring(len(atoms))[1]
        if a.degree == 2 and a.power is not None:
            rest = d.subs({k: 0})  # d = rest + b·s
            return gens[k] if rest.is_zero() else 2 * rest - d
        if a.power is not None and len(d) == 1:
            return gens[k] ** (a.degree - d.degrees()[k])
        if sum(1 for degree in d.degrees() if degree) != 1:
            return None
        # d is a polynomial in this atom alone: its inverse modulo the minimal polynomial.
        old, relation = self.relation(a)
        if len(old) != 1 or a.degree * max(c.bit_length() for c in d.coeffs()) > LONGEST_INVERSE:
            return None
        dense = [ZERO] * (d.degrees()[k] + 1)
        for exponents, c in d.terms():
            dense[int(exponents[k])] = fmpq(c)
        modulus = [ZERO] * (a.degree + 1)
        for exponents, c in relation.terms():
            modulus[int(exponents[0])] = fmpq(c)
        divisor, inverse, _other = fmpq_poly(dense).xgcd(fmpq_poly(modulus))
        if divisor.degree() != 0:
            return None
        found = gens[k] * 0
        for e, c in enumerate(inverse.numer().coeffs()):
            found += gens[k] ** e * c
        return found

    # ------------------------------------------------------------------- sums of products

    def total(self, parts: Sequence[Part], how: How | None = None) -> Value:
        """The sum of c·x·y: multiplied out if that is little work, else in letters.

        A sum that is wide even in letters becomes a letter itself.
        """
        if all(x.num is None and y.num is None for _c, x, y in parts):
            return self.plain(sum((c * x.q * y.q for c, x, y in parts), ZERO), how)
        parts = [
            (c, self.use(x), self.use(y)) for c, x, y in parts if c != 0 and x.q != 0 and y.q != 0
        ]
        if all(x.num is None and y.num is None for _c, x, y in parts):
            return self.plain(sum((c * x.q * y.q for c, x, y in parts), ZERO), how)
        if len(parts) == 1:
            ((c, x, y),) = parts
            if x.num is None or y.num is None:
                named, plain = (y, x) if x.num is None else (x, y)
                return named.times(c * plain.q, how)
        value = self.multiplied_out(parts, how)
        if value is not None:
            return self.as_narrow(value, parts)
        return self.wide([(c, self.letter(x), self.letter(y)) for c, x, y in parts], how)

    def as_narrow(self, value: Value, parts: Sequence[Part]) -> Value:
        """The sum of these parts, no wider than they are.

        The product of denominators known only within wide ranges may be a ball around 0.
        """
        if value.den is None or value.den.is_one() or value.register != "enclosed":
            return value
        with ctx.workprec(64):
            apart = sum((arb(c) * x.ball(64) * y.ball(64) for c, x, y in parts), arb(0))
        return self.bounded(value, apart) if self.says_more(apart, value) else value

    def multiplied_out(self, parts: Sequence[Part], how: How | None) -> Value | None:
        """The sum as one fraction; None where that is too much work."""
        atoms = self.sorted(i for _c, x, y in parts for i in (*x.atoms, *y.atoms))
        work = self.limits.work
        if len(atoms) > self.limits.terms or sum(x.size * y.size for _c, x, y in parts) > work:
            return None
        one = self.ring(len(atoms))[0].constant(1)
        groups: dict[Terms | None, tuple[fmpz_mpoly, fmpz_mpoly, fmpz]] = {}  # by denominator
        for c, x, y in parts:
            q, num, den = c * x.q * y.q, one, one
            for v in (x, y):
                if v.num is not None and v.den is not None:
                    own = self.move(v.num, v.atoms, atoms)
                    num = own if num is one else num * own
                    if not v.den.is_one():
                        own = self.move(v.den, v.atoms, atoms)
                        den = own if den is one else den * own
            key = None if den is one else spelled(den)
            found = groups.get(key)
            if found is None:
                groups[key] = den, num * q.p, q.q
            else:
                _den, above, scale = found
                common = scale.lcm(q.q)
                groups[key] = den, above * (common // scale) + num * (q * common).p, common
        (d, n, s), *more = groups.values()
        for d2, n2, s2 in more:
            if max(len(d) * len(d2), len(n) * len(d2) + len(n2) * len(d)) > work:
                return None
            rest, other = self.cancel(d, d2)
            n, d, s = n * other * s2 + n2 * rest * s, rest * d2, s * s2
        return self.make(fmpq(1, s), n, d, atoms, how)

    def wide(self, parts: Sequence[Part], how: How | None) -> Value:
        """A sum of products of letters: a fraction if that is small, else a letter itself."""
        terms: dict[Monomial, fmpq] = {}
        for c, x, y in parts:
            monomial = tuple(sorted(x.atoms + y.atoms))
            terms[monomial] = terms.get(monomial, ZERO) + c * x.q * y.q
        terms = {m: c for m, c in sorted(terms.items()) if c != 0}
        if len(terms) <= self.limits.terms:
            return self.from_terms(terms, how)
        return self.wide_letter(tuple(terms), list(terms.values()), how)

    def wide_letter(
        self, monomials: tuple[Monomial, ...], coefficients: list[fmpq], how: How | None
    ) -> Value:
        """A letter for a sum, or a multiple of the letter that a multiple of the sum has."""
        numerators, _below = fmpq_mat(1, len(coefficients), coefficients).numer_denom()
        whole = numerators.entries()
        share = fmpz(0)
        for n in whole:
            share = share.gcd(n)
            if share == 1:
                break
        if whole[0] < 0:
            share = -share
        key = monomials, tuple(int(n // share) for n in whole)
        a = self.atom("letter", key)
        if a.wide is None:
            a.wide = dict(zip(monomials, coefficients, strict=True))
            a.how = how
            a.enclosed = any(self.atoms[i].enclosed for m in monomials for i in m)
        value = self.power(a).times(coefficients[0] / next(iter(a.wide.values())))
        value.how = how
        value._letter = value
        return value

    def from_terms(self, terms: dict[Monomial, fmpq], how: How | None = None) -> Value:
        """The sum of these monomials in normal form, however many they are."""
        atoms = self.sorted(i for m in terms for i in m)
        scale = fmpz(1)
        for c in terms.values():
            scale = scale.lcm(c.q)
        if not atoms:
            return self.plain(sum(terms.values(), ZERO), how)
        context = self.ring(len(atoms))[0]
        p = context.from_dict(
            {tuple(m.count(i) for i in atoms): (c * scale).p for m, c in terms.items()}
        )
        return self.make(fmpq(1, scale), p, context.constant(1), atoms, how)

    # ------------------------------------------------------------------- the operations

    def add(self, a: Value, b: Value) -> Value:
        """a + b."""
        return self.combine((ONE, ONE), (a, b))

    def subtract(self, a: Value, b: Value) -> Value:
        """a - b."""
        return self.combine((ONE, -ONE), (a, b))

    def multiply(self, a: Value, b: Value) -> Value:
        """a · b."""
        if a.num is None and b.num is None:
            return self.plain(a.q * b.q)
        return self.total([(ONE, a, b)], How("dot", (a,), (b,), ONE))

    def combine(self, coefficients: Sequence[fmpq], xs: Sequence[Value]) -> Value:
        """The sum of c·x."""
        one = self.plain(ONE)
        return self.total(
            [(c, x, one) for c, x in zip(coefficients, xs, strict=True)],
            How("linear", coefficients, xs),
        )

    def dot(self, xs: Sequence[Value], ys: Sequence[Value], scale: fmpq = ONE) -> Value:
        """scale · Σ x·y."""
        return self.total(
            [(scale, x, y) for x, y in zip(xs, ys, strict=True)], How("dot", xs, ys, scale)
        )

    def linear(
        self, rows: Sequence[Sequence[fmpq]], xs: Sequence[Value], bias: Sequence[Value] | None
    ) -> list[Value]:
        """A rational matrix times a vector: letters of a wide input are given once, not per row."""
        one = self.plain(ONE)
        offsets: list[list[Value]] = [[] for _row in rows] if bias is None else [[b] for b in bias]
        if all(x.num is None for x in xs) and all(not b or b[0].num is None for b in offsets):
            product = fmpq_mat([list(row) for row in rows]) * fmpq_mat([[x.q] for x in xs])
            return [
                self.plain(product[r, 0] + (b[0].q if b else 0), self.row_made(row, xs, b))
                for r, (row, b) in enumerate(zip(rows, offsets, strict=True))
            ]
        seen = [self.use(x) for x in xs]
        if len({i for x in seen for i in x.atoms}) > self.limits.terms:
            return self.wide_rows(rows, xs, [self.letter(x) for x in seen], offsets)
        results = []
        for row, b in zip(rows, offsets, strict=True):
            parts = [(c, x, one) for c, x in zip(row, seen, strict=True)]
            parts.extend((ONE, v, one) for v in b)
            results.append(self.total(parts, self.row_made(row, xs, b)))
        return results

    def wide_rows(
        self,
        rows: Sequence[Sequence[fmpq]],
        xs: Sequence[Value],
        letters: Sequence[Value],
        offsets: Sequence[list[Value]],
    ) -> list[Value]:
        """The rows times letters, which are put in order once for all rows."""
        order = sorted(range(len(letters)), key=lambda j: letters[j].atoms)
        monomials = tuple(letters[j].atoms for j in order)
        factors = [letters[j].q for j in order]
        apart = all(monomials) and len(set(monomials)) == len(monomials)
        one = self.plain(ONE)
        results = []
        for row, b in zip(rows, offsets, strict=True):
            how = self.row_made(row, xs, b)
            coefficients = [row[j] * q for j, q in zip(order, factors, strict=True)]
            if apart and not any(v.q != 0 for v in b) and all(coefficients):
                results.append(self.wide_letter(monomials, coefficients, how))
            else:
                parts = [(c, x, one) for c, x in zip(row, letters, strict=True) if c != 0]
                parts.extend((ONE, self.letter(self.use(v)), one) for v in b)
                results.append(self.wide(parts, how))
        return results

    @staticmethod
    def row_made(row: Sequence[fmpq], xs: Sequence[Value], bias: list[Value]) -> How:
        """How an entry of a product with a rational row came about."""
        return How("linear", (*row, ONE), (*xs, *bias)) if bias else How("linear", row, xs)

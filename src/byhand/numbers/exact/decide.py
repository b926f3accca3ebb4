"""Decisions: enclosures prove order and inequality, algebra alone proves equality.

What neither proves is Undecided.  A proof that a value is zero may replace letters by their
definitions and multiply by a proven nonzero.  It may use e^a · e^b = e^(a+b) for relations between
exponents, which are guessed numerically (LLL) and then proven.  `Limits.proof` bounds all of it.
"""

from __future__ import annotations

from math import comb, prod

from flint import arb, ctx, fmpq, fmpz, fmpz_mat, fmpz_mpoly

from byhand.errors import Undecided
from byhand.language import _
from byhand.numbers.exact.field import Field
from byhand.numbers.exact.names import ONE
from byhand.numbers.exact.value import How, Value, spelled

DEEPEST_PROOF = 12
LARGEST_GUESS = 2**16  # numerator and denominator of a rational that a value may turn out to be


def power_size(p: fmpz_mpoly, e: int) -> int:
    """A bound on the number of terms of p^e."""
    return min(comb(len(p) + e - 1, e), prod(e * d + 1 for d in p.degrees()))


def simplest_fraction(ball: arb) -> fmpq | None:
    """The fraction of smallest denominator in the ball; None where the ball is wide or huge."""
    if not ball.is_finite() or ball.rad() > arb(2) ** -30 or abs(ball) > LARGEST_GUESS:
        return None
    ends = []
    for end in (ball.lower(), ball.upper()):
        mantissa, exponent = end.mid().man_exp()
        if abs(exponent) > 10_000:
            return fmpq(0) if ball.contains(0) else None
        ends.append(fmpq(mantissa) * fmpq(2) ** int(exponent))
    return simplest_between(*ends)


def simplest_between(low: fmpq, high: fmpq) -> fmpq:
    """The fraction of smallest denominator in an interval, by continued fractions."""
    if low <= 0 <= high:
        return fmpq(0)
    if high < 0:
        return -simplest_between(-high, -low)
    parts: list[fmpz] = []
    while True:
        whole = low.ceil()
        if whole <= high:
            parts.append(whole)
            break
        parts.append(low.floor())
        low, high = 1 / (high - parts[-1]), 1 / (low - parts[-1])
    found = fmpq(parts.pop())
    while parts:
        found = parts.pop() + 1 / found
    return found


class Decisions(Field):
    """Signs, and the operations that need one: comparison, division."""

    _spent = 0  # products of terms in the proof under way
    _depth = 0

    # ------------------------------------------------------------------- signs

    def sign(self, v: Value) -> int:
        """-1, 0 or 1, proven; raises Undecided where no proof is found."""
        if v.num is None:
            return (v.q > 0) - (v.q < 0)
        if v._sign is None:
            v._sign = self._find_sign(v)
        if v._sign == 2:
            raise Undecided(
                _("not proven to be 0, and not separated from 0 with {bits} bits").format(
                    bits=self.limits.bits
                ),
                found=_("about {value}").format(value=v.ball(64).str(6, radius=True)),
            )
        return v._sign

    def _find_sign(self, v: Value) -> int:
        enclosed = v.register == "enclosed"
        bits = 64
        while bits <= self.limits.bits:
            ball = self.ball(v, bits)
            if ball > 0:
                return 1
            if ball < 0:
                return -1
            if bits == 128:
                if enclosed and not self.sample_ball(v).contains(0):
                    break  # not 0 for some numbers of the ranges, so algebra cannot prove 0
                if self.proves_zero(v):
                    return 0
                if enclosed:
                    break  # its balls do not shrink
            bits *= 2
        return 2

    def compare(self, a: Value, b: Value) -> int:
        """The sign of a - b, proven; raises Undecided where no proof is found."""
        if a.num is None and b.num is None:
            return (a.q > b.q) - (a.q < b.q)
        bits = 64
        low, high = self.ball(a, bits), self.ball(b, bits)
        if low < high:
            return -1
        if low > high:
            return 1
        return self.sign(self.subtract(a, b))

    # ------------------------------------------------------------------- division and powers

    def divide(self, a: Value, b: Value, how: How | None = None) -> Value:
        """a / b.  Raises ZeroDivisionError where b is 0, Undecided where that is open."""
        return self.total([(ONE, a, self.inverse(b))], how or How("divide", a, b))

    def inverse(self, b: Value) -> Value:
        """1 / b.  Raises ZeroDivisionError where b is 0, Undecided where that is open."""
        if self.sign(b) == 0:
            raise ZeroDivisionError(_("division by a value proven to be 0"))
        below = self.use(b)
        if below.num is None or below.den is None:
            return self.plain(1 / below.q)
        return self.make(1 / below.q, below.den, below.num, below.atoms)

    def integer_power(self, v: Value, e: int) -> Value:
        """The e-th power, by squaring; a negative e needs v ≠ 0."""
        if e < 0:
            return self.divide(self.plain(ONE), self.integer_power(v, -e))
        if v.num is None:
            return self.plain(v.q**e)
        result, square = self.plain(ONE), v
        while e:
            if e & 1:
                result = self.multiply(result, square)
            e >>= 1
            if e:
                square = self.multiply(square, square)
        return result

    # ------------------------------------------------------------------- coming back

    def settled(self, v: Value) -> Value:
        """v, or the small rational that a proof shows it to be."""
        kinds = [self.atoms[i].kind for i in v.atoms]
        if "letter" not in kinds and kinds.count("exp") + kinds.count("sqrt") < 2:
            return v
        guess = fmpq(0)
        for bits in (64, 192):  # a coincidence is unlikely, then nearly impossible
            found = simplest_fraction(self.ball(v, bits))
            if found is None or max(abs(found.p), found.q) > LARGEST_GUESS:
                return v
            guess = found
        same = self.proves_zero(self.subtract(v, self.plain(guess)))
        return self.plain(guess, v.how) if same else v

    # ------------------------------------------------------------------- proofs

    def proves_zero(self, v: Value) -> bool:
        """True if algebra proves v = 0; False says nothing."""
        v = self.fine(v)
        if v.num is None:
            return v.q == 0
        self._spent = self._depth = 0
        return self.vanishes(v.num, v.atoms)

    def vanishes(self, p: fmpz_mpoly, atoms: tuple[int, ...]) -> bool:
        """True if p = 0 is proven: every step is an identity, or multiplies by a non-zero."""
        if self._depth >= DEEPEST_PROOF:
            return False
        self._depth += 1
        try:
            return self._vanishes_with_letters_opened(p, atoms) or (
                self._vanishes_by_conjugate(p, atoms)
            )
        finally:
            self._depth -= 1

    def _vanishes_with_letters_opened(self, p: fmpz_mpoly, atoms: tuple[int, ...]) -> bool:
        while not p.is_zero():
            if self._vanishes_by_exponents(p, atoms):
                return True
            opened = self.open_letters(p, atoms)
            if opened is None:
                return False
            p, atoms = opened
        return True

    def _vanishes_by_conjugate(self, p: fmpz_mpoly, atoms: tuple[int, ...]) -> bool:
        """p = a + b·s is zero if a² - b²s² is zero and a - b·s is not."""
        for k, i in enumerate(atoms):
            a = self.atoms[i]
            if a.degree == 2 and a.power is not None and p.degrees()[k]:
                conjugate = 2 * p.subs({k: 0}) - p
                self._spent += len(p) ** 2
                if self._spent > self.limits.proof or not self.nonzero(conjugate, atoms):
                    return False
                closed = self.closure(atoms)
                norm = self.reduce(self.move(p * conjugate, atoms, closed), closed)
                return self.vanishes(norm, closed)
        return False

    def open_letters(
        self, p: fmpz_mpoly, atoms: tuple[int, ...]
    ) -> tuple[fmpz_mpoly, tuple[int, ...]] | None:
        """p times a non-zero, with its newest letter and all of the same denominator opened."""
        closed = self.closure(atoms)
        p, atoms = self.reduce(self.move(p, atoms, closed), closed), closed
        degrees = p.degrees()
        definitions: dict[int, Value] = {}
        for k, i in enumerate(atoms):
            a = self.atoms[i]
            if a.kind == "letter" and degrees[k]:
                if a.wide is not None:
                    self._spent += len(a.wide)
                    if self._spent > self.limits.proof:
                        return None
                    definitions[k] = self.fine(self.from_terms(a.wide))
                else:
                    assert a.argument is not None
                    definitions[k] = self.fine(a.argument)
        if not definitions:
            return None
        first = next(iter(definitions.values()))
        batch = {k: d for k, d in definitions.items() if self._below(d) == self._below(first)}
        others = [k for k in range(len(atoms)) if k not in batch]
        new = self.closure(
            [atoms[k] for k in others] + [i for d in batch.values() for i in d.atoms]
        )
        parts: dict[tuple[int, ...], dict[tuple[int, ...], fmpz]] = {}
        for m, c in p.terms():
            part = parts.setdefault(tuple(int(m[k]) for k in batch), {})
            part[tuple(int(m[k]) for k in others)] = c
        top = max(sum(e) for e in parts)
        for e, part in parts.items():
            above = prod(
                power_size(d.num, x)
                for d, x in zip(batch.values(), e, strict=True)
                if d.num is not None
            )
            below = 1 if first.den is None else power_size(first.den, top - sum(e))
            self._spent += len(part) * above * below
        if self._spent > self.limits.proof or top > self.limits.degree:
            return None
        return self._opened(batch, parts, top, tuple(atoms[k] for k in others), new)

    def _below(self, v: Value) -> object:
        """A key of the denominator: equal for values of the same denominator."""
        if v.den is None or v.den.is_constant():
            return None
        used = tuple(i for i, e in zip(v.atoms, v.den.degrees(), strict=True) if e)
        return used, spelled(self.move(v.den, v.atoms, used))

    def _opened(
        self,
        batch: dict[int, Value],
        parts: dict[tuple[int, ...], dict[tuple[int, ...], fmpz]],
        top: int,
        rest: tuple[int, ...],
        new: tuple[int, ...],
    ) -> tuple[fmpz_mpoly, tuple[int, ...]]:
        """The letters of `batch` are n/d with one d: each term times d^top is a polynomial."""
        if not new:
            new = (0,)  # everything is rational: any ring of one generator will do
        context = self.ring(len(new))[0]
        one = context.constant(1)
        scale = fmpz(1)
        for d in batch.values():
            scale = scale.lcm(d.q.q)
        nums = [
            (one if d.num is None else self.move(d.num, d.atoms, new)) * (d.q * scale).p
            for d in batch.values()
        ]
        first = next(iter(batch.values()))
        den = (one if first.den is None else self.move(first.den, first.atoms, new)) * scale
        p = context.constant(0)
        for e, part in parts.items():
            if rest:
                factor = self.move(self.ring(len(rest))[0].from_dict(part), rest, new)
            else:
                factor = one * sum(part.values(), fmpz(0))
            factor = factor * den ** (top - sum(e))
            for num, x in zip(nums, e, strict=True):
                factor = factor * num**x if x else factor
            p += factor
        return self.reduce(p, new), new

    def _vanishes_by_exponents(self, p: fmpz_mpoly, atoms: tuple[int, ...]) -> bool:
        """True if p = 0 follows from linear relations between the exponents in it."""
        degrees = p.degrees()
        ks = [k for k, i in enumerate(atoms) if self.atoms[i].kind == "exp" and degrees[k]]
        if len(ks) < 2 or len(ks) > self.limits.terms:
            return False
        exponents: list[Value] = []
        for k in ks:
            argument = self.atoms[atoms[k]].argument
            assert argument is not None
            exponents.append(argument)
        found = [row for row in self._guessed_relations(exponents) if self._holds(row, exponents)]
        if not found:
            return False
        null, _nullity = fmpz_mat(found).nullspace()
        left: dict[object, fmpz] = {}  # monomials that agree on the nullspace are equal
        for m, c in p.terms():
            image = fmpz_mat([[int(m[k]) for k in ks]]) * null
            rest = tuple(int(x) for k, x in enumerate(m) if k not in ks)
            key = rest, tuple(int(x) for x in image.entries())
            left[key] = left.get(key, fmpz(0)) + c
        return not any(left.values())

    def _guessed_relations(self, exponents: list[Value]) -> list[list[fmpz]]:
        before = ctx.prec
        ctx.prec = 512
        try:
            digits: list[fmpz] = []
            for x in exponents:
                ball = self.ball(x, 320) * arb(2) ** 256
                digit = ball.mid().floor().unique_fmpz() if ball.is_finite() else None
                if digit is None or ball.rad() > 1:
                    return []
                digits.append(digit)
        finally:
            ctx.prec = before
        n = len(exponents)
        rows = [[*(fmpz(int(r == c)) for c in range(n)), d] for r, d in enumerate(digits)]
        reduced = fmpz_mat(rows).lll().tolist()
        return [row[:-1] for row in reduced if abs(row[-1]) < 2**32 and max(map(abs, row)) < 2**32]

    def _holds(self, row: list[fmpz], exponents: list[Value]) -> bool:
        v = self.combine([fmpq(c) for c in row], exponents)
        if v.num is None:
            return v.q == 0
        return self.vanishes(v.num, v.atoms)

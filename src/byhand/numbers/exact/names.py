"""Names and their polynomial rings: atoms, letters, merging of names, enclosures.

Polynomials are FLINT's, in rings of so many generators.  The tuple of atoms beside a polynomial
says which atom a generator stands for, the newest first.  A newer atom may satisfy a relation whose
other atoms are all older (s² = 2, sin² = 4 - cos²), so a remainder by it lowers its degree.

Some names are merged when a finer one is met: e^x with e^(x/2), 2cos x with 2cos(x/2).  Values keep
their form; `fine` rewrites them in the finest names, and every operation begins with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from flint import Ordering, arb, ctx, fmpq, fmpz_mpoly, fmpz_mpoly_ctx

from byhand.numbers.enclosed.balls.ranges import power
from byhand.numbers.exact.value import Atom, How, Value

if TYPE_CHECKING:
    from byhand.numbers.exact.space import Space

ONE = fmpq(1)
MINUS_ONE = fmpq(-1)
ZERO = fmpq(0)
HALF = fmpq(1, 2)
CLASSED = ("exp", "cos", "sin", "root")  # found through classes of multiples, not by argument
SAMPLE_BITS = 128
MUCH = 16  # how many times narrower a useful ball is
OVERSIZE = 10**9  # the size of a value whose degrees are over the limit


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits at which a value gets a letter, a proof is given up, and a ball is final."""

    terms: int = 24  # a value of more terms is used as its letter
    work: int = 2000  # products of terms in one operation
    degree: int = 64  # of one atom; FLINT's gcd cannot be interrupted and hangs on huge degrees
    proof: int = 20_000  # products of terms in one proof that a value is zero
    bits: int = 4096  # the precision at which a sign is left undecided


def _within(ball: arb, bound: arb) -> arb:
    """Returns a ball that contains the intersection of both."""
    return ball.intersection(bound) if ball.is_finite() else bound


class Names(ABC):
    """The atoms of one space, and enclosures of polynomials in them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.atoms: list[Atom] = []
        self.table: dict[object, Atom] = {}
        self.order: list[tuple[int, int]] = []  # newer is larger; merged names share the place
        self.finer: dict[int, tuple[tuple[int, ...], fmpz_mpoly]] = {}
        self.epoch = 0  # grows when names are merged
        self._sampling = False  # whether rounded numbers stand for one number of their range
        self._samples: dict[int, arb] = {}
        self._rings: dict[int, tuple[fmpz_mpoly_ctx, tuple[fmpz_mpoly, ...]]] = {}
        self._relations: dict[int, tuple[int, tuple[int, ...], fmpz_mpoly]] = {}

    # ------------------------------------------------------------------- rings

    def ring(self, size: int) -> tuple[fmpz_mpoly_ctx, tuple[fmpz_mpoly, ...]]:
        """The ring of so many generators, and the generators."""
        found = self._rings.get(size)
        if found is None:
            context = fmpz_mpoly_ctx.get(tuple(f"x{i}" for i in range(size)), Ordering.lex)
            found = self._rings[size] = (context, context.gens())
        return found

    def sorted(self, atoms: Iterable[int]) -> tuple[int, ...]:
        """Each atom once, the newest first."""
        return tuple(sorted(set(atoms), key=self.order.__getitem__, reverse=True))

    def move(self, p: fmpz_mpoly, atoms: tuple[int, ...], to: tuple[int, ...]) -> fmpz_mpoly:
        """p, a polynomial in `atoms`, as one in `to`, which holds all atoms that p uses."""
        if atoms == to:
            return p
        where = {a: k for k, a in enumerate(to)}
        return p.project_to_context(
            self.ring(len(to))[0], {k: where[a] for k, a in enumerate(atoms) if a in where}
        )

    # ------------------------------------------------------------------- atoms and letters

    def atom(
        self, kind: str, key: object, argument: Value | None = None, *, place: Atom | None = None
    ) -> Atom:
        """The atom of this kind and key, made where there is none; `place`: merged with that."""
        found = self.table.get((kind, key))
        if found is None:
            found = self.table[kind, key] = Atom(len(self.atoms), kind)
            self.atoms.append(found)
            self.order.append((found.id if place is None else self.order[place.id][0], found.id))
            found.argument = argument
            if argument is not None:
                found.enclosed = any(self.atoms[i].enclosed for i in argument.atoms)
        return found

    def power(self, a: Atom, e: int = 1) -> Value:
        """The e-th power of an atom."""
        context, (x,) = self.ring(1)
        one = context.constant(1)
        size = 2 if abs(e) <= self.limits.degree else OVERSIZE
        high = x if e in (1, -1) else x ** abs(e)
        num, den = (high, one) if e >= 0 else (one, high)
        value = Value(cast("Space", self), ONE, num, den, (a.id,), size)
        if a.degree and e not in (0, 1):
            return self.make(ONE, num, den, (a.id,))
        return value

    def letter(self, v: Value) -> Value:
        """v as a letter from now on (a rational times one atom stays as it is)."""
        if v._letter is None:
            v._letter = v
            if not v.rational and not v.is_name:
                # The letter stands for the first such value and serves its multiples.
                a = self.atom("letter", v.key, v)
                assert a.argument is not None
                unit = a.argument if a.argument.key == v.key else self.fine(a.argument)
                v._letter = self.power(a).times(v.q / unit.q)
        return v._letter

    def under_its_letter(self, v: Value) -> Value:
        """v as the letter that values of its form already have, or v itself."""
        return self.letter(v) if ("letter", v.key) in self.table else v

    def bounded(self, v: Value, ball: arb) -> Value:
        """v, known to lie in this ball too, as a name with this bound."""
        seen = self.letter(v)
        if seen.num is None:
            return v
        a = self.atoms[seen.atoms[0]]
        bound = ball / arb(seen.q)
        a.bound = bound if a.bound is None else _within(bound, a.bound)
        a.ball, a.bits = None, 0
        return seen if v.how is None else seen.made(v.how)

    def says_more(self, ball: arb, v: Value) -> bool:
        """Whether a ball that holds v is so much narrower than its form that a name should replace
        the form, though common parts then no longer cancel."""
        form = self.ball(v, 64)
        return bool(ball.is_finite() and not (form.is_finite() and form.rad() <= MUCH * ball.rad()))

    def use(self, v: Value) -> Value:
        """v as operands are read: itself or its letter, always the same for one value."""
        if v.num is None:
            return v
        if v._letter is None and v.size > self.limits.terms:
            self.letter(v)
        return self.fine(v if v._letter is None else v._letter)

    def refine(self, coarse: Atom, atoms: tuple[int, ...], image: fmpz_mpoly) -> None:
        """Defines `coarse` as this polynomial in finer atoms."""
        context = self.ring
        for a, (old, p) in list(self.finer.items()):
            if coarse.id in old:
                rest = self.sorted([i for i in old if i != coarse.id] + list(atoms))
                to = [
                    self.move(image, atoms, rest)
                    if i == coarse.id
                    else context(len(rest))[1][rest.index(i)]
                    for i in old
                ]
                self.finer[a] = rest, p.compose(*to, ctx=context(len(rest))[0])
        self.finer[coarse.id] = atoms, image
        self.epoch += 1
        self.rename()

    def rename(self) -> None:
        """After a merge, registers atoms under the finer names of their arguments too."""
        for a in list(self.atoms):
            v = a.argument
            if v is None or a.kind in CLASSED or not any(i in self.finer for i in v.atoms):
                continue
            v = self.fine(v)
            key = v.key if a.kind == "letter" else self.argument_key(v)
            self.table.setdefault((a.kind, key), a)

    @staticmethod
    def argument_key(v: Value) -> object:
        """The key of a function of v."""
        return int(v.q.p), int(v.q.q), v.key

    def fine(self, v: Value) -> Value:
        """v in the finest names."""
        if not self.finer or v.num is None or v.den is None:
            return v
        if v._fine is None or v._fine[0] != self.epoch:
            found = v
            if any(i in self.finer for i in v.atoms):
                atoms, num, den = self.refined(v.atoms, v.num, v.den)
                found = self.make(v.q, num, den, atoms, v.how)
            v._fine = self.epoch, found
        return v._fine[1]

    def refined(
        self, atoms: tuple[int, ...], *polynomials: fmpz_mpoly
    ) -> tuple[tuple[int, ...], fmpz_mpoly, fmpz_mpoly]:
        """Two polynomials with the merged atoms replaced by finer ones."""
        used = [self.finer[i][0] if i in self.finer else (i,) for i in atoms]
        new = self.sorted(i for ids in used for i in ids)
        context, gens = self.ring(len(new))
        to = [
            self.move(self.finer[i][1], self.finer[i][0], new)
            if i in self.finer
            else gens[new.index(i)]
            for i in atoms
        ]
        first, second = (p.compose(*to, ctx=context) for p in polynomials)
        return new, first, second

    # ------------------------------------------------------------------- relations

    def relation(self, a: Atom) -> tuple[tuple[int, ...], fmpz_mpoly]:
        """(atoms, p): p is monic in `a`, the newest of these atoms, and p = 0."""
        found = self._relations.get(a.id)
        if found is None or found[0] != self.epoch:
            if a.minimal is not None:
                atoms: tuple[int, ...] = (a.id,)
                _context, (x,) = self.ring(1)
                p = sum((x**k * c for k, c in enumerate(a.minimal.coeffs())), x * 0)
            else:
                assert a.power is not None
                v = self.fine(a.power)
                atoms = self.closure((a.id, *v.atoms))
                context, gens = self.ring(len(atoms))
                lower = context.constant(1) if v.num is None else self.move(v.num, v.atoms, atoms)
                p = gens[atoms.index(a.id)] ** a.degree - lower * v.q.p
            found = self._relations[a.id] = self.epoch, atoms, p
        return found[1], found[2]

    def closure(self, atoms: Iterable[int]) -> tuple[int, ...]:
        """The atoms, and those that appear when relations replace their powers."""
        found: set[int] = set()
        todo = list(atoms)
        while todo:
            i = todo.pop()
            if i not in found:
                found.add(i)
                power = self.atoms[i].power
                if power is not None:
                    todo.extend(self.fine(power).atoms)
        return self.sorted(found)

    # ------------------------------------------------------------------- enclosures

    def ball(self, v: Value, bits: int = 64) -> arb:
        """Returns a ball, computed with `bits` bits, that contains v."""
        if self._sampling:
            return self._form_ball(v, bits)
        if v._bits < bits or v._ball is None:
            v._ball, v._bits = self._form_ball(v, bits), bits
        return v._ball

    def _form_ball(self, v: Value, bits: int) -> arb:
        with ctx.workprec(bits):
            ball = arb(v.q)
            if v.num is not None and v.den is not None:
                ball *= self.polynomial_ball(v.num, v.atoms, bits)
                if not v.den.is_one():
                    ball /= self.polynomial_ball(v.den, v.atoms, bits)
            return ball

    def sample_ball(self, v: Value) -> arb:
        """Returns a ball that contains v for one fixed choice of numbers from the ranges of rounded
        numbers."""
        self._sampling = True
        try:
            return self._form_ball(v, SAMPLE_BITS)
        finally:
            self._sampling = False

    def polynomial_ball(self, p: fmpz_mpoly, atoms: tuple[int, ...], bits: int) -> arb:
        """Returns a ball, computed with `bits` bits, that contains p."""
        before = ctx.prec
        ctx.prec = bits
        try:
            xs = [self.atom_ball(self.atoms[i], bits) for i in atoms]
            total = arb(0)
            for exponents, coefficient in p.terms():
                term = arb(coefficient)
                for x, e in zip(xs, exponents, strict=True):
                    if e:
                        term = term * x if e == 1 else term * power(x, int(e))
                total += term
            return total
        finally:
            ctx.prec = before

    def atom_ball(self, a: Atom, bits: int) -> arb:
        """Returns a ball, computed with `bits` bits, that contains the atom."""
        if self._sampling:
            if a.id not in self._samples:
                self._samples[a.id] = self._evaluate(a, bits)
            return self._samples[a.id]
        if a.bits < bits or a.ball is None:
            before = ctx.prec
            ctx.prec = bits
            try:
                ball = self._evaluate(a, bits)
                a.ball = ball if a.bound is None else _within(ball, a.bound)
            finally:
                ctx.prec = before
            a.bits = bits
        return a.ball

    def _evaluate(self, a: Atom, bits: int) -> arb:
        if a.wide is not None:
            total = arb(0)
            for monomial, coefficient in a.wide.items():
                term = arb(coefficient)
                for i in monomial:
                    term *= self.atom_ball(self.atoms[i], bits)
                total += term
            return total
        if a.kind == "pi":
            return arb.pi()
        if a.turn:
            angle = fmpq(2, a.turn)
            return 2 * (arb.cos_pi_fmpq(angle) if a.kind == "cos" else arb.sin_pi_fmpq(angle))
        assert a.argument is not None
        x = self.ball(a.argument, bits)
        match a.kind:
            case "letter":
                return x
            case "exp":
                return x.exp()
            case "sqrt":
                return x.sqrt()
            case "root":
                return x.root(a.degree)
            case "ln":
                return x.log()
            case "cos":
                return 2 * x.cos()
            case "sin":
                return 2 * x.sin()
            case "tanh":
                return x.tanh()
            case "erf":
                return x.erf()
            case "relu":
                return arb(0) if x <= 0 else x if x >= 0 else arb(0).union(x.upper())
            case "printed" if self._sampling:
                return x + arb(a.radius) * arb(fmpq(a.id * 7919 % 2003 - 1001, 1001))
            case "printed":
                return x + arb(a.radius) * arb(0, 1)
        raise AssertionError(a.kind)

    # ------------------------------------------------------------------- supplied by Field

    @abstractmethod
    def make(
        self,
        q: fmpq,
        n: fmpz_mpoly,
        d: fmpz_mpoly,
        atoms: tuple[int, ...],
        how: How | None = None,
    ) -> Value:
        """The value q · n/d in normal form."""

    def plain(self, q: fmpq, how: How | None = None) -> Value:
        """A rational number."""
        return Value(cast("Space", self), q, how=how)

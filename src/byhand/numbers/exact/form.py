"""The simplified form of a value as an expression tree."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import gcd

from flint import fmpq, fmpz_mpoly

from byhand.expression import (
    Call,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    write,
)
from byhand.numbers.exact.functions import FEW_TERMS, Functions, factored
from byhand.numbers.exact.names import ONE
from byhand.numbers.exact.terms import Factor, Term, positive_first, terms_of, twos
from byhand.numbers.exact.value import Atom, Value

E = Name("e")
FACTORED_TERMS = 16  # a polynomial of more terms is not factored for display


LONGEST_INTEGER = 10**4000  # Python writes integers of up to 4300 digits


def number(q: Fraction | int) -> Expression:
    """A rational number as a tree; integers too long to write are taken apart."""
    q = Fraction(q)
    if q < 0:
        return Negative(number(-q))
    if max(q.numerator, q.denominator) < LONGEST_INTEGER:
        return Number(q)
    if q.denominator != 1:
        return Quotient(number(q.numerator), number(q.denominator))
    half = q.numerator.bit_length() * 3 // 20
    high, low = divmod(q.numerator, 10**half)
    ten = Power(Number(Fraction(10)), Number(Fraction(half)))
    return Sum((Product((number(high), ten)), number(low)))


def product(factors: list[Expression]) -> Expression:
    """The product of some trees; 1 where there are none."""
    if not factors:
        return Number(Fraction(1))
    return factors[0] if len(factors) == 1 else Product(tuple(factors))


class Form:
    """Values as trees; `short` writes what stands inside a function, `letter` a letter's name."""

    def __init__(
        self,
        space: Functions,
        short: Callable[[Value], Expression],
        letter: Callable[[Atom], Expression],
    ) -> None:
        self.space = space
        self.short = short
        self.letter = letter

    def of(self, v: Value) -> Expression:
        """q · num/den, simplified."""
        if v.num is None or v.den is None or v.fraction is not None:
            return number(v.fraction or 0)
        common = v.num.term_content()
        if len(terms_of(self.space, v.num, v.atoms)) < len(v.num):
            common = common * 0 + 1  # sin 3x is not to become sin x · (4·cos² x - 1)
        rest, den = divmod(v.num, common)[0], v.den
        names: list[Factor] = []
        below: list[Factor] = []
        for i, e in zip(v.atoms, common.monomial(0), strict=True):
            lower = self.without_radicand(i, den, v.atoms) if e else None
            if lower is not None:  # √P / P is written 1/√P
                below.append(Factor(i))
                den = lower
            elif e:
                names.append(Factor(i, int(e)))
        top, above = self.sum_factors(rest, v.atoms)
        bottom, under = self.sum_factors(den, v.atoms)
        q = v.fraction_part * above / under
        q *= Fraction(2) ** twos(self.space, names)
        root = self.root_number(names)
        names = [f for f in names if not self.is_number_root(f)]
        low_root = Fraction(1)
        if below and q.denominator % root == 0:  # a number's root goes down with the others
            q, root, low_root = q * root, Fraction(1), root
        if len(top) == 1 and isinstance(top[0], list) and len(top[0]) > 1:
            q, top = self.with_signs_inside(q, top[0], alone=not names and root == 1)
        minus, q = q < 0, abs(q)
        above_line = self.assembled(q.numerator, root, names, top)
        below_line = self.assembled(q.denominator, low_root, below, bottom)
        tree = above_line
        if below_line != Number(Fraction(1)):
            tree = Quotient(above_line, below_line)
        return Negative(tree) if minus else tree

    # ------------------------------------------------------------------- pieces of a fraction

    def with_signs_inside(
        self, q: Fraction, terms: list[Term], *, alone: bool
    ) -> tuple[Fraction, list[list[Term] | Expression]]:
        """-(e - 1) as 1 - e; and a sum that stands alone as 2 + 10e rather than 2(1 + 5e)."""
        if q < 0:
            q, terms = -q, [(-c, factors) for c, factors in terms]
        if alone and q.denominator == 1:
            spread = [(c * q.numerator, factors) for c, factors in terms]
            together = product([number(q), self.sum_of(terms)])
            if len(write(self.sum_of(spread))) < len(write(together)):
                return Fraction(1), [spread]
        return q, [terms]

    def without_radicand(
        self, i: int, den: fmpz_mpoly, atoms: tuple[int, ...]
    ) -> fmpz_mpoly | None:
        """den divided by the radicand of the root i, if that is exact; else None."""
        a = self.space.atoms[i]
        if a.kind != "sqrt" or a.argument is None or a.argument.num is None:
            return None
        radicand = self.space.fine(a.argument)
        if radicand.num is None or radicand.q != 1 or not set(radicand.atoms) <= set(atoms):
            return None
        lower, rest = divmod(den, self.space.move(radicand.num, radicand.atoms, atoms))
        return lower if rest.is_zero() else None

    def sum_factors(
        self, p: fmpz_mpoly, atoms: tuple[int, ...]
    ) -> tuple[list[list[Term] | Expression], Fraction]:
        """(factors, c): p = c · product; factored where that is shorter to write."""
        if p.is_constant():
            return [], Fraction(int(p.leading_coefficient()))
        whole, content = self.without_content(terms_of(self.space, p, atoms))
        if 3 <= len(p) <= FACTORED_TERMS and p.total_degree() <= 16:
            small, strides = p.deflation()  # 1 + e^3 is not to become (1 + e)(1 - e + e^2)
            unit, found = factored(small) or (1, [(small, 1)])
            pieces: list[list[Term] | Expression] = []
            scale = Fraction(int(unit))
            for f, k in found:
                piece, c = self.without_content(terms_of(self.space, f.inflate(strides), atoms))
                scale *= c**k
                tree = self.sum_of(piece)
                pieces.append(Power(tree, number(k)) if k > 1 else tree)
            apart = product(list(map(self.as_tree, pieces)))
            if len(write(apart)) < len(write(self.sum_of(whole))):
                return pieces, scale
        return [whole], content

    @staticmethod
    def without_content(terms: list[Term]) -> tuple[list[Term], Fraction]:
        """The terms divided by what their coefficients have in common, and that number."""
        content = gcd(*(c for c, _factors in terms))
        if len(terms) == 1:
            content = terms[0][0]
        return [(c // content, factors) for c, factors in terms], Fraction(content)

    def as_tree(self, piece: list[Term] | Expression) -> Expression:
        """A list of terms as their sum; a tree as it is."""
        return self.sum_of(piece) if isinstance(piece, list) else piece

    def assembled(
        self,
        c: int,
        root: Fraction,
        names: list[Factor],
        sums: list[list[Term] | Expression],
    ) -> Expression:
        """c · √root · names · sums."""
        factors: list[Expression] = [] if c == 1 else [number(c)]
        if root != 1:
            factors.append(self.root_of(root))
        factors += self.named(tuple(names))
        return product(factors + [self.as_tree(piece) for piece in sums])

    # ------------------------------------------------------------------- terms

    def sum_of(self, terms: list[Term]) -> Expression:
        """The sum of some terms, a positive one first."""
        trees = [self.term(c, factors) for c, factors in positive_first(terms)]
        return trees[0] if len(trees) == 1 else Sum(tuple(trees))

    def term(self, c: int, factors: tuple[Factor, ...]) -> Expression:
        """A coefficient times its factors; roots of numbers become one root."""
        root = self.root_number(factors)
        named = self.named(tuple(f for f in factors if not self.is_number_root(f)))
        pieces = [self.root_of(root), *named] if root != 1 else named
        size = [number(abs(c))] if abs(c) != 1 or not pieces else []
        tree = product([*size, *pieces])
        return Negative(tree) if c < 0 else tree

    def is_number_root(self, f: Factor) -> bool:
        """Whether a factor is the root of a rational number."""
        a = self.space.atoms[f.atom]
        return a.kind == "sqrt" and a.argument is not None and a.argument.num is None

    def root_number(self, factors: list[Factor] | tuple[Factor, ...]) -> Fraction:
        """√2 · √3 is written √6."""
        found = Fraction(1)
        for f in factors:
            argument = self.space.atoms[f.atom].argument
            if self.is_number_root(f) and argument is not None and argument.fraction is not None:
                found *= argument.fraction
        return found

    def root_of(self, n: Fraction) -> Expression:
        """√n."""
        return Call("sqrt", self.short(self.space.value(n)))

    def named(self, factors: tuple[Factor, ...]) -> list[Expression]:
        """The factors as trees, older names first; exponentials in one where that is short."""
        exponentials = [f for f in factors if self.space.atoms[f.atom].kind == "exp"]
        others = [f for f in reversed(factors) if self.space.atoms[f.atom].kind != "exp"]
        trees = [self.factor(f) for f in others]
        joined = self.joined_exponent(exponentials)
        if joined is not None:
            return [*trees, joined]
        return [*(self.factor(f) for f in reversed(exponentials)), *trees]

    def joined_exponent(self, factors: list[Factor]) -> Expression | None:
        """e · e^√2 is written e^(1 + √2); None where it was not one exponent to begin with."""
        arguments: list[Value] = []
        for f in factors:
            argument = self.space.atoms[f.atom].argument
            assert argument is not None
            arguments.append(self.space.fine(argument).times(fmpq(f.power)))
        if not 2 <= len(arguments) <= FEW_TERMS:
            return None
        if any(x.num is not None and (len(x.num) > 1 or x.size > 2) for x in arguments):
            return None
        limit = self.space.limits.degree
        if any(abs(x.q.p) > limit or x.q.q > limit for x in arguments):
            return None
        exponent = self.space.combine([ONE] * len(arguments), arguments)
        return Power(E, self.short(exponent))

    def factor(self, f: Factor) -> Expression:
        """One factor, to its power."""
        a = self.space.atoms[f.atom]
        if f.number is not None:
            return Call("ln", number(f.number))
        if a.kind == "letter" or a.kind == "printed":
            tree = self.letter(a)
        elif a.kind == "pi":
            tree = Name("pi")
        else:
            assert a.argument is not None
            if a.kind == "exp":
                exponent = self.short(a.argument.times(fmpq(f.power)))
                return E if exponent == Number(Fraction(1)) else Power(E, exponent)
            if a.kind == "root":
                return Power(self.short(a.argument), Number(Fraction(f.power, a.degree)))
            argument = a.argument.times(fmpq(f.multiple)) if f.multiple else a.argument
            tree = Call(a.kind, self.short(argument))
        return tree if f.power == 1 else Power(tree, number(f.power))

"""The terms of a polynomial for display: coefficients and factors, rewritten for people.

Twice-cosines become cosines, products of them multiple angles where that is shorter; logarithms of
integers are put together, so ln 2 + ln 5 shows as ln 10.  Every rewriting is an identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb, gcd

from flint import fmpz_mpoly

from byhand.numbers.exact.names import Names

LARGEST_LOGARITHM = 10**12  # of a number put together inside one ln


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of a term: an atom to a power, or a multiple angle, or the ln of a rational."""

    atom: int
    power: int = 1
    multiple: int = 0  # where not 0: the function (cos or sin) of so many times the atom's angle
    number: Fraction | None = None  # ln of this number


Term = tuple[int, tuple[Factor, ...]]


def terms_of(space: Names, p: fmpz_mpoly, atoms: tuple[int, ...]) -> list[Term]:
    """The terms of p, low degrees first."""
    plain = sorted(
        ((tuple(int(e) for e in m), int(c)) for m, c in p.terms()),
        key=lambda term: (sum(term[0]), [-e for e in reversed(term[0])]),
    )
    monomials = [
        (c, tuple(Factor(i, e) for i, e in zip(atoms, m, strict=True) if e)) for m, c in plain
    ]
    if any(space.atoms[i].kind in ("cos", "sin") for i in atoms):
        monomials = angles_shown(space, monomials)
    if sum(space.atoms[i].kind == "ln" for i in atoms) > 1:
        monomials = logarithms_joined(space, monomials)
    return monomials


def positive_first(terms: list[Term]) -> list[Term]:
    """1 - e rather than -e + 1, and e - 1 rather than -1 + e."""
    if terms[0][0] > 0:
        return terms
    if terms[-1][0] > 0:
        return terms[::-1]
    first = next((k for k, (c, _factors) in enumerate(terms) if c > 0), 0)
    return [terms[first], *terms[:first], *terms[first + 1 :]]


# ------------------------------------------------------------------------------------- angles


def angles_shown(space: Names, terms: list[Term]) -> list[Term]:
    """The terms with cosines instead of twice-cosines, as powers or multiple angles if shorter."""
    powers = [(c * 2 ** twos(space, factors), factors) for c, factors in terms]
    linear = multiple_angles(space, terms)
    return linear if len(linear) < len(powers) else powers


def twos(space: Names, factors: Sequence[Factor]) -> int:
    """The number of twice-cosines and twice-sines among the factors."""
    return sum(f.power for f in factors if space.atoms[f.atom].kind in ("cos", "sin"))


def multiple_angles(space: Names, terms: list[Term]) -> list[Term]:
    """Every product of powers of one angle's cosine and sine as a sum of multiple angles."""
    for a in {f.atom for _c, factors in terms for f in factors}:
        atom = space.atoms[a]
        if atom.kind in ("cos", "sin") and atom.argument is not None:
            terms = in_multiples_of(space, terms, angle_key(space, a))
    return [(c * 2 ** sum(1 for f in factors if f.multiple), factors) for c, factors in terms]


def angle_key(space: Names, a: int) -> object:
    """A key of the angle: equal for the names of one angle, and only for those."""
    argument = space.atoms[a].argument
    assert argument is not None
    return argument.key, argument.q.p, argument.q.q


def in_multiples_of(space: Names, terms: list[Term], angle: object) -> list[Term]:
    """The terms with the powers of one angle's functions as multiples of that angle."""
    found: dict[tuple[Factor, ...], int] = {}
    for c, factors in terms:
        cosines = sines = 0
        atom = -1
        rest = []
        for f in factors:
            kind = space.atoms[f.atom].kind
            own = kind in ("cos", "sin") and not f.multiple and angle_key(space, f.atom) == angle
            if own:
                atom = f.atom
                cosines, sines = (f.power, sines) if kind == "cos" else (cosines, f.power)
            else:
                rest.append(f)
        for k, n in expanded(cosines, sines).items():
            kind = "sin" if sines else "cos"
            name = atom if k == 0 or space.atoms[atom].kind == kind else partner(space, atom, kind)
            key = (*rest, Factor(name, 1, k)) if k else tuple(rest)
            found[key] = found.get(key, 0) + c * n
    return [(c, factors) for factors, c in found.items() if c]


def partner(space: Names, atom: int, kind: str) -> int:
    """The atom of the other function of the same angle."""
    angle = angle_key(space, atom)
    return next(
        a.id
        for a in space.atoms
        if a.kind == kind and a.argument is not None and angle_key(space, a.id) == angle
    )


def expanded(cosines: int, sines: int) -> dict[int, int]:
    """c^cosines · s^sines (sines 0 or 1) as {k: n}, the sum of n · 2cos kx, or of n · 2sin kx.

    The key 0 stands for the number 1.
    """
    even: dict[int, int] = {}
    for j in range(cosines + 1):
        k = cosines - 2 * j
        if k >= 0:
            even[k] = even.get(k, 0) + comb(cosines, j)
    if not sines:
        return even
    odd: dict[int, int] = {}
    for k, n in even.items():  # 2sin x · 2cos kx = 2sin (k+1)x - 2sin (k-1)x
        odd[k + 1] = odd.get(k + 1, 0) + n
        if k > 1:
            odd[k - 1] = odd.get(k - 1, 0) - n
    return {k: n for k, n in odd.items() if n}


# ------------------------------------------------------------------------------------- logarithms


def logarithms_joined(space: Names, terms: list[Term]) -> list[Term]:
    """a·ln 2 + b·ln 5, times the same factors, as g·ln(2^(a/g)·5^(b/g))."""
    groups: dict[tuple[Factor, ...], list[tuple[int, int]]] = {}
    for c, factors in terms:
        logs = [f for f in factors if is_integer_logarithm(space, f)]
        if len(logs) == 1 and logs[0].power == 1:
            rest = tuple(f for f in factors if f is not logs[0])
            groups.setdefault(rest, []).append((c, logs[0].atom))
        else:
            groups.setdefault(factors, []).append((c, -1))
    result: list[Term] = []
    for rest, group in groups.items():
        result += [(c, rest) for c, a in group if a < 0]
        logs_here = [(c, a) for c, a in group if a >= 0]
        result += joined(space, rest, logs_here)
    return result


def is_integer_logarithm(space: Names, f: Factor) -> bool:
    """Whether a factor is the logarithm of an integer."""
    atom = space.atoms[f.atom]
    return atom.kind == "ln" and atom.argument is not None and atom.argument.num is None


def joined(space: Names, rest: tuple[Factor, ...], group: list[tuple[int, int]]) -> list[Term]:
    """The logarithms of a group as one, or apart where that number would be too large."""
    apart = [(c, (*rest, Factor(a))) for c, a in group]
    if len(group) < 2:
        return apart
    share = gcd(*(c for c, _a in group))
    number = Fraction(1)
    for c, a in group:
        argument = space.atoms[a].argument
        assert argument is not None
        assert argument.fraction is not None
        if abs(c // share) > 40:
            return apart
        number *= argument.fraction ** (c // share)
    if number < 1:
        number, share = 1 / number, -share
    if max(number.numerator, number.denominator) > LARGEST_LOGARITHM:
        return apart
    return [(share, (*rest, Factor(group[0][1], 1, number=number)))]

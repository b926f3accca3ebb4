"""Arithmetic slips in one line: a term left out, another sign, a sum in place of a product.

`byhand.checking` finds mistakes about the model; these are slips in the arithmetic of one line.
Floats suffice, since a slip is a likely explanation, not a proof.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from byhand.address import write_index
from byhand.expression import Entry, Expression, leaves
from byhand.expression.trees import Call, Name, Negative, Number, Power, Product, Quotient, Sum
from byhand.language import _

LEAST_DECIMALS = 2  # least decimals assumed of an answer, so that no slip fits by chance
GIVEN = 5e-5  # rounding of the numbers that the person was given
MOST_SLIPS = 200

Values = Callable[[Entry], float]


@dataclass(frozen=True)
class Slip:
    """A line with a mistake in it, and the mistake in words."""

    tree: Expression
    sentence: str


def slip_of(tree: Expression, values: Values, said: str) -> str | None:
    """The slip that gives this number, in words; None if there is none, or several."""
    claimed = _value(said)
    right = evaluated(tree, values)
    if claimed is None or right is None:
        return None
    found: dict[str, None] = {}
    for count, slip in enumerate(_slips(tree)):
        if count >= MOST_SLIPS:
            return None
        made = evaluated(slip.tree, values)
        room = _room(tree, values, said)
        if made is not None and abs(made - claimed) <= room < abs(made - right):
            found[slip.sentence] = None
    return next(iter(found)) if len(found) == 1 else None


def evaluated(tree: Expression, values: Values) -> float | None:
    """A float near a tree's value; None if it has none."""
    try:
        value = _evaluate(tree, values)
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _evaluate(tree: Expression, values: Values) -> float:
    match tree:
        case Number(value):
            return float(value)
        case Name(text):
            return {"e": math.e, "pi": math.pi}[text]
        case Entry():
            return values(tree)
        case Negative(of):
            return -_evaluate(of, values)
        case Sum(terms):
            return math.fsum(_evaluate(term, values) for term in terms)
        case Product(factors):
            return math.prod(_evaluate(factor, values) for factor in factors)
        case Quotient(top, bottom):
            return _evaluate(top, values) / _evaluate(bottom, values)
        case Power(base, exponent):
            return math.pow(_evaluate(base, values), _evaluate(exponent, values))
        case Call(function, argument):
            known: dict[str, Callable[[float], float]] = {"sqrt": math.sqrt, "exp": math.exp}
            if function in known:
                return known[function](_evaluate(argument, values))
    raise ValueError(type(tree).__name__)


def _slips(tree: Expression) -> Iterator[Slip]:
    """Every variant of the line with one slip, anywhere in the tree."""
    match tree:
        case Sum(terms):
            for at, term in enumerate(terms):
                for inner in _slips(term):
                    yield Slip(_with(tree, at, inner.tree), inner.sentence)
                if len(terms) < 2:
                    continue
                rest = Sum((*terms[:at], *terms[at + 1 :]))
                said = _said(term)
                yield Slip(rest, _("it follows if {term} is left out").format(term=said))
                sign = _("it follows if {term} has the other sign").format(term=said)
                yield Slip(_with(tree, at, Negative(term)), sign)
        case Product(factors) if len(factors) == 2:
            sentence = _("it follows if the two numbers of {term} are added, not multiplied")
            yield Slip(Sum(factors), sentence.format(term=_said(tree)))
        case Quotient(top, bottom):
            for inner in _slips(top):
                yield Slip(replace(tree, top=inner.tree), inner.sentence)
            yield Slip(top, _("it follows without the division"))
            yield Slip(Product((top, bottom)), _("it follows if it is multiplied, not divided"))
        case Negative(of):
            yield Slip(of, _("it follows with the other sign"))


def _with(tree: Sum, at: int, term: Expression) -> Sum:
    return Sum((*tree.terms[:at], term, *tree.terms[at + 1 :]))


def _said(term: Expression) -> str:
    """A term, named by the addresses in it."""
    found = [leaf for leaf in leaves(term) if isinstance(leaf, Entry)]
    return " · ".join(f"`{leaf.address}{write_index(leaf.index)}`" for leaf in found)


def _value(said: str) -> float | None:
    match = re.fullmatch(r"~?([-+]?\d*\.?\d+)(?:/(\d+))?", said.replace(" ", ""))
    if match is None or (match[2] is not None and int(match[2]) == 0):
        return None
    return float(match[1]) / int(match[2] or 1)


def _room(tree: Expression, values: Values, said: str) -> float:
    """The allowed error of an answer: its own rounding, and that of the given numbers."""
    decimals = len(said.partition(".")[2])
    sizes = [abs(values(leaf)) for leaf in leaves(tree) if isinstance(leaf, Entry)]
    given = GIVEN * len(sizes) * max([1.0, *sizes])
    return float(0.5 * 10.0 ** -max(decimals, LEAST_DECIMALS) + given)

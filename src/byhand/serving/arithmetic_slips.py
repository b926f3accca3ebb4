"""Arithmetic slips in one line: a term left out, another sign, a sum in place of a product.

`byhand.checking` finds mistakes about the model; these are slips in the arithmetic of one line.
Floats suffice, since a slip is a likely explanation, not a proof.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from byhand.address import write_index
from byhand.expression import Entry, Expression, leaves
from byhand.expression.trees import Call, Name, Negative, Number, Power, Product, Quotient, Sum
from byhand.language import _

LEAST_DECIMALS = 3  # of an answer that may be rounded; with fewer, a slip would fit by chance
HALF = 0.5001  # of the last decimal, and what floats add to it
EXACTLY = 1e-9
MOST_SLIPS = 200

Values = Callable[[Entry], float]


@dataclass(frozen=True)
class Slip:
    """A line with a mistake in it, and the mistake in words."""

    tree: Expression
    sentence: str
    whole: bool = False


@dataclass(frozen=True)
class Made:
    """A slip that makes an answer.  `whole` is one of the whole line, not of one term in it."""

    sentence: str
    whole: bool


def slips_of(tree: Expression, ways: Sequence[Values], said: str) -> list[Made]:
    """Every slip that makes this number to the last decimal written, each once.

    `ways` are the numbers that a person may have worked with: the true ones, and the rounded ones
    that were shown.  Of an answer with few decimals, only a slip that makes it exactly counts.
    """
    claimed, room = _value(said), _room(said)
    if claimed is None:
        return []
    found: dict[str, Made] = {}
    for values in ways:
        right = evaluated(tree, values)
        for slip in islice(_slips(tree), MOST_SLIPS):
            made = evaluated(slip.tree, values)
            if made is None or right is None:
                continue
            if abs(made - claimed) <= room < abs(made - right):
                found[slip.sentence] = Made(slip.sentence, slip.whole)
    return list(found.values())


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
                    whole = inner.whole and len(terms) == 1
                    yield Slip(_with(tree, at, inner.tree), inner.sentence, whole)
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
            yield Slip(top, _("it follows without the division"), True)
            multiplied = _("it follows if it is multiplied, not divided")
            yield Slip(Product((top, bottom)), multiplied, True)
        case Negative(of):
            yield Slip(of, _("it follows with the other sign"), True)


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


def _room(said: str) -> float:
    """How far an answer may be from what makes it: half its last decimal, if it has enough."""
    decimals = len(said.partition(".")[2])
    return HALF * 10.0**-decimals if decimals >= LEAST_DECIMALS else EXACTLY

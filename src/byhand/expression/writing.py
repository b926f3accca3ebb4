"""Tree → text, which reads back to a tree of the same value."""

from __future__ import annotations

from fractions import Fraction

from byhand.expression.trees import (
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)

_PIECE_DIGITS = 3_900
_PIECE = 10**_PIECE_DIGITS
_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly a text binds


def write(tree: Expression) -> str:
    """The tree as text, which `parse` reads back to a tree of the same value.

    Any tree can be written; `parse` has bounds on length and depth that a huge one may exceed.
    """
    return _write(tree)[0]


def _write(tree: Expression) -> tuple[str, int]:
    match tree:
        case Number(value=v):
            if v < 0:
                return "-" + _at_least(Number(-v), _PRODUCT), _SUM
            if v.denominator == 1:
                return _write_whole(v.numerator)
            p, q = Number(Fraction(v.numerator)), Number(Fraction(v.denominator))
            return f"{_at_least(p, _PRODUCT)}/{_at_least(q, _POWER)}", _PRODUCT
        case Name(text="pi"):
            return "π", _ATOM
        case Name(text=text):
            return text, _ATOM
        case Entry(address=address, index=index):
            return f"{address}[{','.join(map(str, index))}]", _ATOM
        case Negative(of=x):
            return "-" + _at_least(x, _PRODUCT), _SUM
        case Sum(terms=()):
            return "0", _ATOM
        case Product(factors=()):
            return "1", _ATOM
        case Sum(terms=(only,)) | Product(factors=(only,)):
            return _write(only)
        case Sum(terms=terms):
            return _write_sum(terms), _SUM
        case Product(factors=factors):
            return _write_product(factors), _PRODUCT
        case Quotient(top=a, bottom=b):
            top = f"({write(a)})" if _is_fraction(a) else _at_least(a, _PRODUCT)
            return f"{top}/{_at_least(b, _POWER)}", _PRODUCT
        case Power(base=a, exponent=b):
            return f"{_at_least(a, _ATOM)}^{_at_least(b, _ATOM)}", _POWER
        case Call(function="sqrt", argument=x):
            inner, strength = _write(x)
            plain = strength == _ATOM and isinstance(x, Number | Name)
            return f"√{inner}" if plain else f"√({inner})", _ATOM
        case Call(function=f, argument=x):
            return f"{f}({write(x)})", _ATOM


def _write_whole(n: int) -> tuple[str, int]:
    """The digits and how tightly they bind; in pieces beyond Python's limit of digits."""
    if n.bit_length() < 13_000:
        return str(n), _ATOM
    high, low = divmod(n, _PIECE)
    return f"{_at_least(Number(Fraction(high)), _PRODUCT)}·10^{_PIECE_DIGITS} + {low}", _SUM


def _is_fraction(tree: Expression) -> bool:
    """Whether a tree gets brackets as a numerator for clarity: (3/2)/(1/2), but 1/2/3/4/5."""
    match tree:
        case Number(value=v):
            return v.denominator != 1
        case Quotient(top=a):
            return not isinstance(a, Quotient)
        case _:
            return False


def _at_least(tree: Expression, strength: int) -> str:
    text, own = _write(tree)
    return text if own >= strength else f"({text})"


def _write_sum(terms: tuple[Expression, ...]) -> str:
    text = ""
    for term in terms:
        match term:
            case Negative(of=x):
                text += (" - " if text else "-") + _at_least(x, _PRODUCT)
            case Number(value=v) if v < 0:
                text += (" - " if text else "-") + _at_least(Number(-v), _PRODUCT)
            case _:
                text += (" + " if text else "") + _at_least(term, _PRODUCT)
    return text


def _write_product(factors: tuple[Expression, ...]) -> str:
    """Factors joined by ·, but 2e, 2√3 and 2(1 + e) as people write them."""
    text = ""
    for position, factor in enumerate(factors):
        # A quotient inside a product is bracketed unless it leads: a·(b/c), but (b/c)·a is b/c·a.
        quotient = isinstance(factor, Quotient) or (
            isinstance(factor, Number) and factor.value.denominator != 1
        )
        piece, own = _write(factor)
        if own < _PRODUCT or (quotient and position > 0):
            piece = f"({piece})"
        lead = factors[0]
        whole_lead = isinstance(lead, Number) and lead.value.denominator == 1 and lead.value >= 0
        bare = position == 1 and whole_lead and (piece[0] in "(√" or _is_e(factor))
        text += piece if position == 0 or bare else "·" + piece
    return text


def _is_e(tree: Expression) -> bool:
    return tree == Name("e") or (isinstance(tree, Power) and tree.base == Name("e"))

"""Expression trees → formulas of Typst: the twin of `html.mathml`, for paper.

Names and numerals stand in strings, so no name is ever read as a symbol of Typst.  A fraction
whose parts are long is written with a slash, since a line can be broken there and a fraction
cannot.  Nothing is computed and nothing is simplified.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from byhand.expression import (
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
    write,
)
from byhand.publishing.numerals import in_full
from byhand.publishing.typst.quoting import call, string

LONGEST_FRACTION = 56  # signs above or below a fraction line
_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly a drawn piece holds together
_NUMERAL = re.compile(r"[0-9]+(\.[0-9]+)?")
_SCIENTIFIC = re.compile(r"([0-9]+(?:\.[0-9]+)?)e([+-]?[0-9]+)")
_DECIMAL_POINT = re.compile(r"(?<=[0-9])\.(?=[0-9])")
_GREEK = {"pi": "π", "gamma": "γ", "beta": "β", "mu": "μ", "sigma": "σ", "eps": "ε"}
TIMES = "⋅"

Drawn = tuple[str, int]


class TypstMaths:
    """Draws trees with the decimal sign of a language.

    With `finite`, a fraction that a short decimal says in full is drawn as that: 0.3 for 3/10.
    """

    def __init__(self, point: str = ".", *, finite: bool = False) -> None:
        self.point = point
        self.finite = finite

    def formula(self, *sides: Expression | str) -> str:
        """One formula as a value of Typst; strings among the sides are the signs between them."""
        drawn = [side if isinstance(side, str) else self.draw(side) for side in sides]
        told = " ".join(side if isinstance(side, str) else write(side) for side in sides)
        return self.line(drawn, told)

    def line(self, pieces: Sequence[str], told: str) -> str:
        """Pieces that are drawn already; `told` is for those who hear the page."""
        heard = _DECIMAL_POINT.sub(self.point, told)
        return call("formula", f"${''.join(pieces)}$", string(heard))

    def draw(self, tree: Expression) -> str:
        """The tree as Typst's mathematics, without the signs around it."""
        return self._draw(tree)[0]

    def numeral(self, text: str) -> str:
        """A decimal numeral: its sign apart, its point as the language writes it."""
        negative, digits = text.startswith(("-", "−")), text.lstrip("-−")
        if match := _SCIENTIFIC.fullmatch(digits):
            power = self.numeral(str(int(match[2])))
            body = f"{self.numeral(match[1])}{TIMES}{string('10')}^({power})"
        else:
            body = string(digits.replace(".", self.point))
        return "-" + body if negative else body

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        """A matrix (or a row of one) in brackets, its entries drawn already."""
        return f"mat({';'.join(','.join(row) for row in rows)})"

    # ------------------------------------------------------------------ a tree

    def _draw(self, tree: Expression) -> Drawn:
        match tree:
            case Number(value=value):
                return self._number(value)
            case Name(text=text):
                return self._name(text)
            case Entry():
                return self._entry(tree), _ATOM
            case Negative(of=x):
                return "-" + self._at_least(x, _PRODUCT), _SUM
            case Sum(terms=()):
                return string("0"), _ATOM
            case Product(factors=()):
                return string("1"), _ATOM
            case Sum(terms=(only,)) | Product(factors=(only,)):
                return self._draw(only)
            case Sum(terms=terms):
                return self._sum(terms), _SUM
            case Product(factors=factors):
                return self._product(factors), _PRODUCT
            case Quotient(top=a, bottom=b):
                return self._quotient(a, b), _PRODUCT
            case Power(base=a, exponent=b):
                return f"{self._at_least(a, _ATOM)}^({self._in_line(b)})", _POWER
            case Call(function="sqrt", argument=x):
                return self._root(x)
            case Call(function="Σ", argument=x):
                return f"sum{self._spaced(self._at_least(x, _PRODUCT))}", _PRODUCT
            case Call(function="abs", argument=x):
                return f"abs({self.draw(x)})", _ATOM
            case Call(function=f, argument=x):
                return f"op({string(f)})({self.draw(x)})", _ATOM

    def _number(self, value: Fraction) -> Drawn:
        if value < 0:
            return "-" + self._number(-value)[0], _SUM
        if value.denominator == 1:
            return string(str(value.numerator)), _ATOM
        if self.finite and (text := in_full(value)):
            return self.numeral(text), _ATOM
        top, bottom = str(value.numerator), str(value.denominator)
        if max(len(top), len(bottom)) > LONGEST_FRACTION:
            return f"{_broken(top)}\\/{_broken(bottom)}", _PRODUCT
        return f"frac({string(top)},{string(bottom)})", _PRODUCT

    def _quotient(self, top: Expression, bottom: Expression) -> str:
        if max(_signs(top), _signs(bottom)) > LONGEST_FRACTION:
            return f"{self._at_least(top, _PRODUCT)}\\/{self._at_least(bottom, _POWER)}"
        return f"frac({self.draw(top)},{self.draw(bottom)})"

    def _root(self, inside: Expression) -> Drawn:
        """A root; one that a line cannot hold is a power, which can be broken."""
        if _signs(inside) > 2 * LONGEST_FRACTION:
            return f"({self.draw(inside)})^({string('1')}\\/{string('2')})", _POWER
        return f"sqrt({self.draw(inside)})", _ATOM

    def _name(self, text: str) -> Drawn:
        if _NUMERAL.fullmatch(text):
            return self.numeral(text), _ATOM
        if _SCIENTIFIC.fullmatch(text):
            return self.numeral(text), _PRODUCT
        if text in ("…", "·", ""):
            return string(text), _ATOM
        return identifier(text), _ATOM

    def _entry(self, entry: Entry) -> str:
        """q[0,1] as q with its index below; of W_q[0,1] W, and below it q and 0,1."""
        if not entry.index:
            return identifier(entry.address)
        index = string(",".join(map(str, entry.index)))
        head, _bar, below = entry.address.partition("_")
        if not head or not below:
            return f"{identifier(entry.address)}_{index}"
        return f"{identifier(head)}_({_letter(below)}thin{index})"

    def _in_line(self, tree: Expression) -> str:
        """An exponent: a plain fraction in it is written with a slash, a tower would be tiny."""
        match tree:
            case Number(value=value) if value.denominator != 1 and not self.finite:
                sign = "-" if value < 0 else ""
                top, bottom = string(str(abs(value.numerator))), string(str(value.denominator))
                return f"{sign}{top}\\/{bottom}"
            case Negative(of=Number() | Quotient() as inner):
                return "-" + self._in_line(inner)
            case Quotient(top=Number(value=a), bottom=Number(value=b)) if (
                a >= 0 and a.denominator == b.denominator == 1
            ):
                return f"{string(str(a))}\\/{string(str(b))}"
            case _:
                return self.draw(tree)

    def _sum(self, terms: Sequence[Expression]) -> str:
        drawn = ""
        for term in terms:
            sign = "+" if drawn else ""
            match term:
                case Negative(of=x):
                    sign, term = "-", x
                case Number(value=value) if value < 0:
                    sign, term = "-", Number(-value)
            drawn += sign + self._at_least(term, _PRODUCT)
        return drawn

    def _product(self, factors: Sequence[Expression]) -> str:
        """Factors with a dot between, but 2e, 2√3 and 2(1 + e) as people write them."""
        drawn = ""
        lead = factors[0]
        whole_lead = isinstance(lead, Number) and lead.value.denominator == 1 and lead.value >= 0
        for place, factor in enumerate(factors):
            piece = self._at_least(factor, _PRODUCT)
            bare = place == 1 and whole_lead and _may_follow_a_number(factor)
            drawn += ("" if place == 0 or bare else TIMES) + piece
        return drawn

    def _at_least(self, tree: Expression, strength: int) -> str:
        drawn, own = self._draw(tree)
        return drawn if own >= strength else f"({drawn})"

    @staticmethod
    def _spaced(drawn: str) -> str:
        """Behind a word of Typst a letter needs a gap, which is not drawn."""
        return f" {drawn}"


# ------------------------------------------------------------------ small pieces


def identifier(text: str) -> str:
    """A name: a letter slanted, a word upright; what follows an underscore or a letter's number
    stands below."""
    if text.endswith("ᵀ") and len(text) > 1:
        return f"{identifier(text[:-1])}^{string('T')}"
    head, _bar, below = text.partition("_")
    if not below and (match := re.fullmatch(r"([A-Za-zα-ωΑ-Ω])([0-9]+)", text)):
        head, below = match[1], match[2]
    if below and head:
        return f"{identifier(head)}_({_letter(below)})"
    return _letter(_GREEK.get(text, text))


def _letter(text: str) -> str:
    """A letter slanted, anything else upright as it is."""
    single = len(text) == 1 and text.isalpha()
    return f"italic({string(text)})" if single else string(text)


def _broken(digits: str) -> str:
    """A long whole number with places where a line may end."""
    return string("\u200b".join(digits[k : k + 10] for k in range(0, len(digits), 10)))


def _signs(tree: Expression) -> int:
    """About how many signs stand side by side when a tree is drawn."""
    match tree:
        case Quotient(top=a, bottom=b):
            return max(_signs(a), _signs(b))
        case Sum(terms=parts) | Product(factors=parts):
            return sum(map(_signs, parts)) + 3 * (len(parts) - 1)
        case Negative(of=x):
            return _signs(x) + 1
        case Power(base=a, exponent=b):
            return _signs(a) + _signs(b)
        case Call(function=f, argument=x):
            return _signs(x) + (2 if f == "sqrt" else len(f) + 2)
        case Number(value=value):
            return max(len(str(value.numerator)), len(str(value.denominator)))
        case _:
            return len(write(tree))


def _may_follow_a_number(tree: Expression) -> bool:
    match tree:
        case Call(function="sqrt") | Sum(terms=(_, _, *_)) | Name(text="e" | "pi"):
            return True
        case Power(base=Name(text="e")):
            return True
        case _:
            return False

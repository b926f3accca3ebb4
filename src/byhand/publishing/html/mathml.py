"""Expression trees → MathML Core, which browsers draw themselves.

What a bracket holds together in text, a fraction line or a root holds together here; so brackets
stand only where the drawing needs them.  Nothing is computed and nothing is simplified.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from html import escape

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

MOST_DECIMALS = 6  # of a fraction drawn as a decimal
_SUM, _PRODUCT, _POWER, _ATOM = range(4)  # how tightly a drawn piece holds together
_NUMERAL = re.compile(r"[0-9]+(\.[0-9]+)?")
_SCIENTIFIC = re.compile(r"([0-9]+(?:\.[0-9]+)?)e([+-]?[0-9]+)")
_GREEK = {"pi": "π", "gamma": "γ", "beta": "β", "mu": "μ", "sigma": "σ", "eps": "ε"}
TIMES, NOTHING, APPLY = "<mo>⋅</mo>", "<mo>&#x2062;</mo>", "<mo>&#x2061;</mo>"
MINUS = '<mo form="prefix">−</mo>'

Drawn = tuple[str, int]


class Mathml:
    """Draws trees with the decimal sign of a language.

    With `finite`, a fraction that a short decimal says in full is drawn as that: 0.3 for 3/10.
    With `annotated`, formulas carry their text form too, which `expression.parse` reads back: it
    is what a copied formula is, and what a test compares.
    """

    def __init__(self, point: str = ".", *, finite: bool = False, annotated: bool = False) -> None:
        self.point = point
        self.finite = finite
        self.annotated = annotated

    def formula(self, *sides: Expression | str, display: bool = False) -> str:
        """One formula; strings among the sides are names, or the signs between them (=, ≈, →)."""
        drawn = "".join(_sign(side) if isinstance(side, str) else self.draw(side) for side in sides)
        if self.annotated:
            text = " ".join(side if isinstance(side, str) else write(side) for side in sides)
            note = f'<annotation encoding="text/plain">{escape(text)}</annotation>'
            drawn = f"<semantics><mrow>{drawn}</mrow>{note}</semantics>"
        block = ' display="block"' if display else ""
        return f"<math{block}>{drawn}</math>"

    def draw(self, tree: Expression) -> str:
        """The tree as MathML, without the element around it."""
        return self._draw(tree)[0]

    def numeral(self, text: str) -> str:
        """A decimal numeral: its sign apart, its point as the language writes it."""
        negative, digits = text.startswith(("-", "−")), text.lstrip("-−")
        if match := _SCIENTIFIC.fullmatch(digits):
            power = self.numeral(str(int(match[2])))
            body = f"{self.numeral(match[1])}{TIMES}<msup><mn>10</mn>{_row(power)}</msup>"
        else:
            body = f"<mn>{escape(digits.replace('.', self.point))}</mn>"
        return MINUS + body if negative else body

    def matrix(self, rows: Sequence[Sequence[Expression]]) -> str:
        """A matrix (or a row of one) in brackets."""
        lines = "".join(
            f"<mtr>{''.join(f'<mtd>{self.draw(cell)}</mtd>' for cell in row)}</mtr>" for row in rows
        )
        return f"<mrow><mo>(</mo><mtable>{lines}</mtable><mo>)</mo></mrow>"

    def line(self, pieces: Sequence[str]) -> str:
        """Pieces that are drawn already, as one displayed formula."""
        return f'<math display="block">{"".join(pieces)}</math>'

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
                return MINUS + self._at_least(x, _PRODUCT), _SUM
            case Sum(terms=()):
                return "<mn>0</mn>", _ATOM
            case Product(factors=()):
                return "<mn>1</mn>", _ATOM
            case Sum(terms=(only,)) | Product(factors=(only,)):
                return self._draw(only)
            case Sum(terms=terms):
                return self._sum(terms), _SUM
            case Product(factors=factors):
                return self._product(factors), _PRODUCT
            case Quotient(top=a, bottom=b):
                return f"<mfrac>{_row(self.draw(a))}{_row(self.draw(b))}</mfrac>", _PRODUCT
            case Power(base=a, exponent=b):
                return self._power(a, b), _POWER
            case Call(function="sqrt", argument=x):
                return f"<msqrt>{self.draw(x)}</msqrt>", _ATOM
            case Call(function="Σ", argument=x):
                return f"<mo>∑</mo>{self._at_least(x, _PRODUCT)}", _PRODUCT
            case Call(function="abs", argument=x):
                return f"<mrow><mo>|</mo>{self.draw(x)}<mo>|</mo></mrow>", _ATOM
            case Call(function=f, argument=x):
                return f"<mi>{escape(f)}</mi>{APPLY}{_bracketed(self.draw(x))}", _ATOM

    def _number(self, value: Fraction) -> Drawn:
        if value < 0:
            return MINUS + self._number(-value)[0], _SUM
        if value.denominator == 1:
            return f"<mn>{value.numerator}</mn>", _ATOM
        if self.finite and (text := finite_decimal(value)):
            return f'<mn class="exact">{text.replace(".", self.point)}</mn>', _ATOM
        top, bottom = value.numerator, value.denominator
        return f"<mfrac><mn>{top}</mn><mn>{bottom}</mn></mfrac>", _PRODUCT

    def _name(self, text: str) -> Drawn:
        if _NUMERAL.fullmatch(text):
            return self.numeral(text), _ATOM
        if _SCIENTIFIC.fullmatch(text):
            return self.numeral(text), _PRODUCT
        if text == "…":
            return "<mo>…</mo>", _ATOM
        return _identifier(text), _ATOM

    def _entry(self, entry: Entry) -> str:
        """q[0,1] as q with its index below."""
        if not entry.index:
            return _identifier(entry.address)
        name, below = _indexed(entry)
        return f"<msub>{name}{below}</msub>"

    def _power(self, base: Expression, exponent: Expression) -> str:
        raised = _row(self._in_line(exponent))
        if isinstance(base, Entry) and base.index:
            name, below = _indexed(base)
            return f"<msubsup>{name}{below}{raised}</msubsup>"
        drawn = self._at_least(base, _ATOM)
        return f"<msup>{_row(drawn)}{raised}</msup>"

    def _in_line(self, tree: Expression) -> str:
        """An exponent: a plain fraction in it is written with a slash, a tower would be tiny."""
        match tree:
            case Number(value=value) if value.denominator != 1 and not self.finite:
                sign = MINUS if value < 0 else ""
                top, bottom = abs(value.numerator), value.denominator
                return f"{sign}<mn>{top}</mn><mo>/</mo><mn>{bottom}</mn>"
            case Negative(of=Number() | Quotient() as inner):
                return MINUS + self._in_line(inner)
            case Quotient(top=Number(value=a), bottom=Number(value=b)) if (
                a >= 0 and a.denominator == b.denominator == 1
            ):
                return f"<mn>{a}</mn><mo>/</mo><mn>{b}</mn>"
            case _:
                return self.draw(tree)

    def _sum(self, terms: Sequence[Expression]) -> str:
        drawn = ""
        for term in terms:
            sign = "<mo>+</mo>" if drawn else ""
            match term:
                case Negative(of=x):
                    sign, term = ("<mo>−</mo>" if drawn else MINUS), x
                case Number(value=value) if value < 0:
                    sign, term = ("<mo>−</mo>" if drawn else MINUS), Number(-value)
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
            drawn += ("" if place == 0 else NOTHING if bare else TIMES) + piece
        return drawn

    def _at_least(self, tree: Expression, strength: int) -> str:
        drawn, own = self._draw(tree)
        return drawn if own >= strength else _bracketed(drawn)


# ------------------------------------------------------------------ small pieces


def finite_decimal(value: Fraction) -> str:
    """The decimals that say a number in full, where they are few; else nothing."""
    scaled = abs(value) * 10**MOST_DECIMALS
    if scaled.denominator != 1:
        return ""
    whole, rest = divmod(scaled.numerator, 10**MOST_DECIMALS)
    places = f"{rest:0{MOST_DECIMALS}}".rstrip("0")
    return f"{'-' if value < 0 else ''}{whole}{'.' * bool(places)}{places}"


def _may_follow_a_number(tree: Expression) -> bool:
    match tree:
        case Call(function="sqrt") | Sum(terms=(_, _, *_)) | Name(text="e" | "pi"):
            return True
        case Power(base=Name(text="e")):
            return True
        case _:
            return False


def _identifier(text: str) -> str:
    """A name: a letter slanted, a word upright; what follows an underscore or a letter's number
    stands below."""
    if text.endswith("ᵀ") and len(text) > 1:
        return f"<msup>{_identifier(text[:-1])}<mi>T</mi></msup>"
    head, _bar, below = text.partition("_")
    if not below and (match := re.fullmatch(r"([A-Za-zα-ωΑ-Ω])([0-9]+)", text)):
        head, below = match[1], match[2]
    if below and head:
        inner = f"<mn>{below}</mn>" if below.isdigit() else f"<mi>{escape(below)}</mi>"
        return f"<msub>{_identifier(head)}{inner}</msub>"
    return f"<mi>{escape(_GREEK.get(text, text))}</mi>"


def _indexed(entry: Entry) -> tuple[str, str]:
    """A name and what stands below it: of W_q[0,1] W, and q with 0,1."""
    index = f"<mtext>{','.join(map(str, entry.index))}</mtext>"
    head, _bar, below = entry.address.partition("_")
    if not head or not below:
        return _identifier(entry.address), index
    inner = f'<mi>{escape(below)}</mi><mspace width="0.2em"/>{index}'
    return _identifier(head), f"<mrow>{inner}</mrow>"


def _sign(text: str) -> str:
    """What stands between the sides of a formula, or a name that is one of them."""
    return _identifier(text) if text[:1].isalpha() else f"<mo>{escape(text)}</mo>"


def _bracketed(drawn: str) -> str:
    return f"<mrow><mo>(</mo>{drawn}<mo>)</mo></mrow>"


_SINGLE = re.compile(r"<(mn|mi)(?: class=\"exact\")?>[^<]*</\1>")


def _row(drawn: str) -> str:
    """One element, as fractions and scripts need: a row around anything that may be several."""
    return drawn if _SINGLE.fullmatch(drawn) else f"<mrow>{drawn}</mrow>"

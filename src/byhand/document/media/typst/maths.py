"""Formulas in Typst, for paper.

`document.mathematics` walks the trees and sets brackets and signs.

Names and numerals are strings, so no name is read as a symbol of Typst.  A fraction with long parts
has a slash, where a line can break.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from byhand.document.mathematics import ATOM, POWER, PRODUCT, Drawing, Drawn
from byhand.document.media.typst.quoting import call, string
from byhand.expression import (
    Call,
    Entry,
    Expression,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    write,
)

LONGEST_FRACTION = 56  # characters above or below a fraction line
_DECIMAL_POINT = re.compile(r"(?<=[0-9])\.(?=[0-9])")


class TypstMaths(Drawing):
    """Draws trees as mathematics of Typst."""

    times, nothing = "⋅", ""
    plus, minus, negative = "+", "-", "-"
    solidus = "\\/"

    def formula(self, *sides: Expression | str) -> str:
        """One formula as a value of Typst; strings among the sides are the signs between them."""
        drawn = [side if isinstance(side, str) else self.draw(side) for side in sides]
        told = " ".join(side if isinstance(side, str) else write(side) for side in sides)
        return self.line(drawn, told)

    def line(self, pieces: Sequence[str], told: str) -> str:
        """Drawn pieces as a line; `told` is its text for screen readers."""
        heard = _DECIMAL_POINT.sub(self.point, told)
        return call("formula", f"${''.join(pieces)}$", string(heard))

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        """A matrix (or a row of one) in brackets, its entries drawn already."""
        return f"mat({';'.join(','.join(row) for row in rows)})"

    # ------------------------------------------------------------------ how the pieces look

    def digits(self, text: str) -> str:
        return string(text)

    def letter(self, text: str) -> str:
        if text.startswith("∂") and len(text) > 1:  # the gradient of what follows
            return string("∂") + self.letter(text[1:])
        if text.endswith("′") and len(text) > 1:  # the new one
            return self.letter(text[:-1]) + "'"
        single = len(text) == 1 and text.isalpha()
        return f"italic({string(text)})" if single else string(text)

    def dots(self, text: str) -> str | None:
        return string(text) if text in ("…", "·", "") else None

    def transposed(self, drawn: str) -> str:
        return f"{drawn}^{string('T')}"

    def lowered(self, drawn: str, below: str) -> str:
        return f"{drawn}_({self.letter(below)})"

    def indexed(self, entry: Entry) -> str:
        index = string(",".join(map(str, entry.index)))
        head, _bar, below = entry.address.partition("_")
        if not head or not below:
            return f"{self.identifier(entry.address)}_{index}"
        return f"{self.identifier(head)}_({self.letter(below)}thin{index})"

    def raised(self, base: str, exponent: str) -> str:
        return f"{base}^({exponent})"

    def fraction(self, top: str, bottom: str) -> str:
        if max(len(top), len(bottom)) > LONGEST_FRACTION:
            return f"{_broken(top)}\\/{_broken(bottom)}"
        return f"frac({string(top)},{string(bottom)})"

    def quotient(self, top: Expression, bottom: Expression) -> str:
        if max(_signs(top), _signs(bottom)) > LONGEST_FRACTION:
            return f"{self.at_least(top, PRODUCT)}\\/{self.at_least(bottom, POWER)}"
        return f"frac({self.draw(top)},{self.draw(bottom)})"

    def root(self, inside: Expression) -> Drawn:
        """A root; one too long for a line is a power, which can be broken."""
        if _signs(inside) > 2 * LONGEST_FRACTION:
            return f"({self.draw(inside)})^({string('1')}\\/{string('2')})", POWER
        return f"sqrt({self.draw(inside)})", ATOM

    def total(self, of: str) -> str:
        return f"sum {of}"  # a letter after a word of Typst needs a gap, which is not drawn

    def size(self, of: str) -> str:
        return f"abs({of})"

    def function(self, name: str, argument: str) -> str:
        return f"op({string(name)})({argument})"

    def bracketed(self, drawn: str) -> str:
        return f"({drawn})"


def _broken(digits: str) -> str:
    """A long whole number with places where a line may end."""
    return string("\u200b".join(digits[k : k + 10] for k in range(0, len(digits), 10)))


def _signs(tree: Expression) -> int:
    """The approximate width of a drawn tree in characters."""
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

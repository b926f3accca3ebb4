"""Formulas in MathML Core, which browsers draw natively.

`document.mathematics` walks the trees and sets brackets and signs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from byhand.document.mathematics import ATOM, POWER, PRODUCT, Drawing, Drawn
from byhand.document.media.html.markup import Markup, element
from byhand.expression import Entry, Expression, Quotient, Sum, write

LONG_SUM = 4  # terms of a sum above a fraction line
LONGEST_BELOW = 5  # terms of a sum below a fraction line
APPLY = "<mo>&#x2061;</mo>"
_SINGLE = re.compile(r"<(mn|mi)(?: class=\"exact\")?>[^<]*</\1>")


@cache
def token(tag: str, text: str) -> str:
    """A name, a number or a sign as one element."""
    return str(element(tag, text))


class Mathml(Drawing):
    """Draws trees as MathML.

    With `annotated`, formulas carry their text form too, which `expression.parse` reads back.
    Copying a formula copies it, and tests compare it.
    """

    times, nothing = "<mo>⋅</mo>", "<mo>&#x2062;</mo>"
    plus, minus, negative = "<mo>+</mo>", "<mo>−</mo>", '<mo form="prefix">−</mo>'
    solidus = "<mo>/</mo>"

    def __init__(self, point: str = ".", *, finite: bool = False, annotated: bool = False) -> None:
        super().__init__(point, finite=finite)
        self.annotated = annotated

    def formula(self, *sides: Expression | str) -> Markup:
        """One formula; strings among the sides are names, or the signs between them (=, ≈, →)."""
        drawn = "".join(
            self._between(side) if isinstance(side, str) else self.draw(side) for side in sides
        )
        if self.annotated:
            text = " ".join(side if isinstance(side, str) else write(side) for side in sides)
            note = element("annotation", text, encoding="text/plain")
            drawn = f"<semantics><mrow>{drawn}</mrow>{note}</semantics>"
        return element("math", Markup(drawn))

    def matrix(self, rows: Sequence[Sequence[Expression]]) -> str:
        """A matrix (or a row of one) in brackets."""
        lines = "".join(
            f"<mtr>{''.join(f'<mtd>{self.draw(cell)}</mtd>' for cell in row)}</mtr>" for row in rows
        )
        return self.bracketed(f"<mtable>{lines}</mtable>")

    def broken(self, sign: str, tree: Expression) -> Markup:
        """A formula after a sign; the line may break between the terms of a sum."""
        match tree:
            case Sum(terms=()):
                return self.formula(sign, tree)
            case Sum(terms=(only,)):
                return self.broken(sign, only)
            case Sum(terms=terms):
                first, *rest = self.summands(terms)
                pieces = [self._between(sign) + first, *map(_infix, rest)]
            case Quotient(top=Sum(terms=terms), bottom=bottom) if len(terms) >= LONG_SUM:
                # a fraction cannot break: (a + b + …)/√16
                first, *rest = self.summands(terms)
                pieces = [f"{self._between(sign)}<mo>(</mo>{first}", *map(_infix, rest)]
                pieces[-1] += f"<mo>)</mo>{self.solidus}{self.at_least(bottom, POWER)}"
            case Quotient(top=top, bottom=Sum(terms=terms)) if len(terms) > LONGEST_BELOW:
                first, *rest = self.summands(terms)
                before = f"{self._between(sign)}{self.at_least(top, PRODUCT)}{self.solidus}"
                pieces = [f"{before}<mo>(</mo>{first}", *map(_infix, rest)]
                pieces[-1] += "<mo>)</mo>"
            case _:
                return self.formula(sign, tree)
        return Markup(" ".join(f"<math>{piece}</math>" for piece in pieces))

    def line(self, pieces: Sequence[str]) -> Markup:
        """Drawn pieces as one displayed line, which may break between any two of them."""
        first, *rest = pieces
        drawn = (first, *map(_infix, rest))
        return Markup("".join(f'<math displaystyle="true">{piece}</math>' for piece in drawn))

    def _between(self, text: str) -> str:
        """A sign between the sides of a formula, or a name as one of them."""
        if not text:
            return ""
        return self.identifier(text) if text[:1].isalpha() else token("mo", text)

    # ------------------------------------------------------------------ how the pieces look

    def digits(self, text: str) -> str:
        return token("mn", text)

    def decimals(self, text: str) -> str:
        return f'<mn class="exact">{text.replace(".", self.point)}</mn>'

    def letter(self, text: str) -> str:
        if text.startswith("∂") and len(text) > 1:  # the gradient of what follows
            return f"<mrow><mi>∂</mi>{self.letter(text[1:])}</mrow>"
        if text.endswith("′") and len(text) > 1:  # the new one
            return f"<msup>{self.letter(text[:-1])}<mo>′</mo></msup>"
        return token("mi", text)

    def dots(self, text: str) -> str | None:
        return "<mo>…</mo>" if text == "…" else None

    def transposed(self, drawn: str) -> str:
        return f"<msup>{drawn}<mi>T</mi></msup>"

    def lowered(self, drawn: str, below: str) -> str:
        return f"<msub>{drawn}{token('mn' if below.isdigit() else 'mi', below)}</msub>"

    def indexed(self, entry: Entry) -> str:
        name, below = self._name_and_index(entry)
        return f"<msub>{name}{below}</msub>"

    def _name_and_index(self, entry: Entry) -> tuple[str, str]:
        index = f"<mtext>{','.join(map(str, entry.index))}</mtext>"
        head, _bar, below = entry.address.partition("_")
        if not head or not below:
            return self.identifier(entry.address), index
        inner = f'{token("mi", below)}<mspace width="0.2em"/>{index}'
        return self.identifier(head), f"<mrow>{inner}</mrow>"

    def raised(self, base: str, exponent: str) -> str:
        return f"<msup>{_row(base)}{_row(exponent)}</msup>"

    def raised_entry(self, entry: Entry, exponent: str) -> str:
        name, below = self._name_and_index(entry)
        return f"<msubsup>{name}{below}{_row(exponent)}</msubsup>"

    def fraction(self, top: str, bottom: str) -> str:
        return f"<mfrac><mn>{top}</mn><mn>{bottom}</mn></mfrac>"

    def quotient(self, top: Expression, bottom: Expression) -> str:
        return f"<mfrac>{_row(self.draw(top))}{_row(self.draw(bottom))}</mfrac>"

    def root(self, inside: Expression) -> Drawn:
        return f"<msqrt>{self.draw(inside)}</msqrt>", ATOM

    def total(self, of: str) -> str:
        return f"<mo>∑</mo>{of}"

    def size(self, of: str) -> str:
        return f"<mrow><mo>|</mo>{of}<mo>|</mo></mrow>"

    def function(self, name: str, argument: str) -> str:
        return f"{token('mi', name)}{APPLY}{self.bracketed(argument)}"

    def bracketed(self, drawn: str) -> str:
        return f"<mrow><mo>(</mo>{drawn}<mo>)</mo></mrow>"


def _infix(drawn: str) -> str:
    """A sign at the start of a formula, with the spacing of an infix sign."""
    return drawn.replace("<mo>", '<mo form="infix">', 1)


def _row(drawn: str) -> str:
    """One element, as fractions and scripts need: a row around several."""
    return drawn if _SINGLE.fullmatch(drawn) else f"<mrow>{drawn}</mrow>"

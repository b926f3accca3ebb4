"""One walk over formula trees, for every medium that draws them.

`Drawing` knows the notation: where brackets are needed, the sign of a term, that 2·e is written 2e,
that W_q is W with a q below.  `html.mathml` and `typst.maths` only define how a fraction, a root or
a letter *looks*.

In a drawing, a fraction line or a root groups its contents as brackets do in text, so fewer
brackets are needed.  Nothing is computed or simplified.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isqrt

from byhand.document.numerals import in_full
from byhand.document.parts import Cell, Line, Matrix, Sign, WorkingLine
from byhand.document.short_forms import short_form
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

SUM, PRODUCT, POWER, ATOM = range(4)  # precedence of a drawn piece
GREEK = {"pi": "π", "gamma": "γ", "beta": "β", "mu": "μ", "sigma": "σ", "eps": "ε"}
WIDEST_LINE = 64  # characters of a line of matrices
LONGEST_WORKING = 400  # characters of a line of working; longer ones are left out
LONGEST_LETTER = 200  # characters of a letter's definition
SHORT_LINE = 24  # characters of a line in which √4 = 2 gets its own line
_SQUARE = re.compile(r"√([0-9]+)")
_NUMERAL = re.compile(r"[0-9]+(\.[0-9]+)?")
_SCIENTIFIC = re.compile(r"([0-9]+(?:\.[0-9]+)?)e([+-]?[0-9]+)")
_NUMBERED = re.compile(r"([A-Za-zα-ωΑ-Ω])([0-9]+)")

Written = tuple[str, str, Expression | None]  # kind, sign before it, tree; None: the decimals
Drawn = tuple[str, int]  # the drawing, and its precedence


class Drawing(ABC):
    """Draws trees with the decimal sign of a language.

    With `finite`, a fraction with a short finite decimal is drawn as that: 0.3 for 3/10.
    """

    times: str  # the dot between factors
    nothing: str  # between factors that stand beside each other: 2e
    plus: str
    minus: str  # between two terms
    negative: str  # before the first of them
    solidus: str  # between the parts of a fraction within a line

    def __init__(self, point: str = ".", *, finite: bool = False) -> None:
        self.point = point
        self.finite = finite

    def draw(self, tree: Expression) -> str:
        """The tree, without the frame of a formula."""
        return self.drawn(tree)[0]

    def numeral(self, text: str) -> str:
        """A decimal numeral: its sign apart, its point as the language writes it."""
        signed, digits = text.startswith(("-", "−")), text.lstrip("-−")
        if match := _SCIENTIFIC.fullmatch(digits):
            ten = self.raised(self.digits("10"), self.numeral(str(int(match[2]))))
            body = self.numeral(match[1]) + self.times + ten
        else:
            body = self.digits(digits.replace(".", self.point))
        return self.negative + body if signed else body

    def identifier(self, text: str) -> str:
        """A name; the text after an underscore, or a letter's number, is a subscript."""
        if text.endswith("ᵀ") and len(text) > 1:
            return self.transposed(self.identifier(text[:-1]))
        head, _bar, below = text.partition("_")
        if not below and (match := _NUMBERED.fullmatch(text)):
            head, below = match[1], match[2]
        if below and head:
            return self.lowered(self.identifier(head), below)
        return self.letter(GREEK.get(text, text))

    # ------------------------------------------------------------------ what each medium says

    @abstractmethod
    def digits(self, text: str) -> str:
        """Digits, with the decimal sign that they have."""

    def decimals(self, text: str) -> str:
        """The decimals of a fraction that they express exactly."""
        return self.numeral(text)

    @abstractmethod
    def letter(self, text: str) -> str:
        """A letter slanted, a word upright."""

    @abstractmethod
    def dots(self, text: str) -> str | None:
        """A name that is a sign (…, ·); None for a real name."""

    @abstractmethod
    def transposed(self, drawn: str) -> str:
        """A matrix with the sign of its transpose."""

    @abstractmethod
    def lowered(self, drawn: str, below: str) -> str:
        """W_q: a drawn name with a subscript."""

    @abstractmethod
    def indexed(self, entry: Entry) -> str:
        """q[0,1] as q with a subscript; W_q[0,1] as W with the subscripts q and 0,1."""

    @abstractmethod
    def raised(self, base: str, exponent: str) -> str:
        """A power: both parts are drawn."""

    def raised_entry(self, entry: Entry, exponent: str) -> str:
        """A power of q[0,1], whose index and exponent may have to share a place."""
        return self.raised(self.indexed(entry), exponent)

    @abstractmethod
    def fraction(self, top: str, bottom: str) -> str:
        """A fraction of whole numbers."""

    @abstractmethod
    def quotient(self, top: Expression, bottom: Expression) -> str:
        """A fraction."""

    @abstractmethod
    def root(self, inside: Expression) -> Drawn:
        """A square root."""

    @abstractmethod
    def total(self, of: str) -> str:
        """∑ before its argument."""

    @abstractmethod
    def size(self, of: str) -> str:
        """Between bars."""

    @abstractmethod
    def function(self, name: str, argument: str) -> str:
        """The name of a function and its drawn argument in brackets."""

    @abstractmethod
    def bracketed(self, drawn: str) -> str:
        """What is drawn, in brackets."""

    # ------------------------------------------------------------------ the walk

    def drawn(self, tree: Expression) -> Drawn:
        """A tree, and its precedence."""
        match tree:
            case Number(value=value):
                return self._number(value)
            case Name(text=text):
                return self._name(text)
            case Entry():
                return (self.indexed(tree) if tree.index else self.identifier(tree.address)), ATOM
            case Negative(of=x):
                return self.negative + self.at_least(x, PRODUCT), SUM
            case Sum(terms=()):
                return self.digits("0"), ATOM
            case Product(factors=()):
                return self.digits("1"), ATOM
            case Sum(terms=(only,)) | Product(factors=(only,)):
                return self.drawn(only)
            case Sum(terms=terms):
                return "".join(self.summands(terms)), SUM
            case Product(factors=factors):
                return self._product(factors), PRODUCT
            case Quotient(top=a, bottom=b):
                return self.quotient(a, b), PRODUCT
            case Power(base=a, exponent=b):
                return self._power(a, b), POWER
            case Call(function="sqrt", argument=x):
                return self.root(x)
            case Call(function="Σ", argument=x):
                return self.total(self.at_least(x, PRODUCT)), PRODUCT
            case Call(function="abs", argument=x):
                return self.size(self.draw(x)), ATOM
            case Call(function=f, argument=x):
                return self.function(f, self.draw(x)), ATOM

    def at_least(self, tree: Expression, strength: int) -> str:
        """A tree, in brackets if its precedence is below `strength`."""
        drawn, own = self.drawn(tree)
        return drawn if own >= strength else self.bracketed(drawn)

    def _number(self, value: Fraction) -> Drawn:
        if value < 0:
            return self.negative + self._number(-value)[0], SUM
        if value.denominator == 1:
            return self.digits(str(value.numerator)), ATOM
        if self.finite and (text := in_full(value)):
            return self.decimals(text), ATOM
        return self.fraction(str(value.numerator), str(value.denominator)), PRODUCT

    def _name(self, text: str) -> Drawn:
        if _NUMERAL.fullmatch(text):
            return self.numeral(text), ATOM
        if _SCIENTIFIC.fullmatch(text):
            return self.numeral(text), PRODUCT
        dots = self.dots(text)
        return (self.identifier(text) if dots is None else dots), ATOM

    def _power(self, base: Expression, exponent: Expression) -> str:
        raised = self._in_line(exponent)
        if isinstance(base, Entry) and base.index:
            return self.raised_entry(base, raised)
        return self.raised(self.at_least(base, ATOM), raised)

    def _in_line(self, tree: Expression) -> str:
        """An exponent: a plain fraction in it has a slash, since a stacked one would be tiny."""
        match tree:
            case Number(value=value) if value.denominator != 1 and not self.finite:
                sign = self.negative if value < 0 else ""
                return sign + self._slashed(abs(value.numerator), value.denominator)
            case Negative(of=Number() | Quotient() as inner):
                return self.negative + self._in_line(inner)
            case Quotient(top=Number(value=a), bottom=Number(value=b)) if (
                a >= 0 and a.denominator == b.denominator == 1
            ):
                return self._slashed(a, b)
            case _:
                return self.draw(tree)

    def _slashed(self, top: Fraction | int, bottom: Fraction | int) -> str:
        return self.digits(str(top)) + self.solidus + self.digits(str(bottom))

    def summands(self, terms: Sequence[Expression]) -> Iterator[str]:
        """The terms of a sum one by one, each with its sign."""
        for place, term in enumerate(terms):
            sign = self.plus if place else ""
            match term:
                case Negative(of=x):
                    sign, term = (self.minus if place else self.negative), x
                case Number(value=value) if value < 0:
                    sign, term = (self.minus if place else self.negative), Number(-value)
            yield sign + self.at_least(term, PRODUCT)

    def _product(self, factors: Sequence[Expression]) -> str:
        """Factors with dots between them, but 2e, 2√3 and 2(1 + e) without."""
        lead = factors[0]
        whole_lead = isinstance(lead, Number) and lead.value.denominator == 1 and lead.value >= 0
        drawn = ""
        for place, factor in enumerate(factors):
            bare = place == 1 and whole_lead and _may_follow_a_number(factor)
            between = "" if place == 0 else self.nothing if bare else self.times
            drawn += between + self.at_least(factor, PRODUCT)
        return drawn


def _may_follow_a_number(tree: Expression) -> bool:
    match tree:
        case Call(function="sqrt") | Sum(terms=(_, _, *_)) | Name(text="e" | "pi"):
            return True
        case Power(base=Name(text="e")):
            return True
        case _:
            return False


# ------------------------------------------------------------------ numbers in formulas


def in_a_table(cell: Cell) -> bool:
    """Whether a table shows a number by its form: it is short, or there are no decimals."""
    if cell.form is None:
        return False
    if cell.decimal is None:
        return True
    return cell.plain if cell.register == "exact" else short_form(cell.form)


def in_short(cell: Cell) -> bool:
    """Whether a table shows an exact number by some of its decimals, so that ≈ stands before."""
    if cell.radius is not None or cell.decimal is None or in_a_table(cell):
        return False
    return cell.register == "named" or (cell.register == "exact" and cell.cut)


def cell_tree(cell: Cell, brief: bool = False) -> Expression:
    """The number as a leaf or form of a formula; with `brief`, a named one by its decimals."""
    by_decimals = brief and cell.register == "named" and cell.decimal is not None
    if cell.form is not None and in_a_table(cell) and not by_decimals:
        return cell.form
    text = cell.decimal or ""
    tree: Expression = Name(text.lstrip("-"))
    return Negative(tree) if text.startswith("-") else tree


def working_lines(line: WorkingLine) -> Iterator[Written]:
    """The lines of a number's working, each once: symbols, values, forms."""
    before = ""
    given = "≈" if line.decimals else "="
    written = (
        ("symbols", "=", line.symbols),
        ("brief", "≈", line.brief),
        ("values", given, line.values),
    )
    for kind, sign, tree in written:
        if tree is not None:
            text = write(tree)
            if text != before and len(text) <= LONGEST_WORKING:
                yield kind, sign, tree
            before = text
    if not line.missing:
        yield from form_lines(line.cell, before)


def form_lines(cell: Cell, before: str = "") -> Iterator[Written]:
    """Every form of a number that is not in the line before, then its decimals."""
    if cell.radius is not None:
        yield "value", "=", None
        return
    for tree in (cell.worked, cell.form):
        if tree is None or says_no_more(tree, before):
            continue
        if len(text := write(tree)) <= LONGEST_WORKING:
            before = text
            yield "form", "=", tree
    if cell.decimal is not None and not cell.plain:
        yield "value", "=" if cell.register == "exact" and not cell.cut else "≈", None


def says_no_more(tree: Expression, before: str) -> bool:
    """Whether a line only repeats the one before, or only takes the root of a square: √4 is 2."""
    text = write(tree)
    return text == before or (len(text) > SHORT_LINE and text == _SQUARE.sub(_taken, before))


def _taken(root: re.Match[str]) -> str:
    whole = isqrt(int(root[1]))
    return str(whole) if whole * whole == int(root[1]) else root[0]


def too_wide(line: Line) -> bool:
    """Whether the forms in a line of matrices do not fit beside each other."""
    wide = 0
    for piece in line:
        if isinstance(piece, Matrix):
            columns = zip(*piece.rows, strict=True)
            wide += sum(max(map(_signs, column)) + 2 for column in columns) + 2
    return wide > WIDEST_LINE


def _signs(cell: Cell) -> int:
    """The approximate number of characters of a number."""
    return _width(write(cell_tree(cell)))


def _width(form: str) -> int:
    """The approximate width of a form in characters, with its fractions drawn."""
    return max(map(len, form.replace("√(", "√").strip("()").split("/")))


def shortened(cell: Cell, brief: bool = False) -> bool:
    """Whether `cell_tree` shows a number by incomplete decimals."""
    if cell.masked or cell.decimal is None:
        return False
    if in_a_table(cell) and not (brief and cell.register == "named"):
        return False
    return cell.cut or cell.register != "exact"


def rounded_line(line: Line, brief: bool) -> bool:
    """Whether some number in a line of matrices is not shown in full: then = is ≈."""
    matrices = (piece for piece in line if isinstance(piece, Matrix))
    return any(shortened(cell, brief) for one in matrices for row in one.rows for cell in row)


def settled(line: Line) -> tuple[bool, Line]:
    """Whether a line shows what is named by its decimals, since it would be too wide; and the line
    with the signs that it then has."""
    brief = too_wide(line)
    if not rounded_line(line, brief):
        return brief, line
    return brief, tuple(Sign("≈") if piece == Sign("=") else piece for piece in line)

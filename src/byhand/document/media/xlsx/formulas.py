"""Expressions and weights as spreadsheet formulas.

Neighbouring cells are read as a range: a long dot product is SUMPRODUCT of two rows, or MMULT of a
row and a column; a short one is written out.  Excel before 2010 and LibreOffice know every function
used.

A weight is a number, or a formula if it is not a decimal: 1/5 is 0.2, 1/3 is =1/3 and √2/2 is
=SQRT(2)/2.  A float has enough digits to read the same float back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.document.media.xlsx.cells import Cell, refer
from byhand.errors import InputError
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
)
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.weights import Tensor, Weights

WRITTEN_OUT = 4  # products of a sum that are written out; more become a range
ADDED_UP = 2  # likewise for plain terms and squares
MOST_PLACES = 4  # decimals of a weight that is shown
MOST_DIGITS = 15  # of a number in a formula: Excel's limit

FUNCTIONS = {
    "sqrt": "SQRT",
    "exp": "EXP",
    "ln": "LN",
    "sin": "SIN",
    "cos": "COS",
    "tanh": "TANH",
    "erf": "ERF",
}

SUM, PRODUCT, POWER, ATOM = range(4)  # precedence of a piece of formula
RIGHT, DOWN = (0, 1), (1, 0)

Where = Callable[[Entry], Cell]
Piece = tuple[str, int]


def formula(tree: Expression, where: Where, sheet: str = "") -> str:
    """The formula of a tree on the sheet, without its =; `where` finds the entries.

    >>> from byhand.expression import parse
    >>> at = lambda entry: Cell("", 4, entry.index[0])
    >>> formula(parse("(x[0] + x[1] + x[2])/3 - x[4]^2"), at)
    'SUM(A5:C5)/3-E5^2'
    """
    return _Writer(where, sheet).piece(tree)[0]


def number(value: Fraction) -> Piece:
    """A rational number as a short exact decimal, else as a quotient."""
    sign = "-" if value < 0 else ""
    level = SUM if sign else ATOM
    decimal = terminating(abs(value))
    if decimal is not None:
        return sign + decimal, level
    if max(len(str(abs(value.numerator))), len(str(value.denominator))) <= MOST_DIGITS:
        return f"{value.numerator}/{value.denominator}", SUM if sign else PRODUCT
    return repr(float(value)).upper(), level


def terminating(value: Fraction) -> str | None:
    """The exact decimal of a non-negative number, if it has few digits; else None.

    >>> terminating(Fraction(1, 5)), terminating(Fraction(1, 100000)), terminating(Fraction(1, 3))
    ('0.2', '0.00001', None)
    """
    places = 0
    while places <= MOST_DIGITS and (value * 10**places).denominator != 1:
        places += 1
    digits = str(int(value * 10**places))
    if places > MOST_DIGITS or len(digits) > MOST_DIGITS:
        return None
    if not places:
        return digits
    digits = digits.rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


class _Writer:
    """Writes trees for one sheet.  A piece is a text and its precedence."""

    def __init__(self, where: Where, sheet: str) -> None:
        self.where = where
        self.sheet = sheet

    def refer(self, first: Cell, last: Cell | None = None) -> str:
        """How this sheet names a cell, or a range."""
        return refer(first, last, sheet=self.sheet)

    def piece(self, tree: Expression) -> Piece:
        """The text of a tree, and its precedence."""
        match tree:
            case Number(value=value):
                return number(value)
            case Name(text="e"):
                return "EXP(1)", ATOM
            case Name(text="pi"):
                return "PI()", ATOM
            case Name(text=text):
                raise ValueError(f"a letter in a formula: {text}")
            case Entry():
                return self.refer(self.where(tree)), ATOM
            case Call(function="relu", argument=x):
                return f"MAX(0,{self.piece(x)[0]})", ATOM
            case Call(function="step", argument=x):
                return f"IF({self.piece(x)[0]}>0,1,0)", ATOM
            case Call(function="step", argument=x):
                return f"IF({self.piece(x)[0]}>0,1,0)", ATOM
            case Call(function=name, argument=x):
                return f"{FUNCTIONS[name]}({self.piece(x)[0]})", ATOM
            case Power(base=Name(text="e"), exponent=x):
                return f"EXP({self.piece(x)[0]})", ATOM
            case Power(base=base, exponent=exponent):
                # in a spreadsheet 2^3^2 is 64 and -2^2 is 4: brackets everywhere
                return f"{self.held(base, ATOM)}^{self.held(exponent, ATOM)}", POWER
            case Negative(of=x):
                return f"-{self.held(x, ATOM)}", SUM
            case Product(factors=factors):
                first, *others = factors
                rest = [self.held(factor, POWER) for factor in others]
                return "*".join([self.held(first, PRODUCT), *rest]), PRODUCT
            case Quotient(top=top, bottom=bottom):
                return f"{self.held(top, PRODUCT)}/{self.held(bottom, POWER)}", PRODUCT
            case Sum(terms=terms):
                return self.sum(terms)

    def held(self, tree: Expression, level: int) -> str:
        """The piece, in brackets if its precedence is below `level`."""
        text, own = self.piece(tree)
        return text if own >= level else f"({text})"

    def sum(self, terms: Sequence[Expression]) -> Piece:
        """The terms of a sum, as ranges where they are neighbours."""
        pieces = list(self.pieces(terms))
        if len(pieces) == 1:
            return pieces[0]
        first, *others = (text for text, _level in pieces)
        signed = (text if text.startswith("-") else f"+{text}" for text in others)
        return first + "".join(signed), SUM

    def pieces(self, terms: Sequence[Expression]) -> Iterator[Piece]:
        """The terms, with neighbouring cells as one piece."""
        done = 0
        while done < len(terms):
            term, taken = terms[done], self.run(terms[done:])
            if taken is not None:
                yield taken[0], ATOM
                done += taken[1]
                continue
            if done and isinstance(term, Negative):  # a - b*c needs no brackets, -(b*c) does
                yield f"-{self.held(term.of, PRODUCT)}", SUM
            else:
                yield self.piece(term)
            done += 1

    def run(self, terms: Sequence[Expression]) -> tuple[str, int] | None:
        """The longest run at the start that deserves a range, and its number of terms."""
        match terms[0]:
            case Entry():
                (cells,) = self.columns(terms, _entry)
                if len(cells) > ADDED_UP:
                    return f"SUM({self.refer(cells[0], cells[-1])})", len(cells)
            case Power(base=Entry(), exponent=Number(value=power)) if power == 2:
                (cells,) = self.columns(terms, _square)
                if len(cells) > ADDED_UP:
                    return f"SUMSQ({self.refer(cells[0], cells[-1])})", len(cells)
            case Product(factors=(Entry(), Entry())):
                left, right = self.columns(terms, _pair)
                if len(left) > WRITTEN_OUT:
                    one, other = (self.refer(x[0], x[-1]) for x in (left, right))
                    if _way(left) == _way(right):
                        return f"SUMPRODUCT({one},{other})", len(left)
                    if _way(left) == DOWN:
                        one, other = other, one
                    return f"SUM(MMULT({one},{other}))", len(left)
        return None

    def columns(
        self, terms: Sequence[Expression], read: Callable[[Expression], tuple[Entry, ...] | None]
    ) -> list[list[Cell]]:
        """The cells of the first terms, as long as each is next to the one before."""
        runs: list[list[Cell]] = []
        ways: list[tuple[int, int] | None] = []
        for term in terms:
            entries = read(term)
            if entries is None:
                break
            cells = [self.where(entry) for entry in entries]
            if not runs:
                runs = [[cell] for cell in cells]
                continue
            steps = [_step(run[-1], cell) for run, cell in zip(runs, cells, strict=True)]
            ways = ways or steps
            if steps != ways or not all(step in (RIGHT, DOWN) for step in steps):
                break
            for run, cell in zip(runs, cells, strict=True):
                run.append(cell)
        return runs


def _entry(term: Expression) -> tuple[Entry, ...] | None:
    return (term,) if isinstance(term, Entry) else None


def _square(term: Expression) -> tuple[Entry, ...] | None:
    match term:
        case Power(base=Entry() as entry, exponent=Number(value=power)) if power == 2:
            return (entry,)
    return None


def _pair(term: Expression) -> tuple[Entry, ...] | None:
    match term:
        case Product(factors=(Entry() as x, Entry() as y)):
            return x, y
    return None


def _step(last: Cell, cell: Cell) -> tuple[int, int] | None:
    """The rows and columns from the last cell to this one; None on another sheet."""
    if cell.sheet != last.sheet:
        return None
    return cell.row - last.row, cell.column - last.column


def _way(run: Sequence[Cell]) -> tuple[int, int] | None:
    return _step(run[0], run[1])


# ------------------------------------------------------------------ weights


def constant(entry: Any) -> float | str | None:
    """The number in the cell of one weight, or its formula; None where the entry is masked."""
    if entry is ABSENT:
        return None
    if isinstance(entry, Printed):
        entry = entry.value
    if isinstance(entry, Expression):
        return formula(entry, _nowhere)
    if isinstance(entry, Fraction) and "/" in (text := number(entry)[0]):
        return text
    return float(entry)


def _nowhere(entry: Entry) -> Cell:
    raise ValueError(f"a weight does not refer to {entry.address}")


def refuse_unknown(name: str, tensor: Tensor) -> None:
    """Raises an InputError where an entry of a weight is unknown."""
    if tensor.floats or not any(isinstance(entry, Unknown) for entry in tensor.data.flat):
        return
    raise InputError(
        _("a spreadsheet works out every number, and here a weight is unknown"),
        where=f"weight.{name}",
        hint=_("give this weight a value in the model file"),
    )


def source(weights: Weights, name: str) -> tuple[str, bool] | None:
    """The tensor with the same parameters, and whether it is transposed; None: its own."""
    tensor = weights[name]
    if tensor.same_as is None:
        return None
    original = weights[tensor.same_as]
    if not np.shares_memory(tensor.data, original.data):
        return None
    return tensor.same_as, tensor.data.strides != original.data.strides


def places(tensor: Tensor) -> int:
    """The decimals of a table of weights: those of its longest entry."""
    if tensor.floats:
        return MOST_PLACES
    return max((_places(entry) for entry in tensor.data.flat), default=0)


def _places(entry: Any) -> int:
    if isinstance(entry, Printed):
        return min(entry.places, MOST_PLACES)
    if not isinstance(entry, Fraction):
        return 0 if entry is ABSENT else MOST_PLACES
    decimal = terminating(abs(entry))
    if decimal is None:
        return MOST_PLACES
    return min(len(decimal.partition(".")[2]), MOST_PLACES)

"""Weights as they were given: their symbol in a formula, their numbers, or a word for all."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from byhand import decimals
from byhand.document.compose.forms import PLACES, rational_cell
from byhand.document.parts import MASKED, Cell
from byhand.expression import Expression, Number, write
from byhand.language import _
from byhand.numbers.base import Printed, Unknown
from byhand.plan import WEIGHT, Step

SYMBOLS = {"bias": "b", "gain": "gain", "slopes": "slope", "frequencies": "θ", "table": "table"}
LONGEST_WEIGHT = 24  # signs of a fraction; a longer one is shown by its decimals too


def symbol_of(step: Step, role: str, address: str) -> str:
    """The name of a weight in its step's formula."""
    match step.op, role:
        case "embed", _:
            return "E" if step.address == "embed.token" else "P"
        case "linear", "weight" if address == WEIGHT + "embed.token":
            return "E"
        case "linear", "weight":
            return "W_head" if step.address == "logits" else f"W_{step.address.rpartition('.')[2]}"
        case "affine", _:
            return role
        case _:
            return SYMBOLS.get(role, role)


def word_instead(entries: list[Any], axes: int) -> str:
    """What a pencil would write instead of the numbers."""
    if axes == 2:
        square = len(entries) == len(entries[0])
        if square and all(x == (i == j) for i, r in enumerate(entries) for j, x in enumerate(r)):
            return _("identity")
        entries = [x for row in entries for x in row]
    if any(isinstance(x, Unknown) for x in entries):
        return _("unknown")
    if all(x == 0 for x in entries):
        return _("zeros")
    return _("ones") if all(x == 1 for x in entries) else ""


def weight_cell(entry: Any) -> Cell:
    """A weight as it was given; an unknown one has no register."""
    match entry:
        case None:
            return MASKED
        case Printed(value=value, places=places):
            sign = "-" if value < 0 else ""
            whole, rest = divmod(abs(value.numerator) * 10**places // value.denominator, 10**places)
            printed = f"{sign}{whole}.{rest:0{places}d}" if places else f"{sign}{whole}"
            return Cell("enclosed", decimal=printed, radius="0." + "0" * places + "5")
        case Fraction() | int():
            number = Number(Fraction(entry))
            long = len(write(number)) > LONGEST_WEIGHT
            return _with_decimals(number) if long else rational_cell(entry)
        case Unknown():
            return MASKED
        case float() | np.generic():  # bfloat16 is no np.floating
            if not isfinite(entry):
                return Cell("rounded", decimal=str(float(entry)))
            return _with_decimals(Number(Fraction(float(entry))))
        case _:
            tree: Expression = entry
            return Cell("named", tree)


def _with_decimals(number: Number) -> Cell:
    """A number too long for a table; by one significant digit where decimals would be zeros."""
    decimal = decimals.places(number.value, PLACES)
    if number.value and not Fraction(decimal):
        decimal = decimals.significant(number.value, 1)
    return Cell("exact", number, decimal=decimal, cut=Fraction(decimal) != number.value)

"""The planted mistake of a sheet: a line of the pass with a slip that students make.

    add          the residual is left out           activate     nothing is set to 0
    scores       the scale 1/√d is forgotten        softmax      not divided by the sum
    center       the mean is added                  mean_square  divided by n − 1
    any other    one number has the wrong sign

Later lines go on from the wrong one, so that one line alone is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np

from byhand.address import read_address
from byhand.document.compose.worksheet.sheet import Blank
from byhand.numbers.base import ABSENT
from byhand.plan import Step
from byhand.tracing import Trace
from byhand.worked import Worked

LEAST = 20  # units of the last place that a planted line must be off by
Row = list[Fraction]


def slips(trace: Trace, lines: Sequence[Blank], decimals: int, random: Random) -> list[Blank]:
    """Lines with wrong numbers as their answers, in a random order: each is a possible mistake.

    `trace` is in pencil numbers of so many decimals.
    """
    found = []
    for blank in lines:
        row = _slipped(trace, blank, decimals, random)
        right = [Fraction(answer) for answer in blank.answers]
        unit = Fraction(1, 10**decimals)
        if row is not None and max(abs(a - b) for a, b in zip(row, right, strict=True)) >= (
            LEAST * unit
        ):
            wrong = tuple(_text(value, decimals) for value in row)
            found.append(Blank(blank.address, blank.kind, blank.places, wrong, blank.row))
    random.shuffle(found)
    return found


def planted(wrong: Blank) -> Callable[[Worked], Worked]:
    """What puts the numbers of a wrong line in the place of the right ones."""
    numbers = dict(zip(wrong.places, map(Fraction, wrong.answers), strict=True))
    name = read_address(wrong.places[0]).name

    def revise(worked: Worked) -> Worked:
        if worked.address != name or worked.missing is not None:
            return worked
        value = np.array(worked.value, dtype=object)
        for place, number in numbers.items():
            value[read_address(place).index] = number
        return Worked(worked.step, value, worked.numbers, worked.notes)

    return revise


# ------------------------------------------------------------------ one slip for each operation


def _slipped(trace: Trace, blank: Blank, decimals: int, random: Random) -> Row | None:
    step = trace.plan[read_address(blank.places[0]).name]
    right = [Fraction(answer) for answer in blank.answers]
    make = _SLIPS.get(step.op)
    row = None if make is None else make(trace, step, blank, right)
    if row is None:
        row = _sign(right, random)
    return None if row is None else [_rounded(value, decimals) for value in row]


def _beside(trace: Trace, step: Step, blank: Blank) -> Mapping[str, Row]:
    """Role → the numbers of an input that stand at the places of a line."""
    found = {}
    for role, read in step.inputs.items():
        if read in trace.plan.known and trace.plan[read].shape == step.shape:
            entries = [trace[f"{read}[{place.partition('[')[2]}"] for place in blank.places]
            if all(entry is not ABSENT for entry in entries):
                found[role] = [Fraction(entry) for entry in entries]
    return found


def _without_residual(trace: Trace, step: Step, blank: Blank, right: Row) -> Row | None:
    rows = list(_beside(trace, step, blank).values())
    return rows[-1] if len(rows) == 2 else None


def _not_bent(trace: Trace, step: Step, blank: Blank, right: Row) -> Row | None:
    return next(iter(_beside(trace, step, blank).values()), None)


def _not_scaled(trace: Trace, step: Step, blank: Blank, right: Row) -> Row | None:
    width = trace.plan[step.inputs["q"]].shape[-1]
    root = Fraction(Decimal(width).sqrt())
    return [value * root for value in right]


def _not_shared(trace: Trace, step: Step, blank: Blank, right: Row) -> Row | None:
    rows = list(_beside(trace, step, blank).values())
    return [Fraction(Decimal(float(x)).exp()) for x in rows[0]] if rows else None


def _mean_added(trace: Trace, step: Step, blank: Blank, right: Row) -> Row | None:
    rows = list(_beside(trace, step, blank).values())
    if not rows:
        return None
    return [2 * x - value for x, value in zip(rows[0], right, strict=True)]


def _one_less(trace: Trace, step: Step, blank: Blank, right: Row) -> Row | None:
    width = trace.plan[step.inputs["x"]].shape[-1] if "x" in step.inputs else 1
    return [value * width / (width - 1) for value in right] if width > 1 else None


def _sign(right: Row, random: Random) -> Row | None:
    places = [place for place, value in enumerate(right) if value]
    if not places:
        return None
    at = max(places, key=lambda place: (abs(right[place]), random.random()))
    return [-value if place == at else value for place, value in enumerate(right)]


_SLIPS: Mapping[str, Callable[[Trace, Step, Blank, Row], Row | None]] = {
    "add": _without_residual,
    "activate": _not_bent,
    "scores": _not_scaled,
    "softmax": _not_shared,
    "center": _mean_added,
    "mean_square": _one_less,
}


def _rounded(value: Fraction, decimals: int) -> Fraction:
    """Rounded half away from zero, as a pencil does."""
    scaled = abs(value) * 10**decimals
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Fraction(whole if value >= 0 else -whole, 10**decimals)


def _text(value: Fraction, decimals: int) -> str:
    return f"{'-' if value < 0 else ''}{abs(float(value)):.{decimals}f}"

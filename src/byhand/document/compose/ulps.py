"""Errors in units of the last place, as text: numbers, and a table with a bar for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from math import ceil, floor, inf, isfinite, log2, log10
from typing import Any

from byhand.document.compose.listing import INDENT
from byhand.document.media.terminal.ink import padded, width_of
from byhand.document.words import whole
from byhand.language import _
from byhand.numbers.written import LONGEST

EIGHTHS = " ▏▎▍▌▋▊▉"
LONGEST_BAR = 10  # columns
HUNDREDTH, LITTLE = 0.01, "<0.01"


def ulps(error: float) -> str:
    """An error in ulps, rounded up, but for the little that makes it a proven bound."""
    return _written(error * (1 - 2.0**-30), ceil)


def ulps_below(error: float) -> str:
    """A lower bound of an error in ulps, rounded down."""
    return _written(error, floor)


def at_least(error: float) -> str:
    """What is proven of an error, where it may be larger."""
    return f"≥ {ulps_below(error)}" if error >= HUNDREDTH else "> 0"


def _written(error: float, to_whole: Callable[[float], int]) -> str:
    if not isfinite(error):
        return "∞"
    if error < HUNDREDTH:
        return LITTLE if error else "0"
    if error < 10:
        return f"{to_whole(error * 100) / 100:.2f}"
    if error < 100_000:
        return whole(to_whole(error))
    unit = 10 ** (floor(log10(error)) - 1)
    return f"{to_whole(error / unit) * unit:.1e}".replace("e+0", "e").replace("e+", "e")


def same(least: float, most: float) -> bool:
    """Whether two bounds of an error say the same of it."""
    return ulps(most) in (ulps(least), LITTLE)


def bounded(least: float, most: float) -> str:
    """An error that is known to lie between two; ? where nothing is known of it."""
    if same(least, most):
        return ulps(most)
    if least >= HUNDREDTH:
        return at_least(least)
    return f"≤ {ulps(most)}" if isfinite(most) else at_least(least) if least > 0 else "?"


def as_text(found: Any) -> str:
    """The shortest decimal that reads back to the float, written as proven digits are."""
    number = Decimal(str(found))
    if not number.is_finite():
        return str(found)
    if not number:
        return "0"
    exponent = number.as_tuple().exponent
    if -6 < number.adjusted() < LONGEST and int(exponent) <= 0:  # zeros would look like digits
        text = f"{number:f}"
        return text.removesuffix(".0")
    sign, digits, _exponent = number.normalize().as_tuple()
    first, *rest = map(str, digits)
    mantissa = f"{first}.{''.join(rest)}" if rest else first
    return f"{'-' * sign}{mantissa}e{number.adjusted()}"


def right_digits(count: float) -> str:
    """How many digits are right, rounded down."""
    return f"{floor(count * 10) / 10:.1f}" if isfinite(count) else _("all")


class Grid:
    """The columns of the table: steps and places to the left, numbers to the right, then a bar.

    A bar grows with the logarithm of the error: by a column when it doubles, or by less where some
    errors are very large.  On a narrow page bars are left out, and a step has a line of its own.
    """

    def __init__(self, rows: Sequence[Sequence[str]], errors: Sequence[float], width: int) -> None:
        name, *others = (max(map(width_of, column)) for column in zip(*rows, strict=True))
        self.name, self.others = name, others
        used = len(INDENT) + name + sum(len(INDENT) + other for other in others)
        self.broken = used > width
        self.longest = min(LONGEST_BAR, width - used - len(INDENT))
        largest = max((log2(1 + error) for error in errors if isfinite(error)), default=0)
        self.scale = min(1, self.longest / largest) if largest else 1

    def lines(self, row: Sequence[str], error: float = 0) -> Iterator[str]:
        """One step, with the bar of its error."""
        name, *others = row
        numbers = INDENT.join(
            padded(text, room) if place == 1 else text.rjust(room)
            for place, (text, room) in enumerate(zip(others, self.others, strict=True))
        )
        if self.broken:
            yield INDENT + name
            yield (INDENT * 3 + numbers).rstrip()
        else:
            line = INDENT + padded(name, self.name) + INDENT + numbers
            yield (line + INDENT + self.bar(error)).rstrip()

    def bar(self, error: float) -> str:
        if self.longest < 1:
            return ""
        length = self.longest if error == inf else self.scale * log2(1 + error)
        full, part = divmod(round(8 * length), 8)
        return ("█" * full + EIGHTHS[part]).rstrip()

"""Numbers and lists of places in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10

MOST_NAMED = 6


def told(value: float, sure: float = 0.0) -> str:
    """A number that was read off a claim, with as many digits as are known of it, at most six."""
    digits = 6
    if sure > 0 and isfinite(sure) and value and isfinite(value):
        digits = min(6, max(2, floor(log10(abs(value))) - floor(log10(sure)) + 1))
    return f"{value:.{digits}g}"


def numbered(places: Sequence[object]) -> str:
    """A list of places: the first few, or a range where they follow one another."""
    if len(places) > 2 and all(isinstance(each, int) for each in places):
        numbers = [each for each in places if isinstance(each, int)]
        if numbers == list(range(numbers[0], numbers[-1] + 1)):
            return f"{numbers[0]}…{numbers[-1]}"
    shown = ", ".join(map(str, places[:MOST_NAMED]))
    return shown + ", …" * (len(places) > MOST_NAMED)

"""Floats that a program printed in full, told from decimals that a person wrote.

`x.tolist()` in a JSON gives 0.30000001192092896 for a float32: seventeen digits, of which a person
would mean each.  They are the number itself, not a rounding of something finer, and how exactly it
was worked out, its format tells.  Three kinds of printing are known by what chance would not do:

    in full       0.30000001192092896   15 digits or more, and the shortest that give this float64
    all of them   0.30078125            every digit of a binary fraction, as of a bfloat16
    of a float32  0.30000001            8 digits or more, and the shortest that give this float32

The first two are of a float32 where all of the numbers are.  Fewer digits are decimals: what is
written by hand is never taken for floats on the strength of a few round numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt

Like = Callable[[Decimal], bool]
FULL, SINGLE = 15, 8  # digits from which on a number may be a float64, or a float32, in full
PLACES = 7  # behind the point, from which on a decimal is no binary fraction by chance: 5⁻⁷
SOME = 8  # numbers that must look so, where one alone would prove little
MANY_DIGITS = 9  # characters: no shorter text has as many digits
NOT_FINITE = {
    "nan": np.nan, "inf": np.inf, "infinity": np.inf, "-inf": -np.inf, "-infinity": -np.inf,
}  # fmt: skip


def floats_of(texts: Sequence[str]) -> tuple[npt.NDArray[np.float64], str] | None:
    """The floats that a program printed, and their format; None where a person may have written.

    >>> floats_of(["0.30000001192092896", "1.0"])
    (array([0.30000001, 1.        ]), 'float32')
    >>> floats_of(["0.1", "0.30000000000000004"])
    (array([0.1, 0.3]), 'float64')
    >>> floats_of(["0.30", "1.8313"])
    """
    if not any(len(text) >= MANY_DIGITS for text in texts):
        return None
    read = [_number(text) for text in texts]
    if any(each is None for each in read):
        return None
    written = [each for each in read if isinstance(each, Decimal) and each != each.to_integral()]
    values = np.asarray([float(each) for each in read if each is not None])
    with np.errstate(over="ignore"):
        as_single = values.astype(np.float32).astype(np.float64)
    single = np.array_equal(as_single, values, True)
    if _all(written, _shortest, FULL, 1) or _all(written, _binary, PLACES, SOME):
        return values, "float32" if single else "float64"
    if _all(written, _shortest_single, SINGLE, SOME):
        return as_single, "float32"
    return None


def _number(text: str) -> Decimal | float | None:
    """A plain decimal, or what floats have besides numbers; None for anything else."""
    text = text.strip().lower().replace(".nan", "nan").replace(".inf", "inf")
    if text in NOT_FINITE:
        return NOT_FINITE[text]
    if not text or not set(text) <= set("+-0123456789.e"):
        return None
    try:
        found = Decimal(text).normalize()
    except ArithmeticError:
        return None
    return found if abs(found.adjusted()) < 400 else None  # float64 ends at 308


def _all(numbers: Sequence[Decimal], alike: Like, long: int, some: int) -> bool:
    """Whether all numbers look alike, and enough of them, half at least, have many digits."""
    measure = _places if alike is _binary else _digits
    count = sum(measure(number) >= long for number in numbers)
    return count >= some and 2 * count >= len(numbers) and all(map(alike, numbers))


def _digits(number: Decimal) -> int:
    return len(number.as_tuple().digits)


def _places(number: Decimal) -> int:
    return -int(number.as_tuple().exponent)


def _shortest(number: Decimal) -> bool:
    """Whether it is what Python writes for the nearest float64."""
    return Decimal(repr(float(number))) == number


def _shortest_single(number: Decimal) -> bool:
    """Whether it is what NumPy writes for the nearest float32."""
    return Decimal(str(np.float32(float(number)))) == number


def _binary(number: Decimal) -> bool:
    """Whether a float is this number, to the last digit."""
    return Decimal(float(number)) == number

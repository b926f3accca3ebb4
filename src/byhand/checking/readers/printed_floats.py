"""Floats that a program printed in full, told from decimals that a person wrote.

`x.tolist()` in a JSON gives 0.30000001192092896 for a float32, with seventeen digits.  Such a
decimal is the float itself, not a rounding of a finer number, and its format gives the precision.
Three kinds of printing are recognised, by digits that would hardly arise by chance:

    in full       0.30000001192092896   15 digits or more, and the shortest that give this float64
    all of them   0.30078125            every digit of a binary fraction, as of a bfloat16
    of a float32  0.30000001            8 digits or more, and the shortest that give this float32

The first two count as float32 where all of the numbers are float32.  Numbers with fewer digits are
handwritten decimals: a few round numbers are no evidence of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt

Like = Callable[[Decimal], bool]
FULL, SINGLE = 15, 8  # least digits of a float64, or a float32, printed in full
PLACES = 7  # least decimals that make a binary fraction by chance unlikely (5⁻⁷)
SOME = 8  # least numbers of a kind, where one alone proves little
MANY_DIGITS = 9  # characters: shorter texts have fewer digits
NOT_FINITE = {
    "nan": np.nan, "inf": np.inf, "infinity": np.inf, "-inf": -np.inf, "-infinity": -np.inf,
}  # fmt: skip


def floats_of(texts: Sequence[str]) -> tuple[npt.NDArray[np.float64], str] | None:
    """The floats that a program printed, and their format; None if a person may have written them.

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
    """A plain decimal, an infinity or NaN; None for any other text."""
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
    """Whether all numbers pass `alike`, and enough of them (at least half) pass `long`."""
    measure = _places if alike is _binary else _digits
    count = sum(measure(number) >= long for number in numbers)
    return count >= some and 2 * count >= len(numbers) and all(map(alike, numbers))


def _digits(number: Decimal) -> int:
    return len(number.as_tuple().digits)


def _places(number: Decimal) -> int:
    return -int(number.as_tuple().exponent)


def _shortest(number: Decimal) -> bool:
    """Whether the number is Python's shortest decimal of a float64."""
    return Decimal(repr(float(number))) == number


def _shortest_single(number: Decimal) -> bool:
    """Whether the number is NumPy's shortest decimal of a float32."""
    return Decimal(str(np.float32(float(number)))) == number


def _binary(number: Decimal) -> bool:
    """Whether a float64 equals this number exactly."""
    return Decimal(float(number)) == number

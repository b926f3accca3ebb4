"""One number as people write it: 0.30, ~57k, 1/3, 0.2 to 0.4, or a blank.

The spelling shows the intended precision, so each number has a slack: how far the claimant's number
may be from the written one.

    0.30         rounded to two decimals: 0.295 to 0.305     57,344   a whole number, see below
    1.5e-7       the same in units of 1e-8                   57k      in units of a thousand
    15.06%       0.1506, to four decimals                    ~57k     one unit of the last place
    1/3, sqrt(2) meant as it stands: no slack                0.2 to 0.4   anything between the two
    _ ? null     left blank: nothing is claimed              masked   never attended to

A whole number among decimals has as many decimals as they (people leave out .00); alone it is
exact.  `handwriting` and `matches` decide that, since they know the numbers beside it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.files.scalars import value_of
from byhand.files.tree import Node, Scalar
from byhand.language import _

BLANKS = ("", "_", "?", "null", "~")
MASKED = "masked"
HALF = Fraction(1, 2)
LONGEST_EXPONENT = 400  # float64 ends at 308

_POWERS = {"": 0, "%": -2, "k": 3, "K": 3, "M": 6, "B": 9}
_DECIMAL = re.compile(
    r"(?P<sign>[-+]?)(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{0,400})"
    r"(?:\.(?P<places>[0-9]{0,400}))?(?:[eE](?P<power>[-+]?[0-9]{1,3}))?\s?(?P<suffix>[kKMB%]?)"
)
_WHOLE = re.compile(r"[-+]?[0-9,]+")
_NOT_A_NUMBER = re.compile(r"[-+]?\.?(?:nan|inf|infinity|∞)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"~?[-+]?[0-9]+,[0-9]+%?")
_BETWEEN = re.compile(r"\s+to\s+")


@dataclass(frozen=True, slots=True)
class Numeral:
    """A written number: the intended one lies within `value` ± `slack`.

    A masked entry is -∞; of a blank, `claimed` is False.  `whole` means written without decimals:
    the numbers beside it determine its precision.
    """

    value: float
    slack: float = 0.0
    claimed: bool = True
    whole: bool = False


def rounded_up(value: Fraction) -> float:
    """The smallest float that is not below the value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


# Most numbers of a large file are plain decimals: they are read without fractions.
_PLAIN = re.compile(r"[-+]?[0-9]{1,15}\.([0-9]{1,20})")
_HALF_UNITS = tuple(rounded_up(HALF / 10**places) for places in range(21))

BLANK = Numeral(0.0, 0.0, False)


def blank(node: Node) -> bool:
    """Whether the scalar is a blank."""
    return isinstance(node, Scalar) and node.text.strip() in BLANKS


def numeral(node: Node) -> Numeral:
    """The number that a scalar of a claims file means; an error with its line if it is none."""
    if not isinstance(node, Scalar):
        raise node.wrong(_("a number is missing"), expected=_("a number"))
    if (plain := _PLAIN.fullmatch(node.text)) is not None:
        value = float(node.text)  # correctly rounded: the decimal is within half a unit of it
        covered = _HALF_UNITS[len(plain[1])] + 0.5 * math.ulp(value)
        return Numeral(value, math.nextafter(covered, math.inf))
    text = node.text.replace("−", "-").strip()
    if text in BLANKS:
        return BLANK
    if text == MASKED:
        return Numeral(-math.inf)
    try:
        read = _decimal(text)
    except OverflowError:
        raise _too_large(node) from None
    return read or _other(replace(node, text=text))


def exact_numeral(node: Node) -> Numeral:
    """The number of a scalar as it stands: 0.33 is 33/100 and nothing near it."""
    if not isinstance(node, Scalar):
        raise node.wrong(_("a number is missing"), expected=_("a number"))
    text = node.text.replace("−", "-").strip()
    if text in BLANKS:
        return BLANK
    if text == MASKED:
        return Numeral(-math.inf)
    try:
        return _exactly(replace(node, text=text))[2]
    except OverflowError:
        raise _too_large(node) from None


def _decimal(text: str) -> Numeral | None:
    """A decimal, with half a unit of its last place as slack; None for other texts."""
    about = text[:1] in ("~", "≈")
    found = _digits(text[1:].strip() if about else text)
    if found is None:
        return None
    value, unit = found
    read = _within(value, unit if about else unit * HALF)
    return replace(read, whole=True) if _WHOLE.fullmatch(text) else read


def _digits(text: str) -> tuple[Fraction, Fraction] | None:
    """The value of a decimal, and the unit of its last place."""
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match["whole"] or match["places"]):
        return None
    places = match["places"] or ""
    digits = int(match["whole"].replace(",", "") + places)
    power = int(match["power"] or 0) + _POWERS[match["suffix"]] - len(places)
    if power > LONGEST_EXPONENT:
        raise OverflowError
    unit = Fraction(10) ** power
    return (-digits if match["sign"] == "-" else digits) * unit, unit


def _other(node: Scalar) -> Numeral:
    """A range, or an expression, which is exact."""
    if _NOT_A_NUMBER.fullmatch(node.text):
        raise node.wrong(
            _("{found} is not a number").format(found=node.text),
            expected=_("a finite number"),
            found=node.text,
            hint=_("an entry that is never attended to is written {word}").format(word=MASKED),
        )
    if _DECIMAL_COMMA.fullmatch(node.text):
        raise node.wrong(
            _("{found} is not a number").format(found=node.text),
            expected=_("a number such as {examples}").format(examples="0.30, 57,344"),
            found=node.text,
            hint=_("decimals stand behind a point: {number}").format(
                number=node.text.replace(",", ".")
            ),
        )
    ends = _BETWEEN.split(node.text)
    try:
        if len(ends) == 2:
            return _between(node, *(_exactly(replace(node, text=end.strip())) for end in ends))
        return _exactly(node)[2]
    except OverflowError:
        raise _too_large(node) from None


def _between(
    node: Scalar, low: tuple[Fraction, Fraction, Numeral], high: tuple[Fraction, Fraction, Numeral]
) -> Numeral:
    """A numeral that covers all numbers between two ends, with the ends' own slack."""
    if low[0] > high[1]:
        raise node.wrong(
            _("the range ends before it begins"),
            expected=_("the smaller number first, such as 0.2 to 0.4"),
            found=node.text,
        )
    return _within((low[0] + high[1]) * HALF, (high[1] - low[0]) * HALF)


def _exactly(node: Scalar) -> tuple[Fraction, Fraction, Numeral]:
    """The exact number of a text: two rationals around it, and its numeral."""
    if (found := _digits(node.text)) is not None:
        return found[0], found[0], _within(found[0], Fraction(0))
    value = value_of(node)
    if isinstance(value, Fraction):
        return value, value, _within(value, Fraction(0))
    near = _nearest(value)
    if not math.isfinite(near):
        raise OverflowError
    slack = math.ulp(near)  # the true value is nearer than this
    middle, radius = Fraction(near), Fraction(slack)
    return middle - radius, middle + radius, Numeral(near, slack)


def _nearest(tree: Expression) -> float:
    from byhand.numbers.exact import Exact  # only now: decimals do not need it

    return float(Exact().scalar(tree))


def _within(value: Fraction, slack: Fraction) -> Numeral:
    """The float nearest to the value, with a slack that covers the rounding."""
    near = float(value)
    return Numeral(near, rounded_up(slack + abs(value - Fraction(near))))


def _too_large(node: Scalar) -> InputError:
    return node.wrong(_("the number is too large"), expected=_("a number that float64 holds"))

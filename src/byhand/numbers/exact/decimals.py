"""Decimals and floats of values, proven to be as near as their docstrings say."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx, fmpq, fmpz

from byhand.errors import Undecided
from byhand.language import _
from byhand.numbers.base import nearest_float
from byhand.numbers.written import LONGEST, at_point, point, with_digits

if TYPE_CHECKING:
    from byhand.numbers.exact.value import Value

HALF = fmpq(1, 2)
BEYOND = Fraction(2) ** 1024  # infinite in float64
VANISHING = Fraction(1, 2**1075)  # below this, the nearest float64 is 0


def nearest_integer(q: fmpq) -> fmpz:
    """The nearest integer; a half goes away from zero."""
    return (q + HALF).floor() if q >= 0 else -((HALF - q).floor())


def scaled_ball(v: Value, shift: fmpz, bits: int) -> arb:
    """Returns a ball that contains v · 10^shift."""
    if abs(shift) < 5000:
        return v.ball(bits) * (arb(10) ** int(shift))
    ball = v.ball(bits)
    size = (abs(ball).log() + arb(shift) * arb(10).log()).exp()
    return -size if ball < 0 else size


def scaled_to_integer(v: Value, shift: fmpz, *, exactly: bool) -> fmpz:
    """The integer nearest to v · 10^shift, a half away from zero.

    Where that cannot be proven: an integer less than 1 away, or Undecided if `exactly` is asked.
    """
    if v.num is None:
        return nearest_integer(v.q * fmpq(10) ** int(shift))
    before = ctx.prec
    bits = 64
    try:
        while True:
            ctx.prec = bits
            ball = scaled_ball(v, shift, bits)
            down = -((arb(HALF) - ball).floor()) if ball < 0 else (ball + arb(HALF)).floor()
            found = down.unique_fmpz()
            if found is not None:
                return found
            last = bits >= v.space.limits.bits or (bits >= 128 and v.register == "enclosed")
            if last or bits == 256:
                halves = (2 * ball).mid().floor().unique_fmpz() if ball.is_finite() else None
                for near in () if halves is None else (halves, halves + 1):
                    # v · 10^shift is near this half of an integer, so it rounds to a neighbour
                    if near % 2 and abs(ball - arb(fmpq(near, 2))) < arb(HALF):
                        tie = settled_tie(v, shift, fmpq(near, 2))
                        if tie is not None:
                            return tie
                if last and not exactly and halves is not None:
                    close = (halves + 1) // 2
                    if abs(ball - arb(close)) < 1:
                        return close
            if last:
                raise Undecided(
                    _("the value is not known narrowly enough for these decimals"),
                    found=ball.str(6),
                    hint=_("ask for fewer decimals, or for the interval"),
                )
            bits *= 2
    finally:
        ctx.prec = before


def settled_tie(v: Value, shift: fmpz, candidate: fmpq) -> fmpz | None:
    """The rounding of v · 10^shift, which is near this half; None where algebra does not say."""
    if abs(shift) >= 5000:
        return None
    half = v.space.plain(candidate / fmpq(10) ** int(shift))
    try:
        side = v.space.compare(v, half)
    except Undecided:
        return None
    if side == 0:
        return nearest_integer(candidate)
    return candidate.floor() if side < 0 else candidate.ceil()


def decimal(v: Value, places: int) -> str:
    """v with so many decimals, within one unit of the last place (see Value.places)."""
    if not _can_be_written_out(v):
        return significant(v, places + 1)
    return point(scaled_to_integer(v, fmpz(places), exactly=False), places)


def _can_be_written_out(v: Value) -> bool:
    """Whether v has no more digits before the point than are ever shown.

    Where large numbers cancel, a coarse enclosure is large, and a finer one decides.
    """
    bits, longest = 64, arb(10) ** LONGEST
    while bits <= v.space.limits.bits:
        ball = v.ball(bits)
        if ball.abs_upper() < longest:
            return True
        if ball.abs_lower() > 1:
            return False
        bits *= 4
    return False


def rounded(v: Value, places: int) -> Fraction:
    """v rounded to so many decimals, half away from zero: proven, or Undecided."""
    return Fraction(int(scaled_to_integer(v, fmpz(places), exactly=True)), 10**places)


def significant(v: Value, digits: int) -> str:
    """v with so many significant digits, within one unit of the last."""
    if v.ball(64).contains(0) and v.space.sign(v) == 0:
        return "0"
    exponent = decimal_exponent(v)
    while True:
        n = scaled_to_integer(v, digits - 1 - exponent, exactly=False)
        if abs(n) < fmpz(10) ** digits:
            break
        exponent += 1
    return with_digits(n, digits, int(exponent))


def decimal_exponent(v: Value) -> fmpz:
    """k with 10^k ≤ |v| < 10^(k+2), found from below."""
    before = ctx.prec
    bits = 64
    try:
        while True:
            ctx.prec = bits
            size = abs(v.ball(bits)).log() / arb(10).log()
            if size.is_finite() and size.rad() < arb(fmpq(1, 4)):
                found = size.lower().floor().unique_fmpz()
                if found is not None:
                    return found
            if bits >= v.space.limits.bits or (bits >= 128 and v.register == "enclosed"):
                raise Undecided(
                    _("the value is not separated from 0, so it has no first digit"),
                    found=v.ball(bits).str(6),
                )
            bits *= 2
    finally:
        ctx.prec = before


def interval(v: Value, places: int) -> tuple[str, str]:
    """(middle, radius) as decimals: v lies within radius of middle; ∞ where nothing is known."""
    exactly = sum_of_printed(v)
    if exactly is not None and abs(exactly[0]) < fmpq(10) ** LONGEST:
        center, radius = exactly
        shown = nearest_integer(center * fmpq(10) ** places)
        return point(shown, places), upward(radius + abs(center - fmpq(shown, fmpz(10) ** places)))
    before = ctx.prec
    ctx.prec = 192
    try:
        ball = v.ball(192)
        if not ball.is_finite():
            return "0", "∞"
        large = max(decimal_size(ball.abs_upper()) - LONGEST, 0)  # digits left out before the point
        unit = arb(10) ** (places - large)
        middle = (ball.mid() * unit + arb(HALF)).mid().floor().unique_fmpz()
        assert middle is not None
        far = (ball - arb(middle) / unit).abs_upper()
        if far != 0 and far < arb(10) ** -LONGEST:
            far = arb(10) ** -LONGEST  # a larger radius is valid too
        shift = 1 - decimal_size(far.upper())
        above = (far * arb(10) ** shift).upper().ceil().unique_fmpz()
        assert above is not None
        return at_point(middle, places - large), at_point(above, shift)
    finally:
        ctx.prec = before


def sum_of_printed(v: Value) -> tuple[fmpq, fmpq] | None:
    """(middle, radius), where v is a rational plus rational multiples of printed numbers."""
    if v.num is None or v.den is None:
        return v.q, fmpq(0)
    if not v.den.is_one():
        return None
    middle = radius = fmpq(0)
    for exponents, c in v.num.terms():
        here = [v.space.atoms[i] for i, e in zip(v.atoms, exponents, strict=True) if e]
        if not here:
            middle += c
        elif len(here) == 1 and sum(exponents) == 1 and here[0].kind == "printed":
            assert here[0].argument is not None
            assert here[0].radius is not None
            middle += c * here[0].argument.q
            radius += abs(c) * here[0].radius
        else:
            return None
    return v.q * middle, abs(v.q) * radius


def upward(x: fmpq) -> str:
    """A decimal of at most two significant digits, not below x ≥ 0."""
    if x == 0:
        return "0"
    shift = 1 - decimal_size(arb(x))
    digits = (x * fmpq(10) ** shift).ceil()
    while digits % 10 == 0:
        digits, shift = digits // 10, shift - 1
    return at_point(digits, shift)


def decimal_size(x: arb) -> int:
    """k such that the exact non-negative x is near 10^k, not much larger; 0 for zero."""
    if x == 0:
        return 0
    found = (x.log() / arb(10).log()).mid().floor().unique_fmpz()
    return 0 if found is None else int(found)


def shown(v: Value, digits: int = 6) -> str:
    """A short text for people: significant digits, or middle ± radius where it is enclosed."""
    try:
        return significant(v, digits)
    except Undecided:
        return " ± ".join(interval(v, digits))


def float_of(entry: Value) -> float:
    """The float64 nearest to a value; of an enclosed one, nearest to its middle.

    Proven wherever the value can be separated from the middle between two floats.
    """
    if (fraction := entry.fraction) is not None:
        return nearest_float(fraction)
    if entry.register == "enclosed":
        return nearest_float(Fraction(entry.interval(20)[0]))
    if not -BEYOND < entry < BEYOND:  # told apart first: e^(e^80) has more digits than fit anywhere
        return float("inf") if entry > 0 else float("-inf")
    if -VANISHING < entry < VANISHING:  # also what is not separated from 0
        return 0.0
    for digits in (20, 40, 80):
        text = entry.significant(digits)
        middle, unit = Fraction(text), _last_unit(text)
        low, high = nearest_float(middle - unit), nearest_float(middle + unit)
        if low == high:
            return low
    return nearest_float(middle)


def _last_unit(text: str) -> Fraction:
    """One unit of the last place of a decimal such as -0.250 or 1.5e-7."""
    mantissa, _e, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(exponent or 0) - places)

"""Sines and cosines of positions on ranges: tables made from rounded angles, and RoPE."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import log

import numpy as np

from byhand.expression import Expression
from byhand.numbers.allowed.admitting import admitted, constant
from byhand.numbers.allowed.precisions import OWN, ULPS, Precision
from byhand.numbers.allowed.ranges import Data, Origin, Range, wide
from byhand.numbers.allowed.rounding import Rounding, quiet
from byhand.numbers.base import Array
from byhand.numbers.floats.angles import frequencies_of, turns

Tables = tuple[Data, Data, Data, Data]  # cos, sin, and the errors of each
POWER = 10.0  # roundings of base^(-2i/width) beside those of its exponent: a power and a quotient
SCALED = 24.0  # further ones of frequencies that an implementation scales before it uses them
BLENDED = 4.0  # times its error a frequency is off where it is blended by a share that it decides


class Positions(Rounding):
    """sinusoid, constants, rotate."""

    @quiet(all="ignore")
    def admit_frequencies(self, data: Array) -> Range:
        """The frequencies as float64 ranges, whatever the format."""
        return data if isinstance(data, Range) else admitted(data, None)

    @quiet(all="ignore")
    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Range:
        cos, sin, r_cos, r_sin = _tables(self.precision, tuple(positions), width, base, None)
        mid, rad = np.empty((2, len(positions), width))
        first, second = slice(0, width, 2), slice(1, width, 2)
        if pairing == "half":
            first, second = slice(0, (width + 1) // 2), slice((width + 1) // 2, width)
        mid[:, first], rad[:, first] = sin, r_sin
        mid[:, second], rad[:, second] = cos[:, : width // 2], r_cos[:, : width // 2]
        return self._stored(mid, rad, 0.05 * rad)

    @quiet(all="ignore")
    def constants(self, *, values: Sequence[Expression]) -> Range:
        """Angles per position, as an implementation works them out of the base and a rule."""
        given: Range = super().constants(values=values)
        rates = np.abs(wide(given.mid))
        logs = np.abs(np.log(np.where(rates > 0, rates, 1.0)))  # 2i/width·ln base, and a factor's
        unit = self.precision.tables.half + OWN
        rad = rates * ((BLENDED * (2 * logs + POWER) + SCALED) * unit)
        radius = given.radius()
        rad = rad if radius is None else rad + radius
        return Range(wide(given.mid), rad, 0.05 * rad, origin=Origin(rule=True))

    @quiet(all="ignore")
    def rotate(
        self,
        x: Array,
        *,
        frequencies: Array | None = None,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str,
        magnitude: Expression | None = None,
    ) -> Range:
        x = self._unrounded(x)
        given = None if frequencies is None else self.admit_frequencies(frequencies)
        tables = _tables(self.precision, tuple(positions), width, base, given)
        if magnitude is not None:
            tables = _magnified(self.precision, tables, *constant(magnitude))
        cos, sin, r_cos, r_sin = tables
        if pairing == "half":
            first, second = slice(0, width // 2), slice(width // 2, width)
        else:
            first, second = slice(0, width, 2), slice(1, width, 2)
        data, radius = wide(x.mid), x.radius()
        a, b = data[..., first], data[..., second]
        mid, rad, usual = np.empty((3, *x.shape))
        unit, least = self.precision.work.half, self.precision.work.least
        for here, left, right, r_left, r_right in (
            (first, cos, -sin, r_cos, r_sin),
            (second, sin, cos, r_sin, r_cos),
        ):
            one, other = a * left, b * right
            mid[..., here] = one + other
            sizes = np.abs(one) + np.abs(other)
            off = np.abs(a) * r_left + np.abs(b) * r_right
            # each product is rounded, the sum is stored
            rad[..., here] = off * (1 + unit) + sizes * (unit + 2 * OWN) + 2 * least
            usual[..., here] = sizes * (0.3 * unit) + off * 0.1
            if radius is not None:
                rad[..., here] += (
                    radius[..., first] * (np.abs(left) + r_left)
                    + radius[..., second] * (np.abs(right) + r_right)
                ) * (1 + unit)
            if x.usual is not None:
                moved = np.hypot(x.usual[..., first] * left, x.usual[..., second] * right)
                usual[..., here] = np.hypot(usual[..., here], moved)
        mid[..., width:] = 0.0
        rad[..., width:] = usual[..., width:] = 0.0
        result = self._stored(mid, rad, usual)
        if width < x.shape[-1]:  # the others are unchanged
            assert result.rad is not None
            result.mid[..., width:] = data[..., width:]
            result.rad[..., width:] = 0.0 if radius is None else radius[..., width:]
            if result.usual is not None:
                result.usual[..., width:] = 0.0 if x.usual is None else x.usual[..., width:]
        return result


def _tables(
    p: Precision, positions: tuple[int, ...], width: int, base: Fraction, given: Range | None
) -> Tables:
    """cos and sin of the angles, (pos, width/2) each, and the errors of an implementation's."""
    if given is None:
        return _own_tables(p, positions, width, base)
    known = given.origin is not None and given.origin.rule  # that is worked out with the tables
    return _made(p, positions, width, base, wide(given.mid), None if known else given.radius())


def _magnified(p: Precision, tables: Tables, factor: float, off: float) -> Tables:
    """The tables times a factor, which may itself be rounded; stored before it or after it."""
    cos, sin, r_cos, r_sin = tables
    size = abs(factor)
    kept = p.store.half if p.store.half > p.tables.half else 0.0
    relative = 2 * p.tables.half + kept + off + 4 * OWN
    grown = size * (1 + relative)
    return (
        cos * factor,
        sin * factor,
        r_cos * grown + np.abs(cos) * (size * relative) + p.store.least,
        r_sin * grown + np.abs(sin) * (size * relative) + p.store.least,
    )


@lru_cache(maxsize=16)
def _own_tables(p: Precision, positions: tuple[int, ...], width: int, base: Fraction) -> Tables:
    return _made(p, positions, width, base, None, None)


def _made(
    p: Precision,
    positions: tuple[int, ...],
    width: int,
    base: Fraction,
    given: Data | None,
    radius: Data | None,
) -> Tables:
    cos, sin = turns(positions, width, base, given)
    rates = frequencies_of(base, width) if given is None else given
    places = np.abs(np.asarray(positions, dtype=np.float64))
    angles = np.multiply.outer(places, np.abs(rates))
    # relative errors of a frequency: its exponent's, times ln base, and those of a power; then
    # one of the product with the position
    exponents = np.arange(len(rates)) * (2.0 / width)
    roundings = 2 * abs(log(base)) * exponents + POWER + 1
    if given is not None:
        roundings = BLENDED * roundings + SCALED
    if p.ggml:  # each frequency is the one before it times base^(-2/width), a power
        each = ULPS + 2 + 4 * abs(log(base)) / width
        roundings = np.maximum(roundings, np.arange(len(rates)) * each + POWER + SCALED)
    unit = p.tables.half + OWN  # the implementation's, and our own
    off = angles * (roundings * unit) * (1 + 2**-20)
    if radius is not None:
        off = off + np.multiply.outer(places, radius)
    kept = p.store.half if p.store.half > p.tables.half else 0.0
    itself = ULPS * unit + kept * (1 + ULPS * unit)
    bent = np.square(off) / 2
    r_cos = np.minimum(np.abs(sin) * off + bent, 2.0) * (1 + kept) + np.abs(cos) * itself
    r_sin = np.minimum(np.abs(cos) * off + bent, 2.0) * (1 + kept) + np.abs(sin) * itself
    return cos, sin, r_cos + p.store.least, r_sin + p.store.least

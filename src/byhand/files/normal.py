"""`normal: {std, seed}`: byhand's own random numbers, the same for ever and on every machine.

Entry i of a tensor (in row-major order) is the float32 nearest to

    std · √(-2 ln u₁) · cos(2π u₂),    u₁ = (a + 1)/2⁵³,    u₂ = b/2⁵³

where a and b are the upper 53 bits of outputs 2i and 2i + 1 of SplitMix64, whose state begins at
the first 8 bytes (little-endian) of the SHA-256 of the text `byhand normal <seed> <name>`.  A value
other than 0 is transcendental, so it never lies on a boundary between two floats.  Where float64
cannot decide on which side it lies, balls do.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
Uint64s = npt.NDArray[np.uint64]

SMALLEST_STD, LARGEST_STD = Fraction(1, 2**60), Fraction(2**60)  # nothing overflows
_UNSURE = 1e-12  # relative; the float64 error is below 1e-14


def normal(name: str, shape: tuple[int, ...], std: Fraction, seed: int) -> Float32s:
    """The float32 nearest to each entry's mathematical value."""
    size = int(np.prod(shape, dtype=np.int64))
    u1, u2 = _uniform(name, size, seed)
    rough = float(std) * np.sqrt(-2.0 * np.log(u1)) * _cos_turns(u2)
    low, high = ((rough * (1 + side)).astype(np.float32) for side in (-_UNSURE, _UNSURE))
    for i in np.flatnonzero(low != high):
        low[i] = _placed(std, float(u1[i]), float(u2[i]))
    return low.reshape(shape)


def _uniform(name: str, size: int, seed: int) -> tuple[Float64s, Float64s]:
    """u₁ in (0, 1] and u₂ in [0, 1), multiples of 2^-53."""
    digest = hashlib.sha256(f"byhand normal {seed} {name}".encode()).digest()
    start = np.uint64(int.from_bytes(digest[:8], "little"))
    step = np.arange(1, 2 * size + 1, dtype=np.uint64)
    bits = _mix(start + step * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)
    unit = 2.0**-53
    return (bits[0::2] + np.uint64(1)).astype(np.float64) * unit, bits[1::2].astype(float) * unit


def _mix(z: Uint64s) -> Uint64s:
    """The output function of SplitMix64, modulo 2^64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _cos_turns(u: Float64s) -> Float64s:
    """cos(2πu) to a few units in the last place, also where it is nearly zero.

    4u minus the nearest quarter turn is exact in float64, so no digits are lost to 2π.
    """
    quarter = np.rint(4 * u)
    angle = (4 * u - quarter) * (np.pi / 2)
    turned = np.where(quarter % 2 == 0, np.cos(angle), np.sin(angle))
    return np.where((quarter == 1) | (quarter == 2), -turned, turned)


def _placed(std: Fraction, u1: float, u2: float) -> np.float32:
    """The float32 nearest to the value, by balls narrow enough to lie on one side of a boundary."""
    from flint import arb, ctx, fmpq

    before = ctx.prec
    try:
        for precision in (100, 200, 400, 800, 1600):
            ctx.prec = precision
            factor = arb(fmpq(std.numerator, std.denominator))
            turn = (2 * arb(u2)).cos_pi()
            value = factor * (-2 * arb(u1).log()).sqrt() * turn
            low, high = (_to_float32(end) for end in (value.lower(), value.upper()))
            if low == high:
                return low
    finally:
        ctx.prec = before
    raise AssertionError("a transcendental number lies on no boundary")


def _to_float32(end: object) -> np.float32:
    """The float32 nearest to an exact dyadic number, ties to even."""
    from flint import arb

    assert isinstance(end, arb)
    mantissa, exponent = (int(part) for part in end.mid().man_exp())
    exact = Fraction(mantissa) * Fraction(2) ** exponent
    guess = np.float32(float(exact))
    around = [guess, *(np.nextafter(guess, np.float32(side)) for side in (-np.inf, np.inf))]
    return min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))

"""Position codes: sinusoids that are added, and RoPE, which turns pairs of entries.

A turn keeps lengths, so the radius stays; a sine or cosine that is off by t moves a pair by at most
√2·t times its length.  With a magnitude m, sines and cosines are m times as large: the radius of
the turned entries is m times as large, that of the others stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs import angles, arithmetic, known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import HALF, PRODUCT, Digits
from byhand.numbers.enclosed.limbs.constants import Constant
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.radii import plus, spread, times
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, Origin, by_entry, constant
from byhand.numbers.enclosed.limbs.weights import torch_devices

RATES = "constants"  # the kind of values that are angles per position
FINEST = -836  # the grid of sines and cosines, where values are huge and digits many


def sinusoid(
    system: System, positions: Sequence[int], width: int, base: Fraction, pairing: str
) -> Enclosed:
    """Sines and cosines of the positions, to be added to the stream."""
    low = -system.bits
    like = _like(system)
    cos, sin, off = angles.shared_turns(positions, width, base, None, low, like)
    engine = cos.engine
    if pairing == "half":
        digits = arithmetic.stack([sin, cos], axis=1)
    else:
        both = [part.reshape(*part.shape, 1) for part in (sin, cos)]
        digits = arithmetic.stack(both, axis=2).reshape(len(positions), width)
    ball = constant(digits, digits.shape[:-1], math.sqrt(width) * (1 + 2.0**-50) * off)
    return Enclosed(Digits(engine.contiguous(digits.limbs), digits.top), ball)


_likes: dict[str, Array] = {}  # one array for each device: a graph that is recorded copies nothing


def _like(system: System) -> Array:
    """An array of the device that the system works on."""
    here = np.zeros(1)
    if system.device is None:
        return here
    place = str(system.device)
    if place not in _likes:
        _likes[place] = torch_devices().from_numpy(here).to(system.device)
    return _likes[place]


def constants(system: System, values: Sequence[Any]) -> Enclosed:
    """Angles per position; `rotate` reads their trees."""
    digits, off = angles.known_rates(values, system.bits + 64, _like(system))
    box = constant(digits, digits.shape, off)
    return by_entry(digits, box, Origin(RATES, Enclosed(digits), more=tuple(values)))


def _rates(frequencies: Any, furthest: int) -> tuple[Sequence[Any] | None, float]:
    """The angles per position as given, and how far the angle of the furthest position may be off.

    Values of `constants` that lost their trees on the way are read as digits.
    """
    if not isinstance(frequencies, Enclosed):
        return frequencies, 0.0
    if frequencies.origin is not None and frequencies.origin.kind == RATES:
        return frequencies.origin.more, 0.0
    known = arithmetic.to_fractions(frequencies.digits).tolist()
    box = frequencies.box
    off = 0.0 if box is None else frequencies.digits.engine.largest(box)
    return known, times(float(furthest), off)


def rotate(
    system: System,
    x: Enclosed,
    frequencies: Any,
    positions: Sequence[int],
    width: int,
    base: Fraction,
    pairing: str,
    magnitude: Constant | None = None,
) -> Enclosed:
    """The rows with their first `width` entries turned in pairs, and stretched by the magnitude."""
    rates, unsure = _rates(frequencies, max(map(abs, positions), default=0))
    stretch = 1.0 if magnitude is None else magnitude.size
    ball = times(x.ball, stretch if x.width == width else max(1.0, stretch))
    source = x.digits
    low = system.grid(ball, x.width)
    size = math.frexp(times(x.digits.engine.largest(x.norms), max(1.0, stretch)))[1]
    fine = (low - max(0, size) - 4) // 22 * 22  # a multiple of 22, so that layers share their turns
    fine = max(fine, FINEST)
    cos, sin, off = angles.shared_turns(positions, width, base, rates, fine, source.limbs)
    off = plus(off, unsure)
    if magnitude is not None:
        factor = magnitude.digits(source.limbs)
        cos, sin = (arithmetic.multiply(part, factor, fine) for part in (cos, sin))
        off = plus(times(off, stretch), magnitude.error, PRODUCT * math.ldexp(1.0, fine))
    if pairing == "half":
        a, b = source[..., : width // 2], source[..., width // 2 : width]
    else:
        a, b = source[..., 0:width:2], source[..., 1:width:2]
    one = arithmetic.subtract(
        arithmetic.multiply(a, cos, low - 1), arithmetic.multiply(b, sin, low - 1)
    )
    other = arithmetic.add(
        arithmetic.multiply(a, sin, low - 1), arithmetic.multiply(b, cos, low - 1)
    )
    rounding = 2 * PRODUCT * math.ldexp(1.0, low - 1)
    if pairing == "half":
        parts = [one, other]
    else:
        pairs = arithmetic.stack([part.reshape(*part.shape, 1) for part in (one, other)], axis=-1)
        parts = [pairs.reshape(*pairs.shape[:-2], width)]
    turned = (
        arithmetic.stack([*parts, source[..., width:]], axis=-1)
        if x.width > width
        else (arithmetic.stack(parts, axis=-1))
    )
    exact_low = turned.low
    digits = turned
    if exact_low < low:
        digits = arithmetic.regrid(turned, low=low)
        rounding = plus(rounding, HALF * math.ldexp(1.0, low))
    local = spread(rounding, x.width)
    moved = times(x.norms, 1.5 * off)  # √2 < 1.5
    return Enclosed(digits, plus(ball, moved, local), zeros=known_zeros.rows(x, x.width))

"""Position codes: sinusoids that are added, and RoPE, which turns pairs of entries.

A turn keeps lengths, so the radius stays; a sine or cosine that is off by t moves a pair by at most
√2·t times its length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs import angles, arithmetic, known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import HALF, PRODUCT, Digits
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.radii import plus, spread, times
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, constant
from byhand.numbers.enclosed.limbs.weights import torch_devices

FINEST = -836  # the grid of sines and cosines, where values are huge and digits many


def sinusoid(system: System, positions: Sequence[int], width: int, base: Fraction) -> Enclosed:
    """Sines and cosines of the positions, to be added to the stream."""
    low = -system.bits
    like = _like(system)
    cos, sin, off = angles.shared_turns(positions, width, base, None, low, like)
    engine = cos.engine
    shared = arithmetic.stack([sin.reshape(*sin.shape, 1), cos.reshape(*cos.shape, 1)], axis=2)
    digits = shared.reshape(len(positions), width)
    ball = constant(digits, digits.shape[:-1], math.sqrt(width) * (1 + 2.0**-50) * off)
    return Enclosed(Digits(engine.contiguous(digits.limbs), digits.top), ball)


def _like(system: System) -> Array:
    """An array of the device that the system works on."""
    here = np.zeros(1)
    return here if system.device is None else torch_devices().from_numpy(here).to(system.device)


def rotate(
    system: System,
    x: Enclosed,
    frequencies: Sequence[Any] | None,
    positions: Sequence[int],
    width: int,
    base: Fraction,
    pairing: str,
) -> Enclosed:
    """The rows with their first `width` entries turned in pairs."""
    source = x.digits
    low = system.grid(x.ball, x.width)
    size = math.frexp(x.digits.engine.largest(x.norms))[1]
    fine = (low - max(0, size) - 4) // 22 * 22  # a multiple of 22, so that layers share their turns
    fine = max(fine, FINEST)
    cos, sin, off = angles.shared_turns(positions, width, base, frequencies, fine, source.limbs)
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
    return Enclosed(digits, plus(x.ball, moved, local), zeros=known_zeros.rows(x, x.width))

"""Residue numbers: the moduli, how many of them a product needs, and the numbers of the way back.

The method is that of Uchino, Ozaki and Imamura, "High-performance and power-efficient emulation of
matrix multiplication using INT8 matrix engines" (2025), on the theorem of Chinese remainders.  An
integer Y is known from its residues modulo m_1, …, m_n, pairwise coprime, as long as |Y| is below
half of M = m_1·…·m_n.  Here arrays are not touched; `gpu.residues` computes with them.

Residues are balanced, |r| <= 127, so they are int8, and Σ of at most DEEPEST products of two of
them is below 2^31.

The way back.  With c_i ≡ Y·(M/m_i)^-1 modulo m_i, |c_i| <= 127,

    Y = Σ c_i·(M/m_i) - k·M    for the integer k = Σ c_i/m_i - Y/M.

A product has so many moduli that |Y|/M <= SPARE = 2^-10.  Σ c_i/m_i is worked out in float64, off
by less than 2^-42, so k is the nearest integer, and |Σ c_i/m_i - k| <= SPARE + 2^-41.  That is
checked for every entry, and it finds wrong residues: where c_i alone is wrong, by e with
0 < |e| < m_i, the sum is off by e/m_i.  That is at least 1/255 - SPARE - 2^-41 > SPARE + 2^-41 away
from the integers.  Two or more wrong ones pass by chance alone, one entry in 500.

Digits of Y on the grid 2^below (Y is an integer): M/m_i and M, rounded to multiples of 2^(below -
44), leave out (127n + |k| + 1)/2 < 2^13 units of 2^-44, that is 2^-31 of the grid.  Limbs of M/m_i
that weigh more than Y can are not needed: they cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from byhand.numbers.enclosed.limbs.digits import WIDTH

LARGEST = 255
SMALLEST = 28
SPARE = 2.0**-10
CHECKED = SPARE + 2.0**-41
DEEPEST = 1 << 17  # terms: 2^17·127² < 2^31
BELOW = 2  # limbs below the grid that are worked out
LEFT_OUT = 2.0**-31  # units of the grid that M/m_i and M leave out
HIGHEST = 40  # limbs of a result


def _pairwise_coprime() -> tuple[int, ...]:
    """The largest first; each is coprime to those before it."""
    found: list[int] = []
    for candidate in range(LARGEST, SMALLEST, -1):
        if all(math.gcd(candidate, other) == 1 for other in found):
            found.append(candidate)
    return tuple(found)


MODULI = _pairwise_coprime()
_PRODUCTS = [1]
for _modulus in MODULI:
    _PRODUCTS.append(_PRODUCTS[-1] * _modulus)


def count_for(most: int) -> int | None:
    """How many moduli integers of this size need, with SPARE; None where all are too few."""
    wanted = most << 10
    for count, product in enumerate(_PRODUCTS):
        if count and product >= wanted:
            return count
    return None


def balanced(value: int, modulus: int) -> int:
    """The residue between -modulus/2 and modulus/2."""
    rest = value % modulus
    return rest - modulus if 2 * rest > modulus else rest


@lru_cache(64)
def powers(limbs: int) -> npt.NDArray[np.float64]:
    """(modulus, limb): what 2^(22·k) is modulo each modulus; the last limb weighs 1."""
    places = [1 << (WIDTH * (limbs - 1 - i)) for i in range(limbs)]
    return np.array([[float(balanced(one, modulus)) for one in places] for modulus in MODULI])


@dataclass(frozen=True)
class WayBack:
    """The numbers that lead from residues to limbs."""

    moduli: tuple[int, ...]
    inverses: tuple[int, ...]  # of M/m_i modulo m_i, balanced
    shares: npt.NDArray[np.float64]  # (modulus, limb): M/m_i
    whole: npt.NDArray[np.float64]  # (limb,): M


@lru_cache(1024)
def way_back(count: int, limbs: int, below: int) -> WayBack:
    """For results of `limbs` limbs on the grid 2^below, and BELOW limbs more."""
    moduli, product = MODULI[:count], _PRODUCTS[count]
    inverses = tuple(balanced(pow(product // modulus, -1, modulus), modulus) for modulus in moduli)
    finest = below - WIDTH * BELOW
    shares = np.array([_limbs(product // modulus, finest, limbs + BELOW) for modulus in moduli])
    return WayBack(moduli, inverses, shares, np.array(_limbs(product, finest, limbs + BELOW)))


def _limbs(value: int, finest: int, count: int) -> list[float]:
    """The last `count` balanced limbs of value/2^finest, rounded to an integer."""
    if finest > 0:
        value = (value + (1 << (finest - 1))) >> finest
    else:
        value <<= -finest
    half, mask = 1 << (WIDTH - 1), (1 << WIDTH) - 1
    made = []
    for _place in range(count):
        limb = ((value + half) & mask) - half
        made.append(float(limb))
        value = (value - limb) >> WIDTH
    return made[::-1]

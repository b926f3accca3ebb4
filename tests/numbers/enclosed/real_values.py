"""Enclosed arrays with real numbers inside them, and whether a result contains their images.

A value is made with a radius, and real numbers are chosen inside it, some at the rim.  What
an operation makes of those is worked out in Arb (`Balls`), which shares nothing with limbs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed

ORACLE = Balls(700)
NOTHING = Fraction(1, 2**600)  # what Arb's own rounding may add


class Pair:
    """An enclosed array, and real numbers inside it.

    With `aligned`, all numbers are positive and every row is longer by its whole radius, so that
    errors add up in sums and products and none cancels.
    """

    def __init__(
        self,
        random: Any,
        shape: tuple[int, ...],
        radius: float | None,
        size: Any = 1.0,
        numbers: Limbs | None = None,
        *,
        aligned: bool = False,
    ) -> None:
        floats = random.standard_normal(shape) * size
        floats = np.abs(floats) if aligned else floats
        digits = arithmetic.from_floats(floats)[0]
        self.real = np.array([Fraction(float(x)) for x in floats.flat], object).reshape(shape)
        ball = None
        if radius is not None:
            ball = np.full(shape[:-1], radius) * 2.0 ** random.integers(-3, 1, shape[:-1])
            way = random.standard_normal(shape)
            if aligned:
                way = floats.copy()
            elif random.random() < 0.3:  # all in one entry: the rim of a box
                way = np.where(np.arange(shape[-1]) == random.integers(shape[-1]), way, 0.0)
            way /= np.sqrt((way**2).sum(-1, keepdims=True)) * (1 + 2.0**-40)
            moved = way * ball[..., None]
            self.real = self.real + np.array([Fraction(float(x)) for x in moved.flat]).reshape(
                shape
            )
        if numbers is not None and numbers.device is not None:
            import torch

            digits = Digits(torch.from_numpy(digits.limbs), digits.top)
            ball = None if ball is None else torch.from_numpy(np.asarray(ball))
        self.enclosed = Enclosed(digits, ball)

    @property
    def known(self) -> Any:
        return ORACLE.admit(self.real)


def contained(system: Limbs, ours: Any, real: Any, *, finite: bool = True) -> float:
    """Asserts that every real value lies in ours; the largest part of a radius that was used."""
    found, truth = system.entries(ours), ORACLE.entries(real)
    assert found.shape == truth.shape
    used, squares = 0.0, dict[Any, Fraction]()
    for index in np.ndindex(*truth.shape):
        inside, value = found[index], truth[index]
        if value is None:
            assert inside is np.ma.masked
            continue
        if inside.rad == math.inf and not finite:
            continue
        assert inside.rad < math.inf
        apart = abs(value.mid - inside.mid)
        squares[index[:-1]] = squares.get(index[:-1], Fraction(0)) + apart**2
        assert apart <= inside.rad + NOTHING, f"{index}: {value} is not in {inside}"
        if inside.rad:
            used = max(used, float(apart / inside.rad))
    if isinstance(ours, Enclosed) and not ours.exact:
        balls = ours.digits.engine.to_numpy(ours.ball)
        for row, square in squares.items():
            length = float(balls[row] if row else balls)
            if length < math.inf:
                assert square <= (Fraction(length) + NOTHING) ** 2, f"the ball of row {row}"
    return used

"""Arb balls of one working precision: how numbers come in, and what is known of their sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from flint import arb, arb_mat, ctx

from byhand.expression import Expression
from byhand.numbers.base import ABSENT, Array
from byhand.numbers.enclosed.balls.arrays import each, matrix
from byhand.numbers.enclosed.balls.given import Given, narrow_ball
from byhand.numbers.enclosed.balls.sizes import (
    apart_from,
    enclosure_of_ball,
    float_near,
    magnitudes,
    missing,
)
from byhand.numbers.enclosed.distance import Apart
from byhand.numbers.enclosed.enclosure import Enclosing, Logs
from byhand.numbers.exact.read import evaluate
from byhand.numbers.exact.space import Space

SPARE = 128  # extra bits, so that a difference is as narrow as the ball

Operation = TypeVar("Operation", bound=Callable[..., Any])


def precisely(operation: Operation) -> Operation:
    """An operation that works with the system's own precision, and leaves FLINT's as it was."""

    @wraps(operation)
    def working(self: System, *args: Any, **settings: Any) -> Any:
        with ctx.workprec(self.bits):
            return operation(self, *args, **settings)

    return working  # type: ignore[return-value]


class System(Enclosing):
    """Arb balls, and the space in which expressions have their values."""

    limit: ClassVar[int] = 4096

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self._space = Space()  # for the values of expressions

    @property
    def name(self) -> str:
        return f"balls of {self.bits} bits"

    def at(self, bits: int) -> Self:
        return type(self)(bits)

    # ------------------------------------------------------------------- values in and out

    def admit(self, data: Any) -> Given:
        """These numbers, exactly; rounded decimals stay the intervals they are."""
        return Given(data, self._space)

    def entries(self, value: Array) -> Array:
        """The value as an array of enclosures, masked entries ABSENT."""
        return each(lambda x: ABSENT if x is ABSENT else enclosure_of_ball(x), self._balls(value))

    def magnitudes(self, value: Array) -> tuple[Logs, Logs]:
        balls = self._balls(value)
        logs = [(-np.inf, -np.inf) if x is ABSENT else magnitudes(x) for x in balls.ravel()]
        both = np.array(logs, dtype=np.float64).reshape(*balls.shape, 2)
        return both[..., 0], both[..., 1]

    def missing(self, value: Array, digits: int) -> Logs:
        balls = self._balls(value)
        lacking = [-np.inf if x is ABSENT else missing(x, digits) for x in balls.ravel()]
        return np.array(lacking, dtype=np.float64).reshape(balls.shape)

    def in_floats(self, value: Array) -> tuple[Logs, Logs]:
        balls = self._balls(value)
        pairs = [(0.0, 0.0) if x is ABSENT else float_near(x) for x in balls.ravel()]
        both = np.array(pairs, dtype=np.float64).reshape(*balls.shape, 2)
        return both[..., 0], both[..., 1]

    def apart(self, value: Array, floats: Logs) -> Apart:
        with ctx.workprec(self.bits + SPARE):
            return apart_from(self._balls(value), floats)

    def with_zeros(self, value: Array, places: Sequence[tuple[int, ...]]) -> Array:
        """The value with the entries at these places set to 0, which they are known to be."""
        balls = self._balls(value).copy()
        for place in places:
            balls[place] = arb(0)
        return balls

    def take_rows(self, x: Array, places: Sequence[int]) -> Array:
        return super().take_rows(self._balls(x), places)

    def take_columns(self, x: Array, places: Sequence[int]) -> Array:
        return super().take_columns(self._balls(x), places)

    def stack_rows(self, parts: Sequence[Array]) -> Array:
        return super().stack_rows([self._balls(part) for part in parts])

    def _balls(self, x: Any) -> Array:
        """Admitted numbers, or the result of an operation, as an array of balls."""
        return x.at(self.bits) if isinstance(x, Given) else x

    def _scalar(self, value: Expression | Fraction) -> arb:
        known = evaluate(value, self._space) if isinstance(value, Expression) else value
        return narrow_ball(known, self.bits)

    def _matrix(self, weight: Array, layout: str) -> arb_mat:
        """A matrix of weights, input by input."""
        if isinstance(weight, Given):
            return weight.matrix(self.bits, layout)
        return matrix(weight if layout == "in_out" else weight.T)

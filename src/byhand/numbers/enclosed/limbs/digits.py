"""Arrays of fixed-point numbers in limbs; `arithmetic` defines them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from byhand.numbers.enclosed.limbs.engine import Array, Engine, engine_of

WIDTH = 22
BASE = 2.0**WIDTH
SMALL = 2.0**-WIDTH  # one limb down
BALANCED = 2.0 ** (WIDTH - 1)


@dataclass(frozen=True, slots=True)
class Digits:
    """An array of numbers in fixed point: limbs (n, *shape), value Σ limbs[i]·2^(top - 22(i+1))."""

    limbs: Array
    top: int

    @property
    def n(self) -> int:
        """The number of limbs."""
        return int(self.limbs.shape[0])

    @property
    def low(self) -> int:
        """Every value is a multiple of 2^low."""
        return self.top - WIDTH * self.n

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of numbers."""
        return tuple(self.limbs.shape[1:])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return prod(self.shape)

    @property
    def engine(self) -> Engine:
        """The library that holds the limbs: NumPy, torch, or a recorder."""
        return engine_of(self.limbs)

    def __getitem__(self, index: Any) -> Digits:
        """The numbers at an index, as in an array of numbers."""
        index = index if isinstance(index, tuple) else (index,)
        return Digits(self.limbs[(slice(None), *index)], self.top)

    def reshape(self, *shape: int) -> Digits:
        """The same numbers in another shape."""
        return Digits(self.limbs.reshape(self.n, *shape), self.top)

    def moveaxis(self, source: int, target: int) -> Digits:
        """The same numbers with an axis moved; axes count from 0, without that of the limbs."""
        source, target = source % self.ndim, target % self.ndim
        return Digits(self.engine.moveaxis(self.limbs, source + 1, target + 1), self.top)

    def swapaxes(self, one: int, other: int) -> Digits:
        """The same numbers with two axes exchanged."""
        one, other = one % self.ndim, other % self.ndim
        return Digits(self.limbs.swapaxes(one + 1, other + 1), self.top)

    def contiguous(self) -> Digits:
        """The same numbers, laid out in order in memory."""
        return Digits(self.engine.contiguous(self.limbs), self.top)

    def broadcast(self, *shape: int) -> Digits:
        """The same numbers, repeated to a larger shape without a copy."""
        limbs = self.limbs.reshape(self.n, *(1,) * (len(shape) - self.ndim), *self.shape)
        return Digits(self.engine.broadcast(limbs, (self.n, *shape)), self.top)

"""Arrays in which products of limbs are worked out, reused from tile to tile."""

from __future__ import annotations

import math

from byhand.numbers.enclosed.limbs.engine import Array, Engine


class Scratch:
    """Arrays that are reused for every tile."""

    def __init__(self, engine: Engine, like: Array) -> None:
        self.engine = engine
        self.like = like
        self.kept: dict[str, Array] = {}

    def last(self, name: str, shape: tuple[int, ...]) -> Array:
        """The array of this name, as it was left."""
        return self.kept[name][: math.prod(shape)].reshape(*shape)

    def room(self, name: str, shape: tuple[int, ...]) -> Array:
        """An array of a shape with arbitrary contents; the next call of this name reuses it."""
        size = math.prod(shape)
        if name not in self.kept or self.kept[name].shape[0] < size:
            self.kept[name] = self.engine.empty((size,), self.like)
        return self.kept[name][:size].reshape(*shape)

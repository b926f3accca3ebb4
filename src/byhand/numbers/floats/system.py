"""Floats of one format: how numbers come in, where results are stored, and how they are rounded.

float64 and float32 are worked in themselves.  bfloat16 and float16 are worked in float32: the
inputs are widened, the whole operation is done, and each entry of the result is rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from byhand.expression import Expression
from byhand.numbers.base import Array, Note, Numbers
from byhand.numbers.floats.each_expert import EachExpert
from byhand.numbers.floats.formats import (
    FLOAT64,
    FORMATS,
    Data,
    find_format,
    narrowed,
    widened,
)
from byhand.numbers.floats.memory import Memory
from byhand.numbers.floats.nearest import admitted, constant
from byhand.numbers.floats.results import first_not_finite
from byhand.numbers.written import short

quiet = np.errstate  # overflow is a result, not an error: NumPy must not warn


class System(Numbers):
    """Floats of one format.

    Weights of a narrower format stay as they are and are widened piece by piece.  With
    `convert_once` they are converted when admitted, for frequent use.
    """

    uniform: ClassVar[str | None] = "rounded"

    def __init__(self, format: str = "float32", *, convert_once: bool = False) -> None:
        super().__init__()
        self.format = find_format(format)
        self.dtype = self.format.dtype
        self.convert_once = convert_once
        self._work = self.format.working
        self._memory = Memory()

    @property
    def name(self) -> str:
        return self.format.name

    # ------------------------------------------------------------------- values in and out

    @quiet(all="ignore")
    def admit(self, data: Any) -> Array:
        """Floats of this or a narrower format as they are, without a copy; others rounded once.

        A finite number that is too large for the format is an InputError.
        """
        values = admitted(data, self.format)
        if self.convert_once and not isinstance(values, np.ma.MaskedArray):
            return widened(values, self._work.dtype)
        return values

    @quiet(all="ignore")
    def admit_frequencies(self, data: Any) -> Array:
        """The frequencies in float64: at position 1000 their rounding counts 1000 times."""
        return widened(admitted(data, FORMATS["float64"]), FLOAT64)

    def register(self, entry: Any) -> str:
        return "rounded"

    def text(self, entry: Any) -> str:
        """Four decimals, or four digits and an exponent."""
        return short(float(entry))

    def entries(self, value: Array) -> Array:
        return value.whole if isinstance(value, EachExpert) else value

    def _wide(self, x: Array) -> Data:
        return widened(self.entries(x), self._work.dtype)

    def _room(self, *shape: int) -> Data:
        return self._memory.room(shape, self._work.dtype)

    def _give(self, result: Data, *made_of: Array | None) -> Array:
        """The result in the format; notes the first infinite or NaN entry of finite inputs."""
        result = narrowed(result, self.dtype)
        index = first_not_finite(result, made_of)
        if index is not None:
            self.notes.append(Note("not-finite", index))
        return result

    def _constant(self, value: Expression | Fraction) -> Any:
        return constant(value, self._work)

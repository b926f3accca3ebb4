"""Tensors of one format on one device: how numbers come in and go out, and how they are rounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from byhand.expression import Expression
from byhand.numbers.base import Array, Note, Numbers
from byhand.numbers.devices import find_device, from_numpy, to_numpy
from byhand.numbers.floats.formats import FORMATS, find_format
from byhand.numbers.floats.nearest import admitted, constant
from byhand.numbers.written import short

KINDS = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True)
class Masked:
    """Scores or weights some of which are absent: -∞ or 0 stands in their place."""

    data: Tensor
    hidden: Tensor  # of the same shape, True where an entry is absent


class System(Numbers):
    """Floats of one format on one device."""

    uniform: ClassVar[str | None] = "rounded"

    def __init__(self, format: str = "float32", device: str = "cpu") -> None:
        super().__init__()
        self.format = find_format(format)
        self.device = find_device(device)
        self.kind = KINDS[format]
        self._work = KINDS[self.format.working.name]

    @property
    def name(self) -> str:
        return f"{self.format.name} on {self.device}"

    # ------------------------------------------------------------------- values in and out

    def admit(self, data: Any) -> Array:
        """A tensor as it is, so that gradients reach it; arrays copied, wider ones rounded once.

        A finite number that is too large for the format is an InputError.
        """
        if isinstance(data, Tensor):
            return data.to(self.device, self.kind)
        with np.errstate(all="ignore"):
            values = admitted(data, self.format)
        tensor = from_numpy(np.ma.getdata(values)).to(self.device, self.kind)
        if not isinstance(values, np.ma.MaskedArray):
            return tensor
        return Masked(tensor, torch.tensor(np.ma.getmaskarray(values), device=self.device))

    def admit_frequencies(self, data: Any) -> Array:
        """The frequencies in float64: at position 1000 their rounding counts 1000 times."""
        if isinstance(data, Tensor):
            return data.to(self.device, torch.float64)
        with np.errstate(all="ignore"):
            values = admitted(data, FORMATS["float64"])
        return from_numpy(values).to(self.device, torch.float64)

    def register(self, entry: Any) -> str:
        return "rounded"

    def text(self, entry: Any) -> str:
        """Four decimals, or four digits and an exponent."""
        return short(float(entry))

    def entries(self, value: Array) -> Array:
        """The value as a NumPy array on this machine; absent entries are masked."""
        if isinstance(value, Masked):
            return np.ma.MaskedArray(to_numpy(value.data), mask=to_numpy(value.hidden))
        return to_numpy(value) if isinstance(value, Tensor) else value

    def take_rows(self, x: Array, places: Sequence[int]) -> Array:
        if isinstance(x, Masked):
            return Masked(self.take_rows(x.data, places), self.take_rows(x.hidden, places))
        return super().take_rows(x, places)

    def take_columns(self, x: Array, places: Sequence[int]) -> Array:
        if isinstance(x, Masked):
            return Masked(self.take_columns(x.data, places), self.take_columns(x.hidden, places))
        return super().take_columns(x, places)

    def stack_rows(self, parts: Sequence[Array]) -> Array:
        return torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])

    def _give(self, result: Tensor, *made_of: Array | None) -> Tensor:
        """The result in the format; notes the first infinite or NaN entry of finite inputs.

        While gradients are kept nothing is noted: reading a value would wait for the device.
        """
        result = result.to(self.kind)
        if not result.requires_grad and not all_finite(result) and all(map(all_finite, made_of)):
            index = torch.nonzero(~torch.isfinite(result))[0]
            self.notes.append(Note("not-finite", tuple(index.tolist())))
        return result

    def _give_masked(
        self, result: Tensor, hidden: Tensor | None, below: float, *made_of: Array | None
    ) -> Array:
        if hidden is None:
            return self._give(result, *made_of)
        whole = hidden.expand(result.shape)
        self._give(result.masked_fill(whole, 0), *made_of)
        return Masked(result.to(self.kind).masked_fill(whole, below), whole)

    def _constant(self, value: Expression | Fraction) -> float:
        return float(constant(value, self.format.working))


def all_finite(x: Array | None) -> bool:
    """Whether no entry is infinite or NaN; absent ones do not count."""
    if x is None:
        return True
    if isinstance(x, Masked):
        x = x.data.masked_fill(x.hidden, 0)
    return bool(torch.isfinite(x).all())

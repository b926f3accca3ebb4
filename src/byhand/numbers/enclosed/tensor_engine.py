"""The engine on torch tensors, of any device that has IEEE float64; torch itself is handed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.numbers.enclosed.engine import Array, Engine


class TorchEngine(Engine):
    """The same on torch tensors, of any device that has IEEE float64."""

    name = "torch"
    piece = 16384
    piece_elsewhere = 1 << 22  # on a GPU: what memory for some sixty temporaries allows

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self._numbers: dict[Any, Array] = {}

    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        return self.torch.zeros(tuple(shape), dtype=self.torch.float64, device=like.device)

    def empty(self, shape: Sequence[int], like: Array) -> Array:
        return self.torch.empty(tuple(shape), dtype=self.torch.float64, device=like.device)

    def constant(self, array: Any, like: Array) -> Array:
        return self.torch.from_numpy(np.ascontiguousarray(array)).to(like.device)

    def to_numpy(self, array: Array) -> Any:
        return array.detach().cpu().numpy()

    def floats(self, array: Array) -> Array:
        return array.detach().to(self.torch.float64, copy=True)

    def rint(self, array: Array, out: Array | None = None) -> Array:
        return self.torch.round(array, out=out)

    def whole(self, array: Array) -> Array:
        return array.to(self.torch.int64)

    def absolute(self, array: Array) -> Array:
        return array.abs()

    def root(self, array: Array) -> Array:
        return array.sqrt()

    def clip(self, array: Array, least: float | None, most: float | None) -> Array:
        return array.clamp(least, most)

    def largest(self, array: Array) -> float:
        return float(array.abs().max()) if array.numel() else 0.0

    def sizes(self, array: Array) -> tuple[float, ...]:
        return tuple(self.largest_of(array).tolist())

    def largest_of(self, array: Array) -> Array:
        """The same, left on the device: one pass over the array."""
        if not array.numel():
            return array.new_zeros(array.shape[0])
        axes = tuple(range(1, array.ndim))
        if not axes:
            return array.abs()
        return self.torch.linalg.vector_norm(array, float("inf"), dim=axes)

    def empty_rows(self, limbs: Array) -> Array:
        return self.torch.linalg.vector_norm(limbs, float("inf"), dim=(0, -1)) == 0.0

    def lengths(self, array: Array, axis: int) -> Array:
        """√Σ x² along an axis, however it is added up; no square may overflow."""
        return self.torch.linalg.vector_norm(array, 2, dim=axis)

    def range(self, array: Array) -> tuple[float, float]:
        if not array.numel():
            return 0.0, 0.0
        least, most = self.torch.stack(self.torch.aminmax(array)).tolist()
        return least, most

    def where(self, condition: Array, yes: Array, no: Array | float) -> Array:
        if isinstance(no, float):
            no = self._number(no, condition.device)
        elif isinstance(yes, float):
            yes = self._number(yes, condition.device)
        return self.torch.where(condition, yes, no)

    def raised(self, array: Array, factor: float, more: float) -> Array:
        """array·factor + more in one pass, rounded once or twice."""
        return self.torch.add(self._number(more, array.device), array, alpha=factor)

    def _number(self, value: float, device: Any) -> Array:
        """A number on the device, which takes as long to get there as a small array."""
        key = value, device
        if key not in self._numbers:
            if len(self._numbers) > 1000:
                self._numbers.clear()
            made = self.torch.full((), value, dtype=self.torch.float64, device=device)
            self._numbers[key] = made
        return self._numbers[key]

    def take(self, table: Array, index: Array) -> Array:
        return table.index_select(1, index.reshape(-1)).reshape(table.shape[0], *index.shape)

    def multiply_add(self, total: Array, x: Array, y: Array) -> None:
        total.addcmul_(x, y)

    def diagonal(self, x: Array, y: Array, first: int, last: int, of: int, out: Array) -> None:
        self.torch.mul(x[first], y[of - first], out=out)
        for i in range(first + 1, last):
            out.addcmul_(x[i], y[of - i])

    def carry(self, limb: Array, above: Array, base: float, over: Array, back: Array) -> None:
        self.torch.mul(limb, 1.0 / base, out=over)
        over.round_()
        limb.sub_(over, alpha=base)
        above.add_(over)

    def scale(self, array: Array, factor: float, out: Array) -> None:
        self.torch.mul(array, factor, out=out)

    def round_to(self, array: Array, unit: float, out: Array) -> None:
        large = 1.5 * 2.0**52 * unit
        self.torch.add(array, large, out=out)
        out.sub_(large)

    def carry_scaled(self, limbs: Array, unit: float, base: float) -> None:
        last = limbs.shape[0] - 1
        for i in range(last, 0, -1):
            large = 1.5 * 2.0**52 * unit / base ** (i - 1)
            over = (limbs[i] + large).sub_(large)
            if i < last:
                limbs[i].sub_(over)
            limbs[i - 1].add_(over)

    def index(self, limb: Array, offset: int, columns: int) -> Array:
        return (limb + offset).clamp_(0, columns - 1).to(self.torch.int64)

    def positive(self, array: Array) -> Array:
        return (array >= 0).to(self.torch.float64)

    def sum(self, array: Array, axis: int) -> Array:
        return array.sum(axis)

    def concatenate(self, arrays: Sequence[Array], axis: int = 0) -> Array:
        return self.torch.cat(tuple(arrays), axis)

    def moveaxis(self, array: Array, source: int, target: int) -> Array:
        return array.movedim(source, target)

    def contiguous(self, array: Array) -> Array:
        return array.contiguous()

    def broadcast(self, array: Array, shape: Sequence[int]) -> Array:
        return array.expand(tuple(shape))

    def piece_of(self, array: Array) -> int:
        return self.piece if array.device.type == "cpu" else self.piece_elsewhere

    def device_of(self, array: Array) -> Any:
        return str(array.device)

"""The engine on torch tensors, for any device that has IEEE float64.

Limb arithmetic finds it once it is registered (`limbs.weights.tensors`).  Questions of the host
about numbers on a device go through `decisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from byhand.numbers.enclosed.gpu.decisions import CannotRepeat, Claim, Noting, Repeating, answers
from byhand.numbers.enclosed.limbs.engine import Array, Engine

HALF_A_LIMB = 2.0**21  # the largest size of a limb


class TorchEngine(Engine):
    """The functions on torch tensors."""

    name = "torch"
    module = torch
    piece = 16384
    piece_elsewhere = 1 << 22  # on a GPU: what memory for some sixty temporaries allows

    def __init__(self) -> None:
        self._numbers: dict[Any, Array] = {}
        self._streams: list[Any] = []

    def zeros(self, shape: Sequence[int], like: Array) -> Array:
        return torch.zeros(tuple(shape), dtype=torch.float64, device=like.device)

    def empty(self, shape: Sequence[int], like: Array) -> Array:
        return torch.empty(tuple(shape), dtype=torch.float64, device=like.device)

    def constant(self, array: Any, like: Array) -> Array:
        if isinstance(answers(), Repeating):
            raise CannotRepeat("numbers of the host that were not brought over before")
        return torch.from_numpy(np.ascontiguousarray(array)).to(like.device)

    def to_numpy(self, array: Array) -> Any:
        answers().read_by_host()
        return array.detach().cpu().numpy()

    def floats(self, array: Array) -> Array:
        return array.detach().to(torch.float64, copy=True)

    def rough(self, array: Array) -> Array:
        return array  # float32 may be cut to 10 bits there, and float64 is as fast

    def rint(self, array: Array, out: Array | None = None) -> Array:
        return torch.round(array, out=out)

    def largest(self, array: Array) -> float:
        if not array.numel():
            return 0.0
        return self.bounds(self.largest_of(array[None]))[0]

    def bounds(
        self, values: Array, widened: Callable[[float, float], float] | None = None
    ) -> list[float]:
        """Upper bounds of the numbers of a row; `widened` as in `Answers`."""
        return answers().bounds(values, widened)

    def least_above_zero(self, array: Array, above: float = 0.0) -> float:
        if not array.numel():
            return float("inf")
        return answers().guess(self.where(array > above, array, float("inf")).min())

    def fits(self, limb: Array, most: float) -> bool:
        def choose(room: float) -> bool:
            return float(limb.abs().max()) * room <= most

        def claims(kept: bool) -> Sequence[Claim]:
            return [(self.largest_of(limb[None]), [most])] if kept else []

        return answers().decide(choose, claims) if limb.numel() else True

    def empty_in_front(self, limbs: Array) -> int:
        return self.empty_sizes(len(limbs), lambda count: self.largest_of(limbs[:count]))

    def empty_sizes(self, count: int, sizes_of: Callable[[int], Array]) -> int:
        """The same where the sizes of the first limbs are known, as many of them as are asked."""

        def choose(room: float) -> int:
            first, sizes = 0, sizes_of(count).tolist()
            # with room: what fills the next limb might reach this one
            while first < len(sizes) - 1 and sizes[first] == 0.0:
                if room > 1.0 and sizes[first + 1] * room > HALF_A_LIMB:
                    break
                first += 1
            return first

        def claims(first: int) -> Sequence[Claim]:
            return [(sizes_of(first), [0.0] * first)] if first else []

        return answers().decide(choose, claims) if count > 1 else 0

    def holds(self, condition: Array) -> bool:
        return answers().holds(condition)

    def places(self, condition: Array) -> list[tuple[int, ...]]:
        def choose(room: float) -> list[tuple[int, ...]]:
            found = [tuple(index) for index in condition.nonzero().tolist()]
            if found and isinstance(answers(), Noting):
                raise CannotRepeat("rows stand out that others need not have")
            return found

        return answers().decide(choose, lambda kept: [(condition.any()[None].double(), [0.0])])

    def largest_of(self, array: Array) -> Array:
        """The same, left on the device: one pass over the array."""
        if not array.numel():
            return array.new_zeros(array.shape[0])
        axes = tuple(range(1, array.ndim))
        if not axes:
            return array.abs()
        return torch.linalg.vector_norm(array, float("inf"), dim=axes)

    def empty_rows(self, limbs: Array) -> Array:
        return torch.linalg.vector_norm(limbs, float("inf"), dim=(0, -1)) == 0.0

    def lengths(self, array: Array, axis: int) -> Array:
        """√Σ x² along an axis, summed in any order; no square may overflow."""
        return torch.linalg.vector_norm(array, 2, dim=axis)

    def range(self, array: Array) -> tuple[float, float]:
        if not array.numel():
            return 0.0, 0.0
        ends = torch.aminmax(array)
        below, most = self.bounds(torch.stack((-ends.min, ends.max)))
        return -below, most

    def where(self, condition: Array, yes: Array, no: Array | float) -> Array:
        if isinstance(no, float):
            no = self._number(no, condition.device)
        elif isinstance(yes, float):
            yes = self._number(yes, condition.device)
        return torch.where(condition, yes, no)

    def raised(self, array: Array, factor: float, more: float) -> Array:
        """array·factor + more in one pass, rounded once or twice."""
        return torch.add(self._number(more, array.device), array, alpha=factor)

    def _number(self, value: float, device: Any) -> Array:
        """A number on the device, cached: copying it takes as long as a small array."""
        key = value, device
        if key not in self._numbers:
            if len(self._numbers) > 10_000:
                self._numbers.clear()
            made = torch.full((), value, dtype=torch.float64, device=device)
            if isinstance(answers(), Repeating):
                return made  # not filled before the pass is run
            self._numbers[key] = made
        return self._numbers[key]

    def take(self, table: Array, index: Array) -> Array:
        return table.index_select(1, index.reshape(-1)).reshape(table.shape[0], *index.shape)

    def multiply_add(self, total: Array, x: Array, y: Array) -> None:
        total.addcmul_(x, y)

    def diagonal(self, x: Array, y: Array, first: int, last: int, of: int, out: Array) -> None:
        torch.mul(x[first], y[of - first], out=out)
        for i in range(first + 1, last):
            out.addcmul_(x[i], y[of - i])

    def carry(self, limb: Array, above: Array, base: float, over: Array, back: Array) -> None:
        torch.mul(limb, 1.0 / base, out=over)
        over.round_()
        limb.sub_(over, alpha=base)
        above.add_(over)

    def scale(self, array: Array, factor: float, out: Array) -> None:
        torch.mul(array, factor, out=out)

    def round_to(self, array: Array, unit: float, out: Array) -> None:
        large = 1.5 * 2.0**52 * unit
        torch.add(array, large, out=out)
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
        # NaN, which a void pass may have, has no place of its own
        return (limb + offset).nan_to_num_(0.0).clamp_(0, columns - 1).to(torch.int64)

    def positive(self, array: Array) -> Array:
        return (array >= 0).to(torch.float64)

    def cholesky(self, matrix: Array, more: float) -> Array | None:
        shifted = matrix.clone()
        shifted.diagonal().add_(more)
        found, failed = torch.linalg.cholesky_ex(shifted)
        return found if int(failed) == 0 and bool(torch.isfinite(found).all()) else None

    def contiguous(self, array: Array) -> Array:
        return array.contiguous()

    def side_by_side(self, like: Array, works: Sequence[Callable[[], None]]) -> None:
        """Works that write to arrays of their own; on a GPU at the same time.

        The memory that a work allocates may be freed at any time: its next user waits for all
        earlier work.
        """
        if not like.is_cuda:
            for work in works:
                work()
            return
        cuda: Any = torch.cuda
        here = cuda.current_stream(like.device)
        while len(self._streams) < len(works) - 1:
            self._streams.append(cuda.Stream(like.device))
        for stream, work in zip(self._streams, works[1:], strict=False):
            stream.wait_stream(here)
            with cuda.stream(stream):
                work()
        works[0]()
        for stream, _work in zip(self._streams, works[1:], strict=False):
            here.wait_stream(stream)

    def piece_of(self, array: Array) -> int:
        return self.piece if array.device.type == "cpu" else self.piece_elsewhere

    def device_of(self, array: Array) -> Any:
        return str(array.device)


TENSORS = TorchEngine()
KIND = torch.Tensor  # what it works on

"""Statistics of rows that a norm may take by mistake: of other channels, of other positions.

Each gives one number for each row, from all the rows that are normalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Data = npt.NDArray[Any]
MEANS = ("mean", "median", "first", "largest", "smallest", "middle of the range")
SQUARES = (
    "variance", "mean square", "mean square of sizes", "square of the largest", "sum of squares",
    "sum of squares about the mean", "square of the range",
)  # fmt: skip
OVER = (
    "the row", "the first half of the channels", "the second half of the channels",
    "the even channels", "the odd channels", "all but the last channel",
    "all but the first channel", "all rows together", "the row before", "the row after",
    "the first row", "the last row", "all heads together", "the rows up to this one",
)  # fmt: skip


@dataclass(frozen=True)
class Statistic:
    """A statistic of each row, over some of the numbers."""

    what: str  # of MEANS or SQUARES
    over: str = "the row"
    less: int = 0  # by how much the divisor is less than the count
    channel: int | None = None  # that is left out
    factor: float = 1.0
    centred: bool = False  # whether the mean of the whole row is subtracted first

    def __call__(self, x: Data) -> Data:
        """One number for each row of x (…, position, channel)."""
        with np.errstate(all="ignore"):
            rows = np.asarray(x, dtype=np.float64)
            rows = rows - rows.mean(axis=-1, keepdims=True) if self.centred else rows
            return self.factor * self._over(rows)

    def _over(self, x: Data) -> Data:
        if self.channel is not None:
            x = np.delete(x, self.channel, axis=-1)
        size, rows = x.shape[-1], x.shape[-2]
        half = max(1, size // 2)
        cuts = {
            "the first half of the channels": x[..., :half],
            "the second half of the channels": x[..., half:],
            "the even channels": x[..., ::2],
            "the odd channels": x[..., 1::2],
            "all but the last channel": x[..., :-1],
            "all but the first channel": x[..., 1:],
        }
        if self.over in cuts:
            return self._of(cuts[self.over])
        if self.over == "all rows together":
            whole = self._of(x.reshape(*x.shape[:-2], -1))
            return np.broadcast_to(whole[..., None], x.shape[:-1])
        if self.over == "all heads together":
            every = np.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], -1) if x.ndim == 3 else x
            return np.broadcast_to(self._of(every), x.shape[:-1])
        if self.over == "the rows up to this one":
            return np.stack(
                [
                    self._of(x[..., : place + 1, :].reshape(*x.shape[:-2], -1))
                    for place in range(rows)
                ],
                axis=-1,
            )
        own = self._of(x)
        moved = {"the row before": 1, "the row after": -1}
        if self.over in moved:
            return np.roll(own, moved[self.over], axis=-1)
        if self.over in ("the first row", "the last row"):
            place = 0 if self.over == "the first row" else -1
            return np.broadcast_to(own[..., place : place + 1 or None], own.shape)
        return own

    def _of(self, x: Data) -> Data:
        return np.asarray(self._worked(x))

    def _worked(self, x: Data) -> Any:
        count = max(1, x.shape[-1] - self.less)
        mean = x.mean(axis=-1)
        if self.what == "mean":
            return x.sum(axis=-1) / count
        if self.what == "median":
            return np.sort(x, axis=-1)[..., (x.shape[-1] - 1) // 2]  # the lower one, as torch takes
        if self.what == "first":
            return x[..., 0]
        if self.what in ("largest", "smallest"):
            return x.max(axis=-1) if self.what == "largest" else x.min(axis=-1)
        if self.what == "middle of the range":
            return (x.max(axis=-1) + x.min(axis=-1)) / 2
        if self.what == "mean square of sizes":
            return np.square(np.abs(x).mean(axis=-1))
        if self.what == "square of the largest":
            return np.square(np.abs(x).max(axis=-1))
        if self.what == "square of the range":
            return np.square(np.ptp(x, axis=-1))
        about = (
            x - mean[..., None] if self.what in ("variance", "sum of squares about the mean") else x
        )
        squares = np.square(about).sum(axis=-1)
        return squares if self.what.startswith("sum of squares") else squares / count

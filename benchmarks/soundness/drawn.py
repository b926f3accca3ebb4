"""Random numbers, weights, points and moves for the cases, and what the cases share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat

from benchmarks.soundness.truth import balls, length, near
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry
from byhand.numbers.enclosed.limbs.weights import Weight, read_weight

BEYOND = 2.0**400  # of larger numbers byhand says nothing
RIM = 1 - 2.0**-40  # so that rounding leaves a move within its ball
KINDS = (
    "relu", "relu2", "gelu", "gelu_tanh", "gelu_fast", "gelu_bloom", "silu", "quick_gelu",
    "sigmoid", "tanh", "identity",
)  # fmt: skip


def enclosed(middles: Any, off: Any) -> Enclosed:
    """Floats as midpoints, with a radius for each entry; exact where all of these are 0."""
    digits = arithmetic.from_floats(np.asarray(middles, dtype=np.float64))[0]
    off = np.broadcast_to(np.asarray(off, dtype=np.float64), np.shape(middles))
    return by_entry(digits, np.array(off) if off.any() else None)


@dataclass
class Side:
    """A weight that reads the stream, with the gain of the norm before it."""

    rows: Any  # (outputs, inputs): floats that are the weights exactly
    gain: Any  # (inputs,) or None
    plus_one: bool
    layout: str

    def admitted(self) -> tuple[Weight, Weight | None]:
        given = self.rows if self.layout == "out_in" else self.rows.T
        gain = None if self.gain is None else read_weight(self.gain)
        if gain is not None and self.plus_one:
            gain = gain.plus_one
        return read_weight(np.ascontiguousarray(given)), gain

    def exactly(self) -> arb_mat:
        """The weights times the gain, in balls."""
        rows, columns = self.rows.shape
        made = balls(self.rows)
        if self.gain is not None:
            gain = [x + 1 if self.plus_one else x for x in balls(self.gain)]
            made = [x * gain[i % columns] for i, x in enumerate(made)]
        return arb_mat(rows, columns, made)

    def roughly(self) -> Any:
        gain = 1.0 if self.gain is None else self.gain.astype(float) + self.plus_one
        return self.rows.astype(float) * gain


class Drawn:
    """Random numbers as the cases need them."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def yes(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def whole(self, least: int, most: int) -> int:
        return int(self.random.integers(least, most + 1))

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.whole(0, len(choices) - 1)]

    def size(self) -> float:
        """A scale of weights: usual ones, and now and then one far from all others."""
        if self.yes(0.1):
            return float(2.0 ** self.whole(-200, 200))
        return float(10.0 ** self.random.uniform(-2, 1.5))

    def floats(self, *shape: int, size: float = 1.0, dense: float = 0.9) -> Any:
        made = self.random.standard_normal(shape) * size
        if not self.yes(dense):  # zeros, and rows that follow each other
            made *= self.random.random(shape) < 0.6
            if len(shape) > 1 and shape[0] > 1:
                made[-1] = made[0] * self.one_of((1.0, -1.0, 0.0, 2.0**-20))
        return made.astype(self.one_of((np.float32, np.float64)) if 1e-30 < size < 1e30 else float)

    def gain(self, width: int) -> tuple[Any, bool]:
        if self.yes(0.4):
            return None, False
        return self.floats(width, size=self.one_of((1.0, 1.0, 1e-8, 1e6))), self.yes(0.3)

    def apart(self, count: int) -> Any:
        """ζ of each row: from far below the point to far beyond it, and now and then 0."""
        power = self.random.uniform(-30, 1.5)
        made = 10.0 ** (power + self.random.uniform(-3, 0.3, count) * self.yes())
        if count > 1 and self.yes(0.2):
            made[self.whole(0, count - 1)] = 0.0
        return made

    def point(self, count: int, width: int) -> Any:
        """Rows as norms leave them: most of length √width, some shorter, or along one axis."""
        made = self.random.standard_normal((count, width))
        made *= math.sqrt(width) / np.linalg.norm(made, axis=1, keepdims=True)
        if self.yes(0.15):
            made[self.whole(0, count - 1)] *= 10.0 ** self.random.uniform(-40, 0)
        if count > 1 and self.yes(0.15):
            made[0] = made[-1]
        return made

    def values(self, *shape: int) -> Any:
        """Simple numbers, so that many are 0, equal or opposite."""
        simple = self.random.choice([0.0, 0.0, 1.0, -1.0, 2.0, 0.5, 1.0], shape)
        return simple if self.yes(0.7) else self.random.standard_normal(shape)

    def axes(self, count: int, apart: Any, width: int) -> Any:
        """(count, row, width): moves at the rim along one axis, or two of them alike."""
        shape = (count, apart.size)
        made = np.zeros((*shape, width))
        for _axis in range(2):
            axis = self.random.integers(0, width, shape)
            sign = self.random.choice([-1.0, 1.0], shape)
            np.put_along_axis(made, axis[..., None], sign[..., None], -1)
            if self.yes(0.6):
                break
        made /= np.linalg.norm(made, axis=-1, keepdims=True)
        return made * (apart[:, None] * RIM)

    def moves(self, count: int, apart: Any, worst: Any) -> Any:
        """(count, row, width): moves within the balls, most along the worst one, at the rim."""
        shape = (count, *worst.shape)
        noise = self.random.standard_normal(shape)
        noise /= np.linalg.norm(noise, axis=-1, keepdims=True)
        mixed = 10.0 ** self.random.uniform(-6, 1, (count, 1, 1))
        mixed[: count // 8] = np.inf
        way = np.where(np.isinf(mixed), noise, worst + noise * np.where(mixed < np.inf, mixed, 0))
        way[-1], way[-2 % count] = worst, -worst
        lengths = np.linalg.norm(way, axis=-1, keepdims=True)
        way = way / np.where(lengths > 0, lengths, 1.0)
        within = self.random.random((*shape[:2], 1))
        reach = np.where(self.random.random((count, 1, 1)) < 0.8, 1.0, within)
        return way * (apart[:, None] * reach * RIM)


def moved(point: Any, way: Any) -> arb_mat:
    """The rows of the point after each move, one below the other."""
    here = balls(point)
    width = point.shape[-1]
    made = [here[i % len(here)] + x for i, x in enumerate(balls(way))]
    return arb_mat(len(made) // width, width, made)


def apart_by(answer: Sequence[arb], middle: Sequence[arb]) -> arb:
    return length([x - y for x, y in zip(answer, middle, strict=True)])


def direction(rows: Any) -> Any:
    """Rows of length 1; of zeros where they are 0 or no numbers."""
    with np.errstate(all="ignore"):
        size = np.abs(rows).max(-1, keepdims=True)
        rows = rows / size
        rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.where(np.isfinite(rows), rows, 0.0)


def roughly_known(drawn: Drawn, row: Sequence[arb]) -> tuple[Any, Any]:
    """Floats near the balls and their radii; now and then far wider than rounding makes them."""
    middles, off = near(row, (len(row),))
    if drawn.yes(0.4):
        power = drawn.one_of((drawn.random.uniform(-15, -1), drawn.random.uniform(-1, 0.5)))
        least = drawn.one_of((0.0, 0.0, 1e-9, 1e-2))
        more = np.maximum(np.abs(middles), least) * 10.0**power
        shift = more * drawn.random.uniform(-1, 1, len(row))
        middles, off = middles + shift, (off + more * (1 + 1e-9)) * (1 + 1e-9)
    return middles, off

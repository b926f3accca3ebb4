"""One attention as a claim shows it: its steps, what they read, and who is matched with whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.difference import Difference
from byhand.checking.suspects.casts import bits_of
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import constant
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int_]
FIT = 2.5  # × the usual error: the root mean square of a fit is at most this
FAR = 8.0  # × the usual error: no entry of a fit is further off
HIDDEN = -5e3  # scores up to here are masked


@dataclass(frozen=True)
class Attention:
    """The attention that a wrong line belongs to."""

    difference: Difference
    at: str  # block.0.attn

    @classmethod
    def of(cls, difference: Difference) -> Attention | None:
        """The attention of a line; None where it has none with scores and values."""
        scene = difference.scene
        at = difference.target.address.rpartition(".")[0]
        if not at.endswith(".attn") or not all(scene.has(f"{at}.{name}") for name in
                                               ("scores", "weights", "mixed")):  # fmt: skip
            return None
        return cls(difference, at)

    def step(self, name: str) -> Step:
        """The scores, the weights or the mix."""
        return self.difference.scene.plan[f"{self.at}.{name}"]

    def claimed(self, name: str) -> bool:
        """Whether a step stands outside of the region: it is claimed."""
        return f"{self.at}.{name}" not in self.difference.scene.inside

    def read(self, name: str, role: str) -> Floats | None:
        """What a step reads, where all of it is a number."""
        around, address = self.difference.scene.context.around, self.step(name).inputs.get(role)
        if around is None or address is None:
            return None
        value = around.read(address)
        return value if value is not None and np.isfinite(value).all() else None

    def value(self, name: str) -> Floats | None:
        """The scores or weights as they are read."""
        around = self.difference.scene.context.around
        return None if around is None else around.read(f"{self.at}.{name}")

    @cached_property
    def own(self) -> Truths:
        """The keys that the model's queries see, (head, query, key)."""
        step = self.step("scores")
        return np.broadcast_to(np.asarray(step.attributes["mask"], dtype=bool), step.shape)

    @property
    def queries(self) -> Ints:
        """The positions of the queries."""
        return np.asarray(self.step("scores").attributes["queries"])

    @property
    def keys(self) -> Ints:
        """The positions of the keys."""
        return np.asarray(self.step("scores").attributes["keys"])

    @property
    def fineness(self) -> float:
        """The relative error of one rounding."""
        return float(2.0 ** -bits_of(self.difference.scene.context.precision))

    @property
    def scale(self) -> float:
        """The factor of the scores."""
        scale = self.step("scores").attributes.get("scale")
        return 1.0 if scale is None else float(constant(scale, FORMATS["float64"]))


def spread(values: Floats, heads: int) -> Floats:
    """Key or value heads, each repeated for the query heads that read it."""
    return np.repeat(values, heads // len(values), axis=0)


def fit(left: Floats) -> bool:
    """Whether errors, in usual ones, are what rounding leaves."""
    if not left.size:
        return False
    return bool(left.max() <= FAR and np.sqrt(np.mean(np.square(left))) <= FIT)


def roomy(difference: Difference) -> Floats:
    """The usual error of each entry, also where the claim is larger than what is expected."""
    room, at = difference.room, difference.finite
    if not at.any():
        return room
    size = np.abs(difference.expected[at])
    typical = float(np.median(size)) or float(size.max(initial=0.0)) or 1.0
    relative = float(np.median(room[at] / np.maximum(size, typical)))
    relative = max(relative, 0.4 * 2.0 ** -bits_of(difference.scene.context.precision))
    with np.errstate(invalid="ignore"):
        mine = relative * np.maximum(np.abs(np.where(at, difference.claimed, 0.0)), typical)
    return np.maximum(room, mine)


def nearest(rows: Floats, others: Floats, room: Floats, there: Truths, places: Ints) -> Ints:
    """For each row the number of the other row that it is, or -1; all are (row, entry).

    `places` are the rows' own numbers: of other rows that are alike, the nearest is taken.
    """
    found = np.full(len(rows), -1)
    for number, (row, near, at) in enumerate(zip(rows, room, there, strict=True)):
        if at.any():
            left = np.abs(others[:, at] - row[at]) / near[at]
            fits = (np.sqrt(np.mean(np.square(left), axis=1)) <= FIT) & (left.max(axis=1) <= FAR)
            found[number] = nearest_of(np.flatnonzero(fits), int(places[number]))
    return found


def nearest_of(numbers: Ints, place: int) -> int:
    """The number that is nearest to a place, an earlier one before a later one; -1: none."""
    if not len(numbers):
        return -1
    return int(min(numbers, key=lambda each: (abs(each - place), each > place)))

"""A rotation that differs: what went in, what came out, and a change that turns pairs otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.difference import Difference, Wrong
from byhand.checking.differences.turns import Turns, fit, solved
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.scenes import Draft
from byhand.numbers.floats.angles import frequencies_of
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import constant
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Pairs = tuple[Sequence[int], Sequence[int]]  # the first and the second entries


@dataclass(frozen=True)
class Pairing:
    """The entries that are paired: read from, and written to."""

    read: str
    write: str

    def entries(self, width: int) -> tuple[tuple[range, range], tuple[range, range]]:
        """The first and second entries of the pairs, read and written."""
        return _entries(self.read, width), _entries(self.write, width)


def _entries(pairing: str, width: int) -> tuple[range, range]:
    if pairing == "half":
        return range(width // 2), range(width // 2, width)
    if pairing == "mirrored":
        return range(width // 2), range(width - 1, width // 2 - 1, -1)
    return range(0, width, 2), range(1, width, 2)


@dataclass(frozen=True)
class Case:
    """A rotation that differs: what went in, what came out, and what the model does."""

    difference: Difference
    before: Floats
    after: Floats
    room: Floats
    heads: tuple[int, ...]  # those with a wrong entry
    positions: Floats
    rates: Floats
    magnitude: float  # by which the model multiplies what it turns

    @classmethod
    def of(cls, difference: Difference, before: Floats) -> Case:
        """The case of a difference, with what went in."""
        step = difference.target
        given = difference.input("frequencies")
        width = step.attributes["width"]
        rates = frequencies_of(step.attributes["base"], width) if given is None else given
        room = difference.room
        size, turned = np.abs(difference.expected)[..., :width], room[..., :width]
        relative = float(np.median(turned / np.maximum(size, np.median(size) + 1e-300)))
        fineness = 0.4 * 2.0 ** -bits_of(difference.scene.context.precision)
        room = room.copy()
        least = max(relative, fineness) * np.abs(difference.claimed[..., :width])
        room[..., :width] = np.maximum(turned, least)
        heads = np.flatnonzero(difference.wrong.any(axis=(1, 2)))
        places = np.asarray(step.attributes["positions"], dtype=np.float64)
        scale = step.attributes.get("magnitude")
        magnitude = 1.0 if scale is None else float(constant(scale, FORMATS["float64"]))
        before = np.concatenate((before[..., :width] * magnitude, before[..., width:]), axis=-1)
        return cls(
            difference,
            before,
            difference.claimed,
            room,
            tuple(map(int, heads)),
            places,
            np.asarray(rates, dtype=np.float64),
            magnitude,
        )

    @property
    def step(self) -> Step:
        """The rotation."""
        return self.difference.target

    @property
    def own_pairing(self) -> Pairing:
        """How the model pairs."""
        own = self.step.attributes["pairing"]
        return Pairing(own, own)

    @property
    def d_head(self) -> int:
        """The width of a head."""
        return int(self.before.shape[-1])

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths that may be turned: the model's first."""
        own: int = self.step.attributes["width"]
        others = (self.d_head, self.d_head // 2, self.d_head // 4, own // 2)
        return tuple(dict.fromkeys((own, *(w for w in others if w >= 2 and w % 2 == 0))))

    def pairs(self, data: Floats, entries: tuple[range, range]) -> Complexes:
        """The pairs of the wrong heads as complex numbers, (head, pos, pair)."""
        first, second = entries
        rows = data[list(self.heads)]
        return rows[..., list(first)] + 1j * rows[..., list(second)]

    def turns(self, pairing: Pairing, width: int) -> Turns | None:
        """The factors of the pairs, if every pair has one; the rest of a head must not change."""
        read, write = pairing.entries(width)
        rest = list(range(width, self.d_head))
        off = np.abs(self.after - self.before)[..., rest] / self.room[..., rest]
        if rest and not fit(off):
            return None
        spread = self.pairs(self.room, write)
        room = np.maximum(spread.real, spread.imag)
        turns = solved(self.pairs(self.before, read), self.pairs(self.after, write), room)
        return None if turns is None else turns.blurred(0.3 * self.fineness)

    @property
    def fineness(self) -> float:
        """The relative error of one rounding."""
        return float(2.0 ** -bits_of(self.difference.scene.context.precision))

    @property
    def copied(self) -> npt.NDArray[np.int_]:
        """The pairs that come out exactly as they went in, though the model turns them."""
        first, second = self.own_pairing.entries(2 * len(self.rates))[0]
        same, wrong = self.after == self.before, self.difference.wrong
        pairs = [bool(same[..., [a, b]].all()) for a, b in zip(first, second, strict=True)]
        at = np.flatnonzero(pairs)
        told = [pair for pair in at if wrong[..., [first[pair], second[pair]]].any()]
        return at if len(told) else at[:0]

    def model_tables(self) -> Floats:
        """A, B, C, D of the model, (4, pos, pair)."""
        return tables(np.multiply.outer(self.positions, self.rates))


def tables(angles: Floats, factor: Floats | float = 1.0) -> Floats:
    """A, B, C, D with which a pair (a, b) becomes (A·a + B·b, C·a + D·b)."""
    cos, sin = factor * np.cos(angles), factor * np.sin(angles)
    return np.stack((cos, -sin, sin, cos))


def turned_by(
    case: Case,
    pairing: Pairing,
    width: int,
    angles: Floats,
    size: Floats | float = 1.0,
    given: Floats | None = None,
) -> Wrong:
    """A change: the pairs of the wrong heads turned by these angles, or by given tables."""
    made = tables(angles, size) if given is None else given
    read: Pairs
    write: Pairs
    read, write = pairing.entries(width)
    still = (made == np.array([1.0, 0.0, 0.0, 1.0])[:, None, None]).all(axis=(0, 1))
    if pairing.read == pairing.write and still.any() and len(case.heads) == len(case.before):
        turning = np.flatnonzero(~still)  # the other pairs are copied: nothing is rounded there
        made, angles = made[..., turning], angles[:, turning]
        read, write = (([side[0][at] for at in turning], [side[1][at] for at in turning])
                       for side in (read, write))  # fmt: skip

    def make(draft: Draft, step: Step) -> None:
        heads = case.before.shape[0]
        use = made
        if len(case.heads) < heads and width == case.step.attributes["width"]:
            own = np.broadcast_to(case.model_tables()[:, None], (4, heads, *made.shape[1:]))
            wrong = np.isin(np.arange(heads), case.heads)[None, :, None, None]
            use = np.where(wrong, made[:, None], own)
        draft.change(
            step.address,
            op="turned_by",
            inputs={"x": step.inputs["x"]},
            only=True,
            tables=use * case.magnitude,
            angles=angles,
            read=read,
            write=write,
        )

    return make

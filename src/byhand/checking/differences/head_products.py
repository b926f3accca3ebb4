"""A line that is a product of two inputs, head by head, and what it would be with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import Attention, fit, roomy, spread
from byhand.checking.differences.difference import UNUSUAL, Reading, Wrong
from byhand.checking.differences.positions_read import shown
from byhand.checking.suspects.mistakes import setting
from byhand.checking.suspects.scenes import Draft
from byhand.expression import Number
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int_]
MOST_ROWS = 96  # rows of a line that explanations are first compared on
MOST_WORK = 4e7  # numbers that are compared to find one row among others
MOST_NAMED = 4
ZERO = -1  # stands for a row of zeros


@dataclass(frozen=True)
class Products:
    """A line that is a product of heads of two inputs, and what it would be with others.

    Scores are q·k, mixes are weights·v: `left` is (head, row, inner), `right` (kv head, row, …).
    """

    attention: Attention
    name: str  # scores or mixed
    roles: tuple[str, str]
    left_input: Floats
    right_input: Floats
    beside: Floats  # what else stands in the line: ALiBi, a table
    claimed: Floats
    room: Floats
    there: npt.NDArray[np.bool_]
    free: bool = False  # whether each row is known up to a number only
    times: float = 1.0  # by which the scores are multiplied besides

    @classmethod
    def of(cls, attention: Attention, q: Floats, k: Floats, times: float = 1.0) -> Products:
        """Scores as products; what is added to them is kept."""
        difference = attention.difference
        own = attention.scale * q @ spread(k, len(q)).transpose(0, 2, 1)
        with np.errstate(invalid="ignore"):
            beside = np.where(difference.finite, difference.expected - own, 0.0)
        return cls(
            attention, "scores", ("q", "k"), attention.scale * times * q, k, beside,
            np.where(difference.finite, difference.claimed, 0.0), roomy(difference),
            difference.finite, times=times,
        )  # fmt: skip

    def made(self, left: Floats, right: Floats) -> Floats:
        """The line with other inputs, of as many heads each."""
        if self.name == "scores":
            right = right.transpose(0, 2, 1)
        return left @ right + self.beside

    def left(self, predicted: Floats) -> Floats:
        """What a prediction leaves, in usual errors; 0 where nothing is known."""
        off = np.where(self.there, predicted - self.claimed, 0.0)
        if self.free:
            weight = np.where(self.there, 1 / np.square(np.where(self.there, self.room, 1.0)), 0.0)
            total = weight.sum(axis=-1, keepdims=True)
            off = off - (weight * off).sum(axis=-1, keepdims=True) / np.where(total > 0, total, 1.0)
        return np.where(self.there, np.abs(off) / np.where(self.there, self.room, 1.0), 0.0)

    def fits(self, predicted: Floats, heads: Sequence[int] | None = None) -> bool:
        """Whether a prediction explains the claim, in all heads or in some."""
        chosen = slice(None) if heads is None else list(heads)
        return fit(self.left(predicted)[chosen][self.there[chosen]])

    def explains(self, left: Floats, right: Floats, heads: Sequence[int]) -> bool:
        """Whether other inputs, of as many heads each, explain these heads, by some of the rows."""
        rows, some = self.sample, list(heads)
        other = right[some]
        made = left[some][:, rows] @ (other.transpose(0, 2, 1) if self.name == "scores" else other)
        part = replace(
            self,
            claimed=self.claimed[some][:, rows],
            room=self.room[some][:, rows],
            there=self.there[some][:, rows],
        )
        beside = self.beside[some][:, rows] if self.beside.ndim == 3 else self.beside
        return bool(heads) and part.fits(made + beside)

    @cached_property
    def sample(self) -> Ints:
        """Rows that are enough to tell explanations apart."""
        count = self.claimed.shape[1]
        if count <= MOST_ROWS:
            return np.arange(count)
        return np.unique(np.linspace(0, count - 1, MOST_ROWS).astype(int))

    @cached_property
    def wrong_entries(self) -> npt.NDArray[np.bool_]:
        """The entries that the model's own inputs do not give."""
        return self.left(self.made(self.left_input, self.spread_right)) > UNUSUAL

    @property
    def spread_right(self) -> Floats:
        """The second input, as each head reads it."""
        return spread(self.right_input, len(self.left_input))

    @property
    def wrong(self) -> list[int]:
        """The heads with a wrong entry."""
        return [int(head) for head in np.flatnonzero(self.wrong_entries.any(axis=(1, 2)))]

    def edit(
        self, kind: str, said: str, own: str, change: str, make: Wrong, fitted: int
    ) -> Reading:
        """The edit of the line with other inputs."""
        if self.times != 1.0:
            said = _("{said} and the scores are multiplied by {factor}").format(
                said=said, factor=shown(self.times)
            )
            scale = Number(Fraction(self.attention.scale * self.times))
            make, fitted = both(make, setting(scale=scale)), fitted + 1
        return self.attention.difference.edit(
            kind,
            _("it follows if {said}; {own}"),
            "{advice}",
            make,
            at=self.attention.step(self.name),
            fitted=fitted,
            said=said,
            own=own,
            advice=change,
        )


def both(*changes: Wrong) -> Wrong:
    """Several changes of a line, one after the other."""

    def make(draft: Draft, step: Step) -> None:
        for change in changes:
            change(draft, step)

    return make

"""A difference: a claimed line beside what follows, with everything that a reader may look at.

A reader (`Reader`) looks at a difference and yields edits and descriptions.  An `Edit` is a
hypothesis, which `diagnosis` works out and compares with the claim; constants may be read off the
claim, and `Edit.fitted` counts them.  A `Description` is a sentence that is true of the numbers,
whatever the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
UNUSUAL = 6.0  # × the usual rounding error of an entry
LEAST = 2.0**-40  # of the largest entry: below it nothing counts as a difference


@dataclass(frozen=True)
class Description:
    """A sentence about the numbers, and how much it says: the largest `telling` is shown first."""

    sentence: str
    telling: int = 0


Reading = Edit | Description
Wrong = Callable[[Draft, Step], None]


@dataclass(frozen=True)
class Difference:
    """The claimed and the expected numbers of a line, of one shape."""

    scene: Scene
    claimed: Floats
    expected: Floats
    allowed: Floats  # how far a correct value may be
    usual: Floats  # one standard deviation of what rounding does
    there: Truths  # where there is a claim to judge

    @classmethod
    def of(cls, scene: Scene, there: Truths | None) -> Difference | None:
        """The difference at a scene; None where claimed and expected numbers are not both known."""
        context = scene.context
        if context.values is None or context.expected is None or context.allowed is None:
            return None
        expected = np.asarray(context.expected, dtype=np.float64)
        claimed = np.broadcast_to(np.asarray(context.values, dtype=np.float64), expected.shape)
        allowed = np.broadcast_to(np.asarray(context.allowed, dtype=np.float64), expected.shape)
        usual = allowed / 8 if context.usual is None else np.asarray(context.usual)
        known = np.ones(expected.shape, dtype=bool) if there is None else np.asarray(there)
        return cls(scene, claimed, expected, allowed, np.broadcast_to(usual, expected.shape), known)

    @property
    def target(self) -> Step:
        """The step that the line is about."""
        return self.scene.target

    @property
    def whole(self) -> bool:
        """Whether every entry of the step is claimed, so that axes are those of the step."""
        return not self.scene.context.index and self.expected.shape == self.target.shape

    @property
    def direct(self) -> bool:
        """Whether the step's inputs are claimed or given: nothing unclaimed lies in between."""
        return len(self.scene.region) == 1

    @cached_property
    def finite(self) -> Truths:
        """Where claimed and expected are both numbers that are judged."""
        return self.there & np.isfinite(self.claimed) & np.isfinite(self.expected)

    @cached_property
    def wrong(self) -> Truths:
        """The entries that differ: beyond what is allowed, or far beyond the usual."""
        off = np.abs(np.where(self.finite, self.claimed - self.expected, 0.0))
        beyond = (off > self.allowed) | (off > UNUSUAL * self.room)
        return self.there & (beyond | (np.isfinite(self.expected) & ~np.isfinite(self.claimed)))

    @cached_property
    def room(self) -> Floats:
        """The usual rounding error of each entry; where nothing is rounded, a trifle."""
        size = float(np.abs(self.expected[self.finite]).max(initial=0.0)) or 1.0
        room: Floats = np.maximum(
            np.where(np.isfinite(self.usual), self.usual, np.inf), LEAST * size
        )
        return room

    def input(self, role: str) -> Floats | None:
        """What the step reads in a role, as claimed where it is claimed; or the weight."""
        around, read = self.scene.context.around, self.target.inputs.get(role)
        return None if around is None or read is None else around.read(read)

    def fits(self, predicted: Floats, times: float = UNUSUAL) -> bool:
        """Whether a prediction is as near to the claim as rounding usually leaves it."""
        off = np.abs(predicted - self.claimed)[self.finite]
        return bool((off <= times * self.room[self.finite]).all())

    def edit(
        self,
        kind: str,
        sentence: str,
        change: str,
        make: Wrong,
        *,
        at: Step | None = None,
        fitted: int = 0,
        unlikely: int = 0,
        **words: Any,
    ) -> Edit:
        """The edit that makes a change at a step, the target unless another one is given."""
        draft, step = self.scene.draft(), at or self.target

        def again(other: Draft) -> None:
            make(other, step)

        again(draft)
        said, advice = sentence.format(**words), change.format(**words)
        return Edit(kind, said, advice, draft.made(), unlikely, fitted, True, again)


Reader = Callable[[Difference], Iterator[Reading]]

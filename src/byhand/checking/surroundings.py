"""The numbers around a line: what was claimed, what follows, and what later steps read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from byhand.checking.claims import ClaimedText, Floats
from byhand.checking.replay import Replay
from byhand.errors import ByhandError
from byhand.numbers.allowed import Judged
from byhand.plan import WEIGHT


class Surroundings:
    """The numbers around the lines of one text, as `suspects.scenes.Around` asks for them."""

    def __init__(
        self,
        replay: Replay,
        judged: Mapping[str, Judged],
        others: Sequence[ClaimedText] = (),
    ) -> None:
        self._replay = replay
        self._judged = judged  # of the steps that are claimed as a whole
        self._others = others
        self._worked: dict[str, Floats | None] = {}

    @property
    def claimed_steps(self) -> Sequence[str]:
        """The steps that are claimed as a whole, in spine order."""
        return tuple(each for each in self._replay.claimed if each in self._replay.complete)

    def claimed(self, address: str) -> Floats | None:
        """What the claimant wrote for a step."""
        if address not in self._replay.complete:
            return None
        lines = self._replay.lines[address]
        for line in lines:
            if not line.claim.index and line.claim.claimed is None:
                return line.values
        joined = self._replay.from_claims(self._replay.plan[address]).value  # of several lines
        return np.asarray(joined.mid, dtype=np.float64)

    def expected(self, address: str) -> Floats | None:
        """What follows for a claimed step from the lines above it."""
        judged = self._judged.get(address)
        return None if judged is None else np.asarray(judged.expected)

    def read(self, address: str) -> Floats | None:
        """What later steps read: the claim where there is one, else what follows; or a weight."""
        if address.startswith(WEIGHT):
            return self._weight(address.removeprefix(WEIGHT))
        own = self._replay.plan.known.get(address)
        if own is None:
            return None
        claimed = self.claimed(own)
        if claimed is not None:
            return claimed
        if own not in self._worked:
            self._worked[own] = self._follows(own)
        return self._worked[own]

    def elsewhere(self, address: str) -> Sequence[Floats]:
        """What the claimant wrote for the same step in the other texts of a batch."""
        return tuple(
            np.asarray(claim.values, dtype=np.float64)
            for text in self._others
            for claim in text.claims
            if claim.address == address and not claim.index
        )

    def _weight(self, name: str) -> Floats | None:
        weights = self._replay.weights
        if name not in self._replay.model.weights or weights.unknown(name):
            return None
        return np.asarray(weights[name].mid, dtype=np.float64)

    def _follows(self, address: str) -> Floats | None:
        if self._replay.plan[address].op in ("given", "argmax"):
            return None
        try:
            worked = self._replay.try_edit(self._replay.plan, address)
        except ByhandError:
            return None
        if worked.missing is not None:
            return None
        return np.asarray(worked.value.mid, dtype=np.float64)

"""The pass as somebody has it who rounds every line to the decimals of a sheet, and errs nowhere.

What is true on a worksheet is what its key says: the exact value may differ in the last place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from byhand.checking.replay import DECIMALS, Line, Replay
from byhand.errors import ByhandError
from byhand.evaluate import pencil_sized
from byhand.numbers.base import ABSENT
from byhand.worked import Worked


@dataclass(frozen=True)
class ByPencil:
    """The lines of a sheet's key, worked out when they are first needed."""

    replay: Replay

    @cached_property
    def steps(self) -> Mapping[str, Worked]:
        """Every step; none where the sheet names no decimals, or the model is too large."""
        from byhand.numbers.pencil import Pencil

        replay = self.replay
        if not replay.rounding.half_unit or not pencil_sized(replay.model):
            return {}
        places = int(replay.rounding.name.removeprefix(DECIMALS))
        try:
            return replay.worked_in(Pencil(places), [step.address for step in replay.plan])
        except ByhandError:  # a divisor is rounded to 0
            return {}

    def agrees(self, line: Line) -> bool:
        """Whether a line says what the key says."""
        worked = self.steps.get(line.claim.address)
        if worked is None or worked.missing is not None or worked.whole:
            return False
        whole = np.asarray(worked.value, dtype=object)
        part = np.asarray(whole[line.claim.index], dtype=object)
        right = np.array([np.nan if entry is ABSENT else float(entry) for entry in part.flat])
        right = right.reshape(part.shape)
        near = np.abs(line.values - right) <= self.replay.rounding.half_unit
        left = np.isnan(right)
        if line.claim.claimed is not None:
            left = left | ~line.claim.claimed
        return bool((near | left).all())

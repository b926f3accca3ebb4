"""Ties of experts: choices that rounding leaves open because scores are equal, not merely near."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from byhand.errors import Undecided
from byhand.evaluate import pencil_sized
from byhand.language import _
from byhand.numbers.allowed import Judged
from byhand.plan import Step
from byhand.proving.choices import made_alike
from byhand.worked import Worked

if TYPE_CHECKING:
    from byhand.checking.replay import Line, Replay

MOST_TOLD = 4  # positions in a sentence


class Ties:
    """Which scores of the model are equal: by the router's weights, or by exact numbers."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay

    def settled(self, line: Line, judged: Judged) -> tuple[Judged, str]:
        """The judgement of a choice that is open for ties alone: it follows; and the ties in words.

        Of equal scores, any may be chosen.
        """
        told = self._told(line, judged) if judged.possible else None
        if told is None or judged.open is None:
            return judged, ""
        free = judged.open
        return replace(
            judged,
            shares=np.where(free, 0.0, judged.shares),
            expected=np.where(free, line.values, judged.expected),
            allowed=np.where(free, 0.0, judged.allowed),
            open=None,
        ), told

    def _told(self, line: Line, judged: Judged) -> str | None:
        """The ties that leave a claimed choice open, in words; None where it is open otherwise.

        The claim must choose as many experts as the model.
        """
        step = self.replay.plan[line.claim.address]
        if judged.open is None or step.op != "choose" or line.values.shape != step.shape:
            return None
        tied: dict[tuple[int, ...], list[int]] = {}
        for position, row in enumerate(judged.open):
            experts = tuple(map(int, np.flatnonzero(row)))
            if experts:
                if not self._valid(step, line, position) or not self._equal(
                    step, position, experts
                ):
                    return None
                tied.setdefault(experts, []).append(position)
        return "; ".join(_sentence(experts, places) for experts, places in tied.items())

    def _valid(self, step: Step, line: Line, position: int) -> bool:
        return bool(line.values[position].sum() == step.attributes["count"])

    def _equal(self, step: Step, position: int, experts: tuple[int, ...]) -> bool:
        scores = step.inputs["x"]
        if "groups" in step.attributes:
            return False  # groups may be tied as well
        if made_alike(self.replay.plan, self.replay.model.weights, scores, experts):
            return True
        if self._exact is None or self._exact[scores].missing is not None:
            return False
        first, *rest = (self._exact[scores].at((position, expert)) for expert in experts)
        try:
            return all(first == other for other in rest)
        except Undecided:
            return False

    @cached_property
    def _exact(self) -> dict[str, Worked] | None:
        """The text in exact numbers, where the model is of pencil size and the whole text."""
        replay = self.replay
        if not pencil_sized(replay.model):
            return None
        return replay.exactly([step.inputs["x"] for step in replay.plan if step.op == "choose"])


def _sentence(experts: tuple[int, ...], positions: list[int]) -> str:
    shown = ", ".join(map(str, positions[:MOST_TOLD])) + ", …" * (len(positions) > MOST_TOLD)
    text = _("experts {experts} have equal scores at position {positions}: any of them may answer")
    return text.format(experts=", ".join(map(str, experts)), positions=shown)

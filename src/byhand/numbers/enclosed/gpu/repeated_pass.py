"""A certified pass over texts of one length, prepared once and repeated for other texts.

The first time the host makes its decisions and keeps them (decisions.py).  From then on it asks
nothing on the way, so that on a GPU the whole pass becomes one graph, which runs without the host.
The claims of kept decisions are compared with the numbers of each pass; where a comparison fails,
the pass is worked out as usual.  So every result is either checked or worked out as usual.

Results of a graph lie where the next pass writes its own: read them before the next call, or ask
for `lasting` ones.  The doors to this are in `byhand.repeating` and `byhand.proving.digits`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import torch

from byhand.numbers.enclosed.gpu.decisions import (
    ROOM,
    CannotRepeat,
    Noting,
    Repeating,
    answered_by,
)
from byhand.numbers.enclosed.gpu.kernels import in_background
from byhand.numbers.enclosed.limbs.prediction import LeadingTokens
from byhand.numbers.enclosed.limbs.values import Enclosed, evaluated, lasting
from byhand.numbers.enclosed.limbs.weights import Token

Steps = Mapping[str, Any]  # steps by address, worked out (evaluate.Worked)
QUESTIONS = 1 << 16  # numbers that may be compared in a pass


class RepeatedPass:
    """work(tokens) for texts as long as the first one, all on one device.

    More `room` in the decisions makes them valid for more texts, at the cost of limbs.
    """

    def __init__(
        self,
        work: Callable[[Sequence[int]], Steps],
        tokens: Sequence[int],
        device: Any,
        *,
        room: float = ROOM,
    ) -> None:
        self._work = work
        self._ids = torch.tensor(list(tokens), device=device)
        self._tokens = Token.row(tokens, self._ids)
        self._most = torch.zeros(QUESTIONS, dtype=torch.float64, device=device)
        self._noted: Noting | None = Noting(room)
        self._graph: Any = None
        self.asked = 0  # questions that repeated passes save
        self.fallen_back = 0  # passes whose comparisons failed: they were worked out as usual
        try:
            with answered_by(self._noted):
                self._worked_out()
            self.asked = len(self._noted.kept)
            if self._ids.is_cuda:
                torch.cuda.synchronize()
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph):
                    self._again()
                self._remember()
        except CannotRepeat:
            self._noted = None

    @property
    def repeats(self) -> bool:
        """Whether passes are repeated at all."""
        return self._noted is not None

    def __call__(self, tokens: Sequence[int]) -> Steps:
        """The steps for these tokens: enclosures that contain the real values."""
        # copies, so that lazy results are not kept for another text
        return self._done(tokens, copy)

    def lasting(self, tokens: Sequence[int]) -> Steps:
        """The steps for these tokens in memory that the next pass does not overwrite."""
        return self._done(tokens, _lasting if self._graph is not None else copy)

    def _done(self, tokens: Sequence[int], taken: Callable[[Any], Any]) -> Steps:
        if self._noted is None or len(tokens) != len(self._tokens):
            return self._work(tokens)
        self._ids.copy_(torch.tensor(list(tokens)))
        if not self._repeated():
            self.fallen_back += 1
            with in_background():  # other numbers of limbs need other kernels
                return self._work(tokens)
        return {
            address: replace(step, value=taken(step.value)) for address, step in self._made.items()
        }

    def _repeated(self) -> bool:
        """Repeats the pass; whether all claims of the kept decisions hold."""
        if self._graph is not None:
            self._graph.replay()
            return bool(self._held)
        try:
            self._again()
        except CannotRepeat:
            return False
        self._remember()
        return bool((self._values <= self._bounds).all())

    def _worked_out(self) -> Steps:
        """The steps with all their values and bounds worked out."""
        return {
            address: replace(step, value=evaluated(step.value))
            if isinstance(step.value, Enclosed)
            else step
            for address, step in self._work(self._tokens).items()
        }

    def _again(self) -> None:
        assert self._noted is not None
        repeating = Repeating(self._noted)
        with answered_by(repeating):
            self._made = self._worked_out()
        values, self._limits = repeating.claimed()
        if len(self._limits) > QUESTIONS:
            raise CannotRepeat("more is claimed than can be compared")
        self._values = torch.cat(values)
        self._bounds = self._most[: len(self._limits)]
        self._held = (self._values <= self._bounds).all()  # NaN fails

    def _remember(self) -> None:
        """Copies the bounds of the claims to where they are compared."""
        self._bounds.copy_(torch.tensor(self._limits, dtype=torch.float64))


def _lasting(value: Any) -> Any:
    """A value of a step in memory of its own."""
    if isinstance(value, Enclosed):
        return lasting(value)
    return value.lasting() if isinstance(value, LeadingTokens) else copy(value)

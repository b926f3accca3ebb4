"""What a trace knows besides the numbers: registers, boundaries, returns, and limits taken.

They hold for the weights and the text as they were: a spreadsheet in which a weight was changed
does not work them out anew, and its guide says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document import words
from byhand.language import _
from byhand.plan import Plan
from byhand.tracing import Trace, Worked
from byhand.working import Index


class Remarks:
    """The registers and remarks of a trace; empty where there is none, or it has only floats."""

    def __init__(self, trace: Trace | None) -> None:
        self.trace = trace if trace is not None and trace.numbers.uniform is None else None

    def named(self, address: str, index: Index) -> bool:
        """Whether an entry is known to be no rational number."""
        worked = self._worked(address)
        return worked is not None and worked.register_at(index) == "named"

    def register(self, address: str) -> str:
        """The weakest register of a step, in words; empty where it is not known."""
        worked = self._worked(address)
        return words.register_word(worked.register) if worked and worked.register else ""

    def lines(self, plan: Plan) -> dict[str, tuple[str, ...]]:
        """The remarks of every step that has any."""
        found: dict[str, tuple[str, ...]] = {}
        for step in plan:
            said = tuple(self._said(step.address))
            if step.op == "normalize" and not plan[step.inputs["by"]].attributes["eps"]:
                said += (_("0/0 counts as 0 here, its limit as eps goes to 0"),)
            if said:
                found[step.address] = said
        return found

    def _worked(self, address: str) -> Worked | None:
        if self.trace is None:
            return None
        worked = self.trace.steps.get(address)
        return None if worked is None or worked.missing is not None or worked.whole else worked

    def _said(self, address: str) -> Iterator[str]:
        worked = self._worked(address)
        if worked is None or self.trace is None:
            return
        here = [crossing for crossing in self.trace.crossings if crossing.address == address]
        left = [self._position(c.position) for c in here if not c.returns]
        back = [self._position(c.position) for c in here if c.returns]
        if left:
            yield "◆ " + words.leaves(left, words.why_left(self.trace, worked))
        if back:
            yield "◇ " + words.returns(back, worked.step.attributes.get("kind"))

    def _position(self, position: int) -> str:
        assert self.trace is not None
        token = self.trace.token(self.trace.tokens[position])
        return f"{position} ({words.token_label(token)})"

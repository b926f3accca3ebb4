"""The working of one number of a step, as an expression of the numbers it reads.

`block.0.attn.scores[0,1,1]` is `(q[0,1,0]·k[0,1,0] + q[0,1,1]·k[0,1,1])/√2`: a tree whose leaves
are the addresses of other entries.  The tree holds no value: the terminal writes the values in,
a spreadsheet writes cells, a test evaluates it in another arithmetic and compares.
"""

from __future__ import annotations

from collections.abc import Callable

from byhand.expression import Expression
from byhand.plan import Step
from byhand.working.activations import activation, slope
from byhand.working.learning import Learning
from byhand.working.lines import E, Index
from byhand.working.operations import Operations

__all__ = ["E", "Index", "Working", "activation", "slope"]


class Working(Operations, Learning):
    """The entries of a plan as expressions of each other: those of a pass, and of learning."""

    def of(self, address: str, index: Index) -> Expression | None:
        """The expression of one entry; None where the entry is masked, given or chosen."""
        step = self.plan[address]
        if step.op in ("given", "argmax", "choose") or self.absent(step.address, index):
            return None
        method: Callable[[Step, Index], Expression] = getattr(self, f"_{step.op}")
        return method(step, index)

"""The printed inputs of the blanks, as claims.

Without them `byhand check` would have to allow for the rounding of every unseen line.  With them it
judges an answer from the numbers that the student had.  They earn no marks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.document.compose.worksheet.sheet import LEARNING, WORKED, Blank, Given
from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.pencil import Pencil
from byhand.plan import WEIGHT, Plan
from byhand.tracing import Trace
from byhand.worked import Worked

BLANK, MASKED = "_", "masked"


def given_lines(trace: Trace, blanks: Sequence[Blank], *, everything: bool) -> tuple[Given, ...]:
    """The lines that the blanks are worked out from: whole steps if a sheet shows them.

    The trace must be in pencil numbers.
    """
    values = [blank for blank in blanks if blank.kind in WORKED]
    asked = {place for blank in values for place in blank.places}
    if everything:
        return tuple(_whole_steps(trace, values, asked))
    return tuple(dict.fromkeys(_beside(trace, values, asked)))


def inputs_beside(address: str, plan: Plan) -> Iterator[str]:
    """For an entry that is worked out place by place, the entries it comes from."""
    name, bracket, index = address.partition("[")
    step = plan[name]
    for read in step.reads:
        if not read.startswith(WEIGHT) and plan[read].shape == step.shape:
            yield f"{plan[read].address}{bracket}{index}"


def _whole_steps(trace: Trace, blanks: Sequence[Blank], asked: Collection[str]) -> Iterator[Given]:
    plan = trace.plan
    reads = {
        plan[read].address
        for blank in blanks
        for read in plan[blank.address.partition("[")[0]].reads
        if not read.startswith(WEIGHT)
    }
    if any(blank.kind in LEARNING for blank in blanks):
        reads.add("losses")  # says that the loss is the mean over the text
    for step in plan:
        worked = trace.steps.get(step.address)
        if step.address not in reads or worked is None or worked.whole:
            continue
        texts = _texts(worked, asked)
        if any(text not in (BLANK, MASKED) for text in texts.flat):
            yield Given(step.address, _nested(texts.tolist()))


def _texts(worked: Worked, asked: Collection[str]) -> Any:
    texts = np.empty(worked.step.shape, dtype=object)
    of_attention = worked.step.stage == "forward" and worked.step.axes[-1] == "key"
    masked = MASKED if of_attention else BLANK  # what is masked has no gradient
    for index, entry in worked.entries():
        address = f"{worked.address}[{','.join(map(str, index))}]"
        if address in asked:
            texts[index] = BLANK
        else:
            texts[index] = masked if entry is ABSENT else _text(worked.numbers, entry)
    return texts


def _text(numbers: Numbers, entry: Fraction) -> str:
    assert isinstance(numbers, Pencil)
    return numbers.text(entry)


def _nested(value: Any) -> str:
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else str(value)


def _beside(trace: Trace, blanks: Sequence[Blank], asked: Collection[str]) -> Iterator[Given]:
    for blank in blanks:
        for place in blank.places:
            for address in inputs_beside(place, trace.plan):
                if address not in asked:
                    yield Given(address, _text(trace.numbers, trace[address]))

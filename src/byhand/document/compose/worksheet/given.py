"""The printed inputs of the blanks, as claims.

Without them `byhand check` would have to allow for the rounding of every unseen line.  With them it
judges an answer from the numbers that the student had.  They earn no marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from byhand.document.book import Page
from byhand.document.compose.worksheet.sheet import (
    LEARNING,
    WORKED,
    Blank,
    Given,
    numbers_in,
    quoted,
)
from byhand.document.parts import Cell
from byhand.expression import write
from byhand.numbers.base import ABSENT
from byhand.plan import WEIGHT, Plan
from byhand.tracing import Trace
from byhand.worked import Worked

BLANK, MASKED = "_", "masked"


def given_lines(
    trace: Trace, blanks: Sequence[Blank], texts: Mapping[str, str], *, everything: bool
) -> tuple[Given, ...]:
    """The lines that the blanks are worked out from, as far as the sheet prints them.

    `texts` is what it prints, by address.  Of a model that is not shown with `everything`, single
    entries are given instead of whole steps.
    """
    values = [blank for blank in blanks if blank.kind in WORKED]
    if everything:
        return tuple(_whole_steps(trace, values, texts))
    return tuple(dict.fromkeys(_beside(trace, values, texts)))


def printed_texts(pages: Iterable[Page], blanks: Sequence[Blank], *, exact: bool) -> dict[str, str]:
    """Address → the number as a claims file writes it, of every number that is printed."""
    asked = {place for blank in blanks for place in blank.places}
    passages = (passage for page in pages for passage in page.passages)
    found = {}
    for number in numbers_in(passages):
        if number.address and number.address not in asked and not number.cell.masked:
            text = exact_text(number.cell) if exact else number.cell.decimal
            if text is not None:
                found[number.address] = text
    return found


def exact_text(cell: Cell) -> str | None:
    """A number's exact form as people type it; None where it has none."""
    if cell.form is not None:
        return write(cell.form)
    return cell.decimal if cell.register == "exact" and not cell.cut else None


def inputs_beside(address: str, plan: Plan) -> Iterator[str]:
    """For an entry that is worked out place by place, the entries it comes from."""
    name, bracket, index = address.partition("[")
    step = plan[name]
    for read in step.reads:
        if not read.startswith(WEIGHT) and plan[read].shape == step.shape:
            yield f"{plan[read].address}{bracket}{index}"


def _whole_steps(
    trace: Trace, blanks: Sequence[Blank], texts: Mapping[str, str]
) -> Iterator[Given]:
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
        said = _texts(worked, texts)
        if any(text not in (BLANK, MASKED) for text in said.flat):
            yield Given(step.address, _nested(said.tolist()))


def _texts(worked: Worked, printed: Mapping[str, str]) -> Any:
    texts = np.empty(worked.step.shape, dtype=object)
    of_attention = worked.step.stage == "forward" and worked.step.axes[-1] == "key"
    masked = MASKED if of_attention else BLANK  # what is masked has no gradient
    for index, entry in worked.entries():
        address = f"{worked.address}[{','.join(map(str, index))}]"
        texts[index] = masked if entry is ABSENT else printed.get(address, BLANK)
    return texts


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return value if value in (BLANK, MASKED) else quoted(str(value))


def _beside(trace: Trace, blanks: Sequence[Blank], texts: Mapping[str, str]) -> Iterator[Given]:
    for blank in blanks:
        for place in blank.places:
            for address in inputs_beside(place, trace.plan):
                if address in texts:
                    yield Given(address, texts[address])

"""Enumeration: every text of a region on its own, thousands at once, each common prefix once.

Texts are sorted, so that their prefixes form a tree.  It is worked out position by position in
blocks: the keys and values of a prefix are handed on to all texts that begin with it.  Where a
model looks ahead, or a number of another position is asked for, whole texts lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byhand.numbers.forms import Form, take_cases
from byhand.proving.search.questions import Bounded, Question
from byhand.proving.search.region_passes import Floats, Truths, Weighed, bounded, leads, spread
from byhand.proving.search.text_tables import Texts

BLOCK = 2048  # prefixes worked out together
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Block:
    """Texts next to each other, and the numbers after each; `nodes` says which case a text is."""

    start: int
    stop: int
    nodes: Places
    value: Form


class Enumeration:
    """The passes of a model over single texts."""

    def __init__(self, model: Weighed) -> None:
        self.model = model
        self.passes = 0  # prefixes and texts worked out

    def logits(self, texts: Texts) -> Iterator[Block]:
        """The logits after each text, block by block."""
        if not self.model.model.spec.causal:
            for block in self._side_by_side(texts, "logits"):
                last = block.value.each(lambda x: x[..., -1, :])
                yield Block(block.start, block.stop, block.nodes, last)
            return
        level, past, parents = 0, dict[str, Form](), np.zeros(len(texts), np.intp)
        for known in range(1, texts.tokens.shape[1]):
            begins = texts.branches < known
            found = self.model.prefixes.get(_key(texts, np.flatnonzero(begins), known))
            if found is not None:
                level, past, parents = known, found, np.cumsum(begins) - 1
        yield from self._after(texts, level, range(len(texts)), past, parents)

    def step(self, texts: Texts, address: str) -> Iterator[Block]:
        """A step of the pass of each text, block by block."""
        yield from self._side_by_side(texts, address)

    def _side_by_side(self, texts: Texts, address: str) -> Iterator[Block]:
        length = texts.tokens.shape[1]
        size = max(1, BLOCK // length)
        for start in range(0, len(texts), size):
            tokens = texts.tokens[start : start + size]
            value = self.model.step(self.model.embedded(tokens), address)
            self.passes += len(tokens)
            yield Block(start, start + len(tokens), np.arange(len(tokens)), value)

    def _after(
        self, texts: Texts, level: int, rows: range, past: dict[str, Form], parents: Places
    ) -> Iterator[Block]:
        """The texts of some rows, whose prefixes before `level` are worked out: the keys and values
        of `past`, case `parents` for each row."""
        begins = texts.branches[rows.start : rows.stop] <= level
        begins[0] = True
        firsts = np.flatnonzero(begins)
        model, last = self.model, level == texts.tokens.shape[1] - 1
        kept = [*(model.joined if level else model.kept).values()]
        wanted = ["logits", *kept] if last else kept
        plan = model.plan(1, level, *wanted)
        for place in range(0, len(firsts), BLOCK):
            some = firsts[place : place + BLOCK]
            end = firsts[place + BLOCK] if place + BLOCK < len(firsts) else len(begins)
            nodes = np.cumsum(begins[some[0] : end]) - 1
            within = range(rows.start + int(some[0]), rows.start + int(end))
            found: list[Form] = []
            if wanted:
                tokens = texts.tokens[rows.start + some, level][:, None]
                embedded = model.embedded(tokens, level, texts.tokens.shape[1])
                before = {name: take_cases(form, parents[some]) for name, form in past.items()}
                found = model.work(plan, embedded, before, wanted)
                self.passes += len(some)
            handed_on = dict(zip(model.kept, found[last:], strict=True))
            if len(within) == len(texts):
                model.remember(_key(texts, some, level + 1), handed_on)
            if last:
                value = found[0].each(lambda x: x[..., -1, :])
                yield Block(within.start, within.stop, nodes, value)
            else:
                yield from self._after(texts, level + 1, within, handed_on, nodes)


def _key(texts: Texts, some: Places, length: int) -> tuple[int, bytes]:
    """The prefixes of this length of some texts, as a key."""
    return length, texts.tokens[some, :length].tobytes()


@dataclass(frozen=True, slots=True)
class Told:
    """What enclosures say of some texts."""

    holds: Truths  # proven to hold
    lead: Floats  # a lower bound
    fails: Truths  # nearly proven not to hold
    rounded: Truths  # open because of rounding


def told(models: Sequence[Enumeration], texts: Texts, questions: Sequence[Question]) -> Told:
    """What enclosures say of the questions, one for each text; all models must agree."""
    holds, lead = np.ones(len(texts), dtype=bool), np.full(len(texts), np.inf)
    fails, rounded = np.zeros(len(texts), dtype=bool), np.zeros(len(texts), dtype=bool)
    ahead = np.full(len(texts), -1, dtype=np.intp)
    first = questions[0]
    for place, model in enumerate(models):
        number = first.address if isinstance(first, Bounded) else None
        for block in model.step(texts, number) if number else model.logits(texts):
            rows = slice(block.start, block.stop)
            value = spread(take_cases(block.value, block.nodes), len(block.nodes))
            if number:
                found = bounded(value, [], questions[rows])
            else:
                found = leads(value, [], questions[rows], ahead[rows] if place else None)
            ahead[rows] = found.ahead
            holds[rows] &= found.holds
            fails[rows] |= found.fails
            rounded[rows] |= found.rounded
            lead[rows] = np.minimum(lead[rows], found.lead)
    return Told(holds, lead, fails, rounded)

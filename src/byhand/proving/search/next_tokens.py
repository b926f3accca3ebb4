"""The next token after every text of a region, proven by enclosures or by a trace of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from byhand.model import Model
from byhand.numbers.forms import take_cases
from byhand.proving.domain import Region
from byhand.proving.search.enumeration import Enumeration
from byhand.proving.search.hulls import Embedding
from byhand.proving.search.judging import judge
from byhand.proving.search.questions import ANY, Leads
from byhand.proving.search.region_passes import Weighed, leads, spread
from byhand.proving.search.text_tables import texts_of


@dataclass(frozen=True, slots=True)
class Followed:
    """A text and its next token; None where that is undecided."""

    tokens: tuple[int, ...]
    next: int | None


def next_tokens(model: Model, region: Region, *, until: float) -> Iterator[Followed]:
    """Every text of a region, sorted by its tokens, with its next token.

    From `until` on, a time of `time.monotonic`, what enclosures leave open stays undecided.
    """
    texts = texts_of(region)
    for block in Enumeration(Weighed(model, Embedding(model))).logits(texts):
        count = len(block.nodes)
        value = spread(take_cases(block.value, block.nodes), count)
        found = leads(value, [], [Leads(ANY)] * count)
        for place, row in enumerate(texts.tokens[block.start : block.stop].tolist()):
            after: int | None = int(found.ahead[place])
            if not found.holds[place]:
                late = time.monotonic() > until
                after = None if late else judge(model, row, Leads(ANY)).found
            yield Followed(tuple(row), after)

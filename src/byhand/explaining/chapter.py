"""The explanations in a book, position by position; a large model is run only a few times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from byhand.explaining import Explanation, predicted, strongest_other
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.explaining.ablation import Part
    from byhand.explaining.facts import Facts
    from byhand.explaining.geometry import Geometry

MOST_WAYS = 4  # positions of a large model whose paths are drawn
MOST_CHECKS = 2  # ablations of a large model: each is a run of its own


@dataclass(frozen=True)
class Chapter:
    """The explanations of a trace, worked out on demand; with `large`, as few as possible."""

    trace: Trace
    large: bool = False

    def at(self, position: int) -> Explanation:
        """The explanation of a position: the token predicted there, against its strongest rival."""
        kind = _Sparing if self.large else Explanation
        token = predicted(self.trace, position)
        rival = None if token is None else strongest_other(self.trace, position, token)
        return kind(self.trace, position, token, rival)

    def facts(self, positions: Sequence[int]) -> Facts:
        """The facts of some positions, with every part ablated in turn."""
        from byhand.explaining.facts import facts

        return facts(self.trace, list(positions))

    def few_facts(self, position: int) -> Facts:
        """The facts of one position, with only the most important parts ablated."""
        from byhand.explaining.facts import facts

        parts = tuple(dict.fromkeys(_parts_that_matter(self.at(position))))[:MOST_CHECKS]
        return facts(self.trace, [position], parts)


class _Sparing(Explanation):
    """The explanation of a large model, with the paths of a few positions."""

    @cached_property
    def geometry(self) -> Geometry:
        """The paths of the last MOST_WAYS positions."""
        from byhand.explaining.geometry import geometry_of

        first = max(0, self.position + 1 - MOST_WAYS)
        positions = range(first, self.position + 1)
        said = [] if self.trace.next is None else [self.trace.next[at].id for at in positions]
        tokens = dict.fromkeys((*self.compared, *(id for id in said if id is not None)))
        return geometry_of(self.trace, positions=positions, tokens=tuple(tokens))


def _parts_that_matter(found: Explanation) -> Iterator[Part]:
    """The last side-trip that changed the leading token, then those that add most directly."""
    from byhand.explaining.ablation import Part
    from byhand.explaining.foremost import sizes

    rows = found.lens.of_position(found.position)
    for before, after in reversed(list(pairwise(rows))):
        leaders = [None if row.leader is None else row.leader.id for row in (before, after)]
        if leaders[0] != leaders[1] and after.stop.layer is not None:
            yield Part("attn" if after.stop.kind == "attention" else "mlp", after.stop.layer)
            break
    if found.attribution is None:
        return
    added: dict[Part, float] = {}
    for term, size in zip(found.attribution.terms, sizes(found.attribution), strict=True):
        if term.source.kind in ("head", "mlp") and term.source.layer is not None:
            trip = Part("attn" if term.source.kind == "head" else "mlp", term.source.layer)
            added[trip] = added.get(trip, 0.0) + size
    yield from sorted(added, key=lambda trip: -abs(added[trip]))

"""Passes over many texts at once, masked from each other.

A plan takes positions and mask as data.  The texts of a causal model form a tree: each position is
one text and looks at its prefixes.  Where a model looks ahead, texts lie side by side.  Texts are
grouped so that most passes share one plan, which a GPU then repeats (`repeating`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from byhand import forward
from byhand.evaluate import Admitted, Job, Progress
from byhand.explaining.ablation import Part, ablated
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.proving.digits import enclosing_numbers
from byhand.repeating import Passes
from byhand.tracing import Trace

Text = tuple[int, ...]
REMEMBERED = 64  # plans


class Node(NamedTuple):
    """One position of a pass: the text up to it, and the text it belongs to."""

    begun: Text
    whole: Text


class TextPasses:
    """The passes of a model without some parts; texts with the same layout share a plan."""

    def __init__(self, model: Model, parts: Sequence[Part], device: str | None) -> None:
        self.model, self.parts, self.device = model, parts, device
        self._alike: dict[Hashable, Job] = {}
        self._passes: dict[type[Numbers], Passes] = {}

    def of(self, texts: Sequence[Text]) -> Job:
        """One pass over several texts, which do not see each other."""
        nodes = nodes_of(self.model, texts)
        shared = self.model.spec.causal
        mask = tuple(
            tuple(
                node.begun[: len(other.begun)] == other.begun
                if shared
                else node.whole == other.whole
                for other in nodes
            )
            for node in nodes
        )
        places = tuple(len(node.begun) - 1 for node in nodes)
        ids = tuple(node.begun[-1] for node in nodes)
        if (places, mask) not in self._alike:
            if len(self._alike) >= REMEMBERED:
                self._alike.clear()
            whole = forward.plan(self.model.spec, len(nodes), positions=places, mask=mask)
            numbers = enclosing_numbers(self.model, 1, device=self.device, positions=len(nodes))
            job = Job(self.model, whole.only(("next",)), numbers, "", ids, None, ("next",))
            self._alike[places, mask] = ablated(job, self.parts)
        return replace(self._alike[places, mask], tokens=ids)

    def work(self, texts: Sequence[Text], progress: Progress | None, *, times: int) -> Trace:
        """The pass worked out in enclosures; `times` as in `repeating.Passes`."""
        job = self.of(texts)
        kind = type(job.numbers)
        if kind not in self._passes:
            self._passes[kind] = Passes(Admitted(self.model.weights, job.numbers))
        return self._passes[kind].work(job, keep=job.asked, progress=progress, times=times)


def nodes_of(model: Model, texts: Sequence[Text]) -> list[Node]:
    """The positions of a pass; causal texts share their common prefixes."""
    begun = [Node(text[: n + 1], text) for text in texts for n in range(len(text))]
    if not model.spec.causal:
        return begun
    return list({node.begun: Node(node.begun, node.begun) for node in begun}.values())


def groups(model: Model, texts: Sequence[Text], size: int) -> Iterator[list[Text]]:
    """Groups of sorted texts, each of about `size` positions, to be worked out together.

    For a causal model a group holds all texts with one prefix, if they fit, so that passes share a
    plan.
    """
    if len(texts) <= size and len(nodes_of(model, texts)) <= size:
        yield from [list(texts)] if texts else []
        return
    longest = max(map(len, texts), default=0)
    depth, alphabet = longest, {text[0] for text in texts}
    branch = 1
    while depth > 1 and model.spec.causal and branch * len(alphabet) + 1 <= size:
        branch, depth = branch * len(alphabet) + 1, depth - 1
    if depth == longest:
        yield from chunks(model, texts, size)
        return
    deep = (text for text in texts if len(text) >= depth)
    yield from (list(some) for _start, some in groupby(deep, lambda text: text[:depth]))
    yield from chunks(model, [text for text in texts if len(text) < depth], size)


def chunks(model: Model, texts: Sequence[Text], size: int) -> Iterator[list[Text]]:
    """Groups of texts, each of about `size` positions, to be worked out together."""
    some: list[Text] = []
    weight = 0
    for text in texts:
        more = 1 if model.spec.causal else len(text)
        if some and weight + more > size:
            yield some
            some, weight = [], 0
        some.append(text)
        weight += more
    if some:
        yield some

"""What gradients tell: which weights and tokens would change the loss most, checked by removal.

The loss is that of the explained token at its position.  A gradient says how the loss changes with
a small change of a number.  Taken for the whole way to 0, it estimates what happens without a token
or a part: -Σ value·gradient.  The estimate is *said*; the change of the loss when the text is
worked out without it is *found*.  Everything here is rounded: floats, one backward pass, and one
forward pass for each removal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

import numpy as np

from byhand import forward
from byhand.backward import adjoint
from byhand.evaluate import Admitted, Job, Progress, usual_format
from byhand.explaining.ablation import Part, ablated, unchanged, usual_parts
from byhand.explaining.approximations import Floats, floats_near
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.floats import Floats as FloatNumbers
from byhand.parameters import learned, size_of
from byhand.plan import GRAD, WEIGHT
from byhand.reading import beside
from byhand.tracing import Trace
from byhand.worked import Missing

MOST_WORDS = 64  # tokens that are taken away one by one: the nearest before the position
MOST_PARTS = 64  # parts that are taken away; single heads only where there are fewer
SMALL = 20_000_000  # parameters up to which float64 is used, whatever the weights are
FOREMOST = 3  # entries of a weight that are named


@dataclass(frozen=True, slots=True)
class Removal:
    """A token or a part taken away: the change of the loss, said and found."""

    part: Part
    said: float  # by the gradient: -Σ value·gradient
    found: float  # the loss without it, less the loss with it

    @property
    def agrees(self) -> bool:
        """Whether the gradient has the direction right."""
        return self.said * self.found > 0 or self.said == self.found == 0


@dataclass(frozen=True, slots=True)
class Pull:
    """How strongly the loss pulls at a weight: the size of its gradient, its foremost entries."""

    name: str
    size: float  # root of the sum of squares
    foremost: tuple[tuple[tuple[int, ...], float], ...]  # index and gradient, the largest first


@dataclass(frozen=True)
class Saliency:
    """The loss of a token, what it pulls at, and what it depends on."""

    trace: Trace  # with the backward pass, in floats
    position: int
    token: int
    words: tuple[Removal, ...] = ()  # the tokens of the text
    parts: tuple[Removal, ...] = ()  # of the model
    pulls: tuple[Pull, ...] = ()  # of the weights, the strongest first
    missing: Missing | None = None  # why there are no gradients

    @property
    def loss(self) -> float:
        """-ln of the token's probability."""
        return float(self.trace.mean_loss)

    @cached_property
    def order(self) -> float | None:
        """The share of pairs of removals that the gradient puts in the right order of size."""
        every = [*self.words, *self.parts]
        pairs = [(a, b) for i, a in enumerate(every) for b in every[:i] if a.found != b.found]
        if not pairs:
            return None
        right = sum((a.said - b.said) * (a.found - b.found) > 0 for a, b in pairs)
        return right / len(pairs)


def saliency(
    trace: Trace, position: int, token: int, *, progress: Progress | None = None
) -> Saliency:
    """What the gradients of a token's loss at a position tell, checked by removals."""
    model = trace.model
    targets = [UNCOUNTED] * len(trace.tokens)
    targets[position] = token
    read = beside(trace.source, trace.segments)
    plan = forward.plan(model.spec, len(trace.tokens), losses=True, **read)
    small = size_of(model.spec) <= SMALL
    numbers = FloatNumbers("float64" if small else usual_format(model))
    job = Job(
        model,
        adjoint(plan),
        numbers,
        trace.text,
        trace.tokens,
        targets=tuple(targets),
        source=trace.source,
        segments=trace.segments,
    )
    weights = Admitted(model.weights, numbers)
    found = job.work(weights=weights, progress=progress)
    if (missing := found["mean_loss"].missing) is not None:
        return Saliency(found, position, token, missing=missing)
    taking = _Taking(replace(job, plan=plan.only(["mean_loss"])), found, weights)
    words = [Part("word", index=place) for place in _seen(trace, position)]
    return Saliency(
        found,
        position,
        token,
        tuple(map(taking.away, words)),
        tuple(map(taking.away, _parts(trace))),
        tuple(_pulls(found)),
    )


def _seen(trace: Trace, position: int) -> Sequence[int]:
    """The positions whose tokens may count: the last ones before, or around, the position."""
    last = position if trace.model.spec.causal else len(trace.tokens) - 1
    return range(max(0, last + 1 - MOST_WORDS), last + 1)


def _parts(trace: Trace) -> tuple[Part, ...]:
    parts = usual_parts(trace.model.spec)
    return parts if len(parts) <= MOST_PARTS else tuple(p for p in parts if p.kind != "head")


class _Taking:
    """Takes parts away, one at a time, and compares the change of the loss with the gradient."""

    def __init__(self, job: Job, trace: Trace, weights: Admitted) -> None:
        self.job, self.trace, self.weights = job, trace, weights

    def away(self, part: Part) -> Removal:
        """The removal of one part."""
        job = ablated(self.job, [part])
        without = replace(job, known=unchanged(self.trace, job))
        worked = without.work(weights=self.weights, keep=("mean_loss",))
        return Removal(
            part, self._said(part), float(worked.mean_loss) - float(self.trace.mean_loss)
        )

    def _said(self, part: Part) -> float:
        address, place = part.address.partition("[")[0], part.index
        value, grad = self._floats(address), self._floats(GRAD + address)
        if place is not None:
            value, grad = value[place], grad[place]
        return 0.0 - float(np.sum(value * grad))

    def _floats(self, address: str) -> Floats:
        worked = self.trace[address]
        return floats_near(worked.numbers, worked.value)


def _pulls(trace: Trace) -> list[Pull]:
    """Every weight with the size of its gradient, the strongest pull first."""
    found = []
    for parameter in learned(trace.model.spec):
        worked = trace[f"{GRAD}{WEIGHT}{parameter.name}"]
        near = floats_near(worked.numbers, worked.value)
        size = float(np.linalg.norm(near))
        flat = np.abs(near).ravel()
        first = np.argpartition(-flat, min(FOREMOST, flat.size) - 1)[:FOREMOST]
        places = [
            tuple(map(int, np.unravel_index(i, near.shape)))
            for i in sorted(first, key=lambda i: -flat[i])
        ]
        entries = tuple((place, float(near[place])) for place in places if near[place])
        found.append(Pull(parameter.name, size if isfinite(size) else np.inf, entries))
    return sorted(found, key=lambda pull: -pull.size)

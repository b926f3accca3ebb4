"""Turns: the steps at which the leading token of each position changes.

After the embedding and after each side-trip the stream is read as if the model ended there
(`lens`).  The leaders of these readings tell which step turned the stream towards which token.
Each step also has its direct addition to the lead of the prediction over its nearest rival
(`attribution`), and the prediction without that addition.  Sentences are made elsewhere; `facts`
tests them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from math import isnan, nan
from typing import Any

import numpy as np

from byhand.errors import Undecided
from byhand.evaluate import Admitted, Progress
from byhand.explaining.ablation import Part, side_trips
from byhand.explaining.approximations import floats_near, near_entry
from byhand.explaining.asked import tell_doing
from byhand.explaining.attribution import Attribution, attribute
from byhand.explaining.lens import Lens, LensRow, look
from byhand.explaining.sources import Source
from byhand.language import _
from byhand.numbers.base import Numbers, Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.plan import WEIGHT
from byhand.tracing import Trace

UNDECIDED = Prediction(None, None, proven=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """One position's stream after a step, read as if the model ended there."""

    part: Part | None  # the side-trip that was added last; None: the embedding alone
    address: str  # of the stream that is read
    leader: Prediction  # its id is None where it is undecided
    lead: Any  # of the final prediction over its rival at this step; None: unknown


@dataclass(frozen=True, slots=True)
class Change:
    """A step after which another token leads than before."""

    part: Part
    old: int  # the token that led before the step
    new: int  # the token that leads after it
    before: Any  # lead of the new token over the old before the step: not above 0
    after: Any  # the same lead after the step: not below 0


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one part adds, directly, to the lead of the prediction over its rival."""

    part: Part
    value: Any  # a number of the trace; None where it is unknown
    near: float = float("nan")  # a float near it, to order contributions by


@dataclass(frozen=True, slots=True)
class Turning:
    """How one position comes to its prediction."""

    position: int
    prediction: Prediction
    rival: int | None  # the token with the nearest logit at the end; None where there is none
    readings: tuple[Reading, ...]  # the embedding first, in spine order; the last is the end
    turned: int | None  # index of the reading from which the prediction leads; None: undecided
    changes: tuple[Change, ...]  # of the leader, in spine order; undecided readings have none
    contributions: tuple[Contribution, ...]  # of every part and bias: they add up to the lead

    @property
    def lead(self) -> Any:
        """The lead of the prediction over its rival, at the end."""
        return self.readings[-1].lead

    @property
    def foremost(self) -> Contribution | None:
        """The contribution that adds most to the lead; None where none adds to it."""
        most = max(self.contributions, key=_size, default=None)
        return most if most is not None and most.near > 0 else None

    @property
    def against(self) -> Contribution | None:
        """The contribution that takes most from the lead; None where none does."""
        least = min(self.contributions, key=_size, default=None)
        return least if least is not None and least.near < 0 else None


class Turns:
    """The turnings of a trace, with the terms that they are made of.

    The trace must have its steps, and a prediction (`trace.next`).
    """

    def __init__(
        self,
        trace: Trace,
        positions: Sequence[int] | None = None,
        *,
        neurons: bool = False,
        heads: bool = True,
        weights: Admitted | None = None,
        lens: Lens | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.trace = trace
        tell_doing(progress, _("the terms of the logits"))
        self.attribution: Attribution = attribute(
            trace,
            positions=positions,
            neurons=neurons,
            heads=heads,
            closing=False,
            weights=weights,
        )
        self.positions = self.attribution.positions
        if lens is None:
            lens = look(trace, self.positions, weights=weights, progress=progress)
        self.lens = lens
        self._made: dict[Part, Any] = {}

    @property
    def numbers(self) -> Numbers:
        """The number system of the trace."""
        return self.trace.numbers

    @cached_property
    def found(self) -> tuple[Turning, ...]:
        """For each position, the step at which the predicted token took the lead."""
        return tuple(map(self._turning, self.positions))

    @cached_property
    def rivals(self) -> tuple[int | None, ...]:
        """The nearest other token at each position, chosen by floats: no proof rests on it."""
        assert self.trace.next is not None
        near = floats_near(self.numbers, self.attribution.value)
        found: list[int | None] = []
        for row, position in zip(near, self.positions, strict=True):
            first = self.trace.next[position].id
            if first is not None:
                row[first] = -np.inf
            best = int(np.argmax(np.where(np.isnan(row), -np.inf, row)))
            found.append(best if first is not None and np.isfinite(row[best]) else None)
        return tuple(found)

    def _turning(self, position: int) -> Turning:
        assert self.trace.next is not None
        prediction = self.trace.next[position]
        rival = self.rivals[self.positions.index(position)]
        rows = self.lens.of_position(position)
        readings = tuple(self._reading(row, prediction.id, rival) for row in rows)
        added = [(part, self.added(part, position)) for part in _whole(self)]
        return Turning(
            position,
            prediction,
            rival,
            readings,
            _leads_from(readings, prediction.id),
            tuple(_changes(rows, readings)),
            tuple(Contribution(part, value, _near(value)) for part, value in added),
        )

    def _reading(self, row: LensRow, first: int | None, rival: int | None) -> Reading:
        kind = {"attention": "attn", "mlp": "mlp"}.get(row.stop.kind)
        lead = None
        if row.logits is not None and first is not None and rival is not None:
            lead = _difference(row.logits[first], row.logits[rival])
        part = None if kind is None else Part(kind, row.stop.layer)
        return Reading(part, row.step, row.leader or UNDECIDED, lead)

    # ------------------------------------------------------------------- what a part adds

    def term(self, part: Part) -> Any:
        """What the part adds to the logits, directly: (position, vocab), or None for nothing.

        Raises Undecided where a piece of it is not known.  The bias of a side-trip's output belongs
        to the side-trip, that of a head's values to the head.
        """
        terms = [term for term in self.attribution.terms if _belongs(term.source, part)]
        if any(term.missing is not None for term in terms):
            raise Undecided(_("a term is not known"))
        return reduce(self.numbers.add, (term.value for term in terms)) if terms else None

    def added(self, part: Part, position: int) -> Any:
        """What the part adds to the lead at a position; None where there is no rival."""
        place = self.positions.index(position)
        assert self.trace.next is not None
        first, rival = self.trace.next[position].id, self.rivals[place]
        if first is None or rival is None:
            return None
        try:
            term = self._entries(part)
        except Undecided:
            return None
        if term is None:
            return self.numbers.entries(self.numbers.admit(np.zeros((1, 1), np.float32)))[0, 0]
        return _difference(term[place, first], term[place, rival])

    def _entries(self, part: Part) -> Any:
        """The entries of a part's term, made once."""
        if part not in self._made:
            term = self.term(part)
            self._made[part] = None if term is None else self.numbers.entries(term)
        return self._made[part]

    def without_each(self, parts: Sequence[Part]) -> list[tuple[Prediction, ...]]:
        """For each part, the prediction at each position from the logits less the part's own term.
        Where all numbers are of one kind, they are worked out at once."""
        if not self.numbers.uniform:
            return [self._largest([part])[0] for part in parts]
        return self._largest(parts)

    def _largest(self, parts: Sequence[Part]) -> list[tuple[Prediction, ...]]:
        assert self.trace.next is not None
        found: dict[Part, tuple[Prediction, ...]] = {}
        terms: dict[Part, Any] = {}
        for part in parts:
            try:
                term = self.term(part)
            except Undecided:
                found[part] = (UNDECIDED,) * len(self.positions)
            else:
                if term is None:
                    found[part] = tuple(self.trace.next[position] for position in self.positions)
                else:
                    terms[part] = term
        if terms:
            found |= dict(zip(terms, self._rests(list(terms.values())), strict=True))
        return [found[part] for part in parts]

    def _rests(self, terms: Sequence[Any]) -> list[tuple[Prediction, ...]]:
        """For each term, the predictions from the logits less that term."""
        numbers, count = self.numbers, len(self.positions)
        all_terms = numbers.stack_rows(terms) if len(terms) > 1 else terms[0]
        logits = numbers.take_rows(self.attribution.value, list(range(count)) * len(terms))
        minus = numbers.admit(np.full(logits.shape[-1], -1.0, dtype=np.float32))
        try:
            told = tuple(numbers.argmax(numbers.add(logits, numbers.affine(all_terms, gain=minus))))
        except Undecided:
            told = (UNDECIDED,) * (count * len(terms))
        return [told[at : at + count] for at in range(0, len(told), count)]


def _belongs(source: Source, part: Part) -> bool:
    """Whether a source of the attribution belongs to the part."""
    at = f"block.{part.layer}"
    match part.kind:
        case "token" | "position":
            return source.kind == part.kind
        case "bias":
            return source.address == part.address
        case "head":
            return source.address == f"{at}.attn.head_out" and source.index == (part.index,)
        case "neuron":
            own = source.kind == "neuron" and source.layer == part.layer
            return own and source.index == (part.index,)
        case "attn":
            return source.address in (f"{at}.attn.head_out", f"{WEIGHT}{at}.attn.out_bias")
        case _:
            mlp = f"{at}.mlp"
            inside = (f"{mlp}.out", f"{mlp}.act", f"{mlp}.gated")
            return source.address in (*inside, f"{WEIGHT}{mlp}.out_bias")


def _whole(turns: Turns) -> tuple[Part, ...]:
    """The parts whose terms add up to the logits: embeddings, side-trips, and separate biases."""
    sources = [term.source for term in turns.attribution.terms]
    trips = side_trips(turns.trace.model.spec)
    parts: dict[Part, None] = {}
    for source in sources:
        parts[next(_owners(source, trips))] = None
    return tuple(parts)


def _owners(source: Source, trips: Sequence[Part]) -> Iterator[Part]:
    if source.kind in ("token", "position"):
        yield Part(source.kind)
    yield from (trip for trip in trips if _belongs(source, trip))
    yield Part("bias", name=source.address.removeprefix(WEIGHT))


def _leads_from(readings: Sequence[Reading], id: int | None) -> int | None:
    """The index of the reading from which on the token leads; None where undecided."""
    if id is None:
        return None
    first = len(readings) - 1
    while first and readings[first - 1].leader.id == id:
        first -= 1
    if first and readings[first - 1].leader.id is None:
        return None
    return first


def _changes(rows: Sequence[LensRow], readings: Sequence[Reading]) -> Iterator[Change]:
    """Where the leader changes from one reading to the next."""
    for (before, after), (old, new) in zip(pairwise(rows), pairwise(readings), strict=True):
        first, then = old.leader.id, new.leader.id
        if new.part is not None and first is not None and then is not None and first != then:
            yield Change(
                new.part,
                first,
                then,
                _difference(before.logits[then], before.logits[first]),
                _difference(after.logits[then], after.logits[first]),
            )


def _size(contribution: Contribution) -> float:
    return 0.0 if isnan(contribution.near) else contribution.near


def _near(value: Any) -> float:
    """A float near an entry; NaN where there is none."""
    return nan if value is None else near_entry(value)


def _difference(a: Any, b: Any) -> Any:
    """a - b, of two entries of one number system."""
    if isinstance(a, Enclosure):
        return Enclosure(a.mid - b.mid, a.rad + b.rad)
    return a - b

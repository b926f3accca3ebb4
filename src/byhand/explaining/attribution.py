"""Direct attribution: each logit as the sum of what every part of the model wrote into it.

The scale of each norm is held at its value for this input.  Then the path from a source to the
logits is linear, so the terms add up to the logits.  `remainder` is the trace's value less the sum
of the terms, in the trace's own numbers; `closes` says what is known of it:

    "exact"    it is 0, by algebra
    "proven"   every enclosure of it holds 0; `radius` says how narrow they are (of exact numbers
               whose forms are too large for a proof by algebra, too)
    "rounded"  it is what rounding left; `relative` says how much that is
    "open"     a term is missing, or it is not 0

A term is direct: the effect of a head through later blocks is part of their terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from math import inf
from typing import Any

import numpy as np

from byhand.errors import AddressError, InputError, Undecided
from byhand.evaluate import Admitted
from byhand.explaining.approximations import Floats, floats_near
from byhand.explaining.path import Part, Way, stacked
from byhand.explaining.sources import Source, final_stream, spine
from byhand.language import _
from byhand.numbers.base import Numbers
from byhand.numbers.enclosed.enclosure import SLACK, Enclosing
from byhand.tracing import Trace
from byhand.worked import Missing

FINEST = 4096  # bits of the finest enclosures that tell exact numbers apart
MOST = 200_000_000  # numbers that a table of terms may have


@dataclass(frozen=True)
class Term:
    """What one source adds: a value (position, column) of the numbers, or why there is none."""

    source: Source
    value: Any
    numbers: Numbers
    missing: Missing | None = None

    @cached_property
    def array(self) -> Any:
        """The value as an array on this machine, by the places in `positions` and `columns`."""
        if self.missing is not None:
            raise self.missing.error(self.source.name)
        return self.numbers.entries(self.value)


@dataclass(frozen=True)
class Attribution:
    """The logits, or the final stream, at some positions and columns, term by term."""

    of: str  # "logits" | "stream"
    trace: Trace
    positions: tuple[int, ...]
    columns: tuple[int, ...]  # token ids; for the stream, entries of d
    terms: tuple[Term, ...]  # in spine order
    value: Any  # of the trace: (position, column); None where it is missing
    total: Any  # the terms added up; None where one is missing
    remainder: Any  # value less total; None where one of them is unknown
    closes: str  # "exact" | "proven" | "rounded" | "open"
    against: tuple[int, ...] = ()  # for a difference: the token whose logit is subtracted
    limits: tuple[
        tuple[str, int], ...
    ] = ()  # norms (and position) that took 0/0 for 0: terms are 0
    size: float = 0.0  # of the largest number attributed

    @property
    def numbers(self) -> Numbers:
        """The number system of the trace."""
        return self.trace.numbers

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    def __getitem__(self, name: str) -> Term:
        """The term of a source, by its name: block.0.attn.head_out[2]."""
        for term in self.terms:
            if term.source.name == name:
                return term
        raise AddressError(_("there is no source {name}").format(name=repr(name)))

    def entry(self, term: Term, position: int, column: int) -> Any:
        """One number of a term, by position and token (or entry of the stream)."""
        return term.array[self.positions.index(position), self.columns.index(column)]

    @cached_property
    def totals(self) -> Any:
        """The total as an array on this machine; None where a term is missing."""
        return None if self.total is None else self.numbers.entries(self.total)

    @cached_property
    def remainders(self) -> Any:
        """The remainder as an array on this machine; None where it is not known."""
        return None if self.remainder is None else self.numbers.entries(self.remainder)

    @cached_property
    def radius(self) -> float:
        """A proven upper bound of the remainder; infinite where nothing is proven."""
        if self.closes == "exact":
            return 0.0
        if self.closes != "proven":
            return inf
        if not isinstance(self.numbers, Enclosing):
            return max(_size(entry) for entry in self.remainder.flat)
        sizes, radii = self.numbers.magnitudes(self.remainder)
        return float(np.max((np.exp2(sizes) + np.exp2(radii)) * (1 + 2.0**-18), initial=0.0))

    @cached_property
    def relative(self) -> float:
        """The largest remainder over the largest number attributed, in floats; NaN if unknown."""
        if self.closes == "exact":
            return 0.0
        if self.remainder is None:
            return float("nan")
        largest = float(np.max(np.abs(floats_near(self.numbers, self.remainder)), initial=0.0))
        return largest / self.size if self.size else largest

    @cached_property
    def reaches(self) -> tuple[Floats, Floats]:
        """Floats near each known term's length, and near its component along the total.

        It takes one position.  The components add up to the total's length, up to rounding.
        """
        values = [term.value for term in self.terms if term.missing is None]
        near = np.array([floats_near(self.numbers, value)[0] for value in values])
        whole = near.sum(axis=0)
        length = float(np.linalg.norm(whole))
        along = near @ whole / length if length else np.zeros(len(near))
        return np.linalg.norm(near, axis=1), along

    # ------------------------------------------------------------------- parts and differences

    def of_position(self, position: int) -> Attribution:
        """The same at one of its positions."""
        if position not in self.positions:
            told = _("position {position} was not attributed").format(position=position)
            raise AddressError(told)
        place = [self.positions.index(position)]
        limits = tuple(limit for limit in self.limits if limit[1] == position)
        changed = replace(self, positions=(position,), limits=limits)
        return changed._each(lambda value: self.numbers.take_rows(value, place))

    def difference(self, a: int, b: int) -> Attribution:
        """The terms of logit a less logit b: one column."""
        for token in (a, b):
            if token not in self.columns:
                raise AddressError(_("token {token} was not attributed").format(token=token))
        numbers = self.numbers
        places = [self.columns.index(a), self.columns.index(b)]
        signs = numbers.admit(np.array([[1.0], [-1.0]], dtype=np.float32))
        changed = replace(self, columns=(a,), against=(b,))
        return changed._each(
            lambda value: numbers.linear(
                numbers.take_columns(value, places), signs, layout="in_out"
            )
        )

    def _each(self, function: Any) -> Attribution:
        """A linear function of every value; what is known of the remainder still holds."""

        def of(value: Any) -> Any:
            return None if value is None else function(value)

        terms = tuple(replace(term, value=of(term.value)) for term in self.terms)
        value, total, remainder = map(of, (self.value, self.total, self.remainder))
        changed = replace(self, terms=terms, value=value, total=total, remainder=remainder)
        if self.closes in ("exact", "open"):
            return changed
        return replace(changed, closes=_closes(self.numbers, remainder)[0])


def attribute(
    trace: Trace,
    *,
    positions: Sequence[int] | None = None,
    tokens: Sequence[int] | None = None,
    neurons: bool = False,
    keys: bool = False,
    heads: bool = True,
    of: str = "logits",
    closing: bool = True,
    weights: Admitted | None = None,
) -> Attribution:
    """The terms of the logits of a trace, or of its final stream (`of` "stream").

    It takes all positions and tokens, unless some are asked for; then it reads only their rows and
    columns of the unembedding.  `neurons` makes each MLP unit a term, `keys` each position that a
    head reads.  Without `heads`, an attention is one term.  For the stream, `tokens` are entries of
    it.  Without `closing`, the terms are not added up.  The trace must have its steps; it needs no
    head outputs.  `weights` are the model's, if admitted before.
    """
    plan, numbers = trace.plan, trace.numbers
    end = final_stream(plan) if of == "stream" else plan["logits"].address
    length, width = plan[end].shape
    outside = _("an entry lies outside the residual stream")
    if of != "stream":
        outside = _("a token lies outside the vocabulary")
    places = _within(positions, length, _("a position lies outside the text"))
    columns = _within(tokens, width, outside)
    _check_size(trace, places, columns, neurons, keys)
    way = Way(
        trace,
        places,
        Admitted(trace.model.weights, numbers) if weights is None else weights,
        neurons=neurons,
        keys=keys,
        heads=heads,
        sparing=weights is None,
    )
    stages = spine(plan, end)
    some = None if tokens is None else columns
    parts = way.parts(stages, some if of == "logits" else None)
    if some is not None and of == "stream":
        parts = [_picked(part, numbers, columns) for part in parts]
    terms = tuple(_in_order(_terms(parts, numbers, len(places))))
    worked = trace.steps.get(end)
    value = None
    if worked is not None and worked.missing is None:
        value = numbers.take_rows(worked.value, places)
        value = value if some is None else numbers.take_columns(value, columns)
    total = _total(parts, numbers, len(places)) if closing else None
    closes, remainder = "open", None
    if total is not None and value is not None:
        closes, remainder = _closes(numbers, _less(numbers, value, total))
    size = 0.0 if value is None else float(np.max(np.abs(floats_near(numbers, value)), initial=0.0))
    return Attribution(
        of, trace, places, columns, terms, value, total, remainder, closes,
        limits=tuple(dict.fromkeys(way.limits)), size=size,
    )  # fmt: skip


# ----------------------------------------------------------------------- terms and their sum


def _terms(parts: Iterable[Part], numbers: Numbers, count: int) -> Iterator[Term]:
    for part in parts:
        if part.missing is not None:
            yield from (Term(source, None, numbers, part.missing) for source in part.sources)
            continue
        rows = stacked(numbers, [part])
        for place, source in enumerate(part.sources):
            own = range(place * count, (place + 1) * count)
            yield Term(source, numbers.take_rows(rows, own), numbers)


def _in_order(terms: Iterable[Term]) -> Iterator[Term]:
    """The terms in spine order, and those of one address by their index: keys head by head."""
    for _address, group in groupby(terms, key=lambda term: term.source.address):
        yield from sorted(group, key=lambda term: term.source.index)


def _picked(part: Part, numbers: Numbers, columns: Sequence[int]) -> Part:
    if part.missing is not None:
        return part
    return replace(part, value=numbers.take_columns(part.value, columns))


def _total(parts: Sequence[Part], numbers: Numbers, count: int) -> Any:
    """The sum of all rows, by repeated halving; None where one is missing."""
    if any(part.missing is not None for part in parts):
        return None
    rows = stacked(numbers, parts)
    sources = rows.shape[0] // count
    while sources > 1:
        half = sources // 2 * count
        both = [numbers.take_rows(rows, range(at, at + half)) for at in (0, half)]
        added = numbers.add(*both)
        if sources % 2:
            last = numbers.take_rows(rows, range(2 * half, 2 * half + count))
            added = numbers.stack_rows([added, last])
        rows, sources = added, sources - sources // 2
    return rows


def _less(numbers: Numbers, x: Any, y: Any) -> Any:
    """x - y, as x + (-1)·y: number systems have no subtraction."""
    minus = numbers.admit(np.full(y.shape[-1], -1.0, dtype=np.float32))
    return numbers.add(x, numbers.affine(y, gain=minus))


def _closes(numbers: Numbers, remainder: Any) -> tuple[str, Any]:
    """What is known of the remainder, and the remainder: plain zeros where it is proven 0."""
    if isinstance(numbers, Enclosing):
        return ("proven" if _holds_zero(numbers, remainder) else "open"), remainder
    if numbers.uniform is not None:
        finite = np.isfinite(floats_near(numbers, remainder)).all()
        return ("rounded" if finite else "open"), remainder
    signs = [_differs(entry) for entry in remainder.flat]
    if True in signs:
        return "open", remainder
    if None in signs:  # undecided: the finest enclosures hold 0
        return "proven", remainder
    return "exact", numbers.admit(np.zeros(remainder.shape, dtype=np.float32))


def _differs(entry: Any) -> bool | None:
    """Whether an exact-or-named value is other than 0; None where no proof is found."""
    try:
        return bool(entry)
    except Undecided:
        return None


def _size(entry: Any) -> float:
    """An upper bound of an exact-or-named value's size, from an enclosure as fine as proofs use."""
    if entry.fraction == 0:
        return 0.0
    above = float(abs(entry.ball(FINEST)).upper())
    return max(above * (1 + 2.0**-50), 5e-324)  # it may be below the floats


def _holds_zero(numbers: Enclosing, remainder: Any) -> bool:
    """Whether every enclosure holds 0, by logarithms; close cases entry by entry."""
    sizes, radii = numbers.magnitudes(remainder)
    sure = (sizes < radii - 2 * SLACK) | np.isneginf(sizes)
    if sure.all():
        return True
    entries = numbers.entries(remainder)
    return all(entries[tuple(place)].contains(0) for place in np.argwhere(~sure).tolist())


# ----------------------------------------------------------------------- what was asked


def _within(asked: Sequence[int] | None, count: int, outside: str) -> tuple[int, ...]:
    """The places asked for, counted from the start; all of them where none were."""
    if asked is None:
        return tuple(range(count))
    for place in asked:
        if not -count <= place < count:
            raise InputError(
                outside,
                expected=_("a whole number from {least} to {most}").format(least=0, most=count - 1),
                found=str(place),
            )
    return tuple(dict.fromkeys(int(place) % count for place in asked))


def _check_size(
    trace: Trace, positions: Sequence[int], columns: Sequence[int], neurons: bool, keys: bool
) -> None:
    """Raises an error for a table of more than MOST numbers."""
    spec = trace.plan.spec
    count = 3
    for block in spec.blocks:
        if block.attention:
            count += block.attention.heads * (trace.plan.length if keys else 1) + 2
        if block.mlp:
            count += (block.mlp.d_ff if neurons else 1) + 2
    numbers = count * len(positions) * max(len(columns), spec.d_model)
    if numbers > MOST:
        raise InputError(
            _("these would be {count} numbers").format(count=f"{numbers:,}"),
            expected=_("at most {count}").format(count=f"{MOST:,}"),
            hint=_("ask for fewer positions or tokens"),
        )

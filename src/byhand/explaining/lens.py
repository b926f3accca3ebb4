"""The logit lens: what the model would predict if it ended after each step.

The residual stream after the embedding, after each attention and after each MLP goes through the
plan's own end: final norm, unembedding, softmax, argmax.  The last row is the trace's own end.
Only the positions asked for are worked out.  A token's rank is proven where possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand import forward
from byhand.errors import AddressError, Undecided
from byhand.evaluate import Admitted, Progress, work_out
from byhand.explaining.approximations import bounds, floats_near
from byhand.explaining.asked import check_inside, tell_doing
from byhand.language import _
from byhand.numbers.base import Numbers, Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.plan import Plan
from byhand.spec import ModelSpec
from byhand.tracing import Trace
from byhand.worked import Missing, Worked

ENDING = ("logits", "probs", "next")
MOST = 4_000_000  # logits in all, beyond which the default is the last position alone


@dataclass(frozen=True, slots=True)
class Stop:
    """A place where the stream is looked at."""

    address: str  # the step that holds the stream there, as the plan calls it
    kind: str  # "embedding" | "attention" | "mlp"
    layer: int | None  # None: before the first block


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of a token, 1 for the largest logit; tokens with the same logit share a place.

    The place lies from `least` to `most`.  Both are None where a logit is not a number.
    """

    token: int
    least: int | None
    most: int | None
    proven: bool  # for the model's true numbers, not for rounded ones

    @property
    def place(self) -> int | None:
        """The place; None where it is undecided."""
        return self.least if self.least == self.most else None


@dataclass(frozen=True)
class LensRow:
    """One position's stream after one step, read as the model's end reads it.

    Entries are numbers of the trace's number system; where something is unknown, `missing` says
    what, and logits, probs and leader are None.
    """

    stop: Stop
    position: int
    logits: Any  # (vocab,): the entries; None where missing
    probs: Any  # (vocab,)
    leader: Prediction | None
    ranks: tuple[Rank, ...]  # of the chosen tokens
    last: bool  # the end of the trace itself
    missing: Missing | None = None

    @property
    def step(self) -> str:
        """The address of the step that is read."""
        return self.stop.address

    @property
    def address(self) -> str:
        """The address of the row's logits: explain.lens.block.0.attn.add[3]"""
        return f"explain.lens.{self.stop.address}[{self.position}]"

    @property
    def proven(self) -> bool:
        """Whether the leader is proven to have the largest logit."""
        return self.leader is not None and self.leader.proven


@dataclass(frozen=True)
class Lens:
    """Every row, in spine order and within a step by position."""

    trace: Trace
    stops: tuple[Stop, ...]
    positions: tuple[int, ...]
    rows: tuple[LensRow, ...]
    left_out: tuple[int, ...] = ()  # positions that were left out because there are too many

    def __iter__(self) -> Iterator[LensRow]:
        return iter(self.rows)

    def of_position(self, position: int) -> tuple[LensRow, ...]:
        """The rows of one position, step by step."""
        return tuple(row for row in self.rows if row.position == position)

    def of_step(self, address: str) -> tuple[LensRow, ...]:
        """The rows of one step, position by position."""
        own = self.trace.plan[address].address
        return tuple(row for row in self.rows if row.step == own)

    def __getitem__(self, place: tuple[str, int]) -> LensRow:
        """The row of a step and a position."""
        step, position = place
        for row in self.of_step(step):
            if row.position == position:
                return row
        raise AddressError(
            _("the lens was not applied at this place"),
            where=f"explain.lens.{step}[{position}]",
            expected=", ".join(map(str, self.positions)),
            found=str(position),
        )


def look(
    trace: Trace,
    positions: Iterable[int] | None = None,
    tokens: Iterable[int] | None = None,
    *,
    weights: Admitted | None = None,
    progress: Progress | None = None,
) -> Lens:
    """The lens over a trace, at these positions, with the ranks of these tokens.

    Without positions: all of them, or the last alone where there would be very many logits.
    Without tokens: the one the model predicts after the position, and the target.  `weights` are
    the model's, where they were admitted before.
    """
    stops = stops_of(trace.plan)
    length = len(trace.tokens)
    asked, left_out = _positions(trace, positions, len(stops))
    tail = tail_of(trace.plan.spec, len(asked))
    if weights is None:
        weights = Admitted(trace.model.weights, trace.numbers)
    chosen = None if tokens is None else tuple(tokens)
    rows: list[LensRow] = []
    for count, stop in enumerate(stops):
        what = _("reading the residual stream after {step}").format(step=stop.address)
        tell_doing(progress, what, count, len(stops))
        last = stop is stops[-1]
        if last and all(name in trace.steps for name in ENDING):
            ending, places = {name: trace.steps[name] for name in ENDING}, asked
        else:
            ending = end_at(trace.numbers, trace[stop.address], asked, tail, weights, progress)
            places = tuple(range(len(asked)))
        for place, position in zip(places, asked, strict=True):
            named = chosen if chosen is not None else _usual_tokens(trace, position, length)
            rows.append(_row(stop, position, ending, place, named, last))
    return Lens(trace, stops, asked, tuple(rows), left_out)


def stops_of(plan: Plan) -> tuple[Stop, ...]:
    """Where the stream is looked at: before the blocks, and after each side-trip."""
    stops = [Stop(plan["stream.0"].address, "embedding", None)]
    for layer, block in enumerate(plan.spec.blocks):
        for name, norm in block.trips:
            at = f"block.{layer}.{name}"
            normed = block.norm_place == "post" and norm.kind != "none"
            after = plan[f"{at}.norm.out" if normed else f"{at}.add"].address
            stops.append(Stop(after, "attention" if name == "attn" else name, layer))
    return tuple(stops)


def tail_of(spec: ModelSpec, rows: int, ending: Sequence[str] = ENDING) -> Plan:
    """The end of the plan for `rows` rows: from the last stream to the next token.

    It does not depend on positions, so rows of any positions may go through it.
    """
    whole = forward.plan(spec, rows, positions=(0,) * rows)
    return whole.only(ending, given=[f"stream.{len(spec.blocks)}"])


def end_at(
    numbers: Numbers,
    stream: Worked,
    positions: Sequence[int],
    tail: Plan,
    weights: Admitted,
    progress: Progress | None = None,
) -> dict[str, Worked]:
    """The end of the plan, worked out from a stream at these positions."""
    entering = tail[f"stream.{len(tail.spec.blocks)}"]
    if stream.missing is not None:
        return {step.address: Worked(step, None, numbers, missing=stream.missing) for step in tail}
    rows = Worked(entering, numbers.take_rows(stream.value, positions), numbers)
    return work_out(tail, weights, (), numbers, given={entering.address: rows}, progress=progress)


def _row(
    stop: Stop,
    position: int,
    ending: Mapping[str, Worked],
    place: int,
    tokens: Sequence[int],
    last: bool,
) -> LensRow:
    logits, probs, next = (ending[name] for name in ENDING)
    if logits.missing is not None:
        return LensRow(stop, position, None, None, None, (), last, logits.missing)
    ranks = tuple(rank(logits.numbers, logits.value, place, token) for token in tokens)
    return LensRow(
        stop,
        position,
        logits.array[place],
        None if probs.missing else probs.array[place],
        None if next.missing else next.value[place],
        ranks,
        last,
    )


def _positions(
    trace: Trace, positions: Iterable[int] | None, stops: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The positions to look at, counted from the start, and those left out unasked."""
    length = len(trace.tokens)
    if positions is None:
        everywhere = tuple(range(length))
        if stops * length * trace.plan.spec.answers <= MOST:
            return everywhere, ()
        return everywhere[-1:], everywhere[:-1]
    asked = tuple(positions)
    check_inside(asked, length, _("the position lies outside the text"), least=-length)
    return tuple(position % length for position in asked), ()


def _usual_tokens(trace: Trace, position: int, length: int) -> tuple[int, ...]:
    """The token predicted there; after the last position, also the target."""
    found = () if trace.next is None else (trace.next[position].id,)
    target = (trace.target,) if position == length - 1 else ()
    return tuple(dict.fromkeys(token for token in (*found, *target) if token is not None))


# ------------------------------------------------------------------ how many are ahead of one


def rank(numbers: Numbers, logits: Any, row: int, token: int) -> Rank:
    """The rank of a token in one row of logits (pos, vocab)."""
    logits = numbers.take_rows(logits, [row])
    entries = numbers.entries(logits)[0]
    others = [id for id in range(len(entries)) if id != token]
    ahead = 0
    if (ends := bounds(numbers, logits)) is not None:
        low, high = ends[0][0], ends[1][0]
        clear = low > high[token]
        ahead = int(np.count_nonzero(clear))
        others = [id for id in others if not clear[id] and high[id] >= low[token]]
    elif numbers.uniform is not None:
        return _rank_of_rounded(numbers, logits, entries, token)
    larger = [_larger(entries[id], entries[token]) for id in others]
    ahead += larger.count(True)
    undecided = larger.count(None)
    return Rank(token, ahead + 1, ahead + undecided + 1, proven=not undecided)


def _rank_of_rounded(numbers: Numbers, logits: Any, entries: Any, token: int) -> Rank:
    """The rank among rounded numbers, which is not proven."""
    if entries.dtype != object:
        entries = floats_near(numbers, logits)[0]  # no float format is finer than float64
        if np.isnan(entries).any():
            return Rank(token, None, None, proven=False)
    place = int(np.count_nonzero(entries > entries[token])) + 1
    return Rank(token, place, place, proven=False)


def _larger(one: Any, other: Any) -> bool | None:
    """Whether a value is larger than another, proven; None where that is undecided."""
    if isinstance(one, Enclosure):
        if one.lower > other.upper:
            return True
        return False if one.upper <= other.lower else None
    try:
        return bool(other < one)
    except Undecided:
        return None

"""The residual stream as a moving point, among the directions of the tokens.

A row of the unembedding is a token's direction.  The stream's last point lies in the region of one
token: the prediction.  `geometry_of` follows every position of a trace from its embedding to the
end.  At each stop it says what the model's own tail would predict, proven where the trace's numbers
prove it.  Angles, lengths and places in a picture are floats near the trace's numbers.  Nothing is
drawn here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import atan2, degrees, isfinite
from typing import Any

import numpy as np

from byhand import forward
from byhand.errors import ByhandError
from byhand.evaluate import work_out
from byhand.explaining.approximations import floats_near
from byhand.explaining.asked import check_inside
from byhand.explaining.planes import Plane, planes_of, tail_of
from byhand.explaining.projections import angle, cosine, length_of
from byhand.language import _
from byhand.numbers.base import Prediction, Printed
from byhand.tracing import Trace
from byhand.worked import Missing

MOST_SHOWN = 12  # tokens of a large vocabulary that are looked at


@dataclass(frozen=True)
class Direction:
    """A token as the unembedding sees it: its logit is row·x + bias."""

    id: int
    token: str
    row: tuple[float, ...]
    bias: float
    exact: tuple[Fraction, ...] | None  # the row in rational numbers; None where it is not rational
    exact_bias: Fraction | None
    register: str = "exact"  # "enclosed" where the row is only known as printed

    @property
    def length(self) -> float:
        """The length of the vector."""
        return length_of(self.row)

    @property
    def turn(self) -> float | None:
        """Degrees anticlockwise from the first axis, of two dimensions; None where it is zero."""
        if len(self.row) != 2 or not any(self.row):
            return None
        return degrees(atan2(self.row[1], self.row[0]))


@dataclass(frozen=True)
class Stop:
    """The stream of one position after one step."""

    address: str  # of its row: block.0.attn.add[2]
    kind: str  # "token" "position" "attn" "mlp" "attn.norm" "mlp.norm"
    layer: int | None
    position: int
    near: tuple[float, ...]  # floats near the trace's own numbers
    leads: Prediction | None  # of the model's tail from here; None where it was not worked out
    angles: tuple[float | None, ...]  # in degrees, to each direction; None where one is zero
    cosines: tuple[float | None, ...]

    @property
    def length(self) -> float:
        """The length of the residual stream here."""
        return length_of(self.near)


@dataclass(frozen=True)
class Move:
    """From one stop to the next: what a step adds, and how the stream turns."""

    before: Stop
    after: Stop

    @property
    def update(self) -> tuple[float, ...]:
        """The vector that was added to the residual stream."""
        return tuple(b - a for a, b in zip(self.before.near, self.after.near, strict=True))

    @property
    def length(self) -> float:
        """The length of the update."""
        return length_of(self.update)

    @property
    def cosine(self) -> float | None:
        """The cosine of the angle between the update and the stream that it is added to."""
        return cosine(np.array(self.update), np.array(self.before.near))

    @property
    def turned(self) -> float | None:
        """Degrees between the stream before and after."""
        return angle(np.array(self.before.near), np.array(self.after.near))


@dataclass(frozen=True)
class Path:
    """The path of one position, from its embedding to the end of the stream."""

    position: int
    token: str
    stops: tuple[Stop, ...]
    ended: Missing | None = None  # why there is no further stop, where the trace has no number

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves between each stop and the next."""
        return tuple(Move(before, after) for before, after in pairwise(self.stops))

    @property
    def last(self) -> Stop | None:
        """The last stop; None where the path ends before the pass does."""
        return self.stops[-1] if self.stops and self.ended is None else None


@dataclass(frozen=True)
class Geometry:
    """The stream of a trace as points and directions, and pictures of it."""

    trace: Trace
    directions: tuple[Direction, ...]
    left_out: int  # tokens of the vocabulary that have no direction here
    paths: tuple[Path, ...]
    final_norm: bool  # whether the head reads the stream through a norm

    @property
    def width(self) -> int:
        """The number of dimensions of the residual stream."""
        return self.trace.model.spec.d_model

    @cached_property
    def planes(self) -> tuple[Plane, ...]:
        """One plane for two dimensions, three for three; for more, the plane that keeps most."""
        return planes_of(self)

    @property
    def every_direction(self) -> tuple[Direction, ...]:
        """The directions of all tokens, shown or not."""
        if not self.left_out:
            return self.directions
        return tuple(directions_of(self.trace, range(self.trace.model.spec.answers)))


# ------------------------------------------------------------------ from a trace


def geometry_of(
    trace: Trace, *, positions: Sequence[int] | None = None, tokens: Sequence[int] | None = None
) -> Geometry:
    """The paths of these positions and the directions of these tokens; by default of all.

    Of a large vocabulary, only the tokens of the text and the predicted ones are taken.  In up to
    three dimensions the tail is worked out at every stop; in more, only the last stop has a
    prediction, the trace's own.
    """
    wanted = range(len(trace.tokens)) if positions is None else [int(p) for p in positions]
    check_inside(wanted, len(trace.tokens), _("the position lies outside the text"))
    directions = tuple(directions_of(trace, _shown(trace, wanted) if tokens is None else tokens))
    stops = list(_stream(trace))
    leads = _leads(trace, stops)
    paths = tuple(_path(trace, stops, leads, directions, position) for position in wanted)
    spec = trace.model.spec
    return Geometry(
        trace, directions, spec.answers - len(directions), paths, spec.final_norm.kind != "none"
    )


def _shown(trace: Trace, positions: Sequence[int]) -> list[int]:
    """All tokens of a small vocabulary; else the predicted ones and the text's, last first."""
    vocab = trace.model.spec.answers
    if vocab <= MOST_SHOWN:
        return list(range(vocab))
    predicted = [each.id for each in reversed(trace.next or []) if each.id is not None]
    wanted = [*predicted, *(trace.tokens[position] for position in reversed(positions))]
    return sorted(list(dict.fromkeys(wanted))[:MOST_SHOWN])


def directions_of(trace: Trace, tokens: Sequence[int]) -> Iterator[Direction]:
    """For each token, the vector that the residual stream is multiplied by for its logit."""
    spec, weights = trace.model.spec, trace.model.weights
    table = weights["embed.token" if spec.tied else "head"].data
    if not spec.tied and spec.layout == "in_out":
        table = table.T
    bias = weights["head_bias"].data if spec.head_bias else None
    for id in tokens:
        entries = [*table[id], Fraction(0) if bias is None else bias[id]]
        near = [_near_weight(entry) for entry in entries]
        exact = [_rational(entry) for entry in entries]
        printed = any(isinstance(entry, Printed) for entry in entries)
        known = [entry for entry in exact if entry is not None]
        yield Direction(
            int(id),
            trace.answer(id),
            tuple(near[:-1]),
            near[-1],
            tuple(known[:-1]) if len(known) == len(entries) else None,
            exact[-1],
            "enclosed" if printed else "exact",
        )


def _rational(entry: Any) -> Fraction | None:
    """A weight as a rational number, or as the rounded decimal it is known as; None if neither."""
    if isinstance(entry, Printed):
        return entry.value
    if isinstance(entry, Fraction):
        return entry
    if isinstance(entry, float | np.floating):
        return Fraction(float(entry)) if isfinite(entry) else None
    return None


def _near_weight(entry: Any) -> float:
    rational = _rational(entry)
    if rational is not None:
        return float(rational)
    from byhand.numbers.floats import Floats as Rounding

    try:
        return float(Rounding("float64").admit(np.array([entry], object))[0])
    except (ByhandError, TypeError):  # unknown
        return float("nan")


def _stream(trace: Trace) -> Iterator[tuple[str, str, int | None]]:
    """The steps that hold the stream, in spine order: (address, kind, layer)."""
    spec, known = trace.model.spec, trace.plan.known
    yield "embed.token", "token", None
    if known.get("stream.0") == "stream.0":
        yield "stream.0", "position", None
    for layer, block in enumerate(spec.blocks):
        for trip, norm in block.trips:
            at = f"block.{layer}.{trip}"
            yield f"{at}.add", trip, layer
            if block.norm_place == "post" and norm.kind != "none":
                yield known[f"{at}.norm.out"], f"{trip}.norm", layer


def _path(
    trace: Trace,
    stops: Sequence[tuple[str, str, int | None]],
    leads: dict[str, list[Prediction] | None],
    directions: Sequence[Direction],
    position: int,
) -> Path:
    made: list[Stop] = []
    token = trace.token(trace.tokens[position])
    for address, kind, layer in stops:
        worked = trace[address]
        if worked.missing is not None:
            return Path(position, token, tuple(made), worked.missing)
        row = floats_near(trace.numbers, trace.numbers.take_rows(worked.value, [position]))[0]
        near = tuple(map(float, row))
        if not all(map(isfinite, near)):  # overflowed
            return Path(position, token, tuple(made), Missing("undecided", address))
        predictions = leads.get(address)
        made.append(
            Stop(
                f"{address}[{position}]",
                kind,
                layer,
                position,
                near,
                None if predictions is None else predictions[position],
                tuple(angle(row, np.array(each.row)) for each in directions),
                tuple(cosine(row, np.array(each.row)) for each in directions),
            )
        )
    return Path(position, token, tuple(made))


# ------------------------------------------------------------------ the model's own tail


def _leads(
    trace: Trace, stops: Sequence[tuple[str, str, int | None]]
) -> dict[str, list[Prediction] | None]:
    """The tail's predictions from each stop, as if the stream ended there."""
    plan = forward.plan(trace.model.spec, len(trace.tokens))
    tail, last = tail_of(plan)
    found: dict[str, list[Prediction] | None] = {}
    for address, _kind, _layer in stops:
        worked = trace[address]
        if worked.address == last and trace.next is not None:
            found[address] = trace.next
        elif trace.model.spec.d_model <= 3 and worked.missing is None:
            given = {last: replace(worked, step=plan[last])}
            done = work_out(tail, trace.model.weights, trace.tokens, trace.numbers, given=given)
            found[address] = None if done["next"].missing else done["next"].value
    return found

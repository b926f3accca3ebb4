"""The middle of an enclosed stream as a point: sublayers from there, and how far they move.

`byhand.stream_passes` says which steps make a sublayer; here its slopes are taken in limbs.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byhand.numbers.enclosed.gpu.decisions import outside_the_pass
from byhand.numbers.enclosed.limbs import attention_moves, attention_sizes, moves
from byhand.numbers.enclosed.limbs.arithmetic import from_floats
from byhand.numbers.enclosed.limbs.attention_moves import SHORT, Attended
from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.moves import Part
from byhand.numbers.enclosed.limbs.radii import exponent_of, largest, plus
from byhand.numbers.enclosed.limbs.scores import hidden_keys
from byhand.numbers.enclosed.limbs.values import Enclosed

GUARD = 11  # bits that are worked out inside a sublayer, beyond those of the stream
FIRST = 16  # the same for the first sublayer, where the stream is still exact
TALL = 1024.0  # entries of a stream from which on digits of the normalised one are counted
TURNS = 88  # bits of the turns that slopes are made of
REMEMBERED = 8

WEIGHT = "weight."


def bits_for(values: Iterable[Any], most: int) -> int:
    """The bits that keep rounding below the radii of these rows; all of them for exact rows.

    The precision is a choice: whatever is rounded is bounded.
    """
    found: list[int] = []
    for value in values:
        if not isinstance(value, Enclosed) or value.exact or not math.prod(value.ball.shape):
            return most
        # what is normalised is as far off as this ball over the row's size
        tall = engine_of(value.ball).clip(value.norms / (TALL * math.sqrt(value.width)), 1.0, None)
        ball = largest((value.ball / tall).reshape(-1))
        size = engine_of(value.ball).least_above_zero(ball[None] if ball.ndim == 0 else ball)
        if not 0.0 < size < math.inf:
            return most
        found.append(GUARD - exponent_of(size / math.sqrt(value.width)))
    return min([most, max(max(found), 2)]) if found else most


@dataclass(frozen=True)
class Point:
    """The middle of the stream that a sublayer reads, and what is known of the stream around it."""

    sublayer: Any
    numbers: Any  # as precise as the stream's radius asks for
    source: Enclosed
    onto: Enclosed
    middles: Mapping[str, Any]
    weights: Any

    def enclosed(self, inner: Mapping[str, Any]) -> Enclosed:
        """The sum of stream and answer, `inner` the steps worked out from the middles."""
        total: Enclosed = inner[self.sublayer.sum.address].value
        moved = None if self.source.exact else self._moved(inner)
        return Enclosed(total.digits, plus(self.onto.ball, moved, total.ball))

    def _moved(self, inner: Mapping[str, Any]) -> Array:
        roles = self.sublayer.roles

        def value(role: str) -> Any:
            return inner[roles[role].address].value

        apart = moves.normalized_moves(self.source, value("root"))
        if self.sublayer.kind == "mlp":
            sizes = moves.mlp_sizes(self._out(), self._reading_of_mlp())
            up = value("up") if "up" in roles else None
            kind = roles["act"].attributes["kind"]
            return moves.mlp_moves(apart, sizes, kind, value("hidden"), value("act"), up)
        q, k, v = (self._part(role) for role in "qkv")
        sizes_of_heads = attention_sizes.attention_sizes(self._out(), q, k, v)
        if sizes_of_heads is None:
            return apart + math.inf
        return attention_moves.attention_moves(apart, sizes_of_heads, self._attended(value))

    # ------------------------------------------------------------------ weights

    def _weight(self, step: Any, role: str = "weight") -> Any:
        return self.weights[step.inputs[role].removeprefix(WEIGHT)]

    @property
    def _gain(self) -> Any:
        norm = self.sublayer.roles["norm"]
        if norm.op != "affine" or "gain" not in norm.inputs:
            return None
        gain = self._weight(norm, "gain")
        return gain.plus_one if norm.attributes.get("plus_one") else gain

    def _out(self) -> Part:
        step = self.sublayer.roles["out"]
        return Part(self._weight(step), step.attributes["layout"])

    def _reading_of_mlp(self) -> tuple[Part, ...]:
        roles, gain = self.sublayer.roles, self._gain
        steps = [roles[role] for role in ("hidden", "up") if role in roles]
        return tuple(Part(self._weight(step), step.attributes["layout"], gain) for step in steps)

    def _part(self, role: str) -> Part:
        """The matrix behind queries, keys or values."""
        step, matrix = self.sublayer.roles[role], self.sublayer.roles[f"{role}_matrix"]
        heads, _positions, width = step.shape
        start, stride = 0, width
        if step.op == "split_heads":
            start, stride = step.attributes["start"], step.attributes["stride"]
        layout = matrix.attributes["layout"]
        return Part(self._weight(matrix), layout, self._gain, start, stride, width, heads)

    # ------------------------------------------------------------------ attention

    def _attended(self, value: Any) -> Attended:
        roles, numbers = self.sublayer.roles, self.numbers
        turned = "turned_q" in roles
        q, k, v = (value(f"turned_{role}" if turned and role != "v" else role) for role in "qkv")
        scale = roles["scores"].attributes.get("scale")
        size = 1.0 if scale is None else numbers.constant(scale).size
        heads, queries, _width = q.shape
        shape = (heads, queries, k.shape[1])
        hidden = hidden_keys(roles["scores"].attributes["mask"], q.digits, shape)
        at = Attended(q, k, v, value("softmax"), size, hidden, turned)
        if not turned:
            return at
        stretch = 1.0
        for role in ("turned_q", "turned_k"):
            magnitude = roles[role].attributes.get("magnitude")
            if magnitude is not None:
                stretch = max(stretch, numbers.constant(magnitude).size)
        turns = None
        if queries <= SHORT and same_turns(roles["turned_q"], roles["turned_k"]):
            turns = turns_of(numbers, roles["turned_q"], self.weights, q)
        return replace(at, turns=turns, stretch=stretch)


def point_of(numbers: Any, sublayer: Any, given: Mapping[str, Any], weights: Any) -> Point | None:
    """The point from which a sublayer is worked out; None where the stream is of another kind."""
    source, onto = given[sublayer.source].value, given[sublayer.onto].value
    if not (isinstance(source, Enclosed) and isinstance(onto, Enclosed)):
        return None
    more = FIRST if source.exact and onto.exact else GUARD
    needed = min(bits_for((source, onto), numbers.bits + more), numbers.limit)
    middles = {
        name: replace(given[name], value=Enclosed(given[name].value.digits))
        for name in (sublayer.source, sublayer.onto)
    }
    return Point(sublayer, numbers.at(needed), source, onto, middles, weights)


def same_turns(one: Any, other: Any) -> bool:
    """Whether two steps turn their rows alike."""
    return dict(one.attributes) == dict(other.attributes) and one.inputs.get(
        "frequencies"
    ) == other.inputs.get("frequencies")


_turns: OrderedDict[Any, tuple[Any, Array]] = OrderedDict()


def turns_of(numbers: Any, step: Any, weights: Any, like: Enclosed) -> Array | None:
    """(pos, d_head, d_head): what the step does to a row, as a matrix of floats for each position.

    The rows of the identity are turned, so every kind of turning is known.
    """
    frequencies = step.inputs.get("frequencies")
    if frequencies is not None and not frequencies.startswith(WEIGHT):
        return None
    engine: Any = like.digits.engine
    rates = None if frequencies is None else weights[frequencies.removeprefix(WEIGHT)]
    told = tuple(sorted((name, repr(one)) for name, one in step.attributes.items()))
    key = engine.device_of(like.digits.limbs), like.shape[-2:], told, id(rates)
    if key not in _turns:
        made = outside_the_pass(lambda: _turn_basis(numbers, step, rates, like))
        _turns[key] = rates, made  # what the rates are is kept, and so its id
        if len(_turns) > REMEMBERED:
            _turns.popitem(last=False)
    return _turns[key][1]


def _turn_basis(numbers: Any, step: Any, rates: Any, like: Enclosed) -> Array:
    positions, width = like.shape[-2:]
    engine: Any = like.digits.engine
    basis = np.zeros((width, positions, width))
    basis[np.arange(width), :, np.arange(width)] = 1.0
    rows = Enclosed(from_floats(engine.constant(basis, like.digits.limbs))[0])
    given = {} if rates is None else {"frequencies": rates}
    turned = numbers.at(TURNS).rotate(rows, **given, **step.attributes)
    return engine.contiguous(engine.moveaxis(turned.approx, 0, 2))  # column j: where e_j goes

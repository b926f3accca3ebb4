"""The rule of MLPs at the actual point: random and adverse moves, whose true image is Arb's.

Each case is a small MLP, a row, and the ball around it.  Some moves are random, most follow the
steepest way at the rim of the ball; some MLPs are so small that the bound can be met.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.soundness.counts import Count
from benchmarks.soundness.drawn import (
    BEYOND,
    KINDS,
    Drawn,
    Side,
    apart_by,
    direction,
    enclosed,
    moved,
    roughly_known,
)
from benchmarks.soundness.truth import activation, balls, matrix, mlp, near, slope
from byhand.numbers.enclosed.limbs.moves import Part, mlp_moves, mlp_sizes


@dataclass
class Mlp:
    """An MLP, one row of the stream, and how far away the row may be."""

    kind: str
    sides: list[Side]
    biases: list[Any]
    out: Side
    z: Any  # (1, width)
    apart: Any  # (1,)


def mlp_case(drawn: Drawn, count: Count, samples: int) -> None:
    """A random MLP, moved along its steepest way; or one whose slopes at the point are simple."""
    if drawn.yes(0.5):
        given, steepest = simple_mlp(drawn), False
    else:
        given, steepest = random_mlp(drawn), True
    if not given.out.rows.any():
        return
    reading = [side.exactly() for side in given.sides]
    known = [balls(bias) for bias in given.biases]
    last = given.out.exactly()
    inner, _bent_there, middle = mlp(given.kind, matrix(given.z), reading, known, last)
    hidden = roughly_known(drawn, inner[0][0])
    bent = _bent(drawn, given.kind, hidden)
    up = roughly_known(drawn, inner[1][0]) if len(inner) > 1 else None
    if not all((np.abs(one[0]) <= BEYOND).all() for one in (hidden, bent, up or hidden)):
        return
    bound = _mlp_bound(given, hidden, bent, up)
    if steepest:
        slopes = np.array([float(slope(given.kind, x).mid()) for x in inner[0][0]])
        worst = _steepest_of_mlp(given, slopes, bent[0], None if up is None else up[0])
        way = drawn.moves(samples, given.apart, worst)
    else:
        way = drawn.axes(samples, given.apart, given.z.shape[1])
    answers = mlp(given.kind, moved(given.z, way), reading, known, last)[2]
    count.add(bound, [apart_by(answer, middle[0]) for answer in answers], given.kind)


def random_mlp(drawn: Drawn) -> Mlp:
    small = drawn.yes(0.3)
    width, units, wide = (
        drawn.whole(1, 1 if small and drawn.yes(0.7) else 5) for _side in range(3)
    )
    gain, plus_one = drawn.gain(width)
    layout = drawn.one_of(("out_in", "in_out"))
    sides = [
        Side(drawn.floats(units, width, size=drawn.size()), gain, plus_one, layout)
        for _part in range(1 + drawn.yes())
    ]
    biases = [drawn.floats(units, size=drawn.one_of((1e-3, 1.0, 5.0))) for _side in sides]
    out = Side(drawn.floats(wide, units, size=drawn.size()), None, False, layout)
    kind = drawn.one_of(("relu", *KINDS))
    return Mlp(kind, sides, biases, out, drawn.point(1, width), drawn.apart(1))


def simple_mlp(drawn: Drawn) -> Mlp:
    """Each matrix reads numbers of its own, many of them 0, so that second slopes alone count."""
    units, parts = drawn.whole(1, 2), 1 + drawn.yes(0.7)
    sizes = [drawn.one_of((1.0, 1.0, 2.0**-40)) for _part in range(parts)]
    sides, z = [], []
    for part, size in enumerate(sizes):
        rows = np.zeros((units, parts * units))
        rows[:, part * units : (part + 1) * units] = np.eye(units) * size
        sides.append(Side(rows, None, False, "out_in"))
        z.append(drawn.values(units) / size)
    out = Side(drawn.random.choice([1.0, -1.0], (1, units)), None, False, "out_in")
    apart = np.array([10.0 ** drawn.random.uniform(-3, 0.7)])
    kind = drawn.one_of(("relu", "relu2", "silu", "identity", "gelu", "tanh"))
    row = np.concatenate(z)[None] * drawn.one_of((1.0, 1.0, 0.5 * apart[0], 0.9 * apart[0]))
    return Mlp(kind, sides, [np.zeros(units)] * parts, out, row, apart)


def _mlp_bound(given: Mlp, hidden: Any, bent: Any, up: Any) -> float:
    admitted = [side.admitted() for side in given.sides]
    parts = tuple(
        Part(weight, side.layout, gain)
        for side, (weight, gain) in zip(given.sides, admitted, strict=True)
    )
    sizes = mlp_sizes(Part(given.out.admitted()[0], given.out.layout), parts)
    values = [enclosed(one[0][None], one[1][None]) for one in (hidden, bent)]
    others = None if up is None else enclosed(up[0][None], up[1][None])
    return float(mlp_moves(given.apart, sizes, given.kind, *values, others)[0])


def _steepest_of_mlp(given: Mlp, slopes: Any, bent: Any, up: Any) -> Any:
    with np.errstate(all="ignore"):
        made = slopes[:, None] * given.sides[0].roughly()
        if up is not None:
            made = up[:, None] * made + bent[:, None] * given.sides[1].roughly()
        scaled = given.out.roughly() @ np.nan_to_num(made / np.abs(made).max())
    return direction(np.linalg.svd(np.nan_to_num(scaled))[2][0])[None]


def _bent(drawn: Drawn, kind: str, hidden: tuple[Any, Any]) -> tuple[Any, Any]:
    """An enclosure of the activation for all that the hidden numbers may be."""
    exact = [activation(kind, x) for x in balls(hidden[0])]
    middles, off = near(exact, hidden[0].shape)
    steepest = 1.13 if kind != "relu2" else 2 * (np.maximum(hidden[0], 0) + hidden[1])
    return middles, (off + steepest * hidden[1]) * (1 + 1e-9)

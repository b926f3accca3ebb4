"""Ranges of gradients from ranges: wherever in its range an input lies, the result is allowed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.expression import Number, Quotient
from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.floats import Floats

Data = Any
SCALE = Quotient(Number(Fraction(1)), Number(Fraction(3)))
PLACES = range(4)
SEEN = tuple(tuple(key <= query for key in PLACES) for query in PLACES)
SEES = {"mask": SEEN, "queries": PLACES, "keys": PLACES}
IDS, TARGETS = (1, 0, 1, 4), (2, -1, 5, 0)
ROWS, HEADS, SCORES, ONE = (4, 6), (2, 4, 6), (2, 4, 4), (1,)

Operation = Callable[..., Any]


def attention_back(n: Any, scores: Data, grad: Data, v: Data) -> Any:
    """From what is mixed to the scores: the rows' sums are those of Σ grad·mixed too."""
    weights = n.softmax(hidden(n, scores))
    back = n.scores(grad, v, **SEES)
    return n.softmax_back(weights, back, n.row_dots(weights, back))


def hidden(n: Any, scores: Data) -> Any:
    """The scores, masked."""
    away = np.broadcast_to(~np.asarray(SEEN), scores.shape)
    if isinstance(scores, Range):
        mid, rad = (np.where(away, 0.0, part) for part in (scores.mid, scores.rad))
        return Range(mid, rad, absent=away)
    return np.ma.MaskedArray(scores, mask=away)


def norm_back(n: Any, x: Data, grad: Data) -> Any:
    """Layernorm's whole way back, with what flows past it."""
    mean = n.mean(x)
    centred = n.center(x, mean)
    by = n.root(n.mean_square(centred), eps=Fraction(1, 1000))
    rows = n.normalize(centred, by)
    dot = n.divisor_back(n.row_dots(rows, grad), by)
    through = n.mean_square_back(n.root_back(dot, by), centred)
    whole = n.total(term_1=n.normalize_back(grad, by), term_2=through)
    shift = n.mean_back(n.center_back(whole), width=x.shape[-1])
    return n.total(term_1=grad, term_2=whole, term_3=shift)


OPERATIONS: dict[str, tuple[tuple[tuple[int, ...], ...], Operation]] = {
    "losses": ((ROWS,), lambda n, x: n.losses(n.softmax(x), TARGETS)),
    "logprobs": ((ROWS,), lambda n, x: n.logprobs(x, TARGETS)),
    "average": (((4,),), lambda n, x: n.average(x)),
    "loss_back": ((ROWS,), lambda n, x: n.loss_back(n.softmax(x), TARGETS)),
    "loss_back of one": ((ROWS,), lambda n, x: n.loss_back(n.softmax(x), 3)),
    "total": ((ROWS,) * 3, lambda n, x, y, z: n.total(term_1=x, term_2=y, term_3=z)),
    "column_sums": ((HEADS, HEADS), lambda n, x, y: n.column_sums(x, by=y)),
    "column_sums, merged": ((HEADS,), lambda n, x: n.column_sums(x, merged=True)),
    "row_dots": ((ROWS, ROWS), lambda n, x, y: n.row_dots(x, y)),
    "sum_groups": (((4, 3, 6),), lambda n, x: n.sum_groups(x, heads=2)),
    "outer": ((HEADS, ROWS), lambda n, x, y: n.outer(x, y, layout="in_out")),
    "outer, turned": ((ROWS, ROWS), lambda n, x, y: n.outer(x, y, layout="out_in")),
    "along_keys": ((SCORES, HEADS), lambda n, x, y: n.along_keys(hidden(n, x), y, scale=SCALE)),
    "along_queries": (
        (SCORES, HEADS),
        lambda n, x, y: n.along_queries(hidden(n, x), y, scale=SCALE),
    ),
    "scale_by": ((ROWS, ONE), lambda n, x, y: n.scale_by(x, y)),
    "scatter": ((ROWS,), lambda n, x: n.scatter(x, IDS, rows=5, scale=SCALE)),
    "pack_heads": (
        ((2, 4, 3),) * 3,
        lambda n, x, y, z: n.pack_heads(x, y, z, starts=(0, 6, 12), stride=3),
    ),
    "attention": ((SCORES, HEADS, HEADS), attention_back),
    "layernorm": ((ROWS, ROWS), norm_back),
    "sum_squares": ((ROWS,), lambda n, x: n.sum_squares(x)),
    "norm": (
        (ROWS, ROWS),
        lambda n, x, y: n.norm(square_0=n.sum_squares(x), square_1=n.sum_squares(y)),
    ),
    "clip_factor": (
        (ROWS,),
        lambda n, x: n.clip_factor(
            n.norm(square_0=n.sum_squares(x)), limit=Fraction(2), eps=Fraction(1, 10**6)
        ),
    ),
    "blend": (
        (ROWS, ROWS),
        lambda n, x, y: n.blend(y, x, of_x=Fraction(9, 10), of_y=Fraction(1, 10), squared=True),
    ),
    "root_plus": (
        (ROWS,),
        lambda n, x: n.root_plus(n.blend(x, of_y=Fraction(1), squared=True), eps=Fraction(1, 100)),
    ),
    "divide": (
        (ROWS, ROWS),
        lambda n, x, y: n.divide(
            x, n.root_plus(n.blend(y, of_y=Fraction(1), squared=True), eps=Fraction(1, 2))
        ),
    ),
    **{
        kind: ((ROWS,), lambda n, x, kind=kind: n.slope(x, kind=kind))
        for kind in ("relu", "gelu", "gelu_tanh", "silu")
    },
}


def drawn(name: str, seed: int, width: float) -> tuple[Any, list[Data], list[Data], Operation]:
    shapes, operation = OPERATIONS[name]
    chance = np.random.default_rng(seed)
    mids = [chance.standard_normal(shape) * 2 for shape in shapes]
    return chance, mids, [chance.random(shape) * width for shape in shapes], operation


@pytest.mark.parametrize("name", OPERATIONS)
@given(seed=st.integers(0, 2**32), width=st.sampled_from([1e-9, 1e-3, 0.1, 1.0, 30.0]))
def test_wherever_the_inputs_lie_the_gradient_is_allowed(
    name: str, seed: int, width: float
) -> None:
    chance, mids, radii, operation = drawn(name, seed, width)
    numbers, floats = Allowed("exact"), Floats("float64")
    value = operation(numbers, *map(Range, mids, radii))
    if value.rad is not None:
        assert not np.isnan(value.rad).any()
    for _try in range(4):  # at the rims, where it moves most
        sides = (chance.choice([-1.0, 1.0, 0.5], mid.shape) for mid in mids)
        inputs = [mid + side * rad for mid, side, rad in zip(mids, sides, radii, strict=True)]
        given_ = np.ma.getdata(operation(floats, *inputs))
        judged = numbers.judge(value, (), given_, 1e-12)
        assert judged.possible, (name, judged.share)


# what a norm or attention may cost in all its ways is far more than one way moves
LOOSE = {"layernorm": 0.1, "attention": 0.1, "clip_factor": 0.1, "norm": 0.1, "sum_squares": 0.1}


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "relu"])
def test_small_radii_of_gradients_are_not_carried_on_much_too_large(name: str) -> None:
    """The radius is reached to a fifth by inputs at the rim: the bounds are not vacuous."""
    chance, mids, _radii, operation = drawn(name, 3, 0.0)
    radii = [np.full(mid.shape, 1e-4) for mid in mids]
    numbers, floats = Allowed("exact"), Floats("float64")
    value = operation(numbers, *map(Range, mids, radii))
    most = 0.0
    for _try in range(200):
        sides = (chance.choice([-1.0, 1.0], mid.shape) for mid in mids)
        inputs = [mid + side * rad for mid, side, rad in zip(mids, sides, radii, strict=True)]
        found = np.ma.getdata(operation(floats, *inputs))
        most = max(most, numbers.judge(value, (), found, 1e-13).share)
    assert LOOSE.get(name, 0.2) < most <= 1


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "pack_heads"])
def test_of_gradients_that_depend_on_nothing_known_nothing_is_said(name: str) -> None:
    shapes, operation = OPERATIONS[name]
    numbers = Allowed("float32")
    inputs = []
    for shape in shapes:
        mid, rad = np.ones(shape), np.zeros(shape)
        mid[..., 0], rad[..., 0] = 0.0, np.inf
        inputs.append(Range(mid, rad))
    value = operation(numbers, *inputs)
    assert value.rad is not None
    assert not np.isnan(value.rad).any()
    if name not in ("relu", "clip_factor"):  # both are bounded, whatever is read
        assert np.isinf(value.rad).any()

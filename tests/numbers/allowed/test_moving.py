"""Ranges of results from ranges: wherever in its range an input lies, the result is allowed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.tightness.ports import Machine, Port
from hypothesis import given
from hypothesis import strategies as st

from byhand.expression import Call, Number, Quotient
from byhand.numbers.allowed import Allowed, Range

Data = Any
EPS = Fraction(1, 1000)
PORT = Port("float64", Machine("float64"))
SCALE = Quotient(Number(Fraction(1)), Call("sqrt", Number(Fraction(6))))
PLACES = [0, 1, 2, 3]
SEEN = tuple(tuple(key <= query for key in PLACES) for query in PLACES)
HIDDEN = ~np.array(SEEN)

BUCKETS = ((0, 1, 2, 2), (0, 0, 1, 2), (2, 1, 0, 1), (1, 1, 1, 0))


def bent(kind: str, x: Data) -> Data:
    match kind:
        case "relu2":
            return np.maximum(x, 0) ** 2
        case "sigmoid":
            return 1 / (1 + np.exp(-x))
        case "tanh":
            return np.tanh(x)
    root = {"gelu_fast": 0.7978845608, "gelu_bloom": 0.79788456}[kind]
    return x * (1 + np.tanh(root * x * (1 + 0.044715 * x * x))) / 2


Operation = Callable[..., Any]
OPERATIONS: dict[str, tuple[tuple[tuple[int, ...], ...], Operation, Operation]] = {
    "add": (((4, 6), (4, 6)), lambda a, x, y: a.add(x, y), PORT.add),
    "multiply": (((4, 6), (4, 6)), lambda a, x, y: a.multiply(x, y), PORT.multiply),
    "mean": (((4, 6),), lambda a, x: a.mean(x), PORT.mean),
    "center": (((4, 6), (4,)), lambda a, x, m: a.center(x, m), PORT.center),
    "mean_square": (((4, 6),), lambda a, x: a.mean_square(x), PORT.mean_square),
    "centred square": (
        ((4, 6),),
        lambda a, x: a.mean_square(a.center(x, a.mean(x))),
        lambda x: PORT.mean_square(PORT.center(x, PORT.mean(x))),
    ),
    "normalize": (
        ((4, 6),),
        lambda a, x: a.normalize(x, a.root(a.mean_square(x), eps=EPS)),
        lambda x: PORT.normalize(x, PORT.root(PORT.mean_square(x), float(EPS))),
    ),
    "affine": (
        ((4, 6), (6,), (6,)),
        lambda a, x, g, b: a.affine(x, gain=g, bias=b),
        PORT.affine,
    ),
    "linear": (
        ((4, 6), (6, 5), (5,)),
        lambda a, x, w, b: a.linear(x, w, bias=b, layout="in_out"),
        PORT.linear,
    ),
    "rotate": (
        ((2, 4, 6),),
        lambda a, x: a.rotate(
            x, positions=PLACES, width=6, base=Fraction(100), pairing="half"
        ),
        lambda x: PORT.rotate(x, PLACES, 100.0),
    ),
    "scores": (
        ((2, 4, 6), (2, 4, 6)),
        lambda a, q, k: a.scores(q, k, scale=SCALE, mask=SEEN, queries=PLACES, keys=PLACES),
        lambda q, k: PORT.scores(q, k, 6**-0.5),
    ),
    "softmax": (((2, 4, 6),), lambda a, x: a.softmax(x), PORT.softmax),
    "attention": (
        ((2, 4, 6), (2, 4, 6), (2, 4, 6)),
        lambda a, q, k, v: a.mix(
            a.softmax(a.scores(q, k, scale=SCALE, mask=SEEN, queries=PLACES, keys=PLACES)), v
        ),
        lambda q, k, v: PORT.attention(q, k, v, 6**-0.5, HIDDEN),
    ),
    "one more": (
        ((2, 4, 6), (2, 1, 6), (2, 1, 6)),
        lambda a, x, g, b: a.affine(x, gain=g, bias=b, plus_one=True),
        lambda x, g, b: x * (1 + g) + b,
    ),
    "rescale": (
        ((4, 6),),
        lambda a, x: a.rescale(x, by=SCALE, plus=Fraction(2)),
        lambda x: x / 6**0.5 + 2,
    ),
    "soft_cap": (
        ((4, 6),), lambda a, x: a.soft_cap(x, cap=Fraction(3)), lambda x: 3 * np.tanh(x / 3)
    ),
    "clamp": (
        ((4, 6),),
        lambda a, x: a.clamp(x, least=-Fraction(1), most=Fraction(1)),
        lambda x: np.clip(x, -1, 1),
    ),
    "clamp above": (
        ((4, 6),), lambda a, x: a.clamp(x, most=Fraction(1, 3)), lambda x: np.minimum(x, 1 / 3)
    ),
    "weigh": (((4, 6), (4, 1)), lambda a, x, y: a.weigh(x, y), lambda x, y: x * y),
    "beside": (
        ((2, 4, 6), (1, 4, 3)),
        lambda a, x, y: a.beside(x, y),
        lambda x, y: np.concatenate((x, np.repeat(y, 2, axis=0)), axis=-1),
    ),
    "bucket_scores": (
        ((3, 2),),
        lambda a, x: a.bucket_scores(x, buckets=BUCKETS),
        lambda x: x[np.array(BUCKETS)].transpose(2, 0, 1),
    ),
    "scores by distance": (
        ((2, 4, 6), (2, 4, 6), (2, 4, 4)),
        lambda a, q, k, b: a.scores(
            q, k, bias=b, scale=SCALE, mask=SEEN, queries=PLACES, keys=PLACES
        ),
        lambda q, k, b: PORT.scores(q, k, 6**-0.5) + b,
    ),
    **{
        kind: (
            ((4, 6),),
            lambda a, x, kind=kind: a.activate(x, kind=kind),
            lambda x, kind=kind: bent(kind, x),
        )
        for kind in ("relu2", "gelu_fast", "gelu_bloom", "sigmoid", "tanh")
    },
    **{
        kind: (
            ((4, 6),),
            lambda a, x, kind=kind: a.activate(x, kind=kind),
            lambda x, kind=kind: PORT.activate(x, kind),
        )
        for kind in ("relu", "gelu", "gelu_tanh", "silu", "quick_gelu")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
@given(seed=st.integers(0, 2**32), width=st.sampled_from([1e-9, 1e-3, 0.1, 1.0, 30.0]))
def test_wherever_the_inputs_lie_the_result_is_allowed(name: str, seed: int, width: float) -> None:
    shapes, operation, port = OPERATIONS[name]
    chance = np.random.default_rng(seed)
    mids = [chance.standard_normal(shape) * 2 for shape in shapes]
    radii = [chance.random(shape) * width for shape in shapes]
    numbers = Allowed("exact")
    value = operation(numbers, *map(Range, mids, radii))
    assert not np.isnan(value.rad).any()
    for _try in range(4):  # at the rims, where it moves most
        sides = (chance.choice([-1.0, 1.0, 0.5], shape) for shape in shapes)
        inputs = [mid + side * rad for mid, side, rad in zip(mids, sides, radii, strict=True)]
        judged = numbers.judge(value, (), port(*inputs), 1e-13)
        assert judged.possible, (name, judged.share)


MOVED_ALONE = ("relu", "clamp above", "beside", "bucket_scores")  # by no more than their inputs


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in MOVED_ALONE])
def test_small_radii_are_not_carried_on_much_too_large(name: str) -> None:
    """The radius is reached to a fifth by inputs at the rim: the bounds are not vacuous."""
    shapes, operation, port = OPERATIONS[name]
    chance = np.random.default_rng(3)
    mids = [chance.standard_normal(shape) for shape in shapes]
    radii = [np.full(shape, 1e-4) for shape in shapes]
    numbers = Allowed("exact")
    value = operation(numbers, *map(Range, mids, radii))
    most = 0.0
    for _try in range(300):
        sides = (chance.choice([-1.0, 1.0], shape) for shape in shapes)
        inputs = [mid + side * rad for mid, side, rad in zip(mids, sides, radii, strict=True)]
        most = max(most, numbers.judge(value, (), port(*inputs)).share)
    assert 0.2 < most <= 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_of_what_depends_on_nothing_known_nothing_is_said(name: str) -> None:
    shapes, operation, _port = OPERATIONS[name]
    numbers = Allowed("float32")
    inputs = []
    for shape in shapes:
        mid, rad = np.ones(shape), np.zeros(shape)
        mid[..., 0], rad[..., 0] = 0.0, np.inf
        inputs.append(Range(mid, rad))
    value = operation(numbers, *inputs)
    assert value.rad is not None
    assert np.isinf(value.rad).any()
    assert not np.isnan(value.rad).any()

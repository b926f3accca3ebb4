"""Each operation of `Limbs`: whatever lies in what is read, its real image lies in the result.

A value is made with a radius, and real numbers are chosen inside it, some at the rim.  What
an operation makes of those is worked out in Arb (`Balls`), which shares nothing with limbs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from real_values import ORACLE, Pair, contained

from byhand.errors import InputError
from byhand.expression import parse
from byhand.numbers.base import Note
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.operations import SLOPES, Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed

RADII = [None, 2.0**-90, 2.0**-30, 2.0**-8]
SEEN = [[j <= i for j in range(4)] for i in range(4)]


@pytest.fixture(params=range(4))
def random(request: pytest.FixtureRequest) -> Any:
    return np.random.default_rng(request.param)


@pytest.fixture(params=RADII, ids=lambda radius: f"radius {radius}")
def radius(request: pytest.FixtureRequest) -> Any:
    return request.param


system = Limbs(120)


def weight(random: Any, *shape: int, size: float = 1.0) -> tuple[Any, Any]:
    floats = (random.standard_normal(shape) * size).astype(np.float32)
    return system.admit(floats), ORACLE.admit(floats)


# ------------------------------------------------------------------ sums, products, matrices


def test_add(random: Any, radius: float | None) -> None:
    x, y = Pair(random, (3, 5), radius), Pair(random, (3, 5), 2.0**-50)
    used = contained(system, system.add(x.enclosed, y.enclosed), ORACLE.add(x.known, y.known))
    assert used <= 1


def test_multiply(random: Any, radius: float | None) -> None:
    x, y = Pair(random, (3, 5), radius, 30.0), Pair(random, (3, 5), radius)
    contained(system, system.multiply(x.enclosed, y.enclosed), ORACLE.multiply(x.known, y.known))


@pytest.mark.parametrize("layout", ["in_out", "out_in"])
@pytest.mark.parametrize("heads", [None, 3])
def test_linear(random: Any, radius: float | None, layout: str, heads: int | None) -> None:
    x = Pair(random, (4, 7), radius)
    ours, real = weight(random, *((7, 6) if layout == "in_out" else (6, 7)))
    bias, real_bias = weight(random, 6)
    contained(
        system,
        system.linear(x.enclosed, ours, bias=bias, layout=layout, heads=heads),
        ORACLE.linear(x.known, real, bias=real_bias, layout=layout, heads=heads),
    )


@pytest.mark.parametrize("size", [2.0**-60, 2.0**60])
def test_linear_with_a_bias_of_another_size(random: Any, size: float) -> None:
    x = Pair(random, (2, 5), 2.0**-40)
    ours, real = weight(random, 5, 3)
    bias, real_bias = weight(random, 3, size=size)
    contained(
        system,
        system.linear(x.enclosed, ours, bias=bias, layout="in_out"),
        ORACLE.linear(x.known, real, bias=real_bias, layout="in_out"),
    )


def test_the_radius_of_a_product_is_reached_along_the_longest_axis() -> None:
    """Moved along the vector that the matrix stretches most, by the whole radius."""
    random = np.random.default_rng(1)
    floats = random.standard_normal((30, 20)).astype(np.float32)
    left, sizes, _right = np.linalg.svd(floats.astype(float))
    x = Pair(random, (1, 30), None)
    made = system.linear(
        Enclosed(x.enclosed.digits, np.array([2.0**-20])), system.admit(floats), layout="in_out"
    )
    assert made.ball[0] <= 1.04 * sizes[0] * 2.0**-20
    moved = (x.real[0] + np.array([Fraction(v) for v in (left[:, 0] * 2.0**-20).tolist()]))[None]
    real = ORACLE.entries(ORACLE.linear(ORACLE.admit(moved), ORACLE.admit(floats), layout="in_out"))
    off = [float(a.mid - b.mid) for a, b in zip(real[0], system.entries(made)[0], strict=True)]
    assert np.linalg.norm(off) > 0.95 * made.ball[0]


def test_heads_are_split_and_merged(random: Any, radius: float | None) -> None:
    x = Pair(random, (4, 12), radius)
    ours = system.split_heads(x.enclosed, start=2, heads=2, width=3, stride=4)
    contained(system, ours, ORACLE.split_heads(x.known, start=2, heads=2, width=3, stride=4))
    y = Pair(random, (3, 4, 2), radius)
    contained(system, system.merge_heads(y.enclosed), ORACLE.merge_heads(y.known))


def test_join(random: Any, radius: float | None) -> None:
    x, y = Pair(random, (2, 3, 4), radius), Pair(random, (2, 2, 4), None, 2.0**-20)
    contained(system, system.join(x.enclosed, y.enclosed), ORACLE.join(x.known, y.known))


@pytest.mark.parametrize("layout", ["in_out", "out_in", None])
def test_head_outputs(random: Any, radius: float | None, layout: str | None) -> None:
    x = Pair(random, (2, 3, 4), radius)
    ours, real = weight(random, *((8, 5) if layout == "in_out" else (5, 8)))
    if layout is None:
        ours = real = None
    way = layout or "in_out"
    contained(
        system,
        system.head_outputs(x.enclosed, weight=ours, layout=way),
        ORACLE.head_outputs(x.known, weight=real, layout=way),
    )


@pytest.mark.parametrize("scale", [None, "1/sqrt(8)", "4", "-2/3"])
def test_embed(random: Any, scale: str | None) -> None:
    ours, real = weight(random, 6, 5)
    factor = None if scale is None else parse(scale)
    made = system.embed(ours, [3, 0, 3], scale=factor)
    contained(system, made, ORACLE.embed(real, [3, 0, 3], scale=factor))
    assert made.exact == (scale in (None, "4"))


# ------------------------------------------------------------------ norms


def normalized(numbers: Any, x: Any, centered: bool, eps: Fraction) -> list[Any]:
    """All steps of a norm."""
    steps = []
    if centered:
        mean = numbers.mean(x)
        x = numbers.center(x, mean)
        steps += [mean, x]
    square = numbers.mean_square(x)
    by = numbers.root(square, eps=eps)
    return [*steps, square, by, numbers.normalize(x, by)]


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("eps", [Fraction(0), Fraction(1, 100000)])
@pytest.mark.parametrize("size", [1.0, 2.0**-12, 100.0])
def test_norms(
    random: Any, radius: float | None, centered: bool, eps: Fraction, size: float
) -> None:
    spread = np.where(np.arange(9) == 4, 100.0, 1.0) * size  # an outlier channel
    x = Pair(random, (3, 9), None if radius is None else radius * size, spread)
    ours = normalized(system, x.enclosed, centered, eps)
    for made, real in zip(ours, normalized(ORACLE, x.known, centered, eps), strict=True):
        contained(system, made, real)


def test_the_radius_of_a_norm_is_nearly_reached() -> None:
    """Moved at right angles to the row, nothing is lost."""
    row = np.array([[1.0, -1.0, 0.0, 0.0]])
    x = Enclosed(arithmetic.from_floats(row)[0], np.array([2.0**-19.5 * (1 + 2.0**-40)]))
    *_steps, made = normalized(system, x, True, Fraction(0))
    real = [Fraction(1), Fraction(-1), Fraction(1, 2**20), -Fraction(1, 2**20)]  # √2 · 2^-20 away
    moved = ORACLE.admit(np.array([real], object))
    *_steps, truth = normalized(ORACLE, moved, True, Fraction(0))
    used = contained(system, made, truth)
    assert used > 0.5


def test_a_row_without_variance_is_zero_where_that_is_certain() -> None:
    x = system.admit(np.array([[0.1, 0.1, 0.1], [1.0, 2.0, 4.0]], np.float32))
    made = normalized(system, x, True, Fraction(0))[-1]
    assert system.notes == [Note("zero-variance", (0,))]
    system.notes.clear()
    found = system.entries(made)
    assert [found[0, j].mid for j in range(3)] == [0, 0, 0]
    assert found[0, 0].rad < 2.0**-100
    assert found[1, 0].rad < 2.0**-100


def test_a_row_whose_variance_may_be_zero_is_left_open() -> None:
    x = Enclosed(arithmetic.from_floats(np.full((2, 3), 0.5))[0], np.array([2.0**-80, 0.0]))
    made = normalized(system, x, True, Fraction(0))[-1]
    assert system.entries(made)[0, 0].rad == math.inf
    system.notes.clear()


def test_a_radius_as_large_as_the_deviation_is_left_open() -> None:
    x = Enclosed(arithmetic.from_floats(np.array([[1.0, -1.0]]))[0], np.array([1.5]))
    made = normalized(system, x, True, Fraction(0))[-1]
    assert system.entries(made)[0, 0].rad == math.inf


def test_a_divisor_from_elsewhere_is_divided_by_as_such(random: Any) -> None:
    x, y = Pair(random, (3, 5), 2.0**-40), Pair(random, (3, 6), 2.0**-40)
    by = system.root(system.mean_square(y.enclosed), eps=Fraction(1, 3))
    real = ORACLE.root(ORACLE.mean_square(y.known), eps=Fraction(1, 3))
    contained(system, system.normalize(x.enclosed, by), ORACLE.normalize(x.known, real))


@pytest.mark.parametrize("with_gain", [True, False])
@pytest.mark.parametrize("with_bias", [True, False])
def test_affine(random: Any, radius: float | None, with_gain: bool, with_bias: bool) -> None:
    x = Pair(random, (3, 5), radius)
    gain, real_gain = weight(random, 5, size=10.0)
    bias, real_bias = weight(random, 5)
    contained(
        system,
        system.affine(
            x.enclosed, gain=gain if with_gain else None, bias=bias if with_bias else None
        ),
        ORACLE.affine(
            x.known, gain=real_gain if with_gain else None, bias=real_bias if with_bias else None
        ),
    )


def test_an_uneven_gain_is_part_of_the_norm_of_the_matrix_behind_it(random: Any) -> None:
    x = Pair(random, (2, 6), 2.0**-30)
    floats = np.array([100, 1, 1, 1, 1, 1], np.float32)
    w = random.standard_normal((6, 4)).astype(np.float32)
    w[0] *= np.float32(0.01)
    ours = system.linear(
        system.affine(x.enclosed, gain=system.admit(floats)), system.admit(w), layout="in_out"
    )
    real = ORACLE.linear(
        ORACLE.affine(x.known, gain=ORACLE.admit(floats)), ORACLE.admit(w), layout="in_out"
    )
    contained(system, ours, real)
    joined = np.linalg.norm(floats[:, None] * w, 2)
    assert (ours.ball <= 3 * joined * x.enclosed.ball.max()).all()  # by max|gain|: 30 times


# ------------------------------------------------------------------ attention


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
@pytest.mark.parametrize("width", [4, 6])
@pytest.mark.parametrize("given", [True, False])
def test_rotate(random: Any, radius: float | None, pairing: str, width: int, given: bool) -> None:
    x = Pair(random, (2, 3, 6), radius, 5.0)
    ours, real = weight(random, width // 2)
    settings: dict[str, Any] = {
        "positions": (0, 5, 1000), "width": width, "base": Fraction(10000), "pairing": pairing
    }  # fmt: skip
    contained(
        system,
        system.rotate(
            x.enclosed,
            frequencies=system.admit_frequencies(ours.floats) if given else None,
            **settings,
        ),
        ORACLE.rotate(x.known, frequencies=real if given else None, **settings),
    )


def test_sinusoid() -> None:
    settings: dict[str, Any] = {"positions": (0, 3, 500), "width": 6, "base": Fraction(10000)}
    contained(system, system.sinusoid(**settings), ORACLE.sinusoid(**settings))


def attention(numbers: Any, q: Any, k: Any, v: Any, **settings: Any) -> list[Any]:
    scores = numbers.scores(q, k, mask=SEEN, queries=range(4), keys=range(4), **settings)
    weights = numbers.softmax(scores)
    return [scores, weights, numbers.mix(weights, v)]


@pytest.mark.parametrize("extras", ["", "slopes", "table"])
@pytest.mark.parametrize("scale", ["1/sqrt(16)", "1/sqrt(5)"])
@pytest.mark.parametrize("size", [1.0, 8.0])
def test_attention(random: Any, radius: float | None, extras: str, scale: str, size: float) -> None:
    q = Pair(random, (4, 4, 5), radius, size)
    k, v = Pair(random, (2, 4, 5), radius, size), Pair(random, (2, 4, 3), radius)
    ours: dict[str, Any] = {"scale": parse(scale)}
    real: dict[str, Any] = {"scale": parse(scale)}
    if extras == "slopes":
        ours["slopes"], real["slopes"] = weight(random, 4)
    if extras == "table":
        table = np.array([Fraction(int(x), 8) for x in random.integers(-9, 9, 64)], object)
        table[[2, 17, 33]] = None
        table = table.reshape(4, 4, 4)
        for i in range(4):
            table[:, i, i] = Fraction(1, 4)
        ours["table"], real["table"] = system.admit(table), ORACLE.admit(table)
    made = attention(system, q.enclosed, k.enclosed, v.enclosed, **ours)
    truth = attention(ORACLE, q.known, k.known, v.known, **real)
    for mine, theirs in zip(made, truth, strict=True):
        contained(system, mine, theirs)


def test_softmax_uses_its_radius_to_a_fiftieth() -> None:
    """Two keys, one score moved up and one down: the shares move nearly as far as they may."""
    mids = np.array([[0.0, 0.0]])
    box = np.full((1, 2), 2.0**-20)
    scores = Enclosed(arithmetic.from_floats(mids)[0], np.array([2.0**-19]), box=box)
    moved = np.array([[Fraction(1, 2**20), -Fraction(1, 2**20)]], object)
    used = contained(system, system.softmax(scores), ORACLE.softmax(ORACLE.admit(moved)))
    assert used > 0.4


def test_softmax_of_equal_and_of_very_different_scores() -> None:
    floats = np.array([[5.0, 5.0, 5.0, -2000.0], [-1e4, 1e4, 0.0, 9999.0]])
    scores = system.admit(floats)
    contained(system, system.softmax(scores), ORACLE.softmax(ORACLE.admit(floats)))


def test_an_infinite_radius_claims_nothing_and_spoils_nothing_else(random: Any) -> None:
    v = Pair(random, (1, 4, 3), 2.0**-40)
    v.enclosed.ball[0, 3] = math.inf  # only the last query looks at the last key
    q, k = Pair(random, (1, 4, 5), 2.0**-40), Pair(random, (1, 4, 5), 2.0**-40)
    mixed = system.entries(attention(system, q.enclosed, k.enclosed, v.enclosed)[-1])
    assert mixed[0, 3, 0].rad == math.inf
    assert mixed[0, 2, 0].rad < 2.0**-30
    after = system.linear(
        attention(system, q.enclosed, k.enclosed, v.enclosed)[-1],
        system.admit(np.eye(3, dtype=np.float32)),
        layout="in_out",
    )
    assert not np.isnan(after.ball).any()


# ------------------------------------------------------------------ activations and the end


@pytest.mark.parametrize("kind", ["gelu", "gelu_tanh", "identity", "relu", "silu"])
@pytest.mark.parametrize("size", [0.5, 6.0, 2.0**-30])
def test_activate(random: Any, radius: float | None, kind: str, size: float) -> None:
    x = Pair(random, (3, 8), radius, size)
    contained(system, system.activate(x.enclosed, kind=kind), ORACLE.activate(x.known, kind=kind))


SLOPE_OF: dict[str, Callable[[arb], arb]] = {
    "gelu": lambda x: (
        (1 + (x / arb(2).sqrt()).erf()) / 2 + x * (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
    ),
    "gelu_tanh": lambda x: _slope_of_gelu_tanh(x, (2 / arb.pi()).sqrt()),
    "gelu_fast": lambda x: _slope_of_gelu_tanh(x, arb(fmpq(7978845608, 10**10))),
    "gelu_bloom": lambda x: _slope_of_gelu_tanh(x, arb(fmpq(79788456, 10**8))),
    "silu": lambda x: 1 / (1 + (-x).exp()) * (1 + x / (1 + x.exp())),
}


def _slope_of_gelu_tanh(x: arb, root: arb) -> arb:
    u = root * (x + arb(44715) / 1000000 * x**3)
    return (1 + u.tanh()) / 2 + x / 2 * (1 - u.tanh() ** 2) * root * (
        1 + 3 * arb(44715) / 1000000 * x * x
    )


@pytest.mark.parametrize("kind", sorted(SLOPE_OF))
def test_no_slope_is_steeper_than_its_constant(kind: str) -> None:
    """A proof: pieces of [-64, 64] are halved until Arb encloses the slope below the constant.

    Beyond, with s(t) = 1/(1 + e^-t), the slopes lie in [0, 1] but for terms below 10^-20: x·φ(x) of
    gelu, x·s(x)·s(-x) <= x·e^-x of silu, and of gelu_tanh x·u'(x)·s(2u)·s(-2u) <= x·u'·e^(-2u),
    u >= 0.79x: all of them fall from 64 on, and are the same for -x.
    """
    most = arb(SLOPES[kind])
    waiting = [(Fraction(i), Fraction(i + 1)) for i in range(-64, 64)]
    steepest = 0.0
    with ctx.workprec(80):
        while waiting:
            low, high = waiting.pop()
            middle, half = (low + high) / 2, (high - low) / 2
            piece = arb(arb(fmpq(middle.numerator, middle.denominator)),
                        arb(fmpq(half.numerator, half.denominator)))  # fmt: skip
            slope = abs(SLOPE_OF[kind](piece))
            if slope <= most:
                steepest = max(steepest, float(slope.lower()))
                continue
            assert half > Fraction(1, 2**20), f"the slope at {float(middle)} is {slope}"
            waiting += [(low, middle), (middle, high)]
    assert steepest > SLOPES[kind] - 1e-3  # and the constant is not far above


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(InputError, match="no activation"):
        system.activate(system.admit(np.ones((1, 2))), kind="swish")


def logits(rows: list[list[float]], radius: float) -> Enclosed:
    digits = arithmetic.from_floats(np.array(rows))[0]
    if radius == 0.0:
        return Enclosed(digits)
    box = np.full(digits.shape, radius)
    return Enclosed(digits, np.full(digits.shape[:-1], radius * 10), box=box)


def test_the_largest_is_proven_where_it_stands_apart() -> None:
    [found] = system.argmax(logits([[1.0, 3.0, 2.5]], 0.125))
    assert (found.id, found.proven, found.tied) == (1, True, ())
    assert (found.margin.lower, found.margin.upper) == (Fraction(1, 4), Fraction(3, 4))


def test_the_largest_is_left_open_where_others_may_be_it() -> None:
    [found] = system.argmax(logits([[1.0, 3.0, 2.875]], 0.125))
    assert (found.id, found.proven, found.candidates) == (None, False, (1, 2))


def test_a_tie_of_exact_numbers_is_a_tie() -> None:
    [found] = system.argmax(logits([[1.0, 3.0, 3.0]], 0.0))
    assert (found.id, found.proven, found.tied, found.margin.rad) == (1, True, (1, 2), 0)


def test_a_difference_that_no_float_sees_is_decided() -> None:
    integers = [2**90, 2**90 + 1, 5]
    digits = arithmetic.from_integers(integers, -89).reshape(1, 3)
    box = np.full((1, 3), 2.0**-92)
    [found] = system.argmax(Enclosed(digits, np.array([1.0]), box=box))
    assert (found.id, found.proven) == (1, True)


def test_nothing_is_proven_of_what_is_not_known() -> None:
    [found] = system.argmax(logits([[1.0, 3.0]], math.inf))
    assert (found.id, found.candidates) == (None, (0, 1))


def test_a_single_token_is_the_largest() -> None:
    [found] = system.argmax(logits([[1.0]], 0.5))
    assert (found.id, found.proven) == (0, True)


def test_loss(random: Any, radius: float | None) -> None:
    x = Pair(random, (3, 7), radius, 4.0)
    ours = system.loss(system.softmax(x.enclosed), target=2)
    contained(system, ours, ORACLE.loss(ORACLE.softmax(x.known), target=2))


def test_loss_of_shares_that_came_from_elsewhere() -> None:
    floats = np.array([[0.25, 0.75]])
    contained(
        system,
        system.loss(system.enclosed(system.admit(floats)), target=0),
        ORACLE.loss(ORACLE.admit(floats), target=0),
    )


# ------------------------------------------------------------------ the system itself


def test_a_precision_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match="precision"):
        Limbs(5000)


def test_a_weight_that_is_no_float_is_refused() -> None:
    with pytest.raises(InputError, match="not a float"):
        system.admit(np.array([Fraction(1, 3)], object))
    with pytest.raises(InputError, match="finite"):
        system.admit(np.array([1.0, math.nan]))


def test_another_precision_reads_the_same_weights() -> None:
    ours = system.admit(np.float32([[1.0, 0.5], [0.1, 2.0]]))
    finer = system.at(300)
    assert finer.bits == 300
    x = finer.embed(ours, [0, 1], scale=parse("1/sqrt(7)"))
    assert finer.entries(x)[0, 0].rad < 2.0**-290


def test_entries_are_made_when_asked_for() -> None:
    x = logits([[1.0, 2.0], [3.0, 4.0]], 0.5)
    found = system.entries(x)
    assert found.shape == (2, 2)
    assert found[1, 0].mid == 3
    assert [entry.mid for entry in found[1]] == [3, 4]
    assert repr(found).startswith("[[")
    assert np.asarray(found)[0, 1].mid == 2
    middles, radii = system.magnitudes(x)
    assert middles[1, 1] == 2.0
    assert radii[0, 0] == -1.0

"""Each operation of learning in `Limbs`: the image of whatever lies in what is read lies inside.

On NumPy and on torch tensors, against Arb.  Radii go up to the size of the numbers themselves, so
that products of two errors count too.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpz
from real_values import ORACLE, Pair, contained

from byhand.errors import InputError
from byhand.expression import parse
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Note
from byhand.numbers.enclosed.limbs import arithmetic, slopes
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed

RADII = [None, 2.0**-60, 0.5]
NARROW = [None, 2.0**-60, 2.0**-6]
SEEN = [[j <= i for j in range(4)] for i in range(4)]
TARGETS = (2, UNCOUNTED, 0, 4)
ATTENDED: dict[str, Any] = {"mask": SEEN, "queries": range(4), "keys": range(4)}


@pytest.fixture(params=RADII, ids=lambda radius: f"radius {radius}")
def radius(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=NARROW, ids=lambda radius: f"radius {radius}")
def narrow(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(
    params=[(None, False), (None, True), ("cpu", True)], ids=["numpy", "aligned", "tensors"]
)
def place(request: pytest.FixtureRequest) -> tuple[str | None, bool]:
    """A device, or NumPy; and whether errors add up."""
    found: tuple[str | None, bool] = request.param
    return found


@pytest.fixture
def system(place: tuple[str | None, bool]) -> Limbs:
    return Limbs(120, place[0])


@pytest.fixture
def pair(place: tuple[str | None, bool], system: Limbs) -> Callable[..., Pair]:
    random = np.random.default_rng(1)

    def make(shape: tuple[int, ...], radius: float | None, size: Any = 1.0) -> Pair:
        return Pair(random, shape, radius, size, system, aligned=place[1])

    return make


Make = Callable[..., Pair]


# ------------------------------------------------------------------ the loss of a text


def test_losses_their_mean_and_the_gradient_of_the_logits(
    system: Limbs, pair: Make, narrow: float | None
) -> None:
    x = pair((4, 5), narrow, 3.0)
    ours, real = system.softmax(x.enclosed), ORACLE.softmax(x.known)
    losses, truth = system.losses(ours, TARGETS), ORACLE.losses(real, TARGETS)
    contained(system, losses, truth)
    contained(system, system.average(losses), ORACLE.average(truth))
    for targets in (TARGETS, (3, 1, 1, 0), 3):
        contained(system, system.loss_back(ours, targets), ORACLE.loss_back(real, targets))


def test_positions_that_do_not_count_have_a_gradient_of_exactly_zero(
    system: Limbs, pair: Make
) -> None:
    x = pair((4, 5), 2.0**-40)
    found = system.entries(system.loss_back(system.softmax(x.enclosed), TARGETS))
    assert all(found[1, j].mid == found[1, j].rad == 0 for j in range(5))
    assert all(found[0, j].rad > 0 for j in range(5))


def test_the_gradient_of_a_vocabulary_of_one_token_is_zero(system: Limbs, pair: Make) -> None:
    probs = system.softmax(pair((2, 1), 2.0**-40).enclosed)
    found = system.entries(system.loss_back(probs, (0, 0)))
    assert (found[1, 0].mid, found[1, 0].rad) == (0, 0)


# ------------------------------------------------------------------ sums


def test_total(system: Limbs, pair: Make, radius: float | None) -> None:
    terms = [pair((3, 5), radius), pair((3, 5), 2.0**-30, 8.0), pair((3, 5), None)]
    ours = system.total(**{f"term_{i}": term.enclosed for i, term in enumerate(terms)})
    contained(system, ours, ORACLE.total(**{f"term_{i}": t.known for i, t in enumerate(terms)}))


@pytest.mark.parametrize("shape", [(4, 5), (2, 4, 3), (4, 1)])
@pytest.mark.parametrize("with_by", [True, False])
def test_column_sums(
    system: Limbs, pair: Make, radius: float | None, shape: tuple[int, ...], with_by: bool
) -> None:
    x, by = pair(shape, radius), pair(shape, radius, 5.0)
    ours = system.column_sums(x.enclosed, by=by.enclosed if with_by else None)
    contained(system, ours, ORACLE.column_sums(x.known, by=by.known if with_by else None))
    if not with_by:
        made = system.column_sums(x.enclosed, merged=True)
        contained(system, made, ORACLE.column_sums(x.known, merged=True))


@pytest.mark.parametrize("other", [None, 2.0**-40, 0.5])
def test_row_dots(system: Limbs, pair: Make, radius: float | None, other: float | None) -> None:
    x, y = pair((3, 5), radius, 4.0), pair((3, 5), other)
    contained(system, system.row_dots(x.enclosed, y.enclosed), ORACLE.row_dots(x.known, y.known))


def test_the_radius_of_a_dot_product_is_reached() -> None:
    """Both move along each other: nothing is lost."""
    numbers = Limbs(100)
    rows = arithmetic.from_floats(np.array([[3.0, 4.0]]))[0]
    x = Enclosed(rows, np.array([0.5]))
    moved = ORACLE.admit(np.array([[Fraction(33, 10), Fraction(44, 10)]], object))
    used = contained(numbers, numbers.row_dots(x, x), ORACLE.row_dots(moved, moved))
    assert used > 0.98


def test_sum_groups(system: Limbs, pair: Make, radius: float | None) -> None:
    x = pair((6, 4, 3), radius)
    contained(system, system.sum_groups(x.enclosed, heads=2), ORACLE.sum_groups(x.known, heads=2))


# ------------------------------------------------------------------ products


@pytest.mark.parametrize("layout", ["in_out", "out_in"])
@pytest.mark.parametrize("shapes", [((4, 5), (4, 3)), ((2, 4, 3), (4, 5)), ((4, 5), (3, 4, 2))])
def test_outer(
    system: Limbs, pair: Make, radius: float | None, layout: str, shapes: tuple[Any, Any]
) -> None:
    x, grad = pair(shapes[0], radius, 6.0), pair(shapes[1], 0.25 if radius else None)
    ours = system.outer(x.enclosed, grad.enclosed, layout=layout)
    contained(system, ours, ORACLE.outer(x.known, grad.known, layout=layout))


def test_an_outer_product_errs_as_far_as_it_may() -> None:
    """Each position's row moves by all of its radius, towards the same entry."""
    numbers = Limbs(100)
    ones = arithmetic.from_floats(np.ones((4, 1)))[0]
    x = Enclosed(ones, np.full(4, 0.5))
    moved = ORACLE.admit(np.full((4, 1), Fraction(3, 2), object))
    made = numbers.outer(x, x, layout="in_out")
    used = contained(numbers, made, ORACLE.outer(moved, moved, layout="in_out"))
    assert used > 0.98


@pytest.mark.parametrize("scale", [None, "1/4", "1/sqrt(3)"])
def test_sums_along_keys_and_along_queries(
    system: Limbs, pair: Make, radius: float | None, scale: str | None
) -> None:
    factor = None if scale is None else parse(scale)
    x = pair((4, 4, 4), radius)
    keys, queries = pair((2, 4, 3), radius, 3.0), pair((4, 4, 3), radius, 3.0)
    ours = system.along_keys(x.enclosed, keys.enclosed, scale=factor)
    contained(system, ours, ORACLE.along_keys(x.known, keys.known, scale=factor))
    ours = system.along_queries(x.enclosed, queries.enclosed, scale=factor)
    contained(system, ours, ORACLE.along_queries(x.known, queries.known, scale=factor))


def test_infinite_radii_spoil_what_they_reach_and_nothing_else(system: Limbs, pair: Make) -> None:
    x, grad = pair((3, 2), 2.0**-40), pair((3, 4), 2.0**-40)
    grad.enclosed.ball[1] = np.inf
    x.enclosed.digits.limbs[:, 1, 0] = 0.0  # but nothing is known of x[1, 0] either
    made = system.entries(system.outer(x.enclosed, grad.enclosed, layout="in_out"))
    assert made[0, 0].rad == made[1, 2].rad == np.inf
    sums = system.row_dots(grad.enclosed, grad.enclosed)
    assert [system.entries(sums)[p].rad < 1 for p in range(3)] == [True, False, True]


# ------------------------------------------------------------------ places


@pytest.mark.parametrize("scale", [None, "sqrt(2)"])
def test_scatter(system: Limbs, pair: Make, radius: float | None, scale: str | None) -> None:
    grad, factor = pair((4, 3), radius), None if scale is None else parse(scale)
    ours = system.scatter(grad.enclosed, (2, 5, 2, 0), rows=6, scale=factor)
    contained(system, ours, ORACLE.scatter(grad.known, (2, 5, 2, 0), rows=6, scale=factor))
    found = system.entries(ours)
    assert all(found[row, 1].mid == found[row, 1].rad == 0 for row in (1, 3, 4))


@pytest.mark.parametrize(("starts", "stride"), [((0, 4, 8), 2), ((0, 2, 4), 6)])
def test_pack_heads(
    system: Limbs, pair: Make, radius: float | None, starts: tuple[int, ...], stride: int
) -> None:
    parts = [pair((2, 3, 2), radius), pair((2, 3, 2), None), pair((2, 3, 2), 2.0**-50)]
    ours = system.pack_heads(*(part.enclosed for part in parts), starts=starts, stride=stride)
    known = (ORACLE.total(part=part.known) for part in parts)
    real = ORACLE.pack_heads(*known, starts=starts, stride=stride)
    contained(system, ours, real)


# ------------------------------------------------------------------ adjoints


@pytest.mark.parametrize("size", [1.0, 12.0])
def test_gradients_through_attention(
    system: Limbs, pair: Make, narrow: float | None, size: float
) -> None:
    q, k, v = pair((4, 4, 5), narrow, size), pair((2, 4, 5), narrow), pair((2, 4, 3), narrow)
    grad, scale = pair((4, 4, 3), narrow), parse("1/sqrt(5)")

    def backward(numbers: Any, q: Any, k: Any, v: Any, grad: Any) -> list[Any]:
        weights = numbers.softmax(numbers.scores(q, k, scale=scale, **ATTENDED))
        rise = numbers.scores(grad, v, **ATTENDED)
        dot = numbers.row_dots(weights, rise)
        scores = numbers.softmax_back(weights, rise, dot)
        to_k = numbers.along_queries(scores, q, scale=scale)
        summed = numbers.sum_groups(to_k, heads=2)
        return [
            rise, dot, scores, numbers.along_keys(scores, k, scale=scale), to_k, summed,
            numbers.along_queries(weights, grad), numbers.column_sums(summed, merged=True),
        ]  # fmt: skip

    ours = backward(system, *(x.enclosed for x in (q, k, v, grad)))
    real = backward(ORACLE, *(x.known for x in (q, k, v, grad)))
    for mine, theirs in zip(ours, real, strict=True):
        contained(system, mine, theirs)
    found = system.entries(ours[2])
    assert found[0, 0, 0].mid == found[0, 0, 0].rad == 0  # the first position sees one key
    sums = system.entries(ours[-1])
    assert all(sums[j].mid == sums[j].rad == 0 for j in range(10))  # gradients of keys cancel


def test_a_dot_from_elsewhere_gives_no_zeros(system: Limbs, pair: Make) -> None:
    weights = system.softmax(pair((2, 1), 2.0**-40).enclosed)
    grad, dot = pair((2, 1), 2.0**-40), pair((1, 2), 2.0**-40)
    row = Enclosed(dot.enclosed.digits[0], dot.enclosed.ball[0])
    ours = system.softmax_back(weights, grad.enclosed, row)
    real = ORACLE.softmax_back(
        ORACLE.softmax(ORACLE.admit(np.zeros((2, 1)))), grad.known, ORACLE.admit(dot.real[0])
    )
    contained(system, ours, real)
    assert system.entries(ours)[0, 0].mid != 0
    other = system.row_dots(weights, pair((2, 1), 2.0**-40).enclosed)  # of another gradient
    again = system.entries(system.softmax_back(weights, grad.enclosed, other))
    assert again[0, 0].rad > 0


@pytest.mark.parametrize("positions", [(0, -5, -1000), (-3, 0, -(2**27))])
@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_a_turn_back(
    system: Limbs, pair: Make, radius: float | None, positions: tuple[int, ...], pairing: str
) -> None:
    x = pair((2, 3, 6), radius, 5.0)
    settings: dict[str, Any] = {"width": 4, "base": Fraction(10000), "pairing": pairing}
    ours = system.rotate(x.enclosed, positions=positions, **settings)
    contained(system, ours, ORACLE.rotate(x.known, positions=positions, **settings))
    if radius and radius < 1e-9:  # and forth: the same numbers
        there = system.rotate(ours, positions=tuple(-p for p in positions), **settings)
        contained(system, there, x.known)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("eps", [Fraction(0), Fraction(1, 100000)])
@pytest.mark.parametrize("size", [1.0, 2.0**-12, 100.0])
def test_gradients_through_norms(
    system: Limbs, pair: Make, narrow: float | None, centered: bool, eps: Fraction, size: float
) -> None:
    x = pair((3, 9), None if narrow is None else narrow * size, size)
    grad = pair((3, 9), narrow)

    def backward(numbers: Any, x: Any, grad: Any) -> list[Any]:
        rows = numbers.center(x, numbers.mean(x)) if centered else x
        by = numbers.root(numbers.mean_square(rows), eps=eps)
        made = numbers.normalize(rows, by)
        straight = numbers.normalize_back(grad, by)
        dot = numbers.row_dots(made, grad)
        divisor = numbers.divisor_back(dot, by)
        square = numbers.root_back(divisor, by)
        around = numbers.mean_square_back(square, rows)
        whole = numbers.total(one=straight, other=around)
        mean = numbers.center_back(whole)
        spread = numbers.mean_back(mean, width=9)
        return [straight, dot, divisor, square, around, whole, mean, spread]

    ours, real = backward(system, x.enclosed, grad.enclosed), backward(ORACLE, x.known, grad.known)
    for mine, theirs in zip(ours, real, strict=True):
        contained(system, mine, theirs)


@pytest.mark.parametrize("radii", [(None, 0.125), (0.125, None), (0.125, 0.125)])
def test_one_adjoint_of_a_norm_at_a_time(
    system: Limbs, radii: tuple[float | None, float | None]
) -> None:
    """Rows of one entry, so that no radius is larger than what it bounds."""

    def made(shape: tuple[int, ...], radius: float | None, seed: int) -> Pair:
        random = np.random.default_rng(seed)
        return Pair(random, shape, radius, 3.0, system, aligned=True)

    grad, x = made((3, 1), radii[0], 1), made((3, 1), radii[1], 2)
    row, by = made((1,), radii[0], 3), made((1,), radii[1], 4)
    one = Pair(np.random.default_rng(5), (1, 1), radii[0], 3.0, system, aligned=True)
    for ours, real in (
        (system.mean_square_back(row.enclosed, one.enclosed),
         ORACLE.mean_square_back(row.known, one.known)),
        (system.mean_square_back(by.enclosed, one.enclosed),
         ORACLE.mean_square_back(by.known, one.known)),
        (system.divisor_back(row.enclosed, by.enclosed), ORACLE.divisor_back(row.known, by.known)),
        (system.root_back(row.enclosed, by.enclosed), ORACLE.root_back(row.known, by.known)),
        (system.normalize_back(one.enclosed, by.enclosed),
         ORACLE.normalize_back(one.known, by.known)),
        (system.center_back(grad.enclosed), ORACLE.center_back(grad.known)),
        (system.multiply(grad.enclosed, x.enclosed), ORACLE.multiply(grad.known, x.known)),
    ):  # fmt: skip
        contained(system, ours, real)


def test_a_row_without_variance_passes_no_gradient_where_that_is_certain(system: Limbs) -> None:
    zeros, by = system.admit(np.zeros((2, 3))), system.admit(np.zeros(2))
    made = system.normalize_back(zeros, by)
    assert system.notes == [Note("zero-variance", (0,)), Note("zero-variance", (1,))]
    assert system.entries(made)[0, 0].rad == 0
    assert system.entries(system.divisor_back(by, by))[0].rad == 0
    some = system.normalize_back(system.admit(np.ones((2, 3))), by)
    assert system.entries(some)[0, 0].rad == np.inf


@pytest.mark.parametrize("kind", ["relu", "identity", "gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("size", [4.0, 2.0**-30])
def test_slope(system: Limbs, pair: Make, radius: float | None, kind: str, size: float) -> None:
    x = pair((3, 8), radius, size)
    contained(system, system.slope(x.enclosed, kind=kind), ORACLE.slope(x.known, kind=kind))


def test_the_slope_of_relu_is_open_only_where_the_sign_is(system: Limbs) -> None:
    digits = system.enclosed(system.admit(np.array([[-1.0, 0.25, 0.5, 2.0, 0.0]]))).digits
    ball = abs(digits.limbs[0, :, 0]) * 0.0 + 0.5
    found = system.entries(system.slope(Enclosed(digits, ball), kind="relu"))
    told = [(found[0, j].lower, found[0, j].upper) for j in range(5)]
    assert told == [(0, 0), (0, 1), (0, 1), (1, 1), (0, 1)]
    exact = system.entries(system.slope(Enclosed(digits), kind="relu"))
    assert [exact[0, j].mid for j in range(5)] == [0, 1, 1, 1, 0]
    assert all(exact[0, j].rad == 0 for j in range(5))


def test_the_slope_of_an_unknown_activation_is_refused(system: Limbs) -> None:
    with pytest.raises(InputError, match="no activation"):
        system.slope(system.admit(np.ones((1, 2))), kind="swish")


def _s(x: arb) -> tuple[arb, arb]:
    """(1/(1 + e^-x), 1/(1 + e^x))."""
    return 1 / (1 + (-x).exp()), 1 / (1 + x.exp())


def _gelu_tanh(x: arb, root: arb | None = None) -> tuple[arb, arb]:
    """Slope and curve: with w = 2√(2/π)(x + c·x³), f = x·s(w); another root for √(2/π)."""
    bend = arb(44715) / 1000000
    root = (8 / arb.pi()).sqrt() if root is None else 2 * root
    (up, down), steep = _s(root * (x + bend * x**3)), root * (1 + 3 * bend * x * x)
    slope = up + x * up * down * steep
    curve = up * down * (2 * steep + x * root * 6 * bend * x + x * steep * steep * (down - up))
    return slope, curve


def _gelu(x: arb) -> tuple[arb, arb]:
    density = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
    return (-x / arb(2).sqrt()).erfc() / 2 + x * density, density * (2 - x * x)


def _silu(x: arb) -> tuple[arb, arb]:
    up, down = _s(x)
    return up + x * up * down, up * down * (2 + x * (down - up))


def _quick_gelu(x: arb) -> tuple[arb, arb]:
    quick = arb(1702) / 1000
    slope, curve = _silu(quick * x)
    return slope, quick * curve


TRUE: dict[str, Callable[[arb], tuple[arb, arb]]] = {
    "gelu": _gelu, "gelu_tanh": _gelu_tanh, "silu": _silu, "quick_gelu": _quick_gelu,
    "gelu_fast": lambda x: _gelu_tanh(x, arb(7978845608) / 10**10),
    "gelu_bloom": lambda x: _gelu_tanh(x, arb(79788456) / 10**8),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(TRUE))
def test_no_slope_changes_faster_than_its_constant(kind: str) -> None:
    """A proof: pieces of [-64, 64] are halved until Arb encloses the curve below the constant.

    Beyond, curves are below x³·e^-x < 10^-20: φ(x)·(x² - 2) of gelu, and s(w)·s(-w) <= e^-w times a
    polynomial of at most 2w' + xw'' + xw'², w' = 1 for silu, and for gelu_tanh w >= 0.07x³.
    """
    most = arb(slopes.CURVES[kind])
    waiting = [(Fraction(i), Fraction(i + 1)) for i in range(-64, 64)]
    steepest = 0.0
    with ctx.workprec(80):
        while waiting:
            low, high = waiting.pop()
            middle, half = (low + high) / 2, (high - low) / 2
            piece = arb(arb(fmpq(middle.numerator, middle.denominator)),
                        arb(fmpq(half.numerator, half.denominator)))  # fmt: skip
            curve = abs(TRUE[kind](piece)[1])
            if curve <= most:
                steepest = max(steepest, float(curve.lower()))
                continue
            assert half > Fraction(1, 2**20), f"the curve at {float(middle)} is {curve}"
            waiting += [(low, middle), (middle, high)]
    assert steepest > slopes.CURVES[kind] - 1e-3


TABLES = [
    *((kind, low) for kind in ("gelu", "gelu_tanh", "silu") for low in (-30, -52, -60, -96, -140)),
    *((kind, -52) for kind in ("gelu_fast", "gelu_bloom", "quick_gelu")),
]


@pytest.mark.parametrize(("kind", "low"), TABLES)
def test_tabled_slopes_err_by_less_than_is_written(kind: str, low: int) -> None:
    rng = np.random.default_rng(-low)
    floats = [*rng.standard_normal(40) * 5, 0.0, 2.0**-9, -(2.0**-9), -12.3, 0.5]
    floats += [1e5, -40.0] if low > -60 else []  # far out a table of many digits is large
    x = arithmetic.from_floats(np.array(floats))[0]
    found = arithmetic.to_integers(slopes.tabled(kind, x, low)).tolist()
    worst = 0.0
    with ctx.workprec(-low + 400):
        for argument, value in zip(floats, found, strict=True):
            true = TRUE[kind](arb(argument))[0] * arb((fmpz(1), fmpz(-low)))
            worst = max(worst, float(abs(true - fmpz(value)).upper()))
    assert worst < slopes.ERROR


@pytest.mark.parametrize("with_bias", [True, False])
def test_only_a_row_of_zeros_gives_zeros_behind_a_matrix(system: Limbs, with_bias: bool) -> None:
    """One row is all zeros and the other has a zero; a bias of 1/3 is rounded in both."""
    limbs = system.enclosed(system.admit(np.array([[0.0, 0.0], [0.0, 1.0]]))).digits
    ball = limbs.engine.zeros((2,), limbs.limbs) + 2.0**-40
    x = Enclosed(limbs, ball, zeros=limbs.limbs[0] == 0.0)
    weight = np.array([[1.0, 0.5], [0.25, 1 / 3]])
    third = np.array([1 / 3, 2.0**-200])  # finer than the grid
    bias = system.admit(third) if with_bias else None
    made = system.linear(x, system.admit(weight), bias=bias, layout="in_out")
    found = system.entries(made)
    assert found[1, 0].rad > 0
    assert (found[0, 1].mid == found[0, 1].rad == 0) == (not with_bias)
    real = ORACLE.admit(third if with_bias else np.zeros(2))
    assert found[0, 1].contains(ORACLE.entries(real)[1])

"""Checks of the proofs' assumptions about a machine, for `byhand selftest`.

The assumptions are IEEE 754 float64 with rounding to nearest and gradual underflow, and a BLAS that
sums products in some order and does nothing else.  Passing does not prove them; failing disproves
them.  While proofs are worked out, every product is guarded by its own checksum.

Each check is an independent statement about integers or about enclosures; the answers come from
Python's integers and fractions, not from the arrays they are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from byhand.errors import ByhandError
from byhand.language import _
from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.limbs import angles, arithmetic, functions, integers, roots
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.checksums import WrongProduct, check
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, Engine, engine_of
from byhand.numbers.enclosed.limbs.integers import Near
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.products import multiply_matrix
from byhand.numbers.enclosed.limbs.slices import Matrix, check_columns
from byhand.numbers.enclosed.limbs.spectral import spectral_norm
from byhand.numbers.enclosed.limbs.weights import torch_devices

SHAPES = ((1, 1, 1), (3, 700, 5), (32, 768, 514), (160, 300, 64), (7, 3072, 33))
BITS = 110


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried."""

    name: str
    passed: bool
    detail: str


def checks(device: str | None = None) -> Iterator[Check]:
    """All checks, one after the other; with a device also on torch there."""
    yield from _on(np.zeros(1), "numpy", None)
    if device is not None:
        where = torch_devices().find_device(device)
        like = torch_devices().from_numpy(np.zeros(1)).to(where)
        yield from _on(like, f"torch, {device}", device)


def _on(like: Array, where: str, device: str | None) -> Iterator[Check]:
    engine = engine_of(like)
    random = np.random.default_rng(20)
    tests: tuple[tuple[str, Callable[[], str]], ...] = (
        (_("float64 rounds to nearest, ties to even"), lambda: _rounds(engine, like)),
        (_("small numbers are not taken for zero"), lambda: _underflows(engine, like)),
        (_("products of integers below 2^53 are exact"), lambda: _products(engine, like, random)),
        (_("the checksum finds a wrong product"), lambda: _checksum(engine, like, random)),
        (_("slices of a matrix are the matrix"), lambda: _slices(engine, like, random)),
        (_("Cholesky bounds the spectral norm"), lambda: _spectral(engine, like, random)),
        (_("functions are within their written error"), lambda: _functions(engine, like, random)),
        (_("enclosures at two precisions overlap"), lambda: _overlap(device)),
    )
    if engine is not NUMPY and like.is_cuda:
        tests = (*tests, (_("kernels give the same bits"), lambda: _kernels(like, random)))
    for name, test in tests:
        try:
            yield Check(name, True, f"{where}: {test()}")
        except (ArithmeticError, AssertionError, ByhandError, ValueError) as error:
            yield Check(name, False, f"{where}: {error or type(error).__name__}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ArithmeticError(otherwise)


# ------------------------------------------------------------------ float64


def _array(engine: Engine, like: Array, values: list[float]) -> Array:
    return engine.constant(np.array(values), like)


def _rounds(engine: Engine, like: Array) -> str:
    """Sums, products, quotients and roots whose correct rounding is known."""
    one = _array(engine, like, [1.0, 1.0, 1.0 + 2.0**-52, 2.0**53, 2.0**53 + 2])
    small = _array(engine, like, [2.0**-53, 2.0**-53 + 2.0**-80, 2.0**-53, 1.0, 1.0])
    found = engine.to_numpy(one + small).tolist()
    expected = [1.0, 1.0 + 2.0**-52, 1.0 + 2.0**-51, 2.0**53, 2.0**53 + 4]
    _require(found == expected, f"sums {found}")
    # (1 + 2^-30)² = 1 + 2^-29 + 2^-60: extended precision would keep the last bit
    square = engine.to_numpy((a := _array(engine, like, [1 + 2.0**-30])) * a - (1 + 2.0**-29))
    _require(float(square[0]) == 0.0, "a product is kept in extended precision")
    top = np.array([1.0, 10.0, 2.0**53 - 1, 355.0])
    bottom = np.array([3.0, 7.0, 3.0, 113.0])
    quotient = engine.to_numpy(engine.constant(top, like) / engine.constant(bottom, like))
    for found_one, a_, b_ in zip(quotient, top, bottom, strict=True):
        _require(_nearest(float(found_one), Fraction(a_) / Fraction(b_)), "a quotient")
    square_roots = engine.to_numpy(engine.root(engine.constant(top, like)))
    for found_one, a_ in zip(square_roots, top, strict=True):
        below, above = (Fraction(float(np.nextafter(found_one, end))) for end in (0.0, np.inf))
        here = Fraction(float(found_one))
        fits = ((here + below) / 2) ** 2 <= Fraction(a_) <= ((here + above) / 2) ** 2
        _require(fits, "a square root")
    halves = engine.to_numpy(engine.rint(_array(engine, like, [0.5, 1.5, -2.5, 2.0**52 - 0.5])))
    _require(halves.tolist() == [0.0, 2.0, -2.0, 2.0**52], f"rint {halves.tolist()}")
    return "+, ·, /, √, rint"


def _nearest(found: float, value: Fraction) -> bool:
    off = abs(Fraction(found) - value)
    return all(
        off <= abs(Fraction(float(np.nextafter(found, end))) - value) for end in (-np.inf, np.inf)
    )


def _underflows(engine: Engine, like: Array) -> str:
    tiny = _array(engine, like, [2.0**-1000, 2.0**-1022, 2.0**-1074])
    kept = engine.to_numpy(tiny * 1.0).tolist()
    _require(kept == [2.0**-1000, 2.0**-1022, 2.0**-1074], f"found {kept}")
    halves = engine.to_numpy(_array(engine, like, [2.0**-1022]) * 0.5).tolist()
    _require(halves == [2.0**-1023], f"found {halves}")
    return "2^-1074"


def _products(engine: Engine, like: Array, random: Any) -> str:
    """Random and adversarial integers, at several shapes, with one thread and with all."""
    count = 0
    for threads in (_one_thread, nullcontext):
        with threads():
            for m, k, n in SHAPES:
                for x, y in _matrices(random, m, k, n):
                    ours = engine.to_numpy(engine.constant(x, like) @ engine.constant(y, like))
                    _require(_equal(ours, x, y, random), f"{m} × {k} × {n}")
                    count += 1
    return _("{count} products").format(count=count)


def _matrices(random: Any, m: int, k: int, n: int) -> Iterator[tuple[Any, Any]]:
    """Products whose every partial sum is below 2^53, and comes near it."""
    room = 53 - int(np.ceil(np.log2(k)))  # bits of one product
    half = room // 2
    yield (
        random.integers(-(2**half) + 1, 2**half, (m, k)).astype(float),
        random.integers(-(2 ** (room - half)) + 1, 2 ** (room - half), (k, n)).astype(float),
    )
    # all of one sign and as large as they may be: the sum fills all 53 bits
    yield np.full((m, k), 2.0**half - 1), np.full((k, n), 2.0 ** (room - half) - 1)
    # large terms that cancel and leave ones: what is lost would be seen
    x = np.full((m, k), 2.0**half - 1)
    y = np.full((k, n), 2.0 ** (room - half) - 1)
    y[1::2] *= -1
    y[-1] += 1
    yield x, y


def _equal(found: Any, x: Any, y: Any, random: Any) -> bool:
    """A few rows and columns against 64-bit integers, which do not round."""
    rows = random.permutation(len(x))[:16]
    columns = random.permutation(y.shape[1])[:64]
    whole = x[rows].astype(np.int64) @ y[:, columns].astype(np.int64)
    return bool((found[np.ix_(rows, columns)] == whole.astype(float)).all()) and bool(
        (np.abs(whole) < 2**53).all()
    )


def _one_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread, where threadpoolctl can ask for it."""
    try:
        limits: Any = import_module("threadpoolctl").threadpool_limits
    except ImportError:
        return nullcontext()
    return limits(1)  # type: ignore[no-any-return]


def _checksum(engine: Engine, like: Array, random: Any) -> str:
    """One bit changed anywhere in a product of limbs must be seen."""
    x = random.integers(-(2**20), 2**20, (3, 4, 9)).astype(float)
    y = random.integers(-(2**20), 2**20, (9, 6)).astype(float)
    nothing = np.zeros((1, 4, 1))
    right = np.concatenate([nothing + np.zeros(6), x @ y])
    known = np.concatenate([nothing + np.zeros(2), x @ check_columns(NUMPY, y)])
    sums = arithmetic.carry(engine.constant(known, like))
    check(arithmetic.carry(engine.constant(right.copy(), like)), sums)
    tried = 0
    for index in ((1, 0, 0), (3, 2, 5), (2, 3, 1), (1, 1, 4)):
        wrong = right.copy()
        wrong[index] += 2.0 ** random.integers(0, 30)
        try:
            check(arithmetic.carry(engine.constant(wrong, like)), sums)
        except WrongProduct:
            tried += 1
            continue
        raise ArithmeticError(f"an error at {index} was not seen")
    return _("{count} errors found").format(count=tried)


def _kernels(like: Array, random: Any) -> str:
    """A product by kernels has the bits of NumPy; the text says where there are no kernels."""
    x, y = (
        Digits(random.integers(-(2**21), 2**21 + 1, (count, 700)).astype(float), 30)
        for count in (4, 3)
    )
    engine = engine_of(like)
    one, other = (Digits(engine.constant(part.limbs, like), part.top) for part in (x, y))
    found = engine.to_numpy(arithmetic.multiply(one, other, -60).limbs)
    _require(bool((found == arithmetic.multiply(x, y, -60).limbs).all()), "a product")
    reason = kernels.given_up()
    return _("none can be used ({reason})").format(reason=reason) if reason else "Triton"


def _slices(engine: Engine, like: Array, random: Any) -> str:
    floats = (random.standard_normal((40, 30)) * 2.0 ** random.integers(-20, 20, (40, 30))).astype(
        np.float32
    )
    matrix = Matrix(engine.constant(floats, like))
    x = Digits(engine.constant(np.eye(40)[None], like), arithmetic.WIDTH)  # ones on the diagonal
    made = multiply_matrix(x, matrix, -400, largest=float(abs(floats).max()), tolerance=0.0)
    found = arithmetic.to_fractions(made.digits)
    exact = all(Fraction(float(v)) == f for v, f in zip(floats.flat, found.flat, strict=True))
    _require(exact and made.error == 0.0, "a slice is not exact")
    return _("{count} slices").format(count=len(matrix.tiles[0].slices))


def _spectral(engine: Engine, like: Array, random: Any) -> str:
    """Matrices of a known norm: orthogonal ones (of whole numbers), scaled."""
    hadamard = np.array([[1.0]])
    while len(hadamard) < 64:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    sizes = np.abs(random.integers(1, 50, 64)).astype(float)
    known = 8.0 * float(sizes.max())
    bound = spectral_norm(engine.constant(hadamard * sizes, like))
    _require(known <= bound <= 1.1 * known, f"{bound} for {known}")
    return f"{bound / known - 1:.1e}"


# ------------------------------------------------------------------ functions and passes


def _functions(engine: Engine, like: Array, random: Any) -> str:
    """Each function at random arguments, against integers."""
    worst = 0.0
    low = -BITS
    floats = np.concatenate([random.standard_normal(24) * 3, random.standard_normal(8) * 2.0**-20])
    digits, _known = arithmetic.from_floats(engine.constant(floats, like))
    negative, _known = arithmetic.from_floats(engine.constant(-np.abs(floats) * 4, like))
    positive, _known = arithmetic.from_floats(engine.constant(np.abs(floats) + 0.5, like))
    sine, cosine = angles.sine_cosine(digits, low)
    tried = [
        ("exp", negative, functions.exp(negative, low), integers.exp, None),
        ("gelu", digits, functions.gelu(digits, low), _gelu, None),
        ("gelu_tanh", digits, functions.gelu_tanh(digits, low), _gelu_tanh, None),
        ("silu", digits, functions.silu(digits, low), _silu, None),
        ("reciprocal", positive, roots.reciprocal(positive, low), _inverse, roots.ERROR),
        ("root", positive, roots.root(positive, low), integers.root, roots.ERROR),
        ("sin", digits, sine, lambda x: integers.cos_sin(x)[1], angles.SINE_COSINE),
        ("cos", digits, cosine, lambda x: integers.cos_sin(x)[0], angles.SINE_COSINE),
    ]
    for name, x, found, function, bound in tried:
        allowed = functions.ERROR[name] if bound is None else bound
        for argument, result in zip(
            arithmetic.to_fractions(x).flat, arithmetic.to_fractions(found).flat, strict=True
        ):
            near = function(integers.rational(argument, BITS + 80))
            off = abs(result - Fraction(near.mid, 1 << near.bits)) * 2**BITS
            off += Fraction(near.error, 1 << (near.bits - BITS))
            worst = max(worst, float(off) / allowed)
            _require(off <= allowed, f"{name}({float(argument)})")
    return _("{share} of the bound at most").format(share=f"{worst:.2f}")


def _inverse(x: Near) -> Near:
    return integers.whole(1, x.bits) / x


def _gelu(x: Near) -> Near:
    bits = x.bits
    inner = integers.erf(x / integers.root(integers.whole(2, bits)))
    return (x * (inner + integers.whole(1, bits))).shifted(-1)


def _gelu_tanh(x: Near) -> Near:
    bits = x.bits
    cube = x * x * x * integers.rational(Fraction(44715, 1000000), bits)
    factor = integers.root(integers.whole(8, bits) / integers.pi(bits))
    return x / (integers.whole(1, bits) + integers.exp(-((x + cube) * factor)))


def _silu(x: Near) -> Near:
    return x / (integers.whole(1, x.bits) + integers.exp(-x))


def _overlap(device: str | None) -> str:
    """A small random pass at two precisions, whose enclosures must overlap."""
    coarse, fine = (_small_pass(Limbs(bits, device)) for bits in (70, 160))
    count = 0
    for rough, sharp in zip(coarse, fine, strict=True):
        _require(rough.overlaps(sharp), f"{rough} and {sharp}")
        _require(rough.rad > sharp.rad, "more bits prove no more")
        count += 1
    return _("{count} entries").format(count=count)


def _small_pass(system: Limbs) -> list[Any]:
    """Norm, attention over three positions, a gated MLP, logits; weights from a fixed seed."""
    random = np.random.default_rng(5)
    seen = [[j <= i for j in range(3)] for i in range(3)]

    def weight(*shape: int) -> Any:
        return system.admit(random.standard_normal(shape).astype(np.float32))

    x = system.embed(weight(5, 8), [1, 4, 2])
    mean = system.mean(x)
    centered = system.center(x, mean)
    std = system.root(system.mean_square(centered), eps=Fraction(1, 100000))
    y = system.affine(system.normalize(centered, std), gain=weight(8), bias=weight(8))
    q, k, v = (system.linear(y, weight(8, 8), layout="in_out", heads=2) for _i in range(3))
    q, k = (
        system.rotate(part, positions=(0, 1, 2), width=4, base=Fraction(10000), pairing="half")
        for part in (q, k)
    )
    scores = system.scores(q, k, mask=seen, queries=(0, 1, 2), keys=(0, 1, 2))
    mixed = system.mix(system.softmax(scores), v)
    x = system.add(x, system.linear(mixed, weight(8, 8), layout="out_in", bias=weight(8)))
    hidden = system.linear(x, weight(8, 12), layout="in_out")
    gated = system.multiply(system.activate(hidden, kind="gelu"), hidden)
    logits = system.entries(system.linear(gated, weight(12, 9), layout="in_out"))
    return [logits[i, j] for i in range(3) for j in range(9)]

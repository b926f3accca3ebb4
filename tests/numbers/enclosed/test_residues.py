"""Products by residues are exact, or off by no more than they say; wrong residues are found out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand.numbers.enclosed.limbs import moduli
from byhand.numbers.enclosed.limbs.arithmetic import WIDTH, Digits, to_fractions
from byhand.numbers.enclosed.limbs.moduli import DEEPEST, MODULI, SPARE, count_for, way_back

torch = pytest.importorskip("torch")

from byhand.numbers.enclosed.gpu import residues  # noqa: E402
from byhand.numbers.enclosed.limbs import weights  # noqa: E402

weights.torch_devices()
LIMB = 2**21


def matrix_of(floats: Any) -> residues.ResidueMatrix:
    """Weights (inputs, outputs) as residues."""
    weight = weights.Weight(torch.from_numpy(np.ascontiguousarray(floats)))
    return residues.ResidueMatrix(weight.floats.T, *weight._grid())


def exactly(x: Digits, w: Any, bias: Any = None) -> Any:
    left = to_fractions(x)
    made = left.dot(np.array([[Fraction(float(v)) for v in row] for row in w], dtype=object))
    return made if bias is None else made + np.array([Fraction(float(v)) for v in bias])


def error_of(x: Digits, w: Any, low: int, bias: Any = None, room: float = 1.0) -> tuple[Any, ...]:
    """The largest error of a product, in units of its bound and of its grid."""
    exact = exactly(x, w, bias)
    most = float(max(abs(v) for v in exactly(abs_of(x), np.abs(w)).flat)) * 1.001
    if bias is not None:
        most += float(np.abs(bias).max())
    known = None if bias is None else weights.Weight(torch.from_numpy(bias)).digits
    found = matrix_of(w).product(x, low, known, most * room)
    assert found is not None
    digits, bound = found
    off = max(abs(a - b) for a, b in zip(to_fractions(digits).flat, exact.flat, strict=True))
    limbs = digits.limbs
    assert float(limbs[1:].abs().max() if len(limbs) > 1 else 0.0) <= LIMB
    assert float(limbs[0].abs().max()) <= LIMB + 1
    return off, Fraction(bound), digits


def abs_of(x: Digits) -> Digits:
    whole = to_fractions(x)
    from byhand.numbers.enclosed.limbs.arithmetic import from_integers

    row = from_integers([int(abs(v) / Fraction(2) ** x.low) for v in whole.flat], x.low)
    return row.reshape(*whole.shape)


def digits(random: Any, n: int, *shape: int, top: int = 3) -> Digits:
    limbs = random.integers(-LIMB, LIMB + 1, (n, *shape)).astype(float)
    return Digits(torch.from_numpy(limbs), top)


def test_moduli_are_pairwise_coprime_bytes_with_room_for_330_bits() -> None:
    assert all(math.gcd(a, b) == 1 for a in MODULI for b in MODULI if a != b)
    assert max(MODULI) <= 255
    assert math.prod(MODULI).bit_length() > 330
    assert DEEPEST * 127**2 < 2**31


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("span", [0, 20])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_a_product_is_within_its_bound(n: int, span: int, kind: Any) -> None:
    random = np.random.default_rng((n, span, kind().itemsize))
    x = digits(random, n, 5, 37)
    w = random.standard_normal((37, 6)) * 2.0 ** -random.integers(0, span + 1, (37, 6)) / 8
    w = w.astype(kind)
    for low in (-400, x.low - 30, x.low, x.low + 17, -20):
        off, bound, made = error_of(x, w, low)
        assert off <= bound
        assert made.low >= low
    off, bound, _made = error_of(x, w, -400)
    assert off == bound == 0  # on its own grid it is exact


def test_with_a_bias_the_product_is_rounded_once() -> None:
    random = np.random.default_rng(3)
    x, w = digits(random, 4, 3, 20), random.standard_normal((20, 7)).astype(np.float32)
    bias = (random.standard_normal(7) * 1000).astype(np.float32)
    for low in (-30, -50, -400):
        off, bound, made = error_of(x, w, low, bias)
        assert off <= bound
        assert bound <= Fraction(0.51) * Fraction(2) ** made.low


@pytest.mark.parametrize("sign", [1, -1])
def test_extremes_of_every_range_come_back(sign: int) -> None:
    """All limbs and weights as large as they may be, so that every sum is at its bound."""
    for inputs in (1, 127, 128, 129, 600):
        x = Digits(torch.full((3, 2, inputs), float(LIMB * sign)).double(), 0)
        x.limbs[0] += sign
        w = np.full((inputs, 3), 2.0**30 - 64, dtype=np.float32)
        w[:, 1] *= -1
        w[0, 2] = 2.0**-9
        off, bound, _made = error_of(x, w, -400)
        assert off == bound == 0


def test_as_many_terms_as_are_allowed_add_up_without_overflow() -> None:
    x = torch.full((2, DEEPEST), 127, dtype=torch.int8)
    x[1] = -127
    sums = residues._integer_product(x, x)
    most = 127**2 * DEEPEST
    assert sums.tolist() == [[most, -most], [-most, most]]


def test_residues_are_the_balanced_ones_of_python_integers() -> None:
    random = np.random.default_rng(5)
    for n in (1, 4, 20, 40):
        x = digits(random, n, 3, 50, top=WIDTH * n)
        x.limbs[:, 0, :20] = LIMB
        x.limbs[:, 1, :20] = -LIMB
        out = residues.empty_residues(len(MODULI), 3, 50, x.limbs)
        residues.residues(x.limbs, 0, len(MODULI), out)
        whole = to_fractions(x)
        for i, modulus in enumerate(MODULI):
            found = out[i, :, :50].numpy().astype(int)
            assert all((int(v) - int(r)) % modulus == 0
                       for v, r in zip(whole.flat, found.flat, strict=True))  # fmt: skip
            assert np.abs(found).max() <= modulus // 2
        assert (out[..., 50:] == 0).all()


def test_integers_up_to_the_bound_come_back_and_beyond_it_they_are_found_out() -> None:
    random = np.random.default_rng(7)
    for count in (2, 7, 30, len(MODULI)):
        product = math.prod(MODULI[:count])
        most = int(product * Fraction(SPARE))
        limbs = most.bit_length() // WIDTH + 1
        own = [0, 1, -1, most, -most, *(int(random.random() * most) for _ in range(9))]
        back = way_back(count, limbs, 0)
        rows = [[residue_of(y, m, count) for y in own] for m in MODULI[:count]]
        found = torch.tensor(rows, dtype=torch.int8)[:, None]
        made, away = residues.limbs_of(found, back, limbs, None)
        assert [int(v) for v in to_fractions(Digits(made, WIDTH * limbs)).flat] == own
        assert float(away) <= moduli.CHECKED
        for place in range(count):
            wrong = found.clone()
            wrong[place] += torch.where(wrong[place] == 127, -1, 1).to(torch.int8)
            assert float(residues.limbs_of(wrong, back, limbs, None)[1]) > moduli.CHECKED


def residue_of(value: int, modulus: int, count: int) -> int:
    rest = math.prod(MODULI[:count]) // modulus
    return moduli.balanced(value * pow(rest, -1, modulus), modulus)


def test_too_wide_a_product_is_made_in_two_parts_or_left_to_slices() -> None:
    assert count_for(1 << 400) is None
    random = np.random.default_rng(0)
    x, w = digits(random, 16, 2, 9), random.standard_normal((9, 3)).astype(np.float32)
    for low in (-500, x.low, -100):
        off, bound, _made = error_of(x, w, low, random.standard_normal(3).astype(np.float32))
        assert off <= bound
        assert bound <= Fraction(1.6) * Fraction(2) ** max(low, x.low - 70)
    off, bound, _made = error_of(x, w, -500)
    assert off == bound == 0
    far = np.array([[1.0, 2.0**-280]] * 9)
    assert matrix_of(far).product(x, -300, None, 100.0) is None


def test_a_wrong_product_is_an_error(monkeypatch: Any) -> None:
    right, calls = residues._integer_product, []

    def wrong(x: Any, w: Any) -> Any:
        calls.append(len(calls))
        made = right(x, w)
        made[2, 3] += len(calls) == 4  # of one modulus
        return made

    monkeypatch.setattr(residues, "_integer_product", wrong)
    random = np.random.default_rng(2)
    x, w = digits(random, 3, 4, 30), random.standard_normal((30, 5)).astype(np.float32)
    with pytest.raises(residues.WrongResidues, match="residues do not agree"):
        matrix_of(w).product(x, -60, None, 2.0**20)

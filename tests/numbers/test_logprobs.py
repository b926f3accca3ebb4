"""logprobs in every number system: against Arb and torch, on nasty logits."""

from __future__ import annotations

from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from byhand.errors import ByhandError
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.allowed.operations import Allowed
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil

NASTY = {
    "equal logits": [[2.0, 2.0, 2.0, 2.0]],
    "one huge logit": [[500.0, 0.0, -3.0, 1.0]],
    "all very small": [[-3000.0, -3001.0, -2999.5, -3000.25]],
    "a vocabulary of one": [[7.25]],
    "ordinary": [[0.5, -1.25, 3.0, 0.125], [1.0, 1.0, -2.0, 0.0]],
}
TARGETS = {1: (0,), 4: (1,)}


def targets_of(rows: list[list[float]]) -> tuple[int, ...]:
    return TARGETS[len(rows[0])] * len(rows)


def truth(rows: list[list[float]], targets: tuple[int, ...]) -> list[arb]:
    with ctx.workprec(5_000):
        balls = [[arb(fmpq(*x.as_integer_ratio())) for x in row] for row in rows]
        return [
            row[t] - sum((x.exp() for x in row), arb(0)).log()
            for row, t in zip(balls, targets, strict=True)
        ]


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("system", [Balls(120), Limbs(120)], ids=["balls", "limbs"])
def test_enclosures_hold_the_true_value_and_are_narrow(name: str, system: Any) -> None:
    rows = NASTY[name]
    targets = targets_of(rows)
    value = system.logprobs(system.admit(np.array(rows)), targets)
    entries = system.entries(value)
    middles, radii = system.in_floats(value)
    for place, true in enumerate(truth(rows, targets)):
        enclosed = entries[place]
        assert enclosed.overlaps(Enclosure.of(true))
        assert enclosed.rad < Fraction(1, 10**30)
        assert abs(middles[place] - float(true)) <= radii[place] + 1e-15 * abs(float(true))


def test_what_is_exact_is_exact() -> None:
    numbers = Exact()
    x = numbers.admit(np.array([[Fraction(1), Fraction(1)], [Fraction(3), Fraction(0)]]))
    found = numbers.logprobs(x, (0, UNCOUNTED))
    assert str(found[0]) == "-ln(2)"
    assert found[1] is ABSENT
    alone = numbers.logprobs(numbers.admit(np.array([[Fraction(7)]])), (0,))
    assert alone[0].fraction == 0


def test_the_pencil_rounds_the_logarithm_alone() -> None:
    """The share rounds to 0 with two decimals; its logarithm, taken from the logits, does not."""
    pencil = Pencil(2)
    x = pencil.admit(np.array([[Fraction(9), Fraction(0)]]))
    assert pencil.logprobs(x, (1,)).tolist() == [Fraction(-9)]
    with pytest.raises(ByhandError, match="became 0"):
        pencil.losses(pencil.softmax(x), (1,))


@pytest.mark.parametrize("format", ["float64", "float32", "bfloat16", "float16"])
def test_floats_are_what_torch_gives(format: str) -> None:
    torch = pytest.importorskip("torch")
    from byhand.numbers.tensors import Tensors

    rows = np.random.default_rng(3).normal(0, 3, (6, 40)).astype(np.float32)
    targets = (0, 5, UNCOUNTED, 39, 7, 1)
    ours = Floats(format)
    found = ours.logprobs(ours.admit(rows), targets)
    assert np.ma.getmaskarray(found).tolist() == [False, False, True, False, False, False]
    kind = getattr(torch, format)
    work = torch.float64 if format == "float64" else torch.float32
    theirs = torch.tensor(rows).to(kind).to(work).log_softmax(dim=-1).to(kind).to(work).numpy()
    unit = {"float64": 2e-15, "float32": 2e-6, "bfloat16": 2e-2, "float16": 2e-3}[format]
    tensors = Tensors(format, "cpu")
    again = tensors.entries(tensors.logprobs(tensors.admit(rows), targets))
    for place, target in enumerate(targets):
        if target == UNCOUNTED:
            assert again[place] is np.ma.masked
        else:
            assert abs(float(found[place]) - theirs[place, target]) <= unit * 8
            assert abs(float(again[place]) - theirs[place, target]) <= unit * 8


def test_floats_know_logits_of_minus_infinity() -> None:
    numbers = Floats("float32")
    found = numbers.logprobs(np.array([[0, -np.inf, 0], [0, -np.inf, 0]], np.float32), (0, 1))
    assert found[0] == pytest.approx(-log(2))
    assert found[1] == -np.inf


@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
def test_every_common_implementation_is_allowed_and_a_wrong_one_is_not(format: str) -> None:
    torch = pytest.importorskip("torch")
    allowed = Allowed(format)
    draw = np.random.default_rng(5)
    kind = getattr(torch, format)
    for _text in range(20):
        logits = torch.tensor(draw.normal(0, 4, (5, 30)).astype(np.float32)).to(kind)
        targets = tuple(draw.integers(0, 30, 5).tolist())
        bounds = allowed.logprobs(allowed.admit(logits.double().numpy()), targets)
        wide = logits.float()
        ways = (
            logits.log_softmax(dim=-1),
            wide.log_softmax(dim=-1).to(kind),
            (wide - wide.logsumexp(dim=-1, keepdim=True)).to(kind),
            wide.softmax(dim=-1).log().to(kind),
        )
        for way in ways:
            picked = way.double().numpy()[np.arange(5), list(targets)]
            assert (np.abs(picked - bounds.mid) <= bounds.rad).all()
        shifted = ways[1].double().numpy()[np.arange(5), [(t + 1) % 30 for t in targets]]
        assert (np.abs(shifted - bounds.mid) > bounds.rad).any()
    assert float(np.median(bounds.rad / np.abs(bounds.mid))) < 40 * 2.0 ** -{
        "float32": 24, "bfloat16": 8, "float16": 11
    }[format]  # fmt: skip


def test_a_range_of_logits_allows_what_its_corners_give() -> None:
    allowed, draw = Allowed("float32"), np.random.default_rng(8)
    x = allowed.admit(draw.normal(0, 2, (4, 9)))
    off = draw.uniform(0, 0.3, (4, 9))
    moved = type(x)(x.mid, off, None)
    targets = (0, 3, 8, 5)
    bounds = allowed.logprobs(moved, targets)
    for _try in range(200):
        y = x.mid + off * draw.choice((-1, 0, 1), (4, 9))
        true = y[np.arange(4), list(targets)] - np.log(np.exp(y).sum(axis=1))
        assert (np.abs(true - bounds.mid) <= bounds.rad).all()

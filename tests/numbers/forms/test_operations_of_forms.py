"""Each operation on forms holds the operation on every choice of numbers in them."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from byhand.expression import parse
from byhand.numbers.base import ABSENT
from byhand.numbers.forms import Forms, PreciseForms
from oracles.sampled_forms import Call, missed, random_form

LOWER = ((True, False, False), (True, True, False), (True, True, True))
MATRIX = np.array(
    [[Fraction(1, 3), Fraction(-2), Fraction(0)], [Fraction(7), Fraction(1, 7), Fraction(1)],
     [Fraction(-1), Fraction(5, 2), Fraction(3)]], dtype=object
)  # fmt: skip
TABLE = np.array([[[Fraction(0), Fraction(1), Fraction(2)], [Fraction(1), Fraction(0), ABSENT],
                   [Fraction(-1), ABSENT, Fraction(1, 3)]]], dtype=object)  # fmt: skip


def linear(numbers: Any, x: Any) -> Any:
    return numbers.linear(x, numbers.admit(MATRIX), layout="out_in", bias=numbers.admit(MATRIX[0]))


def shares(numbers: Any, q: Any, k: Any) -> Any:
    settings = {"mask": LOWER, "queries": (0, 1, 2), "keys": (0, 1, 2)}
    return numbers.softmax(numbers.scores(q, k, table=numbers.admit(TABLE), **settings))


def unmasked(numbers: Any, q: Any, k: Any) -> Any:
    whole = ((True,) * 3,) * 3
    return numbers.softmax(numbers.scores(q, k, mask=whole, queries=(0, 1, 2), keys=(0, 1, 2)))


def mixed(numbers: Any, q: Any, k: Any, v: Any) -> Any:
    return numbers.mix(shares(numbers, q, k), v)


def normalized(eps: Fraction) -> Call:
    def call(numbers: Any, x: Any) -> Any:
        centered = numbers.center(x, numbers.mean(x))
        return numbers.normalize(centered, numbers.root(numbers.mean_square(centered), eps=eps))

    return call


def turned(numbers: Any, x: Any) -> Any:
    base = Fraction(100)
    return numbers.rotate(x, positions=(0, 3, 7), width=2, base=base, pairing="half")


def with_sinks(numbers: Any, q: Any, k: Any, v: Any) -> Any:
    settings = {"mask": LOWER, "queries": (0, 1, 2), "keys": (0, 1, 2), "cap": Fraction(3, 7)}
    sinks = numbers.admit(np.array([Fraction(1, 3)], dtype=object))
    return numbers.mix(numbers.softmax(numbers.scores(q, k, **settings), sinks=sinks), v)


def biased(numbers: Any, q: Any, k: Any, bias: Any) -> Any:
    settings = {"mask": LOWER, "queries": (0, 1, 2), "keys": (0, 1, 2)}
    return numbers.softmax(numbers.scores(q, k, bias=bias, **settings))


def magnified(numbers: Any, x: Any) -> Any:
    values = [parse("1/3^(1/3)")]
    settings = {"width": 2, "base": Fraction(100), "pairing": "half", "magnitude": parse("ln(3)")}
    frequencies = numbers.constants(values=values)
    return numbers.rotate(x, frequencies=frequencies, positions=(0, 3, 7), **settings)


def limited(least: Fraction | None, most: Fraction | None) -> Call:
    return lambda numbers, x: numbers.clamp(x, least=least, most=most)


def routed(*, normalised: bool, alone: bool, **groups: Any) -> Call:
    """The choice among the three entries of a row, or four, its shares, and what they answer."""

    def call(numbers: Any, scores: Any, answers: Any) -> Any:
        if alone:
            scores = numbers.activate(scores, kind="sigmoid")
        chosen = numbers.choose(scores, count=1, **groups)
        settings = {"scale": Fraction(5, 2)} | ({"eps": Fraction(1, 10**6)} if alone else {})
        shares = numbers.expert_shares(
            scores, chosen, normalised=normalised, alone=alone, **settings
        )
        return numbers.combine(answers, shares)

    return call


def of_experts(numbers: Any, x: Any) -> Any:
    both = np.stack((MATRIX, -MATRIX))
    bias = numbers.admit(MATRIX[:2])
    return numbers.expert_linear(x, numbers.admit(both), bias=bias, layout="in_out")


STREAM, HEAD = (3, 3), (1, 3, 3)
FOUR, ANSWERS = (2, 4), (4, 2, 2)
CALLS: dict[str, tuple[Call, tuple[tuple[int, ...], ...]]] = {
    "add": (lambda numbers, x, y: numbers.add(x, y), (STREAM, STREAM)),
    "multiply": (lambda numbers, x, y: numbers.multiply(x, y), (STREAM, STREAM)),
    "mean": (lambda numbers, x: numbers.mean(x), (STREAM,)),
    "mean_square": (lambda numbers, x: numbers.mean_square(x), (STREAM,)),
    "root": (lambda n, x: n.root(n.mean_square(x), eps=Fraction(1, 10**5)), (STREAM,)),
    "root of anything": (lambda n, x: n.root(n.mean_square(x), eps=Fraction(0)), (STREAM,)),
    "normalize": (normalized(Fraction(1, 10**5)), (STREAM,)),
    "normalize by anything": (normalized(Fraction(0)), (STREAM,)),
    "linear": (linear, (STREAM,)),
    "rotate": (turned, (HEAD,)),
    "softmax": (lambda numbers, x: numbers.softmax(x), (HEAD,)),
    "softmax of scores": (shares, (HEAD, HEAD)),
    "softmax of all": (unmasked, (HEAD, HEAD)),
    "loss": (lambda n, x: n.loss(n.softmax(x), target=1), (STREAM,)),
    "mix": (mixed, (HEAD, HEAD, HEAD)),
    "relu": (lambda numbers, x: numbers.activate(x, kind="relu"), (STREAM,)),
    "gelu": (lambda numbers, x: numbers.activate(x, kind="gelu"), (STREAM,)),
    "gelu_tanh": (lambda numbers, x: numbers.activate(x, kind="gelu_tanh"), (STREAM,)),
    "silu": (lambda numbers, x: numbers.activate(x, kind="silu"), (STREAM,)),
}
NEWER: dict[str, tuple[Call, tuple[tuple[int, ...], ...]]] = {
    **{kind: (lambda n, x, kind=kind: n.activate(x, kind=kind), (STREAM,))
       for kind in ("relu2", "quick_gelu", "gelu_fast", "gelu_bloom", "sigmoid", "tanh")},
    "rescale": (lambda n, x: n.rescale(x, by=parse("1/sqrt(7)"), plus=Fraction(1, 3)), (STREAM,)),
    "soft_cap": (lambda n, x: n.soft_cap(x, cap=Fraction(5, 3)), (STREAM,)),
    "clamp": (limited(Fraction(-1, 3), Fraction(1, 2)), (STREAM,)),
    "clamp above": (limited(None, Fraction(7)), (STREAM,)),
    "weigh": (lambda n, x, by: n.weigh(x, by), (STREAM, (3, 1))),
    "beside": (lambda n, x, y: n.beside(x, y), ((2, 3, 2), (1, 3, 1))),
    "affine": (lambda n, x, gain: n.affine(x, gain=gain, plus_one=True), ((2, 3, 3), (2, 1, 3))),
    "bucket_scores": (
        lambda n, table: n.bucket_scores(table, buckets=((0, 1), (2, 0))), ((3, 2),)
    ),
    "mix with a sink and a cap": (with_sinks, (HEAD, HEAD, HEAD)),
    "softmax of biased scores": (biased, (HEAD, HEAD, HEAD)),
    "rotate and magnify": (magnified, (HEAD,)),
    "expert_linear": (of_experts, (STREAM,)),
    "experts": (routed(normalised=True, alone=False), (FOUR, ANSWERS)),
    "experts of all": (routed(normalised=False, alone=False), (FOUR, ANSWERS)),
    "experts alone": (routed(normalised=True, alone=True), (FOUR, ANSWERS)),
    "experts in groups": (
        routed(normalised=False, alone=True, groups=2, groups_chosen=1, group_rule="max"),
        (FOUR, ANSWERS),
    ),
    "experts in groups by two": (
        routed(normalised=True, alone=False, groups=2, groups_chosen=1, group_rule="top2"),
        (FOUR, ANSWERS),
    ),
}  # fmt: skip
SIZES = [  # of middles, of coefficients
    (1.0, 0.0), (1.0, 1e-9), (1.0, 0.05), (1.0, 0.5), (2.0, 0.2), (3.0, 3.0), (0.0, 1.0),
    (100.0, 0.0), (10.0, 20.0), (1.0, 0.3), (1e-8, 1e-12), (1e8, 1.0), (3.0, 1.0),
]  # fmt: skip
NASTY = [
    (1e300, 0.0), (1e300, 1e290), (1e-300, 1e-310), (5e-324, 5e-324), (1e-160, 1e-165),
    (1e155, 1e140), (0.0, 0.0), (1e-200, 1e200), (40.0, 1e-13), (700.0, 1.0), (1e18, 1e17),
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_choice_of_numbers_lies_in_the_form(name: str) -> None:
    check(name, Forms(), SIZES, 4)


@pytest.mark.parametrize("name", CALLS)
def test_numbers_of_extreme_sizes_lie_in_the_form(name: str) -> None:
    check(name, Forms(), NASTY, 2)


@pytest.mark.parametrize("name", CALLS)
def test_a_choice_of_numbers_lies_in_the_form_in_arb(name: str) -> None:
    check(name, PreciseForms(), SIZES[1::2] + NASTY[:-1:3], 2)


@pytest.mark.parametrize("name", NEWER)
def test_newer_operations_hold_every_choice_of_numbers(name: str) -> None:
    check(name, Forms(), SIZES[1:8:2] + NASTY[::5], 2)
    check(name, PreciseForms(), SIZES[3:6:2] + NASTY[3:4], 1)


def check(name: str, numbers: Forms, sizes: list[tuple[float, float]], count: int) -> None:
    call, shapes = (CALLS | NEWER)[name]
    for number, (size, wide) in enumerate(sizes):
        random = Random(f"{name} {number}")
        letters = number % 3
        forms = [
            random_form(numbers, random, shape, letters=letters, size=size, wide=wide)
            for shape in shapes
        ]
        assert not list(missed(numbers, call, forms, random, count)), (name, size, wide)

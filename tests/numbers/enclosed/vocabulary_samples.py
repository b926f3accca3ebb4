"""Random calls of the newer operations on enclosures with real numbers inside, and their truth.

Each sample makes the inputs of one operation (`real_values.Pair`), works it out in limbs and, from
the real numbers, in `oracles.vocabulary.Truth`.  A benchmark takes 100,000 of them, a test a few.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from real_values import ORACLE, Pair, contained

from byhand.expression import parse
from byhand.numbers.enclosed.limbs.operations import Limbs
from oracles.vocabulary import KINDS, Truth

TRUTH = Truth(ORACLE.bits)
RADII = (None, 2.0**-90, 2.0**-30, 2.0**-8, 1.0)
SIZES = (2.0**-20, 1.0, 30.0, 3000.0)
LIMITS = tuple(map(Fraction, ("1/3", "7", "50", "1/1000")))
FACTORS = tuple(map(parse, ("1/sqrt(7)", "-2/3", "4", "sqrt(2)/2", "0.22")))
SQUARE = [[j <= i for j in range(4)] for i in range(4)]


class Sampler:
    """Draws the inputs of one call, for limbs and for the truth."""

    def __init__(self, system: Limbs, random: Any) -> None:
        self.system, self.random = system, random

    def one_of(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def pair(self, *shape: int, size: float | None = None, radius: Any = ()) -> Pair:
        width = self.one_of(RADII) if radius == () else radius
        scale = self.one_of(SIZES) if size is None else size
        return Pair(self.random, shape, width, scale, self.system)

    def weight(self, *shape: int, size: float = 1.0) -> tuple[Any, Any]:
        floats = (self.random.standard_normal(shape) * size).astype(np.float32)
        return self.system.admit(floats), TRUTH.admit(floats)

    def both(
        self, operation: str, ours: dict[str, Any], real: dict[str, Any], **more: Any
    ) -> float:
        """Works it out on both sides; the largest part of a radius that was used."""
        made = getattr(self.system, operation)(**ours, **more)
        return contained(self.system, made, getattr(TRUTH, operation)(**real, **more), finite=False)

    def of(self, operation: str, *pairs: tuple[str, Pair], **more: Any) -> float:
        ours = {name: pair.enclosed for name, pair in pairs}
        return self.both(operation, ours, {name: pair.known for name, pair in pairs}, **more)


def rescale(s: Sampler) -> float:
    by, plus = s.one_of((*FACTORS, None)), s.one_of((*LIMITS, None))
    return s.of("rescale", ("x", s.pair(3, 5)), by=by, plus=plus)


def soft_cap(s: Sampler) -> float:
    return s.of("soft_cap", ("x", s.pair(3, 5)), cap=s.one_of(LIMITS))


def clamp(s: Sampler) -> float:
    limit = s.one_of(LIMITS)
    least = s.one_of((-limit, None, limit / 2))
    return s.of("clamp", ("x", s.pair(3, 5)), least=least, most=limit)


def weigh(s: Sampler) -> float:
    return s.of("weigh", ("x", s.pair(3, 5)), ("by", s.pair(3, 1)))


def beside(s: Sampler) -> float:
    return s.of("beside", ("x", s.pair(2, 3, 4)), ("y", s.pair(s.one_of((1, 2)), 3, 2)))


def affine(s: Sampler) -> float:
    heads = s.one_of((None, 2))
    gain, real = s.weight(5) if heads is None else s.weight(2, 1, 5)
    x = s.pair(3, 5) if heads is None else s.pair(2, 3, 5)
    bias, real_bias = s.weight(5) if s.one_of((True, False)) else (None, None)
    ours = {"x": x.enclosed, "gain": gain, "bias": bias}
    truth = {"x": x.known, "gain": real, "bias": real_bias}
    return s.both("affine", ours, truth, plus_one=s.one_of((True, False)))


def activate(s: Sampler) -> float:
    return s.of("activate", ("x", s.pair(3, 5)), kind=s.one_of(tuple(KINDS)))


def rotate(s: Sampler) -> float:
    width = s.one_of((4, 6))
    more = {
        "positions": (0, 5, 90_000), "width": width, "base": Fraction(10_000),
        "pairing": s.one_of(("half", "interleaved")), "magnitude": s.one_of((*FACTORS, None)),
    }  # fmt: skip
    values = [parse(f"1/{i + 3}^(1/3)") for i in range(width // 2)]
    x, ours, real = s.pair(2, 3, 6), None, None
    if s.one_of((True, False)):
        ours, real = (numbers.constants(values=values) for numbers in (s.system, TRUTH))
        if s.one_of((True, False)):
            ours = s.system.take_columns(ours, range(width // 2))  # the trees are lost
    return s.both(
        "rotate",
        {"x": x.enclosed, "frequencies": ours},
        {"x": x.known, "frequencies": real},
        **more,
    )


def sinusoid(s: Sampler) -> float:
    pairing = s.one_of(("half", "interleaved"))
    return s.of("sinusoid", positions=(0, 3, 77), width=6, base=Fraction(10), pairing=pairing)


def bucket_scores(s: Sampler) -> float:
    table, real = s.weight(5, 2)
    buckets = s.random.integers(0, 5, (3, 4)).tolist()
    return s.both("bucket_scores", {"table": table}, {"table": real}, buckets=buckets)


def attention(s: Sampler) -> float:
    """Scores with a cap and a bias, shares with a sink, and values as wide as others."""
    radius, size = s.one_of(RADII), s.one_of((0.5, 3.0))
    q, k = (s.pair(2, 4, 3, size=size, radius=radius) for _side in "qk")
    v = s.pair(2, 4, 5, size=1.0)
    bias = s.pair(2, 4, 4) if s.one_of((True, False)) else None
    sinks, real_sinks = s.weight(2, size=3.0) if s.one_of((True, False)) else (None, None)
    more = {
        "mask": SQUARE, "queries": range(4), "keys": range(4),
        "scale": s.one_of((*FACTORS, None)), "cap": s.one_of((*LIMITS, None)),
    }  # fmt: skip
    scores = s.system.scores(
        q.enclosed, k.enclosed, bias=None if bias is None else bias.enclosed, **more
    )
    real = TRUTH.scores(q.known, k.known, bias=None if bias is None else bias.known, **more)
    used = contained(s.system, scores, real, finite=False)
    weights, shares = s.system.softmax(scores, sinks=sinks), TRUTH.softmax(real, sinks=real_sinks)
    used = max(used, contained(s.system, weights, shares, finite=False))
    mixed = s.system.mix(weights, v.enclosed)
    return max(used, contained(s.system, mixed, TRUTH.mix(shares, v.known), finite=False))


def experts(s: Sampler) -> float:
    """A choice, its shares and the answers, one after another."""
    groups = s.one_of((None, 3))
    more: dict[str, Any] = {"count": s.one_of((1, 2))}
    if groups is not None:
        more |= {"groups": groups, "groups_chosen": 2, "group_rule": s.one_of(("max", "top2"))}
    alone, normalised = (s.one_of((True, False)) for _question in range(2))
    scores = s.pair(3, 6, size=1.0)
    ours, real = scores.enclosed, scores.known.at(TRUTH.bits)
    if alone:
        ours, real = (
            numbers.activate(value, kind="sigmoid")
            for numbers, value in ((s.system, ours), (TRUTH, real))
        )
    chosen, truth = s.system.choose(ours, **more), TRUTH.choose(real, **more)
    used = contained(s.system, chosen, truth)
    settings = {
        "normalised": normalised, "alone": alone, "scale": s.one_of((None, Fraction(5, 2))),
        "eps": s.one_of((None, Fraction(1, 10**20))) if alone else None,
    }  # fmt: skip
    shares = s.system.expert_shares(ours, chosen, **settings)
    real_shares = TRUTH.expert_shares(real, truth, **settings)
    used = max(used, contained(s.system, shares, real_shares, finite=False))
    x, (weight, real_weight), (bias, real_bias) = s.pair(3, 4), s.weight(6, 4, 2), s.weight(6, 2)
    answers = s.system.expert_linear(x.enclosed, weight, bias=bias, layout="in_out")
    real_answers = TRUTH.expert_linear(x.known, real_weight, bias=real_bias, layout="in_out")
    used = max(used, contained(s.system, answers, real_answers))
    made = s.system.combine(answers, shares)
    return max(
        used, contained(s.system, made, TRUTH.combine(real_answers, real_shares), finite=False)
    )


SAMPLES: dict[str, Callable[[Sampler], float]] = {
    sample.__name__: sample
    for sample in (
        rescale, soft_cap, clamp, weigh, beside, affine, activate, rotate, sinusoid, bucket_scores,
        attention, experts,
    )
}  # fmt: skip

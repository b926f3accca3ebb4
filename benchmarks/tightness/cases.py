"""Inputs, ordinary and nasty, for each operation: the bounds, and how a port computes it.

The inputs of a case are numbers of its format, so that ports and byhand start from equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.tightness.ports import HALVES, nearest
from byhand.expression import Call, Number, Quotient
from byhand.numbers.allowed import Allowed, Range

Data = Any
EPS, BASE = Fraction(1, 100_000), Fraction(10_000)
PLACES = [0, 1, 7, 100, 1000, 4000]
HIDDEN = ~np.tril(np.ones((len(PLACES), len(PLACES)), dtype=bool))
SEEN = tuple(map(tuple, ~HIDDEN))
LARGEST = {"float16": 2.0**6}  # sizes of nasty inputs are kept below the range of a format


@dataclass(frozen=True)
class Case:
    """One operation on given numbers."""

    operation: str
    inputs: str
    allowed: Callable[[Allowed], Range]
    given: Callable[[Any], Data]  # by a port


def cases(format: str, seed: int = 0, *, long: bool = True) -> Iterator[Case]:
    """Every operation on ordinary and nasty inputs of a format; `long` rows take their time."""
    make = Inputs(format, seed, long)
    yield from _sums(make)
    yield from _products(make)
    yield from _norms(make)
    yield from _attention(make)
    yield from _activations(make)


class Inputs:
    """Random numbers of a format."""

    def __init__(self, format: str, seed: int, long: bool) -> None:
        self.format, self.long = format, long
        self.rng = np.random.default_rng(seed)
        self.large = LARGEST.get(format, 1000.0)

    def numbers(self, *shape: int, size: float = 1.0) -> Data:
        return nearest(self.rng.standard_normal(shape) * size, self.format)

    def rows(self, *shape: int) -> Iterator[tuple[str, Data]]:
        """Rows as a stream has them: ordinary, with outliers, far from 0, nearly constant, tiny."""
        plain = self.rng.standard_normal(shape)
        yield "ordinary", nearest(plain, self.format)
        outliers = plain.copy()
        outliers[..., 0] *= self.large
        yield "outliers", nearest(outliers, self.format)
        yield "large mean", nearest(plain + 100.0, self.format)
        close = 1 + plain * 2.0 ** (HALVES[self.format] + 4)
        yield "nearly constant", nearest(close, self.format)
        yield "positive", nearest(np.abs(plain), self.format)
        yield "tiny", nearest(plain * (1e-6 if self.format == "float16" else 1e-37), self.format)


def _sums(make: Inputs) -> Iterator[Case]:
    for name, x in make.rows(8, 64):
        y = make.numbers(8, 64)
        near = nearest(-x * (1 + make.rng.standard_normal(x.shape) * 0.01), make.format)
        for label, other in ((name, y), (name + ", cancelling", near)):
            yield Case("add", label, lambda a, x=x, y=other: a.add(Range(x), Range(y)),
                       lambda p, x=x, y=other: p.add(x, y))  # fmt: skip
        yield Case("multiply", name, lambda a, x=x, y=y: a.multiply(Range(x), Range(y)),
                   lambda p, x=x, y=y: p.multiply(x, y))  # fmt: skip


def _products(make: Inputs) -> Iterator[Case]:
    for inputs in (1, 3, 48, 512)[: 3 + make.long]:
        for name, x in make.rows(4, inputs):
            weight = make.numbers(inputs, 8, size=inputs**-0.5)
            if name == "positive":
                weight = np.abs(weight)
            for bias in (None, make.numbers(8)):

                def allowed(
                    a: Allowed, x: Data = x, weight: Data = weight, b: Data = bias
                ) -> Range:
                    return a.linear(Range(x), Range(weight), layout="in_out",
                                    bias=None if b is None else Range(b))  # fmt: skip

                label = f"{inputs} {name}" + ", bias" * (bias is not None)
                yield Case("linear", label, allowed,
                           lambda p, x=x, w=weight, b=bias: p.linear(x, w, b))  # fmt: skip


def _norms(make: Inputs) -> Iterator[Case]:
    for width in (1, 2, 64, 384)[: 3 + make.long]:
        gain, bias = nearest(1 + make.numbers(width) * 0.1, make.format), make.numbers(width)
        for name, x in make.rows(6, width):
            label = f"{width} {name}"
            centred = make.numbers(6, width)
            square = nearest(np.abs(make.numbers(6)), make.format)
            by = nearest(np.sqrt(square + 0.01), make.format)
            yield Case("mean", label, lambda a, x=x: a.mean(Range(x)), lambda p, x=x: p.mean(x))
            yield Case("center", label, lambda a, x=x, m=square: a.center(Range(x), Range(m)),
                       lambda p, x=x, m=square: p.center(x, m))  # fmt: skip
            yield Case("mean_square", label, lambda a, x=x: a.mean_square(Range(x)),
                       lambda p, x=x: p.mean_square(x))  # fmt: skip
            yield Case("root", label, lambda a, x=square: a.root(Range(x), eps=EPS),
                       lambda p, x=square: p.root(x, float(EPS)))  # fmt: skip
            yield Case("normalize", label,
                       lambda a, x=centred, by=by: a.normalize(Range(x), Range(by)),
                       lambda p, x=centred, by=by: p.normalize(x, by))  # fmt: skip
            yield Case("affine", label, lambda a, x=x, g=gain, b=bias: a.affine(
                           Range(x), gain=Range(g), bias=Range(b)),
                       lambda p, x=x, g=gain, b=bias: p.affine(x, g, b))  # fmt: skip
            yield Case("layernorm, whole", label, lambda a, x=x, g=gain, b=bias: layernorm(
                           a, Range(x), Range(g), Range(b)),
                       lambda p, x=x, g=gain, b=bias: p.layernorm(x, float(EPS), g, b))  # fmt: skip
            yield Case("RMSNorm, whole", label,
                       lambda a, x=x, g=gain: rmsnorm(a, Range(x), Range(g)),
                       lambda p, x=x, g=gain: p.rmsnorm(x, float(EPS), g))  # fmt: skip


def layernorm(a: Allowed, x: Range, gain: Range, bias: Range) -> Range:
    """All of a layernorm whose parts nobody claims."""
    centred = a.center(x, a.mean(x))
    by = a.root(a.mean_square(centred), eps=EPS)
    return a.affine(a.normalize(centred, by), gain=gain, bias=bias)


def rmsnorm(a: Allowed, x: Range, gain: Range) -> Range:
    """All of an RMSNorm whose parts nobody claims."""
    return a.affine(a.normalize(x, a.root(a.mean_square(x), eps=EPS)), gain=gain)


def _attention(make: Inputs) -> Iterator[Case]:
    for width in (2, 16, 64):
        scale = Quotient(Number(Fraction(1)), Call("sqrt", Number(Fraction(width))))
        for name, q in make.rows(2, len(PLACES), width):
            k, v = make.numbers(*q.shape), make.numbers(*q.shape)
            label = f"{width} {name}"
            yield Case("rotate", label, lambda a, q=q, w=width: a.rotate(
                           Range(q), positions=PLACES, width=w, base=BASE, pairing="half"),
                       lambda p, q=q: p.rotate(q, PLACES, float(BASE)))  # fmt: skip

            def scores(a: Allowed, q: Data = q, k: Data = k, s: Any = scale) -> Range:
                return a.scores(Range(q), Range(k), scale=s, mask=SEEN, queries=PLACES,
                                keys=PLACES)  # fmt: skip

            def mixed(a: Allowed, v: Data = v, scores: Any = scores) -> Range:
                return a.mix(a.softmax(scores(a)), Range(v))

            yield Case("scores", label, scores,
                       lambda p, q=q, k=k, w=width: p.scores(q, k, w**-0.5))  # fmt: skip
            yield Case("attention, whole", label, mixed,
                       lambda p, q=q, k=k, v=v, w=width: p.attention(
                           q, k, v, w**-0.5, HIDDEN))  # fmt: skip
    for n in (1, 5, 40, 500)[: 3 + make.long]:
        for size in (1.0, 10.0, 300.0):
            x = make.numbers(2, 3, n, size=size)
            absent = make.rng.random(x.shape) < 0.3
            absent[..., 0] = False
            label = f"{n} of size {size:g}"
            masked = np.where(absent, -np.inf, x)
            yield Case("softmax", label, lambda a, x=x, m=absent: a.softmax(Range(x, absent=m)),
                       lambda p, x=masked: p.softmax(x))  # fmt: skip
            shares = np.where(absent, 0.0, np.exp(masked - masked.max(axis=-1, keepdims=True)))
            shares = nearest(shares / shares.sum(axis=-1, keepdims=True), make.format)
            v = make.numbers(2, n, 8)
            yield Case("mix", label, lambda a, w=shares, v=v, m=absent: a.mix(
                           Range(w, absent=m), Range(v)),
                       lambda p, w=shares, v=v: p.mix(w, v))  # fmt: skip
            logits = x[0]
            sure = np.exp(logits - logits.max(axis=-1, keepdims=True))
            sure = nearest(sure / sure.sum(axis=-1, keepdims=True), make.format)
            least = int(logits[-1].argmin())
            yield Case("loss", label + ", from logits",
                       lambda a, p=sure, t=least: a.loss(Range(p), target=t),
                       lambda p, x=logits, t=least: p.loss_of_logits(x, t))  # fmt: skip
            probs = shares[0]
            yield Case("loss", label, lambda a, p=probs: a.loss(Range(p), target=0),
                       lambda p, x=probs: p.loss(x, 0))  # fmt: skip


def _activations(make: Inputs) -> Iterator[Case]:
    for kind in ("relu", "gelu", "gelu_tanh", "silu", "quick_gelu"):
        for size in (1e-3, 1.0, 4.0, 30.0):
            x = make.numbers(16, 64, size=size)
            yield Case(kind, f"of size {size:g}", lambda a, x=x, k=kind: a.activate(
                           Range(x), kind=k),
                       lambda p, x=x, k=kind: p.activate(x, k))  # fmt: skip

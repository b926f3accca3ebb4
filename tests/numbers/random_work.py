"""Random work on exact values beside the same work on Arb balls, for tests that compare the two.

A pool of values grows by random operations on its own members, so that things cancel, come back
and meet themselves.  Beside each value its ball is computed directly, at 700 bits.
"""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
from flint import arb, ctx, fmpq

from byhand.errors import InputError, Undecided
from byhand.numbers.exact import Exact, Limits, Value

BITS = 700
SMALL = [
    Limits(terms=terms, work=work, degree=degree, proof=proof, bits=512)
    for terms, work, degree, proof in [
        (2, 20, 2, 200),
        (4, 200, 3, 20_000),
        (8, 200, 8, 200),
        (24, 2000, 2, 20_000),
        (24, 2000, 64, 20_000),
        (2, 2000, 64, 20_000),
    ]
]
TURNS = (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 20, 21, 24, 28, 30)


class Disagreement(AssertionError):
    """An exact value or decision that contradicts the balls."""


class RandomWork:
    """One pool.  `counts` says what happened."""

    def __init__(self, seed: int, limits: Limits) -> None:
        self.choose = random.Random(seed)
        self.numbers = Exact(limits)
        self.space = self.numbers.space
        self.pool: list[tuple[Value, arb]] = []
        self.counts: Counter[str] = Counter()
        ctx.prec = BITS
        for _start in range(3):
            q = self.rational()
            self.pool.append((self.space.value(q), ball(q)))
        if self.choose.random() < 0.4:
            self.pool.append((self.space.pi(), arb.pi()))

    def rational(self) -> Fraction:
        return Fraction(self.choose.randint(-6, 6), self.choose.choice([1, 1, 1, 2, 3, 4, 5, 6, 7]))

    def steps(self, count: int) -> None:
        """So many operations, each result compared with its ball and with an older value."""
        for _step in range(count):
            for value, expected in self.operate():
                self.compare_ball(value, expected)
                if self.usable(expected):
                    self.pool.append((value, expected))
                    self.compare_order(value, expected)

    def usable(self, expected: arb) -> bool:
        size = abs(expected)
        tame = size < arb(2) ** 60 and (expected == 0 or size > arb(2) ** -60)
        return bool(tame and expected.rad() < arb(2) ** -300)

    def operate(self) -> list[tuple[Value, arb]]:
        operation = self.choose.choice(OPERATIONS)
        ctx.prec = BITS
        x, y = self.choose.choice(self.pool[-6:]), self.choose.choice(self.pool)
        try:
            results = operation(self, x, y)
        except Undecided:
            self.counts["undecided"] += 1
            return []
        except InputError:  # a root or logarithm that does not exist
            return []
        except ZeroDivisionError:
            if not x[1].contains(0) and not y[1].contains(0):
                raise Disagreement("a division by zero, of non-zeros") from None
            return []
        finally:
            ctx.prec = BITS
        return [(value, make()) for value, make in results]

    def compare_ball(self, value: Value, expected: arb) -> None:
        if not expected.is_finite():
            return
        self.counts[value.register] += 1
        own = value.ball(300)
        if not own.overlaps(expected):
            raise Disagreement(f"{value}: {own.str(20)} but {expected.str(20)}")

    def compare_order(self, value: Value, expected: arb) -> None:
        other, other_ball = self.choose.choice(self.pool)
        try:
            order = self.space.compare(value, other)
        except Undecided:
            self.counts["undecided"] += 1
            return
        ctx.prec = BITS
        difference = expected - other_ball
        if order and difference.contains(0) and difference.rad() < arb(2) ** -(BITS // 2):
            self.counts["finer than the balls"] += 1  # 1 and erf(34), say: decided at more bits
            return
        self.counts["equal" if order == 0 else "ordered"] += 1
        right = difference.contains(0) if order == 0 else difference * order > 0
        if not right:
            raise Disagreement(f"{value} against {other}: {order}, but {difference.str(20)}")


def ball(q: Fraction) -> arb:
    return arb(fmpq(q.numerator, q.denominator))


# Each operation gives (value, a function that computes its ball) pairs.


def plus(w, x, y):
    return [(x[0] + y[0], lambda: x[1] + y[1])]


def minus(w, x, y):
    return [(x[0] - y[0], lambda: x[1] - y[1])]


def times(w, x, y):
    return [(x[0] * y[0], lambda: x[1] * y[1])]


def over(w, x, y):
    return [(x[0] / y[0], lambda: x[1] / y[1])]


def power(w, x, y):
    e = w.choose.randint(-3, 5)
    return [(x[0] ** e, lambda: x[1] ** e)]


def multiple(w, x, y):
    q = w.rational()
    return [(x[0] * q, lambda: x[1] * ball(q))]


def exp(w, x, y):
    return [(w.space.exp(x[0]), lambda: x[1].exp())] if abs(x[1]) < 40 else []


def ln(w, x, y):
    return [(w.space.ln(x[0]), lambda: x[1].log())]


def sqrt(w, x, y):
    return [(w.space.sqrt(x[0]), lambda: x[1].sqrt())]


def length(w, x, y):
    return [(w.space.sqrt(x[0] * x[0] + y[0] * y[0]), lambda: (x[1] ** 2 + y[1] ** 2).sqrt())]


def size(w, x, y):
    return [(w.space.sqrt(x[0] * x[0]), lambda: abs(x[1]))]


def integer_root(w, x, y):
    n = w.choose.randint(2, 12)
    return [(w.space.sqrt(w.space.value(n)), lambda: arb(n).sqrt())]


def integer_power(w, x, y):
    n, q = w.choose.choice([2, 3, 5, 6, 10]), w.rational()
    return [(w.space.exp(w.space.ln(w.space.value(n)) * q), lambda: arb(n) ** ball(q))]


def power_and_shift(w, x, y):
    q = w.rational()
    if not abs(y[1]) < 40:
        return []
    value = w.space.exp(w.space.ln(x[0]) * q + y[0])
    return [(value, lambda: (x[1].log() * ball(q) + y[1]).exp())]


def sine(w, x, y):
    return [(w.space.sin(x[0]), lambda: x[1].sin())]


def cosine(w, x, y):
    return [(w.space.cos(x[0]), lambda: x[1].cos())]


def turn(w, x, y):
    n = w.choose.choice(TURNS)
    part = fmpq(2 * w.choose.randint(-n, n), n)
    angle = w.space.pi().times(part)
    return [
        (w.space.cos(angle), lambda: arb.cos_pi_fmpq(part)),
        (w.space.sin(angle), lambda: arb.sin_pi_fmpq(part)),
    ]


def tanh(w, x, y):
    return [(w.space.odd_function("tanh", x[0]), lambda: x[1].tanh())]


def erf(w, x, y):
    return [(w.space.odd_function("erf", x[0]), lambda: x[1].erf())]


def relu(w, x, y):
    return [(w.space.relu(x[0])[0], lambda: x[1].max(arb(0)))]


def undo(w, x, y):
    results = [((x[0] * y[0]) / y[0], lambda: x[1]), ((x[0] + y[0]) - y[0], lambda: x[1])]
    if abs(x[1]) < 40:
        results.append((w.space.ln(w.space.exp(x[0])), lambda: x[1]))
    return results


def undo_logarithm(w, x, y):
    return [(w.space.exp(w.space.ln(x[0])), lambda: x[1])]


def softmax(w, x, y):
    row = [w.choose.choice(w.pool) for _entry in range(w.choose.randint(2, 3))]
    if not all(abs(b) < 40 for _v, b in row):
        return []
    weights = w.numbers.softmax(as_row([v for v, _b in row]))[0]
    if w.space.sign(sum(weights[1:], weights[0]) - 1) != 0:
        raise Disagreement("the weights do not add up to 1")

    def share(k):
        powers = [b.exp() for _v, b in row]
        return powers[k] / sum(powers, arb(0))

    return [(weight, lambda k=k: share(k)) for k, weight in enumerate(weights)]


def norm(w, x, y):
    row = [w.choose.choice(w.pool) for _entry in range(w.choose.randint(2, 3))]
    x = as_row([v for v, _b in row])
    centered = w.numbers.center(x, w.numbers.mean(x))
    std = w.numbers.root(w.numbers.mean_square(centered), eps=Fraction(0))
    result = w.numbers.normalize(centered, std)[0]

    def normalized(k):
        mean = sum((b for _v, b in row), arb(0)) / len(row)
        parts = [b - mean for _v, b in row]
        return parts[k] / (sum((p * p for p in parts), arb(0)) / len(row)).sqrt()

    return [(value, lambda k=k: normalized(k)) for k, value in enumerate(result)]


def sums_of_products(w, x, y):
    """A sum of products, and a multiple of it made from scratch."""
    xs = [w.choose.choice(w.pool) for _term in range(4)]
    ys = [w.choose.choice(w.pool) for _term in range(4)]
    q = w.rational()
    once = w.space.dot([v for v, _b in xs], [v for v, _b in ys])
    again = w.space.dot([v for v, _b in xs], [v * q for v, _b in ys])

    def total():
        return sum((a * b for (_v, a), (_w, b) in zip(xs, ys, strict=True)), arb(0))

    return [(once, total), (again, lambda: total() * ball(q))]


def as_row(values):
    row = np.empty((1, len(values)), dtype=object)
    row[0] = values
    return row


OPERATIONS = [
    plus, minus, times, times, over, power, multiple, exp, ln, sqrt, length, size, integer_root,
    integer_power, power_and_shift, sine, cosine, turn, tanh, erf, relu, undo, undo_logarithm,
    softmax, norm, sums_of_products,
]  # fmt: skip

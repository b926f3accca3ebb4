"""A number system: every number of a pass, and how fast it changes with one weight.

It computes with complex numbers a + b·i·STEP, whose STEP is so small that its square is 0 in
floats.  Sums and products then follow the rules of differentiation by themselves: a is the number
and b its slope.  To the outside, an entry is a Slope.
"""

import math
from dataclasses import dataclass

import numpy as np

from byhand.numbers.base import ABSENT, Numbers, Prediction
from byhand.numbers.floats import Floats

STEP = 2.0**-600
FLOATS = Floats("float64")  # reads weights, which may be fractions or expressions


@dataclass(frozen=True, order=True)
class Slope:
    """A number, and how fast it changes."""

    value: float
    slope: float

    @classmethod
    def of(cls, z):
        return cls(float(z.real), float(z.imag / STEP))

    def __sub__(self, other):
        return Slope(self.value - other.value, self.slope - other.slope)

    def __float__(self):
        return self.value

    def __str__(self):
        return f"{self.value:.4f} {self.slope:+.4f}ε"


class Slopes(Numbers):
    """The weight `data` changes at the index `at`, with slope 1; all other weights stay."""

    uniform = "rounded"  # every entry is rounded
    name = "slopes"

    def __init__(self, data=None, at=()):
        super().__init__()
        self.data, self.at = data, at

    # ------------------------------------------------------------ values in and out

    def admit(self, data):
        values = np.ma.filled(FLOATS.admit(data), -np.inf).astype(complex)
        if data is self.data:
            values[self.at] += STEP * 1j
        return values

    def constant(self, x):
        return self.admit(np.array([x], dtype=object))[0]

    def entries(self, value):
        seen = ~np.ma.getmaskarray(value)
        found = np.full(value.shape, ABSENT, dtype=object)
        found[seen] = [Slope.of(z) for z in np.ma.getdata(value)[seen]]
        return found

    def register(self, entry):
        return "rounded"

    # ------------------------------------------------------------ the operations

    def embed(self, table, ids, *, scale=None):
        return table[list(ids)] * (1 if scale is None else self.constant(scale))

    def sinusoid(self, **settings):
        return self.admit(FLOATS.sinusoid(**settings))

    def add(self, x, y):
        return x + y

    def multiply(self, x, y):
        return x * y

    def mean(self, x):
        return x.mean(-1)

    def center(self, x, mean):
        return x - mean[..., None]

    def mean_square(self, x):
        return (x * x).mean(-1)

    def root(self, x, *, eps):
        return np.sqrt(x + float(eps))

    def normalize(self, x, by):
        by = by[..., None]
        return np.divide(x, by, out=np.zeros_like(x), where=by != 0)

    def affine(self, x, *, gain=None, bias=None):
        return x * (1 if gain is None else gain) + (0 if bias is None else bias)

    def linear(self, x, weight, *, bias=None, layout, heads=None):
        x = self.merge_heads(x) if x.ndim == 3 else x
        y = self.affine(x @ (weight if layout == "in_out" else weight.T), bias=bias)
        return y if heads is None else np.stack(np.split(y, heads, axis=1))

    def split_heads(self, x, *, start, heads, width, stride):
        begins = range(start, start + heads * stride, stride)
        return np.stack([x[:, begin : begin + width] for begin in begins])

    def merge_heads(self, x):
        return np.concatenate(list(x), axis=1)

    def join(self, x, y):
        return np.concatenate([x, y], axis=1)

    def rotate(self, x, *, frequencies=None, positions, width, base, pairing):
        pair = np.arange(width // 2)
        rates = float(base) ** (-2 * pair / width) if frequencies is None else frequencies
        angle = np.outer(positions, rates)  # (pos, pair)
        i, j = (pair, pair + width // 2) if pairing == "half" else (2 * pair, 2 * pair + 1)
        a, b, turned = x[..., i], x[..., j], x.copy()
        turned[..., i] = a * np.cos(angle) - b * np.sin(angle)
        turned[..., j] = a * np.sin(angle) + b * np.cos(angle)
        return turned

    def scores(self, q, k, *, table=None, slopes=None, scale=None, mask, queries, keys):
        k = np.repeat(k, len(q) // len(k), axis=0)
        found = q @ k.swapaxes(1, 2) * (1 if scale is None else self.constant(scale))
        if slopes is not None:
            found -= slopes[:, None, None] * np.abs(np.subtract.outer(queries, keys))
        if table is not None:
            found += table[np.ix_(range(len(q)), queries, keys)]
        return np.ma.array(found, mask=~np.array(mask) | np.isneginf(found.real))

    def softmax(self, x):
        hidden, x = np.ma.getmaskarray(x), np.ma.getdata(x)
        highest = np.where(hidden, -np.inf, x.real).max(-1, keepdims=True)
        powers = np.where(hidden, 0, np.exp(np.where(hidden, 0, x - highest)))
        return np.ma.array(powers / powers.sum(-1, keepdims=True), mask=hidden)

    def mix(self, weights, v):
        return np.ma.filled(weights, 0) @ np.repeat(v, len(weights) // len(v), axis=0)

    def head_outputs(self, mixed, *, weight=None, layout):
        heads, _length, width = mixed.shape
        matrix = np.eye(heads * width) if weight is None else weight
        rows = np.split(matrix if layout == "in_out" else matrix.T, heads)
        return np.stack([head @ own for head, own in zip(mixed, rows, strict=True)])

    def activate(self, x, *, kind):
        match kind:
            case "relu":
                return np.where(x.real > 0, x, 0)
            case "gelu":
                z = x / math.sqrt(2)
                bell = 2 / math.sqrt(math.pi) * np.exp(-(z.real**2))
                return x * (1 + np.vectorize(math.erf)(z.real) + 1j * z.imag * bell) / 2
            case "gelu_tanh":
                return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
            case "silu":
                return x / (1 + np.exp(-x))
        return x

    def argmax(self, x):
        found = []
        for row in np.ma.getdata(x):
            first, *rest = np.argsort(-row.real, kind="stable")
            margin = Slope.of(row[first] - row[rest[0]]) if rest else None
            found.append(Prediction(int(first), margin, proven=False))
        return found

    def loss(self, probs, *, target):
        return -np.log(np.ma.getdata(probs)[-1:, target])

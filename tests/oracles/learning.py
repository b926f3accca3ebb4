"""The operations of learning once more, on arrays of any numbers: Fractions or Arb balls.

They are written with NumPy's own sums and products of objects, and follow the definitions of
`byhand.numbers.adjoints` alone.  A masked entry is None.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb

Array = Any


def shown(x: Array) -> Array:
    """The entries, 0 where they are masked."""
    result = np.array(x, dtype=object)
    result[x == None] = 0  # noqa: E711
    return result


def hidden_as(x: Array, result: Array) -> Array:
    """The result, masked where x is."""
    masked = np.array(result, dtype=object)
    masked[x == None] = None  # noqa: E711
    return masked


def beside(x: Array) -> Array:
    """Heads side by side."""
    return np.hstack(list(x)) if x.ndim == 3 else x


def targets_of(probs: Array, targets: Any) -> list[int]:
    rows = len(probs)
    return [-1] * (rows - 1) + [targets] if isinstance(targets, int) else list(targets)


def losses(probs: Array, targets: Any) -> Array:
    found = [None if t < 0 else -probs[i, t].log() for i, t in enumerate(targets)]
    return np.array(found, dtype=object)


def logprobs(x: Array, targets: Any) -> Array:
    found = [
        None if t < 0 else x[i, t] - sum((entry.exp() for entry in x[i]), arb(0)).log()
        for i, t in enumerate(targets)
    ]
    return np.array(found, dtype=object)


def average(losses: Array) -> Array:
    counted = [loss for loss in losses if loss is not None]
    return np.array([sum(counted) / len(counted)], dtype=object)


def loss_back(probs: Array, targets: Any) -> Array:
    wanted = targets_of(probs, targets)
    count = sum(t >= 0 for t in wanted)
    result = np.array(probs, dtype=object)
    for row, target in enumerate(wanted):
        if target < 0:
            result[row] = 0
        else:
            result[row, target] = result[row, target] - 1
    return result / count


def total(**terms: Array) -> Array:
    return np.sum(list(terms.values()), axis=0)


def column_sums(
    x: Array, by: Array | None = None, merged: bool = False, each: bool = False
) -> Array:
    product = x if by is None else x * by
    if each:
        return np.stack([head.sum(axis=0)[None] for head in product])
    if merged:
        product = beside(product)
    return product.sum(axis=tuple(range(product.ndim - 1)))


def row_dots(x: Array, y: Array, kept: bool = False) -> Array:
    dots = (shown(x) * np.where(x == None, 0, y)).sum(axis=-1)  # noqa: E711
    return dots[..., None] if kept else dots


def sum_groups(x: Array, heads: int) -> Array:
    size = len(x) // heads
    return np.stack([x[size * h : size * (h + 1)].sum(axis=0) for h in range(heads)])


def outer(x: Array, grad: Array, layout: str) -> Array:
    product = beside(x).T @ beside(grad)
    return product if layout == "in_out" else product.T


def along_keys(x: Array, y: Array, scale: Any = 1) -> Array:
    group = len(x) // len(y)
    return np.stack([shown(rows) @ y[h // group] for h, rows in enumerate(x)]) * scale


def along_queries(x: Array, y: Array, scale: Any = 1) -> Array:
    return np.stack([shown(rows).T @ y[h] for h, rows in enumerate(x)]) * scale


def scale_by(x: Array, by: Array) -> Array:
    return x * by[0]


def scatter(grad: Array, ids: Any, rows: int, scale: Any = 1) -> Array:
    taken = np.array([[1 if token == row else 0 for token in ids] for row in range(rows)])
    return taken.astype(object) @ grad * scale


def pack_heads(
    queries: Array, keys: Array = None, values: Array = None, *, starts: Any, stride: int
) -> Array:
    columns: dict[int, Array] = {}
    parts = [part for part in (queries, keys, values) if part is not None]
    for start, part in zip(starts, parts, strict=True):
        for head in range(len(part)):
            for inner in range(part.shape[2]):
                columns[start + head * stride + inner] = part[head, :, inner]
    return np.stack([columns[c] for c in range(len(columns))], axis=1)


def softmax_back(weights: Array, grad: Array, dot: Array) -> Array:
    return hidden_as(weights, shown(weights) * (shown(grad) - dot[..., None]))


def columns(x: Array, start: int, width: int) -> Array:
    return x[..., start : start + width]


def unmasked(x: Array) -> Array:
    return shown(x)


def bucket_back(grad: Array, buckets: Any, rows: int) -> Array:
    places = np.array(buckets)
    return np.array(
        [[sum(head[places == row], grad.flat[0] * 0) for head in grad] for row in range(rows)],
        dtype=object,
    )


def sinks_back(weights: Array, dot: Array) -> Array:
    rest = 1 - shown(weights).sum(axis=-1)
    return -(rest * dot).sum(axis=-1)


def cap_back(grad: Array, x: Array, cap: Any) -> Array:
    flat = [None if g is None else g * (1 - (v / cap).tanh() * (v / cap).tanh())
            for g, v in zip(grad.ravel(), x.ravel(), strict=True)]  # fmt: skip
    return np.array(flat, dtype=object).reshape(grad.shape)


def clamp_back(grad: Array, x: Array, least: Any = None, most: Any = None) -> Array:
    inside = np.ones(x.shape, dtype=bool)
    if least is not None:
        inside &= x >= least
    if most is not None:
        inside &= x <= most
    return np.where(inside, grad, grad * 0)


def sum_experts(x: Array) -> Array:
    return x.sum(axis=0)


def expert_outer(x: Array, grad: Array, layout: str) -> Array:
    rows = [x] * len(grad) if x.ndim == 2 else list(x)
    return np.stack([outer(one, other, layout) for one, other in zip(rows, grad, strict=True)])


def expert_sums(x: Array) -> Array:
    return x.sum(axis=1)


def spread(grad: Array, shares: Array) -> Array:
    return np.stack([grad * share[:, None] for share in shares.T])


def expert_dots(x: Array, grad: Array) -> Array:
    return np.stack([(answer * grad).sum(axis=-1) for answer in x], axis=1)


def expert_shares_back(
    x: Array,
    chosen: Array,
    shares: Array,
    grad: Array,
    normalised: bool,
    alone: bool = False,
    scale: Any = 1,
    eps: Any = 0,
) -> Array:
    """By the matrix of derivatives: of share i with respect to score j."""
    result = np.array(grad * 0, dtype=object)
    for pos, row in enumerate(x):
        kept = chosen[pos]
        weights = row if alone else np.array([entry.exp() for entry in row], dtype=object)
        counted = kept if normalised else kept * 0 + (0 if alone else 1)
        total = (weights * counted).sum() + eps
        for i, j in np.ndindex(len(row), len(row)):
            slope = (weights[j] * 0 + 1) if alone else weights[j]
            own = kept[i] * slope if i == j else kept[i] * 0
            if alone and not normalised:
                rise = own
            else:
                rise = own / total - kept[i] * weights[i] * counted[j] * slope / (total * total)
            result[pos, j] = result[pos, j] + grad[pos, i] * rise * scale
    return result


def over(top: Array, below: Array) -> Array:
    """top / below, and 0 where both are 0."""
    top, below = np.broadcast_arrays(top, below)
    both = (top == 0) & (below == 0)
    return np.where(both, 0, top) / np.where(both, 1, below)


def normalize_back(grad: Array, by: Array) -> Array:
    return over(grad, by[..., None])


def divisor_back(dot: Array, by: Array) -> Array:
    return over(-dot, by)


def root_back(grad: Array, root: Array) -> Array:
    return over(grad, root + root)


def mean_square_back(grad: Array, x: Array) -> Array:
    return (grad[..., None] * x + grad[..., None] * x) / x.shape[-1]


def center_back(grad: Array) -> Array:
    return -grad.sum(axis=-1)


def mean_back(grad: Array, width: int) -> Array:
    return np.stack([grad / width] * width, axis=-1)


def sum_squares(x: Array) -> Array:
    return np.array([(x * x).sum()], dtype=object)


def norm(**squares: Array) -> Array:
    return np.array([sum(square[0] for square in squares.values()).sqrt()], dtype=object)


def clip_factor(norm: Array, limit: Any, eps: Any) -> Array:
    share = limit / (norm[0] + eps)
    return np.array([share if share < 1 else share * 0 + 1], dtype=object)


def blend(y: Array, x: Array = 0, *, of_y: Any, of_x: Any = 0, squared: bool = False) -> Array:
    return of_x * x + of_y * (y * y if squared else y)


def root_plus(x: Array, eps: Any) -> Array:
    return np.array([entry.sqrt() for entry in x.ravel()], dtype=object).reshape(x.shape) + eps


def divide(x: Array, y: Array) -> Array:
    return x / y


# ----------------------------------------------------------------------- slopes


def slope(x: Array, kind: str) -> Array:
    """The derivative of the activation, entry by entry."""
    flat = [SLOPES[kind](entry) for entry in x.ravel()]
    return np.array(flat, dtype=object).reshape(x.shape)


def _gelu(x: arb) -> arb:
    bell = (-(x * x) / 2).exp() / (2 * arb.pi()).sqrt()
    return (1 + (x / arb(2).sqrt()).erf()) / 2 + x * bell


def _gelu_tanh(x: arb, root: arb | None = None) -> arb:
    factor, cubic = (2 / arb.pi()).sqrt() if root is None else root, arb(44715) / 1_000_000
    t = (factor * (x + cubic * x * x * x)).tanh()
    return (1 + t) / 2 + x / 2 * (1 - t * t) * factor * (1 + 3 * cubic * x * x)


def _silu(x: arb) -> arb:
    share = 1 / (1 + (-x).exp())
    return share + x * share * (1 - share)


SLOPES = {
    "relu": lambda x: arb(1) if x > 0 else arb(0),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
    "identity": lambda x: arb(1),
    "relu2": lambda x: 2 * x if x > 0 else arb(0),
    "quick_gelu": lambda x: _silu(arb(1702) / 1000 * x),
    "gelu_fast": lambda x: _gelu_tanh(x, arb(7978845608) / 10**10),
    "gelu_bloom": lambda x: _gelu_tanh(x, arb(79788456) / 10**8),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()) / (1 + x.exp()),
    "tanh": lambda x: 1 - x.tanh() * x.tanh(),
}

"""Calls of the operations of learning with random arguments, for tests that compare systems.

A call is (operation, arrays by role, settings).  The entries of arrays are Fractions, or None where
they are masked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from byhand.expression import Number

Array = Any
NASTY = [Fraction(n) for n in (0, 0, 0, 1, 1, -1, 2, -3)]
EXTREME = [Fraction(10**12), Fraction(-1, 10**12), Fraction(1, 3), Fraction(7, 10)]
SCALES = (None, Fraction(2), Fraction(-2, 3))
KINDS = (
    "relu", "gelu", "gelu_tanh", "silu", "identity", "relu2", "quick_gelu", "gelu_fast",
    "gelu_bloom", "sigmoid", "tanh",
)  # fmt: skip
RATIONAL = (
    "average", "loss_back", "total", "column_sums", "row_dots", "sum_groups", "outer", "along_keys",
    "along_queries", "scale_by", "scatter", "pack_heads", "softmax_back", "normalize_back",
    "divisor_back", "root_back", "mean_square_back", "center_back", "mean_back", "sum_squares",
    "clip_factor", "blend", "divide", "columns", "unmasked", "bucket_back", "sinks_back",
    "clamp_back", "sum_experts", "expert_outer", "expert_sums", "spread", "expert_dots",
)  # fmt: skip
NAMED = ("losses", "logprobs", "slope", "norm", "root_plus", "cap_back", "expert_shares_back")


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call."""

    arrays: dict[str, Array]
    settings: dict[str, Any]


class Drawn:
    """Draws arguments; `positive` entries are never negative."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def entry(self) -> Fraction:
        random = self.random
        if random.random() < 0.5:
            return random.choice(NASTY)
        if random.random() < 0.2:
            return random.choice(EXTREME)
        return Fraction(random.randint(-50, 50), random.choice((1, 2, 3, 7, 10)))

    def array(self, *shape: int, positive: bool = False, hidden: float = 0.0) -> Array:
        result = np.empty(shape, dtype=object)
        for place in np.ndindex(shape):
            entry = self.entry()
            result[place] = abs(entry) if positive else entry
            if self.random.random() < hidden:
                result[place] = None
        return result

    def shares(self, rows: int, columns: int) -> Array:
        parts = self.array(rows, columns, positive=True) + Fraction(1, 7)
        return parts / parts.sum(axis=-1, keepdims=True)

    def size(self) -> int:
        return self.random.randint(1, 3)

    def targets(self, rows: int, columns: int) -> tuple[int, ...]:
        drawn = [self.random.randint(-1, columns - 1) for _row in range(rows - 1)]
        return (*drawn, self.random.randrange(columns))

    def arguments(self, operation: str) -> Arguments:
        """The arguments of one call of an operation."""
        return CALLS[operation](self)


def call(**given: Any) -> Arguments:
    arrays = {role: x for role, x in given.items() if isinstance(x, np.ndarray)}
    return Arguments(arrays, {role: x for role, x in given.items() if role not in arrays})


def _losses(d: Drawn) -> Arguments:
    rows, columns = d.size(), d.size()
    return call(probs=d.shares(rows, columns), targets=d.targets(rows, columns))


def _logprobs(d: Drawn) -> Arguments:
    rows, columns = d.size(), d.size()
    x = d.array(rows, columns)
    x[abs(x) > 1000] = Fraction(5, 3)
    return call(x=x, targets=d.targets(rows, columns))


def _loss_back(d: Drawn) -> Arguments:
    rows, columns = d.size(), d.size()
    targets: Any = d.targets(rows, columns)
    last = d.random.random() < 0.3
    return call(probs=d.shares(rows, columns), targets=targets[-1] if last else targets)


def _average(d: Drawn) -> Arguments:
    losses = d.array(d.size(), hidden=0.3)
    losses[0] = Fraction(1, 2)
    return call(losses=losses)


def _alike(*roles: str, positive: bool = False) -> Callable[[Drawn], Arguments]:
    def drawn(d: Drawn) -> Arguments:
        shape = [d.size() for _axis in range(d.random.choice((1, 2)))]
        return call(**{role: d.array(*shape, positive=positive) for role in roles})

    return drawn


def _column_sums(d: Drawn) -> Arguments:
    shape = [d.size() for _axis in range(d.random.choice((2, 3)))]
    by = {"by": d.array(*shape)} if d.random.random() < 0.5 else {"merged": True}
    if len(shape) == 3 and d.random.random() < 0.3:
        by = {"each": True} | ({"by": by["by"]} if "by" in by else {})
    return call(x=d.array(*shape), **by)


def _row_dots(d: Drawn) -> Arguments:
    shape = [d.size() for _axis in range(3)]
    kept = {"kept": True} if d.random.random() < 0.3 else {}
    return call(x=d.array(*shape, hidden=0.0 if kept else 0.3), y=d.array(*shape), **kept)


def _sum_groups(d: Drawn) -> Arguments:
    heads = d.size()
    return call(x=d.array(heads * d.size(), d.size(), d.size()), heads=heads)


def _outer(d: Drawn) -> Arguments:
    rows, layout = d.size(), d.random.choice(("in_out", "out_in"))

    def side() -> Array:
        heads = d.random.choice(([], [d.size()]))
        return d.array(*heads, rows, d.size())

    return call(x=side(), grad=side(), layout=layout)


def _scale(d: Drawn) -> dict[str, Any]:
    scale = d.random.choice(SCALES)
    return {} if scale is None else {"scale": Number(scale)}


def _along_keys(d: Drawn) -> Arguments:
    kv_heads, keys = d.size(), d.size()
    x = d.array(kv_heads * d.size(), d.size(), keys, hidden=0.3)
    return call(x=x, y=d.array(kv_heads, keys, d.size()), **_scale(d))


def _along_queries(d: Drawn) -> Arguments:
    heads, queries = d.size(), d.size()
    x = d.array(heads, queries, d.size(), hidden=0.3)
    return call(x=x, y=d.array(heads, queries, d.size()), **_scale(d))


def _scale_by(d: Drawn) -> Arguments:
    return call(x=d.array(d.size(), d.size()), by=d.array(1))


def _scatter(d: Drawn) -> Arguments:
    positions, rows = d.size(), d.size()
    ids = tuple(d.random.randrange(rows) for _place in range(positions))
    return call(grad=d.array(positions, d.size()), ids=ids, rows=rows, **_scale(d))


def _pack_heads(d: Drawn) -> Arguments:
    heads, positions, width = d.size(), d.size(), d.size()
    per_head = d.random.random() < 0.5
    gap = width if per_head else heads * width
    parts = {role: d.array(heads, positions, width) for role in ("queries", "keys", "values")}
    starts, stride = (0, gap, 2 * gap), 3 * width if per_head else width
    if d.random.random() < 0.3:  # two of them
        parts.pop("values")
        starts, stride = starts[:2], 2 * width if per_head else width
    return call(**parts, starts=starts, stride=stride)


def _softmax_back(d: Drawn) -> Arguments:
    shape = [d.size() for _axis in range(3)]
    weights, grad = d.array(*shape, hidden=0.3), d.array(*shape)
    return call(weights=weights, grad=grad, dot=d.array(*shape[:-1]))


def _slope(d: Drawn) -> Arguments:
    x = d.array(d.size(), d.size())
    x[x > 40], x[x < -40] = Fraction(5, 3), Fraction(-5, 3)
    return call(x=x, kind=d.random.choice(KINDS))


def _normalize_back(d: Drawn) -> Arguments:
    grad, by = d.array(d.size(), d.size()), d.array(3, positive=True)[:1]
    by = np.resize(by, len(grad))
    grad[by == 0] = Fraction(0)
    return call(grad=grad, by=by)


def _rows_over(top: str, below: str) -> Callable[[Drawn], Arguments]:
    def drawn(d: Drawn) -> Arguments:
        size = d.size()
        tops, belows = d.array(size), d.array(size, positive=True)
        tops[belows == 0] = Fraction(0)
        return call(**{top: tops, below: belows})

    return drawn


def _divide(d: Drawn) -> Arguments:
    shape = d.size(), d.size()
    y = d.array(*shape)
    y[y == 0] = Fraction(1, 10**8)
    return call(x=d.array(*shape), y=y)


def _mean_square_back(d: Drawn) -> Arguments:
    x = d.array(d.size(), d.size())
    return call(grad=d.array(len(x)), x=x)


def _mean_back(d: Drawn) -> Arguments:
    return call(grad=d.array(d.size()), width=d.size())


def _norm(d: Drawn) -> Arguments:
    return call(**{f"square_{i}": d.array(1, positive=True) for i in range(d.size())})


def _clip_factor(d: Drawn) -> Arguments:
    eps = d.random.choice((Fraction(1, 10**6), Fraction(1, 2)))
    limit = d.random.choice((Fraction(1), Fraction(3, 2), Fraction(1, 100)))
    return call(norm=d.array(1, positive=True), limit=limit, eps=eps)


def _blend(d: Drawn) -> Arguments:
    shape = d.size(), d.size()
    given: dict[str, Any] = {"y": d.array(*shape), "of_y": d.entry()}
    if d.random.random() < 0.5:
        given |= {"x": d.array(*shape), "of_x": d.entry()}
    return call(**given, squared=d.random.random() < 0.5)


def _root_plus(d: Drawn) -> Arguments:
    return call(x=d.array(d.size(), d.size(), positive=True), eps=Fraction(1, 10**8))


def _columns(d: Drawn) -> Arguments:
    start, width = d.size() - 1, d.size()
    return call(x=d.array(d.size(), d.size(), start + width + 1), start=start, width=width)


def _bucket_back(d: Drawn) -> Arguments:
    rows, queries, keys = d.size() + 1, d.size(), d.size()
    buckets = tuple(
        tuple(d.random.randrange(rows) for _key in range(keys)) for _query in range(queries)
    )
    return call(grad=d.array(d.size(), queries, keys), buckets=buckets, rows=rows)


def _sinks_back(d: Drawn) -> Arguments:
    shape = [d.size() for _axis in range(3)]
    return call(weights=d.array(*shape, positive=True, hidden=0.3), dot=d.array(*shape[:-1]))


def _cap_back(d: Drawn) -> Arguments:
    shape = [d.size() for _axis in range(3)]
    x = d.array(*shape)
    x[x > 40], x[x < -40] = Fraction(5, 3), Fraction(-5, 3)
    cap = d.random.choice((Fraction(1), Fraction(5, 2), Fraction(30)))
    return call(grad=d.array(*shape, hidden=0.3), x=x, cap=cap)


def _clamp_back(d: Drawn) -> Arguments:
    shape = d.size(), d.size()
    limits = d.random.choice(({}, {"least": Fraction(-1)}, {"least": Fraction(-3)}))
    return call(grad=d.array(*shape), x=d.array(*shape), most=Fraction(1), **limits)


def _expert_outer(d: Drawn) -> Arguments:
    experts, rows, layout = d.size(), d.size(), d.random.choice(("in_out", "out_in"))
    own = d.random.choice(([], [experts]))
    return call(x=d.array(*own, rows, d.size()), grad=d.array(experts, rows, d.size()),
                layout=layout)  # fmt: skip


def _of_answers(shared: str) -> Callable[[Drawn], Arguments]:
    def drawn(d: Drawn) -> Arguments:
        experts, rows, width = d.size(), d.size(), d.size()
        grad = d.array(rows, width)
        if shared == "shares":
            return call(grad=grad, shares=d.array(rows, experts))
        return call(x=d.array(experts, rows, width), grad=grad)

    return drawn


def _expert_shares_back(d: Drawn) -> Arguments:
    """The shares are those that the scores give, in numbers of float64 for a softmax."""
    rows, experts = d.size(), d.size() + 1
    alone, normalised = d.random.random() < 0.5, d.random.random() < 0.6
    settings: dict[str, Any] = {"normalised": normalised, "alone": alone}
    if d.random.random() < 0.4:
        settings["scale"] = Fraction(5, 2)
    if alone and normalised and d.random.random() < 0.4:
        settings["eps"] = Fraction(1, 10**6)
    return call(**_with_shares(d, rows, experts, settings), grad=d.array(rows, experts), **settings)


def _with_shares(d: Drawn, rows: int, experts: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Scores alone, or equal ones, whose softmax is rational; which are chosen; their shares."""
    chosen = np.array([[Fraction(0)] * experts for _row in range(rows)], dtype=object)
    for row in chosen:
        for place in d.random.sample(range(experts), d.random.randint(1, experts)):
            row[place] = Fraction(1)
    x = d.array(rows, experts, positive=True) + Fraction(1, 7)
    if not settings["alone"]:
        x = np.repeat(d.array(rows, 1) * Fraction(1, 10**6), experts, axis=1)
    weights = x if settings["alone"] else x * 0 + 1
    counted = chosen if settings["normalised"] else chosen * 0 + 1
    total = (weights * counted).sum(axis=1, keepdims=True) + settings.get("eps", 0)
    if settings["alone"] and not settings["normalised"]:
        total = total * 0 + 1
    shares = weights * chosen / total * settings.get("scale", 1)
    return {"x": x, "chosen": chosen, "shares": shares}


CALLS: dict[str, Callable[[Drawn], Arguments]] = {
    "losses": _losses,
    "logprobs": _logprobs,
    "average": _average,
    "loss_back": _loss_back,
    "total": _alike("term_1", "term_2", "term_3"),
    "column_sums": _column_sums,
    "row_dots": _row_dots,
    "sum_groups": _sum_groups,
    "outer": _outer,
    "along_keys": _along_keys,
    "along_queries": _along_queries,
    "scale_by": _scale_by,
    "scatter": _scatter,
    "pack_heads": _pack_heads,
    "softmax_back": _softmax_back,
    "slope": _slope,
    "normalize_back": _normalize_back,
    "divisor_back": _rows_over("dot", "by"),
    "root_back": _rows_over("grad", "root"),
    "mean_square_back": _mean_square_back,
    "center_back": lambda d: call(grad=d.array(d.size(), d.size())),
    "mean_back": _mean_back,
    "sum_squares": _alike("x"),
    "norm": _norm,
    "clip_factor": _clip_factor,
    "blend": _blend,
    "root_plus": _root_plus,
    "divide": _divide,
    "columns": _columns,
    "unmasked": lambda d: call(x=d.array(d.size(), d.size(), d.size(), hidden=0.3)),
    "bucket_back": _bucket_back,
    "sinks_back": _sinks_back,
    "cap_back": _cap_back,
    "clamp_back": _clamp_back,
    "sum_experts": lambda d: call(x=d.array(d.size(), d.size(), d.size())),
    "expert_outer": _expert_outer,
    "expert_sums": lambda d: call(x=d.array(d.size(), d.size(), d.size())),
    "spread": _of_answers("shares"),
    "expert_dots": _of_answers("answers"),
    "expert_shares_back": _expert_shares_back,
}

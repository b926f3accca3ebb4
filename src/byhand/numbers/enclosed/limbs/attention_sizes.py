"""What the weights of attention are to its slopes (`attention_moves`); made once and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.kept_bounds import keepable
from byhand.numbers.enclosed.limbs.metrics import factor, overlaps, pair_norms, product_norm
from byhand.numbers.enclosed.limbs.moves import ROUGH, Part
from byhand.numbers.enclosed.limbs.spectral import frobenius, spectral_norm


@keepable
@dataclass(frozen=True)
class AttentionSizes:
    """What the weights of attention are to its slopes, for each head."""

    values: Array  # (head, head): ‖(W_h·A_v)ᵀ(W_i·A_v)‖
    outputs: Array  # (head, head): the overlaps ω of the parts of the output matrix
    both: Array  # (head, head): ω·ω', with those of the queries
    gram: Array  # (head, head, d_value, d_value): W_hᵀW_i
    out: Array  # (head, d_value, d_value): S with ‖W·y‖ <= ‖S·y‖
    query: Array  # (head, d_head, d_head): S with ‖A_qᵀ·y‖ <= ‖S·y‖
    key: Array  # (kv_head, d_head, d_head): likewise of A_k
    lengths: tuple[Array, Array, Array]  # Frobenius norms of A_q, A_k, A_v, for each head
    sizes: tuple[Array, Array, Array]  # and of the three S
    norms: tuple[Array, Array]  # ‖A_q‖ and ‖A_k‖
    deep: int  # the width of the stream


def attention_sizes(out: Part, q: Part, k: Part, v: Part) -> AttentionSizes | None:
    """Made once for the four matrices of a layer; None where a factor was not found."""
    key = ("attention sizes", *((part.weight, part.key) for part in (out, q, k, v)))
    made: AttentionSizes | None = out.weight._once(key, lambda: _sizes_of(out, q, k, v))
    return made


def _sizes_of(out: Part, q: Part, k: Part, v: Part) -> AttentionSizes | None:
    whole = out.matrix()  # (d, head·d_head)
    engine: Any = engine_of(whole)
    heads, group, width = q.heads, q.heads // k.heads, whole.shape[1] // q.heads

    def each(matrix: Array, count: int) -> list[Array]:
        deep = matrix.shape[0] // count
        return [matrix[at * deep : (at + 1) * deep] for at in range(count)]

    outs = [part.T for part in each(whole.T, heads)]
    queries, keys, values = (each(part.matrix(), part.heads) for part in (q, k, v))
    stacks = [
        _factors(engine, matrices)
        for matrices in (outs, *([one.T for one in part] for part in (queries, keys, values)))
    ]
    known = [stack for stack in stacks if stack is not None]
    if len(known) < len(stacks):
        return None
    s_out, s_query, s_key, s_value = known

    def row(numbers: list[float], times: int = 1) -> Array:
        return engine.constant(np.repeat(np.array(numbers), times), whole)

    def sizes(matrices: Any, times: int = 1) -> Array:
        return row([frobenius(matrix) for matrix in matrices], times)

    gram = _grams(whole.T, heads, width)
    of_outs = sizes(outs)
    s_values = repeated(engine, s_value, group)
    through = pair_norms(s_values, gram, of_outs)
    own = [product_norm(s_out[head], values[head // group]) ** 2 for head in range(heads)]
    place = np.eye(heads, dtype=bool)
    through = engine.where(
        engine.constant(place, whole), engine.constant(np.diag(np.array(own)), whole), through
    )
    outputs = overlaps(s_out, gram, of_outs, whole.shape[0])
    of_queries = overlaps(
        s_query, _grams(q.matrix(), heads, q.width), sizes(queries), whole.shape[0]
    )
    return AttentionSizes(
        through * (1 + ROUGH), outputs, outputs * of_queries * (1 + ROUGH), gram,
        s_out, s_query, s_key,
        (sizes(queries), sizes(keys, group), sizes(values, group)),
        (sizes(s_out), sizes(s_query), sizes(s_key, group)),
        (row([spectral_norm(one) for one in s_query]),
         row([spectral_norm(one) for one in s_key], group)),
        whole.shape[0],
    )  # fmt: skip


def _factors(engine: Any, matrices: list[Array]) -> Array | None:
    """S of each; None where one was not found."""
    found = [factor(engine.contiguous(matrix)) for matrix in matrices]
    made = [one[None] for one in found if one is not None]
    return engine.concatenate(made) if len(made) == len(found) else None


def _grams(rows: Array, heads: int, width: int) -> Array:
    """(head, head, width, width) of rows (head·width, …): the products of every two heads."""
    engine: Any = engine_of(rows)
    whole = (rows @ rows.T).reshape(heads, width, heads, width)
    return engine.contiguous(whole.swapaxes(1, 2))


def repeated(engine: Any, array: Array, group: int) -> Array:
    """Each of the first axis as often as query heads share it."""
    if group == 1:
        return array
    parts = engine.broadcast(array[:, None], (array.shape[0], group, *array.shape[1:]))
    return parts.reshape(-1, *array.shape[1:])

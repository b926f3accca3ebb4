"""The kernel of attention's slopes sums what the array code sums, as far as each query sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton_stand_in import Pointer, language

torch = pytest.importorskip("torch")

from byhand.numbers.enclosed.gpu import causal_moves  # noqa: E402


@pytest.mark.parametrize("heads", [1, 4])
def test_the_kernel_sums_the_form_over_the_heads_for_the_keys_seen(heads: int) -> None:
    random = np.random.default_rng(heads)
    queries, keys = 5, 150
    shares, dots = random.random((2, heads, queries, keys))
    heights, apart = random.random((heads, keys)) * 4, random.random(keys)
    rows = random.random((5, heads, queries))
    values, outputs = random.random((2, heads, heads))
    seen = np.array([1, 40, 128, 129, 150], dtype=np.int32)
    made = np.full(queries, np.nan)
    upper = [
        causal_moves._upper(torch.from_numpy(one)).numpy().ravel() for one in (values, outputs)
    ]
    arrays = [shares, dots, heights, rows, apart, seen, *upper, made]
    for query in range(queries):
        run(causal_moves.source_of(heads), query, arrays, queries, keys)

    times, more, mean, beside, factor = (row[..., None] for row in rows)
    most = shares * times + more
    distance = np.sqrt(np.clip(heights[:, None] + mean - 2 * dots, 0, None)) + beside
    parts = sum(
        np.sqrt(np.einsum("hqk,hi,iqk->qk", one, matrix, one))
        for one, matrix in ((most, values), (most * factor * distance, outputs))
    )
    visible = np.arange(keys) < seen[:, None]
    assert np.allclose(made, (parts * apart * visible).sum(1), rtol=1e-13)


def run(source: str, program: int, arrays: list[Any], *numbers: int) -> None:
    tl = language(program)
    tl.sqrt = lambda x: np.sqrt(np.asarray(x)).view(type(x))
    names: dict[str, Any] = {"tl": tl}
    exec(source, names)
    names["kernel"](*(Pointer(array.reshape(-1)) for array in arrays[:-1]),
                    Pointer(arrays[-1]), *numbers)  # fmt: skip

"""Under autocast, what stays in float32 is rounded where it enters a product, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from byhand.numbers.allowed import Allowed, Range, precision

SIZES = (1.0, 1e-2, 3e-5, 1e-6)  # the last are below what float16 holds in full


def drawn(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    chance = np.random.default_rng(seed)
    return chance.standard_normal(shape).astype(np.float32) * np.float32(SIZES[seed % len(SIZES)])


def known(array: np.ndarray[Any, Any]) -> Range:
    return Range(array.astype(np.float64))


def follows(numbers: Allowed, value: Range, claimed: torch.Tensor) -> bool:
    return numbers.judge(value, (), claimed.double().numpy()).follows


@pytest.mark.parametrize("format", ["float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(16))
def test_products_of_torch_under_autocast_are_allowed(format: str, seed: int) -> None:
    numbers = Allowed(f"autocast:{format}")
    x, weight, bias = drawn(seed, 5, 96), drawn(seed // 4, 7, 96), drawn(seed // 2, 7)
    q, k, v = drawn(seed, 2, 5, 8), drawn(seed // 4, 2, 5, 8), drawn(seed // 2, 2, 5, 8)
    seen = ((True,) * 5,) * 5
    scores = numbers.scores(known(q), known(k), mask=seen, queries=range(5), keys=range(5))
    shares = torch.tensor(q[:, :, :5]).softmax(-1)
    with torch.autocast("cpu", getattr(torch, format)):
        tensors = map(torch.tensor, (x, weight, bias))
        line = torch.nn.functional.linear(*tensors)
        dots = torch.tensor(q) @ torch.tensor(k).mT
        mixed = shares @ torch.tensor(v)
    assert line.dtype == dots.dtype == mixed.dtype == getattr(torch, format)
    linear = numbers.linear(known(x), weight, bias=bias, layout="out_in")
    assert follows(numbers, linear, line)
    assert follows(numbers, scores, dots)
    assert follows(numbers, numbers.mix(known(shares.numpy()), known(v)), mixed)


def test_weights_that_enter_no_product_are_as_they_are() -> None:
    table = drawn(0, 3, 4)
    for name in ("autocast:bfloat16", "transformers:autocast:float16"):
        numbers = Allowed(name)
        assert precision(name).narrow
        assert follows(numbers, numbers.embed(table, (2, 0)), torch.tensor(table[[2, 0]]))
    assert not follows(Allowed("bfloat16"), Allowed("bfloat16").embed(table, (2,)),
                       torch.tensor(table[[2]]))  # fmt: skip

"""As transformers does it: norms, softmax and RoPE tables in float32 whatever the format."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.tightness.cases import layernorm, rmsnorm
from torch.nn import functional

from byhand.numbers.allowed import Allowed, Range

EPS = 1e-5
FORMATS = ("float64", "float32", "float16", "bfloat16")


def tensor(format: str, *shape: int, size: float = 1.0, seed: int = 0) -> torch.Tensor:
    chance = torch.Generator().manual_seed(seed)
    drawn = torch.randn(shape, generator=chance, dtype=torch.float64) * size
    return drawn.to(getattr(torch, format))


def known(x: torch.Tensor) -> Range:
    return Range(x.double().numpy())


def share(numbers: Allowed, value: Range, given: torch.Tensor) -> float:
    return numbers.judge(value, (), given.double().numpy()).share


def library_rmsnorm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    inner = x.to(torch.float32)
    inner = inner * torch.rsqrt(inner.pow(2).mean(-1, keepdim=True) + EPS)
    return gain * inner.to(x.dtype)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_rmsnorm_in_float32_is_allowed(format: str, size: float) -> None:
    numbers = Allowed(f"transformers:{format}")
    x, gain = tensor(format, 16, 256, size=size), tensor(format, 256, seed=1)
    used = share(numbers, rmsnorm(numbers, known(x), known(gain)), library_rmsnorm(x, gain))
    assert 0.001 < used <= 1


def test_a_float64_model_with_a_float32_norm_is_not_plain_float64() -> None:
    numbers = Allowed("float64")
    x, gain = tensor("float64", 16, 256), tensor("float64", 256, seed=1)
    value = rmsnorm(numbers, known(x), known(gain))
    assert share(numbers, value, library_rmsnorm(x, gain)) > 1000


@pytest.mark.parametrize("format", FORMATS)
def test_layernorm_inside_in_float32_is_allowed_and_much_tighter_than_step_by_step(
    format: str,
) -> None:
    numbers = Allowed(f"transformers:{format}")
    x = tensor(format, 16, 256) + 3
    gain, bias = tensor(format, 256, seed=1), tensor(format, 256, seed=2)
    given = functional.layer_norm(x, (256,), gain, bias, EPS)
    value = layernorm(numbers, known(x), known(gain), known(bias))
    assert share(numbers, value, given) <= 1
    steps = layernorm(Allowed(format), known(x), known(gain), known(bias))
    assert value.rad is not None
    assert steps.rad is not None
    if format in ("float16", "bfloat16"):
        assert np.median(value.rad) < np.median(steps.rad) / 2
    if format == "float64":  # only RMSNorm is an island there
        assert np.median(value.rad) < 1e-12


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", [1.0, 20.0])
def test_softmax_in_float32_is_allowed(format: str, size: float) -> None:
    numbers = Allowed(f"transformers:{format}")
    x = tensor(format, 4, 32, 32, size=size)
    hidden = torch.triu(torch.ones(32, 32, dtype=torch.bool), 1).expand(4, 32, 32)
    given = functional.softmax(x.masked_fill(hidden, -torch.inf), dim=-1, dtype=torch.float32)
    value = numbers.softmax(Range(x.double().numpy(), absent=hidden.numpy()))
    assert 0.001 < share(numbers, value, given.to(x.dtype)) <= 1


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("base", [10_000, 500_000])
def test_rope_with_float32_tables_is_allowed(format: str, base: int) -> None:
    numbers = Allowed(f"transformers:{format}")
    places, width = [0, 3, 500, 8000], 64
    x = tensor(format, 2, len(places), width)
    rates = 1.0 / (base ** (torch.arange(0, width, 2, dtype=torch.int64).float() / width))
    angles = torch.tensor(places).float()[:, None] @ rates[None]
    both = torch.cat((angles, angles), dim=-1)
    cos, sin = both.cos().to(x.dtype), both.sin().to(x.dtype)
    turned = torch.cat((-x[..., width // 2 :], x[..., : width // 2]), dim=-1)
    value = numbers.rotate(
        known(x), positions=places, width=width, base=Fraction(base), pairing="half"
    )
    assert 0.001 < share(numbers, value, x * cos + turned * sin) <= 1
    if format == "float64":
        plain = Allowed("float64").rotate(
            known(x), positions=places, width=width, base=Fraction(base), pairing="half"
        )
        assert share(Allowed("float64"), plain, x * cos + turned * sin) > 1000


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("width", [64, 80])
def test_fused_attention_is_allowed(format: str, width: int) -> None:
    from byhand.expression import Call, Number, Quotient

    numbers = Allowed(f"transformers:{format}")
    q, k, v = (tensor(format, 4, 48, width, seed=seed) for seed in range(3))
    scale: Any = Quotient(Number(Fraction(1)), Call("sqrt", Number(Fraction(width))))
    places = range(48)
    mask = tuple(tuple(key <= query for key in places) for query in places)
    scores = numbers.scores(known(q), known(k), scale=scale, mask=mask, queries=places, keys=places)
    value = numbers.mix(numbers.softmax(scores), known(v))
    given = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    assert share(numbers, value, given) <= 1

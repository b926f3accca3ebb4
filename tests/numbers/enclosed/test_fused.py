"""The kernels for a GPU, read here by a stand-in for Triton: their bits are the array code's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from triton_stand_in import Pointer, language

from byhand.numbers.enclosed.gpu import fused
from byhand.numbers.enclosed.limbs import exponential, polynomials, slopes
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.coefficients import COS, GELU, NEAR_ONE, SILU, SIN
from byhand.numbers.enclosed.limbs.functions import gelu
from byhand.numbers.enclosed.limbs.polynomials import Table, table_of

SLOPE = slopes.TABLES["gelu_tanh"]


def run(function: Callable[..., Any], tables: tuple[Any, ...], x: np.ndarray, limbs: int) -> Any:
    arrays = [table.rows if isinstance(table, Table) else table for table in tables]
    plain = [replace(table, rows=None) if isinstance(table, Table) else None for table in tables]
    sources, slots = fused.sources_of(
        function, plain, [array.shape for array in arrays], x.shape[0]
    )
    entries = x.shape[1]
    out, between = np.full(limbs * entries, np.nan), np.full((slots + 1) * entries, np.nan)
    pointers = [Pointer(np.ascontiguousarray(part).ravel()) for part in (x, *arrays)]
    for source in sources:
        for program in range(-(-entries // fused.BLOCK)):
            names: dict[str, Any] = {"tl": language(program)}
            exec(source, names)
            names["kernel"](
                pointers[0], Pointer(out), Pointer(between), *pointers[1:], 0, entries, entries
            )
    return out.reshape(limbs, entries)


def arguments(n: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.integers(-(2**21), 2**21 + 1, (n, 300)).astype(float)
    x[0] = np.rint(rng.normal(size=300) * 256)
    x[0, :4] = [0, 2**21, -(2**21), 1]
    return x


@pytest.mark.parametrize("n", [1, 2, 5, 6, 9, 12])
@pytest.mark.parametrize("function", [GELU, SILU, SIN, COS, SLOPE], ids=lambda f: f.name)
def test_kernels_give_the_bits_of_the_array_code(function: Any, n: int) -> None:
    x = arguments(n, np.random.default_rng(n))
    x[0] = np.clip(x[0], -1024, 1024)
    table = table_of(function, n - 1, 1024)
    assert (run(polynomials.evaluate, (table,), x, n) == polynomials.evaluate(table, x)).all()
    assert (
        run(polynomials.without_ramp, (table,), x, n) == polynomials.without_ramp(table, x)
    ).all()


@pytest.mark.parametrize("n", [1, 4, 6, 10])
def test_the_kernel_of_exp_gives_the_bits_of_the_array_code(n: int) -> None:
    x = arguments(n, np.random.default_rng(n))
    x[0] = -np.abs(x[0]).clip(0, 1000)
    tables = exponential.points_of(n - 1, 1024), table_of(NEAR_ONE, n - 1, 0, -20)
    assert (run(exponential.evaluate, tables, x, n) == exponential.evaluate(*tables, x)).all()


def test_long_programs_are_cut_into_kernels() -> None:
    table = table_of(GELU, 9, 1024)
    sources, slots = fused.sources_of(
        polynomials.evaluate, [replace(table, rows=None)], [table.rows.shape], 10
    )
    assert len(sources) > 1
    assert all(len(source.splitlines()) < fused.LINES + 100 for source in sources)
    assert 10 < slots < 60


def test_other_devices_are_left_to_the_array_code() -> None:
    assert fused.run(polynomials.evaluate, (), torch.zeros(2, 3), 2) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_bits_of_numpy() -> None:
    for n in (1, 5, 6, 12):
        x = arguments(n, np.random.default_rng(n))
        one = gelu(Digits(x, 14), 14 - 22 * n)
        other = gelu(Digits(torch.from_numpy(x).cuda(), 14), 14 - 22 * n)
        assert (other.limbs.cpu().numpy() == one.limbs).all()

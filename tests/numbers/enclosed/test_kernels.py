"""Limb arithmetic as kernels, read by a stand-in for Triton: their bits are the array code's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from triton_stand_in import Pointer, language

from byhand.numbers.enclosed.gpu import kernels, row_kernels
from byhand.numbers.enclosed.limbs import arithmetic, array_code
from byhand.numbers.enclosed.limbs.arithmetic import Digits


def memory(tensor: torch.Tensor) -> Pointer:
    """All of what the tensor lies in, from its first entry on."""
    whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
    return Pointer(whole.numpy(), tensor.storage_offset())


class Launches:
    """Counts the kernels that were run."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(
        self, source: str, programs: int, arrays: Sequence[torch.Tensor], numbers: Sequence[int]
    ) -> None:
        self.count += 1
        for program in range(programs):
            names: dict[str, Any] = {"tl": language(program)}
            exec(source, names)
            names["kernel"](*map(memory, arrays), *map(np.int32, numbers))


@contextmanager
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launches]:
    """CPU tensors go through kernels."""
    launches = Launches()
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "usable", lambda array: isinstance(array, torch.Tensor))
        patch.setattr(kernels, "compiled", lambda source: source)
        patch.setattr(kernels, "launch", launches)
        forget()
        yield launches
    forget()


def forget() -> None:
    """Kernels and how they are run."""
    kernels._kernel.cache_clear()
    kernels._plans.clear()
    row_kernels._kernel.cache_clear()


def digits(n: int, shape: tuple[int, ...], top: int, seed: int = 0) -> Digits:
    rng = np.random.default_rng(seed)
    return Digits(rng.integers(-(2**21), 2**21 + 1, (n, *shape)).astype(float), top)


def as_tensor(x: Digits) -> Digits:
    return Digits(torch.from_numpy(np.ascontiguousarray(x.limbs)), x.top)


def transposed(x: Digits) -> Digits:
    """The same numbers, lying otherwise in memory."""
    turned = np.ascontiguousarray(np.moveaxis(x.limbs, 0, -1).swapaxes(0, 1))
    return Digits(torch.from_numpy(turned).swapaxes(0, 1).movedim(-1, 0), x.top)


def same(one: Any, other: Any) -> bool:
    return one.top == other.top and bool((one.limbs == other.limbs.numpy()).all())


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tensors of this machine are taken for a GPU's; whether kernels failed is forgotten."""
    monkeypatch.setattr(kernels, "_on_gpu", lambda array: True)
    monkeypatch.setattr(kernels, "_given_up", [])
    forget()
    yield
    forget()


def test_a_kernel_that_does_not_compile_is_told_once(
    on_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_launch: Any) -> None:
        raise RuntimeError("no C compiler\nand a long story")

    monkeypatch.setattr(kernels, "import_module", lambda name: object())
    monkeypatch.setattr(kernels, "compiled", lambda source: source)
    monkeypatch.setattr(kernels, "launch", broken)
    x, y = digits(3, (5,), 5), digits(2, (5,), 7, 1)
    with pytest.warns(
        kernels.NoKernels, match=r"proofs take longer \(RuntimeError: no C compiler\)"
    ):
        found = arithmetic.multiply(as_tensor(x), as_tensor(y), -40)
    assert same(arithmetic.multiply(x, y, -40), found)
    again = arithmetic.multiply(as_tensor(x), as_tensor(y), -40)  # a second warning is an error
    assert same(arithmetic.multiply(x, y, -40), again)
    assert kernels.given_up() == "RuntimeError: no C compiler"


def test_a_gpu_without_triton_is_told_once(on_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(kernels, "import_module", missing)
    x = digits(3, (5,), 5)
    with pytest.warns(kernels.NoKernels, match="No module named 'triton'"):
        arithmetic.approx(as_tensor(x))
    arithmetic.approx(as_tensor(x))


X, Y, ROWS = digits(4, (30, 17), 10), digits(3, (30, 17), -20, 1), digits(5, (30, 1), 31, 2)
CASES: dict[str, tuple[Callable[..., Digits], tuple[Digits, ...]]] = {
    "sum": (arithmetic.add, (X, Y)),
    "difference": (arithmetic.subtract, (X, Y)),
    "rounded sum": (lambda x, y: arithmetic.add(x, y, -60), (X, Y)),
    "sum of a known size": (lambda x, y: arithmetic.add(x, y, -61, 27), (X, Y)),
    "broadcast difference": (arithmetic.subtract, (X, ROWS)),
    "product": (arithmetic.multiply, (X, Y)),
    "rounded product": (lambda x, y: arithmetic.multiply(x, y, -90), (X, Y)),
    "aligned product": (lambda x, y: arithmetic.multiply(x, y, -98), (X, Y)),
    "broadcast product": (lambda x, y: arithmetic.multiply(x, y, -77), (X, ROWS)),
    "finer": (lambda x: arithmetic.regrid(x, low=-100), (X,)),
    "coarser": (lambda x: arithmetic.regrid(x, low=-50), (X,)),
    "whole limbs fewer": (lambda x: arithmetic.regrid(x, low=-34), (X,)),
    "higher": (lambda x: arithmetic.regrid(x, 54, -100), (X,)),
    "one limb": (lambda x: arithmetic.regrid(x, low=4), (X,)),
    "quotient": (lambda x: arithmetic.over_integer(x, 768, -100), (X,)),
    "settled": (lambda x: arithmetic.settle(x.limbs * 1000.0, x.top), (X,)),
    "sum of a row": (lambda x: arithmetic.total(x, -1), (X,)),
    "approximation": (lambda x: Digits(arithmetic.approx(x), 0), (X,)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("laid", [as_tensor, transposed])
def test_kernels_give_the_bits_of_the_array_code(
    name: str, laid: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, operands = CASES[name]
    expected = work(*operands)
    with stand_in(monkeypatch) as launches:
        found = work(*map(laid, operands))
    assert launches.count >= 1
    assert same(expected, found)


def test_few_numbers_are_worked_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((), (1,), (0,), (3, 1, 5)):
        x, y = digits(3, shape, 5), digits(2, shape, 7, 1)
        with stand_in(monkeypatch):
            found = arithmetic.multiply(as_tensor(x), as_tensor(y), -40)
        assert same(arithmetic.multiply(x, y, -40), found)


def test_axes_that_lie_one_in_another_become_one() -> None:
    assert kernels._joined((2, 3, 4), [(12, 4, 1), (12, 4, 1)]) == ([24], [[1], [1]])
    assert kernels._joined((2, 1, 4), [(4, 4, 1), (1, 0, 0)]) == ([2, 4], [[4, 1], [1, 0]])
    assert kernels._joined((1, 1), [(7, 7)]) == ([1], [[0]])


def test_a_kernel_depends_on_places_alone() -> None:
    sources = {
        kernels.source_of(array_code.move_program, (move.places,), (4,), 1, 1, True)
        for move in (arithmetic.Move.of(grid, 4, grid - 5, 5) for grid in (-60, 0, 300))
    }
    assert len(sources) == 1


def test_programs_that_are_too_long_are_left_to_the_array_code() -> None:
    forget()
    assert kernels._kernel(array_code.product_program, (80, None), (40, 40), 0, 1, True) is None


def test_constants_of_kernels_are_powers_of_two_or_divisors() -> None:
    source = kernels.source_of(
        array_code.product_program, (5, (3, -1, 2, True)), (3, 2), 1, 2, True
    )
    numbers = {float(text) for text in re.findall(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?", source)}
    assert numbers <= {0.0, 1.0, 2.0**22, 2.0**-22, 1.5 * 2.0**52}

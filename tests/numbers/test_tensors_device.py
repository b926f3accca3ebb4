"""What tensors add to floats: gradients, devices, and arrays that come in and go out."""

from __future__ import annotations

import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ml_dtypes import bfloat16

from byhand import forward
from byhand.errors import InputError
from byhand.evaluate import Admitted, work_out
from byhand.numbers.floats import FORMATS
from byhand.numbers.tensors import Tensors
from byhand.weights import Weights
from oracles.architectures import Case, spread

CASES = list(spread(8, seed=51, wishes={"layers": 1}))


class Given(Admitted):
    """Weights that are tensors already, as a trainer has them."""

    def __init__(self, weights: Weights, numbers: Tensors) -> None:
        super().__init__(weights, numbers)
        self.leaves = {}
        for name in weights:
            value = super().__getitem__(name)
            if isinstance(value, torch.Tensor):
                self.leaves[name] = value.detach().requires_grad_()
                self.values[name] = numbers.admit(self.leaves[name])


def loss_of(case: Case, weights: Admitted, numbers: Tensors) -> torch.Tensor:
    plan = case.plan()
    loss: torch.Tensor = work_out(
        plan, weights, case.tokens, numbers, target=case.target
    )["loss"].value[0]  # fmt: skip
    return loss


# ------------------------------------------------------------------ gradients


def test_an_admitted_tensor_is_used_as_it_is() -> None:
    weight = torch.zeros(2, 3, requires_grad=True)
    assert Tensors("float32").admit(weight) is weight


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_gradient_of_the_loss_is_its_slope(case: Case) -> None:
    numbers = Tensors("float64")
    weights = Given(case.weights, numbers)
    loss = loss_of(case, weights, numbers)
    loss.backward()  # type: ignore[no-untyped-call]
    assert numbers.notes == []
    step = 1e-6
    reached = 0
    for name, leaf in weights.leaves.items():
        if leaf.grad is None:
            continue  # a table that only gives buffers, or nothing reads it
        reached += 1
        flat, gradient = leaf.detach().reshape(-1), leaf.grad.reshape(-1)
        place = int(gradient.abs().argmax())
        before = float(flat[place])
        values = []
        for sign in (1, -1):
            flat[place] = before + sign * step
            with torch.no_grad():
                values.append(float(loss_of(case, weights, numbers)))
        flat[place] = before
        slope = (values[0] - values[1]) / (2 * step)
        assert slope == pytest.approx(float(gradient[place]), rel=1e-5, abs=1e-8), name
    assert reached


def test_a_row_without_variance_has_a_gradient_that_is_a_number() -> None:
    numbers = Tensors("float64")
    x = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    by = numbers.root(numbers.mean_square(x.detach()), eps=Fraction(0))
    numbers.normalize(x, by).sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


# ------------------------------------------------------------------ arrays in and out


@pytest.mark.parametrize("stored", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("format", list(FORMATS))
def test_memory_mapped_weights_come_in_without_a_warning(
    stored: str, format: str, tmp_path: Path
) -> None:
    kind = FORMATS[stored].dtype
    data = np.arange(12).reshape(3, 4).astype(kind)
    data.tofile(tmp_path / "weights")
    weight = np.memmap(tmp_path / "weights", dtype=kind, mode="r", shape=(3, 4))
    numbers = Tensors(format)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        admitted = numbers.admit(weight)
    assert admitted.dtype == numbers.kind
    assert admitted.tolist() == np.arange(12.0).reshape(3, 4).tolist()
    back = numbers.entries(admitted)
    assert back.dtype == FORMATS[format].dtype
    assert np.array_equal(back.astype(np.float64), np.arange(12.0).reshape(3, 4))


def test_bfloat16_keeps_its_bits_both_ways() -> None:
    data = np.array([1.0, -0.1, np.inf, 1e-40], dtype=bfloat16)
    numbers = Tensors("bfloat16")
    back = numbers.entries(numbers.admit(data))
    assert back.view(np.uint16).tolist() == data.view(np.uint16).tolist()


def test_values_that_are_no_tensors_are_handed_back() -> None:
    assert Tensors().entries([1, 2]) == [1, 2]


def test_a_weight_too_large_for_the_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"the entry \[0\] is too large for float16"):
        Tensors("float16").admit(np.array([1e6]))


# ------------------------------------------------------------------ devices


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("gpu", "there is no device 'gpu'"),
        ("", "there is no device ''"),
        ("mps", "there is no device 'mps'"),
        ("cuda:99", "this machine has no device cuda:99 that torch can use"),
    ],
)
def test_a_device_that_is_not_there_is_an_input_error(device: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Tensors("float32", device)
    assert caught.value.message == message
    assert caught.value.expected is not None
    assert caught.value.expected.startswith("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_an_input_error_with_a_hint() -> None:
    with pytest.raises(InputError) as caught:
        Tensors("float32", "cuda")
    assert str(caught.value) == (
        "this machine has no device cuda that torch can use\n"
        "  expected: cpu\n  found: cuda\n"
        "  hint: a build of torch without CUDA sees no such device"
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_pass_on_the_gpu_is_the_pass_on_the_processor() -> None:
    for case in CASES:
        plan = forward.plan(case.spec, len(case.tokens))
        here, there = (
            work_out(plan, case.weights, case.tokens, Tensors("float64", device))
            for device in ("cpu", "cuda")
        )
        for address, worked in here.items():
            if not worked.whole:
                assert np.ma.allclose(worked.array, there[address].array, rtol=1e-9, atol=1e-9)


def test_the_name_says_format_and_device() -> None:
    assert Tensors("bfloat16").name == "bfloat16 on cpu"


def test_without_torch_the_hint_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from byhand.errors import InputError\n"
        "try:\n    import byhand.numbers.tensors\n"
        "except InputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "torch is not installed\n  hint: pip install torch\n"


def test_floats_need_no_torch() -> None:
    code = "import byhand.numbers.floats, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_notes_are_left_out_while_gradients_are_kept() -> None:
    numbers = Tensors("float32")
    x: Any = torch.tensor([[3e38]], requires_grad=True)
    assert numbers.add(x, x).isinf().all()
    assert numbers.notes == []
    with torch.no_grad():
        numbers.add(x, x)
    assert [note.kind for note in numbers.notes] == ["not-finite"]

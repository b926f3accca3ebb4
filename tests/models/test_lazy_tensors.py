"""Tensors whose data is opened when it is first asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byhand.counting import count
from byhand.errors import InputError
from byhand.models import open_model
from byhand.weights import Tensor, Weights


class Opening:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> npt.NDArray[Any]:
        self.times += 1
        return np.arange(6.0).reshape(2, 3)


def test_what_the_header_says_is_known_without_opening() -> None:
    opening = Opening()
    tensor = Tensor.at("x", opening, (2, 3), np.dtype(np.float64), "y")
    weights = Weights({"x": tensor})
    assert weights["x"].shape == (2, 3)
    assert weights["x"].size == 6
    assert weights["x"].same_as == "y"
    assert weights["x"].floats
    assert not weights["x"].expressions
    assert weights.finer_than_float32
    assert repr(weights) == "<Weights: 1 tensors, 6 numbers>"
    assert repr(tensor) == "<Tensor x: 2×3 float64>"
    assert opening.times == 0


def test_data_is_opened_once_and_is_read_only() -> None:
    opening = Opening()
    tensor = Tensor.at("x", opening, (2, 3), np.dtype(np.float64))
    assert tensor.data[1, 2] == 5
    assert tensor.data is tensor.data
    assert opening.times == 1
    with pytest.raises(ValueError, match="read-only"):
        tensor.data[0, 0] = 1


def test_what_cannot_be_opened_is_an_error_every_time() -> None:
    def broken() -> npt.NDArray[Any]:
        raise InputError("x[0] is not a number")

    tensor = Tensor.at("x", broken, (1,), np.dtype(np.float32))
    for _attempt in range(2):
        with pytest.raises(InputError):
            _ = tensor.data


def test_counting_opens_nothing() -> None:
    tiny = open_model("tiny")
    opening = Opening()
    later = {
        name: Tensor.at(name, opening, tensor.shape, np.dtype(np.float32))
        for name, tensor in tiny.weights.items()
    }
    assert count(tiny.spec, Weights(later)).total == count(tiny.spec, tiny.weights).total
    assert opening.times == 0


@pytest.mark.parametrize(
    ("dtype", "finer"), [(np.float64, True), (np.float32, False), (np.float16, False)]
)
def test_weights_know_whether_float32_would_lose_bits(dtype: Any, finer: bool) -> None:
    weights = Weights({
        "x": Tensor("x", np.ones(2, dtype)), "y": Tensor("y", np.array([None], dtype=object)),
    })  # fmt: skip
    assert weights.finer_than_float32 == finer

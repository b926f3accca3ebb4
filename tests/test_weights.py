"""Tensors and weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from byhand.models import open_model
from byhand.weights import _RECENT, Data, Tensor, Weights


def test_a_tensor_knows_its_shape_and_whether_it_holds_floats() -> None:
    floats = Tensor("x", np.ones((2, 3), np.float32))
    assert floats.shape == (2, 3)
    assert floats.floats
    fractions = Tensor("y", np.array([Fraction(1, 3)], dtype=object))
    assert not fractions.floats


def test_a_tensor_cannot_be_written_to_but_its_maker_keeps_the_array() -> None:
    array = np.zeros(2)
    tensor = Tensor("x", array)
    with pytest.raises(ValueError, match="read-only"):
        tensor.data[0] = 1
    array[0] = 1  # a loader may still be filling it


def test_weights_are_in_spine_order() -> None:
    weights = open_model("tiny").weights
    assert list(weights) == [
        "embed.token", "embed.position",
        "block.0.attn.norm.gain", "block.0.attn.norm.bias",
        "block.0.attn.q", "block.0.attn.k", "block.0.attn.v",
        "block.0.mlp.norm.gain", "block.0.mlp.norm.bias",
        "block.0.mlp.hidden", "block.0.mlp.out",
    ]  # fmt: skip
    assert len(weights) == 11
    assert "block.0.attn.q" in weights
    assert repr(weights) == "<Weights: 11 tensors, 38 numbers>"
    assert repr(Weights({})) == "<Weights: 0 tensors, 0 numbers>"


def test_packed_data_is_unpacked_when_needed_and_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = []

    def opening() -> Data:
        opened.append("q")
        return np.array([1.5, -2.0])

    tensor = Tensor.at(
        "q", opening, (2,), np.dtype(np.float64), kept=False, stored="Q4_K", bits=Fraction(9, 2)
    )
    assert (tensor.stored, tensor.bits, opened) == ("Q4_K", Fraction(9, 2), [])
    assert tensor.data.tolist() == [1.5, -2.0]
    assert not tensor.data.flags.writeable
    assert opened == ["q"]  # one of the last that were unpacked
    monkeypatch.setattr("byhand.weights.RECENT", 0)
    _RECENT.hold(np.zeros(1))  # others came after it
    assert _RECENT.size == 0
    held = tensor.data
    assert opened == ["q", "q"]
    assert tensor.data is held
    del held
    assert tensor.data[0] == 1.5
    assert opened == ["q", "q", "q"]


def test_a_tensor_tells_its_bits_unless_its_numbers_are_written_out() -> None:
    assert Tensor("w", np.zeros(3, np.float16)).bits == 16
    assert Tensor("w", np.array([Fraction(1, 3)], dtype=object)).bits is None

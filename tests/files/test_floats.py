"""Weights from a safetensors file beside the model file."""

from __future__ import annotations

import json
import pickle
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from byhand.errors import InputError, ModelFileError, ShapeError
from byhand.files import read_model

MODEL = """\
vocabulary: [a, b]
model:
  d_model: 2
  layers: 1
  attention: {heads: 1, out: false}
  mlp: none
weights:
  file: w.safetensors
  block.0.attn.q: identity
  block.*.attn.k: zeros
"""
VALUES = {
    "embed.token": np.array([[0.1, 2.0], [-3.5, 1e-3]]),
    "block.0.attn.v": np.eye(2) / 3,
}


def model_in(folder: Path, tensors: dict[str, Any], text: str = MODEL) -> Path:
    save_file(tensors, folder / "w.safetensors")
    (folder / "m.yaml").write_text(text, "utf-8")
    return folder / "m.yaml"


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_floats_are_the_dyadic_rationals_they_are(tmp_path: Path, kind: Any) -> None:
    stored = {name: values.astype(kind) for name, values in VALUES.items()}
    model = read_model(model_in(tmp_path, stored))
    tensor = model.weights["embed.token"]
    assert tensor.floats
    assert Fraction(float(tensor.data[0, 0])) == Fraction(float(stored["embed.token"][0, 0]))
    assert tensor.data.dtype == kind
    assert model.weights["block.0.attn.q"].data[0, 0] == Fraction(1)
    assert model.weights["block.0.attn.k"].data[0, 0] == 0


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_model(path)
    assert caught.value.where == f"{path}:8: weights.file"
    return caught.value


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_is_refused_with_tensor_and_index(tmp_path: Path, bad: float) -> None:
    values = VALUES["embed.token"].copy()
    values[1, 0] = bad
    error = refused(model_in(tmp_path, {**VALUES, "embed.token": values}))
    assert error.message == "embed.token[1,0] is not a number"
    assert error.found == str(bad)


def test_values_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    model = read_model(model_in(tmp_path, VALUES))
    assert not model.weights["embed.token"].data.flags.owndata


def test_integers_are_refused(tmp_path: Path) -> None:
    error = refused(model_in(tmp_path, {**VALUES, "embed.token": np.ones((2, 2), np.int64)}))
    assert error.expected == "F64, F32, F16, BF16"
    assert error.found == "I64"


def test_a_wrong_shape_is_refused(tmp_path: Path) -> None:
    error = refused(model_in(tmp_path, {**VALUES, "embed.token": np.ones((3, 2))}))
    assert isinstance(error, ShapeError)
    assert (error.expected, error.found) == ("2×2 (vocab × d)", "3×2")


def test_an_unknown_tensor_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    error = refused(model_in(tmp_path, {**VALUES, "embed.tokens": np.ones((2, 2))}))
    assert error.message == "this model has no weight 'embed.tokens'"
    assert error.hint == "did you mean embed.token?"


def test_a_weight_given_twice_is_refused(tmp_path: Path) -> None:
    path = model_in(tmp_path, {**VALUES, "block.0.attn.q": np.eye(2)})
    with pytest.raises(ModelFileError) as caught:
        read_model(path)
    assert caught.value.where == f"{path}:9: weights.block.0.attn.q"
    assert caught.value.found == "block.0.attn.q here and in w.safetensors"


def test_a_pattern_fills_only_what_the_file_leaves_open(tmp_path: Path) -> None:
    model = read_model(model_in(tmp_path, {**VALUES, "block.0.attn.k": np.eye(2)}))
    assert model.weights["block.0.attn.k"].data[0, 0] == 1


@pytest.mark.parametrize("keep", [0, 4, 8, 60, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: int) -> None:
    path = model_in(tmp_path, VALUES)
    whole = (tmp_path / "w.safetensors").read_bytes()
    (tmp_path / "w.safetensors").write_bytes(whole[:keep])
    assert "this is not a whole safetensors file" in refused(path).message


def test_a_lying_header_is_refused(tmp_path: Path) -> None:
    path = model_in(tmp_path, VALUES)
    header = json.dumps(
        {"embed.token": {"dtype": "F64", "shape": [2, 2], "data_offsets": [0, 9**9]}}
    )
    raw = struct.pack("<Q", len(header)) + header.encode() + bytes(32)
    (tmp_path / "w.safetensors").write_bytes(raw)
    error = refused(path)
    assert error.message == (
        "this is not a whole safetensors file: a tensor's data has another size than its shape"
    )
    assert (error.expected, error.found) == ("32 bytes for 2×2 of F64", "387,420,489 bytes")


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a pickle was opened",))


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = model_in(tmp_path, VALUES)
    (tmp_path / "w.safetensors").write_bytes(pickle.dumps(Trap()))
    assert "this is not a whole safetensors file" in refused(path).message
    (tmp_path / "w.pt").write_bytes(pickle.dumps(Trap()))
    path.write_text(MODEL.replace("w.safetensors", "w.pt"), "utf-8")
    assert refused(path).message == "weights are read from safetensors files only"


@pytest.mark.parametrize(
    "name",
    ["../w.safetensors", "/etc/w.safetensors", "sub/w.safetensors", "..", "a\\w.safetensors"],
)
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    error = refused(model_in(tmp_path, VALUES, MODEL.replace("w.safetensors", f"'{name}'")))
    assert error.expected == "a file name without a folder"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    error = refused(model_in(tmp_path, VALUES, MODEL.replace("w.saf", "none.saf")))
    assert error.message == "the file cannot be read: No such file or directory"


def test_floats_can_be_factors_of_an_exact_product(tmp_path: Path) -> None:
    text = MODEL.replace("q: identity", 'q: {product: [2, "@block.0.attn.v", "@block.0.attn.v.T"]}')
    model = read_model(model_in(tmp_path, VALUES, text))
    third = Fraction(1 / 3)
    assert model.weights["block.0.attn.q"].data[0, 0] == 2 * third * third

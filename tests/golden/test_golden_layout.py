"""The bytes of values.safetensors: what the format's own library reads is what was put there."""

from __future__ import annotations

import json
import string
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file as load_numpy
from safetensors.torch import load_file as load_torch

from byhand.files.mapped import open_tensors
from byhand.files.tensor_file import Form, TensorFile

TORCH = {
    "int64": torch.int64,
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
NUMPY = {name: np.dtype(name) for name in ("int64", "float64", "float32", "float16")}
NUMPY["bfloat16"] = np.dtype(ml_dtypes.bfloat16)

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
forms = st.builds(Form, st.sampled_from(sorted(NUMPY)).map(NUMPY.__getitem__), shapes)
names = st.text(string.ascii_letters + string.digits + '._é\\"', min_size=1, max_size=12)


def numbers(form: Form, seed: int) -> np.ndarray[Any, Any]:
    """Bytes of every kind: infinite and broken floats among them."""
    data = np.random.default_rng(seed).bytes(form.size)
    return np.frombuffer(data, dtype=form.dtype).reshape(form.shape)


def written(path: Path, tensors: dict[str, np.ndarray[Any, Any]], order: list[str]) -> None:
    about = {name: Form(array.dtype, array.shape) for name, array in tensors.items()}
    with TensorFile(path, about, {"format": "a test"}) as file:
        for name in order:
            file.put(name, tensors[name])
        file.finish()


@given(st.dictionaries(names, forms, max_size=8), st.randoms(use_true_random=False))
def test_libraries_read_what_was_put_in_any_order(about: dict[str, Form], chance: Any) -> None:
    tensors = {name: numbers(form, seed) for seed, (name, form) in enumerate(about.items())}
    order = list(tensors)
    chance.shuffle(order)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        written(path, tensors, order)
        by_torch = load_torch(path)
        ours = open_tensors(path)
        assert set(by_torch) == set(ours) == set(tensors)
        for name, array in tensors.items():
            assert by_torch[name].dtype == TORCH[str(array.dtype)]
            assert by_torch[name].reshape(-1).view(torch.uint8).numpy().tobytes() == array.tobytes()
            stored = ours[name]
            read = stored.ids() if stored.dtype == "I64" else stored.array()
            assert (read.dtype, read.shape) == (array.dtype, array.shape)
            assert read.tobytes() == array.tobytes()
            assert read.flags.aligned


def test_the_numpy_flavour_reads_it_too(tmp_path: Path) -> None:
    tensors = {
        "a": np.arange(3, dtype=np.float32),
        "b": np.arange(2),
        "c": np.asarray(7),
        "d": np.arange(5, dtype=np.float16),
    }
    written(tmp_path / "x", tensors, ["d", "a", "c", "b"])
    read = load_numpy(tmp_path / "x")
    assert {name: array.tolist() for name, array in read.items()} == {
        "a": [0, 1, 2],
        "b": [0, 1],
        "c": 7,
        "d": [0, 1, 2, 3, 4],
    }


def test_wider_numbers_come_first_and_the_data_begins_at_a_multiple_of_8(tmp_path: Path) -> None:
    tensors = {"half": np.zeros(3, np.float16), "id": np.arange(2), "one": np.zeros(1, np.float32)}
    written(tmp_path / "x", tensors, list(tensors))
    data = (tmp_path / "x").read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header = json.loads(data[8 : 8 + length])
    assert [name for name in header if name != "__metadata__"] == ["id", "one", "half"]
    assert header["half"]["data_offsets"] == [20, 26]
    assert len(data) == 8 + length + 26


def test_views_that_are_not_contiguous_are_written_in_the_order_of_their_axes(
    tmp_path: Path,
) -> None:
    turned = np.arange(6, dtype=np.float64).reshape(2, 3).T
    written(tmp_path / "x", {"t": turned}, ["t"])
    assert load_numpy(tmp_path / "x")["t"].tolist() == turned.tolist()


def test_a_tensor_of_another_form_or_none_at_all_is_not_passed_over(tmp_path: Path) -> None:
    about = {"a": Form(np.dtype(np.float32), (2,)), "b": Form(np.dtype(np.float32), (1,))}
    with TensorFile(tmp_path / "x", about, {}) as file:
        with pytest.raises(ValueError, match="a: float64"):
            file.put("a", np.zeros(2))
        file.put("a", np.zeros(2, np.float32))
        with pytest.raises(ValueError, match="never written: b"):
            file.finish()

"""Claims that are arrays: mappings, npz, safetensors and saved traces."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

import byhand
from byhand.checking.claims import Entry, Sheet
from byhand.checking.readers import read_claims
from byhand.errors import InputError

HALVES = np.asarray([[0.5, -1.5], [2.0, 0.25]])


def entry(sheet: Sheet, name: str) -> Entry:
    return next(each for each in sheet.entries if each.name == name)


# ------------------------------------------------------------------ mappings


@pytest.mark.parametrize(
    ("value", "format"),
    [
        (HALVES, "float64"),
        (HALVES.astype(np.float32), "float32"),
        (HALVES.astype(np.float16), "float16"),
        (HALVES.astype(ml_dtypes.bfloat16), "bfloat16"),
        (HALVES.astype(">f4"), "float32"),
        (HALVES.tolist(), "float64"),
        (torch.tensor(HALVES), "float64"),
        (torch.tensor(HALVES, dtype=torch.float32, requires_grad=True), "float32"),
        (torch.tensor(HALVES, dtype=torch.bfloat16), "bfloat16"),
        (torch.tensor(HALVES, dtype=torch.float16), "float16"),
        ((torch.tensor(HALVES), None), "float64"),  # what a module of transformers gives
        ([[1, 2], [3, 4]], "int64"),
    ],
)
def test_an_array_keeps_its_format(value: Any, format: str) -> None:
    found = entry(read_claims({"logits": value}), "logits")
    assert found.format == format
    if format != "int64":
        assert found.values.astype(np.float64).tolist() == HALVES.tolist()
    assert found.slack == 0.0


def test_text_in_a_list_makes_it_handwriting() -> None:
    found = entry(read_claims({"logits": [["0.30", None], ["1/3", 0.1]]}), "logits")
    assert found.format is None
    assert found.values.tolist() == [[0.3, 0.0], [1 / 3, 0.1]]
    slack = np.asarray(found.slack)
    assert slack[0, 0] == pytest.approx(0.005)
    assert slack[1, 1] == 0  # a float of Python is what it is
    assert found.claimed is not None
    assert found.claimed.tolist() == [[True, False], [True, True]]


def test_masked_entries_of_an_array_are_not_claimed() -> None:
    found = entry(read_claims({"x": np.ma.masked_array(HALVES, HALVES < 0)}), "x")
    assert found.claimed is not None
    assert found.claimed.tolist() == [[True, False], [True, True]]


def test_ids_mask_and_text_are_the_heading() -> None:
    sheet = read_claims(
        {
            "text": "a b", "target": "c", "precision": "bfloat16", "name": "port",
            "input_ids": [[0, 1, 2]], "attention_mask": torch.tensor([[0, 1, 1]]),
            "position_ids": np.asarray([[0, 0, 1]]), "logits": HALVES,
        }
    )  # fmt: skip
    assert (sheet.text, sheet.target, sheet.label) == ("a b", "c", "port")
    assert sheet.precision == "bfloat16"
    assert sheet.tokens is not None
    assert sheet.tokens.tolist() == [[0, 1, 2]]
    assert sheet.mask is not None
    assert sheet.mask.tolist() == [[False, True, True]]
    assert [each.name for each in sheet.entries] == ["logits"]


def test_the_id_of_padding_tells_the_mask() -> None:
    ids = [[9, 9, 3, 9, 4], [5, 6, 9, 9, 9]]
    sheet = read_claims({"input_ids": ids, "pad_token_id": 9, "logits": HALVES})
    assert sheet.mask is not None
    assert sheet.mask.tolist() == [[False, False, True, True, True], [True, True] + [False] * 3]


def looped() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({}, "there are no claims"),
        ({"text": "a b"}, "there are no claims"),
        ({3: HALVES}, "a name is not text"),
        ({"x": object()}, "an array of objects is not read"),
        ({"x": np.asarray([object()])}, "an array of objects is not read"),
        ({"x": [[1.0, 2.0], [3.0]]}, "this is not an array"),
        ({"x": looped()}, "nested more than"),
        ({"x": ["nan"]}, "nan is not a number"),
        ({"x": ["1", ["2"]]}, "the rows have different lengths"),
        ({"input_ids": [0.5], "x": HALVES}, "whole numbers"),
        ({"input_ids": np.zeros((2, 2, 2), int), "x": HALVES}, "in one row or a batch"),
        ({"input_ids": [[1, 2]], "attention_mask": [1, 1, 1], "x": HALVES}, "different shapes"),
        ({"input_ids": [[1, 2]], "attention_mask": [[1, 7]], "x": HALVES}, "than 0 and 1"),
    ],
)
def test_a_mapping_of_something_else_is_refused(claims: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_claims(claims)
    assert says in str(caught.value)


def test_numbers_that_are_not_read_are_listed_not_refused() -> None:
    found = entry(read_claims({"freqs_cis": np.asarray([1j]), "x": HALVES}), "freqs_cis")
    assert found.problem is not None
    assert "complex128" in found.problem


# ------------------------------------------------------------------ npz


def test_an_npz_is_read_with_its_formats(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "dump.npz",
        logits=HALVES.astype(np.float32),
        half=HALVES.astype(ml_dtypes.bfloat16),
        turned=np.asfortranarray(HALVES),
        input_ids=np.asarray([0, 1]),
        text="a b",
    )
    sheet = read_claims(tmp_path / "dump.npz")
    assert entry(sheet, "logits").format == "float32"
    assert entry(sheet, "half").format == "bfloat16"
    for name in ("logits", "half", "turned"):
        assert entry(sheet, name).values.astype(np.float64).tolist() == HALVES.tolist()
    assert sheet.tokens is not None
    assert sheet.text == "a b"
    assert entry(sheet, "logits").source.endswith("dump.npz: logits")


def npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def zipped(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "says"),
    [
        ([], "there are no claims"),
        ([("x.npy", npy(np.asarray([{}], dtype=object)))], "an array of objects is not read"),
        ([("x.npy", npy(HALVES)[:-8])], "the array ends before its last number"),
        ([("x.npy", b"\x93NUMPY")], "not a whole npz file"),
        ([("x.npy", b"")], "not a whole npz file"),
        ([("x.txt", b"hello")], "this is not an array"),
        ([("x.npy", npy(HALVES)), ("x.npy", npy(HALVES))], "a name is in the file twice"),
        (
            [("x.npy", npy(HALVES).replace(b"(2, 2), }", b"(2000000000, 2000000000), }"))],
            "the array ends before its last number",
        ),
        ([("x.npy", npy(HALVES).replace(b"(2, 2), ", b"(-1, 2),"))], "less than nothing"),
    ],
)
def test_a_broken_npz_is_refused(
    tmp_path: Path, members: list[tuple[str, bytes]], says: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_claims(zipped(tmp_path / "dump.npz", members))
    assert says in str(caught.value)
    assert "dump.npz" in str(caught.value)


def test_a_header_that_lies_about_the_size_takes_no_room(tmp_path: Path) -> None:
    raw = npy(np.zeros((111111111, 0))).replace(b"(111111111, 0)", b"(111111111, 9)")
    with pytest.raises(InputError, match="the array ends before its last number"):
        read_claims(zipped(tmp_path / "dump.npz", [("x.npy", raw)]))


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.npz"
    path.write_bytes(b"not a zip at all")
    with pytest.raises(InputError, match="not a whole npz file"):
        read_claims(path)


def test_a_zip_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from byhand.checking.readers import tensors as module

    path = tmp_path / "dump.npz"
    np.savez_compressed(path, x=np.zeros(10_000))
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="the file is too large"):
        read_claims(path)


# ------------------------------------------------------------------ safetensors


def test_safetensors_are_mapped_with_their_formats(tmp_path: Path) -> None:
    path = tmp_path / "dump.safetensors"
    tensors = {
        "logits": torch.tensor(HALVES, dtype=torch.bfloat16),
        "probs": torch.tensor(HALVES, dtype=torch.float32),
        "input_ids": torch.tensor([[0, 1]], dtype=torch.int32),
        "attention_mask": torch.tensor([[True, True]]),
        "freqs": torch.tensor([1j]),
    }
    save_torch(tensors, path, metadata={"text": "a b", "precision": "bfloat16", "other": "x"})
    sheet = read_claims(path)
    assert entry(sheet, "logits").format == "bfloat16"
    found = entry(sheet, "probs").values
    assert found.tolist() == HALVES.tolist()
    assert not found.flags.owndata  # a view of the file
    assert sheet.tokens is not None
    assert sheet.tokens.tolist() == [[0, 1]]
    assert sheet.mask is not None
    assert sheet.mask.all()
    assert (sheet.text, sheet.precision) == ("a b", "bfloat16")
    assert entry(sheet, "freqs").problem is not None


@pytest.mark.parametrize("metadata", [None, {}, {"format": "mlx"}])
def test_metadata_may_be_nothing_at_all(tmp_path: Path, metadata: object) -> None:
    """MLX writes null; ids of one byte may end anywhere, so that what follows is not aligned."""
    header = {
        "__metadata__": metadata,
        "logits": {"dtype": "F32", "shape": [1], "data_offsets": [3, 7]},
        "input_ids": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
    }
    raw = json.dumps(header).encode()
    path = tmp_path / "dump.safetensors"
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + b"\2\0\1" + np.float32(0.5).tobytes())
    sheet = read_claims(path)
    assert entry(sheet, "logits").values.tolist() == [0.5]
    assert sheet.tokens is not None
    assert sheet.tokens.tolist() == [2, 0, 1]


def test_a_broken_safetensors_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.safetensors"
    save_file({"logits": HALVES}, path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="it is truncated"):
        read_claims(path)


def test_an_empty_safetensors_file_has_no_claims(tmp_path: Path) -> None:
    path = tmp_path / "dump.safetensors"
    path.write_bytes((2).to_bytes(8, "little") + b"{}")
    with pytest.raises(InputError, match="there are no claims"):
        read_claims(path)


# ------------------------------------------------------------------ saved traces


def test_a_saved_trace_says_its_text_and_keeps_its_format(tmp_path: Path) -> None:
    trace = byhand.trace("journey", float="float32")
    trace.save(tmp_path / "golden", names="transformer_lens")
    sheet = read_claims(tmp_path / "golden")
    assert (sheet.text, sheet.target, sheet.precision) == ("the cat sat on", "mat", None)
    assert sheet.tokens is not None
    assert sheet.tokens.tolist() == [0, 1, 2, 3]
    assert entry(sheet, "block.0.attn.q").format == "float32"  # addresses, whatever its names
    assert {"loss", "next", "logits"} <= {each.name for each in sheet.entries}
    assert not {"tokens", "target"} & {each.name for each in sheet.entries}


@pytest.mark.parametrize(
    ("asked", "slack"),
    [({"exact": True}, 1e-15), ({"digits": 6}, 1e-6), ({"decimals": 2}, 0.0051)],
)
def test_a_trace_that_is_no_floats_has_the_slack_of_its_writing(
    tmp_path: Path, asked: dict[str, Any], slack: float
) -> None:
    trace = byhand.trace("journey", **asked)
    trace.save(tmp_path / "golden")
    sheet = read_claims(tmp_path / "golden")
    assert sheet.precision == "exact"
    found = entry(sheet, "block.0.mlp.add")
    exact = np.asarray(byhand.trace("journey", float="float64")["block.0.mlp.add"].value)
    allowed = np.asarray(found.slack)
    assert np.all(allowed > 0)
    assert np.all(allowed < slack)
    if "decimals" not in asked:
        assert np.all(np.abs(found.values - exact) <= allowed + 1e-14)
    assert not any(each.name.endswith(".rad") for each in sheet.entries)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("format", "something", "not a saved trace that can be read"),
        ("version", 99, "version 99"),
        ("tokens", None, "tokens is missing"),
        ("tokens", [{"id": "x"}], "tokens is missing"),
        ("steps", [{"no": 1}], "a step without an address"),
        ("steps", [{"address": "nobody", "dtype": "float64"}], "nobody is missing"),
        ("text", 3, "text is missing"),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(
    tmp_path: Path, key: str, value: Any, says: str
) -> None:
    byhand.trace("tiny", float="float64").save(tmp_path / "golden")
    path = tmp_path / "golden" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: value}), "utf-8")
    with pytest.raises(InputError) as caught:
        read_claims(tmp_path / "golden")
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_a_manifest_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text, "utf-8")
    with pytest.raises(InputError, match="not a saved trace"):
        read_claims(tmp_path)


def test_a_folder_without_a_manifest_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a saved trace"):
        read_claims(tmp_path)

"""Safetensors files mapped into memory: real ones, broken ones, hostile ones."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save, save_file

from budgets import examples
from byhand.errors import InputError
from byhand.files import mapped
from byhand.files.mapped import open_tensors

FLOATS = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
}
AROUND = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(2), "c": np.arange(4)}
WHOLE = "this is not a whole safetensors file: "


def raw_file(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(begin: int, end: int, shape: list[Any], dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def refused(folder: Path, raw: bytes) -> InputError:
    path = folder / "w.safetensors"
    path.write_bytes(raw)
    with pytest.raises(InputError) as caught:
        open_tensors(path)
    assert caught.value.where is not None
    assert caught.value.where.startswith(str(path))
    return caught.value


# ------------------------------------------------------------------ what is whole


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_tensor_is_the_numbers_it_was_saved_with(tmp_path: Path, dtype: str) -> None:
    values = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(FLOATS[dtype])
    save_file({"x": values}, tmp_path / "w.safetensors")
    stored = open_tensors(tmp_path / "w.safetensors")["x"]
    assert (stored.dtype, stored.shape) == (dtype, (3, 4, 5))
    found = stored.array()
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()
    assert stored.finite().tobytes() == values.tobytes()


def test_arrays_are_read_only_views_of_the_file(tmp_path: Path) -> None:
    save_file(AROUND, tmp_path / "w.safetensors")
    first, second = (open_tensors(tmp_path / "w.safetensors")["a"] for _ in range(2))
    assert not first.array().flags.owndata
    assert not first.array().flags.writeable
    assert np.shares_memory(first.array(), first.array())
    assert not np.shares_memory(first.array(), second.array())


def test_opening_a_large_file_allocates_next_to_nothing(tmp_path: Path) -> None:
    path, size = tmp_path / "w.safetensors", 1 << 32
    with path.open("wb") as file:  # sparse: no disk is used
        file.write(raw_file({"x": entry(0, size, [size // 4])}))
        file.truncate(file.tell() + size)
    tracemalloc.start()
    view = open_tensors(path)["x"].array()
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert view.shape == (size // 4,)
    assert view[-1] == 0


def test_other_types_are_listed_and_refused_only_when_asked_for(tmp_path: Path) -> None:
    save_file({**AROUND, "flags": np.array([True])}, tmp_path / "w.safetensors")
    tensors = open_tensors(tmp_path / "w.safetensors")
    assert {name: stored.dtype for name, stored in tensors.items()} == {
        "a": "F32", "b": "F64", "c": "I64", "flags": "BOOL",
    }  # fmt: skip
    with pytest.raises(InputError) as caught:
        tensors["c"].array()
    assert caught.value.where == f"{tmp_path / 'w.safetensors'}: c"
    assert (caught.value.expected, caught.value.found) == ("F64, F32, F16, BF16", "I64")


@pytest.mark.parametrize("dtype", FLOATS)
def test_data_that_is_not_aligned_is_read_all_the_same(tmp_path: Path, dtype: str) -> None:
    values = np.array([1.5, -2, 3], FLOATS[dtype])
    size = 1 + values.nbytes
    header = {"x": entry(1, size, [3], dtype), "odd": entry(0, 1, [1], "U8")}
    (tmp_path / "w").write_bytes(raw_file(header, b"\0" + values.tobytes()))
    found = open_tensors(tmp_path / "w")["x"].finite()
    assert not found.flags.owndata
    assert found.tolist() == [1.5, -2, 3]
    assert found.astype(np.float64).sum() == 2.5


def test_tensors_without_entries_and_lone_numbers_are_read(tmp_path: Path) -> None:
    header = {"none": entry(0, 0, [0, 3]), "one": entry(0, 4, []), "last": entry(4, 4, [0])}
    (tmp_path / "w").write_bytes(raw_file(header, struct.pack("<f", 0.5)))
    tensors = open_tensors(tmp_path / "w")
    assert tensors["none"].finite().shape == (0, 3)
    assert tensors["last"].finite().shape == (0,)
    assert tensors["one"].finite() == 0.5


def test_a_header_may_be_padded_and_have_metadata(tmp_path: Path) -> None:
    header = b'{"__metadata__": {"format": "pt"}, "x": ' + json.dumps(entry(0, 4, [1])).encode()
    (tmp_path / "w").write_bytes(raw_file(header + b"}   ", bytes(4)))
    assert list(open_tensors(tmp_path / "w")) == ["x"]


# ------------------------------------------------------------------ what is no number


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_not_a_number_is_found_when_a_tensor_is_used(
    tmp_path: Path, dtype: str, bad: float
) -> None:
    values = np.ones((3, 4), FLOATS[dtype])
    values[2, 1] = bad
    save_file({"fine": np.ones(2), "bad": values}, tmp_path / "w.safetensors")
    tensors = open_tensors(tmp_path / "w.safetensors")
    tensors["fine"].finite()
    with pytest.raises(InputError) as caught:
        tensors["bad"].finite()
    assert caught.value.message == "bad[2,1] is not a number"
    assert caught.value.where == str(tmp_path / "w.safetensors")
    assert (caught.value.expected, caught.value.found) == ("a finite number", str(bad))


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_largest_and_smallest_floats_are_numbers(tmp_path: Path, dtype: str) -> None:
    kind = FLOATS[dtype]
    info = ml_dtypes.finfo(kind)
    values = np.array([info.max, info.min, info.tiny, info.smallest_subnormal, 0, -0.0], kind)
    save_file({"x": values}, tmp_path / "w.safetensors")
    assert open_tensors(tmp_path / "w.safetensors")["x"].finite().tobytes() == values.tobytes()


def test_numbers_are_looked_at_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "BLOCK", 7)
    for place in (0, 6, 7, 13, 19):
        values = np.ones(20, np.float32)
        values[[place, 19]] = np.nan
        save_file({"x": values}, tmp_path / "w.safetensors")
        with pytest.raises(InputError, match=rf"x\[{place}\] is not a number"):
            open_tensors(tmp_path / "w.safetensors")["x"].finite()


def test_looking_at_numbers_takes_bounded_memory(tmp_path: Path) -> None:
    save_file({"x": np.zeros(1 << 23, np.float32)}, tmp_path / "w.safetensors")
    stored = open_tensors(tmp_path / "w.safetensors")["x"]
    tracemalloc.start()
    stored.finite()
    assert tracemalloc.get_traced_memory()[1] < 6_000_000  # of 33,554,432 bytes
    tracemalloc.stop()


# ------------------------------------------------------------------ what is broken

X = {"x": entry(0, 8, [2])}
BROKEN: dict[str, tuple[bytes, str, str, str]] = {
    "empty": (b"", "it is too short", "at least 8 bytes", "0 bytes"),
    "a short length": (b"\1\2\3", "it is too short", "at least 8 bytes", "3 bytes"),
    "a huge length": (
        b"\xff" * 8 + b"{}", "its header is too long", "a header of at most 100,000,000 bytes",
        "18,446,744,073,709,551,615 bytes"),
    "a length beyond the file": (
        raw_file(b"{}", length=5000), "it ends within its header", "at least 5,008 bytes",
        "10 bytes"),
    "truncated": (raw_file(X, bytes(7)), "it is truncated", "77 bytes", "76 bytes"),
    "too much": (
        raw_file(X, bytes(9)), "it has more data than its header", "77 bytes", "78 bytes"),
    "no JSON": (raw_file(b"{'x': 1}"), "its header is not a JSON object", '{"name": {…}, …}',
                "{'x': 1}"),
    "a list": (raw_file(b"[]"), "its header is not a JSON object", '{"name": {…}, …}', "[]"),
    "a blank first": (raw_file(b" {}"), "its header is not a JSON object", '{"name": {…}, …}',
                      " {}"),
    "no UTF-8": (raw_file(b"{\xff}"), "its header is not a JSON object", '{"name": {…}, …}',
                 "{�}"),
    "NaN": (raw_file(b'{"x": NaN}'), "its header is not a JSON object", '{"name": {…}, …}',
            '{"x": NaN}'),
    "very deep": (
        raw_file(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        "its header is not a JSON object", '{"name": {…}, …}', '{"x":' + "[" * 35),
    "twice": (
        raw_file(b'{"x": 1, "y": 2, "x": 3}'), "a name is in its header twice", "each name once",
        "x"),
    "no entry": (
        raw_file({"x": 5}), "its header is malformed", '{"dtype", "shape", "data_offsets"}', "5"),
    "no dtype": (
        raw_file({"x": {"shape": []}}), "its header is malformed", "dtype", "shape"),
    "bad metadata": (
        raw_file({"__metadata__": {"a": 1}}), "its header is malformed", "a table of texts",
        '{"a": 1}'),
    "a hole": (
        raw_file({"x": entry(0, 4, [1]), "y": entry(8, 12, [1])}, bytes(12)),
        "there is a gap between the data of its tensors", "data_offsets that begin at 4", "8"),
    "a hole at first": (
        raw_file({"x": entry(4, 8, [1])}, bytes(8)),
        "there is a gap between the data of its tensors", "data_offsets that begin at 0", "4"),
    "an overlap": (
        raw_file({"x": entry(0, 8, [2]), "y": entry(4, 12, [2])}, bytes(12)),
        "the data of its tensors overlaps", "data_offsets that begin at 8", "4"),
    "the same data twice": (
        raw_file({"x": entry(0, 8, [2]), "y": entry(0, 8, [2])}, bytes(8)),
        "the data of its tensors overlaps", "data_offsets that begin at 8", "0"),
    "another size": (
        raw_file({"x": entry(0, 8, [3])}, bytes(8)),
        "a tensor's data has another size than its shape", "12 bytes for 3 of F32", "8 bytes"),
    "half a byte": (
        raw_file({"x": entry(0, 1, [1], "F4")}, bytes(1)),
        "a tensor's data has another size than its shape", "4 bits for 1 of F4", "1 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_with_expected_and_found(tmp_path: Path, case: str) -> None:
    raw, reason, expected, found = BROKEN[case]
    error = refused(tmp_path, raw)
    assert error.message == WHOLE + reason
    assert (error.expected, error.found) == (expected, found)


@pytest.mark.parametrize(
    ("shape", "offsets"),
    [
        ([-1], [0, 4]), ([1.0], [0, 4]), ([True], [0, 4]), (["1"], [0, 4]), (1, [0, 4]),
        ([1] * 33, [0, 4]), ([2**62, 2**62], [0, 4]), ([2**63], [0, 4]), ([2**64, 0], [0, 0]),
        ([2**61, 4, 0], [0, 0]), ([1], [4, 0]), ([1], [-4, 0]), ([1], [0]), ([1], [0, 4, 4]),
        ([1], [0.0, 4.0]), ([1], [0, 2**64]), ([1], "04"), ([1], None), ([10**400], [0, 4]),
    ],
)  # fmt: skip
def test_a_hostile_entry_is_refused_and_named(tmp_path: Path, shape: Any, offsets: Any) -> None:
    header = {"x": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}
    error = refused(tmp_path, raw_file(header, bytes(4)))
    assert error.message.startswith(WHOLE)
    assert error.where == f"{tmp_path / 'w.safetensors'}: x"


@pytest.mark.parametrize("dtype", ["F128", "f32", "", None, 32, ["F32"]])
def test_an_unknown_dtype_is_refused(tmp_path: Path, dtype: Any) -> None:
    error = refused(tmp_path, raw_file({"x": entry(0, 4, [1], dtype)}, bytes(4)))
    assert error.expected is not None
    assert error.expected.startswith("a dtype of BOOL, ")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    header = b'{"\\ud800": ' + json.dumps(entry(0, 4, [1])).encode() + b"}"
    error = refused(tmp_path, raw_file(header, bytes(4)))
    assert error.expected == "a name in Unicode"
    str(error).encode("utf-8")  # can be printed


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"the file cannot be read: (Is a directory|it is not a plain file)"
    ):
        open_tensors(tmp_path)
    with pytest.raises(InputError, match="the file cannot be read: No such file or directory"):
        open_tensors(tmp_path / "none")
    with pytest.raises(InputError, match="the file cannot be read: embedded null byte"):
        open_tensors(tmp_path / "a\0b")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="the file cannot be read: it is not a plain file"):
        open_tensors(tmp_path / "pipe")


# ------------------------------------------------------------------ anything at all

SIZES = st.one_of(
    st.integers(0, 40),
    st.sampled_from([-1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 0.5, True, None]),
)
ENTRIES = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from([*mapped.BITS, "F31", 7]),
        "shape": st.lists(SIZES, max_size=3),
        "data_offsets": st.lists(SIZES, min_size=2, max_size=2),
    },
    optional={"more": st.none()},
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
HEADERS = st.dictionaries(st.text(max_size=4), ENTRIES | JSON, max_size=3)


def judged(folder: Path, raw: bytes) -> dict[str, Any] | None:
    """What byhand finds in a file, None where it refuses; and the package refuses it likewise."""
    path = folder / "w.safetensors"
    path.write_bytes(raw)
    tracemalloc.start()
    ours: dict[str, Any] | None = None
    message = ""
    try:
        ours = dict(open_tensors(path))
    except InputError as error:
        message = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
    assert all(line.isprintable() for line in message.split("\n"))
    try:
        theirs = dict(deserialize(raw))
    except SafetensorError:
        assert ours is None
        return None
    if ours is not None:
        assert ours.keys() == theirs.keys()
        for name, stored in ours.items():
            assert stored.dtype == theirs[name]["dtype"]
            assert list(stored.shape) == theirs[name]["shape"]
            if stored.floats:
                assert stored.array().tobytes() == bytes(theirs[name]["data"])
    return ours


FUZZ = settings(max_examples=examples(200), suppress_health_check=list(HealthCheck))


@FUZZ
@given(header=HEADERS, data=st.binary(max_size=40))
@example(header={"x": entry(0, 4, [1])}, data=bytes(4))
def test_any_header_is_read_as_the_package_reads_it_or_refused(
    header: Any, data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    judged(tmp_path_factory.getbasetemp(), raw_file(header, data))


@st.composite
def whole_files(draw: st.DrawFn) -> bytes:
    shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
    kinds = st.sampled_from([np.float64, np.float32, np.float16, np.int64, np.uint8])
    names = st.text(st.characters(codec="utf-8"), max_size=5).filter(lambda n: n != "__metadata__")
    tensors = draw(st.dictionaries(names, st.tuples(shapes, kinds), max_size=4))
    return save({name: np.ones(shape, kind) for name, (shape, kind) in tensors.items()})


@FUZZ
@given(raw=whole_files())
def test_every_file_the_package_writes_is_read(
    raw: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert judged(tmp_path_factory.getbasetemp(), raw) is not None


@FUZZ
@given(
    raw=whole_files(),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 3),
)
def test_a_damaged_file_is_read_as_the_package_reads_it_or_refused(
    raw: bytes,
    changes: list[tuple[int, int]],
    cut: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    damaged = bytearray(raw)
    for place, byte in changes:
        damaged[place % len(damaged)] = byte
    judged(tmp_path_factory.getbasetemp(), bytes(damaged[: len(damaged) - cut]))


@FUZZ
@given(data=st.data())
def test_what_the_package_accepts_is_accepted(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Well-formed entries in any order, of any type."""
    header: dict[str, Any] = {}
    end = 0
    for number in range(data.draw(st.integers(0, 4))):
        dtype = data.draw(st.sampled_from(list(mapped.BITS)))
        shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
        bits = mapped.BITS[dtype] * int(np.prod(shape, dtype=np.int64))
        header[f"t{number}"] = entry(end, end + (bits + 7) // 8, shape, dtype)
        end += (bits + 7) // 8
    order = data.draw(st.permutations(list(header)))
    raw = raw_file({name: header[name] for name in order}, bytes(end))
    ours = judged(tmp_path_factory.getbasetemp(), raw)
    try:
        deserialize(raw)
    except SafetensorError:
        return
    assert ours is not None

"""GGUF files mapped into memory: whole ones, parts of one, broken and hostile ones."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from byhand.errors import InputError
from byhand.files.gguf import open_gguf
from oracles.gguf_files import NUMBERS, floats, head, packed, setting, tensor, text, whole

SETTINGS: dict[str, Any] = {
    "general.architecture": "llama", "a.count": 7, "a.eps": 0.5, "a.flag": True,
    "a.words": ["x", "ÿ", ""], "a.scores": np.array([0.5, -1.0], "<f4"),
}  # fmt: skip
TENSORS = {
    "x": floats([[1.0, -2.0, 0.5], [4.0, 8.0, 0.25]]),
    "y": packed("Q8_0", (2, 64), seed=0),
    "z": packed("Q4_K", (1, 256), seed=1),
}
WHOLE = whole(SETTINGS, TENSORS)


def written(folder: Path, raw: bytes, name: str = "m.gguf") -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


def opened(path: Path) -> None:
    for each in open_gguf(path).tensors.values():
        each.array()


def refused(folder: Path, raw: bytes) -> InputError:
    path = written(folder, raw)
    with pytest.raises(InputError) as caught:
        opened(path)
    assert caught.value.where is not None
    assert caught.value.where.startswith(str(path))
    return caught.value


@pytest.mark.parametrize("version", [2, 3])
def test_settings_and_tensors_are_those_that_were_written(tmp_path: Path, version: int) -> None:
    found = open_gguf(written(tmp_path, whole(SETTINGS, TENSORS, version=version)))
    assert list(found.settings) == list(SETTINGS)
    assert found.settings["a.scores"].tolist() == [0.5, -1.0]
    assert {name: found.settings[name] for name in SETTINGS if name != "a.scores"} == {
        name: value for name, value in SETTINGS.items() if name != "a.scores"
    }
    assert {name: (each.type.name, each.shape) for name, each in found.tensors.items()} == {
        "x": ("F32", (2, 3)), "y": ("Q8_0", (2, 64)), "z": ("Q4_K", (1, 256)),
    }  # fmt: skip
    assert found.tensors["x"].array().tolist() == [[1.0, -2.0, 0.5], [4.0, 8.0, 0.25]]
    assert found.tensors["y"].bits == Fraction(17, 2)
    assert found.tensors["z"].bits == Fraction(9, 2)
    assert found.tensors["z"].array().dtype == np.float64


def test_plain_floats_of_every_width_are_read_as_they_are(tmp_path: Path) -> None:
    values = [1.0, -0.5, 3.0]
    tensors = {
        "h": ("F16", (3,), np.array(values, "<f2").tobytes()),
        "b": ("BF16", (3,), np.array(values, ml_dtypes.bfloat16).tobytes()),
        "d": ("F64", (3,), np.array([0.1, 0.2, 0.3], "<f8").tobytes()),
    }
    found = open_gguf(written(tmp_path, whole({}, tensors))).tensors
    assert found["h"].array().tolist() == found["b"].array().tolist() == values
    assert found["d"].array().tolist() == [0.1, 0.2, 0.3]
    assert [found[name].bits for name in "hbd"] == [16, 16, 64]


def test_the_numbers_of_a_long_tensor_are_unpacked_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = packed("Q5_1", (6, 32), seed=3)
    path = written(tmp_path, whole({}, {"w": stored}))
    at_once = open_gguf(path).tensors["w"].array()
    monkeypatch.setattr("byhand.files.gguf._READ_AT_A_TIME", 64)
    assert np.array_equal(open_gguf(path).tensors["w"].array(), at_once)
    assert np.any(at_once)


def test_all_parts_of_a_model_are_opened_whichever_is_named(tmp_path: Path) -> None:
    for number, name in enumerate(TENSORS):
        settings = {"split.no": number, "split.count": 3}
        raw = whole(settings | {"a": 1} if number == 0 else settings, {name: TENSORS[name]})
        written(tmp_path, raw, f"m-{number + 1:05}-of-00003.gguf")
    for number in (1, 3):
        found = open_gguf(tmp_path / f"m-{number:05}-of-00003.gguf")
        assert list(found.tensors) == ["x", "y", "z"]
        assert found.settings["a"] == 1
    (tmp_path / "m-00002-of-00003.gguf").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        open_gguf(tmp_path / "m-00001-of-00003.gguf")


def test_a_part_that_is_another_one_is_refused(tmp_path: Path) -> None:
    for number, claimed in ((1, 0), (2, 0)):
        raw = whole({"split.no": claimed, "split.count": 2}, {str(number): floats([1.0])})
        written(tmp_path, raw, f"m-{number:05}-of-00002.gguf")
    with pytest.raises(InputError, match="it is another part"):
        open_gguf(tmp_path / "m-00001-of-00002.gguf")
    lonely = written(tmp_path, whole({"split.no": 0, "split.count": 2}, {"x": floats([1.0])}))
    with pytest.raises(InputError, match="its name does not tell the others'"):
        open_gguf(lonely)


# ------------------------------------------------------------------ what is broken

HUGE = 1 << 62
ONE = floats([1.0, 2.0])
BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "too short"),
    "another magic": (head(0, 0, magic=b"GGML") + bytes(64), "begins with something else"),
    "version 1": (head(0, 0, 1) + bytes(64), "does not read its version"),
    "big endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(64), "version"),
    "too many settings": (head(0, HUGE) + bytes(64), "promises more than it holds"),
    "too many tensors": (head(HUGE, 0) + bytes(64), "promises more than it holds"),
    "a long name": (head(0, 1) + struct.pack("<Q", HUGE) + bytes(64), "more than it holds"),
    "a setting twice": (head(0, 2) + setting("a", 1) * 2 + bytes(64), "twice"),
    "not Unicode": (head(0, 1) + setting(b"\xff\xfe", 1) + bytes(64), "not Unicode"),
    "a word that is not": (head(0, 1) + setting("a", b"\xc3\x28") + bytes(64), "not Unicode"),
    "an unknown kind": (head(0, 1) + text("a") + struct.pack("<I", 13) + bytes(64), "unknown"),
    "a long array": (
        head(0, 1) + text("a") + struct.pack("<IIQ", 9, 4, HUGE) + bytes(64), "more than it holds"),
    "many empty words": (
        head(0, 1) + text("a") + struct.pack("<IIQ", 9, 8, 1 << 20) + bytes(64), "more than it"),
    "nested arrays": (
        head(0, 1) + text("a") + struct.pack("<IIQIQ", 9, 9, 1, 9, 1) * 40, "unknown type"),
    "a tensor twice": (
        head(2, 0) + tensor("a", 0, [1], 0) * 2 + bytes(128), "twice"),
    "no side": (head(1, 0) + tensor("a", 0, [], 0) + bytes(64), "malformed"),
    "five sides": (head(1, 0) + tensor("a", 0, [1] * 5, 0) + bytes(64), "malformed"),
    "a side of 0": (head(1, 0) + tensor("a", 0, [4, 0], 0) + bytes(64), "malformed"),
    "a negative side": (head(1, 0) + tensor("a", 0, [(1 << 64) - 4], 0) + bytes(64), "malformed"),
    "an overflow": (head(1, 0) + tensor("a", 0, [1 << 32] * 4, 0) + bytes(64), "malformed"),
    "half a block": (head(1, 0) + tensor("a", 8, [2, 48], 0) + bytes(256), "malformed"),
    "an unread type": (head(1, 0) + tensor("a", 40, [256], 0) + bytes(256), "type of a"),
    "no such type": (head(1, 0) + tensor("a", 999, [256], 0) + bytes(256), "type of a"),
    "misaligned": (head(1, 0) + tensor("a", 0, [2], 4) + bytes(256), "malformed"),
    "beyond the end": (head(1, 0) + tensor("a", 0, [2], 1 << 40) + bytes(256), "truncated"),
    "overlapping": (
        head(2, 0) + tensor("a", 0, [64], 0) + tensor("b", 0, [2], 32) + bytes(512), "overlaps"),
    "a strange alignment": (whole({"general.alignment": 24}, {"x": ONE}), "malformed"),
    "no alignment": (whole({"general.alignment": "wide"}, {"x": ONE}), "malformed"),
    "an infinite number": (whole({}, {"x": floats([1.0, np.inf])}), "x[1] is not a number"),
    "an infinite scale": (
        whole({}, {"x": ("Q8_0", (1, 32), b"\x00\x7c" + bytes([1] * 32))}), "x[0,0] is not a"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_a_reason(tmp_path: Path, name: str) -> None:
    raw, reason = BROKEN[name]
    assert reason in refused(tmp_path, raw).message


def test_an_unread_type_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path, BROKEN["an unread type"][0]).found == "NVFP4"


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    for length in range(0, len(WHOLE) - 31, 13):
        refused(tmp_path, WHOLE[:length])


@pytest.mark.parametrize("seed", range(10))
def test_a_mutated_file_gives_only_our_errors_and_takes_little_memory(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    tracemalloc.start()
    for _each in range(60):
        raw = bytearray(WHOLE)
        for _flip in range(chance.randrange(1, 6)):
            at = chance.randrange(len(raw) if chance.random() < 0.3 else 420)
            size = chance.choice((1, 1, 4, 8))
            extreme = chance.choice((0, 1, (1 << 8 * size) - 1, 1 << (8 * size - 1)))
            value = chance.choice((extreme, chance.randrange(1 << 8 * size)))
            raw[at : at + size] = value.to_bytes(size, "little")
        path = written(tmp_path, bytes(raw))
        with contextlib.suppress(InputError):
            opened(path)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


def test_every_number_of_a_type_in_these_tests_is_the_file_formats() -> None:
    from byhand.files.ggml import TYPES

    assert all(TYPES[number].name == name for name, number in NUMBERS.items())

"""The C program of the docs: it compiles without a warning, agrees, and can say no."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

import byhand
from byhand.evaluate import prepare
from byhand.files.mapped import open_tensors
from byhand.files.tensor_file import Form, TensorFile
from byhand.golden import save_working
from byhand.golden.reading import SHIPPED
from byhand.numbers.floats import Floats

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "docs" / "golden" / "check_softmax.c"
CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("c") / "check_softmax"
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run([str(CC), *flags, "-o", built, SOURCE, "-lm"], check=True)
    return built


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """minigpt-init in float32."""
    folder = tmp_path_factory.mktemp("golden") / "minigpt"
    save_working(prepare(byhand.open_model("minigpt-init"), None, Floats("float32")), folder)
    return folder


def check(program: Path, folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, folder, *names], capture_output=True, text=True, errors="replace", check=False
    )


@pytest.mark.parametrize(("model", "rows"), [("tiny", "2 rows of 2"), ("journey", "4 rows of 4")])
def test_exact_files_agree(program: Path, tmp_path: Path, model: str, rows: str) -> None:
    byhand.trace(model).save(tmp_path / "g")
    done = check(program, tmp_path / "g")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{rows} are the softmax of their scores\nlargest difference ")


def test_the_shipped_file_agrees(program: Path) -> None:
    for layer in (0, 1):
        names = (f"block.{layer}.attn.scores", f"block.{layer}.attn.weights")
        assert check(program, SHIPPED / "minigpt-init", *names).returncode == 0


def test_float32_agrees_in_attention_and_in_the_vocabulary(program: Path, golden: Path) -> None:
    done = check(program, golden)
    assert done.returncode == 0
    assert done.stdout.startswith("32 rows of 8 ")
    assert check(program, golden, "logits", "probs").stdout.startswith("8 rows of 64 ")


def changed(golden: Path, folder: Path, place: tuple[int, ...], factor: float) -> Path:
    """The golden file with one weight changed."""
    stored = open_tensors(golden / "values.safetensors")
    names = ("block.0.attn.scores", "block.0.attn.weights")
    arrays = {name: np.array(stored[name].array()) for name in names}
    arrays[names[1]][place] *= factor
    folder.mkdir()
    forms = {name: Form(array.dtype, array.shape) for name, array in arrays.items()}
    with TensorFile(folder / "values.safetensors", forms, {}) as file:
        for name, array in arrays.items():
            file.put(name, array)
        file.finish()
    return folder


def test_a_weight_that_is_wrong_in_the_fifth_digit_is_found(
    program: Path, golden: Path, tmp_path: Path
) -> None:
    assert check(program, changed(golden, tmp_path / "same", (1, 5, 2), 1.0)).returncode == 0
    done = check(program, changed(golden, tmp_path / "wrong", (1, 5, 2), 1.00001))
    assert done.returncode == 1
    assert done.stdout.startswith("row 13, key 2: the weight is ")
    done = check(program, changed(golden, tmp_path / "broken", (3, 7, 0), np.nan))
    assert (done.returncode, done.stdout[:23]) == (1, "row 31, key 0: the weig")


def test_steps_that_are_not_a_softmax_of_each_other_fail(program: Path, golden: Path) -> None:
    assert check(program, golden, "block.0.attn.scores", "block.1.attn.weights").returncode == 1


REFUSED = [
    (("logits",), "check_softmax FOLDER"),
    (("logits", "block.0.attn.q"), "different shapes"),
    (("tokens", "next"), "tokens is I64; F64 or F32 can be checked"),
    (("nothing", "probs"), "there is no tensor nothing"),
    (("__metadata__", "probs"), "there is no tensor __metadata__"),
]


@pytest.mark.parametrize(("names", "message"), REFUSED, ids=lambda x: str(x))
def test_what_cannot_be_checked_is_refused(
    program: Path, golden: Path, names: tuple[str, ...], message: str
) -> None:
    done = check(program, golden, *names)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


HEADERS = {
    "": "no {",
    "[]": "no {",
    "{": 'no "',
    '{"a': "the header ends within a text",
    '{"a\\': "the header ends within a text",
    '{"a": 3}': "no {",
    '{"a": {"dtype": "F64"}} {': "goes on after its end",
    '{"a": {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]}}': "no whole number",
    '{"a": {"shape": [99999999999999999999999]}}': "too large",
    '{"a": {"shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]}}': "too many numbers in shape",
    '{"a": {"data_offsets": [0, 8, 8]}}': "too many numbers in data_offsets",
    '{"s": {"dtype": "F64", "shape": [1], "data_offsets": [0, 16]}}': "another size",
    '{"s": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}': "outside the file",
    '{"s": {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]}}': "outside the file",
    '{"s": {"dtype": "F64", "shape": [0, 9], "data_offsets": [0, 0]}}': "another size",
    '{"s": {"dtype": "F64", "shape": [4294967296, 4294967296, 1], "data_offsets": [0, 8]}}':
        "another size",
    '{"s": {"dtype": "F64", "data_offsets": [0, 8]}}': "different shapes",
}  # fmt: skip


@pytest.mark.parametrize(("header", "message"), HEADERS.items())
def test_a_hostile_header_is_refused(
    program: Path, tmp_path: Path, header: str, message: str
) -> None:
    text = header.encode()
    data = len(text).to_bytes(8, "little") + text + bytes(16)
    (tmp_path / "values.safetensors").write_bytes(data)
    done = check(program, tmp_path, "s", "s")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("data", [b"", b"1234567", b"\xff" * 40, b"\x30" + bytes(20)])
def test_a_file_that_ends_too_soon_is_refused(program: Path, tmp_path: Path, data: bytes) -> None:
    assert check(program, tmp_path).returncode == 2
    (tmp_path / "values.safetensors").write_bytes(data)
    assert check(program, tmp_path).returncode == 2


def test_whatever_is_changed_or_cut_off_it_ends_with_an_answer(
    program: Path, tmp_path: Path
) -> None:
    byhand.trace("tiny").save(tmp_path / "g")
    path, chance = tmp_path / "g" / "values.safetensors", Random(1)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    assert json.loads(whole[8 : 8 + length])
    answers = set()
    for _trial in range(200):
        data = bytearray(whole[: chance.choice((len(whole), chance.randrange(1, len(whole))))])
        for _change in range(chance.randrange(4)):
            data[chance.randrange(min(len(data), 8 + length))] = chance.randrange(256)
        path.write_bytes(data)
        answers.add(check(program, tmp_path / "g").returncode)
    assert answers <= {0, 1, 2}  # killed by a signal, it would be negative
    assert answers >= {0, 2}


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "golden-files.md").read_text("utf-8")
    (block,) = re.findall(r"```console\n(\$ byhand.*?)```", page, re.DOTALL)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    here = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for lines in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *expected = lines.splitlines()
        done = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env=os.environ | here,
            capture_output=True,
            text=True,
            check=True,
        )
        found = done.stdout.splitlines()
        assert found[:1] == expected[:1]
        assert [line[:18] for line in found[1:]] == [line[:18] for line in expected[1:]]

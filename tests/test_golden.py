"""Golden files: what is saved is what was worked out, and a folder is whole or not there."""

from __future__ import annotations

import errno
import json
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

import byhand
from byhand.errors import AddressError, InputError, OutputError
from byhand.expression import parse
from byhand.golden import writing
from byhand.numbers.base import nearest_float
from byhand.numbers.exact import Exact


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    byhand.trace("tiny", "a b", target="b").save(tmp_path / "golden")
    return tmp_path / "golden"


# ------------------------------------------------------------------ there and back


def test_a_saved_trace_reads_back(folder: Path) -> None:
    saved = byhand.open_trace(folder)
    assert (saved.model, saved.numbers, saved.text) == ("tiny", "exact", "a b")
    assert saved.tokens == (0, 1)
    assert list(saved) == list(byhand.trace("tiny", "a b", target="b").steps)
    assert saved["logits"].values.tolist() == [[1, -1, 0], [1, -1, 0]]
    assert saved["stream.1"] is saved["block.0.mlp.norm.out"]
    assert saved["block.0.attn.scores[0,1,1]"] == 2
    assert saved.exact("block.0.attn.weights[0,1,1]") == "e/(1 + e)"
    assert saved.exact("logits") == [["1", "-1", "0"], ["1", "-1", "0"]]
    assert saved.next is not None
    assert saved.next[1]["token"] == "a"
    assert saved.loss is not None
    assert saved.loss["value"] == "ln(1 + e + e^2)"
    assert "31 steps" not in repr(saved)
    assert repr(saved["logits"]) == "<logits 2×3 exact>"


def test_masked_scores_are_minus_infinity_and_masked_weights_zero(folder: Path) -> None:
    saved = byhand.open_trace(folder)
    assert saved["block.0.attn.scores"].values.tolist() == [[[1, -np.inf], [1, 2]]]
    assert saved["block.0.attn.weights"].values[0, 0].tolist() == [1, 0]
    assert saved["tokens"].values.dtype == np.int64
    assert saved["next"].values.tolist() == [0, 0]


def test_every_float_is_the_nearest_to_its_value(tmp_path: Path) -> None:
    trace = byhand.trace("journey")
    trace.save(tmp_path / "j")
    saved = byhand.open_trace(tmp_path / "j")
    for worked in trace.values():
        for index, entry in worked.entries():
            if entry is not None:
                found = saved[worked.address].values[index]
                below, above = np.nextafter(found, -np.inf), np.nextafter(found, np.inf)
                low = (Fraction(float(below)) + Fraction(float(found))) / 2
                high = (Fraction(float(above)) + Fraction(float(found))) / 2
                assert low <= entry <= high


def test_the_tensors_can_be_read_without_a_library(folder: Path) -> None:
    data = (folder / "values.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    about = header["logits"]
    assert (about["dtype"], about["shape"]) == ("F64", [2, 3])
    start, stop = (8 + length + offset for offset in about["data_offsets"])
    assert struct.unpack("<6d", data[start:stop]) == (1, -1, 0, 1, -1, 0)


def test_a_step_that_was_not_worked_out_has_no_tensor(tmp_path: Path) -> None:
    byhand.trace("abc-walkthrough").save(tmp_path / "abc")
    saved = byhand.open_trace(tmp_path / "abc")
    assert saved["logits"].values is None
    with pytest.raises(AddressError, match="logits was not worked out"):
        saved["logits[0]"]
    with pytest.raises(AddressError, match="logits was not worked out"):
        saved.exact("logits[0]")
    assert saved.exact("logits") is None
    assert saved["stream.0[0,0]"] == 0.8828
    with pytest.raises(AddressError, match="did you mean logits"):
        saved["logit"]


def test_pencil_values_are_saved_as_they_were_rounded(tmp_path: Path) -> None:
    byhand.trace("tiny", "a b", decimals=2).save(tmp_path / "p")
    saved = byhand.open_trace(tmp_path / "p")
    assert saved["block.0.attn.weights"].values[0, 1].tolist() == [0.27, 0.73]


# ------------------------------------------------------------------ the nearest float


@given(st.fractions(max_denominator=10**30))
def test_the_nearest_float_of_a_rational_is_pythons(value: Fraction) -> None:
    assert nearest_float(Exact().value(value)) == float(value)
    assert nearest_float(value) == float(value)


@pytest.mark.parametrize(
    "text",
    ["e", "-e", "√2", "exp(-700)", "exp(700)", "exp(-745)", "10^20 + e", "1/3 + exp(-60)", "π^9"],
)
def test_the_nearest_float_of_a_named_value_is_that_of_a_ball_of_400_bits(text: str) -> None:
    value = Exact().scalar(parse(text))
    before, ctx.prec = ctx.prec, 400
    try:
        ball = value.ball(400)
        middle = ball.mid()
        mantissa, exponent = middle.man_exp()
        expected = float(Fraction(int(mantissa)) * Fraction(2) ** int(exponent))
        assert isinstance(ball, arb)
    finally:
        ctx.prec = before
    assert nearest_float(value) == expected


def test_a_value_beside_the_middle_of_two_floats_goes_to_its_own_side() -> None:
    above = Exact().scalar(parse("1 + 2^-53 + exp(-60)"))
    below = Exact().scalar(parse("1 + 2^-53 - exp(-60)"))
    assert nearest_float(above) == 1 + 2**-52
    assert nearest_float(below) == 1


def test_beyond_the_range_of_floats_is_infinite() -> None:
    assert nearest_float(Exact().scalar(parse("-exp(1000)"))) == -np.inf
    assert nearest_float(Exact().scalar(parse("exp(-1000)"))) == 0


def test_towers_of_powers_are_infinite_or_nothing_in_floats() -> None:
    """Their digits alone would not fit into any memory."""
    space = Exact().space
    tower = space.exp(space.exp(space.value(80)))
    assert nearest_float(tower) == np.inf
    assert nearest_float(-tower) == -np.inf
    assert nearest_float(1 / tower) == 0
    assert nearest_float(tower / (1 + tower)) == 1


# ------------------------------------------------------------------ whole or not at all


def test_an_older_trace_is_replaced_and_nothing_else_is_left(folder: Path) -> None:
    byhand.trace("tiny", "c").save(folder)
    assert byhand.open_trace(folder).text == "c"
    assert [path.name for path in folder.parent.iterdir()] == ["golden"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "exact.json",
        "manifest.json",
        "values.safetensors",
    ]


def test_a_link_to_a_trace_stays_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    byhand.trace("tiny", "c").save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert byhand.open_trace(folder).text == "c"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["golden", "link"]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    byhand.trace("tiny", "a").save(tmp_path / "new")
    assert byhand.open_trace(tmp_path / "new").text == "a"


@pytest.mark.parametrize("what", ["folder", "file", "other manifest"])
def test_what_is_not_a_trace_is_not_touched(tmp_path: Path, what: str) -> None:
    target = tmp_path / "mine"
    if what == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "manifest.json").write_text('{"format": "mine"}' if "other" in what else "mine")
    with pytest.raises(OutputError, match="it is not a saved trace"):
        byhand.trace("tiny", "a").save(target)
    kept = target if what == "file" else target / "manifest.json"
    assert "mine" in kept.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "stopped_by", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()]
)
def test_a_full_disk_or_an_interruption_leaves_the_old_trace_and_no_draft(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stopped_by: BaseException
) -> None:
    def write(path: Path, data: bytes) -> None:
        path.write_bytes(data[:10])
        raise stopped_by

    monkeypatch.setattr(writing, "write_bytes", write)
    expected: type[BaseException] = (
        OutputError if isinstance(stopped_by, OSError) else KeyboardInterrupt
    )
    with pytest.raises(expected):
        byhand.trace("tiny", "c").save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["golden"]
    assert byhand.open_trace(folder).text == "a b"


def test_a_rename_that_fails_puts_the_old_trace_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def refuse(self: Path, target: Any) -> Path:
        if Path(target) == folder and not self.name.endswith(".old"):
            raise OSError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OutputError, match="cannot be written"):
        byhand.trace("tiny", "c").save(folder)
    assert byhand.open_trace(folder).text == "a b"
    assert [path.name for path in folder.parent.iterdir()] == ["golden"]


def test_a_place_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError) as caught:
        byhand.trace("tiny", "a").save(tmp_path / "file" / "below")
    assert caught.value.message == "cannot be written"
    assert caught.value.exit_status == 2


# ------------------------------------------------------------------ what is no trace


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (None, "this is not a saved trace"),
        ("{", "this is not a saved trace"),
        ("[]", "this is not a saved trace"),
        ("{}", "this is not a saved trace"),
        ('{"format": "other"}', "this is not a saved trace that can be read"),
        ('{"format": "byhand trace", "version": 99}', "this is not a saved trace that can be read"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, manifest: str | None, message: str) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError) as caught:
        byhand.open_trace(tmp_path)
    assert caught.value.message == message


def test_a_broken_tensor_file_is_an_input_error(folder: Path) -> None:
    (folder / "values.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(InputError, match="this is not a whole safetensors file"):
        byhand.open_trace(folder)["logits[0]"]


def test_a_truncated_tensor_file_is_an_input_error(folder: Path) -> None:
    path = folder / "values.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="it is truncated"):
        byhand.open_trace(folder)["tokens"].values  # noqa: B018


def test_numbers_of_another_trace_are_an_input_error(folder: Path, tmp_path: Path) -> None:
    byhand.trace("tiny", "c", target="b").save(tmp_path / "other")
    (tmp_path / "other" / "values.safetensors").replace(folder / "values.safetensors")
    with pytest.raises(InputError) as caught:
        byhand.open_trace(folder)["logits[0]"]
    assert caught.value.message == "the numbers are not those of the manifest"
    assert caught.value.expected == "float64 [2, 3]"
    assert caught.value.found == "float64 [1, 3]"


BROKEN: list[tuple[tuple[Any, ...], Any]] = [
    (("model",), 3),
    (("tokens",), None),
    (("tokens", 0), 7),
    (("tokens", 0, "id"), "x"),
    (("steps",), {}),
    (("steps", 1), []),
    (("steps", 1, "address"), None),
    (("steps", 1, "shape"), [-1, 2]),
    (("steps", 1, "shape"), ["2", 2]),
    (("steps", 1, "reads"), [3]),
    (("steps", 1, "dtype"), 8),
    (("next",), 3),
    (("aliases",), []),
    (("aliases", "stream.0"), 3),
    (("names",), 3),
    (("exact",), 3),
    (("steps", 1, "byhand"), 3),
]


@pytest.mark.parametrize(("path", "value"), BROKEN, ids=lambda x: str(x))
def test_a_manifest_with_something_else_in_it_is_refused(
    folder: Path, path: tuple[Any, ...], value: Any
) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    inner = manifest
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="this is not a saved trace"):
        byhand.open_trace(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"values": [], "letters": {}}'])
def test_broken_exact_values_are_an_input_error(folder: Path, text: str) -> None:
    (folder / "exact.json").write_text(text)
    with pytest.raises(InputError, match="this is not a saved trace"):
        byhand.open_trace(folder).exact("logits")


def test_exact_values_of_another_shape_are_an_input_error(folder: Path) -> None:
    exact = json.loads((folder / "exact.json").read_text())
    exact["values"]["logits"] = [["1", "2"], ["3"]]
    (folder / "exact.json").write_text(json.dumps(exact))
    with pytest.raises(InputError, match="this is not a saved trace"):
        byhand.open_trace(folder).exact("logits[1,2]")


def test_a_trace_of_an_earlier_version_is_read_as_ever(folder: Path) -> None:
    """Without the keys that came later: names, exact."""
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["names"], manifest["exact"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    saved = byhand.open_trace(folder)
    assert saved.names == "byhand"
    assert saved.exact("logits[0]").tolist() == ["1", "-1", "0"]

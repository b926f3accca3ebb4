"""Golden files written while the numbers come: the same files, in the memory of one layer."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import textwrap
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import byhand
from byhand.errors import OutputError
from byhand.evaluate import Job, prepare
from byhand.files.tensor_file import TensorFile
from byhand.golden import open_trace, save, save_working
from byhand.model import Model
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.floats.memory import BLOCK
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.parameters import parameters
from byhand.spec import BlockSpec, MlpSpec, ModelSpec, NormSpec
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights
from oracles.architectures import make_case

FORMATS = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return byhand.open_model("minigpt-init")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# ------------------------------------------------------------------ what is written


@pytest.mark.parametrize("system", [Floats, Tensors])
@pytest.mark.parametrize("format", FORMATS)
def test_it_writes_the_very_bytes_that_a_kept_trace_is_saved_as(
    tmp_path: Path, minigpt: Model, format: str, system: type[Floats | Tensors]
) -> None:
    job = prepare(minigpt, None, system(format), target="<end>", head_outputs=True)
    save_working(job, tmp_path / "streamed")
    save(job.work(), tmp_path / "kept")
    assert files(tmp_path / "streamed") == files(tmp_path / "kept")
    assert list(files(tmp_path / "kept")) == ["manifest.json", "values.safetensors"]


@pytest.mark.parametrize("format", FORMATS)
def test_values_keep_their_format(tmp_path: Path, minigpt: Model, format: str) -> None:
    job = prepare(minigpt, None, Floats(format), target="<end>")
    save_working(job, tmp_path / "g")
    trace, saved = job.work(), open_trace(tmp_path / "g")
    tensors = load_file(tmp_path / "g" / "values.safetensors")
    assert saved.numbers == format
    assert list(saved.steps) == list(trace.steps)
    for worked in trace.values():
        found = saved[worked.address]
        ids = worked.address in ("tokens", "target", "next")
        assert tensors[worked.address].dtype == (torch.int64 if ids else FORMATS[format])
        assert str(found.values.dtype) == found.dtype == ("int64" if ids else format)
        assert tensors[worked.address].tolist() == found.values.tolist()
        for index, entry in worked.entries():
            masked = -np.inf if worked.step.op == "scores" else 0
            assert found.values[index] == (masked if entry is None else entry)
    assert found.register == "rounded"
    assert saved["next"].values.tolist() == [p.id for p in trace.next or []]
    assert saved["tokens"].values.tolist() == list(trace.tokens)
    assert saved["target"].values.tolist() == trace.target == 0


def test_the_manifest_tells_the_next_token_and_the_loss(tmp_path: Path, minigpt: Model) -> None:
    job = prepare(minigpt, None, Floats("float64"), target="<end>")
    trace = save_working(job, tmp_path / "g")
    saved = open_trace(tmp_path / "g")
    assert saved.next is not None
    assert [found["token"] for found in saved.next[:3]] == ["<en>", "yesterday", "she"]
    assert saved.next[0]["proven"] is False
    assert saved.next[0]["margin"]["value"] == pytest.approx(0.0065222661)
    assert saved.loss is not None
    assert (saved.loss["target"], saved.loss["value"]) == ("<end>", trace.loss)
    assert saved.manifest["exact"] is None
    assert saved.manifest["names"] == "byhand"
    assert set(trace.steps) == {"tokens", "target", "next", "loss"}


def test_only_what_was_asked_for_is_written(tmp_path: Path, minigpt: Model) -> None:
    for place, numbers in (("floats", Floats("float32")), ("pencil", Pencil(3))):
        job = prepare(minigpt, "she climb", numbers, only=["block.0.attn.scores", "stream.0"])
        save_working(job, tmp_path / place)
        saved = open_trace(tmp_path / place)
        assert list(saved.steps) == ["embed.token", "block.0.attn.scores"]
        assert saved.manifest["aliases"] == {"stream.0": "embed.token"}
        assert saved["stream.0"].values.shape == (2, 64)
        assert saved.next is None
        assert set(load_file(tmp_path / place / "values.safetensors")) == set(saved.steps)


def test_a_place_that_is_taken_is_told_before_the_work(tmp_path: Path, minigpt: Model) -> None:
    (tmp_path / "mine").write_text("mine")
    for numbers in (Floats("float32"), Exact()):
        with pytest.raises(OutputError, match="it is not a saved trace"):
            save_working(
                prepare(minigpt, None, numbers),
                tmp_path / "mine",
                progress=stop_at("tokens", AssertionError("it began to work")),
            )


def test_steps_are_in_the_order_of_the_working_however_they_were_asked_for(
    tmp_path: Path, minigpt: Model
) -> None:
    job = prepare(minigpt, "she climb", Floats("float32"), only=["logits"], at=["embed.token"])
    save_working(job, tmp_path / "streamed")
    save(job.work(), tmp_path / "kept")
    assert list(open_trace(tmp_path / "kept").steps) == ["tokens", "embed.token", "logits"]
    assert files(tmp_path / "streamed") == files(tmp_path / "kept")


def test_what_is_to_be_kept_is_in_the_trace(tmp_path: Path, minigpt: Model) -> None:
    job = prepare(minigpt, None, Floats("float32"))
    trace = save_working(job, tmp_path / "g", keep=["block.1.attn.out"])
    assert set(trace.steps) == {"tokens", "block.1.attn.out", "next"}


def test_exact_numbers_and_decimals_are_saved_as_before(tmp_path: Path) -> None:
    for place, numbers in (("exact", Exact()), ("pencil", Pencil(2))):
        job = prepare(byhand.open_model("journey"), None, numbers)
        trace = save_working(job, tmp_path / place)
        save(trace, tmp_path / f"{place} again")
        assert files(tmp_path / place) == files(tmp_path / f"{place} again")
        assert "exact.json" in files(tmp_path / place)
        assert len(trace.steps) == len(open_trace(tmp_path / place).steps) == len(job.plan)
    assert open_trace(tmp_path / "pencil").exact("loss[0]") == "1.83"


def test_steps_that_need_an_unknown_weight_have_no_tensor(tmp_path: Path) -> None:
    job = prepare(byhand.open_model("abc-walkthrough"), None, Floats("float32"))
    save_working(job, tmp_path / "g")
    saved = open_trace(tmp_path / "g")
    assert set(load_file(tmp_path / "g" / "values.safetensors")) == {
        "tokens", "embed.token", "embed.position", "stream.0",
    }  # fmt: skip
    assert saved["logits"].values is None
    facts = {step["address"]: step for step in saved.manifest["steps"]}
    assert facts["logits"]["missing"]["kind"] == "unknown"
    assert facts["logits"]["register"] is None


@pytest.mark.parametrize("seed", range(30))
def test_every_architecture_can_be_saved_on_the_way(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    case = make_case(lambda _question, answers: chance.choice(answers), seed)
    vocabulary = Vocabulary(tuple(f"w{id}" for id in range(case.spec.vocab)))
    model = Model(case.spec, case.weights, vocabulary)
    format = list(FORMATS)[seed % 4]
    job = Job(model, case.plan(), Floats(format), "…", case.tokens, case.target)
    save_working(job, tmp_path / "streamed")
    save(job.work(), tmp_path / "kept")
    assert files(tmp_path / "streamed") == files(tmp_path / "kept")
    assert len(open_trace(tmp_path / "kept").steps) == len(job.plan)


def deep_model(layers: int, width: int) -> Model:
    block = BlockSpec(None, MlpSpec(4 * width), mlp_norm=NormSpec())
    spec = ModelSpec("deep", 8, width, None, (block,) * layers)
    shared: dict[tuple[int, ...], Any] = {}
    tensors = {}
    for parameter in parameters(spec):
        data = shared.setdefault(parameter.shape, np.full(parameter.shape, 0.01, np.float32))
        tensors[parameter.name] = Tensor(parameter.name, data)
    return Model(spec, Weights(tensors), Vocabulary(tuple("abcdefgh")))


def test_memory_stays_near_one_layer(tmp_path: Path) -> None:
    job = prepare(deep_model(layers=96, width=64), "a b c d " * 64, Floats("float32"))
    save_working(job, tmp_path / "warm")
    tracemalloc.start()
    save_working(job, tmp_path / "g")
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    layer = 4 * 256 * (2 * 4 * 64 + 6 * 64)
    assert (tmp_path / "g" / "values.safetensors").stat().st_size > 80 * layer
    assert peak < 3 * layer + 2 * BLOCK  # arrays lie together in blocks


def test_opening_a_large_file_reads_only_what_is_asked_for(tmp_path: Path) -> None:
    job = prepare(deep_model(layers=24, width=64), "a b c d " * 64, Floats("float32"))
    save_working(job, tmp_path / "g")
    open_trace(tmp_path / "g")["logits[0,0]"]
    tracemalloc.start()
    assert open_trace(tmp_path / "g")["logits[0,0]"].dtype == np.float32
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert open_trace(tmp_path / "g")["logits"].values.flags.writeable is False


# ------------------------------------------------------------------ names


def test_the_names_can_be_those_of_another_style(tmp_path: Path, minigpt: Model) -> None:
    job = prepare(minigpt, None, Floats("float32"))
    save_working(job, tmp_path / "g", names="transformer_lens")
    saved = open_trace(tmp_path / "g")
    assert saved.names == "transformer_lens"
    pattern = saved["blocks.0.attn.hook_pattern"]
    assert pattern is saved["block.0.attn.weights"]
    assert (pattern.address, pattern.byhand) == (
        "blocks.0.attn.hook_pattern",
        "block.0.attn.weights",
    )
    assert pattern.reads == ("blocks.0.attn.hook_attn_scores",)
    assert saved["stream.1"] is saved["blocks.0.hook_resid_post"] is saved["block.0.mlp.add"]
    assert saved["block.0.attn.norm.mean"].address == "block.0.attn.norm.mean"
    assert saved["block.1.attn.weights[0,0,0]"] == 1
    tensors = load_file(tmp_path / "g" / "values.safetensors")
    assert sorted(tensors) == sorted(saved.steps)
    save(job.work(), tmp_path / "kept", names="transformer_lens")
    assert files(tmp_path / "g") == files(tmp_path / "kept")


def test_exact_values_have_the_other_names_too(tmp_path: Path) -> None:
    save(byhand.trace("tiny", "a b"), tmp_path / "g", names="transformer_lens")
    saved = open_trace(tmp_path / "g")
    assert saved.exact("blocks.0.attn.hook_pattern[0,1,1]") == "e/(1 + e)"
    assert saved.exact("block.0.attn.weights[0,1,1]") == "e/(1 + e)"


def test_an_unknown_style_is_refused_before_anything_is_written(
    tmp_path: Path, minigpt: Model
) -> None:
    with pytest.raises(byhand.ByhandError, match="style"):
        save_working(prepare(minigpt, None, Floats("float32")), tmp_path / "g", names="keras")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ whole or not at all


def stop_at(address: str, how: BaseException) -> Callable[[Any], None]:
    def progress(step: Any) -> None:
        if step.address == address:
            raise how

    return progress


@pytest.mark.parametrize("numbers", [Floats("float32"), Exact()], ids=["floats", "exact"])
def test_ctrl_c_while_working_leaves_the_old_trace_and_no_draft(
    tmp_path: Path, numbers: Any
) -> None:
    byhand.trace("tiny", "a b").save(tmp_path / "g")
    job = prepare(byhand.open_model("tiny"), "c", numbers)
    with pytest.raises(KeyboardInterrupt):
        save_working(job, tmp_path / "g", progress=stop_at("logits", KeyboardInterrupt()))
    assert [path.name for path in tmp_path.iterdir()] == ["g"]
    assert open_trace(tmp_path / "g").text == "a b"


def test_an_error_of_the_working_is_not_taken_for_one_of_writing(tmp_path: Path) -> None:
    job = prepare(byhand.open_model("tiny"), "c", Floats("float32"))
    broken = OSError(errno.EIO, "a broken disk with weights")
    with pytest.raises(OSError, match="with weights"):
        save_working(job, tmp_path / "g", progress=stop_at("logits", broken))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["__init__", "put", "finish"])
def test_a_disk_that_fails_on_the_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    def fail(self: TensorFile, *facts: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TensorFile, when, fail)
    with pytest.raises(OutputError) as caught:
        save_working(prepare(byhand.open_model("tiny"), "c", Floats("float32")), tmp_path / "g")
    assert caught.value.found == "No space left on device"
    assert list(tmp_path.iterdir()) == []


LIMITED = """
    import os, resource, sys
    import byhand
    from byhand import evaluate, golden
    from byhand.numbers.floats import Floats

    if sys.argv[2] == "found on the way":
        del os.posix_fallocate
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
    job = evaluate.prepare(byhand.open_model("minigpt-init"), None, Floats("float32"))
    try:
        golden.save_working(job, sys.argv[1])
    except byhand.ByhandError as error:
        print(error)
"""


@pytest.mark.parametrize("when", ["found before the work", "found on the way"])
def test_a_file_the_system_does_not_allow_is_an_error_and_leaves_nothing(
    tmp_path: Path, when: str
) -> None:
    program = [sys.executable, "-c", textwrap.dedent(LIMITED), str(tmp_path / "g"), when]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{tmp_path / 'g'}: cannot be written\n  found: File too large")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ what JSON has no number for


def test_a_loss_that_is_not_finite_is_still_json(tmp_path: Path) -> None:
    model = deep_model(layers=1, width=4)
    logits = np.zeros((8, 4), np.float32)
    logits[0] = 1e38
    weights = Weights({**model.weights, "embed.token": Tensor("embed.token", logits)})
    job = prepare(Model(model.spec, weights, model.vocabulary), "a", Floats("float32"), target="b")
    save_working(job, tmp_path / "g")

    def refuse(name: str) -> None:
        raise AssertionError(name)

    text = (tmp_path / "g" / "manifest.json").read_text("utf-8")
    manifest = json.loads(text, parse_constant=refuse)
    assert manifest["loss"]["value"] in ("inf", "nan")

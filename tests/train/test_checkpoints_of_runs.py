"""Checkpoints that are broken or belong elsewhere are refused, and folders are left alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

from byhand.errors import InputError, OutputError
from byhand.files.mapped import open_tensors
from byhand.models import open_spec
from byhand.train import Beat, Result, Run, train
from byhand.train.corpora import open_corpus
from byhand.train.folder import RunFolder
from byhand.train.run import Optimizer, Schedule

ABC = open_corpus("abc")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("byhand.train.result.write_figure", lambda *_drawn: None)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def small(**settings: Any) -> Run:
    spec = open_spec("abc-walkthrough")
    usual: dict[str, Any] = {
        "name": "small", "corpus": ABC, "spec": spec, "steps": 20, "std": Fraction(1, 2),
        "batch": 4, "evaluate_every": 5, "checkpoint_every": 5,
    }  # fmt: skip
    return Run(**{**usual, **settings})


class Stopped(Exception):
    """As if the power had gone."""


def stopped(folder: Path, step: int, **settings: Any) -> None:
    """A run that stopped just after it had told a step."""

    def beat(beat: Beat) -> None:
        if beat.step == step:
            raise Stopped

    with pytest.raises(Stopped):
        train(small(**settings), out=folder, progress=beat)


def refused(folder: Path, **settings: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        train(small(**settings), out=folder, resume=True)
    return caught.value


def last(folder: Path) -> Path:
    return max((folder / "checkpoints").glob("step-*"))


def flip(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("file", ["weights.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("place", [0, 100, -2])
def test_a_single_wrong_bit_is_noticed(tmp_path: Path, file: str, place: int) -> None:
    stopped(tmp_path / "run", 14)
    flip(last(tmp_path / "run") / file, place)
    error = refused(tmp_path / "run")
    assert error.message == (
        "this checkpoint cannot be used: its bytes are not those that were saved"
    )
    assert error.where == str(last(tmp_path / "run") / file)
    assert error.hint == (
        f"remove the folder {last(tmp_path / 'run')} to go on from the checkpoint before it"
    )


@pytest.mark.parametrize("file", ["weights.safetensors", "optimizer.safetensors", "state.json"])
def test_a_missing_or_truncated_file_is_noticed(tmp_path: Path, file: str) -> None:
    stopped(tmp_path / "run", 14)
    path = last(tmp_path / "run") / file
    path.write_bytes(path.read_bytes()[:-7])
    assert "its bytes are not those that were saved" in refused(tmp_path / "run").message
    path.unlink()
    assert "No such file or directory" in refused(tmp_path / "run").message


def test_told_so_it_goes_on_from_the_one_before_to_the_same_end(tmp_path: Path) -> None:
    whole = train(small(), out=tmp_path / "whole")
    stopped(tmp_path / "run", 14)
    flip(last(tmp_path / "run") / "weights.safetensors", -2)
    refused(tmp_path / "run")
    shutil.rmtree(last(tmp_path / "run"))
    again = train(small(), out=tmp_path / "run", resume=True)
    assert again.began == 5
    assert kept(again) == kept(whole)


def kept(result: Result) -> list[bytes]:
    names = ["log.jsonl", "model.safetensors", "checkpoints/step-000020/optimizer.safetensors"]
    return [(result.folder / name).read_bytes() for name in names]


def test_drafts_left_by_a_crash_are_swept_away(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 14)
    draft = tmp_path / "run" / "checkpoints" / ".step-000015.draft"
    draft.mkdir()
    (draft / "weights.safetensors").write_bytes(b"half")
    again = train(small(), out=tmp_path / "run", resume=True)
    assert again.began == 10
    assert not draft.exists()


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"steps": 21}, "steps"),
        ({"seed": 1}, "start"),
        ({"optimizer": Optimizer(lr=0.5)}, "optimizer.lr"),
        ({"schedule": Schedule(2, 0.2)}, "schedule.end"),
        ({"clip": None}, "clip"),
        ({"batch": 5}, "batch"),
        ({"context": 2}, "context"),
        ({"format": "float64"}, "start"),
        ({"corpus": replace(ABC, train=((0, 1, 2, 0, 1),))}, "data"),
        ({"spec": replace(open_spec("abc-walkthrough"), tied=True)}, "model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_run_is_refused_and_what_differs_is_named(
    tmp_path: Path, settings: dict[str, Any], key: str
) -> None:
    stopped(tmp_path / "run", 14)
    error = refused(tmp_path / "run", **settings)
    assert error.message == f"this belongs to another run: it differs in {key}"
    assert error.where == str(tmp_path / "run")


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 14)
    stopped(tmp_path / "other", 19, seed=5)
    foreign = shutil.copytree(
        last(tmp_path / "other"), tmp_path / "run" / "checkpoints" / "step-000015"
    )
    error = refused(tmp_path / "run")
    assert error.message == "this belongs to another run: it differs in start"
    assert error.where == str(foreign)
    assert error.hint == "other too: seed"


def test_a_checkpoint_under_another_name_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 14)
    last(tmp_path / "run").rename(tmp_path / "run" / "checkpoints" / "step-000012")
    assert refused(tmp_path / "run").message.endswith("it was saved at step 10")


def test_a_log_that_is_not_the_one_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 14)
    log = tmp_path / "run" / "log.jsonl"
    whole = log.read_bytes()
    flip(log, 20)
    assert refused(tmp_path / "run").message == (
        "the log is not the one the checkpoint was saved with"
    )
    log.write_bytes(whole[:50])
    assert str(refused(tmp_path / "run").found).startswith("50 bytes")
    log.unlink()
    assert str(refused(tmp_path / "run").found).startswith("0 bytes")
    log.write_bytes(whole)
    assert train(small(), out=tmp_path / "run", resume=True).began == 10


def test_what_was_logged_after_the_checkpoint_is_cut_off(tmp_path: Path) -> None:
    whole = train(small(), out=tmp_path / "whole")
    stopped(tmp_path / "run", 14)
    with (tmp_path / "run" / "log.jsonl").open("a") as log:
        log.write("half a line, and more than will ever follow" * 200)
    assert kept(train(small(), out=tmp_path / "run", resume=True)) == kept(whole)


def test_a_spoiled_manifest_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path / "run", 14)
    (tmp_path / "run" / "manifest.json").write_text("{}")
    assert refused(tmp_path / "run").message == "this is not the manifest of a run"


def test_how_often_checkpoints_are_saved_may_change(tmp_path: Path) -> None:
    whole = train(small(), out=tmp_path / "whole")
    stopped(tmp_path / "run", 14)
    again = train(small(checkpoint_every=3), out=tmp_path / "run", resume=True)
    assert kept(again) == kept(whole)


def test_resuming_what_never_began_begins(tmp_path: Path) -> None:
    result = train(small(), out=tmp_path / "new", resume=True)
    assert (result.began, result.steps) == (0, 20)


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "thesis.txt").write_text("four years of work")
    with pytest.raises(OutputError) as caught:
        train(small(), out=tmp_path, resume=resume)
    assert caught.value.message == "this folder holds something else"
    assert caught.value.found == "thesis.txt"
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="this is not a folder"):
        train(small(), out=tmp_path / "file")


def test_two_processes_cannot_train_in_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    stopped(tmp_path / "run", 14)
    other = RunFolder(tmp_path / "run", small(), "0" * 64)
    other._hold()
    try:
        assert refused(tmp_path / "run").message == "another process is training in this folder"
    finally:
        other.close()
    assert train(small(), out=tmp_path / "run", resume=True).began == 10


def test_the_last_two_and_the_best_are_kept(tmp_path: Path) -> None:
    wild = Optimizer(lr=20.0, weight_decay=0.0)
    run = small(optimizer=wild, schedule=Schedule(20, 1.0), clip=None, evaluate_every=2, steps=20)
    result = train(run, out=tmp_path / "run")
    steps = sorted(int(p.name[5:]) for p in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert result.best_step < 15
    assert steps == [result.best_step, 15, 20]
    index = json.loads((tmp_path / "run" / "checkpoints" / "index.json").read_text())
    assert index == {"last": "step-000020", "best": f"step-{result.best_step:06d}"}


def test_the_shapes_of_a_checkpoint_are_those_of_the_model(tmp_path: Path) -> None:
    train(small(), out=tmp_path / "run")
    folder = tmp_path / "run" / "checkpoints" / "step-000020"
    weights = open_tensors(folder / "weights.safetensors")
    moments = open_tensors(folder / "optimizer.safetensors")
    assert weights["block.0.attn.qkv"].shape == (6, 2)
    assert {name.partition(".")[2] for name in moments} == set(weights)
    assert len(moments) == 2 * len(weights)

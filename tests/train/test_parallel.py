"""Several processes: the same run to float rounding, one of them writing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from budgets import LONG
from byhand.files.mapped import open_tensors
from patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="torchrun needs a POSIX system")

RUN = """\
data: verbs
model:
  d_model: 8
  context: 16
  layers: 1
  position: rope
  norm: {eps: 1e-5}
  attention: {heads: 2}
  mlp: {d_ff: 16}
steps: 8
batch: 7
accumulate: 2
optimizer: {lr: 0.01, eps: 1e-4}
evaluate: {every: 4}
checkpoint: {every: 2}
format: float64
"""
PLAIN = {**os.environ, "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def together(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}",
            "--master-addr=127.0.0.1", f"--master-port={free_port()}", "-m", "byhand", "train",
            *arguments,
        ],
        capture_output=True, text=True, env=PLAIN, timeout=PATIENCE, check=False,
    )  # fmt: skip


def tensors(folder: Path, file: str = "weights") -> dict[str, np.ndarray]:
    last = json.loads((folder / "checkpoints" / "index.json").read_text())["last"]
    stored = open_tensors(folder / "checkpoints" / last / f"{file}.safetensors")
    return {name: tensor.array() for name, tensor in stored.items()}


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(RUN)
    alone = subprocess.run(
        [sys.executable, "-m", "byhand", "train", str(tmp_path / "run.yaml"), "--json", "--out",
         str(tmp_path / "one")],
        capture_output=True, text=True, env=PLAIN, check=False,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr
    both = together(2, str(tmp_path / "run.yaml"), "--json", "--out", str(tmp_path / "two"))
    assert both.returncode == 0, both.stderr
    one, two = json.loads(alone.stdout), json.loads(both.stdout)  # one document: one process tells
    assert two["tokens"] == one["tokens"]
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-12)
    assert two["answers"] == one["answers"]
    for file in ("weights", "optimizer"):
        ours, theirs = tensors(tmp_path / "one", file), tensors(tmp_path / "two", file)
        for name, data in ours.items():
            np.testing.assert_allclose(theirs[name], data, rtol=1e-11, atol=1e-13)
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("one", "two")]
    for line, other in zip(*logs, strict=True):
        assert json.loads(other) == pytest.approx(json.loads(line), rel=1e-12)
    manifest = json.loads((tmp_path / "two" / "manifest.json").read_text())
    assert manifest["processes"] == 2


@pytest.mark.skipif(not LONG, reason="a long test: BYHAND_LONG=1")
def test_a_process_that_fails_takes_the_other_with_it_and_one_can_go_on(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(RUN)
    failing = tmp_path / "failing.py"
    failing.write_text(
        "import os, sys\n"
        "import byhand.train.loop as loop\n"
        "from byhand.cli import main\n"
        "step = loop._Training.step\n"
        "def fails(self, number, *rest):\n"
        "    if number == 5 and os.environ['RANK'] == '1':\n"
        "        os._exit(3)\n"
        "    return step(self, number, *rest)\n"
        "loop._Training.step = fails\n"
        "main(sys.argv[1:])\n"
    )
    out = tmp_path / "two"
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    arguments = ["train", str(tmp_path / "run.yaml"), "--out", str(out)]
    started = [
        subprocess.Popen(
            [sys.executable, str(failing), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**PLAIN, **address, "RANK": rank, "LOCAL_RANK": rank},
        )
        for rank in ("0", "1")
    ]
    (first, said), _second = (process.communicate(timeout=PATIENCE) for process in started)
    assert [process.returncode for process in started] == [2, 3]
    assert first == ""
    assert "error: another process has failed" in said
    assert "hint: what was saved before is safe: go on with --resume" in said
    alone = subprocess.run(
        [sys.executable, "-m", "byhand", *arguments, "--resume"],
        capture_output=True, text=True, env=PLAIN, check=False,
    )  # fmt: skip
    assert alone.returncode == 0
    assert alone.stderr.splitlines() == [
        "note: processes was 2 and is 1; the last bits may differ",
        "taken up after step 4",
    ]


def test_more_processes_than_texts_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from byhand.errors import UsageError
    from byhand.train import loop
    from byhand.train.processes import Processes

    two = Processes(0, 2, torch.device("cpu"))
    monkeypatch.setattr(loop, "joined", lambda _device: nullcontext(two))
    (tmp_path / "run.yaml").write_text(RUN.replace("batch: 7", "batch: 3"))
    with pytest.raises(UsageError, match="there are more processes than texts in a step"):
        loop.train(tmp_path / "run.yaml")
    assert not (tmp_path / "runs").exists()


def test_an_environment_that_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from byhand.errors import InputError
    from byhand.train import train

    (tmp_path / "run.yaml").write_text(RUN)
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(InputError, match="WORLD_SIZE is not a whole number"):
        train(tmp_path / "run.yaml")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "2")
    with pytest.raises(InputError, match="the environment contradicts itself"):
        train(tmp_path / "run.yaml")

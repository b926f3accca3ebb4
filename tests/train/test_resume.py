"""A run that is killed, at any moment and however often, ends with the bytes of one that was not.

Importing torch takes longer than a small run, so one process (this file, run by itself) imports
it once and forks a child for every run that is to be killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

RUN = """\
data: abc
model:
  d_model: 2
  context: 3
  layers: 1
  layout: out_in
  position: learned
  attention: {heads: 1, packed: concatenated, bias: true}
  mlp: {d_ff: 8, bias: true}
  head: {tied: false, bias: true}
init: {std: 1/2}
steps: 120
batch: 8
optimizer: {lr: 0.02}
evaluate: {every: 20}
checkpoint: {every: 15}
"""
TOUCHES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")  # what changes a folder
LONG = bool(os.environ.get("BYHAND_LONG"))
RANDOM_KILLS, EVERY_TOUCH, TORN = (48, 5, 12) if LONG else (8, 23, 2)


def kept(folder: Path) -> dict[str, bytes]:
    """All that must be equal: the log, the model, and the last checkpoint to the last byte."""
    last = json.loads((folder / "checkpoints" / "index.json").read_bytes())["last"]
    files = ["log.jsonl", "model.yaml", "model.safetensors", "run.yaml"]
    names = ["weights.safetensors", "optimizer.safetensors", "state.json"]
    files += [f"checkpoints/{last}/{name}" for name in names]
    return {file: (folder / file).read_bytes() for file in files}


# ------------------------------------------------------------------ the process that forks


def forked(folder: Path, before: Callable[[], None], after: float | None = None) -> bool:
    """Goes on with the run in a child, killed after so many seconds; whether it came to its end."""
    child = os.fork()
    if child == 0:
        from byhand.train import train

        before()
        train(folder.parent / "run.yaml", out=folder, resume=True)
        os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status == 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_touch(number: int, folder: Path) -> Callable[[], None]:
    """Dies just before it touches the folder for the nth time."""
    left = number

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event not in TOUCHES or not str(arguments[0]).startswith(str(folder)):
            return
        left -= 1
        if left == 0:
            die()

    return lambda: sys.addaudithook(watch)


def in_the_middle(number: int) -> Callable[[], None]:
    """Dies when half of the nth tensor is written."""

    def before() -> None:
        from byhand.files.tensor_file import TensorFile

        whole, left = TensorFile.put, number

        def half(self: TensorFile, name: str, array: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._file.write(b"\0" * 5)
                self._file.flush()
                die()
            whole(self, name, array)  # type: ignore[arg-type]

        TensorFile.put = half  # type: ignore[method-assign]

    return before


def nothing() -> None:
    pass


def main(root: Path) -> None:
    import tensorboardX.record_writer  # noqa: F401  what the children need, imported once

    import byhand.train.loop
    import byhand.train.result

    byhand.train.result.write_figure = lambda *_drawn: None  # has tests of its own, and is slow
    (root / "run.yaml").write_text(RUN)
    began = time.monotonic()
    assert forked(root / "whole", nothing)
    seconds = time.monotonic() - began
    expected = kept(root / "whole")
    random = Random(7)
    kills, unequal, attempt = 0, [], 0

    def finished(folder: Path) -> None:
        for _try in range(3):  # a kill at the very end may come after it
            if forked(folder, nothing):
                break
        if kept(folder) != expected:
            unequal.append(folder.name)

    while kills < RANDOM_KILLS:  # several kills to a run, at random times
        folder = root / f"random-{attempt}"
        attempt += 1
        for _kill in range(4):
            if forked(folder, nothing, random.uniform(0, 0.7) * seconds):
                break
            kills += 1
        finished(folder)
    touch = 1
    while True:  # just before each kind of change of the folder
        folder = root / f"touch-{touch}"
        if forked(folder, at_touch(touch, folder)):
            break
        kills += 1
        finished(folder)
        touch += EVERY_TOUCH
    for number in (random.randrange(1, 300) for _kill in range(TORN)):
        folder = root / f"torn-{number}"
        kills += not forked(folder, in_the_middle(number))
        finished(folder)
    print(json.dumps({"kills": kills, "touches": touch, "unequal": unequal}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))


# ------------------------------------------------------------------ the tests


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_at_any_moment_ends_with_the_same_bytes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["unequal"] == []
    assert outcome["kills"] >= RANDOM_KILLS + outcome["touches"] // EVERY_TOUCH
    assert outcome["touches"] > 150

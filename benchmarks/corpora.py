"""A corpus of 2,000 texts on Ray: workers and drivers killed at random, and one worker beside two.

    python -m benchmarks.corpora CHECKPOINT kills [--record]
    python -m benchmarks.corpora CHECKPOINT scaling [--record]

kills: one process scores the corpus, then a cluster of two nodes of one core on this machine does.
A worker is killed, then the driver, which is started again, until ten of each have fallen.  Each
falls after a random number of shards and a random pause.  Every text must be there once, and the
files must hold the same bytes.

scaling: the seconds from the first shard to the last, of one process and of two, and of one node of
Ray and of two, in turn; the least of each counts, since other programs may be at work.  `--record`
writes what was found for docs/corpora.md.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

import byhand
from byhand.scoring.samples import Sample

TEXTS, LENGTHS = 2_000, (8, 64)
KILLS = 10  # of workers, and of drivers
TURNS = 4  # of each way
STRIDE = 1  # shards written between two kills, at most
PAUSE = 0.5  # seconds after them, at most
RECORD = Path(__file__).parent.parent / "docs" / "corpora.json"
DRIVER = "from benchmarks.corpora import drive; import sys; drive(*sys.argv[1:])"


@dataclass(frozen=True)
class Fallen:
    """What was killed in a run, and how long it took in all."""

    workers: int
    drivers: list[int]  # how many shards were there when each was killed
    seconds: float


def corpus(vocab: int) -> list[Sample]:
    """Random texts, the same in each run."""
    made = np.random.default_rng(2)
    lengths = made.integers(LENGTHS[0], LENGTHS[1] + 1, TEXTS)
    return [
        Sample(str(number), tuple(made.integers(0, vocab, length).tolist()))
        for number, length in enumerate(lengths)
    ]


def drive(model: str, out: str, on: str) -> None:
    """One driver: `on` is a number of processes, or a cluster.

    It prints the seconds from the first shard that came to the last.
    """
    samples = corpus(byhand.open_model(model).spec.vocab)
    how = {"jobs": int(on)} if on.isdigit() else {"on": on}
    came: list[float] = []

    def progress(_numbers: str, done: int, _of: int) -> None:
        if done:
            came.append(time.monotonic())

    byhand.score_corpus(model, samples, out, float="float32", progress=progress, **how)
    print(came[-1] - came[0] if came else 0.0)


def started(model: str, out: Path, on: str) -> subprocess.Popen[str]:
    """A driver in a process of its own."""
    asked = [sys.executable, "-c", DRIVER, model, str(out), on]
    return subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)


def timed(model: str, out: Path, on: str) -> float:
    """The seconds from the first shard of a driver to its last."""
    told, _nothing = (driver := started(model, out, on)).communicate()
    if driver.returncode:
        raise SystemExit(f"the driver on {on} failed")
    return float(told)


def workers() -> list[int]:
    """The processes of Ray that hold a scorer."""
    found = subprocess.run(["pgrep", "-f", "ray::_Held"], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def kill(process: int) -> None:
    with suppress(ProcessLookupError):  # it ended before
        os.kill(process, signal.SIGKILL)


def written(out: Path) -> int:
    """How many shards are there."""
    return len(list(out.glob("shard-*")))


def fell(driver: subprocess.Popen[str]) -> None:
    """Kills a driver, and waits until Ray has ended its workers."""
    driver.kill()
    driver.wait()
    while workers():
        time.sleep(0.1)


def harassed(model: str, out: Path, on: str, kills: int) -> Fallen:
    """The workers and drivers that were killed until the corpus was scored."""
    chance = random.Random(5)
    start = time.monotonic()
    killed_workers = 0
    shards: list[int] = []
    driver = started(model, out, on)
    while driver.poll() is None or driver.returncode:
        if driver.poll() is not None:
            driver = started(model, out, on)
        if len(shards) >= kills:
            driver.wait()
            continue
        wanted = written(out) + chance.randint(0, STRIDE)
        while written(out) < wanted and driver.poll() is None:
            time.sleep(0.05)
        time.sleep(chance.uniform(0.0, PAUSE))
        there = workers()
        if not there or driver.poll() is not None:
            continue
        if killed_workers <= len(shards):
            kill(chance.choice(there))
            killed_workers += 1
        else:
            fell(driver)
            shards.append(written(out))
            print(f"  driver {len(shards)} killed with {shards[-1]} shards written", flush=True)
    return Fallen(killed_workers, shards, round(time.monotonic() - start, 1))


@contextmanager
def cluster(nodes: int) -> Iterator[str]:
    """A Ray cluster of so many nodes on this machine, of one core each; its address."""
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _node in range(nodes - 1):
            found.add_node(num_cpus=1)
        found.wait_for_nodes()
        yield f"ray:{found.address}"
    finally:
        found.shutdown()


def scaling(model: str, folder: Path) -> dict[str, Any]:
    """The least seconds of one worker and of two, by processes and on Ray, in turn."""
    seconds: dict[str, list[float]] = {}
    for turn in range(TURNS):
        for count in (1, 2):
            out = folder / f"{turn}-{count}"
            seconds.setdefault(f"processes: {count}", []).append(timed(model, out, str(count)))
            with cluster(count) as on:
                ray = timed(model, folder / f"{turn}-{count}-ray", on)
                seconds.setdefault(f"nodes of Ray: {count}", []).append(ray)
        print({name: round(min(each), 2) for name, each in seconds.items()}, flush=True)
    digests = {byhand.open_scores(each).digest for each in folder.iterdir()}
    least = {name: round(min(each), 2) for name, each in seconds.items()}
    return {"seconds": least, "turns": TURNS, "same": len(digests) == 1}


def kills(model: str, folder: Path) -> dict[str, Any]:
    """A run on two nodes with kills, beside one process that nobody kills."""
    timed(model, folder / "one", "1")
    with cluster(2) as on:
        fallen = harassed(model, folder / "ray", on, KILLS)
    one, ray = (byhand.open_scores(folder / name) for name in ("one", "ray"))
    names = sorted(int(scores.sample.name) for scores in ray)
    once, same = names == list(range(TEXTS)), one.digest == ray.digest
    if len(fallen.drivers) < KILLS:
        print(f"the corpus was scored when {len(fallen.drivers)} of {KILLS} drivers had fallen")
    return {"once": once, "same": same, "shards": one.shards, **asdict(fallen)}


PARTS = {"kills": kills, "scaling": scaling}


def main(model: str, asked: str, record: bool) -> int:
    """Prints what happened; 0 where every text is there once with the same bytes."""
    folder = Path(mkdtemp(prefix="corpora-"))
    try:
        found = {"model": Path(model).name, **PARTS[asked](model, folder), "ray": version("ray")}
    finally:
        shutil.rmtree(folder)
    print(found)
    if record:
        known = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
        text = json.dumps({"texts": TEXTS, **known, asked: found}, indent=1)
        RECORD.write_text(text + "\n", "utf-8")
    return 0 if found["same"] and found.get("once", True) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--record" in sys.argv))

"""A corpus of 2,000 texts on a Ray cluster of two nodes, with workers and drivers killed at random.

    python -m benchmarks.corpora CHECKPOINT [KILLS] [--record]

First one process scores the corpus, then two, then a Ray node of one core on this machine, then two
nodes.  At last a run on the two nodes is disturbed: at random times a worker is killed, then the
driver, which is started again, KILLS times (10 unless told otherwise).  Every text must be there
once, and all five folders must hold the same bytes.  `--record` writes it for docs/corpora.md.
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
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import byhand
from byhand.scoring.samples import Sample

TEXTS, LENGTHS = 2_000, (8, 64)
KILLS = 10  # of workers, and of drivers
PAUSE = 1.0, 8.0  # seconds between two kills, at least and at most
FOLDERS = ("one", "two", "node", "nodes", "ray")
RECORD = Path(__file__).parent.parent / "docs" / "corpora.json"
DRIVER = "from benchmarks.corpora import drive; import sys; drive(*sys.argv[1:])"


@dataclass(frozen=True)
class Fallen:
    """What was killed in a run, and how long it took in all."""

    workers: int
    shards: list[int]  # that were there when each driver was killed
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
    """One driver: `on` is a number of processes, or a cluster."""
    samples = corpus(byhand.open_model(model).spec.vocab)
    how = {"jobs": int(on)} if on.isdigit() else {"on": on}
    byhand.score_corpus(model, samples, out, float="float32", **how)


def started(model: str, out: Path, on: str) -> subprocess.Popen[bytes]:
    """A driver in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", DRIVER, model, str(out), on])


def timed(model: str, out: Path, on: str) -> float:
    """The seconds that a driver takes."""
    start = time.monotonic()
    if started(model, out, on).wait():
        raise SystemExit(f"the driver on {on} failed")
    return time.monotonic() - start


def workers() -> list[int]:
    """The processes of Ray that hold a scorer."""
    found = subprocess.run(["pgrep", "-f", "ray::_Held"], capture_output=True, text=True)
    return [int(line) for line in found.stdout.split()]


def kill(process: int) -> None:
    with suppress(ProcessLookupError):  # it ended before
        os.kill(process, signal.SIGKILL)


def fell(driver: subprocess.Popen[bytes]) -> None:
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
        time.sleep(chance.uniform(*PAUSE))
        there = workers()
        if not there or driver.poll() is not None:
            continue
        if killed_workers <= len(shards):
            kill(chance.choice(there))
            killed_workers += 1
        else:
            fell(driver)
            shards.append(len(list(out.glob("shard-*"))))
            print(f"  driver {len(shards)} killed with {shards[-1]} shards written", flush=True)
    return Fallen(killed_workers, shards, time.monotonic() - start)


def measured(model: str, folder: Path, kills: int) -> tuple[dict[str, float], Fallen]:
    """The seconds of each way to score the corpus, and what fell in the run with kills."""
    from ray.cluster_utils import Cluster

    seconds = {
        "one process": timed(model, folder / "one", "1"),
        "two processes": timed(model, folder / "two", "2"),
    }
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        on = f"ray:{cluster.address}"
        seconds["one node of Ray"] = timed(model, folder / "node", on)
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        seconds["two nodes of Ray"] = timed(model, folder / "nodes", on)
        for name, each in seconds.items():
            print(f"{name}: {each:.1f} s", flush=True)
        fallen = harassed(model, folder / "ray", on, kills)
    finally:
        cluster.shutdown()
    return seconds, fallen


def main(model: str, kills: int, record: bool) -> int:
    """Prints what happened; 0 where every text is there once with the same bytes."""
    folder = Path(mkdtemp(prefix="corpora-"))
    seconds, fallen = measured(model, folder, kills)
    print(f"killed: {fallen.workers} workers, {len(fallen.shards)} drivers; {fallen.seconds:.0f} s")
    scored = {name: byhand.open_scores(folder / name) for name in FOLDERS}
    names = sorted(int(scores.sample.name) for scores in scored["ray"])
    one = scored["one"]
    found = {
        "model": Path(model).name,
        "texts": one.texts,
        "tokens": one.tokens,
        "shards": one.shards,
        "once": names == list(range(TEXTS)),
        "same": len({each.digest for each in scored.values()}) == 1,
        "seconds": {name: round(each, 1) for name, each in seconds.items()},
        "fallen": asdict(fallen),
        "ray": version("ray"),
    }
    print(
        f"every text once: {found['once']}; the same bytes: {found['same']} ({one.shards} shards)"
    )
    shutil.rmtree(folder)
    if record:
        RECORD.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0 if found["once"] and found["same"] and len(fallen.shards) >= kills else 1


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--record"]
    times = int(words[1]) if len(words) > 1 else KILLS
    sys.exit(main(words[0], times, "--record" in sys.argv))

"""A corpus of 2,000 texts on a Ray cluster of two nodes, with workers and drivers killed at random.

    python -m benchmarks.corpora CHECKPOINT [KILLS]

First one process scores the corpus.  Then a cluster of two nodes on this machine does, of one core
each.  At random times a worker is killed, then the driver, which is started again, KILLS times (10
unless told otherwise).  Every text must be there once, and the files must hold the same bytes.  At
last the time of one worker and of two is measured, without kills.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import byhand
from byhand.scoring.samples import Sample

TEXTS, LENGTHS = 2_000, (8, 64)
PAUSE = 1.0, 6.0  # seconds between two kills, at least and at most
DRIVER = "from benchmarks.corpora import drive; import sys; drive(*sys.argv[1:])"


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


def harassed(model: str, out: Path, on: str, kills: int) -> tuple[int, int, float]:
    """The workers and drivers that were killed until the corpus was scored, and the seconds."""
    chance = random.Random(5)
    start = time.monotonic()
    fallen = [0, 0]
    driver = started(model, out, on)
    while driver.poll() is None or driver.returncode:
        if driver.poll() is not None:
            driver = started(model, out, on)
        if sum(fallen) >= 2 * kills:
            driver.wait()
            continue
        time.sleep(chance.uniform(*PAUSE))
        there = workers()
        if there and driver.poll() is None:
            if fallen[0] <= fallen[1]:
                kill(chance.choice(there))
                fallen[0] += 1
            else:
                driver.kill()
                driver.wait()
                fallen[1] += 1
                shards = len(list(out.glob("shard-*")))
                print(f"  driver {fallen[1]} killed with {shards} shards written", flush=True)
    return fallen[0], fallen[1], time.monotonic() - start


def main(model: str, kills: int = 10) -> int:
    """Prints what happened; 0 where every text is there once with the same bytes."""
    from ray.cluster_utils import Cluster

    folder = Path(mkdtemp(prefix="corpora-"))
    alone = timed(model, folder / "one", "1")
    two = timed(model, folder / "two", "2")
    print(
        f"{TEXTS:,} texts of {model}: {alone:.1f} s in one process, {two:.1f} s in two", flush=True
    )
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        on = f"ray:{cluster.address}"
        fallen = harassed(model, folder / "ray", on, kills)
        print("killed: {} workers, {} drivers; {:.0f} s in all".format(*fallen))
        quiet = timed(model, folder / "quiet", on)
        print(f"two nodes, nobody killed: {quiet:.1f} s")
    finally:
        cluster.shutdown()
    scored = {name: byhand.open_scores(folder / name) for name in ("one", "two", "ray", "quiet")}
    names = sorted(int(scores.sample.name) for scores in scored["ray"])
    once = names == list(range(TEXTS))
    same = len({each.digest for each in scored.values()}) == 1
    print(f"every text once: {once}; the same bytes: {same} ({scored['one'].shards} shards)")
    shutil.rmtree(folder)
    return 0 if once and same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))

"""The runs of the trained built-in models, recorded for their books.

    python tools/recorded.py         # runs abc and minigpt again and writes their records
    python tools/recorded.py abc     # just one

A record holds, for every step, the loss, the learning rate and the norm of the gradients; the
held-out losses; and samples along the way.  The bits of a training depend on the processor, so a
record says how far the weights of this run are from those of the built-in model.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np

import byhand
from byhand.files.mapped import open_tensors
from byhand.model import Model
from byhand.models import open_model
from byhand.train import train
from byhand.train.loop import Beat, first_weights
from byhand.train.reading import read_run
from byhand.train.run import Run
from byhand.weights import Tensor, Weights

MODELS = Path(__file__).resolve().parent.parent / "src" / "byhand" / "models"
SAMPLED = {"abc": (10, 20, 40, 80, 160, 500), "minigpt": (20, 40, 60, 80, 100, 200, 2000)}
PROMPT = {"abc": "A", "minigpt": open_model("minigpt").text}
TOKENS = 3  # of a sample


def record(name: str) -> dict[str, Any]:
    """The record of a run: the run is made once more, with a checkpoint before every sample."""
    run, own = read_run(name), open_model(name)
    samples = [sampled(own, first_weights(run), name, 0)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / name

        def look(beat: Beat) -> None:
            done = beat.step - 1  # its checkpoint is written by now
            if done in SAMPLED[name]:
                samples.append(sampled(own, at_step(folder, done), name, done))

        often = np.gcd.reduce(SAMPLED[name])
        result = train(replace(run, checkpoint_every=int(often)), out=folder, progress=look)
        samples.append(sampled(own, at_step(folder, run.steps), name, run.steps))
        log_lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        apart = distance(result.model.weights, own.weights)
    steps = [line for line in log_lines if "loss" in line]
    return {
        "run": settings(run),
        "tokens": result.tokens,
        "loss": [short(line["loss"]) for line in steps],
        "rate": [short(line["lr"]) for line in steps],
        "norm": [short(line["grad_norm"]) for line in steps],
        "held_out": [[step, short(loss)] for step, loss in result.validation],
        "levels": levels(run, result.baseline),
        "best": result.best_step,
        "samples": samples,
        "apart": short(apart),
    }


def settings(run: Run) -> dict[str, Any]:
    return {
        "data": run.corpus.name,
        "steps": run.steps,
        "batch": run.batch,
        "optimizer": "adamw",
        "rate": run.optimizer.lr,
        "betas": list(run.optimizer.betas),
        "decay": run.optimizer.weight_decay,
        "warmup": run.schedule.warmup,
        "end": run.schedule.end,
        "clip": run.clip,
        "seed": run.seed,
        "prompt": PROMPT[run.name],
    }


def levels(run: Run, baseline: float | None) -> dict[str, float]:
    """Losses to compare with: of a fair choice, and of an n-gram model."""
    found = {"uniform": short(log(run.spec.vocab))}
    return found if baseline is None else {**found, "n-gram": short(baseline)}


def at_step(folder: Path, step: int) -> Weights:
    file = folder / "checkpoints" / f"step-{step:06}" / "weights.safetensors"
    return Weights(dict(tensors(file)))


def tensors(file: Path) -> Iterator[tuple[str, Tensor]]:
    opened = open_tensors(file)
    for name in opened:
        yield name, Tensor(name, np.array(opened[name].array()))


def sampled(own: Model, weights: Weights, name: str, step: int) -> dict[str, Any]:
    """What the model says after a step, and the probability of its target."""
    model = replace(own, weights=weights)
    chosen = byhand.generate(model, PROMPT[name], count=TOKENS, numbers="float32")
    trace = byhand.trace(model, target=own.target, numbers="float32")
    assert trace.target is not None
    share = float(trace["probs"][len(trace.tokens) - 1, trace.target])
    return {"step": step, "said": [each.token for each in chosen], "share": short(share)}


def distance(one: Weights, other: Weights) -> float:
    """The largest difference of two weights."""
    pairs = ((one[name].data, other[name].data) for name in other)
    return max(float(np.max(np.abs(a.astype(float) - b.astype(float)))) for a, b in pairs)


def short(number: float) -> float:
    """Four significant digits."""
    return float(f"{number:.4g}")


def main() -> None:
    for name in sys.argv[1:] or SAMPLED:
        found = record(name)
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        (MODELS / f"{name}.run.json").write_text(text + "\n", "utf-8")
        print(f"{name}: {len(found['loss'])} steps, held-out {found['held_out'][-1]}")


if __name__ == "__main__":
    main()

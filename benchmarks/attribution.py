"""The remainder of attribution, beside TransformerLens, and its cost.

The model is GPT-2 small with random weights; gains and biases are moved away from 1 and 0, as by
training.  Both sides read one Hugging Face folder, in float32 on one thread.  TransformerLens runs
`decompose_resid` and `get_full_resid_decomposition` with `logit_attrs`, on the original weights and
on those that its `enable_compatibility_mode` folds and centres.

    python -m benchmarks.attribution                our side alone
    python -m benchmarks.attribution --venv FOLDER  and theirs, installed there if it is not yet
    … --record                                      writes the tables of docs/explain.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

HERE = Path(__file__).parent
RECORD = HERE.parent / "docs" / "explain-attribution.json"
LENGTH, ROUNDS, MOVED = 32, 9, 0.1
PAIR = (5, 7)  # two tokens, where not all are compared
SAMPLE = range(0, 50_257, 997)  # tokens whose parts are added up for TransformerLens: one call each
LENS = "transformer_lens==4.3.0"


def some_ids() -> list[int]:
    return [(7 * place + 1) % 50_257 for place in range(LENGTH)]


def make(folder: Path) -> None:
    """Writes GPT-2 small, with gains and biases moved."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config())
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(MOVED * torch.randn_like(parameter))
    model.save_pretrained(folder)


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def in_turn(*works: Callable[[], object]) -> list[float]:
    """The median seconds of each, timed in turn after a warm-up round."""
    for work in works:
        work()
    rounds = [[seconds(work) for work in works] for _round in range(ROUNDS)]
    return [median(times) for times in zip(*rounds, strict=True)]


# ------------------------------------------------------------------ our side


def ours(folder: Path) -> dict[str, Any]:
    """The remainder of the last position's logits, and the cost beside a plain forward pass."""
    import torch
    from transformers import AutoModelForCausalLM

    import byhand
    from byhand.explaining.attribution import attribute

    torch.set_num_threads(1)
    model = byhand.open_model(folder)
    text = " ".join(map(str, some_ids()))
    trace = byhand.trace(model, text, float="float32")
    whole = attribute(trace, positions=[-1])
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = torch.tensor([some_ids()])
    forward: Callable[[], object] = torch.inference_mode()(lambda: plain(tokens, use_cache=False))
    names = ("forward", "trace", "all tokens", "two tokens", "two tokens, by key")
    times = in_turn(
        forward,
        lambda: byhand.trace(model, text, float="float32"),
        lambda: attribute(trace, positions=[-1]),
        lambda: attribute(trace, positions=[-1], tokens=PAIR),
        lambda: attribute(trace, positions=[-1], tokens=PAIR, keys=True),
    )
    keys = attribute(trace, positions=[-1], keys=True, tokens=list(SAMPLE))
    return {
        "terms": len(whole.terms),
        "left": whole.relative,
        "left by key": keys.relative,
        "seconds": dict(zip(names, times, strict=True)),
    }


# ------------------------------------------------------------------ their side


def theirs(folder: Path) -> dict[str, Any]:
    """The error of TransformerLens's sums; runs where it is installed."""
    import torch
    from transformer_lens.model_bridge import TransformerBridge  # type: ignore[import-not-found]
    from transformers import GPT2LMHeadModel

    torch.set_num_threads(1)
    tokens = torch.tensor([some_ids()])
    told: dict[str, Any] = {}
    for weights in ("as they are", "folded and centred"):
        plain = GPT2LMHeadModel.from_pretrained(folder).eval()
        model = TransformerBridge.boot_transformers(str(folder), hf_model=plain)
        if weights != "as they are":
            model.enable_compatibility_mode(disable_warnings=True)
        with torch.inference_mode():
            logits, cache = model.run_with_cache(tokens)
            logits = logits[0, -1]
            parts = {
                "decompose_resid": cache.decompose_resid(layer=-1, pos_slice=-1),
                "get_full_resid_decomposition": cache.get_full_resid_decomposition(
                    expand_neurons=False, pos_slice=-1
                ),
            }
            for name, stack in parts.items():
                added = torch.stack(
                    [cache.logit_attrs(stack, t, pos_slice=-1).sum(0).squeeze() for t in SAMPLE]
                )
                left = logits[list(SAMPLE)] - added
                told[f"{name}, weights {weights}"] = missed(left, logits)
                if weights != "as they are":
                    by_hand = left - model.b_U[list(SAMPLE)]
                    told[f"{name}, … and b_U added by hand"] = missed(by_hand, logits)
    return told


def missed(left: Any, logits: Any) -> float:
    return float(left.abs().max() / logits.abs().max())


def in_their_venv(folder: Path, venv: Path) -> dict[str, Any]:
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        fixed = str(HERE.parent / "constraints.txt")
        command = [str(python), "-m", "pip", "install", "-q", "-c", fixed, LENS]
        subprocess.run(command, check=True)
    told = subprocess.run(
        [str(python), __file__, "--theirs", str(folder)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return found


# ------------------------------------------------------------------ the table


def recorded() -> dict[str, Any]:
    """What `--record` wrote."""
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return found


TAKES = {
    "trace": "byhand's trace: every step of every position, kept",
    "all tokens": "attribution of one position, every part to all 50,257 logits",
    "two tokens": "… to the two logits compared",
    "two tokens, by key": "… heads divided by the positions they read",
}


def tables(found: dict[str, Any]) -> str:
    """The record as the two tables of docs/explain.md."""
    lines = ["| what adds the parts up | left of the logits |", "|---|---|"]
    lines += [f"| {name} | {left:.1e} |" for name, left in found["left"].items()]
    lines += ["", "| what it takes | in plain forward passes of transformers |", "|---|---|"]
    lines += [f"| {told} | {found['ratios'][name]:.2f} |" for name, told in TAKES.items()]
    return "\n".join(lines)


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--venv", type=Path, help="where TransformerLens is, or is to be")
    reading.add_argument("--record", action="store_true", help="for docs/explain.md")
    reading.add_argument("--theirs", type=Path, help=argparse.SUPPRESS)
    asked = reading.parse_args()
    os.environ |= dict.fromkeys(THREADS, "1")  # before anything imports NumPy
    if asked.theirs:
        print(json.dumps(theirs(asked.theirs)))
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder)
        told = ours(folder)
        print("largest |logit - sum of its parts| over the largest |logit|, last position, float32")
        count = told["terms"]
        missing = {
            f"byhand, {count} parts, all tokens": told["left"],
            "byhand, heads by key": told["left by key"],
        }
        if asked.venv:
            lens = in_their_venv(folder, asked.venv)
            missing |= {f"TransformerLens, {name}": left for name, left in lens.items()}
        for name, left in missing.items():
            print(f"  {name:76}{left:>10.1e}")
        forward = told["seconds"]["forward"]
        print(f"\nseconds, and over one plain forward pass of transformers, {LENGTH} tokens")
        for name, took in told["seconds"].items():
            print(f"  {name:76}{took:>8.3f} s{took / forward:>8.2f}")
        if asked.record:
            if not asked.venv:
                reading.error("--record needs --venv: both sides are told together")
            ratios = {name: round(took / forward, 2) for name, took in told["seconds"].items()}
            record = {"lens": LENS, "tokens": LENGTH, "parts": count, "left": missing}
            RECORD.write_text(json.dumps(record | {"ratios": ratios}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

"""Certified passes on a GPU, beside plain float32 passes of torch on the same card.

Runs where nothing but torch and NumPy is installed: `PYTHONPATH=src python -m benchmarks.gpu`.
It first checks the card (what is assumed of its float64, and that it gives the same bits as NumPy
on this machine's processor), then certifies a model of GPT-2's size and one of Llama's with a
billion parameters.  Times are those of device events; the table is Markdown.  Kernels are compiled
at first use, which takes a minute or two.  Parts can be named: `checks`, `gpt2`, `llama`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from benchmarks.large import LLAMA_1B, Plain, Size, gpt2, llama, random_model
from benchmarks.proven import RADIUS, Certified
from byhand.numbers.enclosed.selftest import checks
from byhand.spec import ModelSpec

DEVICE = "cuda"
ROUNDS = 5
HEAD = ("model", "tokens", "bits", "certified", "torch float32", "ratio", "largest radius",
        "proven")  # fmt: skip


def seconds(work: Callable[[], object]) -> float:
    """By device events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _event in range(2))
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def check_card() -> None:
    """Stops where the card is not what the proofs assume."""
    for check in checks(DEVICE):
        print(f"  {'ok ' if check.passed else 'NO '} {check.name} {check.detail}", flush=True)
        if not check.passed:
            sys.exit("this card is not what the proofs assume")


def check_same_bits() -> None:
    """The card and NumPy enclose a small model of each kind alike."""
    for spec in (
        gpt2(Size(2, 128, 4, 4, 512, 500, 64)),
        llama(Size(2, 128, 4, 2, 384, 500, 64)),
    ):
        model = random_model(spec)
        here, there = Certified(model, 24), Certified(model, 24, DEVICE)
        mine, its = here.run(140), there.run(140)
        one, other = mine["logits"], its["logits"]
        overlap = [
            one.at((row, column)).overlaps(other.at((row, column)))
            for row in range(24)
            for column in range(0, spec.vocab, 7)
        ]
        middles = np.abs(here.middles(mine) - there.middles(its)).max()
        print(f"  {'ok ' if all(overlap) else 'NO '} {spec.name}: NumPy and the card agree "
              f"(middles differ by {middles:.0e})", flush=True)  # fmt: skip
        if not all(overlap):
            sys.exit("the card and the processor disagree")


def certify(name: str, spec: ModelSpec, length: int, first: int) -> dict[str, Any]:
    """One row of the table; `first` is the precision that is tried first."""
    model = random_model(spec)
    start = perf_counter()
    case = Certified(model, length, DEVICE)
    bits = case.precision(first)
    torch.cuda.synchronize()
    search = perf_counter() - start
    steps = case.run(bits)
    exactly = Plain(model, "float64", DEVICE).logits(case.ids)
    distance = float(np.abs(case.middles(steps) - exactly.cpu().numpy()).max())
    radius, proven = case.radius(steps), case.proven(steps)
    del steps, exactly
    plain = Plain(model, "float32", DEVICE)
    plain.logits(case.ids)
    pairs = [
        (seconds(lambda: case.run(bits)), seconds(lambda: plain.logits(case.ids)))
        for _round in range(ROUNDS)
    ]
    ours, theirs = (median(side) for side in zip(*pairs, strict=True))
    row = {
        "model": name,
        "tokens": length,
        "bits": bits,
        "certified": f"{ours:.3f} s",
        "torch float32": f"{theirs:.4f} s",
        "ratio": f"{median(a / b for a, b in pairs):.1f}",
        "largest radius": f"{2.0**radius:.1e}",
        "proven": f"{proven} of {length}",
    }
    print(
        f"  {name}: {row}; float64 is within {distance:.0e}; slicing, norms and the search for the"
        f" precision took {search:.0f} s; {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB",
        flush=True,
    )
    assert distance < 1e-6, "a plain float64 pass is nowhere near the enclosures"
    return row


def checks_first() -> None:
    check_card()
    check_same_bits()


PARTS: dict[str, Callable[[], dict[str, Any] | None]] = {
    "checks": checks_first,
    "gpt2": lambda: certify("GPT-2 small, random", gpt2(), 1024, 136),
    "llama": lambda: certify("Llama-like, 1.2 billion, random", llama(LLAMA_1B), 64, 150),
}


def main() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    card = torch.cuda.get_device_name()
    print(f"torch {torch.__version__} on {card}, certified to {RADIUS}")
    rows = []
    for part in sys.argv[1:] or PARTS:
        row = PARTS[part]()
        if row is None:
            continue
        rows.append(row)
        if out := os.environ.get("OUT"):
            record = {"card": card, "torch": torch.__version__, "rows": rows}
            Path(out, "proven-gpu.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        torch.cuda.empty_cache()
    print("\n| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for row in rows:
        print("| " + " | ".join(str(row[name]) for name in HEAD) + " |")


if __name__ == "__main__":
    main()

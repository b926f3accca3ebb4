"""The cost of a check: a full float32 dump of a GPT-2-small-sized model, beside one forward pass.

Both run on one thread, timed in turn within one run; the median ratio counts.  The dump is of
byhand's own floats, in memory, without errors.

    python -m benchmarks.checking [ROUNDS]
"""

from __future__ import annotations

import os
import sys
from statistics import median
from time import perf_counter
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LENGTH, ROUNDS, BAR = 32, 7, 6.0


def dump(model: Any, text: str) -> dict[str, Any]:
    """Every step of the pass in float32; masked scores −∞, masked weights 0."""
    import numpy as np

    import byhand

    found: dict[str, Any] = {}
    for step in byhand.trace(model, text, float="float32").values():
        if not step.whole:
            empty = -np.inf if step.address.endswith(".scores") else 0.0
            found[step.address] = np.ma.filled(np.ma.asarray(step.array), empty).copy()
    return found


def main(arguments: list[str]) -> None:
    import torch

    import byhand
    from benchmarks.large import Plain, gpt2, random_model, some_ids

    torch.set_num_threads(1)
    model = random_model(gpt2())
    ids = some_ids(model.spec, LENGTH)
    text = " ".join(map(str, ids))
    claims, plain = dump(model, text), Plain(model)

    def marked() -> Any:
        return byhand.check(model, claims, text=text, precision="float32")

    def forward() -> Any:
        return plain.logits(ids)

    marking = marked()
    assert marking.follows, marking.first_error
    forward()
    rounds = []
    for _round in range(int(arguments[0]) if arguments else ROUNDS):
        rounds.append((_seconds(marked), _seconds(forward)))
    ours, theirs = zip(*rounds, strict=True)
    ratio = median(a / b for a, b in rounds)
    print(
        f"{len(claims)} steps checked {median(ours):.3f} s, plain forward {median(theirs):.3f} s, "
        f"ratio {ratio:.2f} (of the fastest rounds {min(ours) / min(theirs):.2f}); bar {BAR:.0f}"
    )


def _seconds(work: Any) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in THREADS):  # BLAS reads them when it is loaded
        environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
        command = [sys.executable, "-m", "benchmarks.checking", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)
    main(sys.argv[1:])

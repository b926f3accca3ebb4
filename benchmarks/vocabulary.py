"""The newer operations in limbs and forms against Arb: are the real values inside, and how tightly.

python -m benchmarks.vocabulary samples N SEED    N random calls of operations in limbs (100,000)
python -m benchmarks.vocabulary passes N SEED     N random models with every newer field
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported
TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "numbers" / "enclosed")]

import numpy as np  # noqa: E402

from byhand.numbers.enclosed.limbs.operations import Limbs  # noqa: E402
from byhand.numbers.forms import Forms  # noqa: E402
from oracles.vocabulary import Truth  # noqa: E402
from oracles.vocabulary_models import Model, drawn_model  # noqa: E402

BITS = (40, 60, 120, 200)
NOTHING = 2.0**-600  # what Arb's own rounding may add


def samples(count: int = 100_000, seed: int = 0) -> None:
    """Asserts that every real value is inside; the part of a radius that the furthest one used."""
    from vocabulary_samples import SAMPLES, Sampler  # type: ignore[import-not-found]

    each = -(-count // len(SAMPLES))
    for name, sample in SAMPLES.items():
        start = perf_counter()
        used = [
            sample(Sampler(Limbs(BITS[n * len(BITS) // each]), np.random.default_rng((seed, n))))
            for n in range(each)
        ]
        took = perf_counter() - start
        told = f"used {median(used):.2f}, {max(used):.3f} at most"
        print(f"{name:14} {each} calls, {told}, {took:.0f} s")


def passes(count: int = 100, seed: int = 0) -> None:
    """Whole passes: numbers outside (there must be none), and numbers known to 10 bits and more."""
    start, looked, wrong = perf_counter(), 0, 0
    sharp = dict.fromkeys(("40 bits", "150 bits", "forms"), 0)
    for number in range(count):
        model = drawn_model(seed, number)
        truth = Truth(1200)
        real = model.work(truth)
        for kind, numbers in (("40 bits", Limbs(40)), ("150 bits", Limbs(150)), ("forms", Forms())):
            seen, outside, known = _compared(model, numbers, truth, real)
            looked, wrong = looked + seen, wrong + outside
            sharp[kind] += known
            if outside:
                print(f"model {number}, {kind}: {outside} outside")
    shares = ", ".join(f"{kind} {3 * known / looked:.3f}" for kind, known in sharp.items())
    print(f"{count} models, {looked} numbers, {wrong} outside; known well: {shares}")
    print(f"{perf_counter() - start:.0f} s")


def _compared(model: Model, numbers: Any, truth: Truth, real: Any) -> tuple[int, int, int]:
    """(numbers looked at, those outside, those known to 2^-10 of their size or to 2^-13)."""
    ours = model.work(numbers)
    looked = outside = known = 0
    for step in model.plan():
        if step.op in ("given", "argmax"):
            continue
        found = numbers.entries(ours[step.address].value)
        values = truth.entries(real[step.address].value)
        for index in np.ndindex(*step.shape):
            value, mine = values[index], found[index]
            if value is None:
                continue
            looked += 1
            outside += not abs(value.mid - mine.mid) <= mine.rad + NOTHING
            known += mine.rad * 1024 <= abs(mine.mid) or mine.rad < 2.0**-13
    return looked, outside, known


if __name__ == "__main__":
    from byhand.numbers.enclosed.limbs.weights import torch_devices

    torch_devices()
    work = {"samples": samples, "passes": passes}[sys.argv[1]]
    work(*map(int, sys.argv[2:]))

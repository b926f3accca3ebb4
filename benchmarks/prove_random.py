"""The prover against brute force: random properties of random tiny models, same answer every time.

python benchmarks/prove_random.py [COUNT [FIRST SEED]]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "proving")]

from random_properties import random_property  # noqa: E402

from byhand.proving.outcome import OPEN, PROVEN, REFUTED  # noqa: E402
from byhand.proving.search import cases, prove  # noqa: E402


def main() -> None:
    """Prints a line for each answer that is not the true one, and how many were right."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found: Counter[str] = Counter()
    began = perf_counter()
    for seed in range(first, first + count):
        cases.FEWEST = (1, 1, 64)[seed % 3]  # mostly letters, as far as they go
        property, failing = random_property(seed)
        outcome = prove(property)
        claim = type(property.goals[0].claim).__name__
        told = outcome.answer
        if outcome.answer == OPEN:
            told = f"open {claim}"
        elif outcome.answer != (REFUTED if failing else PROVEN):
            told = "WRONG"
        elif outcome.counterexample and outcome.counterexample.tokens not in failing:
            told = "WRONG TEXT"
        if told not in (PROVEN, REFUTED):
            print(f"seed {seed}: {told} {outcome.why}; {len(failing)} texts fail")
        found[told] += 1
    print(dict(found), f"{perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

"""One command, one table: byhand's times beside those of other programs.

Every ratio compares two programs timed in turn within one run, on one thread, so that a noisy or
slow machine affects both.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks import sympy_pass
from byhand.evaluate import trace
from byhand.models import open_model

HERE = Path(__file__).parent
PATIENCE = 60  # seconds before SymPy is stopped


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The seconds of one call, averaged over `times` calls in a row."""
    start = perf_counter()
    for _call in range(times):
        work()
    return (perf_counter() - start) / times


def side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int, times: int = 1
) -> tuple[float, float]:
    """The median seconds of both, timed in turn after a warm-up round.

    `times` is the number of our calls in a round, if one call is too short to time.
    """
    ours(), theirs()
    pairs = [(seconds(ours, times), seconds(theirs)) for _round in range(rounds)]
    return median(a for a, _b in pairs), median(b for _a, b in pairs)


def process(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL
    )


def tiny_against_sympy() -> tuple[str, float, float]:
    from sympy.core.cache import clear_cache

    model = open_model("tiny")
    agree = [row for row, _probs, _next in sympy_pass.forward(sympy_pass.TINY)]
    assert trace(model, "a b")["logits"].value.tolist() == agree, "the two passes differ"

    def theirs() -> None:
        clear_cache()
        sympy_pass.forward(sympy_pass.TINY)

    ours, other = side_by_side(lambda: trace(model, "a b"), theirs, 7, 50)
    return "exact trace of tiny / SymPy, same pass, simplified", ours, other


def cold_start() -> tuple[str, float, float]:
    ours, other = side_by_side(
        process("-m", "byhand", "trace", "tiny"), process("-c", "import numpy"), 15
    )
    return "byhand trace tiny / python -c 'import numpy', cold", ours, other


def deep() -> tuple[str, float, float | None]:
    """Three blocks, eight tokens, three dimensions, with every sum decided by algebra."""
    model = open_model(str(HERE / "deep.yaml"))

    def ours() -> None:
        worked = trace(model)
        for step in worked:
            if step.address.endswith(".weights"):
                assert all(sum(row[: i + 1]) == 1 for i, row in enumerate(step.value[0]))
            if step.address.endswith(".centered"):
                assert all(sum(row) == 0 for row in step.value)

    ours()
    took = median(seconds(ours) for _round in range(5))
    command = [sys.executable, "-m", "benchmarks.sympy_pass", "deep"]
    try:
        start = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        other: float | None = perf_counter() - start
    except subprocess.TimeoutExpired:
        other = None
    return "3 blocks × 8 tokens × 3 dimensions, sums decided / SymPy", took, other


def main() -> None:
    print(f"{'':58}{'byhand':>10}{'other':>10}{'ratio':>10}")
    for measure in (tiny_against_sympy, cold_start, deep):
        name, ours, other = measure()
        told = f"> {PATIENCE} s" if other is None else f"{other:.4f} s"
        ratio = f"< {ours / PATIENCE:.4f}" if other is None else f"{ours / other:.4f}"
        print(f"{name:58}{f'{ours:.4f} s':>10}{told:>10}{ratio:>10}")


if __name__ == "__main__":
    main()

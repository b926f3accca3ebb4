"""Exact and enclosed backward passes: their cost beside forward ones, and whether they hold.

`python -m benchmarks.exact_backward [--passes N] [--seed N]` times the exact backward pass of
`tiny` beside its forward pass, in turn and in one process.  Then it works whole training steps of N
random small models out in Arb balls of few bits, and compares every entry with Arb at 400 bits,
through the expressions of `byhand.working`.  No truth may lie outside its ball.  It ends with
status 1 if one does.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from flint import ctx

from byhand.errors import ByhandError
from byhand.evaluate import prepare
from byhand.models import open_model
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.exact import Exact

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from oracles.arb_pass import ArbPass
from oracles.architectures import nasty
from oracles.training import Lesson, lessons

ROUNDS = 41
BITS = (24, 53, 100, 200)
WIDE = 2.0**-10  # of the value: what is wider says little


def seconds_of_tiny(backward: bool) -> float:
    """The seconds of one exact pass of tiny, with or without its gradients."""
    job = prepare(open_model("tiny"), "a b", Exact(), target="c", backward=backward)
    start = perf_counter()
    job.work()
    return perf_counter() - start


@dataclass
class Tally:
    """What the comparisons found."""

    passes: int = 0
    entries: int = 0
    wide: int = 0
    unknown: int = 0  # balls that are not finite
    skipped: int = 0  # passes that divide a row that is not zero by zero
    outside: list[str] = field(default_factory=list)

    def compare(self, lesson: Lesson, oracle: ArbPass, bits: int) -> None:
        """Every entry of every step beside Arb's."""
        self.passes += 1
        for address, worked in lesson.work(Balls(bits)).items():
            if worked.step.op in ("given", "argmax"):
                continue
            for index in np.ndindex(worked.step.shape):
                truth, ball = oracle.values[address][index], worked.value[index]
                if truth is None or not truth.is_finite():
                    continue
                self.entries += 1
                if not ball.is_finite():
                    self.unknown += 1
                    continue
                with ctx.workprec(400):
                    if not ball.overlaps(truth):
                        self.outside.append(f"{address}{list(index)}: {ball} without {truth}")
                    self.wide += not ball.rad() <= WIDE * (abs(truth.mid()) + WIDE)

    def __str__(self) -> str:
        return (
            f"{self.passes} passes, {self.entries} entries: {len(self.outside)} outside, "
            f"{self.wide} wide, {self.unknown} not finite; {self.skipped} models left out"
        )


def contained(passes: int, seed: int) -> Tally:
    """So many random training steps, half of them with weights under which much cancels."""
    tally = Tally()
    drawn = (lessons(passes // 2, seed=seed), lessons(passes - passes // 2, seed=seed, entry=nasty))
    for number, lesson in enumerate(lesson for group in drawn for lesson in group):
        try:
            oracle = lesson.oracle()
        except (AssertionError, ByhandError):
            tally.skipped += 1
            continue
        tally.compare(lesson, oracle, BITS[number % len(BITS)])
    return tally


def main() -> int:
    """Prints both tables."""
    parser = ArgumentParser(prog="benchmarks.exact_backward")
    parser.add_argument("--passes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for backward in (False, True):
        seconds_of_tiny(backward)
    pairs = [(seconds_of_tiny(False), seconds_of_tiny(True)) for _round in range(ROUNDS)]
    forward, both = (median(pair[i] for pair in pairs) for i in (0, 1))
    ratio = median(b / a for a, b in pairs)
    print(f"tiny, exact: forward {1e3 * forward:.2f} ms, with every gradient {1e3 * both:.2f} ms: "
          f"{ratio:.2f} times")  # fmt: skip
    tally = contained(asked.passes, asked.seed)
    print(tally)
    print(*tally.outside[:20], sep="\n")
    return 1 if tally.outside else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.hostile [--seed N] [--models N] [--keep | --flush]`: none outside, or says
so."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections import defaultdict

from benchmarks.hostile.runs import judged, runs


def main(arguments: list[str]) -> int:
    options = ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--models", type=int, default=200)
    options.add_argument("--flush", action="store_true", help="only runs that flush")
    options.add_argument("--keep", action="store_true", help="only runs that do not")
    given = options.parse_args(arguments)
    flushing = True if given.flush else False if given.keep else None
    count, entries, still = 0, 0, 0
    used: dict[str, float] = defaultdict(float)
    outside = 0
    for run in runs(given.seed, given.models, flushing=flushing):
        count += 1
        for line in judged(run):
            entries, still = entries + line.entries, still + line.open
            used[line.operation] = max(used[line.operation], line.share)
            if line.share > 1:
                outside += 1
                print(f"{line.share:12.4g} × at {line.address} ({line.operation}), {run.name}")
    print("largest share of the bound:")
    for operation, share in sorted(used.items(), key=lambda each: -each[1]):
        print(f"  {operation:14}{share:8.3f}")
    print(f"{count} runs, {entries} entries, {still} of them open, {outside} lines outside")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

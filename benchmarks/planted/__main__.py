"""`python -m benchmarks.planted [--record] [--seed=N] [BUG …]`: plants bugs, checks, reports."""

from __future__ import annotations

import sys

from benchmarks.planted import matrix
from benchmarks.planted.table import tables


def main(arguments: list[str]) -> None:
    import torch

    torch.set_num_threads(1)
    names = [each for each in arguments if not each.startswith("--")]
    seeds = [each for each in arguments if each.startswith("--seed=")]
    seed = int(seeds[-1].removeprefix("--seed=")) if seeds else 0
    results = []
    for each in matrix.everything(names, seed):
        results.append(each)
        if each.clear and not each.cause_named:
            print(
                f"missed: {each.bug} in {each.family}, {each.format}: first {each.first} "
                f"(planted at {each.shows}), cause {each.cause}",
                file=sys.stderr,
            )
    print(tables(results))
    for total in matrix.totals(results):
        print(total)
    if "--record" in arguments and not names and not seed:
        matrix.record(results)


if __name__ == "__main__":
    main(sys.argv[1:])

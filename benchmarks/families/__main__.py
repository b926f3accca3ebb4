"""`python -m benchmarks.families [--record] [--seed N] [--jobs N] [KIND…]`: every family."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor

from benchmarks.families import report
from benchmarks.families.registry import every


def main() -> int:
    import torch

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="model types; all of them unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write docs/families.json")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    said = parser.parse_args()
    cases = every(said.kinds)
    found = []
    with ProcessPoolExecutor(said.jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for result in pool.map(report.found, cases, [said.seed] * len(cases)):
            found.append(result)
            print("wrong" if result.wrong else "fine ", result.case.kind, result.case.name,
                  f"{result.distance:.1e}", *result.wrong[:4], flush=True)  # fmt: skip
    record = report.data(found, said.seed)
    print(*report.table(record), sep="\n")
    if said.record:
        report.write(record)
    return 1 if any(each.wrong for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.families [--record] [--seed N] [KIND…]`: every config of every family."""

from __future__ import annotations

import argparse
import sys

from benchmarks.families import report
from benchmarks.families.registry import every


def main() -> int:
    import torch

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="model types; all of them unless given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write docs/families.json")
    said = parser.parse_args()
    found = []
    for case in every(said.kinds):
        result = report.found(case, said.seed)
        found.append(result)
        print("wrong" if result.wrong else "fine ", case.kind, case.name, f"{result.distance:.1e}",
              *result.wrong[:4], flush=True)  # fmt: skip
    record = report.data(found, said.seed)
    print(*report.table(record), sep="\n")
    if said.record:
        report.write(record)
    return 1 if any(each.wrong for each in found) else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m benchmarks.gradients [--record] [--seed=N] [BUG …]`: plants bugs, checks, reports."""

from __future__ import annotations

import sys

from benchmarks.gradients import matrix, table


def main(arguments: list[str]) -> None:
    names = [each for each in arguments if not each.startswith("--")]
    seeds = [each for each in arguments if each.startswith("--seed=")]
    seed = int(seeds[-1].removeprefix("--seed=")) if seeds else 0
    results = []
    for each in matrix.everything(names, seed):
        results.append(each)
        if (each.clear and not each.cause_named) or each.false_cause:
            print(
                f"missed: {each.bug} in {each.family}, {each.format} ({each.share:.3g}×): first "
                f"{each.first} (planted at {each.shows}), cause {each.cause}: {each.sentence}",
                file=sys.stderr,
            )
    print(table.tables(results))
    print("\n".join(matrix.totals(results)))
    if "--record" in arguments and not names and not seed:
        matrix.record(results)


if __name__ == "__main__":
    main(sys.argv[1:])

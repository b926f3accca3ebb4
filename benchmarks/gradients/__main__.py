"""`python -m benchmarks.gradients [--record] [--seed=N] [--lines=all|modules|weights] [BUG …]`.

Plants bugs in ports, checks what the ports give, and reports what was found.
"""

from __future__ import annotations

import sys

from benchmarks.gradients import matrix, table


def main(arguments: list[str]) -> None:
    names = [each for each in arguments if not each.startswith("--")]
    told = dict(each[2:].split("=") for each in arguments if "=" in each)
    seed, lines = int(told.get("seed", 0)), told.get("lines", "all")
    results = []
    for each in matrix.everything(names, seed, lines):
        results.append(each)
        if (each.clear and not each.cause_named) or each.false_cause:
            print(
                f"missed: {each.bug} in {each.family}, {each.format} ({each.share:.3g}×): first "
                f"{each.first} (planted at {each.shows}), cause {each.cause}: {each.sentence}",
                file=sys.stderr,
            )
    print(table.tables(results))
    print("\n".join(matrix.totals(results)))
    if "--record" in arguments and not names and not told:
        matrix.record(results)


if __name__ == "__main__":
    main(sys.argv[1:])

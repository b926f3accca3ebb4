"""`python -m benchmarks.museum [--record] [EXHIBIT …]`: real bugs, and what byhand says of them."""

from __future__ import annotations

import sys

from benchmarks.museum import tour


def main(arguments: list[str]) -> int:
    """Prints every exhibit and the totals; 1 if a first wrong line is not the right one."""
    import torch

    torch.set_num_threads(1)
    names = [each for each in arguments if not each.startswith("--")]
    results = []
    for each in tour.everything(names):
        results.append(each)
        print(tour.told(each), end="\n\n", flush=True)
    print(tour.totals(results))
    if "--record" in arguments and not names:
        tour.record(results)
    return int(not all(each.step_right for each in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m benchmarks.alarms [--record] [SOURCE…]`: checks correct runs for false alarms."""

from __future__ import annotations

import sys

from benchmarks.alarms import learned, report, runs

FORTH = {
    "port": runs.ported_runs,
    "kernel": runs.classed_runs,
    "byhand": runs.traced_runs,
    "transformers": runs.library_runs,
}
SOURCES = {**FORTH, report.LEARNED: learned.learned_runs}  # training steps are recorded apart


def main(arguments: list[str]) -> int:
    import torch

    torch.set_num_threads(1)
    wanted = [each for each in arguments if not each.startswith("--")] or list(FORTH)
    found = report.Report()
    for source in wanted:
        for run in SOURCES[source]():
            found.add(run)
    data = found.data()
    print(report.tables(data))
    for line in report.summary(data):
        print(line)
    for alarm in data["alarms"][:20]:
        print("wrong:", alarm, file=sys.stderr)
    if found.unmatched:
        print("names that stand for nothing:", *sorted(found.unmatched), file=sys.stderr)
    if "--record" in arguments and wanted == list(FORTH):
        report.record(data)
    if "--record" in arguments and wanted == [report.LEARNED]:
        report.record(data, report.LEARNED_RECORD)
    return 1 if data["alarms"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

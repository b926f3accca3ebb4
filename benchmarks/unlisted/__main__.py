"""`python -m benchmarks.unlisted [OPTION …] [NAME …]`: plants changes, checks, reports."""

from __future__ import annotations

import sys

from benchmarks.unlisted import measure
from benchmarks.unlisted.changes import FORMATS
from benchmarks.unlisted.dumps import MODES
from benchmarks.unlisted.table import tables, totals


def main(arguments: list[str]) -> None:
    names = [each for each in arguments if not each.startswith("--")]
    seed = int(_option(arguments, "seed", "0"))
    modes = _option(arguments, "mode", ",".join(MODES)).split(",")
    formats = _option(arguments, "format", ",".join(FORMATS)).split(",")
    wanted = measure.jobs(names, modes, formats, seed, brief="--brief" in arguments)
    results = []
    for each in measure.everything(wanted, int(_option(arguments, "jobs", "2"))):
        results.append(each)
        _report(each)
    print(tables(results))
    print()
    print(totals(results))
    if "--record" in arguments:
        measure.record(results, seed)


def _option(arguments: list[str], name: str, usual: str) -> str:
    given = [each for each in arguments if each.startswith(f"--{name}=")]
    return given[-1].partition("=")[2] if given else usual


def _report(found: measure.Found) -> None:
    """What is missed and what is false, with the sentences."""
    where = f"{found.change} in {found.family}, {found.format}, {found.mode}"
    for each in found.false:
        print(f"FALSE: {where}: {each}", file=sys.stderr)
    if found.clear and not found.step_named:
        print(
            f"step: {where}: first {found.first}, planted at {found.lines} {found.said[0]}",
            file=sys.stderr,
        )
    elif found.visible and not found.explained:
        half = "half" if found.half else "missed"
        print(f"{half}: {where}: {found.told} {found.said}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])

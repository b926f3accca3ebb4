"""The table: of each operation in each format, the largest share of the bound that programs use,
the same for roundings that err as far as they may, and their errors in units of the usual one."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.tightness.cases import cases
from benchmarks.tightness.libraries import TYPES, Torch
from benchmarks.tightness.ports import FORMATS, adverse, ports
from byhand.numbers.allowed import Allowed

RECORD = Path(__file__).parents[2] / "docs" / "check-tightness.json"


@dataclass
class Line:
    """One operation in one format."""

    operation: str
    format: str
    share: float = 0.0  # the largest, of real programs
    by: str = ""
    adverse: float = 0.0
    times: float = 0.0  # the median over programs and inputs, of the worst row
    most_times: float = 0.0
    runs: int = 0


def lines(format: str) -> list[Line]:
    """Every operation of a format."""
    numbers = Allowed(format)
    real: list[Any] = list(ports(format))
    if format in TYPES:
        real += [Torch(format, fused=fused) for fused in (False, True)]
    found: dict[str, Line] = {}
    usual: dict[str, list[float]] = {}
    for case in cases(format):
        line = found.setdefault(case.operation, Line(case.operation, format))
        value = case.allowed(numbers)
        for port in real:
            judged = numbers.judge(value, (), case.given(port))
            line.runs += 1
            if judged.times is not None:
                usual.setdefault(case.operation, []).append(judged.times)
            if judged.share > line.share:
                line.share, line.by = judged.share, f"{port.name}, {case.inputs}"
        for port in adverse(format):
            line.adverse = max(line.adverse, numbers.judge(value, (), case.given(port)).share)
    for name, each in usual.items():
        found[name].times, found[name].most_times = median(each), max(each)
    return list(found.values())


def main(arguments: list[str]) -> int:
    torch.set_num_threads(1)
    table = [line for format in FORMATS for line in lines(format)]
    print(f"{'operation':18}{'format':10}{'share':>8}{'adverse':>9}{'times':>7}{'most':>7}  by")
    for line in sorted(table, key=lambda each: (each.operation, FORMATS.index(each.format))):
        print(
            f"{line.operation:18}{line.format:10}{line.share:8.3f}{line.adverse:9.3f}"
            f"{line.times:7.2f}{line.most_times:7.2f}  {line.by}"
        )
    outside = [line for line in table if max(line.share, line.adverse) > 1]
    print(f"\n{sum(line.runs for line in table)} runs, {len(outside)} operations beyond the bound")
    if "--record" in arguments:
        rounded = [
            {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(line).items()}
            for line in table
        ]
        about = {"numpy": np.__version__, "torch": torch.__version__, "lines": rounded}
        RECORD.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

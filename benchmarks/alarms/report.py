"""The report on correct runs: false alarms, and the shares of the bounds that they use.

Lines are grouped by the operation of their step.  If the step's inputs are not all claimed, the
line was judged over a gap, and its group has "bridged" in its name.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import byhand
from byhand import forward
from byhand.capturing import Capture
from byhand.checking.matches.learned import every_name
from byhand.checking.optimizers import read_rule
from byhand.checking.verdicts import Marked, Verdict
from byhand.plan import WEIGHT, Plan

if TYPE_CHECKING:  # tables need neither torch nor transformers
    from benchmarks.alarms.runs import Run

DOCS = Path(__file__).parents[2] / "docs"
RECORD, LEARNED_RECORD = DOCS / "check-alarms.json", DOCS / "check-learned.json"
QUANTILES = (0.5, 0.9, 0.99, 0.999, 1.0)
LARGEST = 1e300
LEARNED = "learned"  # runs of training steps


@dataclass
class Cell:
    """One operation in one format."""

    lines: int = 0
    share: float = 0.0
    times: float = 0.0
    run: str = ""  # the run with the largest share
    address: str = ""


def _steps(run: Run) -> Plan:
    """The plan that the run's lines are lines of."""
    learns = run.source == LEARNED
    plan = forward.plan(run.model.spec, 1, losses=learns)
    if not learns or isinstance(run.claims, Capture):
        return plan
    said = run.claims.get("optimizer")
    return every_name(plan, read_rule(said) if said else None)


@dataclass
class Report:
    """The results of all runs."""

    runs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    texts: int = 0
    lines: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    alarms: list[dict[str, Any]] = field(default_factory=list)
    unusual: list[dict[str, Any]] = field(default_factory=list)
    unmatched: set[str] = field(default_factory=set)
    cells: dict[tuple[str, str], Cell] = field(default_factory=lambda: defaultdict(Cell))
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, run: Run) -> None:
        """Checks a run and records the results."""
        # a capture has its own precision
        precision = None if isinstance(run.claims, Capture) else run.precision
        marking = byhand.check(
            run.model, run.claims, text=run.text, precision=precision, suspects=False
        )
        assert {text.precision for text in marking.texts} == {run.precision}, run.name
        self.runs[run.source] += 1
        self.texts += len(marking.texts)
        self.unmatched |= {each.name for each in marking.unmatched}
        ops = {step.address: step for step in _steps(run)}
        for line in marking:
            self._line(run, line, ops)

    def _line(self, run: Run, line: Marked, ops: Any) -> None:
        self.lines += 1
        self.verdicts[line.verdict.value] += 1
        step = ops[line.claim.address]
        needed = {read for read in step.reads if not read.startswith(WEIGHT) and read != "tokens"}
        op = step.op if needed <= set(line.uses) else f"{step.op}, bridged"
        told = {"run": run.name, "line": line.address, "verdict": line.verdict.value,
                "share": min(line.share, LARGEST), "times": line.times}  # fmt: skip
        if line.verdict.follows is False:
            self.alarms.append(told)
        if line.unusual:
            self.unusual.append(told)
        if line.verdict is Verdict.UNJUDGED:
            return
        cell = self.cells[op, run.precision]
        cell.lines += 1
        if line.share >= cell.share:
            cell.share, cell.run, cell.address = min(line.share, LARGEST), run.name, line.address
        if line.times is not None:
            cell.times = max(cell.times, line.times)
            self.times[run.precision].append(line.times)

    def data(self) -> dict[str, Any]:
        """Everything that docs/check-alarms.json holds."""
        return {
            "runs": dict(self.runs),
            "texts": self.texts,
            "lines": self.lines,
            "verdicts": dict(self.verdicts),
            "alarms": self.alarms,
            "unusual": self.unusual,
            "operations": [
                {"operation": op, "precision": precision, "lines": cell.lines,
                 "share": round(cell.share, 4), "times": round(cell.times, 2), "at": cell.address,
                 "run": cell.run}
                for (op, precision), cell in sorted(self.cells.items())
            ],
            "times": {
                precision: dict(zip(map(str, QUANTILES),
                                    np.quantile(found, QUANTILES).round(2).tolist(), strict=True))
                for precision, found in sorted(self.times.items())
            },
        }  # fmt: skip


def record(data: dict[str, Any], path: Path = RECORD) -> None:
    """Writes the file for the tables of docs/."""
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")


def recorded(path: Path = RECORD) -> dict[str, Any]:
    """The contents of the file."""
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def tables(data: dict[str, Any]) -> str:
    """Markdown: the largest share and the largest N, by operation and precision."""
    rows = data["operations"]
    operations = dict.fromkeys(row["operation"] for row in rows)
    precisions = sorted({row["precision"] for row in rows}, key=_order)
    found = {(row["operation"], row["precision"]): row for row in rows}
    return "\n".join((
        f"| share of the bound · N | {' | '.join(precisions)} |",
        f"|---|{'---|' * len(precisions)}",
        *(
            f"| {op} | {' | '.join(_cell(found.get((op, each))) for each in precisions)} |"
            for op in operations
        ),
    ))  # fmt: skip


def _order(precision: str) -> tuple[bool, str]:
    return ":" in precision, precision


def _cell(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['share']:.2g} · {row['times']:.2g}"


def summary(data: dict[str, Any]) -> Iterable[str]:
    """The targets and whether they are met, in words."""
    runs = data["runs"]
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in data["verdicts"].items())
    yield (
        f"{sum(runs.values())} correct runs ({', '.join(f'{n} {s}' for s, n in runs.items())}), "
        f"{data['texts']:,} texts, {data['lines']:,} lines: {len(data['alarms'])} called wrong, "
        f"{len(data['unusual'])} called unusual; {verdicts}"
    )
    for precision, times in data["times"].items():
        told = ", ".join(f"{float(q):.1%} {value}" for q, value in times.items())
        yield f"N in {precision}: {told}"

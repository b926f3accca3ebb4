"""What the runs of all families found, as JSON and as the table of docs/families.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.families.registry import NEAR, Case

DOCS = Path(__file__).parents[2] / "docs"
RECORD, PAGE = DOCS / "families.json", DOCS / "families.md"
BITS = (53, 100, 200)
WAYS = ("eager", "sdpa")


@dataclass
class Found:
    """What was found about one config."""

    case: Case
    distance: float = 0.0
    balls: bool = True
    counts: tuple[int, int] = (0, 0)
    greedy: bool = True
    lines: dict[str, int] = field(default_factory=dict)  # checked, by attention
    alarms: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """What does not hold."""
        said = {
            f"float64 differs by {self.distance:.1e}": self.distance > NEAR,
            "balls do not contain the truth": not self.balls,
            "counts {} and {}".format(*self.counts): self.counts[0] != self.counts[1],
            "other tokens": not self.greedy,
        }
        return [*(text for text, wrong in said.items() if wrong), *self.alarms]


def found(case: Case, seed: int) -> Found:
    """All comparisons of one config."""
    from benchmarks.families import runs  # torch and transformers, which the page does without

    with runs.pair(case, seed) as pair:
        result = Found(case, distance=runs.distance(pair), counts=runs.counts(pair))
        result.balls = runs.contained(pair, BITS, runs.library(pair)[1])
        ours, theirs = runs.greedy(pair)
        result.greedy = ours == theirs
        for way in WAYS:
            if way in case.unlike or (judged := runs.judged(pair, way)) is None:
                continue
            result.lines[way] = judged.lines
            result.alarms += [f"{way}: {line}" for line in judged.wrong]
            result.unmatched += judged.unmatched
    return result


def data(every: list[Found], seed: int) -> dict[str, Any]:
    """The record: for each family its configs and what was found."""
    families: dict[str, Any] = {}
    for each in every:
        family = families.setdefault(each.case.kind, {"configs": []})
        family["configs"].append({
            "name": each.case.name,
            "parameters": each.counts[0],
            "distance": float(f"{each.distance:.1e}"),
            "lines": each.lines,
            "wrong": each.wrong,
            **({"unlike": dict(each.case.unlike)} if each.case.unlike else {}),
        })  # fmt: skip
    return {"seed": seed, "near": NEAR, "bits": BITS, "families": families}


def table(record: dict[str, Any]) -> Iterator[str]:
    """The rows of the page: one a family."""
    yield "| model_type | configs | float64 differs by | lines judged: eager | sdpa | wrong |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for kind, family in sorted(record["families"].items()):
        configs = family["configs"]
        lines = [sum(each["lines"].get(way, 0) for each in configs) for way in WAYS]
        shown = [str(count) if count else "–" for count in lines]
        far = max(each["distance"] for each in configs)
        wrong = sum(len(each["wrong"]) for each in configs)
        yield f"| `{kind}` | {len(configs)} | {far:.0e} | {shown[0]} | {shown[1]} | {wrong} |"


def unlike(record: dict[str, Any]) -> Iterator[str]:
    """Runs of the library that are left out, each with the reason."""
    for kind, family in sorted(record["families"].items()):
        for config in family["configs"]:
            for way, why in config.get("unlike", {}).items():
                yield f"- `{kind}`, {config['name']}, {way}: {why}."


def page() -> str:
    """The table of docs/families.md, from the record."""
    record = json.loads(RECORD.read_text("utf-8"))
    configs = [each for family in record["families"].values() for each in family["configs"]]
    wrong = sum(len(each["wrong"]) for each in configs)
    lines = sum(sum(each["lines"].values()) for each in configs)
    told = (
        f"{len(record['families'])} families, {len(configs)} configs, {lines:,} judged lines: "
        f"{wrong or 'nothing'} wrong."
    )
    return "\n".join([told, "", *table(record), "", *_left_out(record)])


def _left_out(record: dict[str, Any]) -> Iterator[str]:
    reasons = list(unlike(record))
    if reasons:
        yield "Runs that are left out, since the library works out something else there:"
        yield ""
        yield from reasons


def write(record: dict[str, Any]) -> None:
    """Writes what was found into the record, which keeps the families that were not run."""
    before = json.loads(RECORD.read_text("utf-8"))["families"] if RECORD.exists() else {}
    families = dict(sorted({**before, **record["families"]}.items()))
    text = json.dumps({**record, "families": families}, indent=1, ensure_ascii=False)
    RECORD.write_text(text + "\n", "utf-8")

"""Every bug in every family and format, checked, with the results.

A bug counts by the size of its effect at its first wrong step, in units of the allowed rounding
error.  From twice that error on, the check must name the step and the cause.  Below, rounding may
explain the effect; the mark "N times what rounding usually does" may still show it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from pathlib import Path

import numpy as np

import byhand
from benchmarks.planted import models
from benchmarks.planted.bugs import BUGS, FORMATS
from benchmarks.planted.families import PORTS
from byhand import forward
from byhand.checking.verdicts import Marked, Marking
from byhand.model import Model

RECORD = Path(__file__).parents[2] / "docs" / "check-planted.json"
CLEAR = 2.0  # an effect of so many times the bound must be found
LARGEST = 1e300  # stands for infinity, which JSON does not know


@dataclass(frozen=True)
class Found:
    """The result of the check for one bug in one port."""

    bug: str
    family: str
    format: str
    share: float  # of the bound, at the step where the bug first shows; above 1: not rounding
    times: float | None  # the same in units of what rounding usually does
    shows: str  # that step, as who planted the bug says
    first: str | None  # the step that the check names; None: it found no error
    cause: str | None  # the kind of its first suspect
    sentence: str | None  # what it says of it
    unusual: bool  # whether the step is marked as unusual
    elsewhere: bool = False  # whether anything else is marked, as wrong or as unusual

    @property
    def clear(self) -> bool:
        """Whether the effect is large enough that it must be found."""
        return self.share >= CLEAR

    @property
    def step_named(self) -> bool:
        return self.first == self.shows

    @property
    def cause_named(self) -> bool:
        bug = BUGS[self.bug]
        said = bug.says[self.family] in (self.sentence or "")
        return self.step_named and self.cause in bug.causes and said


def dump(bug: str | None, family: str, format: str, seed: int = 0) -> dict[str, object]:
    """The values of a port with this bug."""
    port = PORTS[family](models.model(family, seed), models.some_ids(family, seed), format)
    if bug is not None:
        BUGS[bug].plant(port)
    return port.run()


def checked(bug: str | None, family: str, format: str, seed: int = 0) -> Marking:
    """The dump of a port with this bug, marked."""
    model, ids = models.model(family, seed), models.some_ids(family, seed)
    claims: Mapping[str, object] = dump(bug, family, format, seed)
    text: str | None = " ".join(map(str, ids))
    if bug is not None and (padding := BUGS[bug].padding):
        text, claims = None, _padded(claims, model, ids, padding)
    return byhand.check(model, claims, text=text, precision=format)


def _padded(
    claims: Mapping[str, object], model: Model, ids: list[int], padding: int
) -> dict[str, object]:
    """The dump as a batch of one text that is padded on the left: zeros before it."""
    plan = forward.plan(model.spec, len(ids))
    found: dict[str, object] = {
        "tokens": np.array([[0] * padding + ids]),
        "attention_mask": np.array([[0] * padding + [1] * len(ids)]),
    }
    for name, value in claims.items():
        before = [(padding * (axis in ("pos", "query", "key")), 0) for axis in plan[name].axes]
        found[name] = np.pad(np.asarray(value), before)[None]
    return found


def found(bug: str, family: str, format: str, seed: int = 0) -> Found:
    """The result for one bug, planted in one port."""
    marking = checked(bug, family, format, seed)
    shows = BUGS[bug].shows[family]
    at = next(line for line in marking if line.claim.name == shows)
    first = marking.first_error
    suspect = first.suspects[0] if first and first.suspects else None
    return Found(
        bug, family, format,
        share=at.share if isfinite(at.share) else LARGEST,
        times=at.times if at.times is None or isfinite(at.times) else LARGEST,
        shows=shows,
        first=first.claim.name if first else None,
        cause=suspect.kind if suspect else None,
        sentence=suspect.sentence if suspect else None,
        unusual=at.unusual,
        elsewhere=any(_marked(line) for line in marking if line is not at),
    )  # fmt: skip


def _marked(line: Marked) -> bool:
    return line.unusual or line.verdict.follows is False


def everything(names: Iterable[str] = (), seed: int = 0) -> Iterator[Found]:
    """The results of every bug, or of those named, in every suitable family and format."""
    for bug in map(BUGS.__getitem__, list(names) or BUGS):
        for format in bug.formats:
            for family in bug.shows:
                yield found(bug.name, family, format, seed)


@dataclass(frozen=True)
class Totals:
    """The totals for one format."""

    format: str
    kinds: int  # of bugs that were planted
    ports: int  # with a bug
    clear: int  # ports in which the effect is at least twice the bound
    steps: int  # of those: the first wrong step was named
    causes: int  # of those: the cause was named
    kinds_found: int  # kinds that are clear somewhere, and step and cause named wherever they are
    kinds_clear: int
    hidden: int  # ports in which the effect is smaller
    hidden_found: int  # of those: an error was found at the step all the same
    hidden_marked: int  # of those: the step is marked as unusual

    @classmethod
    def of(cls, format: str, results: Iterable[Found]) -> Totals:
        own = [each for each in results if each.format == format]
        clear = [each for each in own if each.clear]
        hidden = [each for each in own if not each.clear]
        kinds = {each.bug for each in clear}
        missed = {each.bug for each in clear if not each.cause_named}
        return cls(
            format,
            kinds=len({each.bug for each in own}),
            ports=len(own),
            clear=len(clear),
            steps=sum(each.step_named for each in clear),
            causes=sum(each.cause_named for each in clear),
            kinds_found=len(kinds - missed),
            kinds_clear=len(kinds),
            hidden=len(hidden),
            hidden_found=sum(each.step_named for each in hidden),
            hidden_marked=sum(each.unusual for each in hidden),
        )

    def __str__(self) -> str:
        return (
            f"{self.format}: {self.kinds} kinds in {self.ports} ports; effect at least twice the "
            f"bound in {self.clear} ({self.kinds_clear} kinds): step named in {self.steps}, cause "
            f"in {self.causes} ({_percent(self.causes, self.clear)}), {self.kinds_found} kinds "
            f"wherever they are; of the other {self.hidden}, found all the same "
            f"{self.hidden_found}, marked as unusual {self.hidden_marked}"
        )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "none"


def record(results: Iterable[Found]) -> None:
    """Writes the file for the tables of docs/."""
    rows = [asdict(each) for each in results]
    text = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    RECORD.write_text(f"[\n{text}\n]\n", "utf-8")


def recorded() -> list[Found]:
    """The contents of the file."""
    names = [each.name for each in fields(Found)]
    rows = json.loads(RECORD.read_text("utf-8"))
    return [Found(**{name: row[name] for name in names}) for row in rows]


def totals(results: Iterable[Found]) -> list[Totals]:
    own = list(results)
    return [Totals.of(format, own) for format in FORMATS]

"""Every bug in every family and format, checked, with the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

import byhand
from benchmarks.gradients import lessons
from benchmarks.gradients.adamw import Learner, Settings
from benchmarks.gradients.bugs import BUGS, FORMATS
from benchmarks.gradients.port import Port
from byhand import forward
from byhand.backward import adjoint
from byhand.checking.verdicts import Marking, Verdict
from byhand.model import Model
from byhand.optimizer import Rule, update

RECORD = Path(__file__).parents[2] / "docs" / "check-gradients.json"
CLEAR = 2.0  # an effect of so many times the bound must be found
LARGEST = 1e300  # stands for infinity, which JSON does not know
POSITIONS = ("pos", "query", "key")
SETTINGS = Settings()
INSIDE = (".mixed", ".scores", "_rotated", ".gated", ".attn.add", ".centered", ".mean", ".std",
          ".variance", ".normalized", ".mean_square", ".rms")  # fmt: skip
LINES: dict[str, Callable[[str], bool]] = {  # which lines of a dump are claimed
    "all": lambda name: True,
    "modules": lambda name: not name.endswith(INSIDE) and ".clip" not in name,
    "weights": lambda name: not name.startswith("grad.") or name.startswith("grad.weight."),
}


@dataclass(frozen=True)
class Found:
    """The result of the check for one bug in one port."""

    bug: str
    family: str
    format: str
    share: float  # of the bound, at the line where the bug first shows; above 1: not rounding
    times: float | None  # the same in units of what rounding usually does
    shows: str  # that line, as who planted the bug says
    first: str | None  # the line that the check names; None: it found no error
    cause: str | None  # the kind of its first suspect
    sentence: str | None  # what it says of it
    unusual: bool  # whether the line is marked as unusual
    strays: int = 0  # lines called wrong that no line above explains, other than of this mistake

    @property
    def clear(self) -> bool:
        """Whether the effect is large enough that it must be found."""
        return self.share >= CLEAR

    @property
    def step_named(self) -> bool:
        """Whether the first wrong line is the one where the bug shows."""
        return self.first == self.shows

    @property
    def cause_named(self) -> bool:
        """Whether the cause is that of the bug."""
        return self.step_named and self.cause in BUGS[self.bug].causes

    @property
    def false_cause(self) -> bool:
        """Whether another cause is named."""
        return self.cause is not None and self.cause not in BUGS[self.bug].causes


def learner(
    bug: str, family: str, format: str, seed: int = 0, port: type[Learner] = Learner
) -> Learner:
    """A port with this bug, after one step; the step before it was another lesson's."""
    model = lessons.model(family, seed)
    before = _before(family, format, seed)
    old = {name: before[f"grad.weight.{name}"].astype(np.float64) for name in model.weights}
    learning = port(model, lessons.lesson(seed), format, bug)
    first, second = SETTINGS.betas
    moments = {f"before.m.{name}": (1 - first) * grad for name, grad in old.items()}
    moments |= {f"before.v.{name}": (1 - second) * grad**2 for name, grad in old.items()}
    learning.learn(SETTINGS, {name: learning.rounded(g) for name, g in old.items()}, moments)
    return learning


@cache
def _before(family: str, format: str, seed: int) -> dict[str, Any]:
    port = Port(lessons.model(family, seed), lessons.lesson(seed + 1000), format)
    return port.run()


def claims(port: Learner) -> dict[str, Any]:
    """What a port gives as claims: a batch of texts, the optimizer, and all values."""
    lesson, s = port.lesson, SETTINGS
    plan = update(
        adjoint(forward.plan(port.spec, len(lesson.tokens), losses=True)),
        Rule("adamw", clip=Fraction(1), step=2),
    )
    rows = [lesson.tokens[text] for text in lesson.texts]
    found: dict[str, Any] = {
        "input_ids": np.array(rows),
        "targets": np.array([lesson.targets[text] for text in lesson.texts]),
        "optimizer": (
            f"adamw lr={s.rate_at(s.step)} betas={s.betas[0]},{s.betas[1]} eps={s.eps} "
            f"weight_decay={s.decay} clip={s.clip} step={s.step}"
        ),
    }
    for name, value in port.dump.items():
        axes = plan[name].axes
        if any(axis in POSITIONS for axis in axes):
            cuts = [
                tuple(text if axis in POSITIONS else slice(None) for axis in axes)
                for text in lesson.texts
            ]
            value = np.stack([value[cut] for cut in cuts])
        found[name] = value
    return found


def checked(bug: str, family: str, format: str, seed: int = 0, lines: str = "all") -> Marking:
    """The dump of a port with this bug, marked; `lines` says how much of it is there."""
    port = learner(bug, family, format, seed)
    given = {name: value for name, value in claims(port).items() if LINES[lines](name)}
    return marked(lessons.model(family, seed), given, format)


def marked(model: Model, given: dict[str, Any], format: str) -> Marking:
    """Claims, marked."""
    return byhand.check(model, given, precision=format)


def shows(bug: str, family: str, lines: str = "all") -> str:
    """The first line at which a bug shows, of those that are there."""
    planted = BUGS[bug].shows[family]
    if lines == "all":
        return planted
    right, wrong = learner("", family, "float32"), learner(bug, family, "float32")
    plan = update(
        adjoint(forward.plan(right.spec, len(right.lesson.tokens), losses=True)),
        Rule("adamw", clip=Fraction(1), step=2),
    )
    order = {step.address: place for place, step in enumerate(plan)}
    there = sorted(filter(LINES[lines], wrong.dump), key=lambda name: order[plan[name].address])
    return next(name for name in there if not np.array_equal(right.dump[name], wrong.dump[name]))


def found(bug: str, family: str, format: str, seed: int = 0, lines: str = "all") -> Found:
    """The result for one bug, planted in one port."""
    marking = checked(bug, family, format, seed, lines)
    place = shows(bug, family, lines)
    at = next(line for line in marking if line.claim.name == place)
    first = marking.first_error
    suspect = first.suspects[0] if first and first.suspects else None
    wrong = [line for line in marking if line.verdict is Verdict.ERROR]
    return Found(
        bug, family, format,
        share=at.share if isfinite(at.share) else LARGEST,
        times=at.times if at.times is None or isfinite(at.times) else LARGEST,
        shows=place,
        first=first.claim.name if first else None,
        cause=suspect.kind if suspect else None,
        sentence=suspect.sentence if suspect else None,
        unusual=at.unusual,
        strays=sum(not line.suspects or line.suspects[0].kind not in BUGS[bug].causes
                   for line in wrong),
    )  # fmt: skip


def everything(names: Iterable[str] = (), seed: int = 0, lines: str = "all") -> Iterator[Found]:
    """The results of every bug, or of those named, in every suitable family and format."""
    for bug in map(BUGS.__getitem__, list(names) or BUGS):
        for format in bug.formats:
            for family in bug.shows:
                yield found(bug.name, family, format, seed, lines)


def totals(results: Iterable[Found]) -> list[str]:
    """One line for each format: how many were found, and how many were named."""
    own, lines = list(results), []
    for format in FORMATS:
        each = [found for found in own if found.format == format]
        clear = [found for found in each if found.clear]
        steps, causes = sum(f.step_named for f in clear), sum(f.cause_named for f in clear)
        share = 100 * causes / max(1, len(clear))
        lines.append(
            f"{format}: {len({f.bug for f in each})} kinds in {len(each)} ports; effect at least "
            f"twice the bound in {len(clear)} ({len({f.bug for f in clear})} kinds): first wrong "
            f"line named in {steps}, cause in {causes} ({share:.1f}%), false causes "
            f"{sum(f.false_cause for f in each)}"
        )
    return lines


def record(results: Iterable[Found]) -> None:
    """Writes the file for the table of docs/."""
    rows = [json.dumps(asdict(each), ensure_ascii=False) for each in results]
    RECORD.write_text("[\n" + ",\n".join(rows) + "\n]\n", "utf-8")


def recorded() -> list[Found]:
    """The contents of the file."""
    names = [each.name for each in fields(Found)]
    rows = json.loads(RECORD.read_text("utf-8"))
    return [Found(**{name: row[name] for name in names}) for row in rows]

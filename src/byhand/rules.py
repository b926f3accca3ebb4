"""The rules of some training steps, read from options: the optimizer, its settings, the rates.

Numbers are taken as they are written: "0.1", 0.1 and "1/10" are one tenth.  What an optimizer does
not have is refused, in the words of Python or of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from byhand.errors import UsageError, nearest
from byhand.language import _, later
from byhand.optimizer import OPTIMIZERS, Rule
from byhand.options import does_not_fit, refuse_unless_whole
from byhand.schedules import END, Schedule

SCHEDULES = ("constant", "cosine")
MOST_STEPS = 100_000
Given = str | int | float | Fraction | Decimal
USUAL: Mapping[str, Mapping[str, Fraction | tuple[Fraction, Fraction]]] = {  # as torch has them
    "sgd": {"lr": Fraction(1, 10), "decay": Fraction(0)},
    "momentum": {"lr": Fraction(1, 10), "decay": Fraction(0), "momentum": Fraction(9, 10)},
    "adam": {
        "lr": Fraction(1, 1000),
        "decay": Fraction(0),
        "betas": (Fraction(9, 10), Fraction(999, 1000)),
        "eps": Fraction(1, 10**8),
    },
    "adamw": {
        "lr": Fraction(1, 1000),
        "decay": Fraction(1, 100),
        "betas": (Fraction(9, 10), Fraction(999, 1000)),
        "eps": Fraction(1, 10**8),
    },
}
_WRITTEN = re.compile(
    r"-?([0-9]{1,20}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,2})?|-?[0-9]{1,20}/[0-9]{1,20}"
)


@dataclass(frozen=True)
class Settings:
    """How to learn: an optimizer, its settings and the learning rate of every step.

    What is None is usual for the optimizer.  `end` is the share of the rate that a cosine leaves.

    >>> [str(rule.rate) for rule in Settings("adam", lr="0.01", steps=3, warmup=2).rules]
    ['1/200', '1/100', '1/100']
    """

    optimizer: str = "sgd"
    lr: Given | None = None
    momentum: Given | None = None
    betas: Any = None
    eps: Given | None = None
    decay: Given | None = None
    clip: Given | None = None
    steps: int = 1
    warmup: int = 0
    schedule: str = "constant"
    end: Given | None = None
    dashes: str = field(default="", repr=False)  # "--" where messages name options so

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rule of each step, or a UsageError for what does not fit."""
        self._known("optimizer", self.optimizer, OPTIMIZERS)
        self._known("schedule", self.schedule, SCHEDULES)
        refuse_unless_whole("steps", self.steps, 1, MOST_STEPS, self.dashes)
        refuse_unless_whole("warmup", self.warmup, 0, self.steps, self.dashes)
        usual = dict(USUAL[self.optimizer])
        given = {name: self._read(name) for name in ("lr", "momentum", "betas", "eps", "decay")}
        for name, value in given.items():
            if value is not None and name not in usual:
                raise self._not_here(name)
        settings: dict[str, Any] = usual | {k: v for k, v in given.items() if v is not None}
        rate, clip, schedule = settings.pop("lr"), self._read("clip"), self._schedule()
        return tuple(
            Rule(
                self.optimizer,
                rate * schedule.rational_share(step, self.steps),
                clip,
                step=step,
                **settings,
            )
            for step in range(1, self.steps + 1)
        )

    def _schedule(self) -> Schedule:
        end = self._read("end")
        if self.schedule == "constant" and end is not None:
            raise UsageError(
                _("a constant rate has no {name}").format(name=f"{self.dashes}end"),
                hint=f"{self.dashes}schedule cosine",
            )
        usual = END if self.schedule == "cosine" else 1
        return Schedule(self.warmup, usual if end is None else float(end))

    # ------------------------------------------------------------------ what fits

    def _read(self, name: str) -> Any:
        """A setting as an exact number; None where it is not given."""
        given = getattr(self, name)
        if given is None:
            return None
        if name == "betas":
            pair = given.split(",") if isinstance(given, str) else given
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise does_not_fit(name, _("two numbers, such as 0.9,0.999"), given, self.dashes)
            return tuple(self._number(name, beta) for beta in pair)
        return self._number(name, given)

    def _number(self, name: str, given: Any) -> Fraction:
        found, (fits, expected) = as_written(given), RANGES[name]
        if found is None or not fits(found):
            raise does_not_fit(name, _(expected), given, self.dashes)
        return found

    def _known(self, name: str, given: Any, known: tuple[str, ...]) -> None:
        if given not in known:
            error = does_not_fit(name, ", ".join(known), given, self.dashes)
            error.hint = nearest(str(given)[:40], known)
            raise error

    def _not_here(self, name: str) -> UsageError:
        having = [kind for kind in OPTIMIZERS if name in USUAL[kind]]
        return UsageError(
            _("{optimizer} has no {name}").format(
                optimizer=self.optimizer, name=self.dashes + name
            ),
            hint=_("{optimizers} have it").format(optimizers=", ".join(having))
            if len(having) > 1
            else _("{optimizer} has it").format(optimizer=having[0]),
        )


def as_written(given: Any) -> Fraction | None:
    """The number as it is written: 0.1 is 1/10; None where it is no finite number.

    >>> as_written(0.1), as_written("1e-3"), as_written("1/3"), as_written("nan")
    (Fraction(1, 10), Fraction(1, 1000), Fraction(1, 3), None)
    """
    if isinstance(given, bool):
        return None
    if isinstance(given, int | Fraction):
        return Fraction(given)
    if isinstance(given, float | Decimal) and isfinite(given):
        return Fraction(str(float(given) if isinstance(given, float) else given))
    try:
        plain = isinstance(given, str) and _WRITTEN.fullmatch(given.strip())
        return Fraction(given.strip()) if plain else None
    except ZeroDivisionError:
        return None


Fits = Callable[[Fraction], bool]
RANGES: Mapping[str, tuple[Fits, str]] = {
    "lr": (lambda x: x > 0, later("a number above 0, such as 0.1")),
    "momentum": (lambda x: 0 <= x < 1, later("a number from 0 to below 1")),
    "betas": (lambda x: 0 <= x < 1, later("numbers from 0 to below 1")),
    "eps": (lambda x: x > 0, later("a number above 0, such as 1e-8")),
    "decay": (lambda x: x >= 0, later("a number of at least 0")),
    "clip": (lambda x: x > 0, later("a number above 0, such as 1")),
    "end": (lambda x: 0 <= x <= 1, later("a number from 0 to 1")),
}

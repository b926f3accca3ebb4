"""Lessons of a State: the texts that its model has learned from, and how.

A State names its lessons and no weights.  The same lessons always give the same weights, so a State
stays short, and undo and links need nothing more.  `learned` works them out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from byhand.errors import InputError
from byhand.language import _
from byhand.optimizer import OPTIMIZERS, Rule
from byhand.rules import Settings
from byhand.serving import fields

MOST_LESSONS, MOST_STEPS = 200, 1_000  # of one State
KEYS = ("text", "target", "optimizer", "rate", "steps", "weights")
_RATE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,12})?")

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Lesson:
    """Some training steps on one text.  `weights` are the entries edited by hand before them.

    With a target, the loss is that of the target after the text; without one, the mean loss over
    the text's own next tokens.
    """

    text: str
    target: str | None = None
    optimizer: str = "sgd"
    rate: str = "0.1"
    steps: int = 1
    weights: Pairs = ()

    def rule(self, step: int) -> Rule:
        """The optimizer's rule at a step, counted from 1."""
        rule = Settings(self.optimizer, lr=self.rate).rules[0]
        return replace(rule, step=step)


def read_lessons(data: Any, where: str, pairs: Callable[[Any, str], Pairs]) -> tuple[Lesson, ...]:
    """The lessons of a State; an InputError names a wrong key.  `pairs` reads edited weights."""
    if data is None:
        return ()
    if not isinstance(data, list):
        raise fields.impossible(data, where, _("a list"))
    found = tuple(_lesson(one, f"{where}.{place}", pairs) for place, one in enumerate(data))
    steps = sum(lesson.steps for lesson in found)
    for count, most in ((len(found), MOST_LESSONS), (steps, MOST_STEPS)):
        if count > most:
            raise InputError(
                _("too many lessons for one page"),
                where=where,
                expected=_("at most {count} of them").format(count=f"{most:,}"),
                found=f"{count:,}",
                hint=_("keep it as a model file, and go on from that"),
            )
    return found


def _lesson(data: Any, where: str, pairs: Callable[[Any, str], Pairs]) -> Lesson:
    table = fields.table(data, where)
    fields.refuse_others(table, KEYS, where)
    if "text" not in table:
        raise fields.missing("text", where)
    target, steps = table.get("target"), table.get("steps", 1)
    return Lesson(
        text=fields.text(table["text"], f"{where}.text"),
        target=None if target is None else fields.text(target, f"{where}.target"),
        optimizer=fields.word(table.get("optimizer", "sgd"), f"{where}.optimizer", OPTIMIZERS),
        rate=_rate(table.get("rate", "0.1"), f"{where}.rate"),
        steps=max(1, fields.place(steps, f"{where}.steps")),
        weights=pairs(table.get("weights"), f"{where}.weights"),
    )


def _rate(data: Any, where: str) -> str:
    said = str(data)
    if isinstance(data, bool) or not _RATE.fullmatch(said):
        raise fields.impossible(said, where, _("a decimal from 0 to 9999"))
    return said

"""Optimizers as claims name them: `adamw lr=0.001 betas=0.9,0.95 weight_decay=0.1 step=3`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from byhand.errors import InputError, nearest
from byhand.language import _
from byhand.optimizer import OPTIMIZERS, Rule

SETTINGS: Mapping[str, str] = {  # as people write them → as a rule calls them
    "lr": "rate",
    "rate": "rate",
    "betas": "betas",
    "eps": "eps",
    "weight_decay": "decay",
    "decay": "decay",
    "momentum": "momentum",
    "clip": "clip",
    "max_norm": "clip",
    "step": "step",
}
DECAYS = {"decays=all": True, "decays=matrices": False}  # which weights decay
EXAMPLE = "adamw lr=0.001 betas=0.9,0.999 weight_decay=0.01 decays=all step=1"
_NUMBERS = re.compile(r"[-+\d.eE/]+(?:,[-+\d.eE/]+)*")


def read_rule(said: str, where: str | None = None) -> Rule:
    """The rule that a line such as `sgd lr=0.1` names.

    >>> read_rule("adam lr=1e-3 betas=0.9,0.95").betas
    (Fraction(9, 10), Fraction(19, 20))
    """
    kind, *settings = said.replace(":", "=").split()
    if kind.lower() not in OPTIMIZERS:
        raise InputError(
            _("there is no optimizer {name}").format(name=repr(kind[:40])),
            where=where,
            expected=", ".join(OPTIMIZERS),
            found=kind[:40],
            hint=nearest(kind.lower(), OPTIMIZERS),
        )
    given = dict(_setting(setting, where) for setting in settings)
    return Rule(kind.lower(), **given)


def _setting(text: str, where: str | None) -> tuple[str, Any]:
    if text in DECAYS:
        return "vectors_decay", DECAYS[text]
    name, _sign, value = text.strip(",").partition("=")
    ours = SETTINGS.get(name)
    try:
        numbers = tuple(map(Fraction, value.split(","))) if _NUMBERS.fullmatch(value) else ()
    except (ValueError, ZeroDivisionError):
        numbers = ()
    wanted = 2 if ours == "betas" else 1
    whole = ours != "step" or all(number.denominator == 1 and number > 0 for number in numbers)
    if ours is None or len(numbers) != wanted or not whole:
        raise InputError(
            _("this is not a setting of an optimizer"), where=where, expected=EXAMPLE, found=text
        )
    if ours == "betas":
        return ours, numbers
    return ours, int(numbers[0]) if ours == "step" else numbers[0]

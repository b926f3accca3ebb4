"""Which mistake a wrong answer of a practice line is, where that is certain.

A mistake is named only if working the line out with it gives exactly this answer, and no other
known mistake does as well.  A guess is never explained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from byhand.address import write_index
from byhand.checking.verdicts import Marked
from byhand.document.compose.book.strips import near, near_weight
from byhand.expression import Entry
from byhand.plan import WEIGHT
from byhand.serving.arithmetic_slips import LEAST_DECIMALS, Made, slips_of
from byhand.serving.number import entry_named
from byhand.serving.worked_state import Pass

ONE_KIND = {"sign-slip": "sign"}  # kinds of suspects that are one mistake to a person
PENCIL = ("sign",)  # kinds that are believed of a whole number, too


@dataclass(frozen=True)
class Mistake:
    """A mistake in words, and what to change; empty where nothing is to be said."""

    sentence: str
    change: str = ""


def diagnosed(found: Pass, line: Marked, text: str, given: Mapping[str, str]) -> Mistake | None:
    """The one mistake that makes an answer; None where none does, or several do."""
    if not telling(text):
        return None
    kinds: dict[str, Mistake] = {}
    for suspect in line.suspects:
        kind = ONE_KIND.get(suspect.kind, suspect.kind)
        if suspect.evidence.alike:
            return None
        if precise(text) or (suspect.share == 0 and kind in PENCIL):
            kinds.setdefault(kind, Mistake(suspect.sentence, suspect.change))
    slips = _slips(found, line, text, given)
    if kinds:
        rivals = [slip for slip in slips if not slip.whole]
        return next(iter(kinds.values())) if len(kinds) == 1 and not rivals else None
    return Mistake(slips[0].sentence) if len(slips) == 1 else None


def precise(text: str) -> bool:
    """Whether an answer has as many decimals as are asked for, or is a fraction."""
    decimals = re.fullmatch(r"[-+]?\d*\.(\d+)", text)
    fraction = re.fullmatch(r"[-+]?\d+/([2-9]|\d\d+)", text)
    return fraction is not None or (decimals is not None and len(decimals[1]) >= LEAST_DECIMALS)


def telling(text: str) -> bool:
    """Whether an answer could tell one mistake from another: 0 comes of many, and of a guess."""
    return precise(text) or re.fullmatch(r"[-+]?0*[1-9]\d*", text) is not None


def _slips(found: Pass, line: Marked, text: str, given: Mapping[str, str]) -> list[Made]:
    """The arithmetic slips in this line that make the answer."""
    name, index = entry_named(found, line.claim.name)
    tree = found.working.of(name, index)
    if tree is None:
        return []

    @cache
    def true(entry: Entry) -> float:
        if entry.address.startswith(WEIGHT):
            own = found.model.weights[entry.address.removeprefix(WEIGHT)].data
            places = tuple(slice(place, place + 1) for place in entry.index)
            return float(near_weight(own[places]).item())
        return float(near(found.trace.steps[entry.address])[tuple(entry.index)])

    def shown(entry: Entry) -> float:
        written = given.get(entry.address + write_index(entry.index), "")
        try:
            return float(Fraction(written.replace("−", "-")))
        except (ValueError, ZeroDivisionError):
            return true(entry)

    return slips_of(tree, (true, shown), text)

"""A choice among experts, with its proof, and their answers added up by their shares.

choose          decided where fewer than `count` others may come before an entry, by the ends of
                their enclosures; of equal numbers, both exactly known, the first counts.  What
                stays open is 1/2 with the radius 1/2.
expert_shares   those of softmax, or a product over a sum; of an open row any number from 0 to 1.
combine         the rule of weighted rows (`weighted_sums`), position by position.

What an expert answers does not depend on the choice, so a share that is exactly 0 leaves out an
answer of any radius.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from byhand.numbers.enclosed.gpu.decisions import Now, answers
from byhand.numbers.enclosed.limbs import arithmetic, attention, indexing, updates
from byhand.numbers.enclosed.limbs.arithmetic import WIDTH, Digits, without_empty_limbs
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of
from byhand.numbers.enclosed.limbs.prediction import range_of
from byhand.numbers.enclosed.limbs.radii import less, plus, total
from byhand.numbers.enclosed.limbs.sums import reshaped
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry, constant, entries_of
from byhand.numbers.enclosed.limbs.weighted_sums import weighted_rows


@dataclass(frozen=True, slots=True)
class Choice:
    """How many of a row are chosen, and of which groups of neighbours."""

    count: int
    groups: int | None = None
    groups_chosen: int | None = None
    group_rule: str | None = None


# ------------------------------------------------------------------ the choice


def choose(x: Enclosed, choice: Choice) -> tuple[Enclosed, list[int]]:
    """1 for the chosen of each row, 0 for the others; and the rows in which a tie decided."""
    engine = x.digits.engine
    sure, possible = _by_floats(*range_of(x.approx, x.box), choice)
    tied: list[int] = []
    if engine is NUMPY or isinstance(answers(), Now):
        for row in [place[0] for place in engine.places((sure != possible).any(-1))]:
            one = by_entry(x.digits[row : row + 1], None if x.exact else x.box[row : row + 1])
            ends = [(entry.lower, entry.upper) for entry in entries_of(one)[0]]
            chosen, may_be, tie = by_ends(ends, choice)
            for k in range(len(ends)):
                sure[row, k], possible[row, k] = k in chosen, k in may_be
            tied += [row] * tie
    halves = 1.0 * sure + 1.0 * possible
    if engine.holds(sure == possible):
        return Enclosed(Digits(0.5 * halves[None], WIDTH)), tied
    box = engine.where(sure == possible, constant(x.digits, x.shape, 0.0), 0.5)
    return by_entry(Digits(halves[None], WIDTH - 1), box, zeros=~possible), tied


def _by_floats(lower: Array, upper: Array, choice: Choice) -> tuple[Array, Array]:
    """Which entries are surely chosen, and which may be, by floats that bound them."""
    if choice.groups is None or choice.groups_chosen is None:
        return _ranked(lower, upper, choice.count)
    lead, each = tuple(lower.shape[:-1]), lower.shape[-1] // choice.groups
    parts = [bound.reshape(*lead, choice.groups, each) for bound in (lower, upper)]
    ends = [_best(part, choice.group_rule) for part in parts]
    if choice.group_rule == "top2":  # sums of two are rounded
        room = [abs(end) * 2.0**-50 + 2.0**-1000 for end in ends]
        ends = [ends[0] - room[0], ends[1] + room[1]]
    found = _ranked(ends[0], ends[1], choice.groups_chosen)
    engine = engine_of(lower)
    counted = [
        engine.broadcast(which[..., None], (*lead, choice.groups, each)).reshape(lower.shape)
        for which in found
    ]
    lower, upper = (
        engine.where(which, bound, -math.inf)
        for which, bound in zip(counted, (lower, upper), strict=True)
    )
    sure, possible = _ranked(lower, upper, choice.count)
    return sure & counted[0], possible & counted[1]


def _best(groups: Array, rule: str | None) -> Array:
    """The number that a group counts by."""
    engine: Any = engine_of(groups)
    if engine is NUMPY:
        groups = engine.module.sort(groups, -1)
    else:
        groups = groups.sort(-1).values
    return groups[..., -1] + groups[..., -2] if rule == "top2" else groups[..., -1]


def _ranked(lower: Array, upper: Array, count: int) -> tuple[Array, Array]:
    """Those with fewer than `count` others that may come before, or that surely do."""
    rivals = (upper[..., None, :] >= lower[..., :, None]).sum(-1) - 1  # but for itself
    before = (lower[..., None, :] > upper[..., :, None]).sum(-1)
    sure, possible = rivals < count, before < count
    full = (sure.sum(-1) == count)[..., None]  # then no other is chosen
    return sure, possible & (sure | ~full)


End = Fraction | float


def by_ends(row: Sequence[tuple[End, End]], choice: Choice) -> tuple[set[int], set[int], bool]:
    """(surely chosen, possibly chosen, whether a tie decided) of one row of exact ends."""
    every = set(range(len(row)))
    if choice.groups is None or choice.groups_chosen is None:
        return _settled(row, every, every, choice.count, len(row))
    each = len(row) // choice.groups
    best = [
        _group_ends(row[start : start + each], choice.group_rule)
        for start in range(0, len(row), each)
    ]
    groups = set(range(choice.groups))
    kept, open_groups, tied = _settled(best, groups, groups, choice.groups_chosen, 1)
    inside = {k for k in every if k // each in kept}
    maybe = {k for k in every if k // each in open_groups}
    sure, possible, also_tied = _settled(row, inside, maybe, choice.count, each)
    return sure, possible, tied or also_tied


def _group_ends(group: Sequence[tuple[End, End]], rule: str | None) -> tuple[End, End]:
    taken = 2 if rule == "top2" else 1
    lower, upper = (
        sum(sorted((end[side] for end in group), reverse=True)[:taken]) for side in (0, 1)
    )
    return lower, upper


def _settled(
    row: Sequence[tuple[End, End]], inside: set[int], maybe: set[int], count: int, each: int
) -> tuple[set[int], set[int], bool]:
    """As `by_ends`, of those that surely take part (`inside`) and those that may.

    The members of a group of `each` take part together.
    """

    def same(j: int, k: int) -> bool:
        return row[j] == row[k] and row[j][0] == row[j][1]

    def surely_before(j: int, k: int) -> bool:
        return j < k if same(j, k) else row[j][0] > row[k][1]

    def ahead(k: int) -> int:
        group = range(k // each * each, k // each * each + each)
        return sum(surely_before(j, k) for j in inside.union(group) if j != k)

    possible = {k for k in maybe if ahead(k) < count}
    sure = {k for k in inside if sum(not surely_before(k, j) for j in maybe if j != k) < count}
    if len(sure) < count:
        return sure, possible, False
    return sure, set(sure), any(same(j, k) for j in maybe - sure for k in sure)


# ------------------------------------------------------------------ the shares


def shares(
    system: System, x: Enclosed, chosen: Enclosed, normalised: bool, alone: bool, eps: Fraction
) -> Enclosed:
    """The share of each expert, exactly 0 for those that are not chosen."""
    if not alone and not normalised:
        return _product(system, attention.softmax(system, x), chosen)
    marks = chosen.approx  # 0, 1/2 or 1, exactly
    if not alone:
        box = None if x.exact else (lambda: x.box)
        seen = Enclosed(x.digits, x.ball, box=box, hidden=marks == 0.0)
        found = _any_share(attention.softmax(system, seen), marks, _open_rows(marks))
        return _whole_shares(found, marks)
    terms = _product(system, x, chosen)
    if not normalised:
        return terms
    found = updates.divide(system, terms, sum_of(system, terms, eps))
    least = less(x.approx - abs(x.approx) * 2.0**-48, x.box)
    positive = ((least >= 0) | (marks == 0.0)).all(-1)
    return _any_share(found, marks, _open_rows(marks) & positive)


def sum_of(system: System, terms: Enclosed, eps: Fraction) -> Enclosed:
    """The sum of each row, plus eps: rows of one number."""
    whole = arithmetic.total(terms.digits, -1)
    known = system.constant(eps)
    sums = arithmetic.add(whole, known.digits(whole.limbs))
    off = plus(None if terms.exact else total(terms.box), known.error or None)
    if isinstance(off, float):
        off = constant(sums, sums.shape, off)
    return by_entry(sums.reshape(*sums.shape, 1), None if off is None else off[..., None])


def _product(system: System, x: Enclosed, chosen: Enclosed) -> Enclosed:
    made: Enclosed = system.multiply(x, chosen)
    return made


def _open_rows(marks: Array) -> Array:
    return (marks == 0.5).any(-1)


def _any_share(made: Enclosed, marks: Array, rows: Array) -> Enclosed:
    """The shares; in these rows any number from 0 to 1 for what may be chosen."""
    engine = made.digits.engine
    box = made.box
    if box is None:
        box = constant(made.digits, made.shape, 0.0)
    away = marks == 0.0
    box = engine.where(away, 0.0, box)
    limbs = made.digits.limbs * (1.0 * ~(rows[..., None] | away))
    digits = Digits(limbs, made.digits.top)
    if not engine.holds(~rows):
        half = 1.0 * (rows[..., None] & ~away)
        digits = arithmetic.add(digits, Digits(half[None], WIDTH - 1))
        box = engine.where(rows[..., None] & ~away, 0.5, box)
    return by_entry(without_empty_limbs(digits), box, zeros=away)


def _whole_shares(made: Enclosed, marks: Array) -> Enclosed:
    """The shares; that of an expert who answers alone is exactly 1."""
    alone = ((marks != 0.0).sum(-1) == 1)[..., None] & (marks == 1.0)
    engine, box = made.digits.engine, made.box
    limbs = made.digits.limbs * (1.0 * ~alone)
    digits = arithmetic.add(Digits(limbs, made.digits.top), Digits(1.0 * alone[None], WIDTH))
    return by_entry(digits, engine.where(alone, 0.0, box), zeros=marks == 0.0)


# ------------------------------------------------------------------ their answers


def linear(system: System, x: Enclosed, weight: Any, bias: Any, layout: str) -> Enclosed:
    """x times the matrix of each expert, plus its bias."""

    def of(whole: Any, expert: int) -> Any:
        return indexing.part(whole, expert) if isinstance(whole, Enclosed) else whole.part(expert)

    made = [
        system.linear(
            x if x.ndim == 2 else indexing.part(x, expert),
            of(weight, expert),
            bias=None if bias is None else of(bias, expert),
            layout=layout,
        )
        for expert in range(weight.shape[0])
    ]
    return indexing.together(made)


def combine(system: System, x: Enclosed, shares: Enclosed) -> Enclosed:
    """Σ_expert shares[pos, expert]·x[expert, pos]."""
    positions, experts = shares.shape
    weights = reshaped(shares, (positions, 1, experts))
    made = weighted_rows(system, weights, indexing.first_two_exchanged(x))
    return reshaped(made, (positions, x.width))

"""Differences in scores: whose queries and keys they are, what is seen, what is added."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from byhand.checking.differences.attention_seen import HIDDEN, Attention, roomy
from byhand.checking.differences.difference import Difference, Reading, Truths, Wrong
from byhand.checking.differences.head_products import Products, both
from byhand.checking.differences.inputs_changed import changed_inputs
from byhand.checking.differences.inputs_read import other_heads, other_lines, other_rows
from byhand.checking.differences.masks_read import told_mask
from byhand.checking.differences.positions_read import listed, ratio, roundest, shown
from byhand.checking.differences.score_changes import Seen, changes
from byhand.checking.suspects.mistakes import setting, then
from byhand.expression import Number
from byhand.language import _


def score_readings(difference: Difference) -> Iterator[Reading]:
    """What claimed scores tell, where they are not the scaled products of q and k."""
    if difference.target.op != "scores" or not difference.whole or not difference.wrong.any():
        return
    attention = Attention.of(difference)
    if attention is None:
        return
    masks = list(_masks(attention))
    yield from masks
    q, k = attention.read("scores", "q"), attention.read("scores", "k")
    if masks or q is None or k is None or not difference.finite.any():
        return
    for times in _factors(difference):
        products = Products.of(attention, q, k, times)
        readers = (other_heads, other_rows, other_lines, changed_inputs)
        for reader in readers if times == 1.0 else readers[:3]:
            found = list(reader(products))
            if found:
                yield from found
                return
    room = roomy(difference)
    own = np.where(difference.finite, difference.expected, 0.0)
    claims = np.where(difference.finite, difference.claimed, 0.0)
    places = attention.queries, attention.keys
    seen = Seen(own, claims, room, difference.finite, False, *places, attention.fineness)
    for change in changes(seen):
        yield difference.edit(
            change.kind,
            _("it follows if {said}; the model's scores are q·k alone, scaled"),
            "{advice}",
            then(change.op, **change.attributes),
            fitted=change.fitted,
            unlikely=change.unlikely,
            said=change.said,
            advice=change.change,
        )


def _masks(attention: Attention) -> Iterator[Reading]:
    """The mask that the claimed scores show, where they hide more than the model does."""
    difference = attention.difference
    away = np.zeros(attention.own.shape, dtype=bool)
    with np.errstate(invalid="ignore"):
        away[...] = (difference.claimed <= HIDDEN) & (difference.expected > HIDDEN / 2)  # or -∞
    away &= attention.own
    heads = np.asarray(away.any(axis=(1, 2)))
    if not heads.any() or (away[heads] != away[heads].any(axis=0)).any():
        return
    pattern = told_mask(
        ~np.asarray(away[heads].any(axis=0)),
        attention.own[0],
        attention.own[0],
        attention.queries,
        attention.keys,
    )
    if pattern is None:
        return
    mask = np.where(heads[:, None, None], pattern.mask, attention.own)
    use = mask[0] if heads.all() else mask
    where = "" if heads.all() else _(" (only in head {heads})").format(
        heads=listed([int(each) for each in np.flatnonzero(heads)]))  # fmt: skip
    make: Wrong = setting(mask=use)
    if np.isfinite(difference.claimed[away]).any():  # a large number was taken off
        by = float(np.median((difference.claimed - difference.expected)[away]))
        make = then("plus_terms", terms=np.where(mask | ~attention.own, 0.0, by))
    said, fitted = pattern.said, pattern.fitted
    factor = _factor(difference, difference.finite & mask)
    if factor is not None:
        scale = Number(Fraction(attention.scale * factor))
        said = _("{said} and the scores are multiplied by {factor}").format(
            said=said, factor=shown(factor)
        )
        make, fitted = both(setting(scale=scale), make), fitted + 1
    yield difference.edit(
        "mask",
        _("it follows if {said}{where}; the model's mask is another"),
        _("look for the mask that reaches the scores"),
        make,
        fitted=fitted,
        unlikely=int(fitted > 1),
        said=said,
        where=where,
    )


def _factors(difference: Difference) -> Iterator[float]:
    """1, and the factor that most scores share."""
    yield 1.0
    found = _factor(difference, difference.finite, most=True)
    if found is not None:
        yield found


def _factor(difference: Difference, at: Truths, *, most: bool = False) -> float | None:
    """The factor of these scores, or of most of them; None where it is 1, or none fits."""
    own, claimed, room = difference.expected[at], difference.claimed[at], roomy(difference)[at]
    large = np.abs(own) > 20 * room
    if large.sum() < 8:
        return None
    middle = float(np.median(claimed[large] / own[large]))
    near = np.abs(claimed - middle * own) <= 0.01 * abs(middle) * np.abs(own) + 6 * room
    if near.mean() < (0.5 if most else 1.0):
        return None
    power = float((np.square(own / room))[near].sum())
    factor = float((own * claimed / np.square(room))[near].sum()) / power
    if abs(factor - 1) <= 6 * power**-0.5 + 1e-6:
        return None
    kept = near & (np.abs(claimed - factor * own) <= 8 * room)
    if kept.mean() < (0.5 if most else 1.0):
        return None
    known = ratio(factor, power**-0.5)
    return roundest(factor, power**-0.5) if known is None else float(known)

"""Masks that attention weights show: which keys a query sees, and what masked keys still get."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import fit, spread
from byhand.checking.differences.difference import Reading
from byhand.checking.differences.masks_read import Pattern, told_mask
from byhand.checking.differences.positions_read import listed, roundest, shown
from byhand.checking.differences.shares import CLEAR, Shares, row_error
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
FEW = 4  # entries that show something, at least
LEAST = 1e-12  # smaller weights may have become 0
SMALL = 0.01  # a weight that is surely smaller counts as masked
SURE = 6.0  # × the usual error


def shown_masks(shares: Shares) -> Iterator[Reading]:
    """The mask that the weights show, where it is not the model's."""
    solved = shares.rows is not None  # weights that were solved are never exactly 0
    seen = np.abs(shares.weights) > CLEAR * shares.off if solved else shares.weights != 0
    should = shares.expected > np.maximum(CLEAR * shares.off, LEAST)
    blank = CLEAR * shares.off < SMALL if solved else np.ones(seen.shape, dtype=bool)
    known = np.isfinite(shares.off) & np.where(shares.own, seen | should, seen | blank)
    wrong = ((seen != shares.own) & known).any(axis=(1, 2))
    if not wrong.any():
        return
    attention = shares.attention
    some = seen[wrong], known[wrong]
    agree = ~((some[0] & some[1]).any(axis=0) & (~some[0] & some[1]).any(axis=0))
    if not agree.all():
        yield from _top(shares, seen, known)
        return
    pattern = told_mask(
        (some[0] & some[1]).any(axis=0),
        some[1].any(axis=0),
        attention.own[0],
        attention.queries,
        attention.keys,
    )
    if pattern is None:
        yield from _top(shares, seen, known)
        return
    yield _masked(shares, pattern, wrong)


def _masked(shares: Shares, pattern: Pattern, heads: Truths) -> Reading:
    own = shares.own
    mask = np.where(heads[:, None, None], pattern.mask, own)
    every = bool(heads.all())
    where = "" if every else _(" (only in head {heads})").format(
        heads=listed([int(each) for each in np.flatnonzero(heads)]))  # fmt: skip
    scores = shares.attention.step("scores")

    def make(draft: Draft, _step: Step) -> None:
        use = mask[0] if every else mask
        if not (mask & ~own).any():
            shares.on_scores(draft, "hidden", mask=use)
        elif shares.attention.claimed("scores"):
            weights = shares.attention.step("weights").address
            settings = {**scores.attributes, "mask": use}
            again = draft.write(
                weights, scores.op, scores.inputs, scores.axes, scores.shape, **settings
            )
            draft.change(weights, inputs={"x": again})
        else:
            draft.change(scores.address, mask=use)

    return shares.attention.difference.edit(
        "mask",
        _("it follows if {said}{where}; the model's mask is another"),
        _("look for the mask that reaches the softmax"),
        make,
        fitted=pattern.fitted,
        unlikely=int(pattern.fitted > 1) + (not every),
        said=pattern.said,
        where=where,
    )


def _top(shares: Shares, seen: Truths, known: Truths) -> Iterator[Reading]:
    """Only the k largest weights of each row are kept."""
    if ((seen & ~shares.own) & known).any():
        return
    counts = (seen & shares.own).sum(axis=-1)
    most, full = int(counts.max()), shares.own.sum(axis=-1)
    if not (counts == np.minimum(full, most)).all() or most >= full.max():
        return
    scores = np.where(shares.own, shares.scores, -np.inf)
    least = -np.sort(-scores, axis=-1)[..., most - 1 : most]
    mask = shares.own & (scores >= np.where(np.isfinite(least), least, -np.inf))
    if not (mask == (seen & shares.own)).all():
        return
    whole = fit(np.abs(shares.weights.sum(axis=-1) - 1) / row_error(shares))
    said = _("only the {count} largest weights of a query are kept, without dividing again")
    if whole:
        said = _("only the {count} largest scores of a query are kept")

    def make(draft: Draft, step: Step) -> None:
        if whole:
            shares.on_scores(draft, "hidden", mask=mask)
        else:
            draft.then(shares.attention.step("weights").address, "hidden", mask=mask)

    yield shares.attention.difference.edit(
        "top-k",
        _("it follows if {said}; the model keeps all"),
        _("take the softmax over all keys that are not masked"),
        make,
        fitted=1,
        said=said.format(count=most),
    )


def weak_masks(shares: Shares) -> Iterator[Reading]:
    """Masked scores that are lowered by a number, not to -∞."""
    attention = shares.attention
    q, k = attention.read("scores", "q"), attention.read("scores", "k")
    if q is None or k is None or shares.rows is not None or attention.own.all():
        return
    own = np.where(shares.own, shares.scores, 0.0)
    product = attention.scale * q @ spread(k, len(q)).transpose(0, 2, 1)
    there = shares.weights > CLEAR * shares.off
    hidden = there & ~shares.own
    if hidden.sum() < FEW or not np.isfinite(own).all():
        return
    logs = np.log(np.where(there, shares.weights, 1.0))
    off = np.where(there, shares.off / np.where(there, shares.weights, 1.0), 1.0)
    weight = np.where(there & shares.own, 1 / np.square(off), 0.0)
    total = weight.sum(axis=-1, keepdims=True)
    middle = (weight * (logs - own)).sum(axis=-1, keepdims=True) / np.where(total > 0, total, 1.0)
    lowered = (logs - middle - product)[hidden & (total > 0)]
    by = float(np.median(lowered))
    short = roundest(by, float(np.median(off[hidden])))
    if abs(short) < SMALL or np.abs(lowered - short).max() > SURE * float(
        off[hidden].max()
    ) + 0.01 * abs(short):
        return
    step, weights = attention.step("scores"), attention.step("weights").address
    seen = tuple((True,) * len(row) for row in step.attributes["mask"])
    terms = np.where(attention.own, 0.0, short)

    def make(draft: Draft, _step: Step) -> None:
        settings = {**step.attributes, "mask": seen}
        again = draft.write(weights, step.op, step.inputs, step.axes, step.shape, **settings)
        low = {"x": again}
        low["x"] = draft.write(weights, "plus_terms", low, step.axes, step.shape, terms=terms)
        draft.change(weights, inputs=low)

    yield attention.difference.edit(
        "weak-mask",
        _("it follows if masked scores are changed by {by} only; in the model they are -∞"),
        _("set masked scores to -inf before the softmax"),
        make, fitted=1, by=shown(short),
    )  # fmt: skip


def pruned(shares: Shares) -> Iterator[Reading]:
    """Weights below a threshold that are 0."""
    if shares.rows is not None:
        return
    gone = shares.own & (shares.weights == 0) & (shares.expected > CLEAR * shares.off)
    kept = shares.own & (shares.weights != 0)
    if gone.sum() < FEW or not kept.any():
        return
    high, low = float(shares.expected[gone].max()), float(shares.expected[kept].min())
    if high >= low:
        return
    limit = roundest((high + low) / 2, (low - high) / 8)
    left = np.abs(shares.weights - shares.expected)[kept] / shares.off[kept]
    whole = not fit(left)
    said = _("weights below {limit} are 0, and the others are divided by their sum again")
    mask = shares.own & ~gone

    def make(draft: Draft, _step: Step) -> None:
        if whole:
            shares.on_scores(draft, "hidden", mask=mask)
        else:
            draft.then(shares.attention.step("weights").address, "hidden", mask=mask)

    yield shares.attention.difference.edit(
        "pruned",
        _("it follows if {said}; the model keeps all"),
        _("look for a threshold on the attention weights"),
        make, fitted=1,
        said=(said if whole else _("weights below {limit} are 0")).format(limit=shown(limit)),
    )  # fmt: skip

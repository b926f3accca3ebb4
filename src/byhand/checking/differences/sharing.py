"""Differences in attention weights: masks, temperatures, extra scores, what is added to scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import Attention, fit, roomy
from byhand.checking.differences.difference import Description, Difference, Reading
from byhand.checking.differences.masks_read import Pattern, told_mask
from byhand.checking.differences.positions_read import listed, roundest
from byhand.checking.differences.score_changes import Change, Seen, changes
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
CLEAR = 20.0  # × the usual error: a weight that is surely not 0
LEAST = 1e-12  # smaller weights may have become 0
SURE = 6.0


@dataclass(frozen=True)
class Shares:
    """Attention weights as the claim shows them, beside the model's scores."""

    attention: Attention
    weights: Floats
    off: Floats  # their usual error
    expected: Floats
    scores: Floats  # as the softmax reads them; whatever they are where they are masked

    @property
    def own(self) -> Truths:
        """The keys that the model's queries see."""
        return self.attention.own

    def on_scores(self, draft: Draft, op: str, **attributes: object) -> None:
        """Applies an operation to the scores that the softmax reads."""
        draft.first(self.attention.step("weights").address, "x", op, **attributes)


def share_readings(difference: Difference) -> Iterator[Reading]:
    """What the claimed attention weights tell, where they are not the softmax of the scores."""
    if difference.target.op != "softmax" or not difference.whole or not difference.wrong.any():
        return
    attention = Attention.of(difference)
    if attention is None:
        return
    scores = difference.input("x")
    if scores is None:
        return
    yield from _not_numbers(difference, scores)
    if not np.isfinite(difference.claimed[difference.there]).all():
        return
    claimed = np.where(difference.there, difference.claimed, 0.0)
    shares = Shares(attention, claimed, roomy(difference), difference.expected, scores)
    yield from readings_of(shares)


def readings_of(shares: Shares) -> Iterator[Reading]:
    """The mask, or else the change of the scores or of their sum, that the weights show."""
    found = list(_masks(shares))
    yield from found
    if found or not np.isfinite(shares.scores[shares.own]).all():
        return
    sums = list(_sums(shares))
    yield from sums
    if sums:
        return
    seen = seen_in(shares)
    if seen is not None:
        for change in changes(seen):
            yield _changed(shares, change)


def seen_in(shares: Shares) -> Seen | None:
    """The scores that the weights are the softmax of, each row up to a number."""
    there = shares.own & (shares.weights > CLEAR * shares.off) & np.isfinite(shares.scores)
    if there.sum() < 3:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(there, np.log(np.where(there, shares.weights, 1.0)), 0.0)
        off = np.where(there, shares.off / np.where(there, shares.weights, 1.0), 1.0)
    attention = shares.attention
    scores = np.where(there, shares.scores, 0.0)
    places = attention.queries, attention.keys
    return Seen(scores, logs, off + 1e-15, there, True, *places, attention.fineness)


def _changed(shares: Shares, change: Change) -> Reading:
    def make(draft: Draft, _step: Step) -> None:
        shares.on_scores(draft, change.op, **change.attributes)

    return shares.attention.difference.edit(
        change.kind,
        _("it follows if {said}; the model takes the softmax of the scores as they are"),
        "{advice}",
        make,
        fitted=change.fitted,
        unlikely=change.unlikely,
        said=change.said,
        advice=change.change,
    )


# ------------------------------------------------------------------------ masks


def _masks(shares: Shares) -> Iterator[Reading]:
    """The mask that the weights show, where it is not the model's."""
    zero = shares.weights == 0
    solved = not zero.any()  # weights that were solved are never exactly 0
    seen = np.abs(shares.weights) > CLEAR * shares.off if solved else ~zero
    should = shares.expected > np.maximum(CLEAR * shares.off, LEAST)
    known = np.where(shares.own, seen | should, True)
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
    whole = fit(np.abs(shares.weights.sum(axis=-1) - 1) / _row_error(shares))
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


# ------------------------------------------------------------------------ sums


def _row_error(shares: Shares) -> Floats:
    error: Floats = np.sqrt(np.square(np.where(shares.own, shares.off, 0.0)).sum(axis=-1))
    return error + 1e-15


def _sums(shares: Shares) -> Iterator[Reading]:
    """Rows that add up to less than 1 because of one more score in the denominator."""
    if "sinks" in shares.attention.step("weights").inputs:
        return  # the model has such scores of its own: `suspects.sinks`
    rows = np.where(shares.own, shares.weights, 0.0).sum(axis=-1)
    error = _row_error(shares)
    below = (1 - rows) / error
    if (below < -SURE).any() or (below > SURE).sum() < max(2, rows.size // 4):
        return
    scores = np.where(shares.own, shares.scores, -np.inf)
    top = scores.max(axis=-1)
    whole = top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
    there = (below > SURE) & (rows > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        extra = whole + np.log(np.where(there, (1 - rows) / np.where(rows > 0, rows, 1.0), 1.0))
        blur = error / np.where(there, rows * (1 - rows), 1.0)
    for said, value, count in _extras(extra, blur, there, top):
        predicted = np.exp(np.where(shares.own, shares.scores, -np.inf)
                           - np.logaddexp(whole, value)[..., None])  # fmt: skip
        left = np.abs(predicted - shares.weights)[shares.own] / shares.off[shares.own]
        if not fit(left):
            continue
        yield shares.attention.difference.edit(
            "extra-score",
            _("it follows if {said} stands in the denominator of the softmax; the model's weights "
              "add up to 1"),
            _("look for a sink, or for a number added to the sum of the softmax"),
            _with_extra(shares, np.array(value[..., None])),
            fitted=count, said=said,
        )  # fmt: skip
        return


def _with_extra(shares: Shares, extra: Floats):  # type: ignore[no-untyped-def]
    def make(draft: Draft, _step: Step) -> None:
        draft.change(shares.attention.step("weights").address, op="softmax_with", extra=extra)

    return make


def _extras(
    extra: Floats, blur: Floats, there: Truths, top: Floats
) -> Iterator[tuple[str, Floats, int]]:
    """The extra scores that may be meant: 0, the row's largest, one number, one for each head."""
    zero = np.zeros(extra.shape)
    yield _("an extra score of 0 (a 1)"), zero, 0
    said = _("an extra score as large as the row's largest (a 1 after the maximum is taken off)")
    yield said, top, 0
    weight = np.where(there, 1 / np.square(np.where(there, blur, 1.0)), 0.0)
    mean = float((weight * extra).sum() / weight.sum())
    one = roundest(mean, float(weight.sum() ** -0.5))
    yield _("an extra score of {value}").format(value=f"{one:.6g}"), zero + one, 1
    total = weight.sum(axis=1)
    heads = (weight * extra).sum(axis=1) / np.where(total > 0, total, 1.0)
    told = ", ".join(f"{each:.4g}" for each in heads[:6]) + ", …" * (len(heads) > 6)
    yield (_("an extra score of each head ({told}), as a sink has,").format(told=told),
           np.broadcast_to(heads[:, None], extra.shape), len(heads))  # fmt: skip


def _not_numbers(difference: Difference, scores: Floats) -> Iterator[Reading]:
    """Rows of weights that are not numbers, and why they may be."""
    rows = np.isnan(difference.claimed).any(axis=-1) & difference.there.any(axis=-1)
    if not rows.any() or scores.shape != difference.claimed.shape:
        return
    count, whole = int(rows.sum()), rows.size
    with np.errstate(invalid="ignore"):
        finite = np.where(np.isfinite(scores), scores, -np.inf)
    largest = np.where(difference.there, finite, -np.inf).max(axis=-1)
    if np.isneginf(largest[rows]).all():
        said = _("{count} of {whole} rows of weights are not numbers: every score of these rows is "
                 "masked")  # fmt: skip
    elif not rows.all() and largest[rows].min() > largest[~rows].max():
        said = _("{count} of {whole} rows of weights are not numbers: those with scores from "
                 "{least} on, whose exponential is too large (take the maximum off)")  # fmt: skip
    else:
        said = _("{count} of {whole} rows of weights are not numbers (query {queries})")
    least = float(largest[rows].min())
    queries = listed(
        [int(each) for each in np.flatnonzero(rows.reshape(-1, rows.shape[-1]).any(0))]
    )
    words = {"count": count, "whole": whole, "queries": queries, "least": f"{least:.4g}"}
    yield Description(said.format(**words), 5)

"""Differences in attention weights: masks, temperatures, extra scores, what is added to scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import Attention, fit, roomy, spread
from byhand.checking.differences.denominators import told_sums
from byhand.checking.differences.difference import Description, Difference, Reading
from byhand.checking.differences.head_products import Products
from byhand.checking.differences.inputs_read import other_heads, other_rows
from byhand.checking.differences.masking import pruned, shown_masks, weak_masks
from byhand.checking.differences.positions_read import listed
from byhand.checking.differences.score_changes import Change, Seen, changes
from byhand.checking.differences.shares import Shares, seen_in
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]


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
    for reader in (weak_masks, shown_masks, pruned, _averaged):
        found = list(reader(shares))
        if found:
            yield from found
            return
    if not np.isfinite(shares.scores[shares.own]).all():
        return
    seen = seen_in(shares)
    if seen is None:
        return
    change = next(changes(seen), None)
    yield from told_sums(shares, change)
    if change is not None:
        yield _changed(shares, change)
    else:
        yield from _other_inputs(shares, seen)


def _other_inputs(shares: Shares, seen: Seen) -> Iterator[Reading]:
    """Scores of other queries, keys or heads, where nobody claims the scores."""
    attention = shares.attention
    q, k = attention.read("scores", "q"), attention.read("scores", "k")
    if attention.claimed("scores") or q is None or k is None:
        return
    scale = attention.scale
    product = scale * q @ spread(k, len(q)).transpose(0, 2, 1)
    beside = np.where(seen.there, seen.own - product, 0.0)
    # most keys of a row are its own: they tell what the row is known up to
    change = np.where(seen.there, seen.found - seen.own, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without a known weight
        middle = np.nan_to_num(np.nanmedian(change, axis=-1, keepdims=True))
    products = Products(
        attention, "scores", ("q", "k"), scale * q, k, beside,
        np.where(seen.there, seen.found - middle, 0.0), seen.off, seen.there, free=True,
    )  # fmt: skip
    for reader in (other_heads, other_rows):
        found = list(reader(products))
        if found:
            yield from found
            return


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


def _averaged(shares: Shares) -> Iterator[Reading]:
    """The mean over heads in place of each head's weights."""
    mean = np.broadcast_to(shares.expected.mean(axis=0), shares.expected.shape)
    known = np.isfinite(shares.off)
    if len(mean) < 2 or not fit(np.abs(shares.weights - mean)[known] / shares.off[known]):
        return
    yield shares.attention.difference.edit(
        "averaged",
        _("it follows if the weights are the mean over the heads, for each of them; the model "
          "gives each head its own"),
        _("look for a mean over heads"),
        lambda draft, _step: draft.then(shares.attention.step("weights").address, "head_mean"),
    )  # fmt: skip


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

"""Attention weights whose rows do not add up to 1: one more score in the sum, or no sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.attention_seen import fit
from byhand.checking.differences.difference import Reading, Wrong
from byhand.checking.differences.positions_read import roundest
from byhand.checking.differences.score_changes import Change
from byhand.checking.differences.shares import Shares, row_error
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
SURE = 6.0  # × the usual error


def told_sums(shares: Shares, change: Change | None) -> Iterator[Reading]:
    """Rows that do not add up to 1: one more score in the denominator, or no denominator."""
    if "sinks" in shares.attention.step("weights").inputs:
        return  # the model has such scores of its own: `suspects.sinks`
    own = np.where(shares.own, shares.scores, 0.0)
    if change is not None and change.op != "scaled":
        return
    own = own * (1.0 if change is None else float(change.attributes["factor"]))
    rows = np.where(shares.own, shares.weights, 0.0).sum(axis=-1)
    below = (1 - rows) / row_error(shares)
    if (np.abs(below) > SURE).sum() < max(2, rows.size // 4):
        return
    scores = np.where(shares.own, own, -np.inf)
    top = scores.max(axis=-1)
    whole = top + np.log(np.exp(scores - top[..., None]).sum(axis=-1))
    there = (below > SURE) & (rows > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        extra = whole + np.log(np.where(there, (1 - rows) / np.where(rows > 0, rows, 1.0), 1.0))
        blur = row_error(shares) / np.where(there, rows * (1 - rows), 1.0)
    total = _("it follows if {said} stands in the denominator of the softmax{also}; the model's "
              "weights add up to 1")  # fmt: skip
    bare = _("it follows if {said}{also}; the model's weights add up to 1")
    for op, said, value, count, attributes in (
        *_without_sum(top),
        *(_extras(extra, blur, there, top) if not (below < -SURE).any() and there.any() else ()),
    ):
        with np.errstate(over="ignore"):
            predicted = np.exp(scores - value(whole)[..., None])
        left = np.abs(predicted - shares.weights)[shares.own] / shares.off[shares.own]
        if not fit(left):
            continue
        yield shares.attention.difference.edit(
            "extra-score" if op == "softmax_with" else "not-normalised",
            total if op == "softmax_with" else bare,
            _("look for a sink, or for a number added to the sum of the softmax")
            if op == "softmax_with" else _("divide the exponentials of a row by their sum"),
            _softmax_as(shares, op, attributes, change),
            fitted=count + (0 if change is None else change.fitted),
            said=said,
            also="" if change is None else _(" and {said}").format(said=change.said),
        )  # fmt: skip
        return


Way = tuple[str, str, Callable[[Floats], Floats], int, dict[str, Any]]


def _without_sum(top: Floats) -> Iterator[Way]:
    """Exponentials that are not divided by their sum, with and without the maximum taken off."""
    said = _("the exponentials of the scores are not divided by their sum")
    yield "exponentials", said, lambda whole: np.zeros(whole.shape), 0, {"shifted": False}
    said = _("the exponentials of the scores, the maximum taken off, are not divided by their sum")
    yield "exponentials", said, lambda whole: top, 0, {"shifted": True}


def _softmax_as(
    shares: Shares, op: str, attributes: dict[str, Any], change: Change | None
) -> Wrong:
    """A change: another operation for the softmax, and of scores that are changed first."""

    def make(draft: Draft, _step: Step) -> None:
        if change is not None:
            shares.on_scores(draft, change.op, **change.attributes)
        draft.change(shares.attention.step("weights").address, op=op, **attributes)

    return make


def _extras(extra: Floats, blur: Floats, there: Truths, top: Floats) -> Iterator[Way]:
    """The extra scores that may be meant: 0, the row's largest, one number, one for each head."""
    weight = np.where(there, 1 / np.square(np.where(there, blur, 1.0)), 0.0)
    mean = float((weight * extra).sum() / weight.sum())
    one = roundest(mean, float(weight.sum() ** -0.5))
    total = weight.sum(axis=1)
    heads = (weight * extra).sum(axis=1) / np.where(total > 0, total, 1.0)
    told = ", ".join(f"{each:.4g}" for each in heads[:6]) + ", …" * (len(heads) > 6)
    zero = np.zeros(extra.shape)
    largest = _("an extra score as large as the row's largest (a 1 after the maximum is taken off)")
    for said, value, count in (
        (_("an extra score of 0 (a 1)"), zero, 0),
        (largest, top, 0),
        (_("an extra score of {value}").format(value=f"{one:.6g}"), zero + one, 1),
        (_("an extra score of each head ({told}), as a sink has,").format(told=told),
         np.broadcast_to(heads[:, None], extra.shape), len(heads)),
    ):  # fmt: skip
        yield (
            "softmax_with", said, partial(np.logaddexp, value), count,
            {"extra": np.array(value[..., None])},
        )  # fmt: skip

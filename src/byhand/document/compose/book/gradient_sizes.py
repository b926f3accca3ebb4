"""The sizes of gradients: a row for each weight, with its length and its largest entry."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from byhand.address import write_index
from byhand.document.compose.book.laws_of_learning import furthest
from byhand.document.compose.book.one_step import OneStep
from byhand.document.compose.book.strips import near, size_of
from byhand.document.parts import Column, Grid
from byhand.document.words import whole
from byhand.language import _, amount, later
from byhand.plan import WEIGHT

MOST_WEIGHTS = 24  # rows; of more, those with the longest gradients


def sizes_of(step: OneStep, names: Sequence[str]) -> Grid:
    """The lengths of the gradients of some weights, and their shares of all."""
    sizes = {name: size_of(near(step.gradients[name])) for name in names}
    total = sum(np.square(size) for size in sizes.values()) or 1.0
    shown = list(names)
    if len(shown) > MOST_WEIGHTS:
        longest = sorted(shown, key=lambda name: -sizes[name])[:MOST_WEIGHTS]
        shown = [name for name in shown if name in set(longest)]
    hidden = len(names) - len(shown)
    text = (
        amount(
            hidden,
            later("1 weight with a shorter gradient"),
            later("{count} weights with shorter gradients"),
        )
        if hidden
        else ""
    )
    columns = (
        Column(_("weight"), "address"),
        Column(_("shape")),
        Column(_("length of its gradient"), "number"),
        Column(_("largest entry"), "number"),
        Column(_("where")),
        Column(_("share of the squares"), "share"),
    )
    rows = tuple(_row(step, name, sizes[name], total) for name in shown)
    return Grid("", columns, rows, left_out=text)


def _row(step: OneStep, name: str, size: float, total: float) -> tuple[str, ...]:
    worked = step.gradients[name]
    at = furthest(worked)
    value = float(near(worked)[at])
    return (
        WEIGHT + name,
        " × ".join(map(whole, worked.step.shape)),
        f"{size:.3g}",
        f"{value:.3g}" if isfinite(value) else "?",
        write_index(at),
        f"{np.square(size) / total:.4f}",
    )

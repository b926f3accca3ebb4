"""A matrix that is cut off, mixed with another one, pruned, or averaged over heads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.closeness import Fitted
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.difference import Floats, Reading
from byhand.checking.differences.product import Product, good
from byhand.checking.differences.told import numbered
from byhand.checking.suspects.rewritings import Blended, HeadsAveraged, LinesScaled, Pruned
from byhand.language import _

SHARES = tuple(round(0.05 * step, 2) for step in range(1, 20))
MOST = 24  # other matrices that are tried for a mixture


def more_kinds(product: Product) -> Iterator[Reading]:
    """A mixture with another matrix, a pruned matrix, the mean of the heads."""
    for read in (_blended, _pruned, _averaged):
        found = list(read(product))
        yield from found
        if found:
            return


def cut_readings(product: Product) -> Iterator[Reading]:
    """The last input channels, or the first ones, that were not summed up."""
    part = product.sample
    aim = product.off[:, part] / product.room[:, part]  # (position, output)
    inputs = len(product.matrix)
    terms = product.x[:, :, None] * product.matrix[None, :, part] / product.room[:, None, part]
    for first in (False, True):
        ordered = terms if first else terms[:, ::-1]
        with np.errstate(all="ignore"):
            left = aim[:, None, :] + np.cumsum(ordered, axis=1)  # what is left without so many
            sizes = np.square(left).mean(axis=(0, 2))
        count = int(sizes.argmin()) + 1
        if count == inputs or not good(left[:, count - 1], aim):
            continue
        lines = list(range(count)) if first else list(range(inputs - count, inputs))
        rows = product.matrix.copy()
        rows[lines] = 0.0
        if not product.fits(product.times(rows)):
            continue
        said = _("it follows if input channels {lines} of {name} are not summed up; the model sums "
                 "all {inputs}")  # fmt: skip
        yield product.rewritten(
            "weight-cut", said, _("sum over all {inputs} input channels of {name}"),
            LinesScaled(0, lines, 0.0), unlikely=1, name=product.name, inputs=inputs,
            lines=numbered(lines))  # fmt: skip
        return


def _blended(product: Product) -> Iterator[Reading]:
    """(1 - c) of the matrix and c of another one of its shape."""
    part = product.sample
    if len(product.columns) < product.size(1):
        return
    room = product.room[:, part]
    for name in product.alike("weight")[:MOST]:
        other = product.other(name)
        if other is None:
            continue
        with np.errstate(all="ignore"):
            apart = (product.x @ (other[:, part] - product.matrix[:, part])) / room
            size = float(np.square(apart).sum())
            share = float((apart * product.off[:, part] / room).sum()) / size if size else 0.0
        if not 0.01 < abs(share) < 10 or not good(
            product.off[:, part] / room - share * apart, product.off[:, part] / room
        ):
            continue
        found = Fitted(share, float(1 / np.sqrt(size)))
        constant = recognised(found, product.difference.scene)
        made = Blended(other, share if constant is None else constant.value)
        if not product.fits(product.times(made(product.matrix))):
            continue
        said = _("it follows if {name} is mixed with {other}, which has a share of {share}; the "
                 "model takes {name} alone")  # fmt: skip
        yield product.rewritten(
            "weight-mixed", said, _("use {name} alone, without {other}"), made, unlikely=1,
            fitted=int(constant is None), name=product.name, other=name,
            share=shown(found) if constant is None else constant.written)  # fmt: skip
        return


def _pruned(product: Product) -> Iterator[Reading]:
    """The smallest weights replaced by 0: which share of them?"""
    part = product.sample
    sizes = np.abs(product.matrix)
    for by_output in (False, True):
        limits: Floats = np.quantile(sizes, SHARES, axis=0 if by_output else None, method="lower")
        for share, limit in zip(SHARES, limits, strict=True):
            own = limit[part] if by_output else limit
            kept = np.where(sizes[:, part] > own, product.matrix[:, part], 0.0)
            if not product.fits(product.times(kept, part), part):
                continue
            made = Pruned(share, by_output)
            said = _(
                "it follows if the smallest {share} % of {name} are 0; the file has other numbers"
            )
            if by_output:
                said = _("it follows if the smallest {share} % of each output of {name} are 0; the "
                         "file has other numbers")  # fmt: skip
            yield product.rewritten(
                "weight-pruned",
                said,
                _("load {name} without pruning"),
                made,
                unlikely=1,
                share=f"{100 * share:g}",
                name=product.name,
            )
            return


def _averaged(product: Product) -> Iterator[Reading]:
    """The heads of q, k or v, all with the mean of their matrices."""
    heads = product.step.attributes.get("heads")
    if not heads or heads < 2 or len(product.columns) < product.size(1):
        return
    made = HeadsAveraged(int(heads))
    bias = 0.0 if product.bias is None else product.bias
    whole = product.times(made(product.matrix))
    both = whole if product.bias is None else whole - bias + made(product.bias[None])[0]
    for predicted in (whole, both):
        if product.fits(predicted):
            said = _("it follows if the matrices of the {heads} heads in {name} are averaged; in "
                     "the model each has its own")  # fmt: skip
            yield product.rewritten("heads-averaged", said, _("give each head its own part of {name}"),
                                    made, unlikely=1, heads=heads, name=product.name)  # fmt: skip
            return

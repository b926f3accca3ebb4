"""A matrix that is cut off, mixed with another one, pruned, or averaged over heads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from byhand.checking.differences.closeness import Fitted
from byhand.checking.differences.constants import recognised, shown
from byhand.checking.differences.difference import Floats, Reading
from byhand.checking.differences.product import Product, good, root_mean_square
from byhand.checking.differences.told import numbered
from byhand.checking.suspects.rewritings import (
    Blended,
    HeadsAveraged,
    LinesScaled,
    Pruned,
    Replaced,
    Rewriting,
)
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

SHARES = tuple(round(0.05 * step, 2) for step in range(1, 20))
SOME = 450  # lines of each side that tell about how large the weights are
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
    part, original = product.sample, product.original
    for source in (product.matrix,) if original is None else (original, product.matrix):
        own = np.abs(source[:, part])
        rows, columns = (max(1, side // SOME) for side in source.shape)
        few = np.abs(source[::rows, ::columns])
        for by_output in (False, True):
            rough = np.quantile(own if by_output else few, SHARES, axis=0 if by_output else None)
            for share, limit in zip(SHARES, rough, strict=True):
                if not _lessens(product, np.where(own > limit, source[:, part], 0.0)):
                    continue
                for also in (True, False):
                    made = Pruned(share, by_output, also)
                    exact = made.limit(own if by_output else np.abs(source))
                    some = own > exact if also else own >= exact
                    kept = np.where(some, source[:, part], 0.0)
                    if product.fits(product.times(kept, part), part):
                        yield _pruned_edit(product, made, source)
                        return


def _lessens(product: Product, matrix: Floats) -> bool:
    """Whether a matrix for the sample's columns leaves clearly less than the model's."""
    part = product.sample
    left = product.left(product.times(matrix, part), part)
    before = product.off[:, part] / product.room[:, part]
    return root_mean_square(left) < 0.7 * root_mean_square(before)


def _pruned_edit(product: Product, made: Pruned, source: Floats) -> Reading:
    said = _("it follows if the smallest {share} % of {name} are 0; the file has other numbers")
    if made.by_output:
        said = _("it follows if the smallest {share} % of each output of {name} are 0; the file "
                 "has other numbers")  # fmt: skip
    whole = len(product.columns) == product.size(1)
    new: Rewriting = made if source is product.matrix or not whole else Replaced(made(source))
    return product.rewritten(
        "weight-pruned",
        said,
        _("load {name} without pruning"),
        new,
        unlikely=1,
        share=f"{100 * made.share:g}",
        name=product.name,
    )


def _averaged(product: Product) -> Iterator[Reading]:
    """The heads of q, k or v, all with the mean of their matrices."""
    heads = product.step.attributes.get("heads")
    if not heads or heads < 2 or len(product.columns) < product.size(1):
        return
    made = HeadsAveraged(int(heads))
    whole = product.times(made(product.matrix))
    said = _("it follows if the matrices of the {heads} heads in {name} are averaged; in the model "
             "each has its own")  # fmt: skip
    change = _("give each head its own part of {name}")
    words = {"heads": heads, "name": product.name}
    if product.fits(whole):
        yield product.rewritten("heads-averaged", said, change, made, unlikely=1, **words)
    elif product.bias is not None:
        shift = made(product.bias[None])[0]
        if product.fits(whole - product.bias + shift):
            yield product.difference.edit("heads-averaged", said, change, partial(
                _both, heads=made, bias=shift, turned=product.turned), at=product.step, unlikely=1,
                **words)  # fmt: skip


def _both(draft: Draft, step: Step, *, heads: HeadsAveraged, bias: Floats, turned: bool) -> None:
    draft.first(step.address, "weight", "rewritten", rewriting=heads, turned=turned)
    draft.first(step.address, "bias", "rewritten", rewriting=Replaced(bias))

"""Norms over other numbers than a row: over groups of channels, or over the positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from byhand.checking.differences.difference import Difference, Floats, Reading
from byhand.checking.differences.gains import gain_and_bias
from byhand.checking.differences.product import READ_OFF, good
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.norms import Group
from byhand.checking.suspects.scenes import Draft
from byhand.language import _
from byhand.plan import Step

MOST_GROUPS = 64


@dataclass(frozen=True)
class _Laid:
    """How rows are laid out before they are normalised: in groups, or turned."""

    groups: int  # 0: turned, so that each channel is a row of positions

    def forth(self, x: Floats) -> Floats:
        if not self.groups:
            return np.swapaxes(x, -1, -2)
        return x.reshape(*x.shape[:-1], self.groups, -1)

    def back(self, x: Floats) -> Floats:
        return np.swapaxes(x, -1, -2) if not self.groups else x.reshape(*x.shape[:-2], -1)


def grouped_readings(
    difference: Difference, norm: Group, x: Floats, base: str, centres: bool
) -> Iterator[Reading]:
    """The norm of groups of channels, or of each channel over the positions."""
    if difference.target is not norm.out or x.ndim != 2:
        return
    affine = gain_and_bias(difference, norm)
    if affine is None:
        return
    gain, bias = affine
    unit = 0.5 * 2.0 ** -bits_of(difference.scene.context.precision)
    eps = float(norm.eps)
    ways = (True, False) if centres else (False, True)
    for laid, less in ((laid, less) for laid in _layouts(difference, x) for less in ways):
        whole = laid.forth(x)
        with np.errstate(all="ignore"):
            rows = whole - whole.mean(axis=-1, keepdims=True) if less else whole
            root = np.sqrt(np.square(rows).mean(axis=-1, keepdims=True) + eps)
            predicted = laid.back(rows / root) * gain + bias
            parts = np.abs(predicted) + np.abs(laid.back(whole / root) * gain)
            sizes = np.hypot(difference.room, 2 * unit * parts)
            left = (predicted - difference.claimed) / sizes
            before = (difference.expected - difference.claimed) / sizes
        if not np.isfinite(left).all() or not good(left, before):
            continue
        said = _("it follows if the norm is taken over {groups} groups of {size} channels, each on "
                 "its own; the model takes it over all {width} channels")  # fmt: skip
        if not laid.groups:
            said = _("it follows if the norm is taken over the positions, for each channel; the "
                     "model takes it over the channels of each position")  # fmt: skip
        groups = laid.groups or 1
        yield difference.edit(
            "norm-axis", said, _("normalise over the channels of each position"),
            partial(_rebuilt, laid=laid, norm=norm, base=base, centres=less), unlikely=READ_OFF + 1,
            groups=groups, size=x.shape[-1] // groups, width=x.shape[-1])  # fmt: skip
        return


def _layouts(difference: Difference, x: Floats) -> Iterator[_Laid]:
    width = x.shape[-1]
    if len(x) > 1:
        yield _Laid(0)
    block = difference.scene.spec.blocks[0]
    heads = block.attention.heads if block.attention else 0
    counts = {2, 3, 4, 6, 8, 12, 16, 32, 64, heads}
    for groups in sorted(counts):
        if 1 < groups <= MOST_GROUPS and width % groups == 0 and width // groups > 1:
            yield _Laid(groups)


def _rebuilt(
    draft: Draft, target: Step, *, laid: _Laid, norm: Group, base: str, centres: bool
) -> None:
    """Writes the norm of the rows as they are laid out, then lays them back."""
    at, whole = target.address, norm.lines["normalized"]
    count, width = whole.shape
    if laid.groups:
        shape = (count * laid.groups, width // laid.groups)
        x = draft.made_of(base, "reread", at, shape=shape)
    else:
        shape = (width, count)
        x = draft.made_of(base, "turned", at, axes=(1, 0))
    axes, row = ("row", "entry"), ("row",)
    if centres:
        mean = draft.write(at, "mean", {"x": x}, row, shape[:1])
        x = draft.write(at, "center", {"x": x, "mean": mean}, axes, shape)
    square = draft.write(at, "mean_square", {"x": x}, row, shape[:1])
    root = draft.write(at, "root", {"x": square}, row, shape[:1], eps=norm.eps)
    made = draft.write(at, "normalize", {"x": x, "by": root}, axes, shape)
    made = (
        draft.made_of(made, "reread", at, shape=whole.shape)
        if laid.groups
        else draft.made_of(made, "turned", at, axes=(1, 0))
    )
    if "out" in norm.lines:
        made = draft.copy(at, norm.lines["out"], x=made)
    draft.keep(at, made)

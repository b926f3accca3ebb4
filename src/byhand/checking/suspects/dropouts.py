"""Dropout left on, as suspects.

Some entries are 0, and what is kept is larger by 1/(1 - p), even where nothing was dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isfinite

import numpy as np

from byhand.checking.suspects.dropping import nearer, plausible
from byhand.checking.suspects.mistakes import number
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

RATES = tuple(map(Fraction, ("0.1", "0.2", "0.5", "0.05", "0.3")))
PLACES = (".attn.weights", ".attn.mixed", ".attn.out", ".mlp.out", "stream.0", "embed.token")
SUMS = (".attn.add", ".mlp.add")
FINEST = 1000  # rates are whole multiples of 1/1000


def dropout_suspects(scene: Scene) -> Iterator[Edit]:
    """Lines that come before a dropout: what is kept of them, and all divided by what it keeps."""
    if scene.context.values is not None and not scene.context.index:
        yield from _dropped(scene)
    for step in scene.named(*PLACES)[-1:]:  # between two products it is the same arithmetic
        for rate in RATES[:3]:
            yield from _larger(scene, step, rate)


def _larger(scene: Scene, step: Step, rate: Fraction) -> Iterator[Edit]:
    """Nothing dropped, everything larger."""
    for role in ("weights", ""):  # shares are dropped before they mix
        draft = scene.draft()
        factor = 1 / (1 - rate)
        if not role:
            draft.then(step.address, "scaled", factor=factor)
        elif role in step.inputs:
            read = scene.plan[step.inputs[role]]
            larger = draft.write(
                step.address, "scaled", {"x": read.address}, read.axes, read.shape, factor=factor
            )
            draft.change(step.address, inputs={role: larger})
        said = _(
            "it follows if everything is larger by 1/(1 - {rate}), as dropout leaves it; the model "
            "drops nothing"
        )
        yield _edit(draft, said, rate)


def _dropped(scene: Scene) -> Iterator[Edit]:
    """Some of the claimed line dropped, or of what it mixes or adds."""
    target = scene.target
    said = _(
        "it follows if some of it is dropped and the rest is larger by 1/(1 - {rate}), as dropout "
        "leaves it; the model drops nothing"
    )
    if target.address.endswith(PLACES) and (rate := _rate(scene)):
        draft = scene.draft()
        draft.then(target.address, "dropped", values=scene.context.values, rate=rate)
        yield _edit(draft, said, rate)
    mixes, adds = target.op == "mix", target.op == "add" and target.address.endswith(SUMS)
    for rate in RATES if mixes or adds else ():
        draft = scene.draft()
        op = "dropped_mix" if mixes else "dropped_add"
        draft.change(target.address, op=op, values=scene.context.values, rate=rate)
        yield _edit(draft, said, rate)


def _rate(scene: Scene) -> Fraction | None:
    """The rate that the claimed line shows: most of it is 1/(1 - rate) times what it should be."""
    values, expected = scene.context.values, scene.context.expected
    if values is None or expected is None or values.shape != expected.shape:
        return None
    there = (expected != 0) & np.isfinite(values)
    left = there & (values != 0)
    if not left.any():
        return None
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = float(np.median(expected[left] / values[left]))
    if not isfinite(ratio):
        return None
    rate = Fraction(round((1 - ratio) * FINEST), FINEST)
    if not 0 < rate < 1:
        return None
    kept = nearer(values, np.zeros(values.shape), expected / (1 - float(rate)))
    return rate if plausible(kept, there, float(rate)) else None


def _edit(draft: Draft, said: str, rate: Fraction) -> Edit:
    return Edit(
        "dropout",
        said.format(rate=number(rate)),
        _("switch dropout off: model.eval()"),
        draft.made(),
        2,
    )

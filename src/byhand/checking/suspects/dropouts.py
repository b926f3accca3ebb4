"""Dropout left on: what it keeps is larger by 1/(1 - p), even where nothing was dropped."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from byhand.checking.suspects.editing import Edit, Scene
from byhand.checking.suspects.wording import number
from byhand.language import _

RATES = tuple(map(Fraction, ("0.1", "0.2", "0.5")))
PLACES = (".attn.weights", ".attn.mixed", ".attn.out", ".mlp.out", "stream.0", "embed.token")


def dropout_suspects(scene: Scene) -> Iterator[Edit]:
    """Lines that come before a dropout, divided by what it keeps."""
    for step in scene.named(*PLACES)[-1:]:  # between two products it is the same arithmetic
        for rate in RATES:
            for role in ("weights", ""):  # shares are dropped before they mix
                draft = scene.draft()
                factor = 1 / (1 - rate)
                if not role:
                    draft.then(step.address, "scaled", factor=factor)
                elif role in step.inputs:
                    read = scene.plan[step.inputs[role]]
                    larger = draft.write(
                        step.address, "scaled", {"x": read.address}, read.axes, read.shape,
                        factor=factor,
                    )  # fmt: skip
                    draft.change(step.address, inputs={role: larger})
                yield Edit(
                    "dropout",
                    _(
                        "it follows if everything is larger by 1/(1 - {rate}), as dropout leaves "
                        "it; the model drops nothing"
                    ).format(rate=number(rate)),
                    _("switch dropout off: model.eval()"),
                    draft.made(),
                    2,
                )

"""Mistakes with the soft cap of attention scores: left out, another one, taken at another place."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from byhand.checking.suspects.mistakes import Mistake, made, number, setting
from byhand.checking.suspects.scenes import Edit, Scene
from byhand.language import _

USUAL = tuple(map(Fraction, (20, 30, 50)))  # caps that models have


def cap_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits in which capped scores are not capped, or otherwise; and capped ones where none is."""
    every = scene.of("scores")
    capped = [step for step in every if "cap" in step.attributes]
    if capped:
        own: Fraction = capped[0].attributes["cap"]
        change = _("let scaled scores x become {own}·tanh(x/{own})").format(own=number(own))
        yield from made(scene, capped, Mistake(
            "cap-missing", _("it follows if the scores are not capped; the model says "
                             "{own}·tanh(x/{own})"),
            change, setting(cap=None)), own=number(own))  # fmt: skip
    else:
        own, change = Fraction(0), _("do not cap the scores")
    for cap in USUAL:
        if cap != own:
            said = (
                _("it follows if the scores are capped at {cap}; the model caps them at {own}")
                if capped
                else _("it follows if the scores are capped at {cap}; the model does not cap them")
            )
            mistake = Mistake("cap-wrong", said, change, setting(cap=cap), 1 if capped else 3)
            yield from made(scene, capped or every, mistake, cap=number(cap), own=number(own))

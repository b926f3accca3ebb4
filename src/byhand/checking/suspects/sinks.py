"""Mistakes about the sinks of attention: scores that take a share and have no value."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import log

from byhand.checking.suspects.mistakes import Mistake, first, made, reading
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Call, Number
from byhand.language import _
from byhand.plan import Step

TWICE = Fraction(log(2))  # a sink that is counted twice is as one larger by ln 2


def sink_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits in which the sinks of the region are left out, counted twice, or scaled."""
    steps = [step for step in scene.of("softmax") if "sinks" in step.inputs]
    change = _("let the sink of each head enter the softmax once, as it is, and drop its share")
    yield from made(
        scene, steps,
        Mistake("sink-missing",
                _("it follows if the sinks are left out; the model has one in the softmax of each "
                  "head"), change, reading(sinks=None)),
        Mistake("sink-twice",
                _("it follows if each sink is counted twice; the model counts it once"),
                change, first("sinks", "raised", by=TWICE)),
        Mistake("sink-scaled",
                _("it follows if the sinks are scaled as the scores are; the model takes them as "
                  "they are"), change, lambda draft, step: _scaled(scene, draft, step), 1),
        Mistake("sink-zero",
                _("it follows if every sink is 0; the model has learned ones"),
                change, first("sinks", "scaled", factor=Fraction(0)), 1),
        Mistake("sink-base",
                _("it follows if 2^sink enters the softmax; the model says e^sink"),
                change, first("sinks", "scaled", factor=Call("ln", Number(Fraction(2)))), 1),
        Mistake("sink-order",
                _("it follows if the sinks are read by a head's place in its group first; the "
                  "model has them in the order of the heads"),
                change, lambda draft, step: _by_place(scene, draft, step), 1),
    )  # fmt: skip


def _by_place(scene: Scene, draft: Draft, step: Step) -> None:
    attention = scene.attention(step.address)
    groups = attention.heads // attention.kv_heads
    order = [kv * groups + place for place in range(groups) for kv in range(attention.kv_heads)]
    draft.first(step.address, "sinks", "taken", axis=0, order=tuple(order))


def _scaled(scene: Scene, draft: Draft, step: Step) -> None:
    scale = scene.attention(step.address).scale
    if scale is not None:
        draft.first(step.address, "sinks", "scaled", factor=scale)

"""Mistakes with limits and factors of a line, and with the expert that always answers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from byhand.checking.suspects.mistakes import (
    Mistake,
    factor,
    keeping,
    made,
    number,
    setting,
    together_and_apart,
)
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step


def limit_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits in which a line is not limited, raised, rescaled or weighed as the model does it."""
    yield from _limits(scene)
    yield from _raised(scene)
    yield from _factors(scene)
    yield from _shared(scene)


def _limits(scene: Scene) -> Iterator[Edit]:
    """Edits in which limits are left out, or hold on another side."""
    change = _("keep the numbers within the limit, as the model does (clamp)")
    for steps, apart in together_and_apart(scene.of("clamp")):
        yield from made(scene, steps, Mistake(
            "limit-missing",
            _("it follows if the limit {limit} is left out; the model keeps numbers within it"),
            change, keeping("x")), unlikely=apart, limit=_most(steps[0]))  # fmt: skip
    above = [step for step in scene.of("clamp") if "least" not in step.attributes]
    yield from made(scene, above, Mistake(
        "limit-sides",
        _("it follows if numbers are limited on both sides; the model limits them from above"),
        change, _on_both_sides))  # fmt: skip
    both = [step for step in scene.of("clamp") if "least" in step.attributes]
    yield from made(scene, both, Mistake(
        "limit-sides",
        _("it follows if numbers are limited from above alone; the model limits both sides"),
        change, setting(least=None)))  # fmt: skip


def _on_both_sides(draft: Draft, step: Step) -> None:
    draft.change(step.address, least=-step.attributes["most"])


def _most(step: Step) -> str:
    return number(step.attributes["most"])


def _raised(scene: Scene) -> Iterator[Edit]:
    steps = [step for step in scene.of("rescale") if "plus" in step.attributes]
    if steps:
        plus = number(steps[0].attributes["plus"])
        yield from made(scene, steps, Mistake(
            "plus-missing",
            _("it follows if {plus} is not added; the model multiplies act(gate) by up + {plus}"),
            _("add {plus} to the up projection before it is multiplied"),
            keeping("x")), plus=plus)  # fmt: skip


def _factors(scene: Scene) -> Iterator[Edit]:
    """Edits in which a factor of a whole line is left out."""
    rescaled = [step for step in scene.of("rescale") if "by" in step.attributes]
    for steps, apart in together_and_apart(rescaled):
        own = factor(steps[0].attributes["by"])
        yield from made(scene, steps, Mistake(
            "factor-missing",
            _("it follows if the factor {own} is left out; the model multiplies by it"),
            _("multiply by {own}"),
            keeping("x")), unlikely=apart, own=own)  # fmt: skip


def _shared(scene: Scene) -> Iterator[Edit]:
    """Edits in which the expert that always answers is not weighed, or is left out."""
    change = _("multiply the shared expert's answer by the sigmoid of its score")
    yield from made(scene, scene.of("weigh"),
        Mistake("shared-ungated",
                _("it follows if the shared expert's answer counts whole; the model weighs it by "
                  "the sigmoid of its score"), change, keeping("x")),
        Mistake("shared-ungated",
                _("it follows if the shared expert's answer is multiplied by its score; the model "
                  "takes the sigmoid of the score"), change, partial(_by_score, scene), 1),
    )  # fmt: skip
    sums = [step for step in scene.of("add") if step.inputs["x"].endswith(".combined")]
    change = _("add the shared expert's answer to what the chosen experts give")
    yield from made(scene, sums, Mistake(
        "shared-missing",
        _("it follows if the shared expert is left out; in the model it always answers"),
        change, keeping("x")))  # fmt: skip


def _by_score(scene: Scene, draft: Draft, step: Step) -> None:
    share = scene.plan[step.inputs["by"]]
    if "x" in share.inputs:
        draft.change(step.address, inputs={"by": share.inputs["x"]})

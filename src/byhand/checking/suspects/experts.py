"""Mistakes in the choice of experts and in their shares."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from byhand.checking.suspects.mistakes import Mistake, made, setting
from byhand.checking.suspects.routing import is_alone
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step


def expert_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the routers of the region: who is chosen, and by which share."""
    yield from _choices(scene)
    yield from _shares(scene)


def _choices(scene: Scene) -> Iterator[Edit]:
    """Edits in which one expert more or less is chosen, or those with the smallest scores."""
    steps = scene.of("choose")
    if not steps:
        return
    own, experts = steps[0].attributes["count"], steps[0].shape[-1]
    for other in (1, own - 1, own + 1):
        if 1 <= other <= experts and other != own:
            yield from made(scene, steps, Mistake(
                "experts-chosen",
                _("it follows if {other} experts are chosen; the model chooses {own}"),
                _("choose the {own} experts with the largest scores (top_k)"),
                setting(count=other)), other=other, own=own)  # fmt: skip
    yield from made(scene, steps, Mistake(
        "experts-chosen",
        _("it follows if the experts with the smallest scores are chosen; the model chooses those "
          "with the largest"),
        _("sort the scores from the largest down"),
        lambda draft, step: draft.first(step.address, "x", "scaled", factor=Fraction(-1)), 2),
    )  # fmt: skip


def _shares(scene: Scene) -> Iterator[Edit]:
    steps = [step for step in scene.of("expert_shares") if not is_alone(step)]
    if not steps:
        return
    if steps[0].attributes["normalised"]:
        sentence = _(
            "it follows if the shares come from a softmax over all experts; the model takes it "
            "over the chosen ones, which sum to 1"
        )  # fmt: skip
        change = _("divide the shares of the chosen experts by their sum (norm_topk_prob)")
    else:
        sentence = _(
            "it follows if the shares come from a softmax over the chosen experts, which sum "
            "to 1; the model takes it over all experts"
        )  # fmt: skip
        change = _("take the softmax over all experts, then those of the chosen ones")
    other = not steps[0].attributes["normalised"]
    own = _("take the softmax of the router's scores")
    yield from made(scene, steps,
        Mistake("expert-shares", sentence, change, setting(normalised=other)),
        Mistake("expert-shares",
                _("it follows if the router's scores themselves are the shares; the model takes "
                  "their softmax"), own, _scores_for_shares),
        Mistake("expert-shares",
                _("it follows if the softmax is taken twice, of the scores and of its own result; "
                  "the model takes it once"), own,
                lambda draft, step: draft.first(step.address, "x", "softmax"), 1),
        Mistake("expert-shares",
                _("it follows if the chosen experts have equal shares; the model weighs them by "
                  "the router's scores"), _("multiply each answer by its share"), _even, 1),
        Mistake("expert-shares",
                _(
                    "it follows if the first choice has expert 0's share, the second expert "
                    "1's, and so on; the model gives each its own"
                ),
                _("take the share at the expert's number, not at its rank"), _by_rank, 2),
    )  # fmt: skip


def _scores_for_shares(draft: Draft, step: Step) -> None:
    terms = {"x": step.inputs["x"], "y": step.inputs["chosen"]}
    draft.change(step.address, op="multiply", inputs=terms, only=True)


def _even(draft: Draft, step: Step) -> None:
    draft.first(step.address, "x", "scaled", factor=Fraction(0))


def _by_rank(draft: Draft, step: Step) -> None:
    reads = {"shares": draft.aside(step.address), "scores": step.inputs["x"],
             "chosen": step.inputs["chosen"]}  # fmt: skip
    draft.change(step.address, op="taken_by_rank", inputs=reads, only=True)

"""Mistakes in routers with a bias for the choice, groups, sigmoids or a factor of the shares."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from byhand.checking.suspects.mistakes import Mistake, made, number, setting
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step


def routing_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in what the router ranks, in its groups, or in what it shares out."""
    yield from _scores(scene)
    yield from _bias(scene)
    yield from _groups(scene)
    yield from _shares(scene)


def is_alone(step: Step) -> bool:
    """Whether the shares of a step are of scores that stand each on its own: sigmoids."""
    return bool(step.attributes.get("alone"))


def _scores(scene: Scene) -> Iterator[Edit]:
    """Edits in which the scores are a softmax; the model takes sigmoids."""
    steps = [step for step in scene.of("activate") if step.address.endswith(".router_scores")]
    yield from made(scene, steps, Mistake(
        "experts-softmax",
        _("it follows if the scores are a softmax over the experts; the model takes the sigmoid of "
          "each"),
        _("take the sigmoid of each score (scoring_func)"),
        setting(op="softmax", kind=None)))  # fmt: skip


def _bias(scene: Scene) -> Iterator[Edit]:
    """Edits in which the bias of the choice is left out, or is in the shares as well."""
    change = _("add the bias to the scores for the choice alone (e_score_correction_bias)")
    ranked = [step for step in scene.of("choose") if _is_ranked(scene, step)]
    yield from made(scene, ranked, Mistake(
        "choice-bias",
        _("it follows if the bias of the choice is left out; the model adds it before it chooses"),
        change, partial(_unranked, scene)))  # fmt: skip
    biased = [step for step in scene.of("expert_shares") if _ranks(scene, step) is not None]
    yield from made(scene, biased, Mistake(
        "choice-bias",
        _("it follows if the bias of the choice is in the shares as well; the model shares out by "
          "the scores without it"),
        change, partial(_shared_by_rank, scene)))  # fmt: skip


def _is_ranked(scene: Scene, step: Step) -> bool:
    return step.inputs["x"].endswith(".ranked") and scene.has(step.inputs["x"])


def _ranks(scene: Scene, step: Step) -> str | None:
    """The scores with the bias of the choice, beside those that a line of shares reads."""
    ranked = step.address.removesuffix("shares") + "ranked"
    return ranked if scene.has(ranked) else None


def _unranked(scene: Scene, draft: Draft, step: Step) -> None:
    draft.change(step.address, inputs={"x": scene.plan[step.inputs["x"]].inputs["x"]})


def _shared_by_rank(scene: Scene, draft: Draft, step: Step) -> None:
    draft.change(step.address, inputs={"x": _ranks(scene, step)})


def _groups(scene: Scene) -> Iterator[Edit]:
    """Edits in which groups are ignored, counted by another rule, or others are chosen."""
    steps = [step for step in scene.of("choose") if "groups" in step.attributes]
    if not steps:
        return
    own = steps[0].attributes
    count, groups, rule = own["groups_chosen"], own["groups"], own["group_rule"]
    change = _("choose within the best {count} of {groups} groups (n_group, topk_group)")
    words = {"count": count, "groups": groups, "chosen": own["count"]}
    yield from made(scene, steps, Mistake(
        "expert-groups",
        _("it follows if the best {chosen} of all experts are chosen; the model chooses within the "
          "best {count} groups"),
        change, setting(groups=None, groups_chosen=None, group_rule=None)), **words)  # fmt: skip
    if rule == "top2":
        sentence = _("it follows if a group counts by its best expert; the model adds up its two "
                     "best")  # fmt: skip
    else:
        sentence = _("it follows if a group counts by the sum of its two best experts; the model "
                     "takes its best one")  # fmt: skip
    if steps[0].shape[-1] >= 2 * groups:
        other = "max" if rule == "top2" else "top2"
        yield from made(scene, steps, Mistake(
            "expert-group-rule", sentence, change, setting(group_rule=other)), **words)  # fmt: skip
    each = steps[0].shape[-1] // groups
    for wrong in (count - 1, count + 1):
        if 1 <= wrong < groups and wrong * each >= own["count"]:
            yield from made(scene, steps, Mistake(
                "expert-groups",
                _("it follows if the best {wrong} groups count; the model takes {count}"),
                change, setting(groups_chosen=wrong), 1), wrong=wrong, **words)  # fmt: skip


def _shares(scene: Scene) -> Iterator[Edit]:
    """Edits in which the shares lack their factor, or sigmoids are divided by their sum or not."""
    scaled = [step for step in scene.of("expert_shares") if "scale" in step.attributes]
    if scaled:
        scale = number(scaled[0].attributes["scale"])
        yield from made(scene, scaled, Mistake(
            "share-scale",
            _("it follows if the shares are not multiplied by {scale}; the model does it"),
            _("multiply the shares by {scale} (routed_scaling_factor)"),
            setting(scale=None)), scale=scale)  # fmt: skip
    alone = [step for step in scene.of("expert_shares") if is_alone(step)]
    if not alone:
        return
    if alone[0].attributes["normalised"]:
        sentence = _("it follows if the shares are the scores themselves; the model divides them "
                     "by their sum")  # fmt: skip
        change = _("divide the shares of the chosen experts by their sum (norm_topk_prob)")
    else:
        sentence = _("it follows if the shares are divided by their sum; the model takes the "
                     "scores themselves")  # fmt: skip
        change = _("take the scores of the chosen experts as they are (norm_topk_prob)")
    other = not alone[0].attributes["normalised"]
    yield from made(scene, alone, Mistake(
        "expert-shares", sentence, change, setting(normalised=other)))  # fmt: skip

"""What a port of a newer model forgets: a factor, a cap, limits, a shared expert, distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from byhand.checking.suspects.mistakes import (
    Mistake,
    factor,
    keeping,
    made,
    number,
    reading,
    setting,
)
from byhand.checking.suspects.scenes import Edit, Scene
from byhand.language import _
from byhand.relative_buckets import buckets


def left_out_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits in which a line of its own, or a term, is left out."""
    yield from _factors(scene)
    yield from _caps_and_limits(scene)
    yield from _experts(scene)
    yield from _distances(scene)


def _factors(scene: Scene) -> Iterator[Edit]:
    for step in scene.of("rescale"):
        if (by := step.attributes.get("by")) is not None:
            yield from made(scene, [step], Mistake(
                "factor-missing", _("it follows if the factor is left out; the model multiplies "
                                    "by {own}"),
                _("multiply by {own} here"), keeping("x")), own=factor(by))  # fmt: skip
        else:
            yield from made(scene, [step], Mistake(
                "plus-missing", _("it follows if nothing is added; the model adds {own} to the "
                                  "hidden numbers"),
                _("add {own} to each hidden number before it meets its gate"), keeping("x")),
                own=number(step.attributes["plus"]))  # fmt: skip


def _caps_and_limits(scene: Scene) -> Iterator[Edit]:
    for step in scene.of("soft_cap"):
        yield from made(scene, [step], Mistake(
            "logit-cap-missing", _("it follows if the logits are not capped; the model says "
                                   "{own}·tanh(x/{own})"),
            _("let logits x become {own}·tanh(x/{own})"), keeping("x")),
            own=number(step.attributes["cap"]))  # fmt: skip
    limits = scene.of("clamp")
    if limits:
        yield from made(scene, limits, Mistake(
            "limit-missing", _("it follows if the limits are left out; the model keeps these "
                               "numbers at most {own}"),
            _("cut these numbers off at {own}"), keeping("x")),
            own=number(limits[0].attributes["most"]))  # fmt: skip


def _experts(scene: Scene) -> Iterator[Edit]:
    shared = [step for step in scene.of("add") if step.address.endswith(".mlp.out")]
    yield from made(scene, shared, Mistake(
        "shared-expert-missing", _("it follows if the shared expert is left out; the model adds "
                                   "its answer to those of the chosen ones"),
        _("add the answer of the shared expert"), keeping("x")))  # fmt: skip
    gates = scene.of("weigh")
    yield from made(scene, gates, Mistake(
        "shared-gate-missing", _("it follows if the shared expert's answer counts in full; the "
                                 "model weighs it by a score of its own"),
        _("multiply the shared expert's answer by the sigmoid of its score"),
        keeping("x")))  # fmt: skip
    scaled = [step for step in scene.of("expert_shares") if "scale" in step.attributes]
    if scaled:
        yield from made(scene, scaled, Mistake(
            "share-scale-missing", _("it follows if the shares are not scaled; the model "
                                     "multiplies them by {own}"),
            _("multiply the shares by {own} (routed_scaling_factor)"), setting(scale=None)),
            own=number(scaled[0].attributes["scale"]))  # fmt: skip
    grouped = [step for step in scene.of("choose") if "groups" in step.attributes]
    whole = setting(groups=None, groups_chosen=None, group_rule=None)
    yield from made(scene, grouped, Mistake(
        "groups-missing", _("it follows if experts of all groups can be chosen; the model chooses "
                            "within the best groups"),
        _("choose the best groups first, then the experts in them"), whole))  # fmt: skip
    ranked = [step for step in scene.of("affine") if step.address.endswith(".mlp.ranked")]
    yield from made(scene, ranked, Mistake(
        "choice-bias-missing", _("it follows if the bias of the choice is left out; the model adds "
                                 "it to the scores that choose"),
        _("add e_score_correction_bias to the scores that choose, not to the shares"),
        keeping("x")))  # fmt: skip


def _distances(scene: Scene) -> Iterator[Edit]:
    told = [step for step in scene.of("scores", "table_scores") if "bias" in step.inputs]
    yield from made(scene, told, Mistake(
        "distances-missing", _("it follows if the scores of distances are left out; the model adds "
                               "them to its own scores"),
        _("add the relative position bias to the scores"), reading(bias=None)))  # fmt: skip
    for step in scene.of("bucket_scores"):
        encoder = step.address.startswith("encoder.")
        side = scene.spec.encoder if encoder else scene.spec
        relative = None if side is None else side.relative
        if relative is None:
            continue
        own = step.attributes["buckets"]
        places = tuple(range(len(own[0])))
        asking = places[len(places) - len(own) :]
        turned = tuple(zip(*buckets(relative, places, asking), strict=True))
        yield from made(scene, [step], Mistake(
            "buckets-turned", _("it follows if the distance is query - key; the model takes "
                                "key - query"),
            _("take the bucket of key - query"), setting(buckets=turned)))  # fmt: skip
        if relative.buckets % 2 == 0 and relative.buckets >= 4:
            other = buckets(replace(relative, both=not relative.both), asking, places)
            said = (
                _("it follows if later keys share the bucket of distance 0; the model has buckets "
                  "of their own for them")
                if relative.both
                else _("it follows if later keys have buckets of their own; the model gives them "
                       "that of distance 0")
            )  # fmt: skip
            yield from made(scene, [step], Mistake(
                "buckets-direction", said, _("look at `bidirectional` of the buckets"),
                setting(buckets=other)))  # fmt: skip

"""What a port of a newer model forgets: the cap of the logits, the scores of distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from byhand.checking.suspects.mistakes import Mistake, keeping, made, number, reading, setting
from byhand.checking.suspects.scenes import Edit, Scene
from byhand.language import _
from byhand.relative_buckets import buckets


def left_out_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits in which logits are not capped, or distances are left out or taken otherwise."""
    for step in scene.of("soft_cap"):
        yield from made(scene, [step], Mistake(
            "logit-cap-missing", _("it follows if the logits are not capped; the model says "
                                   "{own}·tanh(x/{own})"),
            _("let logits x become {own}·tanh(x/{own})"), keeping("x")),
            own=number(step.attributes["cap"]))  # fmt: skip
    yield from _distances(scene)


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

"""Mistakes on the way back through attention: softmax, scale, mask, heads, RoPE, packing."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import permutations

import numpy as np

from byhand.backward import QKV
from byhand.checking.suspects.mistakes import (
    Mistake,
    keeping,
    made,
    setting,
    then,
    together_and_apart,
)
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import GRAD, Step


def attention_back_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake between what attention gives and q, k and v."""
    yield from _softmaxes(scene)
    yield from _scales(scene)
    yield from _groups(scene)
    yield from _turns(scene)
    yield from _packing(scene)
    yield from _masks(scene)


def _softmaxes(scene: Scene) -> Iterator[Edit]:
    def alone(draft: Draft, step: Step) -> None:
        inputs = {"grad": step.inputs["grad"], "weights": step.inputs["weights"]}
        draft.change(step.address, op="shared_out", inputs=inputs, only=True)

    for steps, apart in together_and_apart(scene.of("softmax_back")):
        yield from made(scene, steps, Mistake(
            "softmax-row-sum-missing",
            _("it follows if softmax is taken back as weights · grad: the row's Σ weights·grad is "
              "not subtracted"),
            _("subtract Σ weights·grad of the row from grad before multiplying by the weights"),
            alone), unlikely=apart)  # fmt: skip


def _scales(scene: Scene) -> Iterator[Edit]:
    for op, name in (("along_keys", "q"), ("along_queries", "k")):
        steps = [step for step in scene.of(op) if step.attributes.get("scale") is not None]
        change = _("multiply the gradient of {name} by the scale of the scores").format(name=name)

        def twice(draft: Draft, step: Step) -> None:
            draft.then(step.address, "scaled", factor=step.attributes["scale"])

        for chosen, apart in together_and_apart(steps):
            yield from made(scene,
                chosen,
                Mistake("scale-missing-back",
                        _("it follows if the gradient of {name} is not scaled; the scores are"),
                        change, setting(scale=None)),
                Mistake("scale-doubled-back",
                        _("it follows if the gradient of {name} is scaled twice; the scores are "
                          "scaled once"),
                        change, twice, 1),
                unlikely=apart, name=name,
            )  # fmt: skip


def _groups(scene: Scene) -> Iterator[Edit]:
    """Edits of the sum over the query heads that share a key head."""
    steps = scene.of("sum_groups")
    if not steps:
        return
    heads, kept = scene.plan[steps[0].inputs["x"]].shape[0], steps[0].attributes["heads"]
    size = heads // kept
    change = _("sum the gradients of keys and values over the {count} heads that share them")

    def one(draft: Draft, step: Step, place: int) -> None:
        order = tuple(range(place, heads, size))
        draft.change(step.address, op="taken", heads=None, axis=0, order=order)

    def tiled(draft: Draft, step: Step) -> None:
        order = tuple(at + kept * turn for at in range(kept) for turn in range(size))
        draft.first(step.address, "x", "taken", axis=0, order=order)

    yield from made(scene,
        steps,
        Mistake("groups-not-summed",
                _("it follows if keys and values get the gradient of the first of the {count} "
                  "heads that share them"), change, partial(one, place=0)),
        Mistake("groups-not-summed",
                _("it follows if keys and values get the gradient of the last of the {count} "
                  "heads that share them"), change, partial(one, place=size - 1)),
        Mistake("groups-averaged",
                _("it follows if the gradients of keys and values are averaged over the {count} "
                  "heads that share them"), change, then("scaled", factor=Fraction(1, size))),
        Mistake("groups-tiled",
                _("it follows if every {kept}th head shares keys and values; in the model "
                  "{count} heads in a row do"), change, tiled, 1),
        count=size, kept=kept,
    )  # fmt: skip


def _turns(scene: Scene) -> Iterator[Edit]:
    """Edits of RoPE on the way back."""

    def forward(draft: Draft, step: Step) -> None:
        positions = tuple(-place for place in step.attributes["positions"])
        draft.change(step.address, positions=positions)

    change = _("turn the gradient back: by the same angles, with the other sign")
    for steps, apart in together_and_apart(scene.of("rotate")):
        yield from made(scene,
            steps,
            Mistake("rope-back-forward",
                    _("it follows if RoPE turns the gradient forward; on the way back it turns "
                      "back"), change, forward),
            Mistake("rope-back-missing",
                    _("it follows if the gradient is not turned back by RoPE"), change,
                    keeping("x")),
            unlikely=apart,
        )  # fmt: skip


def _packing(scene: Scene) -> Iterator[Edit]:
    """Edits of the order in which the gradients of q, k and v are packed."""
    steps = scene.of("pack_heads")
    for order in permutations(range(3)):
        if order == (0, 1, 2) or not steps:
            continue

        def exchange(draft: Draft, step: Step, order: tuple[int, ...] = order) -> None:
            reads = [step.inputs[QKV[place]] for place in order]
            draft.change(step.address, inputs=dict(zip(QKV, reads, strict=True)))

        names = ", ".join("qkv"[place] for place in order)
        if len({_shape(scene, step, role) for step in steps for role in QKV}) == 1:
            yield from made(scene, steps, Mistake(
                "packed-gradients-order",
                _("it follows if the gradients are packed as {names}; in the model it is q, k, v"),
                _("pack the gradients in the order of the weights: q, k, v"), exchange),
                names=names)  # fmt: skip


def _shape(scene: Scene, step: Step, role: str) -> tuple[int, ...]:
    return scene.plan[step.inputs[role]].shape


def _masks(scene: Scene) -> Iterator[Edit]:
    """Edits in which the way back makes the attention weights again, without the mask."""
    steps = [
        step
        for step in scene.of("along_queries", "along_keys")
        if _scores_of(scene, step) is not None
    ]
    yield from made(scene, steps, Mistake(
        "mask-missing-back",
        _("it follows if the attention weights are worked out again without the mask on the way "
          "back"),
        _("mask the scores on the way back as well: masked weights are 0"),
        partial(_unmask, scene)))  # fmt: skip


def _scores_of(scene: Scene, step: Step) -> str | None:
    """The scores whose shares, or whose gradients, a line reads."""
    read = scene.plan[step.inputs["x"]]
    if read.op == "softmax":
        return read.inputs["x"]
    if read.op == "softmax_back":
        return read.address.removeprefix(GRAD)
    return None


def _unmask(scene: Scene, draft: Draft, step: Step) -> None:
    at, scores = step.address, scene.plan[_scores_of(scene, step) or ""]
    raw = _seeing_all(draft, at, scores)
    inputs = {"x": raw, "seen": scores.address}
    shares = draft.write(at, "shares_without_mask", inputs, scores.axes, scores.shape)
    read = scene.plan[step.inputs["x"]]
    if read.op == "softmax_back":
        grads = _seeing_all(draft, at, scene.plan[read.inputs["grad"]])
        shares = draft.copy(at, read, weights=shares, grad=grads)
    draft.change(at, inputs={"x": shares})


def _seeing_all(draft: Draft, at: str, scores: Step) -> str:
    """Writes a copy of a line of scores in which nothing is masked; returns its address."""
    everything = np.ones(np.shape(scores.attributes["mask"]), dtype=bool)
    settings = {**scores.attributes, "mask": everything}
    return draft.write(at, "scores", scores.inputs, scores.axes, scores.shape, **settings)

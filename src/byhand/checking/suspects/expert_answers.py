"""Mistakes in what experts answer: their biases, the shares of their answers, whose weights."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from byhand.checking.suspects.mistakes import Mistake, made, reading, together_and_apart
from byhand.checking.suspects.routing import is_alone
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

MINUS = Fraction(-1)


def expert_answer_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the router's bias, in the experts' matrices or in their sum."""
    yield from _routers(scene)
    yield from _answers(scene)


def _routers(scene: Scene) -> Iterator[Edit]:
    change = _("take choice and shares from the softmax of the scores, their bias included")
    shares = [step for step in scene.of("expert_shares") if not is_alone(step)]
    yield from made(scene, shares,
        Mistake("experts-sigmoid",
                _("it follows if a share is the sigmoid of its score; the model says softmax"),
                change, _by_sigmoid, 1),
        Mistake("router-bias",
                _("it follows if the router's bias is left out of the shares"), change,
                partial(_without_bias, scene), 1),
    )  # fmt: skip
    yield from made(scene, scene.of("choose"), Mistake(
        "router-bias", _("it follows if the router's bias is left out of the choice"), change,
        partial(_without_bias, scene), 2))  # fmt: skip


def _without_bias(scene: Scene, draft: Draft, step: Step) -> None:
    """Makes the line read the router's scores without their bias."""
    router = scene.plan[step.inputs["x"]]
    if router.op == "linear" and "bias" in router.inputs:
        inputs = {role: read for role, read in router.inputs.items() if role != "bias"}
        bare = draft.write(
            step.address, router.op, inputs, router.axes, router.shape, **router.attributes
        )
        draft.change(step.address, inputs={"x": bare})


def _by_sigmoid(draft: Draft, step: Step) -> None:
    bent = draft.made_of(step.inputs["x"], "sigmoid", step.address)
    draft.change(
        step.address, op="multiply", inputs={"x": bent, "y": step.inputs["chosen"]}, only=True
    )


def _answers(scene: Scene) -> Iterator[Edit]:
    for steps, apart in together_and_apart(scene.of("combine")):
        yield from made(scene,
            steps,
            Mistake("experts-unweighted",
                    _("it follows if the answers are added up without their shares"),
                    _("multiply each answer by its share before the sum"),
                    partial(_by_choice, scene), 1),
            Mistake("experts-bias-whole",
                    _("it follows if the experts' output biases are added whole; in the model "
                      "they count by the shares"),
                    _("add the bias to an answer before it is multiplied by its share"),
                    partial(_whole_biases, scene), 1),
            unlikely=apart,
        )  # fmt: skip
    biased = [step for step in scene.of("expert_linear") if "bias" in step.inputs]
    for steps, apart in together_and_apart(biased):
        yield from made(scene, steps, Mistake(
            "bias-missing", _("it follows if the experts' bias is left out; the model adds one"),
            _("add the bias of each expert"), reading(bias=None)), unlikely=apart)  # fmt: skip
    every = scene.of("expert_linear")
    change = _("read the weights of expert e at place e")
    if every and every[0].shape[0] > 1:
        yield from made(scene, every,
            Mistake("experts-moved",
                    _("it follows if each expert has the weights of the next one"), change,
                    partial(_moved, by=1), 2),
            Mistake("experts-moved",
                    _("it follows if each expert has the weights of the one before"), change,
                    partial(_moved, by=-1), 2),
        )  # fmt: skip


def _by_choice(scene: Scene, draft: Draft, step: Step) -> None:
    shares = scene.plan[step.inputs["shares"]]
    draft.change(step.address, inputs={"shares": shares.inputs["chosen"]})


def _whole_biases(scene: Scene, draft: Draft, step: Step) -> None:
    answers = scene.plan[step.inputs["x"]]
    if "bias" not in answers.inputs:
        return
    at, axes, shape = step.address, step.axes, step.shape
    reads = {role: read for role, read in answers.inputs.items() if role != "bias"}
    bare = draft.write(at, answers.op, reads, *answers.sides, **answers.attributes)
    less = draft.made_of(bare, "scaled", at, factor=MINUS)
    biases = draft.write(at, "add", {"x": answers.address, "y": less}, *answers.sides)
    chosen = scene.plan[step.inputs["shares"]].inputs["chosen"]
    weighted = draft.write(at, "combine", {**step.inputs, "x": bare}, axes, shape)
    whole = draft.write(at, "combine", {"x": biases, "shares": chosen}, axes, shape)
    draft.change(at, op="add", inputs={"x": weighted, "y": whole}, only=True)


def _moved(draft: Draft, step: Step, *, by: int) -> None:
    count = step.shape[0]
    order = tuple((place + by) % count for place in range(count))
    for role in ("weight", "bias"):
        if role in step.inputs:
            draft.first(step.address, role, "taken", axis=0, order=order)

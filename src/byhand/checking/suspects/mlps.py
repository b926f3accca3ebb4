"""Mistakes inside an MLP: another activation, gate and up swapped or left out."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from byhand.checking.suspects.editing import Draft, Edit, Scene, together_and_apart
from byhand.checking.suspects.wording import activation
from byhand.language import _
from byhand.plan import Step

GELUS = ("gelu", "gelu_tanh", "gelu_quick")
KINDS = (*GELUS, "relu", "silu", "identity", "relu_squared")
QUICK = Fraction("1.702")


def mlp_suspects(scene: Scene) -> Iterator[Edit]:
    """Mistakes in the MLPs of the region."""
    yield from _activations(scene)
    yield from _gates(scene)


def _activations(scene: Scene) -> Iterator[Edit]:
    for steps, unlikely in together_and_apart(scene.of("activate")):
        own: str = steps[0].attributes["kind"]
        for kind in sorted(KINDS, key=lambda kind: (kind in GELUS) != (own in GELUS)):
            if kind == own:
                continue
            draft = scene.draft()
            for step in steps:
                activate_as(draft, step, kind)
            gelu = own in GELUS and kind in GELUS
            rare = kind in ("relu_squared",)
            said = _("it follows if the activation is {other}; the model says {own}")
            if kind == "identity":
                said = _("it follows if there is no activation; the model says {own}")
            elif own == "identity":
                said = _("it follows if the activation is {other}; the model has none")
            yield Edit(
                "gelu-kind" if gelu else "activation-kind",
                said.format(other=activation(kind), own=activation(own)),
                _("use {own}").format(own=_in_code(own)),
                draft.made(),
                unlikely + (0 if gelu else 1 + rare),
            )


def _in_code(kind: str) -> str:
    """The activation, and how torch says it where that is not plain."""
    said = {"gelu": " (approximate='none')", "gelu_tanh": " (approximate='tanh')"}
    return activation(kind) + said.get(kind, "")


def activate_as(draft: Draft, step: Step, kind: str) -> None:
    """The line with another activation, also one that no model of byhand's has."""
    at, x = step.address, step.inputs["x"]
    if kind == "gelu_quick":
        wide = draft.write(at, "scaled", {"x": x}, step.axes, step.shape, factor=QUICK)
        draft.change(at, inputs={"x": wide}, kind="silu")
        draft.then(at, "scaled", factor=1 / QUICK)
    elif kind == "relu_squared":
        bent = draft.write(at, "activate", {"x": x}, step.axes, step.shape, kind="relu")
        draft.change(at, op="multiply", inputs={"x": bent, "y": bent}, kind=None)
    elif kind == "identity":
        draft.keep(at, x)
    else:
        draft.change(at, kind=kind)


def _gates(scene: Scene) -> Iterator[Edit]:
    """(act(x·gate) * (x·up)): which is which."""
    ats = dict.fromkeys(step.address.rpartition(".")[0] for step in scene.region)
    gated = [at for at in ats if at.endswith(".mlp") and scene.has(f"{at}.gated")]
    acts = [at for at in gated if f"{at}.act" in scene.inside]
    ends = [at for at in gated if f"{at}.gated" in scene.inside]
    made = [
        at for at in gated
        if f"{at}.gate" in scene.inside or f"{at}.hidden" in scene.inside
    ]  # fmt: skip
    if not gated:
        return
    sentence = _("it follows if gate and up are swapped: act(up)·gate; the model says act(gate)·up")
    change = _("apply the activation to the gate projection and multiply by the up projection")
    if acts or ends:
        draft = scene.draft()
        for at in acts:
            draft.change(f"{at}.act", inputs={"x": f"{at}.hidden"})
        for at in ends:
            draft.change(f"{at}.gated", inputs={"y": f"{at}.gate"})
        yield Edit("gate-up-swapped", sentence, change, draft.made())
    elif made:
        draft = scene.draft()
        for at in made:
            _swap_matrices(scene, draft, at)
        yield Edit("gate-up-swapped", sentence, change, draft.made())
    if ends:
        draft = scene.draft()
        for at in ends:
            step = scene.plan[f"{at}.act"]
            bent = draft.copy(f"{at}.gated", step, x=f"{at}.hidden")
            draft.change(f"{at}.gated", inputs={"x": f"{at}.gate", "y": bent})
        yield Edit("gate-up-swapped", sentence, change, draft.made())
        for kind, keep, what, how in (
            ("gate-missing", "hidden", _("it follows if the gate is left out; the model says "
                                         "act(gate)·up"), _("multiply up by act(gate)")),
            ("up-missing", "act", _("it follows if the up projection is left out; the model says "
                                    "act(gate)·up"), _("multiply act(gate) by up")),
        ):  # fmt: skip
            draft = scene.draft()
            for at in ends:
                draft.keep(f"{at}.gated", f"{at}.{keep}")
            yield Edit(kind, what, how, draft.made(), 2)
        draft = scene.draft()
        for at in ends:
            draft.change(f"{at}.gated", op="add")
        yield Edit(
            "gate-added",
            _("it follows if act(gate) and up are added; the model multiplies them"),
            _("multiply act(gate) by up, entry by entry"),
            draft.made(),
            2,
        )
        draft = scene.draft()
        for at in ends:
            step = scene.plan[f"{at}.act"]
            both = draft.copy(f"{at}.gated", step, x=f"{at}.hidden")
            draft.change(f"{at}.gated", inputs={"y": both})
        yield Edit(
            "activation-on-both",
            _("it follows if the activation is applied to gate and up; the model bends the gate "
              "alone"),
            _("apply the activation to the gate only"),
            draft.made(),
            2,
        )  # fmt: skip


def _swap_matrices(scene: Scene, draft: Draft, at: str) -> None:
    gate, up = scene.plan[f"{at}.gate"], scene.plan[f"{at}.hidden"]
    for step, other in ((gate, up), (up, gate)):
        if step.address in scene.inside:
            inputs = {"weight": other.inputs["weight"], "bias": other.inputs.get("bias")}
            draft.change(step.address, inputs=inputs)

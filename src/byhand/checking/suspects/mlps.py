"""Mistakes inside an MLP: another activation, gate and up exchanged or left out."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from byhand.checking.suspects.mistakes import Mistake, made, together_and_apart
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

GELUS = ("gelu", "gelu_tanh", "gelu_quick")
KINDS = (*GELUS, "relu", "silu", "identity", "relu_squared")
QUICK = Fraction("1.702")


def mlp_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the MLPs of the region."""
    yield from _activations(scene)
    yield from _gates(scene)


def _activations(scene: Scene) -> Iterator[Edit]:
    for steps, unlikely in together_and_apart(scene.of("activate")):
        own: str = steps[0].attributes["kind"]
        for kind in sorted(KINDS, key=lambda kind: (kind in GELUS) != (own in GELUS)):
            if kind == own:
                continue
            gelu = own in GELUS and kind in GELUS
            said = _("it follows if the activation is {other}; the model says {own}")
            if kind == "identity":
                said = _("it follows if there is no activation; the model says {own}")
            elif own == "identity":
                said = _("it follows if the activation is {other}; the model has none")
            mistake = Mistake(
                "gelu-kind" if gelu else "activation-kind",
                said,
                _("use {own}").format(own=_in_code(own)),
                partial(_activate_as, kind=kind),
                0 if gelu else 1 + (kind == "relu_squared"),
            )
            words = {"other": named(kind), "own": named(own)}
            yield from made(scene, steps, mistake, unlikely=unlikely, **words)


def named(kind: str) -> str:
    """An activation by its usual name."""
    usual = {
        "relu": "ReLU",
        "silu": "SiLU",
        "gelu": _("GELU with erf"),
        "gelu_tanh": _("GELU with tanh"),
        "gelu_quick": _("quick GELU, x·σ(1.702·x)"),
        "quick_gelu": _("quick GELU, x·σ(1.702·x)"),
        "relu_squared": _("ReLU squared"),
        "identity": _("no activation"),
    }
    return usual.get(kind, kind)


def _in_code(kind: str) -> str:
    """The activation, with torch's spelling where that differs."""
    said = {"gelu": " (approximate='none')", "gelu_tanh": " (approximate='tanh')"}
    return named(kind) + said.get(kind, "")


def _activate_as(draft: Draft, step: Step, kind: str) -> None:
    """Gives the line another activation, even one that byhand's models do not have."""
    at, x = step.address, step.inputs["x"]
    if kind == "gelu_quick":
        draft.first(at, "x", "scaled", factor=QUICK)
        draft.change(at, kind="silu")
        draft.then(at, "scaled", factor=1 / QUICK)
    elif kind == "relu_squared":
        bent = draft.write(at, "activate", {"x": x}, step.axes, step.shape, kind="relu")
        draft.change(at, op="multiply", inputs={"x": bent, "y": bent}, kind=None)
    elif kind == "identity":
        draft.keep(at, x)
    else:
        draft.change(at, kind=kind)


def _gates(scene: Scene) -> Iterator[Edit]:
    """Edits that exchange or omit gate and up in act(x·gate) * (x·up)."""
    ats = dict.fromkeys(step.address.rpartition(".")[0] for step in scene.region)
    gated = [at for at in ats if at.endswith(".mlp") and scene.has(f"{at}.gated")]

    def opened(*names: str) -> list[str]:
        return [at for at in gated if any(f"{at}.{name}" in scene.inside for name in names)]

    swapped = partial(
        Mistake,
        "gate-up-swapped",
        _("it follows if gate and up are swapped: act(up)·gate; the model says act(gate)·up"),
        _("apply the activation to the gate projection and multiply by the up projection"),
    )
    if lines := opened("act", "gated"):
        yield from made(scene, lines, swapped(partial(_swap_lines, scene)))
    else:
        yield from made(scene, opened("gate", "hidden"), swapped(partial(_swap_matrices, scene)))
    yield from made(scene,
        opened("gated"),
        swapped(lambda draft, at: draft.change(
            f"{at}.gated", inputs={"x": f"{at}.gate", "y": _bent(scene, draft, at)})),
        Mistake("gate-missing",
                _("it follows if the gate is left out; the model says act(gate)·up"),
                _("multiply up by act(gate)"),
                lambda draft, at: draft.keep(f"{at}.gated", f"{at}.hidden"), 2),
        Mistake("up-missing",
                _("it follows if the up projection is left out; the model says act(gate)·up"),
                _("multiply act(gate) by up"),
                lambda draft, at: draft.keep(f"{at}.gated", f"{at}.act"), 2),
        Mistake("gate-added",
                _("it follows if act(gate) and up are added; the model multiplies them"),
                _("multiply act(gate) by up, entry by entry"),
                lambda draft, at: draft.change(f"{at}.gated", op="add"), 2),
        Mistake("activation-on-both",
                _("it follows if the activation is applied to gate and up; the model bends the "
                  "gate alone"),
                _("apply the activation to the gate only"),
                lambda draft, at: draft.change(
                    f"{at}.gated", inputs={"y": _bent(scene, draft, at)}), 2),
    )  # fmt: skip


def _bent(scene: Scene, draft: Draft, at: str) -> str:
    """Writes the activation of the up projection; returns its address."""
    return draft.copy(f"{at}.gated", scene.plan[f"{at}.act"], x=f"{at}.hidden")


def _swap_lines(scene: Scene, draft: Draft, at: str) -> None:
    if f"{at}.act" in scene.inside:
        draft.change(f"{at}.act", inputs={"x": f"{at}.hidden"})
    if f"{at}.gated" in scene.inside:
        draft.change(f"{at}.gated", inputs={"y": f"{at}.gate"})


def _swap_matrices(scene: Scene, draft: Draft, at: str) -> None:
    gate, up = scene.plan[f"{at}.gate"], scene.plan[f"{at}.hidden"]
    for step, other in ((gate, up), (up, gate)):
        if step.address in scene.inside:
            inputs = {"weight": other.inputs["weight"], "bias": other.inputs.get("bias")}
            draft.change(step.address, inputs=inputs)

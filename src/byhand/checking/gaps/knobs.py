"""Knobs: numbers of the plan that a mistake may have changed, each with the edit that sets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.checking.gaps.candidates import APART, parts_of
from byhand.checking.gaps.guesses import bend
from byhand.checking.suspects.curves import FAMILIES, Curve
from byhand.checking.suspects.norms import groups
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

Turn = Callable[[Draft, Step, Fraction], None]


SIGNLESS = ("limited", "soft-cap")  # kinds whose number has no sign


@dataclass(frozen=True)
class Knob:
    """One number at some steps; `own` is the model's, `other` the first one to try."""

    kind: str
    sentence: str  # with {value} and {at}
    change: str
    turn: Turn
    steps: tuple[Step, ...]
    own: float = 1.0
    other: float = 0.875
    grid: tuple[float, ...] = ()  # where the model has no such number: values to begin with
    logarithmic: bool = False  # positive, and right up to a factor
    unlikely: int = 0
    words: tuple[tuple[str, Any], ...] = ()

    def edit(self, scene: Scene, value: float, written: str | None = None) -> Edit:
        """The plan with this value, in all the steps."""
        draft = scene.draft()
        exact = Fraction(value).limit_denominator(10**12) if value else Fraction(0)
        for step in self.steps:
            self.turn(draft, step, exact)
        words = dict(self.words) | {"at": self._at(), "own": f"{self.own:.6g}"}
        shown = (written or f"{value:.6g}").lstrip("-−" if self.kind in SIGNLESS else "")
        if "family" in words:
            family = FAMILIES[words["family"]]
            words["curve"] = family.written.format(shown, *(f"{x:.6g}" for x in family.usual[1:]))
        return Edit(
            self.kind,
            self.sentence.format(value=shown, **words),
            self.change.format(value=shown, **words),
            draft.made(),
            self.unlikely,
            fitted=1,
        )

    def _at(self) -> str:
        first = self.steps[0].address
        if len(self.steps) == 1:
            return first
        return _("{address} and in the blocks after it").format(address=first)


def knobs(scene: Scene) -> Iterator[Knob]:
    """The numbers of a gap, each the same in all blocks."""
    yield from _factors(scene)
    yield from _biases(scene)
    yield from _settings(scene)
    yield from _bent(scene)
    yield from _attention(scene)
    yield from _heads(scene)


def knobs_apart(scene: Scene) -> Iterator[Knob]:
    """The same for each block alone, and outside of the blocks, where a gap spans several parts."""
    parts = parts_of(scene)
    for part in parts if len(parts) > 1 else ():
        for knob in knobs(part):
            yield replace(knob, unlikely=knob.unlikely + APART)


# ------------------------------------------------------------------------ factors


def _times(draft: Draft, step: Step, value: Fraction) -> None:
    draft.then(step.address, "scaled", factor=value)


def _times_input(role: str) -> Turn:
    return lambda draft, step, value: draft.first(step.address, role, "scaled", factor=value)


def _factors(scene: Scene) -> Iterator[Knob]:
    for name in ("attn", "mlp"):
        adds = tuple(step for step in scene.of("add") if step.address.endswith(f"{name}.add"))
        if not adds:
            continue
        told = (("name", f"{name}.out"),)
        yield Knob(
            "residual-factor",
            _("it follows if {name} is multiplied by {value} before it is added at {at}; the "
              "model adds it as it is"),
            _("look for a factor of {value} on {name}, or for one that is left out"),
            _times_input("y"), adds, words=told,
        )  # fmt: skip
        yield Knob(
            "residual-factor",
            _(
                "it follows if the residual stream is multiplied by {value} before {name} is "
                "added at {at}; the model adds to it as it is"
            ),
            _("look for a factor of {value} on the residual stream"),
            _times_input("x"), adds, words=told,
        )  # fmt: skip
    scaled = _("it follows if {at} is {value} times as large; the model takes it as it is")
    change = _("look for a factor of {value} at {at}, or for one that is left out there")
    for endings in (
        (".attn.scores",), (".attn.v",), (".attn.norm.out",),
        (".mlp.norm.out",), (".attn.norm.normalized",), (".mlp.norm.normalized",), (".mlp.hidden",),
        (".mlp.gate",), (".mlp.act",), ("embed.token",), ("embed.position",),
        ("final.norm.out",), ("logits",),
    ):  # fmt: skip
        steps = scene.named(*endings)
        if steps:
            yield Knob("factor", scaled, change, _times, steps)


def _biases(scene: Scene) -> Iterator[Knob]:
    """Biases that are added several times, in part or not at all."""
    names: dict[str, list[Step]] = {}
    for step in scene.region:
        if "bias" in step.inputs:
            name = step.address.split(".", 2)[-1] if scene.layer(step.address) is not None else ""
            names.setdefault(name or step.address, []).append(step)
    for steps in names.values():
        yield Knob(
            "bias-factor",
            _("it follows if the bias of {at} is multiplied by {value}; the model adds it once"),
            _("add the bias of {at} once, as it is"),
            _times_input("bias"), tuple(steps),
        )  # fmt: skip


# ------------------------------------------------------------------------ settings


def _settings(scene: Scene) -> Iterator[Knob]:
    norms = groups(scene)
    rooted = [each for each in norms if each.root in each.open]
    for chosen in _alike([each.lines[each.root] for each in rooted], "eps"):
        own = float(chosen[0].attributes["eps"])
        yield Knob(
            "eps-value",
            _("it follows if eps is {value}; the model says {own}"),
            _("use eps {own} in this norm"),
            lambda draft, step, value: draft.change(step.address, eps=value),
            chosen, own or 1e-6, (own or 1e-6) * 4, logarithmic=True,
        )  # fmt: skip
    for chosen in _alike(scene.of("rotate"), "base"):
        base = float(chosen[0].attributes["base"])
        yield Knob(
            "rope-base",
            _("it follows if the base of RoPE is {value}; the model says {own}"),
            _("use base {own} for the frequencies"),
            lambda draft, step, value: draft.change(step.address, base=value),
            chosen, base, grid=(base * 1.5, base / 10, base * 10), logarithmic=True,
        )  # fmt: skip
        yield Knob(
            "rope-positions",
            _("it follows if positions are multiplied by {value} before RoPE; the model takes them "
              "as they are"),
            _("look for a scaling of positions (linear interpolation, a scaling factor)"),
            _scaled_positions, chosen, 1.0, grid=(0.97, 0.5, 0.25, 2.0),
        )  # fmt: skip


def _scaled_positions(draft: Draft, step: Step, value: Fraction) -> None:
    places = tuple(float(value) * place for place in step.attributes["positions"])
    draft.change(step.address, positions=places)


def _alike(steps: Sequence[Step], setting: str) -> Iterator[tuple[Step, ...]]:
    """The steps whose setting is the same, together."""
    found: dict[Any, list[Step]] = {}
    for step in steps:
        found.setdefault(step.attributes[setting], []).append(step)
    yield from map(tuple, found.values())


# ------------------------------------------------------------------------ functions


def _bent(scene: Scene) -> Iterator[Knob]:
    """Activations with another constant, and results that are capped or limited."""
    steps = scene.of("activate")
    for family, grid in (
        ("swish", (1.0, 1.702)), ("gelu_erf", (0.7071, 1.0)), ("leaky", (0.01, 0.2)),
        ("elu", (1.0, 0.5)), ("gelu_tanh", (0.7979, 0.9)),
    ):  # fmt: skip
        if steps:
            yield Knob(
                "curve", _("it follows if the activation is {curve}; the model says {kind}"),
                _("use {kind}, with its own constants"), _curve(family), steps, grid=grid,
                words=(("family", family), ("kind", steps[0].attributes["kind"])),
            )  # fmt: skip
    for ending, grid in (
        (".mlp.act", (1.0, 4.0)), (".norm.normalized", (2.0, 3.0)), ("logits", (4.0, 30.0)),
        (".mlp.out", (0.5, 2.0)), (".attn.out", (0.5, 2.0)), (".attn.scores", (5.0, 30.0)),
    ):  # fmt: skip
        at = scene.named(ending)
        if not at:
            continue
        yield Knob(
            "limited", _("it follows if {at} is clipped to ±{value}; the model does not"),
            _("look for a clamp at {at}"), _limit, at, grid=grid,
        )  # fmt: skip
        yield Knob(
            "soft-cap",
            _("it follows if {at} is capped, {value}·tanh(x/{value}); the model does not"),
            _("look for a soft cap at {at}"), _cap, at, grid=grid,
        )  # fmt: skip


def _curve(family: str) -> Turn:
    def turn(draft: Draft, step: Step, value: Fraction) -> None:
        usual = FAMILIES[family].usual
        bend(draft, step, curve=Curve(family, (float(value), *usual[1:])))

    return turn


def _limit(draft: Draft, step: Step, value: Fraction) -> None:
    draft.then(step.address, "limited", low=-abs(float(value)), high=abs(float(value)))


def _cap(draft: Draft, step: Step, value: Fraction) -> None:
    draft.then(step.address, "softcapped", cap=float(value) or 1.0)


def _attention(scene: Scene) -> Iterator[Knob]:
    """A slope with distance in the scores, and a sink in softmax."""
    scores = tuple(step for step in scene.of("scores") if "slopes" not in step.inputs)
    if scores:
        yield Knob(
            "distance-slope",
            _("it follows if {value} × the distance is added to the scores at {at}; the model adds "
              "nothing"),
            _("look for a bias by distance in the scores"), _slope, scores, 0.0, -0.05,
        )  # fmt: skip
    softmaxes = tuple(step for step in scene.of("softmax") if step.address.endswith(".weights"))
    if softmaxes:
        yield Knob(
            "softmax-sink",
            _("it follows if softmax has one more score, {value}, whose share is thrown away; the "
              "model has none"),
            _("leave the extra term out of softmax"), _sink, softmaxes, grid=(0.0, 1.0),
        )  # fmt: skip
    for ending in (".std", ".rms"):
        roots = scene.named(f".norm{ending}")
        if roots:
            yield Knob(
                "factor",
                _("it follows if {at} is {value} times as large; the model takes it as it is"),
                _("look for a factor of {value} at {at}, or for one that is left out there"),
                _times, roots,
            )  # fmt: skip


def _slope(draft: Draft, step: Step, value: Fraction) -> None:
    places = (np.asarray(step.attributes[name]) for name in ("queries", "keys"))
    distance = np.abs(np.subtract.outer(*places))
    draft.then(step.address, "plus_terms", terms=float(value) * distance)


def _sink(draft: Draft, step: Step, value: Fraction) -> None:
    extra = np.full((step.shape[0], 1, 1), float(value))
    draft.change(step.address, op="softmax_with", extra=extra)


# ------------------------------------------------------------------------ heads


def _heads(scene: Scene) -> Iterator[Knob]:
    for steps, change in ((scene.of("mix"), _("look for what happens to head {head} alone")),
                          (scene.of("scores"), _("look at the scale of head {head}"))):  # fmt: skip
        for head in range(steps[0].shape[0] if steps else 0):
            yield Knob(
                "head-factor",
                _("it follows if head {head} of {at} is multiplied by {value}; the model takes all "
                  "heads as they are"),
                change, _one_head(head), steps, unlikely=1, words=(("head", head),),
            )  # fmt: skip


def _one_head(head: int) -> Turn:
    def turn(draft: Draft, step: Step, value: Fraction) -> None:
        factors = np.ones(step.shape)
        factors[head] = float(value)
        draft.then(step.address, "times_each", factors=factors)

    return turn

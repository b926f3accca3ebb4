"""Mistakes in RoPE: pairing, base, positions, direction, width, and what it is applied to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from byhand.checking.suspects.mistakes import number
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

BASES = tuple(map(Fraction, (10_000, 500_000, 1_000_000, 1_000, 100_000)))
Turn = Callable[[Draft, Step], None]


def rotary_suspects(scene: Scene) -> Iterator[Edit]:
    """Mistakes in the rotations of the region, and rotations that are missing or too many."""
    every = scene.of("rotate")
    if every:
        yield from _settings(scene, every)
    yield from _unrotated(scene)
    yield from _values_rotated(scene)


def _for_all_or_one(
    scene: Scene, every: tuple[Step, ...], turn: Turn
) -> Iterator[tuple[Draft, int]]:
    """The mistake in q and k, then in q alone and in k alone where both are open."""
    sides = [tuple(s for s in every if s.address.endswith(f".{x}_rotated")) for x in ("q", "k")]
    choices = [every, *sides] if all(sides) else [every]
    for place, steps in enumerate(choices):
        draft = scene.draft()
        for step in steps:
            turn(draft, step)
        yield draft, 2 * (place > 0)


def _settings(scene: Scene, every: tuple[Step, ...]) -> Iterator[Edit]:
    first = every[0].attributes
    width, d_head = first["width"], every[0].shape[-1]
    for kind, turn, sentence, change, unlikely in _wrong_settings(scene, every[0]):
        for draft, apart in _for_all_or_one(scene, every, turn):
            yield Edit(kind, sentence, change, draft.made(), unlikely + apart)
    if width < d_head:
        draft = scene.draft()
        for step in every:
            _rotate_last(draft, step)
        yield Edit(
            "rope-part",
            _("it follows if RoPE turns the last {width} entries of a head; the model turns the "
              "first {width} of {d_head}").format(width=width, d_head=d_head),
            _("rotate the first {width} entries of each head and pass the others through").format(
                width=width
            ),
            draft.made(),
        )  # fmt: skip


def _wrong_settings(scene: Scene, step: Step) -> Iterator[tuple[str, Turn, str, str, int]]:
    own = step.attributes
    names = {"half": _("halves (i, i + width/2)"), "interleaved": _("neighbours (2i, 2i + 1)")}
    other = "interleaved" if own["pairing"] == "half" else "half"

    def setting(**attributes: Any) -> Turn:
        return lambda draft, each: draft.change(each.address, **attributes)

    yield (
        "rope-pairing", setting(pairing=other),
        _("it follows if RoPE pairs {other}; the model pairs {own}").format(
            other=names[other], own=names[own["pairing"]]),
        _("pair {own}, or load the weights in the order that goes with your pairing").format(
            own=names[own["pairing"]]), 0,
    )  # fmt: skip
    if "frequencies" in step.inputs:
        yield (
            "rope-scaling", lambda draft, each: draft.change(
                each.address, inputs={"frequencies": None}),
            _("it follows if the scaling of the RoPE frequencies is left out; the model scales "
              "them"),
            _("apply rope_scaling to the frequencies"), 0,
        )  # fmt: skip
    else:
        for place, base in enumerate(BASES):
            yield (
                "rope-base", setting(base=base),
                _("it follows if the base of RoPE is {other}; the model says {own}").format(
                    other=number(base), own=number(own["base"])),
                _("use rope_theta {own}").format(own=number(own["base"])), int(place > 2),
            )  # fmt: skip
    yield from _wrong_positions(scene, own["positions"])

    def backwards(draft: Draft, each: Step) -> None:
        turned = tuple(-place for place in each.attributes["positions"])
        draft.change(each.address, positions=turned)

    yield (
        "rope-direction", backwards,
        _("it follows if RoPE turns the other way (sin with the other sign); the model says "
          "(a·cos - b·sin, a·sin + b·cos)"),
        _("turn (a, b) into (a·cos - b·sin, a·sin + b·cos)"), 0,
    )  # fmt: skip
    yield from _wrong_widths(step)


def _wrong_positions(
    scene: Scene, positions: tuple[int, ...]
) -> Iterator[tuple[str, Turn, str, str, int]]:
    def moved(by: int) -> Turn:
        places = tuple(place + by for place in positions)
        return lambda draft, each: draft.change(each.address, positions=places)

    change = _("count positions from {first}").format(first=positions[0])
    for by in (1, -1):
        yield (
            "rope-offset", moved(by),
            _("it follows if RoPE counts positions from {other}; the model counts from {own}"
              ).format(other=positions[0] + by, own=positions[0]), change, 0,
        )  # fmt: skip
    before = scene.context.padding[0]
    if before > 1:
        yield (
            "padding-positions", moved(before),
            _("it follows if the {count} positions of padding are counted; the model counts the "
              "text from {own}").format(count=before, own=positions[0]),
            _("take position ids from the attention mask, not from the row"), 0,
        )  # fmt: skip
    if len(positions) > 1:
        turned = tuple(reversed(positions))
        yield (
            "rope-offset", lambda draft, each: draft.change(each.address, positions=turned),
            _("it follows if positions count backwards; the model counts from {own}").format(
                own=positions[0]), change, 3,
        )  # fmt: skip


def _wrong_widths(step: Step) -> Iterator[tuple[str, Turn, str, str, int]]:
    own, d_head = step.attributes["width"], step.shape[-1]
    given = "frequencies" in step.inputs
    change = _("rotate the first {width} entries of each head").format(width=own)
    widths = () if given else dict.fromkeys((d_head, d_head // 2, d_head // 4, own // 2))
    for width in widths:
        if width >= 2 and width % 2 == 0 and width != own:
            yield (
                "rope-part",
                _of_width(width),
                _("it follows if RoPE turns the first {other} entries of a head; the model turns "
                  "{own} of {d_head}").format(other=width, own=own, d_head=d_head), change, 0,
            )  # fmt: skip
    if own < d_head and not given:
        # base^(-2i/d_head) is (base^(own/d_head))^(-2i/own): only the base changes.
        base = Fraction(float(step.attributes["base"]) ** (own / d_head))
        yield (
            "rope-base", lambda draft, each: draft.change(each.address, base=base),
            _("it follows if the frequencies are base^(-2i/{d_head}), over the whole head; the "
              "model says base^(-2i/{own})").format(d_head=d_head, own=own),
            _("divide the exponent by the rotated width {own}").format(own=own), 1,
        )  # fmt: skip


def _of_width(width: int) -> Turn:
    return lambda draft, each: draft.change(each.address, width=width)


def _rotate_last(draft: Draft, step: Step) -> None:
    width, d_head = step.attributes["width"], step.shape[-1]
    at, axis = step.address, len(step.shape) - 1
    last = draft.write(
        at, "part", {"x": step.inputs["x"]}, step.axes, (*step.shape[:-1], width),
        axis=axis, start=d_head - width, stop=d_head,
    )  # fmt: skip
    inputs = {**step.inputs, "x": last}
    shape = (*step.shape[:-1], width)
    turned = draft.write(at, "rotate", inputs, step.axes, shape, **step.attributes)
    draft.change(
        at, op="pieced", inputs={"x": step.inputs["x"], "y": turned}, only=True,
        axis=axis, start=d_head - width,
    )  # fmt: skip


def _unrotated(scene: Scene) -> Iterator[Edit]:
    """RoPE left out, of q, of k or of both."""
    scored = scene.of("scores")
    for sides in (("q", "k"), ("q",), ("k",)):
        draft = scene.draft()
        left: dict[str, None] = {}
        for step in scored:
            for side in sides:
                at = f"{step.address.removesuffix('scores')}{side}_rotated"
                if scene.has(at) and step.inputs[side] == at:
                    left[side] = None
                    draft.change(step.address, inputs={side: scene.plan[at].inputs["x"]})
        for step in scene.of("rotate"):
            side = step.address.removesuffix("_rotated")[-1]
            if side in sides:
                left[side] = None
                draft.keep(step.address, step.inputs["x"])
        if left:
            yield Edit(
                "rope-missing",
                _("it follows if RoPE is not applied to {sides}; the model rotates q and k").format(
                    sides=", ".join(left)
                ),
                _("apply RoPE to q and k"),
                draft.made(),
                int(len(sides) == 1),
            )


def _values_rotated(scene: Scene) -> Iterator[Edit]:
    """RoPE applied to v as to k: where v is written, or where it is mixed."""
    sentence = _("it follows if RoPE is applied to v as well; the model rotates q and k alone")
    change = _("leave v as it is")
    values = [step for step in scene.named(".attn.v") if _turning(scene, step)]
    if values:
        draft = scene.draft()
        for step in values:
            turning = _turning(scene, step)
            assert turning is not None
            before = draft.aside(step.address)
            draft.change(
                step.address, op="rotate", inputs={**turning.inputs, "x": before}, only=True,
                **turning.attributes,
            )  # fmt: skip
        yield Edit("rope-on-v", sentence, change, draft.made())
        return
    mixed = [
        (step, turning) for step in scene.of("mix")
        if (turning := _turning(scene, step)) and step.inputs["v"].endswith(".v")
    ]  # fmt: skip
    if mixed:
        draft = scene.draft()
        for step, turning in mixed:
            turned = draft.copy(step.address, turning, x=step.inputs["v"])
            draft.change(step.address, inputs={"v": turned})
        yield Edit("rope-on-v", sentence, change, draft.made())


def _turning(scene: Scene, step: Step) -> Step | None:
    """The rotation of k beside a line of the same attention."""
    at = step.address.rpartition(".")[0] + ".k_rotated"
    return scene.plan[at] if scene.has(at) else None

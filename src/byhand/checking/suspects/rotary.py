"""Mistakes in RoPE: pairing, base, positions, direction, width, and its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from byhand.checking.suspects.mistakes import (
    Mistake,
    Wrong,
    made,
    number,
    padding_counted,
    reading,
    setting,
)
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import WEIGHT, Step

BASES = tuple(map(Fraction, (10_000, 500_000, 1_000_000, 1_000, 100_000)))


def rotary_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with a mistake in the rotations of the region, and with missing or extra ones."""
    every = scene.of("rotate")
    if every:
        yield from _settings(scene, every)
    yield from _unrotated(scene)
    yield from _values_rotated(scene)


def _settings(scene: Scene, every: tuple[Step, ...]) -> Iterator[Edit]:
    """Edits with each mistake in q and k, then in one of them if the region has both."""
    sides = [tuple(s for s in every if s.address.endswith(f".{x}_rotated")) for x in ("q", "k")]
    for mistake in _wrong_settings(scene, every[0]):
        yield from made(scene, every, mistake)
        for side in sides if all(sides) else ():
            yield from made(scene, side, mistake, unlikely=2)
    width, d_head = every[0].attributes["width"], every[0].shape[-1]
    if width < d_head:
        yield from made(scene, every, Mistake(
            "rope-part",
            _("it follows if RoPE turns the last {width} entries of a head; the model turns the "
              "first {width} of {d_head}").format(width=width, d_head=d_head),
            _("rotate the first {width} entries of each head and pass the others through").format(
                width=width),
            _rotate_last))  # fmt: skip


def _wrong_settings(scene: Scene, step: Step) -> Iterator[Mistake[Step]]:
    own = step.attributes
    names = {"half": _("halves (i, i + width/2)"), "interleaved": _("neighbours (2i, 2i + 1)")}
    other = "interleaved" if own["pairing"] == "half" else "half"
    yield Mistake(
        "rope-pairing",
        _("it follows if RoPE pairs {other}; the model pairs {own}").format(
            other=names[other], own=names[own["pairing"]]),
        _("pair {own}, or load the weights in the order that goes with your pairing").format(
            own=names[own["pairing"]]),
        setting(pairing=other))  # fmt: skip
    if "frequencies" in step.inputs:
        yield Mistake(
            "rope-scaling",
            _("it follows if the scaling of the RoPE frequencies is left out; the model scales "
              "them"),
            _("apply rope_scaling to the frequencies"), reading(frequencies=None))  # fmt: skip
    else:
        for place, base in enumerate(BASES):
            yield Mistake(
                "rope-base",
                _("it follows if the base of RoPE is {other}; the model says {own}").format(
                    other=number(base), own=number(own["base"])),
                _("use rope_theta {own}").format(own=number(own["base"])),
                setting(base=base), int(place > 2))  # fmt: skip
    yield from _wrong_positions(scene, own["positions"])
    yield Mistake(
        "rope-direction",
        _("it follows if RoPE turns the other way (sin with the other sign); the model says "
          "(a·cos - b·sin, a·sin + b·cos)"),
        _("turn (a, b) into (a·cos - b·sin, a·sin + b·cos)"),
        lambda draft, each: draft.change(
            each.address, positions=tuple(-place for place in each.attributes["positions"])),
    )  # fmt: skip
    yield from _wrong_widths(step)


def _wrong_positions(scene: Scene, positions: tuple[int, ...]) -> Iterator[Mistake[Step]]:
    start, before = positions[0], scene.context.padding[0]

    def moved(by: int) -> Wrong:
        return setting(positions=tuple(place + by for place in positions))

    change = _("count positions from {first}").format(first=start)
    for by in (1, -1):
        yield Mistake(
            "rope-offset",
            _("it follows if RoPE counts positions from {other}; the model counts from {own}"
              ).format(other=start + by, own=start), change, moved(by))  # fmt: skip
    if before > 1:
        yield padding_counted(before, start, moved(before))
    if len(positions) > 1:
        yield Mistake(
            "rope-offset",
            _("it follows if positions count backwards; the model counts from {own}").format(
                own=start), change, setting(positions=positions[::-1]), 3)  # fmt: skip


def _wrong_widths(step: Step) -> Iterator[Mistake[Step]]:
    own, d_head = step.attributes["width"], step.shape[-1]
    if "frequencies" in step.inputs:
        return
    change = _("rotate the first {width} entries of each head").format(width=own)
    for width in dict.fromkeys((d_head, d_head // 2, d_head // 4, own // 2)):
        if width >= 2 and width % 2 == 0 and width != own:
            yield Mistake(
                "rope-part",
                _("it follows if RoPE turns the first {other} entries of a head; the model turns "
                  "{own} of {d_head}").format(other=width, own=own, d_head=d_head),
                change, setting(width=width))  # fmt: skip
    if own < d_head:
        # base^(-2i/d_head) is (base^(own/d_head))^(-2i/own): only the base changes.
        base = Fraction(float(step.attributes["base"]) ** (own / d_head))
        yield Mistake(
            "rope-base",
            _("it follows if the frequencies are base^(-2i/{d_head}), over the whole head; the "
              "model says base^(-2i/{own})").format(d_head=d_head, own=own),
            _("divide the exponent by the rotated width {own}").format(own=own),
            setting(base=base), 1)  # fmt: skip


def _rotate_last(draft: Draft, step: Step) -> None:
    """Moves the last entries of a head to the front, rotates them, and moves them back."""
    width, d_head, axis = step.attributes["width"], step.shape[-1], len(step.shape) - 1
    order = (*range(d_head - width, d_head), *range(d_head - width))
    draft.first(step.address, "x", "taken", axis=axis, order=order)
    back = tuple(map(order.index, range(d_head)))
    draft.then(step.address, "taken", axis=axis, order=back)


def _unrotated(scene: Scene) -> Iterator[Edit]:
    """Edits without RoPE for q, for k or for both."""
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
    """Edits that apply RoPE to v as to k: where v is claimed, or where it is mixed."""
    mistake = partial(
        Mistake,
        "rope-on-v",
        _("it follows if RoPE is applied to v as well; the model rotates q and k alone"),
        _("leave v as it is"),
    )

    def rotate_after(draft: Draft, line: tuple[Step, Step]) -> None:
        step, turning = line
        inputs = {**turning.inputs, "x": draft.aside(step.address)}
        angles = turning.inputs.get("frequencies", WEIGHT)
        if not angles.startswith(WEIGHT):  # a line of its own, which may stand below
            draft.sooner(angles, before=step.address)
        draft.change(step.address, op="rotate", inputs=inputs, only=True, **turning.attributes)

    def rotate_before(draft: Draft, line: tuple[Step, Step]) -> None:
        step, turning = line
        turned = draft.copy(step.address, turning, x=step.inputs["v"])
        draft.change(step.address, inputs={"v": turned})

    values = [(step, turn) for step in scene.named(".attn.v") if (turn := _turning(scene, step))]
    if values:
        yield from made(scene, values, mistake(rotate_after))
        return
    mixed = [
        (step, turn) for step in scene.of("mix")
        if step.inputs["v"].endswith(".v")
        and (turn := _turning(scene, scene.plan[step.inputs["v"]]))
    ]  # fmt: skip
    yield from made(scene, mixed, mistake(rotate_before))


def _turning(scene: Scene, step: Step) -> Step | None:
    """The rotation of k in the same attention as a line; None if there is none."""
    at = step.address.rpartition(".")[0] + ".k_rotated"
    if not scene.has(at):
        return None
    turning = scene.plan[at]
    fits = step.shape[-1] >= turning.attributes["width"]
    return turning if fits and step.shape[:2] == turning.shape[:2] else None

"""Guesses inside attention: what its readers would see, if its steps were claimed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.mistakes import Mistake, Wrong, made, setting, then
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.numbers.floats.angles import frequencies_of
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import constant
from byhand.plan import Step

Floats = npt.NDArray[np.float64]
MOST_HEADS = 16  # up to so many heads, each may be the only wrong one
SLOWED = (8, 4, 32)  # factors of rope_scaling
LOWERED = (-5.0, -10.0, -1.0)  # what a weak mask adds
GUESSED = 1  # how unlikely a guess is, beside what people are known to do


def attention_guesses(scene: Scene, start: int | None) -> Iterator[Edit]:
    """Mistakes at unclaimed steps of attention; `start` is the first position that differs."""
    yield from _old_rows(scene, start)
    yield from _means(scene)
    yield from _unscaled_heads(scene)
    yield from _softmaxes(scene)
    yield from _key_heads(scene)
    every = [step for step in scene.of("rotate") if "frequencies" not in step.inputs]
    if every:
        yield from _pairs(scene, every)
        yield from _rates(scene, every)


def _sides(scene: Scene) -> Iterator[tuple[str, list[Step]]]:
    """The keys and values of the region, as scores and mixes read them."""
    inside = {step.address: step for step in scene.region}
    for name, op, role in (("k", "scores", "k"), ("v", "mix", "v")):
        read = [step.inputs[role] for step in scene.of(op)]
        steps = [inside[address] for address in read if address in inside]
        if steps and all(len(step.shape) == 3 for step in steps):
            yield name, steps


def _old_rows(scene: Scene, start: int | None) -> Iterator[Edit]:
    """A row of keys or values that is an older one, or was never written."""
    sides = list(_sides(scene)) if start else []
    if len(sides) == 2:
        sides.append(("k and v", [step for _name, steps in sides for step in steps]))
    for name, steps in sides:
        count = steps[0].shape[1]
        if start is None or not 0 < start < count:
            continue
        for words, source in (
            (_("position {n} of {name} is that of position {m}"), start - 1),
            (_("position {n} of {name} is zeros"), -1),
        ):
            said = words.format(n=start, m=start - 1, name=name)

            def make(draft: Draft, step: Step, source: int = source) -> None:
                order = np.arange(step.shape[0] * step.shape[1]).reshape(step.shape[:2])
                order[:, start] = order[:, source] if source >= 0 else -1
                draft.then(step.address, "rows_taken", order=order)

            yield from made(scene, steps, Mistake(
                "old-row", _("it follows if {said}; the model reads each position's own"),
                _("look for an old slot of the cache"), make, GUESSED), said=said)  # fmt: skip


def _means(scene: Scene) -> Iterator[Edit]:
    """The mean over heads in place of each head."""
    for ending in (".attn.v", ".attn.k", ".attn.q", ".attn.weights"):
        steps = [step for step in scene.named(ending) if len(step.shape) == 3 and step.shape[0] > 1]
        yield from made(scene, steps, Mistake(
            "averaged",
            _("it follows if {name} is the mean over the heads; the model gives each head its own"),
            _("look for a mean over heads"), then("head_mean"), GUESSED,
        ), name=ending.removeprefix(".attn."))  # fmt: skip


def _unscaled_heads(scene: Scene) -> Iterator[Edit]:
    steps = scene.of("scores")
    scale = steps[0].attributes.get("scale") if steps else None
    if scale is None or not 1 < steps[0].shape[0] <= MOST_HEADS:
        return
    times = 1 / float(constant(scale, FORMATS["float64"]))
    for head in range(steps[0].shape[0]):
        factors = np.ones((steps[0].shape[0], 1, 1))
        factors[head] = times
        yield from made(scene, steps, Mistake(
            "scale-missing",
            _("it follows if the scores of head {head} are not scaled; the model scales all heads"),
            _("scale the scores of every head"), then("weighed", factors=factors), GUESSED + 1,
        ), head=head)  # fmt: skip


def _softmaxes(scene: Scene) -> Iterator[Edit]:
    """Exponentials without their sum, and masked scores that are lowered only a little."""
    steps = [step for step in scene.of("softmax") if step.address.endswith(".weights")]
    for shifted in (True, False):
        yield from made(scene, steps, Mistake(
            "not-normalised",
            _("it follows if the exponentials of the scores are not divided by their sum; the "
              "model's weights add up to 1"),
            _("divide the exponentials of a row by their sum"),
            setting(op="exponentials", shifted=shifted), GUESSED))  # fmt: skip
    masked = [step for step in scene.of("scores")
              if not all(map(all, step.attributes["mask"]))]  # fmt: skip
    for by in LOWERED:

        def lower(draft: Draft, step: Step, by: float = by) -> None:
            own = np.asarray(step.attributes["mask"], dtype=bool)
            draft.change(step.address, mask=tuple((True,) * len(row) for row in own))
            draft.then(step.address, "plus_terms", terms=np.where(own, 0.0, by))

        yield from made(scene, masked, Mistake(
            "weak-mask",
            _("it follows if masked scores are changed by {by} only; in the model they are -∞"),
            _("set masked scores to -inf before the softmax"), lower, GUESSED,
        ), by=f"{by:g}")  # fmt: skip


def _key_heads(scene: Scene) -> Iterator[Edit]:
    """Key and value heads that other query heads read."""
    steps = (*scene.of("scores"), *scene.of("mix"))
    if not steps or scene.layer(steps[0].address) is None:
        return
    attn = scene.attention(steps[0].address)
    shared, group = attn.kv_heads, attn.heads // attn.kv_heads
    if shared == 1:
        return
    own = [head // group for head in range(attn.heads)]
    for said, order in (
        (_("every head reads head 0 of k and v"), [0] * attn.heads),
        (_("the heads read those of k and v in reverse"), [shared - 1 - head for head in own]),
        (_("the heads read those of k and v one further"), [(head + 1) % shared for head in own]),
    ):

        def read(draft: Draft, step: Step, order: Sequence[int] = tuple(order)) -> None:
            draft.first(step.address, "k" if step.op == "scores" else "v", "taken", axis=0,
                        order=order)  # fmt: skip

        yield from made(scene, steps, Mistake(
            "kv-heads", _("it follows if {said}; the model shares each with {each} heads"),
            _("look for how key and value heads are repeated"), read, GUESSED,
        ), said=said, each=group)  # fmt: skip


# ------------------------------------------------------------------------ rotations


def _turned(read: str, write: str, way: str) -> Wrong:
    """A change: pairs found and turned in another way."""

    def make(draft: Draft, step: Step) -> None:
        width = step.attributes["width"]
        rates = frequencies_of(step.attributes["base"], width)
        angles = np.multiply.outer(np.asarray(step.attributes["positions"], dtype=float), rates)
        cos, sin = np.cos(angles), np.sin(angles)
        tables = {"usual": (cos, -sin, sin, cos), "swapped": (sin, -cos, cos, sin),
                  "mirror": (cos, sin, sin, -cos), "plus": (cos, sin, sin, cos)}[way]  # fmt: skip
        draft.change(step.address, op="turned_by", inputs={"x": step.inputs["x"]}, only=True,
                     tables=np.stack(tables), angles=angles, read=_entries(read, width),
                     write=_entries(write, width))  # fmt: skip

    return make


def _entries(pairing: str, width: int) -> tuple[Sequence[int], Sequence[int]]:
    """The first and second entries of the pairs."""
    half = width // 2
    return {"half": (range(half), range(half, width)),
            "interleaved": (range(0, width, 2), range(1, width, 2)),
            "mirrored": (range(half), range(width - 1, half - 1, -1))}[pairing]  # fmt: skip


def _pairs(scene: Scene, every: Sequence[Step]) -> Iterator[Edit]:
    """Pairs of other entries, or turned by another formula."""
    own = every[0].attributes["pairing"]
    other = "interleaved" if own == "half" else "half"
    for said, read, write, way in (
        (_("entry i is paired with entry width - 1 - i"), "mirrored", "mirrored", "usual"),
        (_("pairs are read in one way and written in another"), other, own, "usual"),
        (_("pairs are written in one way and read in another"), own, other, "usual"),
        (_("cos and sin are exchanged"), own, own, "swapped"),
        (_("a pair (a, b) becomes (a·cos + b·sin, a·sin + b·cos)"), own, own, "plus"),
    ):
        yield from made(scene, every, Mistake(
            "rope-guessed", _("it follows if {said} in RoPE; the model turns pairs of {own}"),
            _("look at how RoPE pairs entries"), _turned(read, write, way), GUESSED,
        ), said=said, own=own)  # fmt: skip


def _rates(scene: Scene, every: Sequence[Step]) -> Iterator[Edit]:
    """Positions or rates scaled as for longer texts."""
    width, base = every[0].attributes["width"], every[0].attributes["base"]
    places = every[0].attributes["positions"]
    for factor in (2, 4, 8):
        scaled = tuple(Fraction(place, factor) for place in places)
        yield from made(scene, every, Mistake(
            "rope-scaling",
            _("it follows if positions are divided by {factor}; the model takes them as they are"),
            _("leave out the scaling of positions"), setting(positions=scaled), GUESSED,
        ), factor=factor)  # fmt: skip
        if width > 2:
            larger = Fraction(float(base) * factor ** (width / (width - 2)))
            yield from made(scene, every, Mistake(
                "rope-scaling",
                _("it follows if the base of RoPE is {base:.6g} (NTK scaling by {factor}); the "
                  "model says {own}"),
                _("leave out the scaling of the base"), setting(base=larger), GUESSED,
            ), factor=factor, base=float(larger), own=float(base))  # fmt: skip
    for start in range(1, width // 2):
        for factor in (*SLOWED, 0):

            def slow(draft: Draft, step: Step, start: int = start, factor: int = factor) -> None:
                rates = frequencies_of(base, width)
                rates[start:] *= 1 / factor if factor else 0.0
                angles = np.multiply.outer(np.asarray(places, dtype=float), rates)
                cos, sin = np.cos(angles), np.sin(angles)
                pairs = _entries(step.attributes["pairing"], width)
                draft.change(step.address, op="turned_by", inputs={"x": step.inputs["x"]},
                             only=True, tables=np.stack((cos, -sin, sin, cos)), angles=angles,
                             read=pairs, write=pairs)  # fmt: skip

            said = _("it follows if the pairs from {start} on turn {factor} times slower; the "
                     "model turns each at its own rate")  # fmt: skip
            if not factor:
                said = _("it follows if the pairs from {start} on are not turned; the model turns "
                         "each at its own rate")  # fmt: skip
            yield from made(scene, every, Mistake(
                "rope-scaling", said, _("look for a scaling of the frequencies (rope_scaling)"),
                slow, GUESSED + 1), start=start, factor=factor)  # fmt: skip

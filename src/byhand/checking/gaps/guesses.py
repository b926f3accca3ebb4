"""Guesses: plain mistakes at steps that a line does not tell, each an edit to try through a gap.

They stand for what readers would see if the step were claimed: another mask, other positions, heads
or rows in another order, a gain or bias moved or squared, another function.  Where they begin is
taken from the first position that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np

from byhand.checking.claims import Floats
from byhand.checking.gaps.attention_guesses import attention_guesses
from byhand.checking.gaps.candidates import APART, parts_of
from byhand.checking.suspects.catalogue import placed
from byhand.checking.suspects.curves import FAMILIES, Curve
from byhand.checking.suspects.mistakes import Mistake, first, keeping, made, setting, then
from byhand.checking.suspects.rewritings import Quantised
from byhand.checking.suspects.row_statistics import OVER, Statistic
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import Step

MOST_HEADS = 8  # up to so many heads, each two may be exchanged
GUESSED = 1  # how unlikely a guess is, beside what people are known to do
Sees = Callable[[int, int], bool]


@dataclass(frozen=True)
class Powered:
    """A weight, each entry to a power, with its sign."""

    power: float

    def __call__(self, data: Floats) -> Floats:
        return np.sign(data) * np.abs(data) ** self.power


@dataclass(frozen=True)
class Rolled:
    """A weight's entries moved along, the last ones to the front."""

    by: int

    def __call__(self, data: Floats) -> Floats:
        return np.roll(data, self.by, axis=-1)


@dataclass(frozen=True)
class Times:
    """A weight times a constant."""

    factor: float

    def __call__(self, data: Floats) -> Floats:
        return data * data.dtype.type(self.factor)


def guesses(scene: Scene, start: int | None) -> Iterator[Edit]:
    """The guesses for the steps of a scene; `start` is the first position that differs."""
    for source in (_masks, _positions, _softmaxes, _rows, _heads, _norms, _biases, _functions,
                   _gates, _streams, _matrices, attention_guesses):  # fmt: skip
        for edit in source(scene, start):
            yield placed(scene, edit)


def guesses_apart(scene: Scene, start: int | None) -> Iterator[Edit]:
    """The same for each block alone, and outside of the blocks, where a gap spans several parts."""
    parts = parts_of(scene)
    for part in parts if len(parts) > 1 else ():
        for edit in guesses(part, start):
            yield replace(edit, unlikely=edit.unlikely + APART)


# ------------------------------------------------------------------------ attention


def _masks(scene: Scene, start: int | None) -> Iterator[Edit]:
    every = [step for step in scene.of("scores") if step.shape[1] == step.shape[2]]
    if not every or start is None or start == 0:
        return
    told: list[tuple[str, Sees]] = [
        (_("a position sees the last {n} positions only").format(n=start),
         lambda q, k: q - k < start),
        (_("positions from {n} on do not see those before").format(n=start),
         lambda q, k: q < start or k >= start),
        (_("a position does not see the one {n} before it").format(n=start),
         lambda q, k: q - k != start),
        (_("key {n} is seen by its own position alone").format(n=start - 1),
         lambda q, k: k != start - 1 or q == k),
    ]  # fmt: skip
    if start == 1:
        told.append(
            (_("the first position is seen by itself alone"), lambda q, k: k != 0 or q == 0)
        )
    for words, sees in told:
        mistake = Mistake(
            "mask-guessed", _("it follows if {words}; the model lets it see more"),
            _("look at the mask of attention"), partial(_masked, sees=sees), GUESSED,
        )  # fmt: skip
        yield from made(scene, every, mistake, words=words)


def _masked(draft: Draft, step: Step, *, sees: Sees) -> None:
    mask = step.attributes["mask"]
    new = tuple(
        tuple(bool(own) and sees(query, key) for key, own in enumerate(row))
        for query, row in enumerate(mask)
    )
    draft.change(step.address, mask=new)


def _positions(scene: Scene, start: int | None) -> Iterator[Edit]:
    turned, looked = scene.of("rotate"), scene.named("embed.position")
    for steps, name in ((turned, "positions"), (looked, "ids")):
        every = [step for step in steps if name in step.attributes]
        if not every:
            continue
        own = np.asarray(every[0].attributes[name])
        for words, places in _other_positions(own, start):
            mistake = Mistake(
                "positions-guessed",
                _("it follows if positions are {words}; the model takes them as they are"),
                _("look at the position ids"), setting(**{name: tuple(places.tolist())}), GUESSED,
            )  # fmt: skip
            yield from made(scene, every, mistake, words=words)
        if name == "positions":
            yield from _turns(scene, every)


def _other_positions(own: Floats, start: int | None) -> Iterator[tuple[str, Floats]]:
    last = own.copy()
    last[-1] += 1
    yield _("one too many at the last position"), last
    yield _("one less, but 0 stays 0"), np.maximum(own - 1, 0)
    yield _("reversed"), own[::-1].copy()
    yield _("doubled"), 2 * own
    for at in {start, None if start is None else start - 1} - {None, 0}:
        assert at is not None
        yield _("at most {n}").format(n=at), np.minimum(own, own[0] + at)
        restarted = own.copy()
        restarted[at:] -= restarted[at] - own[0]
        yield _("counted from the first again at position {n}").format(n=at), restarted
        if at + 1 < len(own):
            exchanged = own.copy()
            exchanged[[at, at + 1]] = exchanged[[at + 1, at]]
            yield _("exchanged at {n} and {m}").format(n=at, m=at + 1), exchanged


def _turns(scene: Scene, every: Sequence[Step]) -> Iterator[Edit]:
    """Turns of q or of k alone, by other positions, twice, or with another exponent."""
    for letter in ("q", "k"):
        side = [step for step in every if step.address.endswith(f"{letter}_rotated")]
        for ahead in (1, -1, 2, 3, -2, -3):
            places = tuple(place + ahead for place in every[0].attributes["positions"])
            yield from made(scene, side, Mistake(
                "positions-guessed",
                _("it follows if {letter} is turned {n} positions ahead; the model turns q and k "
                  "alike"),
                _("give q and k the same positions"), setting(positions=places), GUESSED,
            ), letter=letter, n=ahead)  # fmt: skip
        last = (every[0].attributes["positions"][-1],) * scene.plan.length
        yield from made(scene, side, Mistake(
            "positions-guessed",
            _("it follows if all of {letter} is turned by the last position; the model turns each "
              "row by its own"),
            _("give {letter} the position of each row"), setting(positions=last), GUESSED,
        ), letter=letter)  # fmt: skip
        yield from made(scene, side, Mistake(
            "rope-guessed", _("it follows if {letter} is turned twice; the model turns it once"),
            _("turn {letter} once"),
            lambda draft, step: draft.keep(
                step.address, draft.copy(step.address, step, x=draft.aside(step.address))),
            GUESSED), letter=letter)  # fmt: skip
    base = float(every[0].attributes["base"])
    root = Fraction(base**0.5).limit_denominator(10**9)
    yield from made(scene, every, Mistake(
        "rope-guessed",
        _("it follows if the rates of RoPE have half the exponent; the model says base^(-2i/d)"),
        _("use base^(-2i/d)"), setting(base=root), GUESSED))  # fmt: skip


def _softmaxes(scene: Scene, start: int | None) -> Iterator[Edit]:
    steps = [step for step in scene.of("softmax") if step.address.endswith(".weights")]
    yield from made(scene, steps, Mistake(
        "softmax-sink",
        _("it follows if softmax has one more term, 1, in its denominator; the model has none"),
        _("leave the extra term out of softmax"),
        lambda draft, step: draft.change(
            step.address, op="softmax_with", extra=np.zeros((step.shape[0], 1, 1))), GUESSED,
    ))  # fmt: skip


def _rows(scene: Scene, start: int | None) -> Iterator[Edit]:
    """Rows moved by one position."""
    for ending in (".attn.k", ".attn.v", ".attn.q", ".attn.out", "embed.token"):
        steps = scene.named(ending)
        if not steps or steps[0].position_axis is None:
            continue
        axis, count = steps[0].position_axis, scene.plan.length
        for by, order in ((1, [max(0, at - 1) for at in range(count)]),
                          (1, [at - 1 for at in range(count)]),
                          (-1, [min(count - 1, at + 1) for at in range(count)])):  # fmt: skip
            yield from made(scene, steps, Mistake(
                "rows-moved",
                _("it follows if the rows of {at} are moved by {n} position; the model keeps each "
                  "at its own"),
                _("look for an index that is off by one"),
                then("taken", axis=axis, order=tuple(order)), GUESSED,
            ), at=steps[0].address, n=by)  # fmt: skip


def _heads(scene: Scene, start: int | None) -> Iterator[Edit]:
    """Heads in another order."""
    for ending in (".attn.q", ".attn.k", ".attn.v", ".attn.mixed"):
        steps = [step for step in scene.named(ending) if len(step.shape) == 3]
        if not steps or steps[0].shape[0] < 2:
            continue
        own = list(range(steps[0].shape[0]))
        orders = {_("reversed"): own[::-1], _("rotated by 1"): own[1:] + own[:1],
                  _("rotated by -1"): own[-1:] + own[:-1]}  # fmt: skip
        for one, other in combinations(own, 2) if len(own) <= MOST_HEADS else ():
            order = own.copy()
            order[one], order[other] = other, one
            orders[_("exchanged, {one} and {other}").format(one=one, other=other)] = order
        for words, order in orders.items():
            yield from made(scene, steps, Mistake(
                "heads-guessed",
                _("it follows if the heads of {at} are {words}; the model has them in order"),
                _("look at the order of heads"), then("taken", axis=0, order=tuple(order)), GUESSED,
            ), at=steps[0].address, words=words)  # fmt: skip


# ------------------------------------------------------------------------ norms and biases


def _norms(scene: Scene, start: int | None) -> Iterator[Edit]:
    for ending in (".attn.norm.out", ".mlp.norm.out", "final.norm.out", ".norm.out"):
        gained = [step for step in scene.named(ending) if "gain" in step.inputs]
        for words, rewriting in (
            (_("squared"), Powered(2.0)), (_("moved by 1"), Rolled(1)),
            (_("moved by -1"), Rolled(-1)), (_("in its root"), Powered(0.5)),
            (_("inverted"), Powered(-1.0)), (_("e to its power"), np.exp),
        ):  # fmt: skip
            yield from made(scene, gained, Mistake(
                "gain-guessed", _("it follows if the gain is {words}; the model takes it as it is"),
                _("look at how the gain of the norm is read"),
                first("gain", "rewritten", rewriting=rewriting), GUESSED), words=words)  # fmt: skip
    yield from _statistics(scene)


def _statistics(scene: Scene) -> Iterator[Edit]:
    """Mean squares over other numbers, or of another kind."""
    steps = scene.of("mean_square")
    ways = [Statistic("mean square", over) for over in OVER[1:]]
    ways += [Statistic("sum of squares"), Statistic("mean square of sizes")]
    for how in ways if steps else ():
        yield from made(scene, steps, Mistake(
            "statistics-guessed",
            _("it follows if the norm divides by the root of the {what} over {over}; the model "
              "takes the mean square of the row"),
            _("look at what the mean square is taken over"),
            partial(_measured, how=how), GUESSED), what=how.what, over=how.over)  # fmt: skip


def _measured(draft: Draft, step: Step, *, how: Statistic) -> None:
    draft.change(step.address, op="statistic", inputs={"x": step.inputs["x"]}, only=True, how=how)


def _biases(scene: Scene, start: int | None) -> Iterator[Edit]:
    names: dict[str, list[Step]] = {}
    for step in scene.region:
        if "bias" in step.inputs:
            inside = scene.layer(step.address) is not None
            names.setdefault(step.address.split(".", 2)[-1] if inside else step.address, []).append(
                step
            )
    for steps in names.values():
        for by in (1, -1):
            yield from made(scene, steps, Mistake(
                "bias-guessed",
                _("it follows if the bias of {at} is moved by {n}; the model adds it as it is"),
                _("look at where the bias begins"),
                first("bias", "rewritten", rewriting=Rolled(by)), GUESSED,
            ), at=steps[0].address, n=by)  # fmt: skip


# ------------------------------------------------------------------------ the MLP


def _functions(scene: Scene, start: int | None) -> Iterator[Edit]:
    steps = scene.of("activate")
    if not steps:
        return
    own = steps[0].attributes["kind"]
    for name, family in FAMILIES.items():
        if name == own or family.usual:
            continue
        yield from made(scene, steps, Mistake(
            "curve", _("it follows if the activation is {other}; the model says {own}"),
            _("use {own}"), partial(bend, curve=Curve(name)), GUESSED,
        ), other=family.written, own=own)  # fmt: skip
    yield from made(scene, steps, Mistake(
        "curve", _("it follows if the activation is applied twice; the model applies it once"),
        _("apply the activation once"), then("activate", kind=own), GUESSED))  # fmt: skip


def bend(draft: Draft, step: Step, *, curve: Curve) -> None:
    """Puts a curve in place of an activation."""
    draft.change(step.address, op="bent", inputs={"x": step.inputs["x"]}, only=True, curve=curve)


def _gates(scene: Scene, start: int | None) -> Iterator[Edit]:
    steps = scene.of("multiply")
    gated = [step for step in steps if step.address.endswith(".gated")]
    for words, make in (
        (_("the gate is added to the other half"), setting(op="add")),
        (_("the gate is multiplied by 1 + the other half"), first("y", "raised", by=Fraction(1))),
        (_("the gate is multiplied by itself"),
         lambda draft, step: draft.change(step.address, inputs={"y": step.inputs["x"]})),
        (_("only the gate goes on"), keeping("x")),
        (_("only the other half goes on"), keeping("y")),
    ):  # fmt: skip
        yield from made(
            scene,
            gated,
            Mistake(
                "gate-guessed",
                _("it follows if {words}; the model multiplies both halves"),
                _("multiply the activated gate by the other half"),
                make,
                GUESSED,
            ),
            words=words,
        )


def _streams(scene: Scene, start: int | None) -> Iterator[Edit]:
    for name in ("attn", "mlp"):
        adds = [step for step in scene.of("add") if step.address.endswith(f"{name}.add")]
        yield from made(scene, adds, Mistake(
            "stream-guessed",
            _(
                "it follows if the residual stream is centered after {name}; the model does "
                "not center it"
            ),
            _("do not subtract the mean from the residual stream"),
            then("less_of_row", kind="mean"), GUESSED), name=name)  # fmt: skip
        if scene.has("stream.0"):
            start_of = scene.own("stream.0")

            def again(draft: Draft, step: Step, read: str = start_of) -> None:
                own = draft.aside(step.address)
                draft.change(step.address, op="add", inputs={"x": own, "y": read}, only=True)

            yield from made(scene, adds, Mistake(
                "stream-guessed",
                _("it follows if the embedding is added again after {name}; the model adds it "
                  "once"),
                _("add the embedding once"), again, GUESSED), name=name)  # fmt: skip


def _matrices(scene: Scene, start: int | None) -> Iterator[Edit]:
    for step in scene.of("linear"):
        layout = step.attributes["layout"]
        inputs = scene.weight_shape(step.inputs["weight"])[0 if layout == "in_out" else 1]
        for words, rewriting in _quantised(inputs):
            yield from made(scene, [step], Mistake(
                "quantised",
                _("it follows if the matrix of {at} is in {words}; the file has floats"),
                _("look for a matrix that was quantised"),
                first("weight", "rewritten", rewriting=rewriting, turned=layout != "in_out"),
                GUESSED + 1), at=step.address, words=words)  # fmt: skip
        yield from made(
            scene,
            [step],
            Mistake(
                "matrix-negated",
                _("it follows if the matrix of {at} is negated; the file has it as it is"),
                _("look at the sign of the matrix"),
                first("weight", "rewritten", rewriting=Times(-1.0)),
                GUESSED + 1,
            ),
            at=step.address,
        )


def _quantised(inputs: int) -> Iterator[tuple[str, Quantised]]:
    for levels in ("int8", "int4"):
        yield (
            _("{levels}, with a scale for each output").format(levels=levels),
            Quantised(levels, "output"),
        )
        for size in (32, 64, 128):
            if inputs % size == 0 and size < inputs:
                yield (_("{levels}, in groups of {n}").format(levels=levels, n=size),
                       Quantised(levels, size))  # fmt: skip

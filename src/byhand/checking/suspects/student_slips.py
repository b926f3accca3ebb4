"""Mistakes that students make with a pencil, and that a program hardly makes.

The mean is added, a matrix row is taken at another position, e^ is not divided by its sum, a line
is rounded too early.  They are tried on handwritten lines alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import numpy as np

from byhand.checking.suspects.mistakes import (
    Mistake,
    Wrong,
    first,
    keeping,
    made,
    reading,
    setting,
    then,
)
from byhand.checking.suspects.pen_slips import decimal_places
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.language import _
from byhand.plan import WEIGHT, Step

ALONG = ("pos", "query")
MOST_POSITIONS, MOST_WORDS = 64, 40


def student_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with what a student did in place of the line that does not follow."""
    if not scene.context.by_hand:
        return
    step = scene.target
    for mistake in (*_of_operation(step, scene), *_rounded_short(scene)):
        yield from made(scene, [step], mistake)
    yield from _copied(scene, step)
    yield from _another_row(scene, step)


def _of_operation(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    """What may go wrong with an operation."""
    make = _MISTAKES.get(step.op)
    return () if make is None else make(step, scene)


def _sum(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    sentence = _("it follows if x and y are multiplied; the model adds them")
    change = _("add the two rows, number by number")
    return (Mistake("multiplied", sentence, change, setting(op="multiply")),)


def _mean(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    width = _width(step, scene)
    return (
        Mistake(
            "sum-for-mean",
            _("it follows if the sum is taken; the mean is the sum divided by {n}").format(n=width),
            _("divide the sum by {n}").format(n=width),
            then("scaled", factor=Fraction(width)),
        ),
    )


def _centered(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    change = _("subtract the mean from every number of the row")
    return (
        Mistake("mean-kept", _("it follows if the mean is not subtracted"), change, keeping("x")),
        Mistake(
            "mean-added",
            _("it follows if the mean is added; it is to be subtracted"),
            change,
            first("mean", "scaled", factor=Fraction(-1)),
        ),
    )


def _root(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    if not step.attributes.get("eps"):
        return ()
    return (
        Mistake(
            "eps-forgotten",
            _("it follows if eps is left out under the root"),
            _("add eps before the root is taken"),
            setting(eps=Fraction(0)),
        ),
    )


def _variance(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    centered = scene.plan[step.inputs["x"]]
    if centered.op != "center":
        return ()
    return (
        Mistake(
            "squares-of-row",
            _("it follows if the row itself is squared; the mean is to be subtracted before"),
            _("square the numbers of {address}").format(address=centered.address),
            reading(x=centered.inputs["x"]),
        ),
    )


def _shares(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    divide = _("divide each e^x by the sum of the row")
    return (
        Mistake(
            "not-divided",
            _("it follows if e^x is not divided by the sum of the row"),
            divide,
            setting(op="exponential"),
        ),
        Mistake(
            "without-e",
            _("it follows if the numbers themselves are divided by their sum, without e^"),
            _("take e^x of every number first"),
            setting(op="shares_of_sum"),
        ),
    )


def _mixed(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    rows = [place for place in scene.context.index if isinstance(place, int)][-1:]
    if not rows:
        return ()
    scores = next((each for each in scene.plan if each.op == "scores" and "k" in each.inputs
                   and scene.layer(each.address) == scene.layer(step.address)), None)  # fmt: skip
    mistakes: tuple[Mistake[Step], ...] = ()
    if scores is not None and scene.plan[scores.inputs["k"]].shape == (
        scene.plan[step.inputs["v"]].shape
    ):
        mistakes = (
            Mistake(
                "keys-mixed",
                _("it follows if the keys are mixed; the model mixes the values"),
                _("multiply the values by the attention weights"),
                reading(v=scores.inputs["k"]),
            ),
        )
    return (
        *mistakes,
        Mistake(
            "equal-weights",
            _("it follows if all positions have equal weights"),
            _("multiply each value by its attention weight"),
            first("weights", "even_rows", rows=tuple(rows)),
        ),
    )


def _bent(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    return (
        Mistake(
            "absolute-value",
            _("it follows if the absolute value is taken"),
            _("what is negative becomes 0"),
            setting(op="absolute", kind=None),
        ),
    )


def _loss(step: Step, scene: Scene) -> tuple[Mistake[Step], ...]:
    def make(draft: Draft, line: Step) -> None:
        draft.change(line.address, op="target_share")
        draft.then(line.address, "scaled", factor=Fraction(-1))
        draft.then(line.address, "raised", by=Fraction(1))

    return (
        Mistake(
            "one-less-probability",
            _("it follows if the loss is 1 − p; the model says −ln p"),
            _("take the natural logarithm of the probability, with the sign reversed"),
            make,
        ),
        *_other_words(step, scene),
    )


def _other_words(step: Step, scene: Scene) -> Iterator[Mistake[Step]]:
    """The loss of a token that is not the target."""
    width = scene.plan[step.inputs["probs"]].shape[-1]
    targets = scene.context.targets or ()
    if width > MOST_WORDS or not targets or targets[-1] < 0:
        return
    own = targets[-1]
    for other in range(width):
        if other != own:
            order = [own if at == other else other if at == own else at for at in range(width)]
            text = _("it follows if the probability of token {other} is taken; the target is {own}")
            yield Mistake(
                "another-target",
                text.format(other=other, own=own),
                _("take the probability of the target"),
                first("probs", "taken", axis=1, order=tuple(order)),
                1,
            )


_MISTAKES: Mapping[str, Callable[[Step, Scene], tuple[Mistake[Step], ...]]] = {
    "add": _sum,
    "mean": _mean,
    "center": _centered,
    "root": _root,
    "mean_square": _variance,
    "softmax": _shares,
    "mix": _mixed,
    "activate": _bent,
    "loss": _loss,
}


def _width(step: Step, scene: Scene) -> int:
    return scene.plan[step.inputs["x"]].shape[-1]


# ------------------------------------------------------------------------ any line


def _rounded_short(scene: Scene) -> Iterator[Mistake[Step]]:
    """The line with fewer decimals than the sheet asks for."""
    values = scene.context.values
    slack = np.asarray(scene.context.slack, dtype=np.float64)
    slack = slack[slack > 0]
    places = decimal_places(float(slack.min())) if slack.size else None
    if values is None or not places or not np.any(values):
        return  # a row of zeros is nothing rounded
    for kept in range(places):
        if np.allclose(values, np.round(values, kept), rtol=0, atol=1e-12):
            text = _("it follows if it is rounded to {kept} decimals; the sheet asks for {places}")
            if kept == 1:
                text = _("it follows if it is rounded to 1 decimal; the sheet asks for {places}")
            yield Mistake(
                "rounded-short",
                text.format(kept=kept, places=places),
                _("keep {places} decimals").format(places=places),
                then("to_places", places=kept),
            )
            return


def _copied(scene: Scene, step: Step) -> Iterator[Edit]:
    """The line as a copy of a line that it reads."""
    if step.op in (
        "add",
        "activate",
        "affine",
        "keep",
        "center",
        "root",
        "softmax",
    ):  # these have names of their own
        return
    for role, read in step.inputs.items():
        if not read.startswith(WEIGHT) and _as_wide(scene.plan[read], step):
            sentence = _("it follows if the line above is copied: {address}").format(address=read)
            change = _("work the line out from {address}").format(address=read)
            yield from made(
                scene, [step], Mistake("copied", sentence, change, _copy(role, step), 1)
            )


def _as_wide(read: Step, step: Step) -> bool:
    """Whether a line can be copied: it has the same shape, but for an axis with one head."""
    return [side for side in read.shape if side > 1] == [side for side in step.shape if side > 1]


def _copy(role: str, step: Step) -> Wrong:
    """A change: the line copies its input, laid out as the line is."""

    def make(draft: Draft, line: Step) -> None:
        read = draft.made_of(line.inputs[role], "reread", line.address, shape=step.shape)
        draft.keep(line.address, read)

    return make


def _another_row(scene: Scene, step: Step) -> Iterator[Edit]:
    """The line with the numbers of another position."""
    index, axes = scene.context.index, step.axes
    at = next((place for place, axis in enumerate(axes) if axis in ALONG), None)
    if at is None or at >= len(index) or step.shape[at] > MOST_POSITIONS or "key" in axes:
        return
    own = index[at]
    if not isinstance(own, int) or step.op in ("argmax", "given"):
        return
    for other in range(step.shape[at]):
        if other == own:
            continue
        every = np.arange(np.prod(step.shape, dtype=np.int64)).reshape(step.shape)
        moved = np.moveaxis(every.copy(), at, 0)
        moved[own] = np.moveaxis(every, at, 0)[other]
        order = np.moveaxis(moved, 0, at).reshape(-1)
        text = _("it follows if the row of position {other} is taken; this is position {own}")
        yield from made(scene, [step], Mistake(
            "another-row", text.format(other=other, own=own),
            _("work out the row of position {own}").format(own=own),
            then("shuffled", order=order), 1))  # fmt: skip

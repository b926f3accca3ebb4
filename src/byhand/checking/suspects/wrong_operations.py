"""Operations that a student takes for another: a median, a variance not divided, a hard maximum.

They are tried on handwritten lines alone, beside those of `student_slips`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import numpy as np

from byhand.checking.suspects.mistakes import Mistake, Wrong, first, made, setting, then
from byhand.checking.suspects.scenes import Draft, Edit, Scene
from byhand.expression import Expression, Number, Quotient, write
from byhand.language import _
from byhand.plan import Step

MOST_KEYS, MOST_POSITIONS = 16, 16
Some = Iterator[Mistake[Step]]


def operation_suspects(scene: Scene) -> Iterator[Edit]:
    """Edits with another operation in place of the one that the line needs."""
    make = _MISTAKES.get(scene.target.op)
    if make is not None and scene.context.by_hand:
        for mistake in make(scene.target, scene):
            yield from made(scene, [scene.target], mistake)


# ------------------------------------------------------------------ the norm


def _mean(step: Step, scene: Scene) -> Some:
    width = _width(step, scene)
    divide = _("divide the sum by {n}").format(n=width)
    if width > 2:
        text = _("it follows if the sum is divided by {less}; the row has {n} numbers")
        yield Mistake(
            "mean-of-less",
            text.format(less=width - 1, n=width),
            divide,
            then("scaled", factor=Fraction(width, width - 1)),
        )
    yield Mistake("median", _("it follows if the median is taken"), divide, setting(op="median"))


def _variance(step: Step, scene: Scene) -> Some:
    width = _width(step, scene)
    yield Mistake(
        "squares-not-divided",
        _("it follows if the sum of the squares is not divided by {n}").format(n=width),
        _("divide the sum of the squares by {n}").format(n=width),
        then("scaled", factor=Fraction(width)),
    )

    def sizes(draft: Draft, line: Step) -> None:
        draft.first(line.address, "x", "absolute")
        draft.change(line.address, op="mean")

    yield Mistake(
        "mean-deviation",
        _("it follows if absolute values are averaged; the squares are to be averaged"),
        _("square every number first"),
        sizes,
    )


def _root(step: Step, _scene: Scene) -> Some:
    def halve(draft: Draft, line: Step) -> None:
        draft.keep(line.address, step.inputs["x"])
        draft.then(line.address, "scaled", factor=Fraction(1, 2))

    text = _("it follows if the variance is halved; its root is to be taken")
    yield Mistake("halved", text, _("take the root"), halve)


def _another_statistic(role: str, text: Callable[[], str]) -> Callable[[Step, Scene], Some]:
    """The mean or the deviation of another position."""

    def some(step: Step, scene: Scene) -> Some:
        own = _position(step, scene)
        count = scene.plan[step.inputs[role]].shape[-1]
        if own is None or count > MOST_POSITIONS:
            return
        for other in range(count):
            if other != own:
                order = [other if place == own else place for place in range(count)]
                yield Mistake(
                    "another-statistic",
                    text().format(other=other, own=own),
                    _("work out the row of position {own}").format(own=own),
                    first(role, "taken", axis=0, order=tuple(order)),
                    1,
                )

    return some


# ------------------------------------------------------------------ attention


def _scores(step: Step, scene: Scene) -> Some:
    own = _position(step, scene)
    _heads, count, _width = scene.plan[step.inputs["q"]].shape
    if own is None or count > MOST_POSITIONS:
        return
    text = _("it follows if the query of position {other} is taken; this is position {own}")
    for other in range(count):
        if other != own:
            order = [other if place == own else place for place in range(count)]
            yield Mistake(
                "another-query",
                text.format(other=other, own=own),
                _("take the query of position {own}").format(own=own),
                first("q", "taken", axis=1, order=tuple(order)),
                1,
            )


def _softmax(step: Step, scene: Scene) -> Some:
    yield from _scaled_again(step, scene)
    over = _("divide each e^x by the sum of the row")
    whole = _("take e^x of every number, and divide by their sum")
    yield Mistake(
        "hard-maximum",
        _("it follows if the largest number gets 1 and the others 0"),
        whole,
        setting(op="hard_maximum"),
    )
    yield Mistake(
        "over-the-largest",
        _("it follows if each e^x is divided by the largest of them"),
        over,
        setting(op="over_largest"),
    )
    yield Mistake(
        "minus-the-exponent",
        _("it follows if e^-x is taken in place of e^x"),
        whole,
        first("x", "scaled", factor=Fraction(-1)),
    )
    yield Mistake(
        "equal-weights",
        _("it follows if all numbers of the row are taken as equal"),
        whole,
        first("x", "scaled", factor=Fraction(0)),
    )
    if step.shape[-1] <= MOST_KEYS:
        for key in range(step.shape[-1]):
            text = _("it follows if the sum of the row leaves out its number {place}")
            yield Mistake(
                "sum-without-one",
                text.format(place=key),
                over,
                then("over_all_but", place=key),
                1,
            )


def _scaled_again(step: Step, scene: Scene) -> Some:
    """The scale of the scores left out, or applied once more, before e^ is taken."""
    scores = scene.plan[step.inputs["x"]]
    scale = scores.attributes.get("scale")
    if scores.op != "scores" or not isinstance(scale, Expression):
        return
    change = _("take e^x of the scores as they are")
    back = Quotient(Number(Fraction(1)), scale)
    for factor, text in (
        (back, _("it follows if the scores are not scaled by {scale}")),
        (scale, _("it follows if the scores are scaled by {scale} a second time")),
    ):
        yield Mistake(
            "scale-in-softmax",
            text.format(scale=write(scale)),
            change,
            first("x", "scaled", factor=factor),
        )


def _mixed(step: Step, scene: Scene) -> Some:
    yield Mistake(
        "values-without-weights",
        _("it follows if the values are added without their weights"),
        _("multiply each value by its attention weight"),
        first("weights", "ones"),
    )


# ------------------------------------------------------------------ the MLP and the end


def _activated(step: Step, _scene: Scene) -> Some:
    if step.attributes.get("kind") != "relu":
        return
    change = _("what is negative becomes 0, the rest stays as it is")
    for kind, op, text in (
        ("below-zero", "below_zero", _("it follows if what is positive becomes 0")),
        ("leaky", "leaky", _("it follows if what is negative is divided by 100")),
        ("sigmoid", "sigmoid", _("it follows if the sigmoid 1/(1 + e^-x) is taken")),
        ("tanh", "tanh", _("it follows if tanh is taken")),
        ("sign", "above_zero", _("it follows if every positive number becomes 1")),
    ):
        yield Mistake(kind, text, change, setting(op=op, kind=None))


def _loss(_step: Step, _scene: Scene) -> Some:
    def weighted(draft: Draft, line: Step) -> None:
        share = draft.copy(line.address, line)
        draft.change(line.address, op="times_share", inputs={"loss": share})

    yield Mistake(
        "loss-times-probability",
        _("it follows if the loss is −p·ln p; the model says −ln p"),
        _("do not multiply the logarithm by the probability"),
        weighted,
    )


def _next(step: Step, scene: Scene) -> Some:
    change = _("take the token with the largest logit")
    turned: Wrong = first("x", "scaled", factor=Fraction(-1))
    text = _("it follows if the token with the smallest logit is given")
    yield Mistake("smallest", text, change, turned)
    text = _("it follows if the token with the second largest logit is given")
    yield Mistake("second-largest", text, change, first("x", "without_largest"))


_MISTAKES: Mapping[str, Callable[[Step, Scene], Some]] = {
    "mean": _mean,
    "mean_square": _variance,
    "root": _root,
    "center": _another_statistic(
        "mean",
        lambda: _("it follows if the mean of position {other} is taken; this is position {own}"),
    ),
    "normalize": _another_statistic(
        "by",
        lambda: _(
            "it follows if the deviation of position {other} is taken; this is position {own}"
        ),
    ),
    "scores": _scores,
    "softmax": _softmax,
    "mix": _mixed,
    "activate": _activated,
    "loss": _loss,
    "argmax": _next,
}


def _width(step: Step, scene: Scene) -> int:
    return scene.plan[step.inputs["x"]].shape[-1]


def _position(step: Step, scene: Scene) -> int | None:
    """The position of the row that is claimed; None where there is more than one."""
    at = next((at for at, axis in enumerate(step.axes) if axis in ("pos", "query")), None)
    index = scene.context.index
    place = None if at is None or at >= len(index) else index[at]
    return int(place) if isinstance(place, int | np.integer) else None

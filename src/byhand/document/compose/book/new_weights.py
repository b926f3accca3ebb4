"""One step: every weight moves against its gradient; the weights and the loss before and after."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.gradient_sizes import sizes_of
from byhand.document.compose.book.laws_of_learning import formula_of_learning, furthest
from byhand.document.compose.book.one_step import OneStep, tables_of
from byhand.document.compose.book.strips import near
from byhand.document.compose.learning import rule_told
from byhand.document.numerals import localised
from byhand.document.parts import Facts, LeftOut, Number, NumberRow, NumberTable, Part
from byhand.expression import Number as Rational
from byhand.expression import write
from byhand.language import _
from byhand.optimizer import UPDATE
from byhand.plan import WEIGHT
from byhand.worked import weakest

SLUG = "step"
FEW = 4  # weights that are worked line by line
MOST_POSITIONS = 32
MOST_STILL = 12  # weights that are named


def page(edition: Edition, step: OneStep) -> Page:
    """The page on one training step."""
    return Page(
        SLUG,
        _("One step"),
        _("Every weight moves a little against its gradient, and the loss is worked out again."),
        tuple(_passages(edition, step)),
    )


def _passages(edition: Edition, step: OneStep) -> Iterator[Passage]:
    if not step.differentiated or step.again is None:
        yield Passage(f"{SLUG}-unknown", _("No step is known"), (), show=(LeftOut(step.why_not),))
        return
    yield _rule(edition, step)
    yield _weights(edition, step)
    yield _loss(edition, step)


# ------------------------------------------------------------------ the rule


def _rule(edition: Edition, step: OneStep) -> Passage:
    """The rule of the optimizer, and the weights with the largest gradients line by line."""
    showing = step.showing
    names = sorted(step.moved, key=lambda name: -_largest(step, name))[:FEW]
    return Passage(
        id=f"{SLUG}-rule",
        title=_("The rule"),
        sentences=(
            _(
                "The rule is gradient descent (SGD): the new weight is the old one less {rate} "
                "times its gradient. {rate} is the learning rate."
            ).format(rate=write(Rational(step.rule.rate))),
            _("Here are the weights that move most, one of each tensor."),
        ),
        formulas=tuple(
            formula_of_learning(showing, step.new[name], furthest(step.gradients[name]))
            for name in names
        ),
        show=(Facts(((_("optimizer"), localised(rule_told(step.rule))),)),),
    )


def _largest(step: OneStep, name: str) -> float:
    return float(np.nanmax(np.abs(near(step.gradients[name])), initial=0.0))


# ------------------------------------------------------------------ the weights


def _weights(edition: Edition, step: OneStep) -> Passage:
    showing = step.showing
    show: list[Part] = []
    if edition.everything:
        for name in step.moved:
            show += edition.showing.weight(name, showing.inside.names.of(WEIGHT + name))
            show += tables_of(step, step.new[name])
    else:
        show.append(sizes_of(step, list(step.new)))
    sentences = [
        _("Each weight as it was and as it is now.")
        if edition.everything
        else _(
            "A weight moves by the rate times its gradient. Here are the sizes of the gradients."
        )
    ]
    still = [f"`{WEIGHT}{name}`" for name in step.new if name not in step.moved]
    if still:
        text = _("These stay as they are, since their gradients are 0: {names}.")
        sentences.append(text.format(names=words.some_of(still, MOST_STILL)))
    return Passage(
        id=f"{SLUG}-weights",
        title=_("The weights before and after"),
        sentences=tuple(sentences),
        show=tuple(show),
    )


# ------------------------------------------------------------------ the loss


def _loss(edition: Edition, step: OneStep) -> Passage:
    before, now = (float(near(t.steps["mean_loss"])[0]) for t in (step.trace, step.after))
    norm = float(near(step.trace.steps[f"{UPDATE}norm"])[0])
    rate = float(step.rule.rate)
    text = (
        _("With the new weights the loss is {after}. It was {before}: the step has helped.")
        if now < before
        else _("With the new weights the loss is {after}. It was {before}: the step went too far.")
        if now > before
        else _("With the new weights the loss is {after}, as before.")
    )
    sentences = (
        text.format(after=_short(now), before=_short(before)),
        _(
            "A very small rate lowers the loss by the rate times the squared length of the "
            "gradient. Here that would be {rate} · {norm}² ≈ {fall}. The rest comes from "
            "the curvature of the loss on the way."
        ).format(
            rate=write(Rational(step.rule.rate)), norm=_short(norm), fall=_short(rate * norm * norm)
        ),
    )
    return Passage(
        id=f"{SLUG}-loss",
        title=_("The loss before and after"),
        sentences=sentences,
        show=(_table(step),),
        lit=tuple(a for a in ("loss", "target") if a in edition.trace.steps),
        looks_back=True,
    )


def _short(number: float) -> str:
    return localised(f"{number:.4g}")


def _table(step: OneStep) -> NumberTable:
    """Each position's loss before and after the step, and their means.

    Numbers after the step have no addresses: those are the numbers before it.
    """
    showing, after = step.showing, step.after
    before, now = step.trace.steps["losses"], after.steps["losses"]
    rows = []
    for place in step.counted[-MOST_POSITIONS:]:
        label = f"{showing.labels[place]} → {showing.answer(step.target(place))}"
        new = Number("", showing.forms.cell(now.at((place,)), form=False))
        rows.append(_row(place, label, showing.number(before, (place,)), new))
    means = step.trace.steps["mean_loss"], after.steps["mean_loss"]
    new = Number("", showing.forms.cell(means[1].at((0,)), form=False))
    last = len(step.trace.tokens)
    rows.append(_row(last, _("mean"), showing.number(means[0], (0,)), new))
    hidden = len(step.counted) - len(rows) + 1
    text = _("the first {count} positions").format(count=hidden) if hidden else ""
    heads = (_("before"), _("after"))
    return NumberTable("losses", "", ("pos",), (last,), (0, 1), heads, tuple(rows), text)


def _row(place: int, label: str, *numbers: Number) -> NumberRow:
    known = [number.cell.register for number in numbers if number.cell.register is not None]
    return NumberRow(place, label, weakest(known), numbers)

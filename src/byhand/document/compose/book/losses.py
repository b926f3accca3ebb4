"""How wrong the model was: the loss at every position, against the text shifted by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.laws_of_learning import formula_of_learning
from byhand.document.compose.book.one_step import OneStep
from byhand.document.compose.book.standing import standing_passage
from byhand.document.compose.book.strips import near
from byhand.document.numerals import localised
from byhand.document.parts import LeftOut, NumberRow, NumberTable
from byhand.language import _

SLUG = "losses"
FAR_OFF = 20  # a mean loss from which a number of words says nothing
MOST_POSITIONS = 32
END = ("probs", "loss", "target")  # stations that are lit


def page(edition: Edition, step: OneStep) -> Page:
    """The page on the losses of a text."""
    told = (_each(edition, step), standing_passage(edition, step, SLUG, MOST_POSITIONS),
            _mean(edition, step)) if step.measured else (_unknown(edition, step),)  # fmt: skip
    return Page(
        SLUG,
        _("How wrong was it?"),
        _(
            "Every position predicts the token after it. The loss says how surprised the model is "
            "by the token that should come."
        ),
        tuple(passage for passage in told if passage is not None),
    )


def _unknown(edition: Edition, step: OneStep) -> Passage:
    title = _("No loss is known")
    return Passage(f"{SLUG}-unknown", title, (), show=(LeftOut(step.why_not),))


def _lit(edition: Edition) -> tuple[str, ...]:
    return tuple(address for address in END if address in edition.trace.steps)


# ------------------------------------------------------------------ position by position


def _each(edition: Edition, step: OneStep) -> Passage:
    worst = _worst(step)
    return Passage(
        id=f"{SLUG}-each",
        title=_("What should come, and how likely it was"),
        sentences=tuple(_sentences(edition, step, worst)),
        lit=_lit(edition),
        formulas=(formula_of_learning(step.showing, step.trace.steps["losses"], (worst,)),),
        show=tuple(_tables(step)),
        looks_back=True,
    )


def _worst(step: OneStep) -> int:
    """The position with the largest loss."""
    losses = near(step.trace.steps["losses"])
    return max(step.counted, key=lambda place: float(losses[place]))


def _sentences(edition: Edition, step: OneStep, worst: int) -> Iterator[str]:
    showing, trace = step.showing, step.trace
    last = len(trace.tokens) - 1
    yield _("The text is its own key: after each token, the next one should come.")
    if last in step.counted:
        yield _("After the last one, the target `{target}` should come.").format(
            target=showing.answer(step.target(last))
        )
    else:
        yield _("What comes after the last one is not known, so it does not count.")
    share = showing.said(trace.steps["probs"], (worst, step.target(worst)))
    yield _(
        "The model is most surprised at position {which}: `{token}` has the probability {share}, "
        "so the loss is {loss}."
    ).format(
        which=showing.position(worst),
        token=showing.answer(step.target(worst)),
        share=share,
        loss=showing.said(trace.steps["losses"], (worst,)),
    )
    found = trace.next[worst].id if trace.next else None
    if found is not None and found != step.target(worst):
        yield _("It expected `{token}` there.").format(token=showing.answer(found))


def _tables(step: OneStep) -> Iterator[NumberTable]:
    """The token that should come after each position: its probability, and its loss."""
    places = step.counted[-MOST_POSITIONS:]
    hidden = len(step.counted) - len(places)
    text = _("the first {count} positions").format(count=words.whole(hidden)) if hidden else ""
    for name, head in (("probs", _("probability")), ("losses", _("loss"))):
        rows = tuple(_row(step, name, place) for place in places)
        shape = (len(step.trace.tokens),)
        yield NumberTable(name, "", ("pos",), shape, (0,), (head,), rows, text)


def _row(step: OneStep, name: str, place: int) -> NumberRow:
    showing, target = step.showing, step.target(place)
    index = (place, target) if name == "probs" else (place,)
    number = showing.number(step.trace.steps[name], index)
    label = f"{showing.labels[place]} → {showing.answer(target)}"
    return NumberRow(place, label, number.cell.register, (number,))


# ------------------------------------------------------------------ the mean


def _mean(edition: Edition, step: OneStep) -> Passage:
    showing = step.showing
    mean = step.trace.steps["mean_loss"]
    size = float(near(mean)[0])
    vocabulary = edition.model.spec.answers
    sentences = [
        _("Training makes the mean of these losses small. Here it is {loss}.").format(
            loss=showing.said(mean, (0,))
        ),
    ]
    if size < FAR_OFF:
        text = _(
            "That is as unsure as a blind guess among e^{loss} ≈ {count} words. A blind guess "
            "among all {all} would cost ln {all} ≈ {blind}."
        )
        choice = text.format(
            loss=localised(f"{size:.4f}"),
            count=localised(f"{np.exp(size):.2f}"),
            all=vocabulary,
            blind=localised(f"{np.log(vocabulary):.4f}"),
        )
        sentences.append(choice)
    return Passage(
        id=f"{SLUG}-mean",
        title=_("The mean of the losses"),
        sentences=tuple(sentences),
        lit=_lit(edition),
        formulas=(formula_of_learning(showing, mean),),
        show=tuple(showing.tables(mean)),
        looks_back=True,
    )

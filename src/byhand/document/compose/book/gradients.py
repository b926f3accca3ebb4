"""Backward: the gradient of the loss, from the end of the pass to every weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from byhand.address import write_index
from byhand.document import words
from byhand.document.book import Page, Passage, shown_by
from byhand.document.compose.book.edition import TOY, Edition
from byhand.document.compose.book.gradient_sizes import sizes_of
from byhand.document.compose.book.gradient_words import sentences_on
from byhand.document.compose.book.laws_of_learning import formula_of_learning, furthest
from byhand.document.compose.book.one_step import OneStep, tables_of
from byhand.document.compose.book.passages import not_known, title_of, topic_title
from byhand.document.compose.book.strips import near, size_of, strip_of
from byhand.document.compose.book.topics import Topic
from byhand.document.compose.short_names import VIA
from byhand.document.parts import Formula, HeatStrip, LeftOut, Part
from byhand.language import _
from byhand.optimizer import UPDATE
from byhand.plan import GRAD, WEIGHT
from byhand.worked import Worked

SLUG = "backward"
MOST_READ = 6  # addresses in a sentence
COLOURED = ("total", "loss_back", "softmax_back")  # what a larger model shows besides weights
HELPERS = ("row_dots", "slope")  # lines that are shown by their laws and one entry


def page(edition: Edition, step: OneStep) -> Page:
    """The page on the backward pass."""
    return Page(
        SLUG,
        _("Backward"),
        _(
            "Which way should each number move to make the loss smaller? The pass is "
            "retraced from its end to its start. ∂x is the gradient of the loss with "
            "respect to x: how fast the loss grows with x."
        ),
        tuple(_passages(edition, step)),
    )


def _passages(edition: Edition, step: OneStep) -> Iterator[Passage]:
    if not step.measured:
        yield Passage(
            f"{SLUG}-unknown", _("No gradient is known"), (), show=(LeftOut(step.why_not),)
        )
        return
    if step.why_not:
        yield Passage(f"{SLUG}-left-out", _("What is not known"), (), show=(LeftOut(step.why_not),))
    if not step.gradients:
        return
    for topics in _groups(edition):
        passed = [topic for topic in topics if step.back_through(topic)]
        if passed:
            yield _group(edition, step, passed)
    if step.differentiated:
        yield _together(edition, step)


def _groups(edition: Edition) -> Iterator[tuple[Topic, ...]]:
    """The topics of each passage, from the end of the pass to its start.

    A small model has a passage for each topic, a larger one for each side-trip; of many blocks,
    those that no page tells of share one.
    """
    backward = list(reversed(edition.topics))
    if edition.everything:
        yield from ((topic,) for topic in backward)
        return
    shown = set(edition.layers_shown)

    def together(topic: Topic) -> tuple[object, ...]:
        if topic.layer is not None and topic.layer not in shown:
            return (sum(layer < topic.layer for layer in shown),)
        return topic.layer, topic.trip, _at_the_end(topic)

    for _same, group in groupby(backward, key=together):
        yield tuple(reversed(list(group)))


def _at_the_end(topic: Topic) -> bool:
    return topic.layer is None and topic.kind in ("norm", "logits", "probs", "next", "loss")


# ------------------------------------------------------------------ one passage


def _group(edition: Edition, step: OneStep, topics: Sequence[Topic]) -> Passage:
    found = [worked for topic in reversed(topics) for worked in step.back_through(topic)]
    known = [worked for worked in found if worked.missing is None]
    show = [*_shown(edition, step, known), *not_known(found)]
    first = topics[0]
    return Passage(
        id=f"{SLUG}-{first.id}",
        title=_title(edition, topics),
        sentences=(*dict.fromkeys(_sentences(edition, topics, known)), *_reads(found)),
        lit=tuple(address for topic in topics for address in topic.addresses),
        formulas=tuple(_laws(edition, step, known)),
        show=tuple(show),
        layer=first.layer,
        backward=True,
        brief=not edition.everything,
    )


def _title(edition: Edition, topics: Sequence[Topic]) -> str:
    first = topics[0]
    if len(topics) == 1:
        return _("{title}, backward").format(title=topic_title(edition, first))
    last = topics[-1]
    if first.layer is not None and first.layer != last.layer:
        return _("Blocks {first} to {last}").format(first=first.layer, last=last.layer)
    if first.layer is not None:
        title = _("Back through attention") if first.trip == "attn" else _("Back through the MLP")
        return title_of(edition, first.layer, title)
    return _("Back from the loss") if _at_the_end(first) else _("Back to the tables")


def _sentences(edition: Edition, topics: Sequence[Topic], known: Sequence[Worked]) -> Iterator[str]:
    if edition.everything:
        yield from sentences_on(edition, topics[0])
    elif _at_the_end(topics[0]):
        for topic in reversed(topics):
            yield from sentences_on(edition, topic) if topic.kind in ("probs", "logits") else ()
    elif topics[0].layer != topics[-1].layer:
        yield _("The same again, back through each of these blocks.")
    else:
        yield words.stage_about(words.place_of(known[0].address))
    flowing = [worked for worked in known if not worked.address.startswith(GRAD + WEIGHT)]
    if edition.everything and flowing and not any(np.any(near(worked)) for worked in flowing):
        yield _("Nothing flows back here: every one of these gradients is 0.")


def _reads(found: Sequence[Worked]) -> Iterator[str]:
    """What is read here that is not worked out here."""
    made = {worked.address for worked in found}
    read = dict.fromkeys(a for worked in found for a in worked.step.reads if a not in made)
    if read:
        names = words.some_of([f"`{address}`" for address in read], MOST_READ)
        yield _("It reads {names}.").format(names=names)


def _laws(edition: Edition, step: OneStep, known: Sequence[Worked]) -> Iterator[Formula]:
    if edition.everything:
        yield from (formula_of_learning(step.showing, worked) for worked in known)


def _shown(edition: Edition, step: OneStep, known: Sequence[Worked]) -> Iterator[Part]:
    """Every number of a small model; of a larger one the sizes, and colours where they fit."""
    showing = step.showing
    if edition.everything:
        for worked in known:
            helper = worked.step.op in HELPERS or VIA in worked.address
            if step.in_full or not helper:
                yield from tables_of(step, worked)
        return
    names = [name for name, worked in step.gradients.items() if any(w is worked for w in known)]
    if edition.scale == TOY:
        for worked in known:
            inside = ".norm." in worked.address or worked.address.startswith(GRAD + WEIGHT)
            if worked.step.op in COLOURED and not inside:
                yield strip_of(showing, worked, showing.inside.names.of(worked.address))
        yield from (_heat(step, name) for name in names)
    if names:
        yield sizes_of(step, names)


def _heat(step: OneStep, name: str) -> HeatStrip:
    """The gradient of a weight as colours."""
    worked = step.gradients[name]
    return strip_of(step.showing, worked, step.showing.inside.names.of(worked.address))


# ------------------------------------------------------------------ all weights


def _any_of_them(edition: Edition, step: OneStep) -> Iterator[Part]:
    """For a larger model, the command that shows any gradient."""
    if edition.everything:
        return
    longest = max(step.gradients, key=lambda name: size_of(near(step.gradients[name])))
    worked = step.gradients[longest]
    address = worked.address + write_index(furthest(worked))
    yield LeftOut(_("Any gradient comes with"), shown_by(edition.whole_command, address))


def _together(edition: Edition, step: OneStep) -> Passage:
    showing = step.showing
    norm = step.trace.steps[f"{UPDATE}norm"]
    sentences = [
        _(
            "Here are the gradients of all weights. Orange: a larger weight makes the loss "
            "larger. Blue: it makes the loss smaller."
        )
        if edition.scale != "large"
        else _("Here are the gradients of all weights, by their sizes."),
        _("Taken as one long row of numbers, they have the length {norm}.").format(
            norm=showing.said(norm, (0,))
        ),
    ]
    heat = [_heat(step, name) for name in step.moved] if edition.everything else []
    if len(step.moved) < len(step.gradients):
        sentences.append(_("Those that are not drawn are 0."))
    return Passage(
        id=f"{SLUG}-together",
        title=_("The gradients of all weights"),
        sentences=tuple(sentences),
        formulas=(formula_of_learning(showing, norm),),
        show=(*heat, sizes_of(step, list(step.gradients)), *_any_of_them(edition, step)),
        brief=not edition.everything,
    )

"""The next token and its loss: the stream compared with every word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import norm_passage, passage
from byhand.document.compose.book.spoken_numbers import in_brackets
from byhand.document.compose.book.strips import drawn, near
from byhand.document.compose.book.topics import Topic
from byhand.document.numerals import localised
from byhand.document.parts import (
    Candidate,
    Candidates,
    Definitions,
    Letter,
    Loss,
    Part,
    Prediction,
    Predictions,
)
from byhand.expression import Expression, Name, Number, leaves, write
from byhand.language import _, amount, later
from byhand.numbers.base import Prediction as Predicted
from byhand.plan import WEIGHT

SLUG = "next"
KINDS = ("norm", "head", "head_norm", "logits", "probs", "next", "loss")
MOST_CANDIDATES = 12
MOST_POSITIONS = 32
MOST_FACTS = 8  # words of a text that are listed with their answers


def page(edition: Edition) -> Page:
    """The page on the next token and its loss."""
    return Page(
        SLUG,
        _("The word at each place") if edition.model.in_place else _("The next token and its loss"),
        _("What the residual stream holds at its end is compared with every word the model knows."),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    for topic in edition.topics:
        if topic.layer is None and topic.kind in KINDS and not topic.encoder:
            yield tell(edition, topic)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic."""
    if topic.kind in ("norm", "head_norm"):
        why = _("One more norm before the residual stream is read for the last time.")
        if topic.encoder:
            why = _("One more norm before the decoder reads the encoder's residual stream.")
        return norm_passage(edition, topic, SLUG, why)
    writers = {"head": _head, "logits": _logits, "probs": _probs, "next": _next, "loss": _loss}
    return writers[topic.kind](edition, topic)


def _head(edition: Edition, topic: Topic) -> Passage:
    """What stands between the stream and the logits."""
    spec = edition.model.spec
    sentences = []
    if spec.head is not None:
        sentences.append(_(
            "Before it is compared, the residual stream goes through one more matrix and an "
            "activation."
        ))  # fmt: skip
    if spec.embed_width is not None:
        text = _("A matrix brings it to the {width} numbers of the table E.")
        sentences.append(text.format(width=words.whole(spec.embed_width)))
    if spec.head_scale is not None:
        text = _("It is multiplied by {scale}.")
        sentences.append(text.format(scale=write(spec.head_scale)))
    return passage(edition, topic, SLUG, sentences)


def _logits(edition: Edition, topic: Topic) -> Passage:
    spec, showing = edition.model.spec, edition.showing
    worked = edition.trace.steps["logits"]
    sentences = [
        _(
            "Every word has a vector, and its dot product with the residual stream is the "
            "word's logit: the better they agree, the larger it is."
        )
    ]
    if spec.tied:
        sentences.append(
            _(
                "The vectors are those of the table E again: the head is tied and costs no "
                "parameters."
            )
        )
    elif spec.layout == "in_out":
        sentences.append(_("The vectors are the columns of W_head, one for each word."))
    else:
        sentences.append(_("The vectors are the rows of W_head, one for each word."))
    if spec.logit_scale is not None:
        text = _("The products are multiplied by {scale}.")
        sentences.append(text.format(scale=write(spec.logit_scale)))
    if spec.logit_cap is not None:
        text = _("A soft cap flattens large logits, so that none goes beyond ±{cap}.")
        sentences.append(text.format(cap=write(Number(spec.logit_cap))))
    if worked.missing is None and edition.everything:
        tokens = words.some_of([showing.answer(id) for id in range(spec.answers)])
        sentences.append(
            _("After position {which} the logits of {tokens} are {row}.").format(
                which=showing.position(edition.last),
                tokens=tokens,
                row=showing.row_said(worked, (edition.last,)),
            )
        )
    sentences += _directions(edition, topic)
    head = "embed.token" if spec.tied else "head"
    also = (f"direction.weight.{head}",)
    return passage(edition, topic, SLUG, sentences, also=also)


def _directions(edition: Edition, topic: Topic) -> Iterator[str]:
    """In two dimensions, a sentence on the words' vectors as directions in the plane."""
    spec, showing = edition.model.spec, edition.showing
    if spec.d_model != 2 or spec.answers > MOST_CANDIDATES or not edition.everything:
        return
    rows = showing.weight_rows(topic.steps[0].inputs["weight"].removeprefix(WEIGHT))
    if not spec.tied and spec.layout == "in_out":
        rows = tuple(zip(*rows, strict=True))
    if any(cell.masked for row in rows for cell in row):
        return
    ways = [
        f"`{showing.answer(id)}` {in_brackets([showing.cell_said(cell) for cell in row])}"
        for id, row in enumerate(rows)
    ]
    yield _(
        "In two dimensions a word is a direction: {ways}. The more the residual stream "
        "points a word's way, the larger its logit."
    ).format(ways=", ".join(ways))


def _probs(edition: Edition, topic: Topic) -> Passage:
    extra: list[Part] = []
    if edition.trace.steps["probs"].missing is None:
        extra.append(candidates(edition, edition.last))
    return passage(
        edition,
        topic,
        SLUG,
        (
            _(
                "The same softmax as in attention, now over the whole vocabulary: logits become "
                "probabilities, which are positive and sum to 1."
            ),
            _(
                "The order of the words does not change, so the largest logit already says who "
                "wins."
            ),
        ),
        *extra,
    )


def candidates(edition: Edition, position: int) -> Candidates:
    """The likeliest words after a position, and the target where there is one."""
    trace, showing = edition.trace, edition.showing
    logits, probs = trace.steps["logits"], trace.steps["probs"]
    shares = near(probs)[position]
    order = [int(id) for id in np.argsort(-np.nan_to_num(shares), kind="stable")]
    shown = order[:MOST_CANDIDATES]
    target = trace.target if position == len(trace.tokens) - 1 else None
    if target is not None and target not in shown:
        shown.append(target)
    more = len(order) - len(shown)
    return Candidates(
        position=position,
        label=showing.labels[position],
        candidates=tuple(
            Candidate(
                token=showing.answer(id),
                id=id,
                logit=showing.number(logits, (position, id)),
                probability=showing.number(probs, (position, id)),
                target=id == target,
                share=drawn(float(shares[id])),
            )
            for id in shown
        ),
        left_out=amount(more, later("1 less likely word"), later("{count} less likely words"))
        if more
        else "",
    )


def _next(edition: Edition, topic: Topic) -> Passage:
    trace = edition.trace
    found = list(enumerate(trace.next or ()))
    shown = found[-MOST_POSITIONS:]
    sentences = [_("The word with the largest logit is the answer.")]
    if edition.model.in_place:
        sentences.append(
            _("It is the word that stands at the position itself, not the one that comes next.")
        )
    if shown:
        sentences.append(predicted(edition, *shown[-1]).sentence)
    if len(trace.tokens) > 1 and looks_back_only(edition):
        sentences.append(
            _(
                "Every position has an answer of its own, since none may look ahead; the last one "
                "says how the text goes on."
            )
        )
    sentences += _facts_learned(edition)
    if trace.target is None:
        sentences.append(
            _("This text has no target, so there is no loss; `--target WORD` gives it one.")
        )
    extra: list[Part] = []
    if shown:
        hidden = len(found) - len(shown)
        extra.append(
            Predictions(
                edition.showing.outline(trace.steps["next"]),
                tuple(predicted(edition, *one) for one in shown),
                _("the first {count} positions").format(count=hidden) if hidden else "",
            )
        )
    return passage(edition, topic, SLUG, sentences, *extra)


def _facts_learned(edition: Edition) -> Iterator[str]:
    """For a short text in which each word has one answer: A → B, B → C, C → A."""
    trace, showing = edition.trace, edition.showing
    answers: dict[int, set[int | None]] = {}
    for id, found in zip(trace.tokens, trace.next or (), strict=False):
        answers.setdefault(id, set()).add(found.id)
    single = {id: next(iter(found)) for id, found in answers.items() if len(found) == 1}
    if len(single) != len(answers) or len(answers) < 3 or len(answers) > MOST_FACTS:
        return
    facts = [
        f"`{showing.token(id)}` → `{showing.answer(found)}`"
        for id, found in single.items()
        if found is not None
    ]
    if len(facts) == len(single):
        yield _("In this text every word has one answer: {facts}.").format(facts=", ".join(facts))


def looks_back_only(edition: Edition) -> bool:
    """Whether no position attends to later ones."""
    blocks = edition.model.spec.blocks
    return all(block.attention is None or block.attention.causal for block in blocks)


def predicted(edition: Edition, position: int, found: Predicted) -> Prediction:
    """The prediction after one position, also as a sentence."""
    plain = edition.showing.prediction(position, found)
    which = edition.showing.position(position)
    if plain.token is None:
        sentence = _("After position {which} the next token is open: {why}.").format(
            which=which, why=words.undecided(plain.candidates)
        )
    else:
        text = _("After position {which} comes `{token}`")
        if edition.model.in_place:
            text = _("At position {which} stands `{token}`")
        sentence = text.format(which=which, token=plain.token)
        if plain.tied:
            sentence += _(", tied with {tokens}; of equals the first is taken").format(
                tokens=words.some_of([t for t in plain.tied if t != plain.token])
            )
        elif plain.margin is not None:
            sentence += _(", {margin} ahead of the second").format(
                margin=edition.showing.cell_said(plain.margin)
            )
        if plain.proven:
            sentence += _("; this is proven, whatever floats would do")
        sentence += "."
    return replace(plain, sentence=sentence)


def _loss(edition: Edition, topic: Topic) -> Passage:
    trace, showing = edition.trace, edition.showing
    assert trace.target is not None
    target, end = showing.answer(trace.target), len(trace.tokens) - 1
    worked = trace.steps["loss"]
    sentences = [
        _(
            "The word that should come is `{target}`. The loss is minus the logarithm of the "
            "probability it was given: 0 if the model was sure of it, large if it was surprised."
        ).format(target=target)
    ]
    extra: list[Part] = []
    if worked.missing is None:
        share = showing.cell(trace.steps["probs"], (end, trace.target))
        loss = showing.cell(worked, (0,))
        sentences.append(
            _("Its probability is {share}, so the loss is {loss}.").format(
                share=_decimal(share.decimal), loss=_decimal(loss.decimal)
            )
        )
        first = trace.next[end].id if trace.next else None
        if first is not None and first != trace.target:
            sentences.append(
                _("The model would have said `{token}`.").format(token=showing.answer(first))
            )
        sentences.append(
            _("Guessing blindly among {count} words would cost ln {count} ≈ {loss}.").format(
                count=trace.model.spec.answers,
                loss=localised(f"{np.log(trace.model.spec.answers):.4f}"),
            )
        )
        sentences += _as_printed(edition, target)
        told = edition.showing.loss(worked)
        form = told.cell.form or told.cell.worked
        if edition.everything and form is not None:
            letters = [letter for letter in told.letters if letter.name in _letters(form, told)]
            if letters:
                extra.append(Definitions("loss", form, tuple(sorted(letters, key=_by_name))))
    return passage(edition, topic, SLUG, sentences, *extra)


def _letters(form: Expression, told: Loss) -> set[str]:
    """The letters in a form, and those in their definitions."""
    meant = {letter.name: letter.definition for letter in told.letters}
    found: set[str] = set()
    todo = [form]
    for tree in todo:  # grows as definitions bring further letters
        names = {leaf.text for leaf in leaves(tree) if isinstance(leaf, Name)} & set(meant)
        todo.extend(meant[name] for name in names - found)
        found |= names
    return found


def _by_name(letter: Letter) -> tuple[str, int]:
    """p1, u1, x1, x2, … x10."""
    head = letter.name.rstrip("0123456789")
    return head, int(letter.name.removeprefix(head) or 0)


def _as_printed(edition: Edition, target: str) -> Iterator[str]:
    """The consequences of a document's printed numbers, where they are not the model's."""
    if edition.printed_end is not None:
        address, share, loss = edition.printed_end
        yield _(
            "{source} prints another row at the end of the residual stream, `{address}`. "
            "From that row the probability of `{target}` would be {share} and the loss "
            "{loss}."
        ).format(
            source=edition.claims_from,
            address=address,
            target=target,
            share=localised(share),
            loss=localised(loss),
        )


def _decimal(text: str | None) -> str:
    return "?" if text is None else localised(text)

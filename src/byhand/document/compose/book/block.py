"""The block around attention: the additions to the stream, the norms, and the MLP."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book import attention
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import (
    addition,
    folded,
    identity,
    norm_passage,
    passage,
)
from byhand.document.compose.book.topics import Topic
from byhand.language import _
from byhand.spec import MlpSpec

SLUG = "block"


def page(edition: Edition) -> Page:
    """The page on the block around attention: sums, norms and the MLP."""
    return Page(
        SLUG,
        _("Through the block"),
        _(
            "The stream runs straight through. Attention and the MLP leave it, work on a copy, and "
            "add what they found: nothing is replaced."
        ),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    inside = (topic for topic in edition.topics if topic.layer is not None)
    some = [topic for topic in inside if not attention.belongs(edition, topic)]
    if not some:
        text = _("This model has no blocks: the stream is read as it was begun.")
        yield Passage(f"{SLUG}-none", _("No blocks"), (text,))
    yield from folded(edition, some, SLUG, (".add",), tell)


def tell(edition: Edition, topic: Topic, slug: str = SLUG) -> Passage:
    """The passage about one topic."""
    if topic.kind == "norm":
        return norm_passage(edition, topic, slug, _why(edition, topic))
    if topic.kind == "after":
        why = _("What the side-trip found is normalised by itself before it is added.")
        return norm_passage(edition, topic, slug, why)
    writer = {
        "add": _add, "router": _router, "hidden": _hidden, "act": _act, "mlp_out": _out,
    }[topic.kind]  # fmt: skip
    return passage(edition, topic, slug, writer(edition, topic))


def _why(edition: Edition, topic: Topic) -> str:
    """Why there is a norm here."""
    assert topic.layer is not None
    block = edition.side.blocks[topic.layer]
    if block.norm_place == "post":
        return _(
            "In this model the norm comes after the addition, on the stream itself (Post-LN): what "
            "the blocks before have written is rescaled here. Later models put it before each "
            "side-trip instead (Pre-LN), where the stream stays one sum."
        )
    if block.parallel:
        return _(
            "The MLP reads the same stream that attention has read, not what attention made of it; "
            "first it makes the rows comparable."
        )
    return _("Before the MLP reads the stream, it makes the rows comparable.")


def _add(edition: Edition, topic: Topic) -> list[str]:
    sentences = [
        _(
            "What attention found is added to the stream, number by number; what was there stays "
            "in the sum."
        )
        if topic.trip != "mlp"
        else _("The MLP's answer is added to the stream in the same way.")
    ]
    sentences += addition(edition, topic.steps[-1])
    return sentences


def _mlp(edition: Edition, topic: Topic) -> MlpSpec:
    assert topic.layer is not None
    mlp = edition.side.blocks[topic.layer].mlp
    assert mlp is not None
    return mlp


def _router(edition: Edition, topic: Topic) -> list[str]:
    mlp = _mlp(edition, topic)
    assert mlp.experts is not None
    if mlp.chosen == 1:
        said = _(
            "There are {count} MLPs here, called experts. A matrix scores them for each position, "
            "and the one with the largest score answers."
        )
    else:
        said = _(
            "There are {count} MLPs here, called experts. A matrix scores them for each position, "
            "and the {chosen} with the largest scores answer."
        )
    shares = (
        _("Softmax over the scores of the chosen ones says how much each answer counts.")
        if mlp.normalised
        else _("Softmax over all scores says how much each answer counts; the rest is left out.")
    )
    counts = {"count": words.whole(mlp.experts), "chosen": words.whole(mlp.chosen or 0)}
    return [said.format(**counts), shares]


def _hidden(edition: Edition, topic: Topic) -> list[str]:
    mlp = _mlp(edition, topic)
    sentences = [
        _(
            "The MLP looks at one position at a time. A matrix takes its {d} numbers to {d_ff} "
            "hidden ones, each a question about the row."
        ).format(d=words.whole(edition.model.spec.d_model), d_ff=words.whole(mlp.d_ff))
    ]
    if mlp.gated:
        sentences.append(
            _("A second matrix makes as many gates, which will say how far each one opens.")
        )
    if identity(edition, topic.step("hidden")):
        sentences.append(_("Here the matrix is the identity and changes nothing."))
    return sentences


def _act(edition: Edition, topic: Topic) -> list[str]:
    mlp = _mlp(edition, topic)
    bend = {
        "relu": _("ReLU keeps what is positive and makes 0 of the rest."),
        "gelu": _(
            "GELU lets large numbers through, makes almost 0 of very negative ones, and bends "
            "smoothly in between; erf is the bell curve summed up."
        ),
        "gelu_tanh": _(
            "GELU lets large numbers through, makes almost 0 of very negative ones, and bends "
            "smoothly in between; this is its variant with tanh."
        ),
        "silu": _(
            "SiLU multiplies a number by how sure it is to be positive: large ones pass, very "
            "negative ones go to 0."
        ),
        "identity": _("Here nothing bends: the activation is the identity."),
        "relu2": _("The square of ReLU keeps what is positive, squared, and makes 0 of the rest."),
        "sigmoid": _("The sigmoid brings every number between 0 and 1."),
        "tanh": _("The hyperbolic tangent brings every number between −1 and 1."),
    }
    kind = "silu" if mlp.activation == "quick_gelu" else mlp.activation
    kind = "gelu_tanh" if kind in ("gelu_fast", "gelu_bloom") else kind
    sentences = [_("Without a bend, two matrices in a row would only be one."), bend[kind]]
    if mlp.gated:
        sentences.append(_("The bent gates are multiplied with the hidden numbers."))
    return sentences


def _out(edition: Edition, topic: Topic) -> list[str]:
    sentences = [_("A second matrix brings the hidden numbers back to the width of the stream.")]
    if _mlp(edition, topic).experts is not None:
        sentences.append(_("The answers of the experts are added up, each times its share."))
    elif identity(edition, topic.step("out")):
        sentences.append(_("Here it is the identity and changes nothing."))
    return sentences

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
from byhand.expression import Number, write
from byhand.language import _
from byhand.spec import MlpSpec

SLUG = "block"


def page(edition: Edition) -> Page:
    """The page on the block around attention: sums, norms and the MLP."""
    return Page(
        SLUG,
        _("Through the block"),
        _(
            "The residual stream runs straight through. Attention and the MLP branch off, "
            "work on a copy, and add what they found: nothing is replaced."
        ),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    inside = (t for t in edition.topics if t.layer is not None and not t.encoder)
    some = [topic for topic in inside if not attention.belongs(edition, topic)]
    if not some:
        text = _("This model has no blocks: the residual stream is read as it began.")
        yield Passage(f"{SLUG}-none", _("No blocks"), (text,))
    yield from folded(edition, some, SLUG, (".add",), tell)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic."""
    if topic.kind == "norm":
        return _norm(edition, topic)
    if topic.kind == "after_norm":
        why = _(
            "What the branch found is itself normalised before it is added to the residual stream."
        )
        return norm_passage(edition, topic, SLUG, why)
    writer = {
        "add": _add, "router": _router, "hidden": _hidden, "act": _act, "shared": _shared,
        "mlp_out": _out,
    }[topic.kind]  # fmt: skip
    return passage(edition, topic, SLUG, writer(edition, topic))


def _norm(edition: Edition, topic: Topic) -> Passage:
    block = edition.block_of(topic)
    if block.norm_place == "post":
        why = _(
            "In this model the norm comes after the addition, on the residual stream "
            "itself (Post-LN): what earlier blocks have written is rescaled here. Later "
            "models put it before each branch instead (Pre-LN), where the residual stream "
            "stays one sum."
        )
        return norm_passage(edition, topic, SLUG, why)
    why = _("Before the MLP reads the residual stream, a norm makes the rows comparable.")
    if block.parallel:
        why = _(
            "The MLP reads the same residual stream as attention, not what attention made "
            "of it; first a norm makes the rows comparable."
        )
    return norm_passage(edition, topic, SLUG, why)


def _add(edition: Edition, topic: Topic) -> list[str]:
    sentences = [
        _(
            "What attention found is added to the residual stream, number by number; what "
            "was there stays in the sum."
        )
        if topic.trip == "attn"
        else _("What was found in the source is added to the residual stream in the same way.")
        if topic.trip == "cross"
        else _("The MLP's answer is added to the residual stream in the same way.")
    ]
    scale = edition.block_of(topic).add_scale
    if scale is not None:
        text = _("Before that it is multiplied by {scale}.")
        sentences.append(text.format(scale=write(scale)))
    added = topic.step("add")
    assert added is not None
    sentences += addition(edition, added)
    return sentences


def _mlp(edition: Edition, topic: Topic) -> MlpSpec:
    mlp = edition.block_of(topic).mlp
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
    counts = {"count": words.whole(mlp.experts), "chosen": words.whole(mlp.chosen or 0)}
    return [said.format(**counts), *_choice(mlp), _shares(mlp)]


def _choice(mlp: MlpSpec) -> Iterator[str]:
    """What else the choice of experts depends on."""
    if mlp.scoring == "sigmoid":
        yield _("Each score is brought between 0 and 1 by itself.")
    if mlp.choice_bias:
        yield _("For the choice alone, a number of its own is added to each score.")
    if mlp.groups is not None:
        yield _(
            "The experts stand in {groups} groups, and only those of the best {kept} can be chosen."
        ).format(groups=mlp.groups, kept=mlp.groups_chosen)


def _shares(mlp: MlpSpec) -> str:
    if mlp.scoring == "sigmoid" and mlp.normalised:
        return _("How much each answer counts is its score, divided by the sum of the chosen ones.")
    if mlp.scoring == "sigmoid":
        return _("How much each answer counts is its score.")
    if mlp.normalised:
        return _("Softmax over the scores of the chosen ones says how much each answer counts.")
    return _("Softmax over all scores says how much each answer counts; the rest is left out.")


def _shared(edition: Edition, topic: Topic) -> list[str]:
    mlp = _mlp(edition, topic)
    sentences = [_("One more MLP stands beside the experts. It is shared: it answers always.")]
    if mlp.shared_gate:
        sentences.append(_("A score of its own, between 0 and 1, says how much its answer counts."))
    return sentences


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
    if mlp.limit is not None:
        text = _("Gates above {limit} become {limit}, hidden numbers stay within ±{limit}.")
        sentences.append(text.format(limit=write(Number(mlp.limit))))
    return sentences


def _act(edition: Edition, topic: Topic) -> list[str]:
    mlp = _mlp(edition, topic)
    bend = {
        "relu": _("ReLU keeps what is positive and sets the rest to 0."),
        "gelu": _(
            "GELU lets large numbers through, sets very negative ones almost to 0, and "
            "curves smoothly in between; erf is the bell curve summed up."
        ),
        "gelu_tanh": _(
            "GELU lets large numbers through, sets very negative ones almost to 0, and "
            "curves smoothly in between. This is its variant with tanh."
        ),
        "silu": _(
            "SiLU multiplies a number by its sigmoid: large ones pass, very negative ones go to 0."
        ),
        "relu2": _("ReLU² keeps the square of what is positive and sets the rest to 0."),
        "sigmoid": _("The sigmoid brings every number between 0 and 1."),
        "tanh": _("The hyperbolic tangent brings every number between −1 and 1."),
        "identity": _("Here the activation is the identity: it changes nothing."),
    }
    bend |= dict.fromkeys(("gelu_fast", "gelu_bloom"), bend["gelu_tanh"])
    bend["quick_gelu"] = _(
        "This GELU multiplies a number by a sigmoid: large ones pass, very negative ones go to 0."
    )
    first = _("Without an activation between them, two matrices in a row would amount to one.")
    sentences = [first, bend[mlp.activation]]
    if mlp.gated and mlp.hidden_plus:
        text = _("The activated gates are multiplied by the hidden numbers, {plus} added to each.")
        sentences.append(text.format(plus=write(Number(mlp.hidden_plus))))
    elif mlp.gated:
        sentences.append(_("The activated gates are multiplied by the hidden numbers."))
    return sentences


def _out(edition: Edition, topic: Topic) -> list[str]:
    sentences = [
        _("A second matrix brings the hidden numbers back to the width of the residual stream.")
    ]
    if _mlp(edition, topic).experts is not None:
        sentences.append(_("The answers of the experts are added up, each times its share."))
    elif identity(edition, topic.step("out")):
        sentences.append(_("Here it is the identity and changes nothing."))
    return sentences

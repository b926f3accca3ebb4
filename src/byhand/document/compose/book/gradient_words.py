"""The sentences of the backward pass: what the gradient of each kind of step does."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.topics import Topic
from byhand.language import _


def sentences_on(edition: Edition, topic: Topic) -> Iterator[str]:
    """What happens on the way back through a topic."""
    if topic.kind in ("norm", "qk_norm"):
        yield from _norm(edition, topic)
    elif topic.kind == "act":
        yield from _bend(topic)
    elif topic.kind == "attn_out":
        yield (
            _matrix()
            if topic.step("out") and "weight" in topic.steps[-1].inputs
            else _("The heads stood side by side: each gets its own columns back.")
        )
    elif topic.kind in ("add", "stream"):
        yield _("A sum hands its gradient on to both of its terms, unchanged.")
        if topic.kind == "add":
            yield _("Several steps read this row, so what comes back from them is added up.")
    else:
        text = _texts().get(topic.kind)
        if text:
            yield text


def _matrix() -> str:
    return _(
        "The gradient goes back through the matrix. Each weight gets what went into it times the "
        "gradient of what came out, summed over the positions."
    )


def _texts() -> dict[str, str]:
    return {
        "probs": _(
            "Through the logarithm and softmax at once: the gradient of a logit is its "
            "probability, minus 1 for the token that should come. The mean divides it "
            "among the positions that count."
        ),
        "logits": _(
            "The residual stream gets the words' vectors, each times the gradient of its "
            "logit. A word's vector gets the residual stream, times the same."
        ),
        "mlp_out": _matrix(),
        "hidden": _matrix(),
        "qkv": _matrix(),
        "mixed": _(
            "A value gets the gradients of those that took from it, by their attention "
            "weights. An attention weight gets the gradient times the value that it took."
        ),
        "weights": _(
            "The attention weights of a row sum to 1: what raises one lowers the others. "
            "So each is measured against the mean of its row, `dot`."
        ),
        "scores": _(
            "A query gets the keys and a key the queries, each times the gradient of their score."
        ),
        "rotate": _("A rotation is undone by rotating back."),
        "embed": _(
            "A row of the table gets the gradients of all positions that took it. The row of a "
            "word that is not in the text gets none from here."
        ),
        "position": _("Each position's row gets the gradient of the residual stream there."),
    }


def _norm(edition: Edition, topic: Topic) -> Iterator[str]:
    rms = any(step.address.endswith("rms") for step in topic.steps)
    if rms:
        yield _(
            "A norm fixes the length of a row, so the part of the gradient along the row "
            "is lost. `dot` measures it, and the way through the divisor takes it away."
        )
    else:
        yield _(
            "A norm fixes the mean and the spread of a row, so these parts of the gradient "
            "are lost. What comes back through the divisor and the mean takes them away."
        )
        if topic.kind == "norm" and edition.model.spec.d_model == 2:
            root = topic.step("std")
            yield (
                _(
                    "Of two numbers a norm leaves only a sign, which a small change does "
                    "not flip: with the eps, hardly anything comes through."
                )
                if root is not None and root.attributes["eps"]
                else _(
                    "Of two numbers a norm leaves only a sign, which a small change does "
                    "not flip: nothing comes through."
                )
            )


def _bend(topic: Topic) -> Iterator[str]:
    kinds = {step.attributes.get("kind") for step in topic.steps}
    if "relu" in kinds:
        yield _(
            "The gradient passes where the number was above 0, and stops where it was cut off: the "
            "slope is 1 or 0."
        )
    elif kinds - {None, "identity"}:
        yield _("The gradient is multiplied by the slope of the activation at each number.")
    if topic.step("gated") is not None:
        yield _("Each factor of a product gets the gradient times the other factor.")

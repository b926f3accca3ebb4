"""The words of a working: stages, marks and axes, without numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byhand.language import _
from byhand.language import whole as whole
from byhand.numbers.base import Numbers, Prediction
from byhand.plan import GRAD, WEIGHT
from byhand.spec import BlockSpec, ModelSpec
from byhand.tracing import Trace
from byhand.worked import Missing, Worked

if TYPE_CHECKING:
    from byhand.proof import Proof

HARD_SPACE = "\u00a0"  # where a line must not break
LONGEST_LABEL = 24  # characters of a token in a table
MOST_SETTLED = 4  # addresses in a sentence
MOST_NAMED = 8  # tokens in a sentence
SIGNS = {"exact": "", "named": "√", "enclosed": "±", "rounded": "~"}  # of the registers


@dataclass(frozen=True, slots=True)
class Place:
    """A stage of the spine; `layer` where there are several of its kind, `back` on the way back."""

    kind: str  # tokens, embedding, relative, attn, cross, mlp, final, next, loss, update
    layer: int | None = None
    back: bool = False
    encoder: bool = False  # a stage of the encoder's stream


def place_of(address: str) -> Place:
    """The stage a step belongs to; a gradient that comes through a step, to that step's."""
    parts = address.split(".")
    if parts[0] == "grad":
        own = address.rpartition(".via.")[2].removeprefix(GRAD).removeprefix(WEIGHT)
        return replace(place_of(own), back=True)
    if parts[0] in ("update", "before"):
        return Place("update")
    if parts[0] == "encoder":
        return replace(place_of(address.removeprefix("encoder.")), encoder=True)
    if parts[0] == "block":
        return Place(parts[2], int(parts[1]))
    if parts[0] in ("embed", "stream"):
        return Place("embedding")
    if parts[0] in ("target", "loss", "targets", "losses", "mean_loss", "logprobs"):
        return Place("loss")
    if parts[0] == "source":
        return Place("tokens", encoder=True)
    return Place(parts[0] if parts[0] in ("tokens", "final", "relative") else "next")


def places(addresses: Iterable[str]) -> Iterator[Place]:
    """The stage of each step.  On the way back, none is returned to: a weight's gradient may come a
    line later than the gradient that flows on."""
    place, behind = Place("tokens"), set[Place]()
    for address in addresses:
        here = place_of(address)
        if not (here.back and here in behind):
            place = here
            behind.add(here)
        yield place


def stage_title(place: Place, spec: ModelSpec | None = None) -> str:
    """The heading of a stage."""
    if place.encoder and place.kind != "tokens":
        whole = stage_title(replace(place, encoder=False))
        return _("Encoder · {stage}").format(stage=whole)
    if place.back:
        whole = stage_title(replace(place, back=False), spec)
        first = place.kind == "next"
        return _("Backward") if first else _("Backward · {stage}").format(stage=whole)
    return {
        "tokens": _("Source") if place.encoder else _("Tokens"),
        "embedding": _("Embedding"),
        "relative": _("Distances"),
        "attn": _("Block {layer} · attention"),
        "cross": _("Block {layer} · cross-attention"),
        "mlp": _("Block {layer} · MLP"),
        "final": _("Final norm"),
        "loss": _("Loss"),
        "next": _("Word at each place") if spec and spec.in_place else _("Next token"),
        "update": _("Update"),
    }[place.kind].format(layer=place.layer)


def stage_about(place: Place, spec: ModelSpec | None = None) -> str:
    """A sentence on what happens in a stage."""
    if place.kind == "attn" and spec is not None and not _asks(spec, place):
        return _about_places(place)
    if place == Place("next") and spec is not None and spec.in_place:
        return _(
            "The residual stream of each position is compared with every word of the "
            "vocabulary. The largest logit says which word stands there, not which comes "
            "next. Softmax turns the logits into probabilities."
        )
    if place == Place("tokens", encoder=True):
        return _("The encoder reads a text of its own, and the decoder looks at the result.")
    if place == Place("next") and spec is not None and spec.outputs is not None:
        return _(
            "The residual stream is compared with every word that the model can answer. "
            "The word with the largest logit is the answer; softmax turns the logits into "
            "probabilities."
        )
    if place.back:
        return _about_backward(place.kind)
    if place.kind == "mlp" and spec is not None and _chooses(spec, place):
        return _(
            "A router scores the experts for each position by itself. The ones with the largest "
            "scores answer, each by its share."
        )
    return {
        "tokens": _("A model sees no words, only their places in the vocabulary."),
        "embedding": _(
            "Each token becomes a row of numbers. These rows are the residual stream: "
            "every later stage reads it and adds to it."
        ),
        "attn": _(
            "Each position makes a query (q), a key (k) and a value (v). A score says how "
            "well a query fits a key; softmax turns a row of scores into weights that sum "
            "to 1. The weights mix the values."
        ),
        "cross": _(
            "Each position of the text makes a query (q). The keys (k) and values (v) come "
            "from the positions of the source, at the end of the encoder."
        ),
        "relative": _("The distance between two positions adds to their scores, in every block."),
        "mlp": _(
            "Each position by itself: a matrix takes it to the hidden numbers, the activation "
            "acts on them, and a second matrix brings it back."
        ),
        "final": _("The residual stream is normalised once more before it is read."),
        "loss": _("How surprised the model is by the word that does come next."),
        "next": _(
            "The residual stream is compared with every word of the vocabulary. The word "
            "with the largest logit is the next token; softmax turns the logits into "
            "probabilities."
        ),
        "update": _("Each weight takes a small step against its gradient."),
    }[place.kind]


def _chooses(spec: ModelSpec, place: Place) -> bool:
    """Whether a block's MLP is a choice among experts."""
    mlp = None if place.layer is None else _blocks(spec, place)[place.layer].mlp
    return mlp is not None and mlp.experts is not None


def _asks(spec: ModelSpec, place: Place) -> bool:
    """Whether a block's attention has queries and keys."""
    attention = None if place.layer is None else _blocks(spec, place)[place.layer].attention
    return attention is None or attention.queries


def _blocks(spec: ModelSpec, place: Place) -> Sequence[BlockSpec]:
    """The blocks of the stream that a stage belongs to."""
    return spec.encoder.blocks if place.encoder and spec.encoder else spec.blocks


def _about_places(place: Place) -> str:
    """A sentence on attention without queries and keys."""
    if place.back:
        return _("What was mixed flows back to v; the scores are given.")
    return _(
        "Each position has a value (v) to pass on. The scores do not depend on the words, "
        "only on their places; softmax turns a row of scores into weights that sum to 1. "
        "The weights mix the values."
    )


def _about_backward(kind: str) -> str:
    return {
        "next": _(
            "From the loss back to every weight. A gradient says how fast the loss grows with a "
            "number. Each line takes the gradients of what reads it, times its own slopes."
        ),
        "final": _(
            "A norm fixes the size of a row, so what a gradient has along the row is taken out."
        ),
        "mlp": _("Back through the matrices, and times the slope of the activation between them."),
        "attn": _("What was mixed flows back to v, and through the weights and scores to q and k."),
        "cross": _("What was mixed flows back to the source, and through the scores to q."),
        "relative": _("Each score of a distance gathers the gradients of the scores it was in."),
        "embedding": _("Each row of a table gathers the gradients of the positions that took it."),
    }.get(kind, "")


def register_word(register: str) -> str:
    """A register by its name."""
    return {
        "exact": _("exact"),
        "named": _("named"),
        "enclosed": _("enclosed"),
        "rounded": _("rounded"),
    }[register]


def register_about(register: str) -> str:
    """What a register promises."""
    return {
        "exact": _("exact (no sign): a rational number"),
        "named": _("named: not rational, so written with e^…, √… or a letter; never rounded"),
        "enclosed": _("enclosed: lies within ± of the decimal, proven"),
        "rounded": _("rounded: to the decimals or the format named above, line by line"),
    }[register]


def numbers_name(numbers: Numbers, proof: Proof | None = None) -> str:
    """The name of the numbers, in words."""
    if proof is not None:
        if proof.complete:
            text = _("{digits} significant digits, proven; worked out with {bits} bits")
        else:
            text = _("{digits} significant digits, not all proven; worked out with {bits} bits")
        return text.format(digits=proof.digits, bits=whole(proof.bits))
    if numbers.uniform == "enclosed":
        return _("enclosed")
    if numbers.name == "exact":
        return _("exact where it can be, named where it can't")
    kind, _blank, places = numbers.name.partition(" ")
    if kind == "decimals":
        return _("every line rounded to {places} decimals").format(places=places)
    return _("{name}, with its roundings").format(name=numbers.name)


def digits_about(digits: int) -> str:
    """The promise of proven digits."""
    return _(
        "enclosed: the digits are proven, within one unit of the last place; a number with fewer "
        "than {digits} is exactly what is shown"
    ).format(digits=digits)


def proven_count(found: Sequence[Prediction]) -> str:
    """How many of the next tokens are proven."""
    proven = sum(one.proven for one in found)
    return _("{count} of {all} next tokens").format(count=proven, all=len(found))


def settled_exactly(addresses: Sequence[str]) -> str:
    """Facts that no precision shows, such as a zero or a tie, but exact arithmetic does."""
    which = some_of(addresses, MOST_SETTLED)
    return _("{which}, settled by exact arithmetic").format(which=which)


def masked(later: bool) -> str:
    """Why there is no score: the key comes later, or is masked for another reason."""
    if later:
        return _("masked: a later position, which may not be looked at")
    return _("masked: a position that may not be looked at")


def masked_at(address: str) -> str:
    """Why one number is masked; its last indices are the query and the key."""
    index = re.search(r"attn\.\w+\[\d+,(\d+),(\d+)\]$", address)
    return masked(index is not None and int(index[2]) > int(index[1]))


def joined(words: Sequence[str]) -> str:
    """a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return _("{most} and {last}").format(most=", ".join(words[:-1]), last=words[-1])


def some_of(tokens: Sequence[str], most: int = MOST_NAMED) -> str:
    """a, b and 60 more."""
    shown = list(tokens[:most])
    if more := len(tokens) - len(shown):
        shown.append(_("{count} more").format(count=whole(more)))
    return joined(shown)


def leaves(positions: Sequence[str], reason: str) -> str:
    """The sentence at a boundary."""
    if len(positions) == 1:
        text = _("position {which} leaves the exact numbers here")
    else:
        text = _("positions {which} leave the exact numbers here")
    return text.format(which=joined(positions)) + (f": {reason}" if reason else "")


def why_left(trace: Trace, worked: Worked) -> str:
    """Why a step's values are not all rational although its inputs in the same row are."""
    if worked.register == "enclosed":
        return _("known only to the decimals printed")
    step = worked.step
    match step.op:
        case "softmax" | "expert_shares":
            return _("powers of e do not cancel")
        case "root":
            return _("the square root is not rational")
        case "rotate" | "sinusoid":
            return _("sines and cosines are not rational")
        case "soft_cap":
            return _("the hyperbolic tangent is not rational")
        case "activate":
            return _("the activation is not rational")
        case "loss":
            return _("the logarithm is not rational")
    weights = [read.removeprefix(WEIGHT) for read in step.reads if read.startswith(WEIGHT)]
    if any(trace.model.weights[name].expressions for name in weights):
        return _("a weight read here is not rational")
    if any(trace.steps[read].register != "exact" for read in step.reads if read in trace.steps):
        return _("another position read here has left them")
    scaled = "scale" in step.attributes or "by" in step.attributes
    return _("the scale is not rational") if scaled else ""


def returns(positions: Sequence[str], kind: str | None) -> str:
    """The sentence on the return to exact numbers; `kind` is that of an activation."""
    reason = _("relu cuts the names off") if kind == "relu" else _("the names cancel")
    if len(positions) == 1:
        text = _("position {which} is back in the exact numbers here: {reason}")
    else:
        text = _("positions {which} are back in the exact numbers here: {reason}")
    return text.format(which=joined(positions), reason=reason)


def stops(positions: Sequence[str], op: str) -> str:
    """The sentence at a boundary where the working stops."""
    what = {"softmax": _("named softmax"), "root": _("named square root")}.get(
        op, _("named numbers")
    )
    if len(positions) == 1:
        text = _("position {which} stops at {what}")
    else:
        text = _("positions {which} stop at {what}")
    return text.format(which=joined(positions), what=what)


def noted(kind: str) -> str:
    """The sentence about a special value at some positions: {which}."""
    return {
        "zero-variance": _(
            "position {which}: every entry is the mean, so this is 0/0; taken as the limit for "
            "eps → 0, which is 0"
        ),
        "undecided-sign": _(
            "position {which}: a sign could not be decided, so max(0, x) stays as it is written"
        ),
        "tied-experts": _(
            "position {which}: experts have equal scores here; the first of them is chosen"
        ),
        "not-finite": _(
            "position {which}: a number here is too large for this format, or is no number at all"
        ),
    }[kind]


def texts(trace: Trace) -> Iterator[tuple[str, str]]:
    """The text of a trace, the source that an encoder reads, and the kinds of tokens."""
    if trace.source is not None:
        yield _("source"), printable(trace.source.text)
    yield _("text"), printable(trace.text)
    if trace.segments is not None:
        yield _("segments"), " ".join(map(str, trace.segments))


def axes_text(axes: Sequence[str], shape: Sequence[int]) -> str:
    """pos 2 × d 2; the names are those of addresses and stay as they are."""
    if axes in ((), ("one",)):
        return _("one number")
    return " × ".join(f"{axis} {size}" for axis, size in zip(axes, shape, strict=True))


def row_width(address: str) -> str:
    """What a norm calls the numbers in a row: d on the residual stream, n elsewhere."""
    return "n" if "_norm." in address else "d"


def formula_text(formula: str, address: str = "") -> str:
    """A formula with its words in the current language; signs and step names stay, and a mean is
    written as what it computes.

    >>> formula_text("mean(centered²)", "block.0.attn.norm.variance")
    '(1/d)·Σ centered_i²'
    """
    if mean := re.fullmatch(r"mean\((\w+?)(²?)\)", formula):
        width = "n" if mean[1] == "losses" else row_width(address)
        return f"(1/{width})·Σ {mean[1]}_i{mean[2]}"
    for pattern, text in (
        (r"text → ids", _("text → ids")),
        (r"source → ids", _("source → ids")),
        (r"what is above \+ (?P<name>\S+)", _("what is above + {name}")),
        (r"R\[bucket of key - query\]", _("R[bucket of key - query]")),
        (r"text → id", _("text → id")),
        (r"heads side by side", _("heads side by side")),
        (r"mixed of one head · its slice of W_out", _("mixed of one head · its slice of W_out")),
        (r"the columns of (?P<name>\w+) in qkv", _("the columns of {name} in qkv")),
        (
            r"pair i of (?P<name>\w+) turned by (?P<angle>.*)",
            _("pair i of {name} turned by {angle}"),
        ),
        (r"sin, cos of (?P<angle>.*)", _("sin, cos of {angle}")),
        *_formulas_of_experts(),
        *_formulas_of_learning(),
    ):
        if match := re.fullmatch(pattern, formula):
            return text.format(**match.groupdict())
    return formula.replace("via ", _("via") + " ") if formula.startswith("via ") else formula


def _formulas_of_experts() -> Iterator[tuple[str, str]]:
    """Formulas of a choice among experts that have words in them."""
    yield r"1 for the largest of router, else 0", _("1 for the largest of router, else 0")
    yield (
        r"1 for the (?P<count>\d+) largest of router, else 0",
        _("1 for the {count} largest of router, else 0"),
    )
    yield r"softmax\(router\) over the chosen", _("softmax(router) over the chosen")
    yield r"softmax\(router\), of the chosen", _("softmax(router), of the chosen")


def _formulas_of_learning() -> Iterator[tuple[str, str]]:
    """Formulas of gradients and updates that have words in them."""
    yield r"text → the ids that should come", _("text → the ids that should come")
    yield (
        r"probs - 1 at the target of the last position",
        _("probs - 1 at the target of the last position"),
    )
    yield (
        r"\(probs - 1 at the target\)/positions that count",
        _("(probs - 1 at the target)/positions that count"),
    )
    yield r"Σ grad where the row was taken", _("Σ grad where the row was taken")
    yield r"the columns of q, k and v", _("the columns of q, k and v")
    yield r"the columns of each head", _("the columns of each head")
    yield r"grad turned back", _("grad turned back")
    yield r"Σ over the heads that share it", _("Σ over the heads that share it")
    yield r"from the step before", _("from the step before")


def token_label(token: str) -> str:
    """A token for a table: unprintable ones are quoted, long ones cut."""
    shown = token if token.isprintable() and token.strip() == token and token else repr(token)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def together(text: str) -> str:
    """The text with hard spaces, so that no line breaks in it."""
    return text.replace(" ", HARD_SPACE)


def undecided(candidates: Sequence[str]) -> str:
    """Why there is no next token: several may be it, or the logits are no numbers."""
    if not candidates:
        return _("the logits are not numbers")
    return _("undecided between {tokens}").format(tokens=some_of(candidates))


def why_missing(missing: Missing) -> str:
    """Why a step has no value."""
    if missing.kind == "unknown":
        return _("not worked out: {weight} is unknown").format(weight=missing.cause)
    return _("not worked out: {step} could not be decided ({message})").format(
        step=missing.cause, message=missing.message
    )


def told(text: str) -> str:
    """A model's own description; a built-in model's is translated."""
    return printable(_(text)) if text else ""


def printable(text: str) -> str:
    """The text itself, or quoted if a terminal would not show it as it is."""
    return text if text.isprintable() and " ".join(text.split()) == text else repr(text)

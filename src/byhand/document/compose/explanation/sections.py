"""An explanation as sections of parts: which sections, in which order, and how much of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.compose.explanation import (
    SECTIONS,
    USUAL,
    attribution,
    facts,
    geometry,
    gradients,
    heads,
    health,
    inputs,
    lens,
)
from byhand.document.compose.explanation.scope import Scope
from byhand.document.parts import Part, Section, Title
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining import Explanation

_PARTS: dict[str, Callable[[Scope], Iterator[Part]]] = {
    "facts": facts.parts,
    "attribution": attribution.parts,
    "lens": lens.parts,
    "attention": heads.parts,
    "geometry": geometry.parts,
    "health": health.parts,
    "gradients": gradients.parts,
    "stream": attribution.stream_parts,
    "norms": health.norms_parts,
    "inputs": inputs.parts,
}


def section(scope: Scope, name: str) -> Section:
    """One of SECTIONS, with as much as the scope shows."""
    return Section(name, *_heading(name), tuple(_PARTS[name](scope)))


def _heading(name: str) -> tuple[str, str]:
    """The title of a section, and a sentence on what it shows."""
    match name:
        case "facts":
            return _("What the numbers say"), ""
        case "attribution":
            return _("Where the logit comes from"), _(
                "Every part of the model adds to the residual stream, and the end of the "
                "model reads it. So the logit is a sum with a term for each part. Norms "
                "have the scale that this text gives them."
            )
        case "lens":
            return _("What it would say after every step"), _(
                "The residual stream is read by the model's own end (final norm and "
                "unembedding), as if the model stopped there."
            )
        case "attention":
            return _("What the heads read and write"), _(
                "QK says which token a head looks for, and from which. OV says what it "
                "writes towards each logit when it looks at one token alone."
            )
        case "geometry":
            return _("Where the residual stream goes"), _(
                "Each token is a direction: a row of the unembedding. The residual stream "
                "moves from its embedding to its end; the token in whose region it ends "
                "comes next."
            )
        case "health":
            return _("How the layers are doing"), _(
                "Sizes are root mean squares, averaged over the positions. Added: the size "
                "of what a branch adds, divided by that of the residual stream. Cosine: "
                "whether it goes along with the stream (1), across (0) or against it (-1). "
                "Everything here is rounded."
            )
        case "gradients":
            return _("What the loss depends on"), _(
                "The loss is that of the explained token. Said: what the gradient expects without "
                "a token or a part. Found: what happens when the text is worked out without it. "
                "Everything here is rounded."
            )
        case "stream":
            return _("What the residual stream is made of"), _(
                "What enters the final norm and the unembedding, as the sum of what every part of "
                "the model added to it."
            )
        case "norms":
            return _("Norms before or after"), _(
                "The same weights with every norm before its branch (pre) and after it "
                "(post). No model was trained both ways: this shows how the place changes "
                "sizes, not which is better."
            )
        case _:
            return _("Every text"), _(
                "The prediction after every text, proven, and the parts without which it changes."
            )


def title(found: Explanation, only: Sequence[str] = ()) -> Title:
    """The title; and the result in one sentence, unless the facts begin with it.

    A table of every text has no single text, and has its own numbers.
    """
    trace = found.trace
    name = words.printable(trace.model.name)
    if tuple(only) == ("inputs",):
        return Title(name, "", (), (), masked=False)
    told = (
        *words.texts(trace),
        (_("numbers"), words.numbers_name(trace.numbers, trace.proof)),
    )
    said = "" if "facts" in (only or USUAL) else summary(found, judged="inputs" not in only)
    return Title(name, said.replace(words.HARD_SPACE, " "), told, (), masked=False)


def summary(found: Explanation, judged: bool = True) -> str:
    """The next token after the explained position, and its lead, in a sentence.

    Unless `judged`, the sentence leaves out whether it is proven: the table of every text proves
    it.
    """
    scope, trace = Scope(found), found.trace
    where = scope.where(found.position)
    if trace.next is None:
        return words.why_missing(found.missing) if found.missing else ""
    predicted = trace.next[found.position]
    if predicted.id is None:
        candidates = [scope.answer(id) for id in predicted.candidates]
        return words.undecided(candidates)
    token = scope.answer(predicted.id)
    proof = _("proven") if predicted.proven else _("not proven")
    if predicted.tied:
        tied = words.joined([scope.answer(id) for id in predicted.tied])
        text = _("after position {place} comes {token}: {tied} tie, {proof}")
        return text.format(place=where, token=token, tied=tied, proof=proof)
    if predicted.margin is None or not (judged or predicted.proven):
        return _("after position {place} comes {token}").format(place=where, token=token)
    text = _("after position {place} comes {token}, ahead by {margin}, {proof}")
    margin = scope.number(predicted.margin)
    return text.format(place=where, token=token, margin=margin, proof=proof)


def sections(
    found: Explanation,
    only: Sequence[str] = (),
    *,
    every: bool = False,
    full: bool = False,
) -> Iterator[Section]:
    """The sections asked for, in full; by default the usual ones in short, with `full` in full."""
    scope = Scope(found, full or bool(only), every)
    for name in SECTIONS:
        if name in (only or USUAL):
            yield section(scope, name)

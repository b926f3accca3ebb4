"""An explanation as sections of parts: which there are, in which order, how much of each."""

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
    heads,
    health,
    inputs,
    lens,
)
from byhand.document.compose.explanation.scope import Scope
from byhand.document.parts import Section, Title
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining import Explanation

_MAKERS: dict[str, Callable[[Scope], Section]] = {
    "facts": facts.section,
    "attribution": attribution.section,
    "lens": lens.section,
    "attention": heads.section,
    "geometry": geometry.section,
    "health": health.section,
    "stream": attribution.stream_section,
    "norms": health.norms_section,
    "inputs": inputs.section,
}


def title(found: Explanation, only: Sequence[str] = ()) -> Title:
    """What is explained; and the result in one sentence, where the facts do not say it first.

    A table of every text is about no text in particular, and its numbers are its own.
    """
    trace = found.trace
    name = words.printable(trace.model.name)
    if tuple(only) == ("inputs",):
        return Title(name, "", (), (), masked=False)
    told = (
        (_("text"), words.printable(trace.text)),
        (_("numbers"), words.numbers_name(trace.numbers, trace.proof)),
    )
    said = "" if "facts" in (only or USUAL) else summary(found, judged="inputs" not in only)
    return Title(name, said, told, (), masked=False)


def summary(found: Explanation, judged: bool = True) -> str:
    """Which token comes next after the position explained, and how far it is ahead.

    Not `judged`, whether it is proven is left to the table of every text, which proves it.
    """
    scope, trace = Scope(found), found.trace
    where = scope.where(found.position)
    if trace.next is None:
        return words.why_missing(found.missing) if found.missing else ""
    predicted = trace.next[found.position]
    if predicted.id is None:
        candidates = [scope.token(id) for id in predicted.candidates]
        return words.undecided(candidates)
    token = scope.token(predicted.id)
    proof = _("proven") if predicted.proven else _("not proven")
    if predicted.tied:
        tied = words.joined([scope.token(id) for id in predicted.tied])
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
    """The sections asked for, in full; without any, the usual ones in short, or in full too."""
    scope = Scope(found, full or bool(only), every)
    for name in SECTIONS:
        if name in (only or USUAL):
            yield _MAKERS[name](scope)


def section_of(found: Explanation, name: str) -> Section:
    """One section in short."""
    return _MAKERS[name](Scope(found))

"""An explanation as sections of parts: which there are, in which order, how much of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.compose.explanation import attribution, final_stream, health, lens
from byhand.document.compose.explanation.parts import (
    SECTIONS,
    USUAL,
    Block,
    Grid,
    Head,
    Section,
    Told,
)
from byhand.document.compose.explanation.scope import Scope
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining import Explanation

MOST_TEXTS = 12  # texts that are listed one by one


def head(found: Explanation, only: Sequence[str] = ()) -> Head:
    """What is explained; and the result in one sentence, where the facts do not say it first.

    A table of every text is about no text in particular, and its numbers are its own.
    """
    trace = found.trace
    if tuple(only) == ("inputs",):
        return Head(words.printable(trace.model.name), "", ())
    facts = [
        (_("text"), words.printable(trace.text)),
        (_("numbers"), words.numbers_name(trace.numbers, trace.proof)),
    ]
    told = "facts" in (only or USUAL)
    said = "" if told else summary(found, judged="inputs" not in only)
    return Head(words.printable(trace.model.name), said, tuple(facts))


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
    pictures: bool = False,
    width: int = 80,
) -> Iterator[Section]:
    """The sections asked for, in full; without any, the usual ones in short, or in full too."""
    scope = Scope(found, full or bool(only), every, pictures, width)
    makers: dict[str, Callable[[Scope], Section]] = {
        "facts": facts_section,
        "attribution": attribution.section,
        "lens": lens.lens_section,
        "attention": lens.attention_section,
        "geometry": geometry_section,
        "health": health.health_section,
        "stream": final_stream.section,
        "norms": health.norms_section,
        "inputs": inputs_section,
    }
    for name in SECTIONS:
        if name in (only or USUAL):
            yield makers[name](scope)


def facts_section(scope: Scope) -> Section:
    """How the prediction comes about, in sentences, each checked by taking a step away."""
    from byhand.document.compose.explanation.facts import tell

    found = scope.found
    several = scope.every or (found.few_positions and (scope.full or found.few_texts))
    told = tell(found.whole_facts if several else found.facts)
    blocks = [block for each in told for block in _facts(each.sentences)]
    if found.few_texts or found.length is not None:
        from byhand.document.compose.explanation.facts import tell_inputs

        blocks += _facts(tell_inputs(found.inputs))
    return Section("facts", _("What the numbers say"), "", tuple(blocks))


def _facts(sentences: Sequence[str]) -> list[Block]:
    """The first sentence leads, the others are about the same."""
    return [Told(each, "fact" if place else "lead") for place, each in enumerate(sentences)]


def geometry_section(scope: Scope) -> Section:
    """Where the stream goes."""
    from byhand.document.compose.explanation.geometry import section

    return section(scope)


def inputs_section(scope: Scope) -> Section:
    """Every text up to a length, and what decides after it."""
    from byhand.document.compose.explanation.facts import tell_inputs

    table = scope.found.inputs
    blocks = _facts(tell_inputs(table))
    if table.missing is None and table.rows:
        shown = table.rows if scope.every else table.rows[:MOST_TEXTS]
        decode = table.model.vocabulary.decode
        rows = tuple(
            (
                _text(scope, decode(row.tokens), row.tokens),
                scope.leader(row.prediction),
                _("proven") if row.prediction.proven else _("not proven"),
                "?" if row.suffix is None else str(row.suffix),
                ", ".join(part.address for part in table.needed(row)),
            )
            for row in shown
        )
        hidden = len(table.rows) - len(shown)
        more = _("{count} more texts").format(count=words.whole(hidden)) if hidden else ""
        blocks.append(
            Grid(
                _("every text of up to {count} tokens").format(count=table.length)
                if table.length > 1
                else _("every text of one token"),
                (_("text"), _("next"), "", _("last tokens that decide"), _("needs")),
                rows,
                (False, False, False, True, False),
                left_out=more,
            )
        )
    return Section(
        "inputs",
        _("Every text"),
        _("The prediction after every text, proven, and the parts without which it is another."),
        tuple(blocks),
    )


def _text(scope: Scope, text: str, tokens: Sequence[int]) -> str:
    """A text as it is written; where that shows nothing, by its tokens."""
    return words.printable(text) if text.strip() else " ".join(map(scope.token, tokens))

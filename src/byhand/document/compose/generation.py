"""A generation as parts: a title, a line for each token, the whole text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from byhand.document import words
from byhand.document.compose.forms import PLACES, Forms, floats
from byhand.document.numerals import one_line
from byhand.document.parts import Cell, Choice, Column, Facts, Finding, Grid, Part, Title
from byhand.document.words import whole
from byhand.expression import write
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.generating import Chosen, Generation, Sampling

MOST_TIED = 4  # tokens of a tie that are named


def opening(generation: Generation) -> Title:
    """The title: the text to continue, and the rule of choice."""
    model = generation.model
    read = generation.source
    facts = [
        *([] if read is None else [(_("source"), words.printable(read.text))]),
        (_("text"), words.printable(model.vocabulary.decode(generation.prompt))),
        (_("numbers"), _numbers(generation)),
    ]
    if generation.sampling is not None:
        facts.append((_("drawn"), ", ".join(_drawn(generation.sampling))))
    return Title(words.printable(model.name), "", tuple(facts))


def _numbers(generation: Generation) -> str:
    if generation.digits is None:
        return words.numbers_name(generation.numbers)
    text = _("{digits} significant digits, proven, within one unit of the last place")
    return text.format(digits=generation.digits)


def _drawn(sampling: Sampling) -> Iterator[str]:
    yield _("temperature {number}").format(number=_decimal(float(sampling.temperature)))
    if sampling.top_k is not None:
        yield f"top-k {sampling.top_k}"
    if sampling.top_p is not None:
        yield f"top-p {_decimal(float(sampling.top_p))}"
    yield _("seed {number}").format(number=sampling.seed)


def _decimal(number: float) -> str:
    return f"{number:g}"


def cell_parts(generation: Generation) -> Iterator[Part]:
    """The parts of a notebook cell: the rule of choice, each token, and the text so far."""
    facts = [fact for fact in opening(generation).facts if fact[0] != _("text")]
    heads = (_("position"), _("token"), _("probability"), _("choice"), _("form"))
    kinds = ("number", "words", "number", "words", "formula")
    rows = []
    for chosen in generation.choices:
        made = choice(generation, chosen)
        form = "" if made.cell.form is None else write(made.cell.form)
        rows.append((made.position, made.token, one_line(made.cell), made.known, form))
    yield Facts((*facts, (_("text"), words.printable(generation.text))))
    if rows:
        yield Grid("", tuple(map(Column, heads, kinds)), tuple(rows))
    if ended := why_ended(generation):
        yield Finding(ended)


# ------------------------------------------------------------------ one token


def choice(generation: Generation, chosen: Chosen) -> Choice:
    """A token with its probability, and whether the choice is proven."""
    return Choice(
        position=str(chosen.position),
        token=words.token_label(chosen.token),
        cell=_cell(generation, chosen),
        known=verdict(generation, chosen),
        proven=chosen.proven,
        room=len(str(generation.last)),
    )


def verdict(generation: Generation, chosen: Chosen) -> str:
    """Whether the choice is proven or tied, in words; empty for floats without a tie."""
    if chosen.chance is not None:
        return _("drawn with {chance}, rank {rank}").format(
            chance=_fixed(chosen.chance), rank=whole(chosen.rank)
        )
    proof = _("proven") if chosen.proven else _("not proven")
    if not chosen.tied:
        return proof if chosen.proven else ""
    if len(chosen.tied) > MOST_TIED:
        tokens = amount(len(chosen.tied), later("1 token"), later("{count} tokens"))
    else:
        labels = [generation.model.outputs.tokens[id] for id in chosen.tied]
        tokens = words.joined([words.token_label(label) for label in labels])
    text = _("{tokens} tie; the lowest id is taken, {proof}")
    return text.format(tokens=tokens, proof=proof)


def _cell(generation: Generation, chosen: Chosen) -> Cell:
    if floats(np.asarray(chosen.probability)):
        return Cell("rounded", decimal=_fixed(float(chosen.probability)))
    return Forms(generation.numbers, digits=generation.digits).cell(chosen.probability)


def _fixed(number: float) -> str:
    """Four decimals; one significant digit if they would all be 0."""
    text = f"{number:.{PLACES}f}"
    return f"{number:.0e}" if number and not float(text) else text


# ------------------------------------------------------------------ the end


def closing(generation: Generation) -> Iterator[Finding]:
    """The whole text, and why it ends there."""
    yield Finding(
        "".join(s if s.isprintable() or s == "\n" else repr(s)[1:-1] for s in generation.text)
    )
    yield from map(Finding, filter(None, (why_ended(generation), proven_with(generation))))


def why_ended(generation: Generation) -> str:
    """Why a text ends early; empty if all tokens came."""
    match generation.ended:
        case "end token":
            token = words.token_label(generation.choices[-1].token)
            return _("{token} ends the text.").format(token=token)
        case "answer":
            token = words.token_label(generation.choices[-1].token)
            text = _("{token} is an answer and no token of the vocabulary, so nothing follows it.")
            return text.format(token=token)
        case "context":
            return _("The model's context of {count} tokens is full.").format(
                count=whole(generation.model.spec.context or 0)
            )
        case _:
            return ""


def proven_with(generation: Generation) -> str:
    """The precision that proved every token so far; empty if none was to be proven."""
    if generation.digits is None or not generation.choices:
        return ""
    bits: int = generation.numbers.bits  # type: ignore[attr-defined]
    return _("Proven with {bits} bits.").format(bits=whole(bits))

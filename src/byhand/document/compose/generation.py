"""A generation as people and programs read it: a title, a line a token, the text, or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.document import words
from byhand.document.compose.forms import DIGITS, PLACES, Forms
from byhand.document.media.json.records import enclosure_data, float_data, floats
from byhand.document.media.terminal.ink import Ink, padded, width_of, wrap
from byhand.document.media.terminal.parts import decimal_alone
from byhand.document.parts import Cell, Title
from byhand.document.words import whole
from byhand.expression import write
from byhand.language import _
from byhand.numbers.enclosed.enclosure import Enclosure

if TYPE_CHECKING:
    from byhand.generating import Chosen, Generation, Sampling

INDENT = "  "
TOKEN = 12  # columns of a token; a longer one takes what it needs
MOST_TIED = 4  # tokens of a tie that are named
DATA_PLACES = 10  # decimals beside a form in JSON


def opening(generation: Generation) -> Title:
    """What is generated from, and how."""
    model = generation.model
    facts = [
        (_("text"), words.printable(model.vocabulary.decode(generation.prompt))),
        (_("numbers"), _numbers(generation)),
    ]
    if generation.sampling is not None:
        facts.append((_("drawn"), ", ".join(_drawn(generation.sampling))))
    return Title(words.printable(model.name), "", tuple(facts), (), masked=False)


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


# ------------------------------------------------------------------ one token


def choice_lines(generation: Generation, chosen: Chosen, width: int, ink: Ink) -> Iterator[str]:
    """Position, token, probability, and what is known of the choice; the form where it fits.

    A probability of more digits than a line has room for gets lines of its own.
    """
    place = str(chosen.position).rjust(len(str(generation.last)))
    token = padded(words.token_label(chosen.token), TOKEN)
    cell = _cell(generation, chosen)
    said = verdict(generation, chosen)
    line = INDENT + INDENT.join([place, token, _shown(cell)])
    if generation.digits is not None and width_of(line) + len(INDENT) + width_of(said) > width:
        yield (INDENT + INDENT.join([place, token, ink(said, "exact")])).rstrip()
        lead = " " * (len(INDENT) + len(place) + len(INDENT))
        yield from wrap(_shown(cell), width, initial_indent=lead, subsequent_indent=lead + INDENT)
        return
    form = "" if cell.form is None else f"= {write(cell.form)}"
    plain = INDENT.join([line, said]) if said else line
    if width_of(plain) > width:
        lead = " " * (len(INDENT) + len(place) + len(INDENT))
        yield line.rstrip()
        for piece in wrap(said, width, initial_indent=lead, subsequent_indent=lead + INDENT):
            yield ink(piece, "exact" if chosen.proven else None)
    elif form and width_of(plain) + len(INDENT) + width_of(form) <= width:
        yield INDENT.join([line, ink(said, "exact"), ink(form, "quiet")])
    else:
        yield INDENT.join([line, ink(said, "exact" if chosen.proven else None)]).rstrip()


def verdict(generation: Generation, chosen: Chosen) -> str:
    """What is known of the choice, in words; of floats without a tie, nothing."""
    if chosen.chance is not None:
        return _("drawn with {chance}, rank {rank}").format(
            chance=_fixed(chosen.chance), rank=whole(chosen.rank)
        )
    proof = _("proven") if chosen.proven else _("not proven")
    if not chosen.tied:
        return proof if chosen.proven else ""
    if len(chosen.tied) > MOST_TIED:
        tokens = _("{count} tokens").format(count=whole(len(chosen.tied)))
    else:
        labels = [generation.model.vocabulary.tokens[id] for id in chosen.tied]
        tokens = words.joined([words.token_label(label) for label in labels])
    text = _("{tokens} tie; the lowest id is taken, {proof}")
    return text.format(tokens=tokens, proof=proof)


def _cell(generation: Generation, chosen: Chosen) -> Cell:
    if floats(np.asarray(chosen.probability)):
        return Cell("rounded", decimal=_fixed(float(chosen.probability)))
    return Forms(generation.numbers, digits=generation.digits).cell(chosen.probability)


def _shown(cell: Cell) -> str:
    """The decimals, in one column whatever the numbers are."""
    if cell.radius is not None:
        return f"  {cell.decimal} ± {cell.radius}"
    sign = "  " if cell.register == "rounded" else "= " if decimal_alone(cell) else "≈ "
    return sign + (cell.decimal or "")


def _fixed(number: float) -> str:
    """Four decimals; one significant digit where they would be zeros alone."""
    text = f"{number:.{PLACES}f}"
    return f"{number:.0e}" if number and not float(text) else text


# ------------------------------------------------------------------ the end


def closing_lines(generation: Generation, width: int) -> Iterator[str]:
    """The whole text, and why it ends where it does."""
    yield ""
    for line in generation.text.split("\n"):
        shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in line)
        yield from wrap(
            shown,
            width,
            initial_indent=INDENT,
            subsequent_indent=INDENT,
            break_on_hyphens=False,
        ) or [""]
    for sentence in (why_ended(generation), proven_with(generation)):
        if sentence:
            yield ""
            yield from wrap(sentence, width)


def why_ended(generation: Generation) -> str:
    """A sentence on why a text ends before its time; nothing where all tokens asked for came."""
    match generation.ended:
        case "end token":
            token = words.token_label(generation.choices[-1].token)
            return _("{token} ends the text.").format(token=token)
        case "context":
            return _("The model's context of {count} tokens is full.").format(
                count=whole(generation.model.spec.context or 0)
            )
        case _:
            return ""


def proven_with(generation: Generation) -> str:
    """The precision that has proven every token so far; nothing where none was to be proven."""
    if generation.digits is None or not generation.choices:
        return ""
    bits: int = generation.numbers.bits  # type: ignore[attr-defined]
    return _("Proven with {bits} bits.").format(bits=whole(bits))


# ------------------------------------------------------------------ JSON


def generation_data(generation: Generation) -> dict[str, Any]:
    """The generation as JSON has it: what has come so far, and `ended` null where it has not."""
    tokens = generation.model.vocabulary.tokens
    sampling = generation.sampling
    return {
        "model": generation.model.name,
        "numbers": generation.numbers.name,
        **_proof(generation),
        "tokens": [{"id": id, "text": tokens[id]} for id in generation.prompt],
        "sampling": None
        if sampling is None
        else {
            "temperature": float(sampling.temperature),
            "top_k": sampling.top_k,
            "top_p": None if sampling.top_p is None else float(sampling.top_p),
        },
        "seed": generation.seed,
        "generated": [_chosen_data(generation, chosen) for chosen in generation.choices],
        "added": generation.added,
        "text": generation.text,
        "ended": generation.ended,
    }


def _proof(generation: Generation) -> dict[str, Any]:
    """The digits that are proven and the precision it took; nothing where none were asked for."""
    if generation.digits is None:
        return {}
    return {"digits": generation.digits, "bits": getattr(generation.numbers, "bits", None)}


def _chosen_data(generation: Generation, chosen: Chosen) -> dict[str, Any]:
    value, decimal = _value(generation, chosen)
    return {
        "position": chosen.position,
        "id": chosen.id,
        "token": chosen.token,
        "text": chosen.text,
        "probability": value,
        "decimal": decimal,
        "proven": chosen.proven,
        "tied": list(chosen.tied),
        "rank": chosen.rank,
        "chance": chosen.chance,
    }


def _value(generation: Generation, chosen: Chosen) -> tuple[Any, str | None]:
    """(value, decimal) as in a trace; too long a form is told by its address in the trace of the
    text before the token."""
    entry = chosen.probability
    if isinstance(entry, Enclosure):
        return enclosure_data(entry, generation.digits or DIGITS)
    if floats(np.asarray(entry)):
        return float_data(np.asarray(entry)), None
    cell = Forms(generation.numbers, DATA_PLACES).cell(entry)
    if cell.radius is not None:
        return {"mid": cell.decimal, "rad": cell.radius}, None
    if cell.register == "rounded":
        return cell.decimal, cell.decimal
    if cell.form is None:
        return f"probs[{chosen.position - 1},{chosen.id}]", cell.decimal
    return write(cell.form), cell.decimal

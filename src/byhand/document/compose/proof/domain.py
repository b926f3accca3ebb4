"""The domain of a property as a picture: a row of cells for the texts of each shape."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from byhand.document import words
from byhand.document.compose.proof.wording import Speller, counted, equations, example, listed
from byhand.document.parts import DomainPicture, PlaceCell, TextShape
from byhand.language import _, amount, later
from byhand.proving.domain import Computed, Region, Shape, Whole
from byhand.proving.outcome import Outcome

_MEMBER = re.compile(r"\[([0-9]+)\]")
_INDEX = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
MOST_SHAPES = 8  # rows of cells
MOST_CELLS = 40  # of one row; of a longer text the first and the last
ENDS = 3  # of many shapes, so many of the last ones are shown


def picture(outcome: Outcome) -> DomainPicture:
    """The texts of every shape, with one of them below as an example.

    Where each shape goes on as the one before it, the longest stands for all.
    """
    model = outcome.property.model
    shapes = [goal.shape for goal in outcome.property.goals if goal.shape.after == 0]
    which, tokens, own = _example(outcome)
    if _grows(shapes):
        longest = _row(Speller(shapes[-1], model), tokens)
        rows = [replace(longest, about=_texts_of(outcome, len(shapes[0].places), shapes[-1]))]
        hidden = 0
    else:
        shown = shapes
        if len(shapes) > MOST_SHAPES:
            shown = [*shapes[: MOST_SHAPES - ENDS], *shapes[-ENDS:]]
        if own is not None and own not in shown:
            shown[-1] = own
        rows = [_row(Speller(shape, model), tokens if shape is own else ()) for shape in shown]
        hidden = len(shapes) - len(shown)
    return DomainPicture(
        "; ".join(map(_told, rows)),
        tuple(rows),
        which if any(cell.example for row in rows for cell in row.cells) else "",
        amount(hidden, later("1 more shape"), later("{count} more shapes")) if hidden else "",
    )


def _grows(shapes: Sequence[Shape]) -> bool:
    """Whether each of several shapes has one position more than the one before it."""
    return len(shapes) > 1 and all(
        other.places[:-1] == one.places and other.conditions == one.conditions
        for one, other in pairwise(shapes)
    )


def _texts_of(outcome: Outcome, shortest: int, longest: Shape) -> str:
    """How many texts there are of all lengths."""
    text = _("{count} texts of {least} to {most} tokens")
    if outcome.texts is None:
        text = _("texts of {least} to {most} tokens")
    count = counted(outcome.texts or 0)
    return text.format(count=count, least=shortest, most=len(longest.places))


def _example(outcome: Outcome) -> tuple[str, tuple[int, ...], Shape | None]:
    """The text below the cells: the counterexample, or the one with the least lead."""
    found = outcome.counterexample
    if found is not None:
        shape = outcome.property.goals[found.goal].shape
        return _("the counterexample"), found.tokens, _began(outcome, shape)
    least = outcome.least
    if least is None or least.region is None:
        return "", (), None
    began = _began(outcome, least.region.shape)
    if least.where:
        return _("the text with the least lead"), least.where, began
    return _("a text of the tightest case"), example(least.region), began


def _began(outcome: Outcome, shape: Shape) -> Shape | None:
    """The shape before a continuation added places to it."""
    own = shape.places[: len(shape.places) - shape.after]
    for goal in outcome.property.goals:
        if goal.shape.after == 0 and (goal.shape is shape or goal.shape.places == own):
            return goal.shape
    return None


def _row(speller: Speller, example: tuple[int, ...]) -> TextShape:
    shape = speller.shape
    whole = shape.whole
    cells = [
        _cell(speller, whole, at, speller.token(example[at]) if at < len(example) else "")
        for at in range(len(shape.places))
    ]
    if len(cells) > MOST_CELLS:
        half = MOST_CELLS // 2
        more = _("{count} more").format(count=words.whole(len(cells) - 2 * half))
        cells = [*cells[:half], PlaceCell("more", f"… {more} …"), *cells[-half:]]
    conditions = (f"{speller.number(number)} ≥ 0" for number in shape.conditions)
    return TextShape(tuple(cells), _texts(whole), (*_ranges(speller, whole), *conditions))


def _cell(speller: Speller, whole: Region | None, at: int, example: str) -> PlaceCell:
    """One position: its token, its variable or its relation, and the tokens it may be."""
    place = speller.shape.places[at]
    ids = [*place.tokens.values()]
    if whole is not None:
        ids = [place.tokens[value] for value in whole.values_at(place) if value in place.tokens]
    spelled = [speller.token(id) for id in ids]
    if len(set(ids)) == 1:
        return PlaceCell("fixed", spelled[0])
    unnamed = ((f"text[{at}]",), (speller.lines,))
    if isinstance(place.value, Whole) and place.value.names in unnamed:
        return PlaceCell("free", listed(spelled), "", example)
    if isinstance(place.value, Computed):
        return PlaceCell("bound", place.value.source or "f", listed(spelled), example)
    free = len(place.value.factors) == 1 and place.value.factors[0][0] in speller.spelled
    kind = "free" if free and not place.value.constant else "bound"
    name = _MEMBER.sub(_lowered, speller.number(place.value))
    return PlaceCell(kind, name, listed(spelled), example)


def _lowered(member: re.Match[str]) -> str:
    """The place of a variable in its list, as an index below the line."""
    return member[1].translate(_INDEX)


def _ranges(speller: Speller, whole: Region | None) -> Iterator[str]:
    """Variables that no place spells have their ranges below the cells."""
    allowed = {} if whole is None else whole.allowed
    return equations(
        {
            name: speller.values(name, values)
            for name, values in allowed.items()
            if name not in speller.spelled and len(values) > 1
        }
    )


def _texts(whole: Region | None) -> str:
    """How many texts a shape has."""
    if whole is None:
        return _("no text")
    if whole.texts is None:
        return _("at most {count} texts").format(count=counted(whole.box))
    if whole.texts == 1:
        return _("1 text")
    return _("{count} texts").format(count=counted(whole.texts))


def _told(row: TextShape) -> str:
    """A shape in words: each position, then how many texts."""
    cells = " ".join(
        f"{cell.text} ({cell.values})" if cell.values else cell.text for cell in row.cells
    )
    return ", ".join((cells, row.about, *row.conditions))

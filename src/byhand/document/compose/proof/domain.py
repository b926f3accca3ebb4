"""The domain of a property as a picture: a row of cells for the texts of each shape."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document import words
from byhand.document.compose.proof.wording import Speller, counted, equations, example, listed
from byhand.document.parts import DomainPicture, PlaceCell, TextShape
from byhand.language import _
from byhand.proving.domain import Computed, Region, Shape, Whole
from byhand.proving.outcome import Outcome

MOST_SHAPES = 8  # rows of cells
MOST_CELLS = 40  # of one row; of a longer text the first and the last
ENDS = 3  # of many shapes, so many of the last ones are shown


def picture(outcome: Outcome) -> DomainPicture:
    """The texts of every shape, with one of them below as an example."""
    model = outcome.property.model
    shapes = [goal.shape for goal in outcome.property.goals if goal.shape.after == 0]
    which, tokens, own = _example(outcome)
    shown = shapes
    if len(shapes) > MOST_SHAPES:
        shown = [*shapes[: MOST_SHAPES - ENDS], *shapes[-ENDS:]]
    if own is not None and own not in shown:
        shown[-1] = own
    rows = tuple(_row(Speller(shape, model), tokens if shape is own else ()) for shape in shown)
    hidden = len(shapes) - len(shown)
    return DomainPicture(
        "; ".join(map(_told, rows)),
        rows,
        which,
        _("{count} more shapes").format(count=words.whole(hidden)) if hidden else "",
    )


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
    return PlaceCell(kind, speller.number(place.value), listed(spelled), example)


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

"""The standings of next tokens as a table: rank, margin and entropy, and the mean below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from byhand.document import words
from byhand.document.compose.steps import Steps
from byhand.document.parts import Cell, Column, Facts, Grid
from byhand.expression import write
from byhand.language import _, amount, later
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.standings import Standing


def shown(cell: Cell) -> str:
    """A number in a cell of words: an exact one as it is, others by their decimals."""
    if cell.plain and cell.form is not None:
        return write(cell.form)
    if cell.decimal is None:
        return "–" if cell.form is None else write(cell.form)
    if cell.radius is not None:
        return f"{cell.decimal} ± {cell.radius}"
    return ("≈ " if cell.register == "named" or cell.cut else "") + cell.decimal


Says = Callable[[Cell], str]


def standing_table(
    showing: Steps, places: Sequence[int], say: Says = shown, *, logs: bool = False
) -> Grid | None:
    """The rank of each known next token at these positions, with margin and entropy.

    With `logs`, its log-probability too.
    """
    standings = showing.trace.standings or ()
    known = [place for place in places if place < len(standings) and standings[place] is not None]
    rows = tuple(_row(showing, place, standings[place], say, logs) for place in known)
    if not rows:
        return None
    hidden = sum(each is not None for each in standings) - len(rows)
    columns = (
        Column(_("next token")),
        *([Column(_("ln p"), "number")] if logs else ()),
        Column(_("rank"), "number"),
        Column(_("margin"), "number"),
        Column(_("entropy"), "number"),
    )
    return Grid(
        "",
        columns,
        rows,
        left_out=amount(hidden, later("1 more position"), later("{count} more positions"))
        if hidden
        else "",
    )


def _row(
    showing: Steps, place: int, standing: Standing | None, say: Says, logs: bool
) -> tuple[str, ...]:
    assert standing is not None
    label = f"{showing.labels[place]} → {showing.answer(standing.id)}"
    first = (say(cell_of(showing, standing.logprob)),) if logs else ()
    margin = "–" if standing.margin is None else say(showing.margin(standing.margin))
    entropy = say(cell_of(showing, standing.entropy))
    return label, *first, rank_said(showing, standing), margin, entropy


def rank_said(showing: Steps, standing: Standing) -> str:
    """The rank; where it is open, the ranks that are possible and the tokens that decide it."""
    if standing.rank is not None:
        return words.whole(standing.rank)
    tokens = words.some_of([showing.answer(id) for id in standing.rivals])
    least, most = standing.lowest, standing.lowest + len(standing.rivals)
    return _("{least} to {most}; open against {tokens}").format(
        least=words.whole(least), most=words.whole(most), tokens=tokens
    )


def cell_of(showing: Steps, number: Any) -> Cell:
    """A number that is no entry of a step, short enough for a table."""
    if isinstance(number, Enclosure):
        return showing.margin(number)
    return showing.forms.cell(number, form=False)


def mean_said(showing: Steps, say: Says = shown) -> Iterator[Facts]:
    """The mean of the log-probabilities, and the perplexity that follows from it."""
    trace = showing.trace
    if trace.mean_logprob is None:
        return
    yield Facts(
        (
            (_("mean ln p"), say(cell_of(showing, trace.mean_logprob))),
            (_("perplexity"), say(cell_of(showing, trace.perplexity))),
        )
    )

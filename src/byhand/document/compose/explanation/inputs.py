"""The section on every text: its next token, and the parts that this needs.

The facts come from `explaining.inputs`; undecided ones are told as undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.wording import part_name, quoted, why_untold
from byhand.document.parts import Column, Finding, Grid, Part
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.explaining.inputs import Row, Table

MOST_TOKENS = 12  # tokens whose rules are told
MOST_ROWS = 12  # texts that are listed one by one
MOST_TEXTS = 4  # texts named in one sentence


def parts(scope: Scope) -> Iterator[Part]:
    """Every text up to a length, and what decides its next token."""
    table = scope.found.inputs
    yield finding_of(tell_inputs(table))
    if table.missing is None and table.rows:
        yield _grid(scope, table)


def finding_of(sentences: Sequence[str], unknown: bool = False) -> Finding:
    """A finding led by the first sentence."""
    return Finding(sentences[0], tuple(sentences[1:]), unknown)


def _grid(scope: Scope, table: Table) -> Grid:
    """A row for each text: its next token, how much of the text decides, and the needed parts."""
    shown = table.rows if scope.every else table.rows[:MOST_ROWS]
    rows = tuple(
        (
            _written(scope, row.tokens, table.model.vocabulary.decode(row.tokens)),
            scope.leader(row.prediction),
            _("proven") if row.prediction.proven else _("not proven"),
            "?" if row.suffix is None else str(row.suffix),
            ", ".join(part.address for part in table.needed(row)),
        )
        for row in shown
    )
    title = _("every text of one token")
    if table.length > 1:
        title = _("every text of up to {count} tokens").format(count=table.length)
    hidden = len(table.rows) - len(shown)
    return Grid(
        title,
        (
            Column(_("text")),
            Column(_("next")),
            Column(""),
            Column(_("last tokens that decide"), "number"),
            Column(_("needs")),
        ),
        rows,
        left_out=amount(hidden, later("1 more text"), later("{count} more texts"))
        if hidden
        else "",
    )


def _written(scope: Scope, tokens: Sequence[int], text: str) -> str:
    """A text as written; by its tokens if it would show nothing."""
    return words.printable(text) if text.strip() else " ".join(map(scope.token, tokens))


def tell_inputs(table: Table) -> tuple[str, ...]:
    """The table of every text in sentences: rules, exceptions, and needed parts."""
    if table.missing is not None:
        text = _("Nothing can be said about the texts: {reason}.")
        return (text.format(reason=why_untold(table.missing)),)
    return tuple(_inputs(table))


def _inputs(table: Table) -> Iterator[str]:
    count = len(table.rows)
    names = {"count": words.whole(count), "length": table.length}
    if len(table.tokens) < table.model.spec.vocab:
        names["tokens"] = words.some_of([_token(table, id) for id in table.tokens])
        yield _("{count} texts of up to {length} tokens, made of {tokens}.").format(**names)
    elif table.length == 1:
        yield _("There are {count} texts of one token.").format(**names)
    else:
        yield _("There are {count} texts of up to {length} tokens.").format(**names)
    yield from _others(table)
    if table.proven == count:
        yield _("Every prediction is proven.")
    else:
        text = _("{proven} of {count} predictions are proven; the others are undecided.")
        yield text.format(proven=words.whole(table.proven), count=words.whole(count))
    yield from _rules(table)
    yield from _needs(table)


def _others(table: Table) -> Iterator[str]:
    """The texts not in the table: those too short to read, and longer ones."""
    if table.unread:
        text = _("Texts of {lengths} tokens are left out: a position of theirs may look at no key.")
        if table.unread == (1,):
            text = _("Texts of one token are left out: a position of theirs may look at no key.")
        yield text.format(lengths=words.joined([str(length) for length in table.unread]))
    context = table.model.spec.context
    if context is None:
        yield _("Longer texts are not looked at.")
    elif table.length < context:
        text = _("Longer texts, of up to {context} tokens, are not looked at.")
        yield text.format(context=words.whole(context))


def _rules(table: Table) -> Iterator[str]:
    """How much of a text decides, and which token follows which last token."""
    if table.suffix == 0:
        (usual,) = {row.prediction.id for row in table.rows}
        assert usual is not None
        yield _("Whatever the text is, {next} comes next.").format(next=_token(table, usual))
        return
    known = [one for one in table.endings if one.usual is not None]
    rules = [
        _("after {token} comes {next}").format(
            token=quoted(table.model.vocabulary.tokens[one.token]), next=_token(table, one.usual)
        )
        for one in known
        if one.usual is not None
    ]
    told = words.some_of(rules, MOST_TOKENS)
    ways = {one.usual for one in known}
    if table.suffix == 1:
        yield _("The last token alone decides: {rules}.").format(rules=told)
        return
    if table.suffix is not None and table.suffix < table.length:
        yield _("The last {count} tokens decide.").format(count=table.suffix)
    others = [row for one in table.endings for row in one.others]
    names = {
        "rules": told,
        "held": words.whole(len(table.rows) - len(others)),
        "count": words.whole(len(table.rows)),
        "others": words.some_of([_exception(table, row) for row in others], MOST_TEXTS),
    }
    if len(ways) == 1:
        text = _("After {held} of {count} texts {next} comes next, but not after {others}.")
        yield text.format(**names, next=_token(table, *ways))
        return
    yield _("By the last token alone, {rules}: so it is after {held} of {count} texts, but not "
            "after {others}.").format(**names)  # fmt: skip


def _exception(table: Table, row: Row) -> str:
    if row.prediction.id is None:
        return _("{text} (undecided)").format(text=_text(table, row))
    next = _token(table, row.prediction.id)
    return _("{text} ({next})").format(text=_text(table, row), next=next)


def _needs(table: Table) -> Iterator[str]:
    """After how many texts each part is needed, and where that is undecided."""
    for part in table.parts:
        rows = [row for row in table.rows if part in table.needed(row)]
        names = {
            "part": part_name(part, table.model.spec),
            "needed": words.whole(len(rows)),
            "count": words.whole(len(table.rows)),
            "texts": words.some_of([_text(table, row) for row in rows]),
        }
        if not rows:
            text = _("Without {part} no prediction changes.")
        elif len(rows) <= MOST_TEXTS:
            text = _("Without {part} the prediction changes after {needed} of {count} texts: "
                     "{texts}.")  # fmt: skip
        else:
            text = _("Without {part} the prediction changes after {needed} of {count} texts.")
        unsure = sum(part in table.undecided(row) for row in table.rows)
        if unsure:
            if not rows:
                text = _("Without {part} no prediction changes that is decided.")
            one = unsure == 1
            text += " " + (
                _("After one text that is undecided.")
                if one
                else _("After {unsure} texts that is undecided.")
            )
        yield text.format(**names, unsure=words.whole(unsure))


def _token(table: Table, id: int | None) -> str:
    assert id is not None
    return quoted(table.model.outputs.tokens[id])


def _text(table: Table, row: Row) -> str:
    return quoted(table.model.vocabulary.decode(row.tokens))

"""The section on gradients: what the loss depends on and pulls at, and how far that is true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from byhand.document.compose.explanation.numerals import share, slight
from byhand.document.compose.explanation.scope import Scope, numbers
from byhand.document.compose.explanation.wording import part_name, why_untold
from byhand.document.parts import Column, Grid, Part, Remark
from byhand.document.words import whole
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.explaining.saliency import Pull, Removal, Saliency

MOST = 12  # rows of a table that is not shown in full
SURE = 0.05  # a loss below which the slopes are nearly flat
TRUSTED = 0.9  # share of pairs in the right order from which the gradient is a good guide


def parts(scope: Scope) -> Iterator[Part]:
    """Tokens and parts with the change of the loss without them, said and found; then weights."""
    found = scope.found.saliency
    if found is None:
        text = _("What the loss depends on cannot be said: no token is predicted.")
        yield Remark("open", text)
        return
    if found.missing is not None:
        text = _("What the loss depends on cannot be said: {reason}.")
        yield Remark("open", text.format(reason=why_untold(found.missing)))
        return
    most = None if scope.every else MOST
    words = [scope.place(each.part.index or 0) for each in found.words]
    yield _removals(_("without each token"), _("token"), found.words, words, most)
    spec = scope.found.model.spec
    names = [part_name(each.part, spec) for each in found.parts]
    yield _removals(_("without each part of the model"), _("part"), found.parts, names, most)
    yield Remark("closing", _trust(found))
    yield _pulls(found.pulls, most)


def _removals(
    title: str, head: str, removals: Sequence[Removal], names: Sequence[str], most: int | None
) -> Grid:
    """The removals with the largest effects, in the order of the text or the model."""
    sizes = sorted((abs(each.found) for each in removals), reverse=True)
    least = 0.0 if most is None or len(sizes) <= most else sizes[most - 1]
    shown = [
        (name, slight(each.said), slight(each.found), _verdict(each))
        for name, each in zip(names, removals, strict=True)
        if abs(each.found) >= least
    ]
    left = len(removals) - len(shown)
    return Grid(
        title,
        (*numbers(Column(head), (_("said"), _("found"))), Column("")),
        tuple(shown),
        left_out=_("{count} with smaller effects").format(count=whole(left)) if left else "",
    )


def _verdict(removal: Removal) -> str:
    return "" if removal.agrees else _("the other way")


def _trust(found: Saliency) -> str:
    """How far the gradient's order is the true one, and why not further."""
    if found.order is None:
        return _("No removal changes the loss: there is nothing to put in order.")
    names = {"share": share(found.order), "loss": slight(found.loss).removeprefix("+")}
    if found.order >= TRUSTED:
        text = _("The gradient puts {share} of all pairs in the right order.")
    elif found.loss < SURE:
        text = _(
            "The gradient puts {share} of all pairs in the right order. The loss is {loss}: where "
            "a model is sure, slopes are flat and say little about removals."
        )
    else:
        text = _(
            "The gradient puts {share} of all pairs in the right order: the slope here "
            "does not hold all the way to 0."
        )
    return text.format(**names)


def _pulls(pulls: Sequence[Pull], most: int | None) -> Grid:
    """The weights that the loss would move most, and their foremost entries."""
    rows = tuple(
        (
            pull.name,
            slight(pull.size).removeprefix("+"),
            "   ".join(
                f"[{','.join(map(str, index))}] {slight(-value)}" for index, value in pull.foremost
            ),
        )
        for pull in pulls[:most]
    )
    left = len(pulls) - len(rows)
    return Grid(
        _("where the loss would fall fastest: each weight moves against its gradient"),
        (Column(_("weight"), "address"), Column(_("size"), "number"), Column(_("foremost"))),
        rows,
        left_out=amount(
            left,
            later("1 weight with a smaller gradient"),
            later("{count} weights with smaller gradients"),
        )
        if left
        else "",
    )

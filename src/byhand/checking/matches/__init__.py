"""From the names of a sheet to claims at addresses, in byhand's axes, text by text.

    texts     which texts: rows of a batch, padding    names    what a name stands for, its index
    overlaps  what is claimed twice                    layouts  whose axes come in which order
    learned   gradients, moments, new weights          plans    the steps that are claimed
    choices   chosen experts given as ids              placing  arrays made claims
    echoed    log-probabilities beside their own tokens

An unknown name is listed with the nearest known ones, never dropped.  An array of another shape is
listed too.  A handwritten line that does not fit is an error, since its author can correct it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.claims import DIRECTION, Claim, ClaimedText, Entry, Sheet, Unmatched
from byhand.checking.dumps import NameMap, Text, View, precision_of, reread
from byhand.checking.matches.choices import marked_ids
from byhand.checking.matches.echoed import at_their_positions
from byhand.checking.matches.layouts import part_of
from byhand.checking.matches.learned import (
    learning,
    names_targets,
    rule_of,
    side_by_side,
    targets_of,
)
from byhand.checking.matches.names import (
    COUNT,
    Found,
    Known,
    Named,
    after_gain_and_bias,
    beside_the_norm,
    index_of,
    read_name,
)
from byhand.checking.matches.overlaps import without_repetitions
from byhand.checking.matches.placing import Misfit, claim_of, cut, fitted, tidied, turned
from byhand.checking.matches.plans import widest_plan
from byhand.checking.matches.texts import Row, ids_of, names_the_text, rows_of
from byhand.checking.optimizers import EXAMPLE
from byhand.checking.readers.handwriting import POINTING, unread
from byhand.errors import ByhandError, InputError, ShapeError
from byhand.files.mapped import shown
from byhand.language import _
from byhand.model import Model
from byhand.optimizer import UPDATE, Rule
from byhand.worked import ABSENT_AS

IDS = ("tokens", "source", "target", "next")  # steps whose values are token ids
LOSS, MEAN_LOSS = "loss", "mean_loss"
SHARED = ("embed.position", "encoder.embed.position")  # one row may hold for the whole batch


def match(
    sheet: Sheet,
    model: Model,
    text: str | None = None,
    target: str | None = None,
    *,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    names: NameMap | None = None,
) -> tuple[ClaimedText, ...]:
    """Every claim of the sheet at its address, one ClaimedText for each text of the sheet.

    The text is `text`, else that of the claims, else the model's own; so is the `source` that an
    encoder reads.  `names` explains names of the dump's own.  An InputError where sources
    contradict each other, where handwriting does not fit, or where no name is known.
    """
    rows = rows_of(sheet, model, text, source, segments)
    goal = _target(sheet, model, rows, text, target)
    learns = learning(sheet.entries)
    if learns and names_targets(sheet) and not (target or sheet.target):
        goal = None  # not the model's own
    rule = rule_of(sheet)
    widest = widest_plan(model, rows, learns, rule)
    known = Known(model, widest, after_gain_and_bias(sheet.entries, model))
    matching = _Matching(known, rows, goal is not None, learns, rule, sheet.marks)
    matching.unmatched += beside_the_norm(sheet.entries)
    aside = {each.name for each in matching.unmatched}
    claims = [each for each in sheet.entries
              if not names_the_text(each) and each.name not in aside]  # fmt: skip
    view = _view(known, rows, claims)
    entries, left = reread(claims, view, names)
    matching.unmatched += left
    aimed = target is not None or sheet.target is not None or names_targets(sheet)
    echoed = len(rows) == 1 and not aimed
    for entry in entries:
        matching.add(at_their_positions(entry, len(rows[0].tokens)) if echoed else entry)
    if not any(matching.claims):
        _nothing(sheet, matching.unmatched)
    order = {step.address: place for place, step in enumerate(known.plan)}
    found = tuple(
        ClaimedText(
            text=row.text,
            tokens=row.tokens,
            claims=tuple(
                sorted(
                    without_repetitions(claims, matching.shapes_for(row)),
                    key=lambda claim: order.get(claim.address, -1),
                )
            ),
            unmatched=tuple(matching.unmatched),
            target=goal,
            precision=sheet.precision or precision_of(view),
            label=sheet.label,
            positions=row.positions,
            masks=row.masks,
            padding=(row.before, row.behind),
            marks=sheet.marks,
            learning=learns,
            targets=targets_of(sheet, model, row, goal) if learns else None,
            rule=rule,
            source=row.source,
            segments=row.segments,
        )
        for row, claims in zip(rows, matching.claims, strict=True)
    )
    if not learns or len(found) == 1:
        return found
    return (side_by_side(found, model, {step.address: step.axes for step in known.plan}),)


def _view(known: Known, rows: tuple[Row, ...], entries: list[Entry]) -> View:
    """What the dump is read against: the plan of its width, and the names that are known."""

    def address(name: str) -> str | None:
        found = known.look_up(name)
        return None if found is None else found.address

    named = {entry.name: entry for entry in entries}
    return View(known.model, known.plan, text_of(rows), named, address)


def text_of(rows: tuple[Row, ...]) -> Text | None:
    """The text of a dump that has one, without padding and with every block's own mask."""
    row = rows[0]
    alone = len(rows) == 1 and not (row.before or row.behind) and row.masks is None
    return Text(row.tokens, row.positions) if alone else None


def _target(
    sheet: Sheet, model: Model, rows: tuple[Row, ...], text: str | None, target: str | None
) -> int | None:
    """The target asked for, else that of the claims, else the model's own for its own text."""
    word = target or sheet.target
    if model.in_place:
        return None  # its losses are those of places: targets or labels say which
    if word is None and model.text is not None and model.target is not None:
        own = model.read(model.text)
        if all(row.tokens == own for row in rows):
            word = model.target
    return None if word is None else model.outputs.id(word)


def _nothing(sheet: Sheet, unmatched: list[Unmatched]) -> None:
    first = unmatched[0] if unmatched else None
    unknown = _("nothing here has this name")
    known = next((each for each in unmatched if each.reason != unknown), None)
    if known is not None:  # the name is right, but its index or array is wrong
        raise sheet.wrong(
            _("none of the claims can be judged"),
            found=f"{shown(known.name)}: {known.reason}",
            hint=known.hint,
        )
    raise sheet.wrong(
        _("none of the claims is about this model"),
        expected=_("addresses of byhand, TransformerLens hooks or Hugging Face modules"),
        found=", ".join(shown(each.name) for each in unmatched[:8]) + ", …" * (len(unmatched) > 8),
        hint=None if first is None else first.hint or first.reason,
    )


# ------------------------------------------------------------------ entry by entry


class _Matching:
    """The claims found so far, a list for each row, and the unknown names."""

    def __init__(
        self,
        known: Known,
        rows: tuple[Row, ...],
        target: bool,
        learns: bool = False,
        rule: Rule | None = None,
        answers: Collection[str] = (),
    ) -> None:
        self.known, self.rows, self.target = known, rows, target
        self.learns, self.rule = learns, rule
        self.answers = answers  # the names of lines that earn marks on a worksheet
        self.claims: tuple[list[Claim], ...] = tuple([] for _row in rows)
        self.unmatched: list[Unmatched] = []
        self.shapes: dict[str, tuple[Found, tuple[int, ...]]] = {}

    def add(self, entry: Entry) -> None:
        """Adds one entry of the sheet at its address, for every row."""
        try:
            self._add(entry)
        except ByhandError as error:
            if entry.unread or entry.name not in self.answers:
                raise
            try:
                self._add(replace(entry, values=_uncapitalised(entry.values)))
            except ByhandError:
                self._add(unread(entry, self._why_unread(entry, error)))

    def _why_unread(self, entry: Entry, error: ByhandError) -> str:
        """Why a student's answer is none: it has too many numbers, or it is no word."""
        named, found = self._found(entry)
        if not isinstance(error, ShapeError) or not found.axes:
            return error.message
        index = index_of(named, found.axes, found.shape, self.rows[0], self.known.model)
        asked = int(np.prod(part_of(found.axes, found.shape, index).shape))
        text = _("{count} numbers are written; {asked} are asked for")
        if asked == 1:
            text = _("{count} numbers are written; one is asked for")
        elif entry.values.size == 1:
            text = _("one number is written; {asked} are asked for")
        return text.format(count=entry.values.size, asked=asked)

    def _add(self, entry: Entry) -> None:
        try:
            for row, claim in self._claims(entry):
                self.claims[row].append(claim)
        except Misfit as misfit:
            if misfit.error is not None and entry.format is None:
                raise misfit.error from None
            self._leave_aside(entry, misfit.reason, misfit.hint, misfit.known)
        except ByhandError as error:
            if entry.format is None:
                raise _located(error, entry) from None
            self._leave_aside(entry, error.message, error.hint, True)

    def _leave_aside(self, entry: Entry, reason: str, hint: str | None, misfit: bool) -> None:
        said = entry.said or entry.name
        self.unmatched.append(Unmatched(said, entry.source, reason, hint, misfit))

    def _claims(self, entry: Entry) -> Iterator[tuple[int, Claim]]:
        named, found = self._found(entry)
        if entry.problem is not None:
            raise Misfit(entry.problem)
        if found.address == LOSS and self.learns and not self.target:  # the loss of a text
            named, found = self._found(replace(entry, name=MEAN_LOSS))
        self.shapes[found.address] = found, found.shape
        if found.address.startswith(UPDATE) and self.rule is None:
            reason = _("an update needs its optimizer")
            hint = _("say which: optimizer: {example}").format(example=EXAMPLE)
            raise Misfit(reason, hint=hint, error=InputError(
                reason, where=entry.source, expected=_("an optimizer"), hint=hint
            ))  # fmt: skip
        if found.address == LOSS and not self.target:
            reason = _("a loss needs a target")
            hint = _("say which token should come next: target")
            raise Misfit(reason, hint=hint, error=InputError(
                reason, where=entry.source, expected=_("a target"), hint=hint
            ))  # fmt: skip
        index = index_of(named, found.axes, found.shape, self.rows[0], self.known.model)
        part = part_of(found.axes, found.shape, index)
        entry = self._in_numbers(entry, found)
        if found.op == "choose":
            count = self.known.plan[found.address].attributes["count"]
            entry = marked_ids(entry, part, count)
        if not found.step:
            turn = fitted(entry, part, found, 1)
            values = turned(entry, turn, part)
            yield 0, claim_of(entry, found, values, 0, tidied(index, found.shape))
            return
        turn = fitted(entry, part, found, len(self.rows))
        arrays = turned(entry, turn, part)
        for place, row in enumerate(self.rows):
            places = cut(index, found, row)
            if places is not None:
                yield place, claim_of(entry, found, arrays, place, *places)

    def _found(self, entry: Entry) -> tuple[Named, Found]:
        """What the entry's name means; an index may also be part of a module's name."""
        name = entry.name.strip()
        if entry.kind == DIRECTION:
            name = name.removeprefix(POINTING)
        whole = self.known.look_up(name)
        if whole is not None:
            return Named(name), self._in_style(whole, entry)
        named = read_name(name)
        found = self.known.look_up(named.name)
        if found is None:
            reason = entry.problem or _("nothing here has this name")
            hint = None if entry.problem else self.known.hint(named.name or name)
            raise Misfit(reason, hint=hint, known=False)
        return named, self._in_style(found, entry)

    def _in_style(self, found: Found, entry: Entry) -> Found:
        return replace(found, style=entry.style) if entry.style else found

    def _in_numbers(self, entry: Entry, found: Found) -> Entry:
        """The entry in numbers: tokens as ids, ids and counts exact, masked entries as floats."""
        values, slack = entry.values, entry.slack
        if found.address in IDS:
            model = self.known.model
            tokens = {"tokens": model.vocabulary, "source": model.source_vocabulary}
            known = tokens.get(found.address, model.outputs)
            ids = ids_of(values, known, entry.source, entry.claimed)
            return replace(entry, values=ids.astype(np.float64), slack=0.0)
        if values.dtype.kind == "O":
            raise Misfit(_("it holds text, not numbers"))
        if values.dtype.kind in "iu":
            values = values.astype(np.float64)
        if found.address.startswith(COUNT):
            whole = (np.asarray(slack) == 0.5) & (values == np.rint(values))
            slack = np.where(whole, 0.0, slack)
        if entry.format is None and np.isinf(values).any():
            values = _masked(values, entry, found)
        return replace(entry, values=values, slack=slack)

    def shapes_for(self, row: Row) -> dict[str, tuple[int, ...]]:
        """The shapes of the claimed steps and weights, at the length of a row."""

        def own(axis: str, size: int) -> int:
            return size - sum(row.padding(axis) or ())

        return {
            address: tuple(
                own(axis, size) if found.step else size
                for axis, size in zip(found.axes, shape, strict=True)
            )
            for address, (found, shape) in self.shapes.items()
        }


def _uncapitalised(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Words as a vocabulary may spell them: people begin an answer with a capital."""
    if words.dtype.kind != "O":
        return words
    lowered = np.empty(words.shape, dtype=object)
    lowered.reshape(-1)[:] = [str(word).lower() for word in words.reshape(-1)]
    return lowered


def _located(error: ByhandError, entry: Entry) -> ByhandError:
    """The error with the file and line of the claim added."""
    if error.where is None or not error.where.startswith(entry.source):
        error.where = f"{entry.source}: {entry.name}"
    return error


def _masked(values: npt.NDArray[Any], entry: Entry, found: Found) -> npt.NDArray[Any]:
    if found.op not in ABSENT_AS or found.axes[-1] not in ("key", "source_key"):
        raise InputError(
            _("only scores and weights of attention can be masked"),
            where=f"{entry.source}: {entry.name}",
            expected=_("a number"),
            found="masked",
        )
    return np.where(np.isinf(values), ABSENT_AS[found.op], values)


__all__ = ["match", "plan_for", "text_of"]

"""A document's printed numbers, marked: each line with its verdict, in the book's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from byhand.address import write_index
from byhand.document import words
from byhand.document.compose.book.spoken_numbers import in_brackets
from byhand.document.compose.marked import (
    claimed_text,
    short_source,
    told,
    verdict_line,
    worst_texts,
)
from byhand.document.numerals import localised, with_decimal_sign
from byhand.document.parts import Remark
from byhand.document.parts.verdicts import VerdictLine
from byhand.language import _
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.checking.verdicts import Marked, Marking
    from byhand.document.compose.book.edition import Edition

MOST_PRINTED = 12  # numbers of one claim that a sentence lists
APART = ("share", "source")  # sentences of a marking that a book leaves out, or shows elsewhere
IDS = ("tokens", "next", "target")  # steps whose numbers are words of the vocabulary


class Claims:
    """The marked claims about one text, for a book."""

    def __init__(self, marking: Marking, trace: Trace) -> None:
        self.trace = trace
        texts = [text for text in marking.texts if tuple(text.tokens) == trace.tokens]
        self.lines = tuple(line for text in texts for line in text.lines)

    @property
    def checked(self) -> tuple[VerdictLine, ...]:
        """Every line, in spine order."""
        return tuple(map(self._checked, self.lines))

    @property
    def at_numbers(self) -> dict[str, VerdictLine]:
        """The printed numbers that do not follow, by address."""
        found: dict[str, VerdictLine] = {}
        for line in self.lines:
            if line.verdict.follows is False and line.shares is not None:
                found.update(self._outside(line))
        return found

    # ------------------------------------------------------------------ one line

    def _checked(self, line: Marked) -> VerdictLine:
        sentences = [(kind, text) for kind, text in told(line, localised) if kind not in APART]
        return replace(
            verdict_line(line),
            claimed=self._printed(line),
            expected=self._expected(line) if line.verdict.follows is False else "",
            told=tuple(
                (kind, with_decimal_sign(text) if kind == "suspect" else text)
                for kind, text in sentences  # a change is left as written
            ),
            source=short_source(line.claim.source),
        )

    def _expected(self, line: Marked) -> str:
        """The value that follows from the lines above: a number, a row, or the worst entry."""
        if line.worst is None:
            return ""
        known = {tuple(one.index): one for one in (*line.among, line.worst)}
        places = list(np.ndindex(np.shape(line.claim.values)))
        found = [known.get(line.claim.in_whole(inside)) for inside in places]
        if all(one is not None for one in found) and len(found) > 1:
            return in_brackets(
                [localised(worst_texts(line, one)[1]) for one in found if one is not None]
            )
        worst = localised(worst_texts(line, line.worst)[1])
        return worst if len(places) == 1 else f"{write_index(line.worst.index)} {worst}"

    def _printed(self, line: Marked) -> str:
        """The printed value: a number or a word, a row in brackets, or the size of the table."""
        values = np.asarray(line.claim.values)
        if values.size > MOST_PRINTED:
            return _("a table of {shape}").format(shape=" × ".join(map(str, values.shape)))
        texts = [self._text(line, inside) for inside in np.ndindex(values.shape)]
        return texts[0] if values.size == 1 else in_brackets(texts)

    def _text(self, line: Marked, inside: tuple[int, ...]) -> str:
        claim = line.claim
        value = float(np.asarray(claim.values)[inside])
        if claim.address in IDS:
            model = self.trace.model
            known = model.vocabulary if claim.address == "tokens" else model.outputs
            if value in range(len(known)):
                return words.token_label(known.tokens[int(value)])
        return localised(claimed_text(claim, line.claim.in_whole(inside), value))

    def _outside(self, line: Marked) -> Iterator[tuple[str, VerdictLine]]:
        """The entries of a line beyond the allowed error, each as a line."""
        shares = np.asarray(line.shares)
        if np.shape(line.claim.values) != shares.shape:
            return
        known = {tuple(one.index): one for one in (line.worst, *line.among) if one is not None}
        whole = replace(self._checked(line), told=())
        for inside in np.ndindex(shares.shape):
            if not shares[inside] > 1:
                continue
            index = line.claim.in_whole(inside)
            address = line.claim.address + write_index(index)
            expected = localised(worst_texts(line, known[index])[1]) if index in known else ""
            claimed = self._text(line, inside)
            yield address, replace(whole, address=address, claimed=claimed, expected=expected)

    # ------------------------------------------------------------------ where it would lead

    def printed_row(self) -> tuple[str, str, list[Fraction]] | None:
        """The printed last row of the stream before the logits: address, stream and numbers.

        None if it is not printed, or equals the true row.
        """
        trace = self.trace
        if trace.target is None or "loss" not in trace.steps:
            return None
        last = len(trace.tokens) - 1
        stream = trace.plan[f"stream.{len(trace.plan.spec.blocks)}"].address
        row = (last, slice(None))
        for line in self.lines:
            claim = line.claim
            right = line.verdict.name == "RIGHT" or line.verdict.follows is None
            if claim.address != stream or right or not claim.by_hand:
                continue
            if tuple(claim.index) not in ((last,), row) or np.ndim(claim.values) != 1:
                continue
            printed = [
                Fraction(claimed_text(claim, (last, i), float(value)))
                for i, value in enumerate(claim.values)
            ]
            return line.address, stream, printed
        return None


# ------------------------------------------------------------------ beside the passages


def claims_title(edition: Edition) -> str:
    """The heading of the printed claims."""
    return _("{source} prints").format(source=edition.claims_from)


def _source(edition: Edition, line: VerdictLine) -> str:
    """The document of a line, and its line in the file."""
    if line.source.startswith(edition.claims_from):
        return line.source
    return f"{edition.claims_from} ({line.source})" if line.source else edition.claims_from


def claim_remarks(edition: Edition, steps: Sequence[str]) -> Iterator[Remark]:
    """A remark for each printed line of these steps that does not follow."""
    for line in edition.checked_of(steps):
        if line.verdict == "ERROR":
            text = _("{source} prints {claimed} for `{address}`. This does not follow").format(
                source=_source(edition, line), claimed=line.claimed, address=line.address
            )
            why = ": " + "; ".join(text for _kind, text in line.told) if line.told else ""
            yield Remark("claim", f"{text}{why}.", line.address)
        elif line.verdict == "UNSUPPORTED":
            text = _(
                "{source} prints {claimed} for `{address}`: the true value, but it does not "
                "follow from the lines above."
            ).format(source=_source(edition, line), claimed=line.claimed, address=line.address)
            yield Remark("claim", text, line.address)
        elif line.verdict == "CARRIED":
            text = _(
                "{source} prints {claimed} for `{address}`: it follows from what is printed "
                "above, but an earlier error is carried along."
            ).format(source=_source(edition, line), claimed=line.claimed, address=line.address)
            yield Remark("carried", text, line.address)

"""The draft of a worksheet: lines are chosen, the sheet is printed, and what it tells is not asked.

A line whose answer stands elsewhere on the sheet is chosen otherwise, until there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from byhand.address import read_address
from byhand.document.book import Book, Page, Passage
from byhand.document.compose.book.edition import PENCIL
from byhand.document.compose.worksheet.blanks import Lines, choose
from byhand.document.compose.worksheet.hidden import (
    Secrets,
    given_away_by,
    rows_shown,
    without_answers,
)
from byhand.document.compose.worksheet.levels import in_level, is_read, only_rows, rows_read
from byhand.document.compose.worksheet.printed import told_elsewhere
from byhand.document.compose.worksheet.questions import questions_of, sizes_asked
from byhand.document.compose.worksheet.sheet import Asked, Blank, Questioning, Questions, numbers_in
from byhand.document.parts import NumberTable
from byhand.plan import WEIGHT
from byhand.tracing import Trace

MOST_TRIES = 60

Settled = tuple[list[Blank], list[Blank], tuple[Page, ...], tuple[Questions, ...]]


@dataclass(frozen=True)
class Draft:
    """Everything that the choice of lines depends on."""

    trace: Trace
    book: Book
    asking: Questioning
    decimals: int | None
    tokens: Mapping[str, str]
    counts: Sequence[Asked]
    shapes: Sequence[Asked]

    def settled(self, lines: Lines, supply: Mapping[str, Sequence[Blank]]) -> Settled:
        """The lines of numbers and the further ones, with the pages and questions around them."""
        told: set[str] = set()
        for _try in range(MOST_TRIES):
            left = _without(lines, told)
            others = {kind: _kept(blanks, told) for kind, blanks in supply.items()}
            values, further = self._chosen(left, others)
            pages = tuple(self.pages(values, further)) if values else ()
            questions = tuple(questions_of(self.counts, self.shapes, further))
            target = self.trace.target
            word = None if target is None else self.trace.answer(target)
            found = told_elsewhere([*values, *further], pages, questions, self.tokens, word)
            if not found:
                return values, further, pages, questions
            told |= found
        return [], [], (), ()

    def _chosen(
        self, lines: Lines, supply: Mapping[str, Sequence[Blank]]
    ) -> tuple[list[Blank], list[Blank]]:
        plan, asking = self.trace.plan, self.asking
        if asking.chained:
            every = (blank for blanks in lines.values() for blank in blanks)
            return [blank for blank in every if in_level(blank, asking.level, plan)], []
        shown = rows_shown(self.book, plan)
        asked = choose(
            lines,
            supply,
            asking,
            Random(asking.seed),
            lambda blank: given_away_by(blank, shown, plan),
        )
        values = [b for blanks in lines.values() for b in blanks if b in asked]
        return values, [b for blanks in supply.values() for b in blanks if b in asked]

    # ------------------------------------------------------------------- what is printed

    def pages(self, values: Sequence[Blank], further: Sequence[Blank] = ()) -> Iterator[Page]:
        """The pages with the steps asked for and what they read; for a small model, all steps."""
        plan = self.trace.plan
        asked = {plan[read_address(blank.places[0]).name].address for blank in values}
        needed = asked | {read for step in asked for read in plan[step].reads}
        whole = self.book.scale == PENCIL and not self.asking.chained
        steps = needed | ({step.address for step in plan} if whole else set())
        words = {blank.answers[0] for blank in values if blank.address in self.tokens}
        secrets = Secrets(self.decimals, words, sizes_asked(self.shapes, further))
        for page in without_answers(self.book, plan, steps, secrets):
            if not self.asking.chained:
                yield page
            elif passages := tuple(self._chain(page, values, asked)):
                yield replace(page, passages=passages)

    def _chain(
        self, page: Page, values: Sequence[Blank], asked: Collection[str]
    ) -> Iterator[Passage]:
        """The passages of a chain: rows that are asked for or read, their weights and laws."""
        plan = self.trace.plan
        blank = {place for line in values for place in line.places}
        reading = rows_read(values, plan)
        weights = {read for step in asked for read in plan[step].reads if read.startswith(WEIGHT)}
        for passage in page.passages:
            wanted = {
                number.address
                for number in numbers_in([passage])
                if number.address in blank
                or (
                    number.address
                    and _is_step(number.address)
                    and is_read(number.address, reading, plan)
                )
            }
            show = []
            for table in passage.show:
                assert isinstance(table, NumberTable)
                if table.kind == "weight":
                    show += [table] if table.address.partition("[")[0] in weights else []
                elif (cut := only_rows(table, wanted)).rows:
                    show.append(cut)
            laws = tuple(law for law in passage.formulas if law.address in asked)
            if any(isinstance(part, NumberTable) and part.kind == "step" for part in show):
                yield replace(passage, show=tuple(show), formulas=laws)


def _is_step(address: str) -> bool:
    return not address.startswith(WEIGHT)


def _without(lines: Lines, told: Collection[str]) -> Lines:
    return {passage: _kept(blanks, told) for passage, blanks in lines.items()}


def _kept(blanks: Sequence[Blank], told: Collection[str]) -> list[Blank]:
    return [blank for blank in blanks if blank.address not in told]

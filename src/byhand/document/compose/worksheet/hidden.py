"""Numbers, sentences and later lines that would give a blank away, found and removed.

    without_answers   the passages of a book, without numbers outside their tables
    given_away_by     the printed lines further down that only repeat the numbers of a line

A blank's numbers may occur among its inputs (a row of the embedding, an input of ReLU): finding
them is the exercise.  They may not occur in a worked example, in a sentence, or in a later line
that only copies them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from byhand.document.book import Book, Page, Passage
from byhand.document.compose.worksheet.blanks import PAGES
from byhand.document.compose.worksheet.sheet import Blank, Size
from byhand.document.parts import Formula, NumberTable, WorkingLine
from byhand.plan import Plan

COPIES = ("merge_heads", "split_heads")  # operations that copy their input in another shape

Row = Mapping[str, str]  # address → decimals


@dataclass(frozen=True)
class Secrets:
    """What a sheet must not reveal: decimals of its answers, its words and its sizes."""

    decimals: int | None
    words: Collection[str]
    sizes: Collection[Size]

    def told_by(self, sentence: str) -> bool:
        """Whether a sentence contains results."""
        return (
            self._has_results(sentence)
            or any(f"`{word}`" in sentence for word in self.words)
            or any(_mentions(sentence, size.length) for size in self.sizes)
        )

    def _has_results(self, sentence: str) -> bool:
        """Whether it contains decimals of the answers, or any digit if all answers are whole."""
        if not self.decimals:
            return bool(re.search(r"\d", sentence))
        return bool(re.search(rf"\d[.,]\d{{{self.decimals}}}(?!\d)", sentence))


def _mentions(sentence: str, length: int) -> bool:
    """Whether a sentence contains this whole number, with or without thousands separators."""
    digits = "[.,\u2009\u202f\u00a0]?".join(str(length))
    return bool(re.search(rf"(?<![\d.,]){digits}(?![.,]?\d)", sentence))


def without_answers(
    book: Book, plan: Plan, steps: Collection[str], secrets: Secrets
) -> Iterator[Page]:
    """The pages with these steps and the weights, without anything that reveals a secret."""
    seen: set[str] = set()
    for page in book.pages:
        if page.slug in PAGES:
            kept = [_passage(passage, plan, steps, secrets, seen) for passage in page.passages]
            kept = [passage for passage in kept if passage.show]
            if kept:
                yield replace(page, passages=tuple(kept))


def _passage(
    passage: Passage, plan: Plan, steps: Collection[str], secrets: Secrets, seen: set[str]
) -> Passage:
    """The passage with only its laws and its tables; of steps, none that was `seen` before."""
    return replace(
        passage,
        sentences=tuple(said for said in passage.sentences if not secrets.told_by(said)),
        formulas=tuple(map(_law, passage.formulas)),
        show=tuple(
            part
            for part in passage.show
            if isinstance(part, NumberTable)
            and (
                not part.left_out
                if part.kind == "weight"
                else plan[part.address.partition("[")[0]].address in steps and _new(part, seen)
            )
        ),
        remarks=(),
    )


def _new(table: NumberTable, seen: set[str]) -> bool:
    """Whether a table has numbers that the sheet has not shown yet; a word stands for itself."""
    addresses = {number.address for row in table.rows for number in row.numbers}
    if table.rows and addresses - {""} <= seen:
        return False
    seen |= addresses
    return True


def _law(law: Formula) -> Formula:
    """The law, and an entry's working in short names, without numbers."""
    bare = Formula(law.address, law.symbols)
    if law.worked is None or law.worked.symbols is None:
        return bare
    line = WorkingLine(
        law.worked.address,
        law.worked.cell,
        symbols=law.worked.symbols,
        sources=law.worked.sources,
        missing=True,
    )
    return replace(bare, worked=line)


# ------------------------------------------------------------------ lines that repeat a line


def given_away_by(
    blank: Blank, shown: Mapping[str, Sequence[Row]], plan: Plan
) -> Iterator[frozenset[str]]:
    """The addresses of each line of later steps with the same numbers as a blank.

    `shown` are the rows of the sheet, by step.  A later step of the blank's shape is compared entry
    by entry, any other row by row.  In a copy, one row may be a part of the other.
    """
    step = plan[blank.address.partition("[")[0]]
    for reader in plan:
        if step.address not in reader.reads:
            continue
        rows = shown.get(reader.address, ())
        if reader.shape == step.shape:
            same = [f"{reader.address}[{place.partition('[')[2]}" for place in blank.places]
            rows = [{place: row[place] for place in same if place in row} for row in rows]
        for row in filter(None, rows):
            told, asked = tuple(row.values()), blank.answers
            if told == asked or (reader.op in COPIES and _one_in_the_other(told, asked)):
                yield frozenset(row)


def _one_in_the_other(one: Sequence[str], other: Sequence[str]) -> bool:
    return set(one) <= set(other) or set(other) <= set(one)


def rows_shown(book: Book, plan: Plan) -> dict[str, list[Row]]:
    """Every row of the tables of steps, by the step."""
    found: dict[str, list[Row]] = {}
    for passage in (each for page in book.pages if page.slug in PAGES for each in page.passages):
        for table in passage.show:
            if isinstance(table, NumberTable) and table.kind == "step":
                step = plan[table.address.partition("[")[0]].address
                found.setdefault(step, []).extend(
                    {n.address: n.cell.decimal for n in row.numbers if n.cell.decimal}
                    for row in table.rows
                )
    return found

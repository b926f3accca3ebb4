"""A worksheet of a model and a text: the book in pencil numbers with some lines left blank.

What else would give the blanks away is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from random import Random

from byhand.checking.counts import known_counts
from byhand.counting import count
from byhand.document.book import Book, Page
from byhand.document.compose.book import bind
from byhand.document.compose.book.edition import PENCIL, Edition
from byhand.document.compose.worksheet.choice import Lines, lines_to_ask, spread
from byhand.document.compose.worksheet.given import given_lines
from byhand.document.compose.worksheet.hidden import (
    Secrets,
    given_away_by,
    rows_shown,
    without_answers,
)
from byhand.document.compose.worksheet.questions import (
    blanks_of,
    counts_of,
    questions_of,
    shapes_of,
    sizes_asked,
)
from byhand.document.compose.worksheet.sheet import (
    COUNTS,
    KINDS,
    SHAPES,
    VALUES,
    Asked,
    Blank,
    Questioning,
    Size,
    Worksheet,
)
from byhand.drafts import write_all
from byhand.editions import TOY_ENTRIES, TOY_PARAMETERS, make_edition
from byhand.errors import InputError
from byhand.evaluate import prepare
from byhand.language import _, speaking
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.pencil import Pencil
from byhand.tracing import Trace

USUAL_DECIMALS, MOST_DECIMALS = 3, 12
SHARES = {COUNTS: 5, SHAPES: 8}  # one line in so many asks for a count, or for a side of a shape


def write_worksheet(
    book: Book,
    trace: Trace,
    folder: str | Path,
    *,
    blanks: int | None = None,
    decimals: int | None = None,
    seed: int = 0,
    which: Collection[str] = KINDS,
    called: str | None = None,
    pdf: bool = False,
) -> tuple[Path, ...]:
    """Writes the worksheet of a book into a folder, and returns what was written.

    `called` is what the model is called by those who are to check the sheet.
    """
    asking = Questioning.asked(blanks=blanks, which=which, decimals=decimals, seed=seed)
    files = worksheet_files(book, trace, asking, called or trace.model.name, pdf=pdf)
    return write_all(files, Path(folder))


def worksheet_files(
    book: Book, trace: Trace, asking: Questioning, called: str, *, pdf: bool = False
) -> dict[str, bytes]:
    """File name → contents.

    The sheet and its key are pages for a browser, with `pdf` also typeset; beside them lies the
    claims file to fill in, and the same filled in as the key.
    """
    from byhand.document.compose.worksheet.claims import claims_text
    from byhand.document.media.html.worksheet import worksheet_page

    sheet = _worksheet(trace, None, None, asking, book, book.language)
    sheet = replace(sheet, called=called)
    with speaking(book.language):
        texts = {
            "worksheet.html": worksheet_page(sheet),
            "worksheet-key.html": worksheet_page(sheet, key=True),
            "worksheet.yaml": claims_text(sheet),
            "worksheet-key.yaml": claims_text(sheet, filled=True),
        }
        files = {name: text.encode() for name, text in texts.items()}
        if pdf:
            from byhand.document.media.typst import typeset
            from byhand.document.media.typst.worksheet import worksheet_source

            for name, key in (("worksheet.pdf", False), ("worksheet-key.pdf", True)):
                files[name] = typeset(worksheet_source(sheet, key=key))
    return files


def make_worksheet(
    model: str | Path | Model | Trace,
    text: str | None = None,
    *,
    target: str | None = None,
    blanks: int | None = None,
    decimals: int | None = None,
    seed: int = 0,
    which: Collection[str] = KINDS,
    language: str | None = None,
) -> Worksheet:
    """The worksheet of a model and a text, or of what a trace has worked out.

    `blanks` are lines to fill in, each worth a mark; `which` are values, shapes, counts, or some
    of them; every value is rounded to `decimals`.  The same `seed` leaves the same lines blank.
    """
    asking = Questioning.asked(blanks=blanks, which=which, decimals=decimals, seed=seed)
    sheet = _worksheet(model, text, target, asking, None, language)
    return replace(sheet, called=str(model)) if isinstance(model, str | Path) else sheet


def _worksheet(
    model: str | Path | Model | Trace,
    text: str | None,
    target: str | None,
    asking: Questioning,
    book: Book | None,
    language: str | None,
) -> Worksheet:
    """The worksheet; `book` is that of the trace, where there is one already."""
    with speaking(language) as spoken:
        trace = None
        if isinstance(model, Trace):
            trace, text = model, model.text
            target = None if trace.target is None else trace.token(trace.target)
            opened = trace.model
        else:
            opened = model if isinstance(model, Model) else open_model(model)
        if VALUES in asking.which and _by_hand(opened, text, target):
            edition, places = _with_a_pencil(opened, text, target, asking.decimals)
            return _Maker(
                edition.trace, bind(edition, spoken, explaining=False), places, asking.seed
            ).sheet(asking)
        if trace is None or book is None:
            edition = make_edition(opened, text, target=target, claims=())
            trace, book = edition.trace, bind(edition, spoken, explaining=False)
        return _Maker(trace, book, None, asking.seed).sheet(asking)


def _by_hand(model: Model, text: str | None, target: str | None) -> bool:
    """Whether the pass is small enough for somebody to work in it with a pencil."""
    plan = prepare(model, text, Pencil(USUAL_DECIMALS), target=target).plan
    entries = sum(prod(step.shape) for step in plan)
    return entries <= TOY_ENTRIES and count(model.spec, model.weights).total <= TOY_PARAMETERS


def _with_a_pencil(
    model: Model, text: str | None, target: str | None, decimals: int | None
) -> tuple[Edition, int]:
    """The pass with a pencil, and its decimals.

    Where none are asked for, so many that no divisor and no probability is rounded to 0.
    """
    for places in [decimals] if decimals is not None else range(USUAL_DECIMALS, MOST_DECIMALS + 1):
        try:
            pencil = Pencil(places)
            return make_edition(model, text, target=target, claims=(), numbers=pencil), places
        except InputError:
            if places in (decimals, MOST_DECIMALS):
                raise
    raise AssertionError("unreachable: the last try returns or raises")


class _Maker:
    """Makes the worksheet of one book; `decimals` are those of its pencil, None: it has none."""

    def __init__(self, trace: Trace, book: Book, decimals: int | None, seed: int) -> None:
        self.trace = trace
        self.book = book
        self.scale = book.scale
        self.decimals = decimals
        self.seed = seed
        self.random = Random(seed)
        self.tokens = dict(self._tokens())

    def sheet(self, asking: Questioning) -> Worksheet:
        trace = self.trace
        lines = self._values() if self.decimals is not None else {}
        known = known_counts(trace.model)
        counts = counts_of(count(trace.model.spec, trace.model.weights), known)
        beside = bool(lines) and VALUES in asking.which
        shapes = shapes_of(trace.plan, known, self.random, beside_values=beside)
        asked = self._chosen(lines, counts, shapes, asking.blanks, asking.which)
        values = [b for blanks in lines.values() for b in blanks if b in asked]
        further = [
            b for b in (*blanks_of(counts, COUNTS), *blanks_of(shapes, SHAPES)) if b in asked
        ]
        if not values and not further:
            raise InputError(
                _("there is nothing to ask for"), hint=_("ask for values, shapes or counts")
            )
        sizes = sizes_asked(shapes, further)
        return Worksheet(
            book=replace(
                self.book,
                pages=tuple(self._pages(values, sizes)) if values else (),
                spine=replace(
                    self.book.spine,
                    nodes=tuple(replace(node, rows=()) for node in self.book.spine.nodes),
                ),
            ),
            workings=self.book,
            blanks=(*values, *further),
            questions=tuple(questions_of(counts, shapes, further)),
            text=trace.text,
            target=None if trace.target is None else trace.token(trace.target),
            decimals=self.decimals if values else None,
            seed=self.seed,
            given=given_lines(trace, values, everything=self.scale == PENCIL),
            tokens=self.tokens,
            sizes=sizes,
            called=trace.model.name,
        )

    # ------------------------------------------------------------------ what may be asked for

    def _values(self) -> Lines:
        everything = self.scale == PENCIL
        lines = dict(lines_to_ask(self.book, self.trace.plan, everything=everything))
        words = tuple(
            Blank(address, VALUES, (address,), (word,), row=False)
            for address, word in self.tokens.items()
            if word.isalpha()
        )
        where = next((p.id for p in self.book.passages if p.id.endswith("-next")), None)
        if words and where is not None and everything:
            lines[where] = (*lines.get(where, ()), *words)
        return lines

    def _tokens(self) -> Iterator[tuple[str, str]]:
        """The word after each position."""
        for position, prediction in enumerate(self.trace.next or []):
            if prediction.id is not None and not prediction.tied:
                yield f"next[{position}]", self.trace.token(prediction.id)

    def _chosen(
        self,
        lines: Lines,
        counts: Sequence[Asked],
        shapes: Sequence[Asked],
        count: int,
        which: Collection[str],
    ) -> list[Blank]:
        """So many lines of the kinds asked for; what one kind lacks, the others make up."""
        supply = {
            COUNTS: blanks_of(counts, COUNTS) if COUNTS in which else [],
            SHAPES: blanks_of(shapes, SHAPES) if SHAPES in which else [],
        }
        values = lines if VALUES in which else {}
        there = sum(map(len, values.values()))
        wanted = {kind: min(len(supply[kind]), count // SHARES[kind]) for kind in supply}
        if there == 0:
            sides = min(len(supply[SHAPES]), max(count // 3, count - len(supply[COUNTS])))
            wanted = {COUNTS: min(len(supply[COUNTS]), count - sides), SHAPES: sides}
        missing = count - sum(wanted.values()) - there
        for kind in supply:
            extra = min(max(missing, 0), len(supply[kind]) - wanted[kind])
            wanted[kind] += extra
            missing -= extra
        further = [
            blank for kind in supply for blank in self.random.sample(supply[kind], wanted[kind])
        ][:count]
        plan, shown = self.trace.plan, rows_shown(self.book, self.trace.plan)

        def told_by(blank: Blank) -> Iterator[frozenset[str]]:
            return given_away_by(blank, shown, plan)

        return [*spread(values, count - len(further), self.random, told_by), *further]

    # ------------------------------------------------------------------ what is given

    def _pages(self, blanks: Sequence[Blank], sizes: Sequence[Size]) -> Iterator[Page]:
        plan = self.trace.plan
        steps = {plan[blank.places[0].partition("[")[0]].address for blank in blanks}
        needed = steps | {read for step in steps for read in plan[step].reads}
        if self.scale == PENCIL:
            needed |= {step.address for step in plan}
        words = {blank.answers[0] for blank in blanks if blank.address in self.tokens}
        return without_answers(self.book, plan, needed, Secrets(self.decimals, words, sizes))

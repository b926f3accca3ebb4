"""The files of an edition: its pages, and on request a PDF, a spreadsheet or a worksheet."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from byhand import evaluate, forward, models
from byhand.backward import adjoint
from byhand.document.compose.book import bind
from byhand.document.compose.book.edition import Edition
from byhand.drafts import write_all
from byhand.errors import UsageError
from byhand.language import _, spoken
from byhand.numbers.adjoints import UNCOUNTED
from byhand.optimizer import Rule, update
from byhand.plan import Plan
from byhand.reading import beside
from byhand.spec import forward_only
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.document.compose.worksheet.sheet import Questioning

PDF, XLSX = "book.pdf", "book.xlsx"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files that are made of an edition besides its pages."""

    pdf: bool = False
    xlsx: bool = False
    worksheet: Questioning | None = None


def publish(edition: Edition, folder: str | Path, wanted: Wanted) -> tuple[Path, ...]:
    """Writes the wanted files into a folder and returns their paths, the index page first.

    All files are made before the first one is written: an error leaves nothing behind.
    """
    target = Path(folder)
    return write_all(files_of(edition, wanted, target), target)


def files_of(edition: Edition, wanted: Wanted, folder: Path) -> dict[str, bytes]:
    """File name → contents, in the language spoken; `folder` is where the files will lie."""
    from byhand.document.media.html import pages

    book = bind(edition, spoken())
    files = {name: text.encode() for name, text in pages(book).items()}
    if wanted.pdf:
        from byhand.document.media.typst import typeset, typst_source

        files[PDF] = typeset(typst_source(book))
    if wanted.xlsx:
        files[XLSX] = spreadsheet_of(edition.trace)
    if wanted.worksheet is not None:
        from byhand.worksheets import make_worksheet, worksheet_files

        called = seen_from(folder, edition.called)
        sheet = make_worksheet(edition.trace, wanted.worksheet, called, book)
        files |= worksheet_files(sheet, pdf=wanted.pdf, students=wanted.worksheet.students)
    return files


def spreadsheet_of(trace: Trace) -> bytes:
    """A whole trace as an .xlsx file of live formulas, with the numbers of float64 in its cells."""
    from byhand.document.media.xlsx import check_size, spreadsheet
    from byhand.numbers.floats import Floats

    check_size(trace.plan)  # before anything more is worked out
    plan, targets = training_plan(trace) or (trace.plan, trace.targets)
    job = evaluate.Job(
        trace.model,
        plan,
        Floats("float64"),
        trace.text,
        trace.tokens,
        trace.target,
        targets=targets,
        source=trace.source,
        segments=trace.segments,
    )
    return spreadsheet(trace, job.work())


def training_plan(trace: Trace) -> tuple[Plan, tuple[int, ...] | None] | None:
    """The pass of a trace with one training step behind it, and the targets of its positions.

    It learns from the loss of the trace; a trace without one learns each position's next token.
    None for a model with many weights, with weights that are one, or without a way back; for a text
    of one token, and where there would be too many numbers.
    """
    from byhand.document.media.xlsx import has_room

    model, targets = trace.model, trace.targets
    if not evaluate.pencil_sized(model) or any(w.same_as for w in model.weights.values()):
        return None
    if any(forward_only(model.spec)):
        return None
    steps = tuple(step for step in trace.plan if step.stage == "forward")
    plan = replace(trace.plan, steps=steps)
    if not {"loss", "mean_loss"} & plan.known.keys():
        if len(trace.tokens) < 2 or trace.asked or model.output_words is not None:
            return None
        read = beside(trace.source, trace.segments)
        plan = forward.plan(model.spec, len(trace.tokens), losses=True, **read)
        targets = (*trace.tokens[1:], UNCOUNTED)
    whole = update(adjoint(plan), Rule())
    return (whole, targets) if has_room(whole) else None


def seen_from(folder: Path, called: str) -> str:
    """A model's name for a command that is run in a folder: its name, or the path to its file."""
    if called in models.builtin_names() or not Path(called).exists():
        return called
    return os.path.relpath(called, folder)


def questioning(
    worksheet: bool,
    *,
    blanks: int | None,
    ask: tuple[str, ...] | None,
    decimals: int | None,
    seed: int | None,
    level: str | None = None,
    exact: bool = False,
    students: Sequence[str] | None = None,
    dashes: str = "",
) -> Questioning | None:
    """The questions that a worksheet asks; None where none is wanted.

    Wrong options are a UsageError, before anything is worked out.  `dashes` stand before the names
    of options.
    """
    if worksheet:
        from byhand.document.compose.worksheet.sheet import Questioning

        return Questioning.asked(
            blanks=blanks,
            which=ask,
            decimals=decimals,
            seed=seed,
            level=level,
            exact=exact,
            students=students or (),
        )
    options = {"blanks": blanks, "ask": ask, "seed": seed, "level": level, "students": students}
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                _("{name} needs {other}").format(name=dashes + name, other=f"{dashes}worksheet")
            )
    return None

"""The bytes of an .xlsx file: its properties, its sheets, the green line and the names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from io import BytesIO
from typing import Any

from byhand.document.media.xlsx.cells import Cell, refer
from byhand.document.media.xlsx.contents import Contents, Operations, Remarks, Values
from byhand.document.media.xlsx.formulas import refuse_unknown
from byhand.document.media.xlsx.guide import Guide, guide_name, unique_labels
from byhand.document.media.xlsx.layout import PROBABILITY, TOKEN, lay_out
from byhand.document.media.xlsx.settings import defined, read_from_cells
from byhand.document.media.xlsx.sheets import Sheet
from byhand.document.media.xlsx.step_sheet import StepSheet
from byhand.document.media.xlsx.style import Formats
from byhand.errors import InputError
from byhand.language import _
from byhand.tracing import Trace
from byhand.working import Working

LAST_TOKENS = 12  # of the text in the green line
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")  # what both Excel and LibreOffice take as a name


def spreadsheet(trace: Trace, floats: Trace) -> bytes:
    """A whole pass as an .xlsx file of live formulas.

    `floats` is the same pass in float64, stored as results until a program works the formulas out.
    Where it goes on to gradients and new weights, so does the file.
    For exact numbers, registers and boundaries are noted too.  An InputError says that the file
    would be too large, or which weight is unknown.
    """
    xlsxwriter = _xlsxwriter()
    return _File(_contents(trace, floats), xlsxwriter).written()


def _xlsxwriter() -> Any:
    try:
        import xlsxwriter
    except ModuleNotFoundError:
        raise InputError(
            _("spreadsheets are written with XlsxWriter, which is not installed"),
            hint=_("pip install 'byhand[xlsx]'"),
        ) from None
    return xlsxwriter


def _contents(trace: Trace, floats: Trace) -> Contents:
    """The contents of the file; an InputError if they cannot be written."""
    model, plan = trace.model, floats.plan
    if model.output_words is not None:
        raise InputError(
            _("a spreadsheet looks up words in one vocabulary, and this model has two"),
            expected=_("a model without outputs of its own"),
            found=model.output_words.sample(),
            hint=_("the book without --xlsx shows all numbers"),
        )
    remarks = Remarks(trace)
    layout = lay_out(plan, remarks.lines())
    for name, tensor in model.weights.items():
        refuse_unknown(name, tensor)
    labels = unique_labels(model.vocabulary.tokens, model.spec.vocab)
    values = Values(floats, labels)
    given = {"tokens": trace.tokens, "target": trace.target, "targets": floats.targets}
    if trace.source is not None:
        given["source"] = trace.source.tokens
    working = Working(read_from_cells(plan), given, values.absent)
    operations = Operations(plan, layout, working, labels)
    return Contents(trace, labels, layout, remarks, values, operations)


class _File:
    """One file being written."""

    def __init__(self, contents: Contents, xlsxwriter: Any) -> None:
        self.contents = contents
        self.layout = contents.layout
        self.buffer = BytesIO()
        self.book = xlsxwriter.Workbook(self.buffer, {"in_memory": True})
        self.formats = Formats(self.book)

    def written(self) -> bytes:
        """The whole file."""
        model, plan = self.contents.trace.model, self.contents.plan
        self.book.set_properties(
            {
                "title": model.name,
                "comments": "byhand",
                "created": datetime(2000, 1, 1),  # the same pass gives the same file
            }
        )
        live = self.live_line()
        guide = Guide(self.book.add_worksheet(guide_name()), self.formats)
        guide.write(model, self.layout, self.contents.remarks, plan.aliases, live)
        for page in self.layout.pages:
            sheet = self.book.add_worksheet(page.name)
            Sheet(self.contents, page, sheet, self.formats, live).write()
        training: dict[str, tuple[Cell, Cell]] = {}
        if self.layout.step is not None:
            last = StepSheet(self.contents, self.layout.step, self.book, self.formats, live)
            last.write()
            training = last.names()
        self.define_names(training)
        self.book.close()
        return self.buffer.getvalue()

    def live_line(self) -> tuple[str, str]:
        """The formula of the text, the next token, its probability and the loss; and its result."""
        labels, tokens = self.contents.labels, self.contents.trace.tokens
        values = self.contents.values
        apart = (
            "" if getattr(self.contents.trace.model.vocabulary, "kind", "") == "characters" else " "
        )
        length = len(tokens)
        shown = range(max(0, length - LAST_TOKENS), length)
        cells = [refer(self.layout.token_cell("tokens", place)) for place in shown]
        pieces = ['"… "'] if shown[0] else []
        pieces.append(f'&"{apart}"&'.join(cells) if apart else "&".join(cells))
        text = "… " * bool(shown[0]) + apart.join(labels[tokens[i]] for i in shown)
        tables, last = self.layout.tables, (length - 1,)
        found = {name: values.of(name, last) for name in (TOKEN, PROBABILITY)}
        pieces += ['" → "', refer(tables[TOKEN].cell(last))]
        text += f" → {found[TOKEN]}"
        numbers = [("p", tables[PROBABILITY].cell(last), found[PROBABILITY])]
        if "loss" in tables or "mean_loss" in tables:
            loss = self.contents.loss
            name = _("loss") if loss.address == "loss" else _("mean loss")
            numbers.append((name, loss.first, values.of(loss.address, (0,))))
        for name, cell, value in numbers:
            pieces += [f'"   ·   {name} = "', f"ROUND({refer(cell)},4)"]
            text += f"   ·   {name} = " + (
                f"{round(value, 4):g}" if isinstance(value, float) else str(value)
            )
        return "&".join(pieces), text

    def define_names(self, ranges: Mapping[str, tuple[Cell, Cell]]) -> None:
        """Defines every address as a name of its table, and names for these ranges."""
        tables = self.layout.tables
        known = {defined(name): name for name in tables} | dict(self.contents.plan.aliases)
        found = {name: (tables[to].first, tables[to].last) for name, to in known.items()}
        for name, (first, last) in (found | dict(ranges)).items():
            if _NAME.fullmatch(name):
                self.book.define_name(name, "=" + refer(first, last, fixed=True))

"""A trace or a job → an .xlsx file, which appears whole or not at all."""

from __future__ import annotations

import re
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from byhand import forward
from byhand.document.media.xlsx.cells import refer
from byhand.document.media.xlsx.constants import refuse_unknown
from byhand.document.media.xlsx.guide import Guide, guide_name, unique_labels
from byhand.document.media.xlsx.looks import Looks
from byhand.document.media.xlsx.operations import Operations
from byhand.document.media.xlsx.pages import PROBABILITY, TOKEN, lay_out
from byhand.document.media.xlsx.remarks import Remarks
from byhand.document.media.xlsx.sheets import Contents, Sheet
from byhand.document.media.xlsx.values import Values
from byhand.drafts import write_whole
from byhand.errors import InputError
from byhand.evaluate import Job
from byhand.language import _
from byhand.tracing import Trace
from byhand.working import Working

LAST_TOKENS = 12  # of the text in the green line
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")  # what both Excel and LibreOffice take as a name


def save_spreadsheet(work: Trace | Job, path: str | Path) -> None:
    """Writes the whole pass as an .xlsx file of live formulas; it appears whole or not at all.

    Of a trace with exact numbers, registers and boundaries are noted too.  An InputError says how
    large the file would be where that is too large, or which weight is unknown.
    """
    write_whole(Path(path), spreadsheet(work), make_folder=True)


def spreadsheet(work: Trace | Job) -> bytes:
    """The same as the bytes of a file."""
    xlsxwriter = _xlsxwriter()
    return _File(_contents(work), xlsxwriter).written()


def _xlsxwriter() -> Any:
    try:
        import xlsxwriter
    except ModuleNotFoundError:
        raise InputError(
            _("spreadsheets are written with XlsxWriter, which is not installed"),
            hint=_("pip install 'byhand[xlsx]'"),
        ) from None
    return xlsxwriter


def _contents(work: Trace | Job) -> Contents:
    """What the file is to say; an InputError where it cannot be said."""
    model, tokens, target, plan = work.model, work.tokens, work.target, work.plan
    if work.asked:  # some steps were asked for; a spreadsheet has them all
        plan = forward.plan(model.spec, len(tokens), target=target is not None)
    remarks = Remarks(work if isinstance(work, Trace) else None)
    layout = lay_out(plan, remarks.lines(plan))
    for name, tensor in model.weights.items():
        refuse_unknown(name, tensor)
    labels = unique_labels(model.vocabulary.tokens, model.spec.vocab)
    values = Values(model, plan, tokens, target, labels)
    working = Working(plan, {"tokens": tokens, "target": target}, values.absent)
    operations = Operations(plan, layout, working, labels)
    return Contents(model, plan, tokens, target, labels, layout, remarks, values, operations)


class _File:
    """One file in the making."""

    def __init__(self, contents: Contents, xlsxwriter: Any) -> None:
        self.contents = contents
        self.layout = contents.layout
        self.buffer = BytesIO()
        self.book = xlsxwriter.Workbook(self.buffer, {"in_memory": True})
        self.looks = Looks(self.book)

    def written(self) -> bytes:
        """The whole file."""
        model, plan = self.contents.model, self.contents.plan
        self.book.set_properties(
            {
                "title": model.name,
                "comments": "byhand",
                "created": datetime(2000, 1, 1),  # the same pass is to be the same file
            }
        )
        live = self.live_line()
        guide = Guide(self.book.add_worksheet(guide_name()), self.looks)
        guide.write(model, self.layout, self.contents.remarks, plan.aliases, live)
        for page in self.layout.pages:
            sheet = self.book.add_worksheet(page.name)
            Sheet(self.contents, page, sheet, self.looks, live).write()
        self.define_names()
        self.book.close()
        return self.buffer.getvalue()

    def live_line(self) -> tuple[str, str]:
        """The formula of the text, the next token, its probability and the loss; and its result."""
        labels, tokens = self.contents.labels, self.contents.tokens
        values = self.contents.values
        apart = "" if getattr(self.contents.model.vocabulary, "kind", "") == "characters" else " "
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
        if "loss" in tables:
            numbers.append((_("loss"), tables["loss"].first, values.of("loss", (0,))))
        for name, cell, value in numbers:
            pieces += [f'"   ·   {name} = "', f"ROUND({refer(cell)},4)"]
            text += f"   ·   {name} = " + (
                f"{round(value, 4):g}" if isinstance(value, float) else str(value)
            )
        return "&".join(pieces), text

    def define_names(self) -> None:
        """Every address as a name that leads to its table."""
        known = {name: name for name in self.layout.tables} | dict(self.contents.plan.aliases)
        for name, address in known.items():
            if _NAME.fullmatch(name):
                table = self.layout.tables[address]
                self.book.define_name(name, "=" + refer(table.first, table.last, fixed=True))

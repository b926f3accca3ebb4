"""One stage's sheet: its title, the prediction as it stands, and a band for each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from byhand.document.media.xlsx import looks as look
from byhand.document.media.xlsx.cells import Cell, Table, column_letters, refer
from byhand.document.media.xlsx.constants import constant, places, source
from byhand.document.media.xlsx.guide import about, title
from byhand.document.media.xlsx.looks import Looks
from byhand.document.media.xlsx.operations import Operations
from byhand.document.media.xlsx.pages import (
    LABELS,
    LARGEST,
    LEFT,
    PLACES,
    POWERS,
    PROBABILITY,
    TOKEN,
    TOTAL,
    VOCABULARY,
    Band,
    Heading,
    Layout,
    Page,
)
from byhand.document.media.xlsx.remarks import Remarks
from byhand.document.media.xlsx.values import Shown, Values
from byhand.document.words import axes_text, formula_text
from byhand.language import _
from byhand.model import Model
from byhand.plan import WEIGHT, Plan, Step

SENTENCE_COLUMNS = 10  # over which a stage's sentence is spread


@dataclass(frozen=True)
class Contents:
    """Everything that is known before a cell is written."""

    model: Model
    plan: Plan
    tokens: tuple[int, ...]
    target: int | None
    labels: tuple[str, ...]  # of the vocabulary, by id
    layout: Layout
    remarks: Remarks
    values: Values
    operations: Operations


class AllDigits(float):
    """A float that writes itself with the digits that read back to it; XlsxWriter asks for 16."""

    def __format__(self, _spec: str) -> str:
        return repr(float(self))


class Sheet:
    """One stage's sheet in the making."""

    def __init__(
        self, contents: Contents, page: Page, sheet: Any, looks: Looks, live: tuple[str, str]
    ) -> None:
        self.contents = contents
        self.page = page
        self.sheet = sheet
        self.live = live
        self.looks = looks

    def write(self) -> None:
        self.columns()
        self.top()
        for band in self.page.bands:
            self.band(band)
        self.sheet.freeze_panes(3, LEFT)
        self.sheet.set_landscape()
        self.sheet.set_paper(9)  # A4
        self.sheet.fit_to_pages(1, 0)
        self.sheet.set_footer("&L&F&C&A&R&P/&N")

    def columns(self) -> None:
        right = self.page.right
        self.sheet.hide_gridlines(2)
        self.sheet.set_column(PLACES, PLACES, look.PLACE_WIDTH)
        self.sheet.set_column(LABELS, LABELS, look.LABEL_WIDTH)
        self.sheet.set_column(LEFT, right - 2, look.NUMBER_WIDTH)
        self.sheet.set_column(right - 1, right - 1, look.GAP_WIDTH)
        weights = [h.table.last.column for band in self.page.bands for h in band.weights]
        self.sheet.set_column(right, right, look.LABEL_WIDTH)
        self.sheet.set_column(right + 1, max([right + 1, *weights]), look.NUMBER_WIDTH)

    def top(self) -> None:
        """The title, a sentence on the stage and the prediction as it stands now."""
        across = SENTENCE_COLUMNS
        self.sheet.set_row(0, look.TITLE_HEIGHT)
        self.sheet.write_string(0, 0, title(self.page.place), self.looks("title"))
        self.sheet.set_row(1, look.SENTENCE_HEIGHT)
        self.sheet.merge_range(1, 0, 1, across, about(self.page.place), self.looks("sentence"))
        self.sheet.set_row(2, look.LIVE_HEIGHT, self.looks("live"))
        self.sheet.write_formula(2, 0, "=" + self.live[0], self.looks("live"), self.live[1])

    # ------------------------------------------------------------------ one step

    def band(self, band: Band) -> None:
        for heading in band.tables:
            self.titled(band.step, heading)
            self.numbers(band.step, heading.table)
        for place, name in enumerate(band.elsewhere):
            table = self.contents.layout.tables[name]
            text = _("{weight} stands on the sheet {sheet}").format(weight=name, sheet=table.sheet)
            target = "internal:" + refer(table.first)
            row = band.tables[0].title + place
            self.sheet.write_url(row, self.page.right, target, self.looks("link"), text)
        for heading in band.weights:
            self.weight(heading)
        self.highlights(band)

    def titled(self, step: Step, heading: Heading) -> None:
        """The address with its formula, the remarks, and the labels of rows and columns."""
        address, row = heading.table.address, heading.title
        part = address[len(step.address) :] if address.startswith(step.address) else address
        if part in (LARGEST, TOTAL):
            named = {LARGEST: _("max"), TOTAL: _("sum")}[part]
            self.labels(heading, [named] * heading.table.columns)
            return
        if part in (TOKEN, PROBABILITY):
            named = {TOKEN: _("token"), PROBABILITY: _("probability")}[part]
            self.labels(heading, [named])
            return
        if part == POWERS:
            self.said(row, 0, "", f"e^(x − max), x = {step.inputs['x']}")
        else:
            facts = [formula_text(step.formula), axes_text(step.axes, step.shape)]
            facts.append(self.contents.remarks.register(step.address))
            also = [name for name, to in self.contents.plan.aliases.items() if to == address]
            names = " = ".join([address, *also])
            self.said(row, 0, names, "   ".join(fact for fact in facts if fact))
        for offset, remark in enumerate(heading.remarks, 1):
            self.sheet.write_string(row + offset, 0, remark, self.looks("remark"))
        self.labels(heading, self.column_labels(heading.axes, heading.table))
        self.positions(step, heading.table)

    def said(self, row: int, column: int, address: str, text: str) -> None:
        if not address:
            self.sheet.write_string(row, column, text, self.looks("formula"))
            return
        bold, quiet = self.looks("address"), self.looks("formula")
        self.sheet.write_rich_string(row, column, bold, address, quiet, "   " + text)

    def positions(self, step: Step, table: Table) -> None:
        """The number and the token of each row; on the first sheet the token is typed here."""
        if step.op == "given":
            ids: Sequence[int | None] = self.contents.tokens
            if step.address == "target":
                ids = [self.contents.target]
            for place, id in enumerate(ids):
                if step.address == "tokens":
                    self.sheet.write_number(table.row + place, PLACES, place, self.looks("place"))
                assert id is not None
                label = self.contents.labels[id]
                self.sheet.write_string(table.row + place, LABELS, label, self.looks("typed"))
            self.choices(table)
            return
        if table.down is None:
            if step.op == "loss":
                cell = refer(self.contents.layout.token_cell("target"), sheet=self.page.name)
                assert self.contents.target is not None
                shown = self.contents.labels[self.contents.target]
                self.sheet.write_formula(table.row, LABELS, "=" + cell, self.looks("token"), shown)
            return
        for place in range(table.rows):
            self.sheet.write_number(table.row + place, PLACES, place, self.looks("place"))
            self.token(table.row + place, LABELS, place, "token")

    def token(self, row: int, column: int, position: int, kind: str) -> None:
        """A label that follows the token of a position."""
        cell = self.contents.layout.token_cell("tokens", position)
        shown = self.contents.labels[self.contents.tokens[position]]
        text = "=" + refer(cell, sheet=self.page.name)
        self.sheet.write_formula(row, column, text, self.looks(kind), shown)

    def choices(self, table: Table) -> None:
        """The vocabulary as a list to choose from."""
        known = self.contents.layout.tables[VOCABULARY]
        self.sheet.data_validation(
            table.row,
            LABELS,
            table.last.row,
            LABELS,
            {
                "validate": "list",
                "source": "=" + refer(known.first, known.last, sheet=self.page.name, fixed=True),
                "error_title": _("not in the vocabulary")[:32],
                "error_message": _("Choose one of the tokens in the list."),
            },
        )

    def labels(self, heading: Heading, labels: Sequence[str | int | Cell]) -> None:
        """The labels above the columns, and above them those of groups such as heads."""
        table = heading.table
        row = table.row - 1
        if row == heading.title + len(heading.remarks):
            return
        width = table.columns // table.groups
        for place, label in enumerate(labels):
            column = table.column + place
            if isinstance(label, int):
                self.sheet.write_number(row, column, label, self.looks("label"))
            elif isinstance(label, Cell):
                position = label.row - self.contents.layout.token_cell("tokens").row
                self.token(row, column, position, "label")
            else:
                self.sheet.write_string(row, column, label, self.looks("label"))
            if table.groups > 1:
                text = self.group_label(heading, place // width) if place % width == 0 else ""
                self.sheet.write_string(row - 1, column, text, self.looks("group"))

    @staticmethod
    def group_label(heading: Heading, group: int) -> str:
        return f"{heading.axes[0]} {group}"

    def column_labels(self, axes: tuple[str, ...], table: Table) -> list[str | int | Cell]:
        across = [axis for place, axis in enumerate(axes) if place != table.down]
        width = table.columns // table.groups
        match across[-1:]:
            case ["vocab"]:
                one: list[str | int | Cell] = list(self.contents.labels)
            case ["key"]:
                cells = (self.contents.layout.token_cell("tokens", key) for key in range(width))
                one = list(cells)
            case ["head" | "kv_head"]:
                one = [f"{across[-1]} {head}" for head in range(width)]
            case []:
                one = [_("token") if table.address == VOCABULARY else "id"]
            case _:
                one = list(range(width))
        return one * table.groups

    # ------------------------------------------------------------------ numbers

    def numbers(self, step: Step, table: Table) -> None:
        width = table.columns // table.groups
        part = table.address.partition("~")[1] != ""
        kind = "working" if part else "number"
        if step.op in ("given", "argmax"):
            kind = "id"
        kind = {TOKEN: "text", PROBABILITY: "number"}.get(table.address, kind)
        looked_up = step.op == "given" and not self.contents.operations.plain_lookup
        for index in table.indices():
            cell = table.cell(index)
            first = table.groups > 1 and (cell.column - table.column) % width == 0
            text = self.contents.operations.of(table.address, index)
            if text is None:
                masked = self.looks("masked", first=first)
                self.sheet.write_blank(cell.row, cell.column, None, masked)
                continue
            named = not part and self.contents.remarks.named(step.address, index)
            form = self.looks(kind, named=named, first=first)
            value: Shown = self.contents.values.of(table.address, index)
            if looked_up:
                self.sheet.write_array_formula(
                    cell.row, cell.column, cell.row, cell.column, "{=" + text + "}", form, value
                )
            else:
                self.sheet.write_formula(cell.row, cell.column, "=" + text, form, value)

    def weight(self, heading: Heading) -> None:
        """A table of weights, or the vocabulary, with its title and labels."""
        table, labels = heading.table, self.page.right
        self.labels(heading, self.column_labels(heading.axes, table))
        down = heading.axes[table.down] if table.down is not None else ""
        if table.address == VOCABULARY:
            self.said(heading.title, labels, VOCABULARY, axes_text(heading.axes, table.shape))
            for id, label in enumerate(self.contents.labels):
                self.sheet.write_number(table.row + id, labels, id, self.looks("place"))
                self.sheet.write_string(table.row + id, table.column, label, self.looks("known"))
            return
        for row in range(table.rows if down else 0):
            at = table.row + row
            if down == "vocab":
                self.sheet.write_string(at, labels, self.contents.labels[row], self.looks("place"))
            else:
                self.sheet.write_number(at, labels, row, self.looks("place"))
        name = table.address.removeprefix(WEIGHT)
        shape = axes_text(heading.axes, table.shape)
        shared = source(self.contents.model.weights, name)
        if shared is not None:
            turned = ".T" if shared[1] else ""
            shape += "   = " + WEIGHT + shared[0] + turned
        self.said(heading.title, labels, table.address, shape)
        self.entries(table, name, shared)

    def entries(self, table: Table, name: str, shared: tuple[str, bool] | None) -> None:
        tensor = self.contents.model.weights[name]
        form = self.looks("weight", places=places(tensor))
        for index in table.indices():
            cell, entry = table.cell(index), constant(tensor.data[index])
            if shared is not None:
                other = self.contents.layout.tables[WEIGHT + shared[0]]
                there = other.cell(index[::-1] if shared[1] else index)
                text = "=" + refer(there, sheet=table.sheet)
                value = float(self.contents.values.weight(name, index))
                self.sheet.write_formula(
                    cell.row, cell.column, text, self.looks("number", places=places(tensor)), value
                )
            elif entry.formula:
                value = float(self.contents.values.weight(name, index))
                self.sheet.write_formula(cell.row, cell.column, "=" + entry.formula, form, value)
            elif entry.number is None:
                self.sheet.write_blank(cell.row, cell.column, None, self.looks("masked"))
            else:
                self.sheet.write_number(cell.row, cell.column, AllDigits(entry.number), form)

    def highlights(self, band: Band) -> None:
        """Shares are shaded, and the largest logit of each row is marked."""
        heading = band.tables[-1] if band.step.op == "softmax" else band.tables[0]
        table = heading.table
        area = (table.row, table.column, table.last.row, table.last.column)
        if band.step.op == "softmax":
            self.sheet.conditional_format(*area, look.SHARES)
        if band.step.address == "logits":
            first, last = (column_letters(x.column) for x in (table.first, table.last))
            row = table.row + 1
            rule = f"={first}{row}=MAX(${first}{row}:${last}{row})"
            self.sheet.conditional_format(
                *area, {"type": "formula", "criteria": rule, "format": self.looks.highlight()}
            )

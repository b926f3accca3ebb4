"""The sheet of one stage: its title, the current prediction, and a band for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from byhand.document.media.xlsx import style
from byhand.document.media.xlsx.cells import Table, column_letters, refer
from byhand.document.media.xlsx.contents import Contents, Shown
from byhand.document.media.xlsx.formulas import constant, places, source
from byhand.document.media.xlsx.guide import about, title
from byhand.document.media.xlsx.layout import (
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
    Page,
)
from byhand.document.media.xlsx.settings import settings_of
from byhand.document.media.xlsx.style import AllDigits, Formats
from byhand.document.media.xlsx.training import typed
from byhand.document.words import axes_text, formula_text
from byhand.expression import Expression, Number
from byhand.language import _
from byhand.plan import WEIGHT, Step

SENTENCE_COLUMNS = 10  # over which a stage's sentence is spread


class Position(NamedTuple):
    """A column of a position of the text; its label follows the token there."""

    place: int


Label = str | int | Position


class Sheet:
    """One stage's sheet being written."""

    def __init__(
        self, contents: Contents, page: Page, sheet: Any, formats: Formats, live: tuple[str, str]
    ) -> None:
        self.contents = contents
        self.trace = contents.trace
        self.page = page
        self.sheet = sheet
        self.live = live
        self.formats = formats

    def write(self) -> None:
        """Writes the whole sheet."""
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
        """Sets the widths of the columns."""
        right = self.page.right
        self.sheet.hide_gridlines(2)
        self.sheet.set_column(PLACES, PLACES, style.PLACE_WIDTH)
        self.sheet.set_column(LABELS, LABELS, style.LABEL_WIDTH)
        self.sheet.set_column(LEFT, right - 2, style.NUMBER_WIDTH)
        self.sheet.set_column(right - 1, right - 1, style.GAP_WIDTH)
        weights = [h.table.last.column for band in self.page.bands for h in band.weights]
        self.sheet.set_column(right, right, style.LABEL_WIDTH)
        self.sheet.set_column(right + 1, max([right + 1, *weights]), style.NUMBER_WIDTH)

    def top(self) -> None:
        """The title, a sentence on the stage and the prediction as it stands now."""
        across = SENTENCE_COLUMNS
        self.sheet.set_row(0, style.TITLE_HEIGHT)
        self.put(0, 0, title(self.page.place), "title")
        self.sheet.set_row(1, style.SENTENCE_HEIGHT)
        self.sheet.merge_range(1, 0, 1, across, about(self.page.place), self.formats("sentence"))
        self.sheet.set_row(2, style.LIVE_HEIGHT, self.formats("live"))
        self.sheet.write_formula(2, 0, "=" + self.live[0], self.formats("live"), self.live[1])

    # ------------------------------------------------------------------ one step

    def band(self, band: Band) -> None:
        """One step with the weights that it reads first."""
        for heading in band.tables:
            self.titled(band.step, heading)
            self.numbers(band.step, heading.table)
        for place, name in enumerate(band.elsewhere):
            table = self.contents.layout.tables[name]
            text = _("{weight} stands on the sheet {sheet}").format(weight=name, sheet=table.sheet)
            target = "internal:" + refer(table.first)
            row = band.tables[0].title + place
            self.sheet.write_url(row, self.page.right, target, self.formats("link"), text)
        settings = dict(settings_of(band.step))
        for heading in band.weights:
            if (value := settings.get(heading.table.address)) is not None:
                self.setting(heading, value)
            else:
                self.weight(heading)
        self.highlights(band)

    def titled(self, step: Step, heading: Heading) -> None:
        """The address with its formula, the remarks, and the labels of rows and columns."""
        address, row = heading.table.address, heading.title
        part = address[len(step.address) :] if address.startswith(step.address) else address
        beside = {
            LARGEST: _("max"),
            TOTAL: _("sum"),
            TOKEN: _("token"),
            PROBABILITY: _("probability"),
        }
        if part in beside:
            self.labels(heading, [beside[part]] * heading.table.columns)
            return
        if part == POWERS:
            self.said(row, 0, "", f"e^(x − max), x = {step.inputs['x']}")
        else:
            facts = [formula_text(step.formula, step.address), axes_text(step.axes, step.shape)]
            facts.append(self.contents.remarks.register(step.address))
            also = [name for name, to in self.contents.plan.aliases.items() if to == address]
            names = " = ".join([address, *also])
            self.said(row, 0, names, "   ".join(fact for fact in facts if fact))
        for offset, remark in enumerate(heading.remarks, 1):
            self.put(row + offset, 0, remark, "remark")
        self.labels(heading, self.column_labels(heading.axes, heading.table))
        self.positions(step, heading.table)

    def said(self, row: int, column: int, address: str, text: str) -> None:
        """Writes an address and its description in one cell."""
        if not address:
            self.put(row, column, text, "formula")
            return
        bold, quiet = self.formats("address"), self.formats("formula")
        self.sheet.write_rich_string(row, column, bold, address, quiet, "   " + text)

    def positions(self, step: Step, table: Table) -> None:
        """Writes the number and the token of each row; on the first sheet tokens are typed here."""
        if step.op == "given" and step.address != "targets":
            for place, id in enumerate(self.given_ids(step)):
                if step.address == "tokens":
                    self.put(table.row + place, PLACES, place, "place")
                self.put(table.row + place, LABELS, self.contents.labels[id], "typed")
            self.choices(table)
        elif step.position_axis is None and table.down is not None:
            for row in range(table.rows):
                self.put(
                    table.row + row, LABELS, self.row_label(step.axes[table.down], row), "place"
                )
        elif table.down is not None:
            for place in range(table.rows):
                self.put(table.row + place, PLACES, place, "place")
                self.follow("tokens", place, table.row + place, LABELS, "token")
        elif step.op == "loss":
            self.follow("target", 0, table.row, LABELS, "token")

    def row_label(self, axis: str, row: int) -> str | int:
        """What stands beside a row that is no position: a token, or its number."""
        return self.contents.labels[row] if axis == "vocab" else row

    def given_ids(self, step: Step) -> tuple[int, ...]:
        """The ids of the text, or of the target."""
        if step.address == "tokens":
            return self.trace.tokens
        assert self.trace.target is not None
        return (self.trace.target,)

    def follow(self, address: str, place: int, row: int, column: int, kind: str) -> None:
        """Writes a label that follows the token typed at a position, or the target."""
        text = "=" + refer(self.contents.layout.token_cell(address, place), sheet=self.page.name)
        shown = self.contents.labels[self.given_ids(self.contents.plan[address])[place]]
        self.sheet.write_formula(row, column, text, self.formats(kind), shown)

    def put(self, row: int, column: int, value: str | int, kind: str) -> None:
        """Writes a number or a text, which is never taken for a formula."""
        write = self.sheet.write_number if isinstance(value, int) else self.sheet.write_string
        write(row, column, value, self.formats(kind))

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

    def labels(self, heading: Heading, labels: Sequence[Label]) -> None:
        """The labels above the columns, and above them those of groups such as heads."""
        table = heading.table
        row = table.row - 1
        if row == heading.title + len(heading.remarks):
            return
        width = table.columns // table.groups
        for place, label in enumerate(labels):
            column = table.column + place
            if isinstance(label, Position):
                self.follow("tokens", label.place, row, column, "label")
            else:
                self.put(row, column, label, "label")
            if table.groups > 1:
                text = f"{heading.axes[0]} {place // width}" if place % width == 0 else ""
                self.put(row - 1, column, text, "group")

    def column_labels(self, axes: tuple[str, ...], table: Table) -> list[Label]:
        """What stands above each column: a token, a position, a head, or the index."""
        across = [axis for place, axis in enumerate(axes) if place != table.down]
        width = table.columns // table.groups
        match across[-1:]:
            case ["vocab"]:
                one: list[Label] = list(self.contents.labels)
            case ["key"]:
                one = list(map(Position, range(width)))
            case ["head" | "kv_head" | "expert"]:
                one = [f"{across[-1]} {head}" for head in range(width)]
            case []:
                one = [_("token") if table.address == VOCABULARY else "id"]
            case _:
                one = list(range(width))
        return one * table.groups

    # ------------------------------------------------------------------ numbers

    def numbers(self, step: Step, table: Table) -> None:
        """Writes every number of a table: its formula, and its stored result."""
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
                masked = self.formats("masked", first=first)
                self.sheet.write_blank(cell.row, cell.column, None, masked)
                continue
            named = not part and self.contents.remarks.named(step.address, index)
            form = self.formats(kind, named=named, first=first)
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
                self.put(table.row + id, labels, id, "place")
                self.put(table.row + id, table.column, label, "known")
            return
        for row in range(table.rows if down else 0):
            self.put(table.row + row, labels, self.row_label(down, row), "place")
        name = table.address.removeprefix(WEIGHT)
        shape = axes_text(heading.axes, table.shape)
        shared = source(self.trace.model.weights, name)
        if shared is not None:
            turned = ".T" if shared[1] else ""
            shape += "   = " + WEIGHT + shared[0] + turned
        elif typed(table.address) in self.contents.layout.tables:
            sheet = self.contents.layout.tables[typed(table.address)].sheet
            shape += "   " + _("typed on the sheet {sheet}").format(sheet=sheet)
        self.said(heading.title, labels, table.address, shape)
        self.entries(table, name, shared)

    def setting(self, heading: Heading, value: Expression) -> None:
        """The eps or the scale of a step: one number to change, with its title."""
        table = heading.table
        step, _mark, name = table.address.partition("~")
        text = _("a setting: change it as you would a weight")
        self.said(heading.title, self.page.right, f"{step} {name}", text)
        entry = constant(value.value if isinstance(value, Number) else value)
        cell, form = table.first, self.formats("weight", places=-1)
        if isinstance(entry, str):
            result = self.contents.values.setting(value)
            self.sheet.write_formula(cell.row, cell.column, "=" + entry, form, result)
        else:
            assert entry is not None
            self.sheet.write_number(cell.row, cell.column, AllDigits(entry), form)

    def entries(self, table: Table, name: str, shared: tuple[str, bool] | None) -> None:
        """Writes the numbers of a weight; for a shared one, formulas that follow the original."""
        tensor = self.trace.model.weights[name]
        form = self.formats("weight", places=places(tensor))
        home = self.contents.layout.tables.get(typed(table.address))
        linked = self.formats("number", places=places(tensor) if home is None else -1)
        for index in table.indices():
            cell, entry = table.cell(index), constant(tensor.data[index])
            shown = form
            if home is not None:
                entry, shown = refer(home.cell(index), sheet=table.sheet), linked
            elif shared is not None:
                other = self.contents.layout.tables[WEIGHT + shared[0]]
                there = other.cell(index[::-1] if shared[1] else index)
                entry, shown = refer(there, sheet=table.sheet), linked
            if isinstance(entry, str):
                value = self.contents.values.weight(name, index)
                self.sheet.write_formula(cell.row, cell.column, "=" + entry, shown, value)
            elif entry is None:
                self.sheet.write_blank(cell.row, cell.column, None, self.formats("masked"))
            else:
                self.sheet.write_number(cell.row, cell.column, AllDigits(entry), shown)

    def highlights(self, band: Band) -> None:
        """Shades attention weights and probabilities, and marks the largest logit of each row."""
        heading = band.tables[-1] if band.step.op == "softmax" else band.tables[0]
        table = heading.table
        area = (table.row, table.column, table.last.row, table.last.column)
        if band.step.op == "softmax":
            self.sheet.conditional_format(*area, style.SHARES)
        if band.step.address == "logits":
            first, last = (column_letters(x.column) for x in (table.first, table.last))
            row = table.row + 1
            rule = f"={first}{row}=MAX(${first}{row}:${last}{row})"
            self.sheet.conditional_format(
                *area, {"type": "formula", "criteria": rule, "format": self.formats.highlight()}
            )

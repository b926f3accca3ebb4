"""The sheet of a training step: the learning rate, the three blocks of weights, losses to note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from byhand.document.media.xlsx import style
from byhand.document.media.xlsx.cells import Cell, Table, refer
from byhand.document.media.xlsx.contents import Contents, Shown
from byhand.document.media.xlsx.formulas import constant
from byhand.document.media.xlsx.style import Formats
from byhand.document.media.xlsx.training import (
    FIRST,
    LABELS,
    LEFT,
    LOSS_ROW,
    NEW,
    NORM,
    NORM_ROW,
    NOTED_LOSSES,
    OLD,
    RATE,
    RATE_ROW,
    STEPS_ROW,
    Row,
    StepPage,
    about_step,
    gradient_of,
    instructions,
)
from byhand.document.words import axes_text
from byhand.language import _
from byhand.plan import WEIGHT

SHOWN_PLACES = 4  # of a weight that learns
SENTENCE_COLUMNS = 10
LABEL_WIDTH = 16
CHART = {"width": 420, "height": 240}

Cells = Callable[[tuple[int, ...]], tuple[str, Shown]]


class StepSheet:
    """The sheet being written."""

    def __init__(
        self, contents: Contents, page: StepPage, book: Any, formats: Formats, live: tuple[str, str]
    ) -> None:
        self.contents = contents
        self.page = page
        self.book = book
        self.sheet = book.add_worksheet(page.name)
        self.formats = formats
        self.live = live

    def write(self) -> None:
        """Writes the whole sheet."""
        self.columns()
        self.top()
        for block, title in enumerate((_("weights now"), _("gradients"), _("new weights"))):
            self.sheet.write_string(FIRST, self.page.start(block), title, self.formats("heading"))
            for column in range(1, self.page.width):
                where = FIRST, self.page.start(block) + column
                self.sheet.write_blank(*where, None, self.formats("heading"))
        for row in self.page.rows:
            self.weight(row)
        self.noted()
        self.sheet.freeze_panes(3, LEFT)
        self.sheet.set_landscape()
        self.sheet.set_paper(9)  # A4
        self.sheet.fit_to_pages(1, 0)

    def names(self) -> dict[str, tuple[Cell, Cell]]:
        """The names of ranges that the sheet speaks of."""
        page = self.page
        return {
            RATE: (page.rate, page.rate),
            OLD: page.block(0),
            NEW: page.block(2),
            NOTED_LOSSES: page.losses,
        }

    def columns(self) -> None:
        """Sets the widths of the columns."""
        self.sheet.hide_gridlines(2)
        self.sheet.set_column(0, 0, style.PLACE_WIDTH)
        self.sheet.set_column(LABELS, LABELS, LABEL_WIDTH)
        self.sheet.set_column(LEFT, self.page.start(3) + 1, style.NUMBER_WIDTH)
        for block in (1, 2, 3):
            gap = self.page.start(block) - 1
            self.sheet.set_column(gap, gap, style.GAP_WIDTH)

    def top(self) -> None:
        """The title, the prediction as it stands now, the rate, the loss, and how to go on."""
        self.sheet.set_row(0, style.TITLE_HEIGHT)
        self.sheet.write_string(0, 0, _("One training step"), self.formats("title"))
        self.sheet.set_row(1, style.SENTENCE_HEIGHT)
        said = self.formats("sentence")
        self.sheet.merge_range(1, 0, 1, SENTENCE_COLUMNS, about_step(), said)
        self.sheet.set_row(2, style.LIVE_HEIGHT, self.formats("live"))
        self.sheet.write_formula(2, 0, "=" + self.live[0], self.formats("live"), self.live[1])
        self.sheet.write_string(RATE_ROW, 0, _("learning rate"), self.formats("address"))
        self.sheet.write_number(RATE_ROW, LEFT, 0.1, self.formats("weight", places=-1))
        self.sheet.write_string(LOSS_ROW, 0, _("loss now"), self.formats("address"))
        loss = self.contents.loss
        self.formula(Cell(self.page.name, LOSS_ROW, LEFT), self.refer(loss.first), loss.address)
        self.sheet.write_string(NORM_ROW, 0, _("gradient norm"), self.formats("address"))
        norm = self.contents.operations.of(NORM, (0,))
        assert norm is not None
        self.formula(self.page.norm.first, norm, NORM)
        for place, text in enumerate(instructions()):
            self.sheet.write_string(STEPS_ROW + place, 0, text, self.formats("formula"))

    def formula(self, cell: Cell, text: str, address: str) -> None:
        """One number that is not in a block."""
        value = self.contents.values.of(address, (0,))
        self.sheet.write_formula(cell.row, cell.column, "=" + text, self.formats("number"), value)

    def refer(self, cell: Cell) -> str:
        """How this sheet names a cell."""
        return refer(cell, sheet=self.page.name)

    # ------------------------------------------------------------------ the blocks

    def weight(self, row: Row) -> None:
        """One weight in the three blocks."""
        parameter, address = row.parameter, WEIGHT + row.parameter.name
        bold, quiet = self.formats("address"), self.formats("formula")
        shape = "   " + axes_text(parameter.axes, parameter.shape)
        self.sheet.write_rich_string(row.title, 0, bold, address, quiet, shape)
        self.rows_labelled(row)
        values, operations = self.contents.values, self.contents.operations
        tensor = self.contents.trace.model.weights[parameter.name]
        typed = self.formats("weight", places=SHOWN_PLACES)
        for index in row.now.indices():
            cell, entry = row.now.cell(index), constant(tensor.data[index])
            if isinstance(entry, str):
                value = values.weight(parameter.name, index)
                self.sheet.write_formula(cell.row, cell.column, "=" + entry, typed, value)
            elif entry is not None:
                self.sheet.write_number(cell.row, cell.column, style.AllDigits(entry), typed)
        gradient, here = gradient_of(row.gradient.address), self.page.name
        self.fill(
            row.gradient,
            lambda index: (
                operations.copied_gradient(row.gradient.address, index, here),
                values.of(gradient, index),
            ),
        )
        self.fill(
            row.new,
            lambda index: (
                operations.of(row.new.address, index) or "",
                values.of(row.new.address, index),
            ),
        )
        area = row.gradient.first, row.gradient.last
        ends = (area[0].row, area[0].column, area[1].row, area[1].column)
        self.sheet.conditional_format(*ends, style.GRADIENTS)

    def fill(self, table: Table, cells: Cells) -> None:
        """Writes the formulas of a table."""
        for index in table.indices():
            cell = table.cell(index)
            text, value = cells(index)
            form = self.formats("number")
            self.sheet.write_formula(cell.row, cell.column, "=" + text, form, value)

    def rows_labelled(self, row: Row) -> None:
        """The labels of rows, left of all blocks, and of columns, the same in each block."""
        table, axes = row.now, row.parameter.axes
        labels = self.contents.labels
        if table.down is not None:
            for place in range(table.rows):
                said = labels[place] if axes[table.down] == "vocab" else str(place)
                self.sheet.write_string(table.row + place, LABELS, said, self.formats("place"))
        across = [axis for at, axis in enumerate(axes) if at != table.down]
        for each in (row.now, row.gradient, row.new):
            for place in range(table.columns):
                said = labels[place] if across[-1] == "vocab" else str(place)
                where = table.row - 1, each.column + place
                self.sheet.write_string(*where, said, self.formats("label"))

    # ------------------------------------------------------------------ losses noted

    def noted(self) -> None:
        """A column in which the loss of each step is noted, and its curve."""
        first, last = self.page.losses
        self.sheet.write_string(FIRST, first.column - 1, _("step"), self.formats("heading"))
        self.sheet.write_string(FIRST, first.column, _("loss"), self.formats("heading"))
        for row in range(first.row, last.row + 1):
            self.sheet.write_number(row, first.column - 1, row - first.row, self.formats("place"))
            self.sheet.write_blank(row, first.column, None, self.formats("weight", places=4))
        loss = self.contents.values.of(self.contents.loss.address, (0,))
        if isinstance(loss, float):
            form = self.formats("weight", places=4)
            self.sheet.write_number(first.row, first.column, style.AllDigits(loss), form)
        chart = self.book.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
        name = self.page.name
        steps = [name, first.row, first.column - 1, last.row, first.column - 1]
        losses = [name, first.row, first.column, last.row, first.column]
        line = {"color": style.ACCENT}
        marker = {"type": "circle", "fill": line, "border": line}
        chart.add_series({"categories": steps, "values": losses, "line": line, "marker": marker})
        chart.set_legend({"none": True})
        chart.set_x_axis({"name": _("step"), "min": 0})
        chart.set_y_axis({"name": _("loss"), "min": 0})
        chart.set_size(CHART)
        self.sheet.insert_chart(first.row, first.column + 2, chart)

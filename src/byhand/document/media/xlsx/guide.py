"""The first sheet: what the file is and how to read it, in the current language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from byhand.document import words
from byhand.document.media.xlsx.cells import Cell, refer
from byhand.document.media.xlsx.contents import Remarks
from byhand.document.media.xlsx.layout import Layout
from byhand.document.media.xlsx.style import Formats
from byhand.document.media.xlsx.training import StepPage, about_step, instructions
from byhand.document.words import Place
from byhand.language import _
from byhand.model import Model
from byhand.plan import GRAD

SIGN, TEXT = 0, 1  # the two columns
SIGN_WIDTH, TEXT_WIDTH = 22, 92
LINE_HEIGHT, CHARACTERS = 15, 105  # of a line of text


def guide_name() -> str:
    """The name of the sheet."""
    return _("How to read this")


class Guide:
    """The guide sheet, written from top to bottom."""

    def __init__(self, sheet: Any, formats: Formats) -> None:
        self.sheet = sheet
        self.formats = formats
        self.row = 0

    def write(
        self,
        model: Model,
        layout: Layout,
        remarks: Remarks,
        aliases: Mapping[str, str],
        live: tuple[str, str],
    ) -> None:
        """Writes the whole sheet."""
        self.sheet.hide_gridlines(2)
        self.sheet.set_column(SIGN, SIGN, SIGN_WIDTH)
        self.sheet.set_column(TEXT, TEXT, TEXT_WIDTH)
        self.sheet.set_row(0, 30)
        title = _("{model}, worked out in live formulas").format(model=model.name)
        self.sheet.write_string(0, SIGN, title, self.formats("title"))
        self.sheet.write_formula(1, SIGN, "=" + live[0], self.formats("live"), live[1])
        self.sheet.write_blank(1, TEXT, None, self.formats("live"))
        self.sheet.freeze_panes(2, 0)
        self.row = 3
        if model.about:
            self.say(words.told(model.about))
        self.say(
            _(
                "Every number of the pass, from the text to the next token, is a formula "
                "of the cells it is worked out from. Change a weight or a token, and "
                "everything that follows from it changes. Watch the prediction in the "
                "green line, at the top of every sheet."
            )
        )
        self.cells_explained(remarks)
        self.rules(layout.tables["tokens"].rows)
        if layout.step is not None:
            self.training(layout.step)
        self.contents(layout)
        self.second_names(layout, aliases)
        self.sheet.set_portrait()
        self.sheet.fit_to_pages(1, 0)

    def head(self, text: str) -> None:
        """A heading over both columns."""
        self.row += 1
        self.sheet.write_string(self.row, SIGN, text, self.formats("heading"))
        self.sheet.write_blank(self.row, TEXT, None, self.formats("heading"))
        self.row += 1

    def say(self, text: str) -> None:
        """Writes a paragraph over both columns."""
        self.sheet.merge_range(self.row, SIGN, self.row, TEXT, text, self.formats("paragraph"))
        width = CHARACTERS * (SIGN_WIDTH + TEXT_WIDTH) // TEXT_WIDTH
        self.sheet.set_row(self.row, LINE_HEIGHT * (1 + len(text) // width))
        self.row += 1

    def beside(self, text: str) -> None:
        """Writes the explanation of the sign in the left column."""
        self.sheet.write_string(self.row, TEXT, text, self.formats("explained"))
        self.sheet.set_row(self.row, LINE_HEIGHT * (1 + len(text) // CHARACTERS))
        self.row += 1

    def cells_explained(self, remarks: Remarks) -> None:
        """Writes a sample of each kind of cell, and its meaning."""
        self.head(_("The cells"))
        samples: list[tuple[str, bool, str | float | None, str]] = [
            ("weight", False, 0.5, _("a weight: change it and watch the green line")),
            (
                "typed",
                False,
                _("a word"),
                _("a token of the text, or the target: choose another one of the vocabulary"),
            ),
            ("number", False, 1.0, _("a number of the pass: click it and read its formula")),
        ]
        if remarks.some:
            samples.append(("number", True, 0.7071, words.register_about("named")))
        samples += [
            ("working", False, 0.3679, _("a line of working that has no address of its own")),
            ("masked", False, None, _("masked: this position does not look at that one")),
        ]
        for kind, named, value, text in samples:
            form = self.formats(kind, named=named)
            self.sheet.write(self.row, SIGN, value, form)
            self.beside(text)

    def rules(self, length: int) -> None:
        """Writes how to read the tables."""
        self.head(_("The tables"))
        for text in (
            _(
                "Above each table stands its address, as byhand trace says it, with the formula "
                "in symbols. Most spreadsheet programs go to a table when its address is typed "
                "into the name box, left of the formula line."
            ),
            _(
                "A row is a position of the text, a column an entry; heads stand side by side. "
                "Weights stand to the right of the step that first reads them."
            ),
            _(
                "A softmax is worked out from e^(x − max), where max is the largest number "
                "of its row. The result is the same, and nothing grows too large."
            ),
            _(
                "Spreadsheets work with about 15 digits. What byhand trace keeps exact is rounded "
                "here, in the last of them."
            ),
            _(
                "Registers were worked out for the weights and the text that this file was "
                "made with. So were the remarks ◆ and ◇, which say where the exact numbers "
                "are left and reached again."
            ),
            _("The text keeps its length: {length} tokens.").format(length=words.whole(length)),
        ):
            self.say("· " + text)

    def training(self, page: StepPage) -> None:
        """How to train in the file."""
        self.head(_("Training in the spreadsheet"))
        self.say(
            _(
                "The weights are typed on the sheet {sheet}, in yellow; the tables beside "
                "the steps follow them. Their gradients are there too, and so are the new "
                "weights after one step."
            ).format(sheet=page.name)
        )
        for text in instructions():
            self.say(text)

    def contents(self, layout: Layout) -> None:
        """The sheets with links to them."""
        self.head(_("The sheets"))
        for page in layout.pages:
            target = "internal:" + refer(Cell(page.name, 0, 0))
            self.sheet.write_url(self.row, SIGN, target, self.formats("link"), page.name)
            self.beside(about(page.place))
        if layout.step is not None:
            target = "internal:" + refer(Cell(layout.step.name, 0, 0))
            self.sheet.write_url(self.row, SIGN, target, self.formats("link"), layout.step.name)
            self.beside(about_step())

    def second_names(self, layout: Layout, aliases: Mapping[str, str]) -> None:
        """The further names of tables with links to them."""
        shown = {
            name: to
            for name, to in aliases.items()
            if to in layout.tables and not name.startswith(GRAD)
        }
        if not shown:
            return
        self.head(_("Second names"))
        for name, to in shown.items():
            target = "internal:" + refer(layout.tables[to].first)
            self.sheet.write_url(self.row, SIGN, target, self.formats("link"), name)
            self.beside(_("the same table as {address}").format(address=to))


def title(place: Place) -> str:
    """The title of a stage's sheet."""
    match place.kind:
        case "text":
            return _("Text and tokens")
        case "end":
            return _("The next token")
        case "backward":
            return _("Backward: the gradient of the loss")
        case _:
            return words.stage_title(place)


def about(place: Place) -> str:
    """A sentence or two on a stage."""
    if place.kind == "backward":
        return _(
            "How the loss would change with each number, worked out from the loss back to every "
            "weight. grad.X is the gradient with respect to X."
        )
    told = {"text": "tokens", "end": "next"}.get(place.kind)
    return words.stage_about(Place(told) if told else place)


def unique_labels(tokens: Sequence[str], size: int) -> tuple[str, ...]:
    """Every token as a unique label for a cell; ids without a token are numbered.

    >>> unique_labels(["a", "b", "a"], 4)
    ('a #0', 'b', 'a #2', '#3')
    """
    labels = [words.token_label(token) for token in tokens[:size]]
    counts = Counter(labels)
    told_apart = [
        label if counts[label] == 1 else f"{label} #{id}" for id, label in enumerate(labels)
    ]
    return (*told_apart, *(f"#{id}" for id in range(len(labels), size)))

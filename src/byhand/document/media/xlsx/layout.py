"""The layout of a plan on sheets: one for each stage, and a place for every table.

The steps are on the left, one below the other, with a row for each position of the text.  The
weights are on the right, beside the step that first reads them.  The number of cells is known
before writing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from byhand.document.media.xlsx.cells import MOST_COLUMNS, MOST_ROWS, Cell, Table
from byhand.document.media.xlsx.settings import settings_of
from byhand.document.media.xlsx.training import DOWN, StepPage, step_page
from byhand.document.words import Place, place_of, whole
from byhand.errors import InputError
from byhand.language import _
from byhand.parameters import Parameter, parameters
from byhand.plan import WEIGHT, Plan, Step

MOST_CELLS = 150_000  # with numbers: about 100,000 weights and a text of some tens of tokens
MOST_TRAINED = 50_000  # with a training step, after which all of them are worked out anew

PLACES, LABELS = 0, 1  # the columns with the position and its token
LEFT = 2  # the first column of the steps
LINKS = 10  # the least column of links to weights, beside gradients
TOP = 4  # the first row of the tables, below the title, a sentence and the prediction

VOCABULARY = "vocabulary"
LOSSES = ("targets", "losses", "mean_loss")  # of all positions
IDS = ("tokens", "target", "next")  # the tables whose only column is labelled
POWERS, LARGEST, TOTAL = "~powers", "~largest", "~total"  # the working of a softmax
TOKEN, PROBABILITY = "~token", "~probability"  # the words beside the next id


@dataclass(frozen=True, slots=True)
class Heading:
    """A table with the row of its title and the axes that it has."""

    table: Table
    title: int
    axes: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """One step: its table or tables on the left, the weights that it reads on the right."""

    step: Step
    tables: tuple[Heading, ...]
    weights: tuple[Heading, ...]
    elsewhere: tuple[str, ...] = ()  # its weights that stand beside an earlier step


@dataclass(frozen=True, slots=True)
class Page:
    """One sheet; `right` is the column of the labels of its weights."""

    name: str
    place: Place
    bands: tuple[Band, ...]
    right: int


@dataclass(frozen=True)
class Layout:
    """All sheets, and every table by its address; `step` is the sheet of a training step."""

    pages: tuple[Page, ...]
    tables: Mapping[str, Table]
    step: StepPage | None = None

    def page(self, kind: str) -> Page:
        """The sheet of a stage."""
        return next(page for page in self.pages if page.place.kind == kind)

    def token_cell(self, address: str, position: int = 0) -> Cell:
        """The cell for typing a token of the text, or the target: left of its id."""
        return self.tables[address].first.beside(position, -1)


def lay_out(plan: Plan, remarks: Mapping[str, Sequence[str]]) -> Layout:
    """The layout of every step and weight of a plan; `remarks` stand below a title."""
    check_size(plan)
    inventory = {WEIGHT + p.name: p for p in parameters(plan.spec)}
    stages: dict[Place, list[Step]] = {}
    for step in plan:
        if step.stage != "update":
            stages.setdefault(_stage(step), []).append(step)
    tables: dict[str, Table] = {}
    pages = []
    for place, steps in stages.items():
        unplaced = {name: p for name, p in inventory.items() if name not in tables}
        page = _Page(sheet_name(place), plan, steps, unplaced, remarks).laid_out(place)
        pages.append(page)
        for band in page.bands:
            tables |= {h.table.address: h.table for h in (*band.tables, *band.weights)}
    step_sheet = step_page(plan)
    if step_sheet is not None:
        tables |= {table.address: table for table in step_sheet.tables}
        _check_sheet(step_sheet.name, [step_sheet.losses[1], step_sheet.block(2)[1]])
    return Layout(tuple(pages), tables, step_sheet)


def sheet_name(place: Place) -> str:
    """The name of a stage's sheet: short, since formulas spell it out."""
    match place.kind:
        case "text":
            return _("Text")
        case "embedding":
            return _("Embedding")
        case "relative":
            return _("Distances")
        case "attn":
            return _("Attention {layer}").format(layer=place.layer)
        case "mlp":
            return _("MLP {layer}").format(layer=place.layer)
        case "backward":
            return _("Backward")
        case _:
            return _("Next token")


def _stage(step: Step) -> Place:
    if step.stage == "backward":
        return Place(step.stage)
    if step.address in ("tokens", "target"):
        return Place("text")
    if step.address in LOSSES:
        return Place("end")
    place = place_of(step.address)
    return Place("end") if place.kind in ("final", "next", "loss") else place


class _Page:
    """A sheet on which tables are placed one below the other."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        steps: Iterable[Step],
        weights: dict[str, Parameter],
        remarks: Mapping[str, Sequence[str]],
    ) -> None:
        self.name = name
        self.plan = plan
        self.steps = tuple(steps)
        self.unplaced = weights
        self.remarks = remarks
        self.right = LEFT + max(self.width(step) for step in self.steps) + 1
        if self.steps[0].stage == "backward":  # long titles, and only links on the right
            self.right = max(self.right, LINKS)

    def laid_out(self, place: Place) -> Page:
        """The sheet with a band for each step, one below the other."""
        row, bands = TOP, []
        for step in self.steps:
            weights = [name for name in step.reads if name.startswith(WEIGHT)]
            elsewhere = tuple(name for name in weights if name not in self.unplaced)
            below = row + len(elsewhere)
            band = Band(
                step, tuple(self.left(step, row)), tuple(self.beside(step, below)), elsewhere
            )
            last = [h.table.last for h in (*band.tables, *band.weights)]
            _check_sheet(self.name, last)
            row = max(cell.row for cell in last) + 2
            bands.append(band)
        return Page(self.name, place, tuple(bands), self.right)

    def width(self, step: Step) -> int:
        """The columns that a step and its working take."""
        columns = prod(step.shape) // _length(step)
        if step.op == "softmax":
            return columns + 1 + 2 * (columns // step.shape[-1])
        return columns + 2 * (step.op == "argmax")

    def left(self, step: Step, row: int) -> Iterator[Heading]:
        """The table of a step, with those of its working."""
        if step.op == "softmax":
            powers = self.heading(step.address + POWERS, row, LEFT, step.shape, step.axes)
            yield powers
            table = powers.table
            column = table.column + table.columns + 1
            for name in (LARGEST, TOTAL):
                small = Table(
                    step.address + name, self.name, table.row, column, step.shape[:-1],
                    step.position_axis,
                )  # fmt: skip
                yield Heading(small, row, step.axes[:-1])
                column += small.columns
            row = table.last.row + 2
        heading = self.heading(step.address, row, LEFT, step.shape, step.axes)
        yield heading
        if step.op == "argmax":
            for place, name in enumerate((TOKEN, PROBABILITY), 1):
                beside = heading.table.first.beside(0, place)
                table = Table(name, self.name, beside.row, beside.column, step.shape, 0)
                yield Heading(table, row, step.axes)

    def beside(self, step: Step, row: int) -> Iterator[Heading]:
        """The settings, the weights that no earlier step read, for the tokens the vocabulary."""
        if step.address == "tokens":
            size = self.plan.spec.vocab
            yield self.heading(VOCABULARY, row, self.right + 1, (size,), ("vocab",), down=0)
        for name, _value in settings_of(step):
            heading = self.heading(name, row, self.right + 1, (1,), ("one",), down=None)
            yield heading
            row = heading.table.last.row + 2
        for name in step.reads:
            if (parameter := self.unplaced.pop(name, None)) is not None:
                down = DOWN[len(parameter.shape)]
                heading = self.heading(
                    name, row, self.right + 1, parameter.shape, parameter.axes, down=down
                )
                yield heading
                row = heading.table.last.row + 2

    def heading(
        self,
        address: str,
        row: int,
        column: int,
        shape: tuple[int, ...],
        axes: tuple[str, ...],
        down: int | None = -1,
    ) -> Heading:
        """A table below its title, its remarks and its row or rows of labels."""
        remarks = tuple(self.remarks.get(address, ()))
        if down == -1:
            down = _down(axes)
        flat = Table(address, self.name, 0, column, shape, down)
        unlabelled = shape in ((), (1,)) or axes == ("pos",)
        labels = 0 if unlabelled and address not in IDS else 1 + (flat.groups > 1)
        first = row + 1 + len(remarks) + labels
        return Heading(Table(address, self.name, first, column, shape, down), row, axes, remarks)


def _down(axes: tuple[str, ...]) -> int | None:
    """The axis that runs down: the positions, or as in a weight."""
    positions = (axes.index(name) for name in ("query", "pos") if name in axes)
    return next(positions, DOWN.get(len(axes)))


def _length(step: Step) -> int:
    axis = _down(step.axes)
    return 1 if axis is None else step.shape[axis]


# ------------------------------------------------------------------ how large it is


def check_size(plan: Plan) -> None:
    """Refuses a file that would be too large, and a pass without a text, before writing."""
    if plan.spec.encoder is not None:
        raise InputError(
            _("a spreadsheet works one text out, and this model reads a source beside it"),
            expected=_("a model without an encoder"),
            found=plan.spec.name,
            hint=_("the book without --xlsx shows all numbers"),
        )
    for step in plan:
        if step.op == "given" and step.address not in ("tokens", "target", "targets"):
            raise InputError(
                _("a pass that goes on from an earlier one is not a spreadsheet by itself"),
                where=step.address,
                hint=_("work out the whole text at once"),
            )
    weights, numbers = _sizes(plan)
    if weights + numbers > MOST_CELLS:
        raise InputError(
            _("this is too large for a spreadsheet"),
            where=plan.spec.name,
            expected=_("at most {count} numbers").format(count=whole(MOST_CELLS)),
            found=_("{all} numbers: {weights} weights and {working} of the working").format(
                all=whole(weights + numbers), weights=whole(weights), working=whole(numbers)
            ),
            hint=_("take a smaller model or a shorter text; byhand trace --out has no such limit"),
        )


def has_room(plan: Plan) -> bool:
    """Whether a plan with a training step stays usable as a spreadsheet."""
    return sum(_sizes(plan)) <= MOST_TRAINED


def _sizes(plan: Plan) -> tuple[int, int]:
    """How many weights there are, and how many numbers of the working."""
    weights = sum(parameter.size for parameter in parameters(plan.spec))
    return weights, sum(prod(step.shape) * (1 + (step.op == "softmax")) for step in plan)


def _check_sheet(name: str, ends: Iterable[Cell]) -> None:
    for cell in ends:
        if cell.row >= MOST_ROWS or cell.column >= MOST_COLUMNS:
            raise InputError(
                _("this is too large for a spreadsheet"),
                where=name,
                expected=_("at most {rows} rows and {columns} columns").format(
                    rows=whole(MOST_ROWS), columns=whole(MOST_COLUMNS)
                ),
                found=f"{whole(cell.row + 1)} × {whole(cell.column + 1)}",
            )

"""The data of a worksheet: blanks, given lines, questions, and the options of a sheet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from shlex import quote

from byhand.document.book import Book, Passage
from byhand.document.parts import Number, NumberTable
from byhand.errors import UsageError
from byhand.language import _, whole
from byhand.optimizer import UPDATE, Rule
from byhand.plan import GRAD

VALUES, SHAPES, COUNTS = "values", "shapes", "counts"
GRADIENTS, STEP = "gradients", "step"
USUAL_KINDS = (VALUES, SHAPES, COUNTS)
LEARNING = (GRADIENTS, STEP)  # lines of a training step
KINDS = (*USUAL_KINDS, *LEARNING)
WORKED = (VALUES, *LEARNING)  # lines of numbers that are worked out
USUAL_BLANKS, MOST_BLANKS = 24, 10_000


@dataclass(frozen=True, slots=True)
class Questioning:
    """The options of a worksheet: the number and kinds of lines, their decimals, and the seed.

    Without `decimals`, there are enough that no divisor is rounded to 0.
    """

    blanks: int = USUAL_BLANKS
    which: Collection[str] = USUAL_KINDS
    decimals: int | None = None
    seed: int = 0

    @classmethod
    def asked(
        cls,
        *,
        blanks: int | None = None,
        which: Collection[str] | None = None,
        decimals: int | None = None,
        seed: int | None = None,
    ) -> Questioning:
        """The options from a user's arguments; None is the default.  A UsageError if they clash."""
        found = cls(
            USUAL_BLANKS if blanks is None else blanks,
            USUAL_KINDS if which is None else tuple(dict.fromkeys(which)),
            decimals,
            seed or 0,
        )
        found.refuse()
        return found

    @property
    def learning(self) -> bool:
        """Whether lines of a training step are asked for."""
        return any(kind in LEARNING for kind in self.which)

    @property
    def worked(self) -> bool:
        """Whether lines of numbers are asked for."""
        return any(kind in WORKED for kind in self.which)

    def refuse(self) -> None:
        """Raises a UsageError for options that no worksheet can have."""
        if not 1 <= self.blanks <= MOST_BLANKS:
            raise UsageError(
                _("a worksheet needs blanks"),
                expected=_("a whole number from {least} to {most}").format(
                    least=1, most=whole(MOST_BLANKS)
                ),
                found=str(self.blanks),
            )
        for kind in self.which or ("",):
            if kind not in KINDS:
                raise UsageError(
                    _("a worksheet cannot ask for {what}").format(what=repr(kind)),
                    expected=", ".join(KINDS),
                    found=repr(kind),
                )


@dataclass(frozen=True, slots=True)
class Blank:
    """A line to be filled in: one address of the claims, one mark.

    `places` are the addresses of its numbers, one for each answer.  A single number that is no row
    has one place, its own address.
    """

    address: str  # block.0.attn.scores[0,3], count.total, next[3]
    kind: str  # one of KINDS
    places: tuple[str, ...]
    answers: tuple[str, ...]  # with a decimal point
    row: bool = True  # whether the claims file has a list here


def kind_of(address: str) -> str:
    """The kind of a line of numbers: of the pass, of the way back, or of new weights."""
    if address.startswith(UPDATE):
        return STEP
    back = address.startswith((GRAD, "losses", "mean_loss"))
    return GRADIENTS if back else VALUES


@dataclass(frozen=True, slots=True)
class Size:
    """The length of an axis."""

    axis: str  # d_ff
    length: int


@dataclass(frozen=True, slots=True)
class Given:
    """A line printed on the sheet, in the claims file's form; it earns no marks."""

    address: str
    value: str  # a number, or nested lists of them, with blanks where numbers are asked for


@dataclass(frozen=True, slots=True)
class Asked:
    """A line of a table of questions: a component with its count, a step with a side of its shape.

    Lines that are not asked for are given.
    """

    address: str  # of the count: count.block.0.attention, count.d_ff
    label: str
    detail: str  # the formula, the axes
    value: str  # in the book's language
    where: tuple[str, ...] = ()  # addresses of tensors or steps
    sides: tuple[Size, ...] = ()  # of the step whose side is asked for


@dataclass(frozen=True, slots=True)
class Questions:
    """A table of questions about counts or shapes."""

    id: str
    title: str
    sentence: str
    heads: tuple[str, str, str]
    lines: tuple[Asked, ...]


@dataclass(frozen=True)
class Worksheet:
    """A worksheet and its key; the medium decides whether to show answers.

    `book` holds the passages, in pencil numbers and without anything that gives a blank away;
    `workings` is the complete book, for the key.
    """

    book: Book
    workings: Book
    blanks: tuple[Blank, ...]
    questions: tuple[Questions, ...]
    text: str
    target: str | None
    decimals: int | None  # None: no value is asked for
    seed: int
    given: tuple[Given, ...] = ()
    tokens: Mapping[str, str] = field(default_factory=dict)  # next[3] → the word
    sizes: tuple[Size, ...] = ()  # those asked for
    called: str = ""  # the model's name on the command line
    rule: Rule | None = None  # of the training step, where one is asked about

    @cached_property
    def answers(self) -> Mapping[str, str]:
        """The answer for each blank place."""
        return {p: a for b in self.blanks for p, a in zip(b.places, b.answers, strict=True)}

    @property
    def command(self) -> str:
        """The command that marks the sheet, saved as worksheet.yaml."""
        return f"byhand check {quote(self.called)} worksheet.yaml"

    @property
    def marks(self) -> int:
        """The number of marks to win."""
        return len(self.blanks)


def numbers_in(passages: Iterable[Passage]) -> Iterator[Number]:
    """Every number in the tables of some passages."""
    for passage in passages:
        for part in passage.show:
            if isinstance(part, NumberTable):
                yield from (number for row in part.rows for number in row.numbers)

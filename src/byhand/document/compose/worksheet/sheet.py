"""The data of a worksheet: blanks, given lines, questions, and the options of a sheet."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from shlex import quote
from unicodedata import combining, normalize

from byhand.document.book import Book, Passage
from byhand.document.parts import Number, NumberTable
from byhand.errors import UsageError, nearest
from byhand.language import _, whole
from byhand.optimizer import UPDATE, Rule
from byhand.plan import GRAD

VALUES, SHAPES, COUNTS = "values", "shapes", "counts"
GRADIENTS, STEP = "gradients", "step"
USUAL_KINDS = (VALUES, SHAPES, COUNTS)
LEARNING = (GRADIENTS, STEP)  # lines of a training step
KINDS = (*USUAL_KINDS, *LEARNING)
WORKED = (VALUES, *LEARNING)  # lines of numbers that are worked out
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 ]*[A-Za-z0-9]|[A-Za-z]")
_WORDS_OF_YAML = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "masked"}
SPREAD, ROW, BLOCK, PASS, MISTAKE, BACKWARD = (
    "spread",
    "row",
    "block",
    "pass",
    "mistake",
    "backward",
)
LEVELS = (SPREAD, ROW, BLOCK, PASS, MISTAKE, BACKWARD)
NUMBER_OF_LINE, CORRECTION = "mistake", "correction"  # what a sheet of the level MISTAKE asks
IN_A_CHAIN = (ROW, BLOCK, PASS, MISTAKE)  # levels that follow one position line by line
USUAL_BLANKS, MOST_BLANKS = 24, 10_000


@dataclass(frozen=True, slots=True)
class Questioning:
    """The options of a worksheet: its level, the number and kinds of lines, decimals and the seed.

    | level | what is asked for |
    |---|---|
    | spread | lines here and there, `blanks` of them, of the kinds of `which` |
    | row | one row of the first attention: the last position's, in the first head |
    | block | the first block, at the last position |
    | pass | the whole pass, at the last position |
    | mistake | which line of a printed working is wrong, and what it should say |
    | backward | losses, gradients and new weights, `blanks` of them |

    Without `decimals`, there are enough that no divisor is rounded to 0.  An `exact` sheet asks for
    exact and named numbers.  With `students`, each of them gets a copy with the name on it.
    """

    blanks: int = USUAL_BLANKS
    which: Collection[str] = USUAL_KINDS
    decimals: int | None = None
    seed: int = 0
    level: str = SPREAD
    exact: bool = False
    students: tuple[str, ...] = ()

    @classmethod
    def asked(
        cls,
        *,
        blanks: int | None = None,
        which: Collection[str] | None = None,
        decimals: int | None = None,
        seed: int | None = None,
        level: str | None = None,
        exact: bool = False,
        students: Collection[str] = (),
    ) -> Questioning:
        """The options from a user's arguments; None is the default.  A UsageError if they clash."""
        named = SPREAD if level is None else level
        usual = {SPREAD: USUAL_KINDS, BACKWARD: LEARNING}.get(named, (VALUES,))
        found = cls(
            USUAL_BLANKS if blanks is None else blanks,
            usual if which is None else tuple(dict.fromkeys(which)),
            decimals,
            seed or 0,
            named,
            exact,
            tuple(dict.fromkeys(students)),
        )
        found.refuse()
        _refuse_beside(named, ask=which, blanks=blanks)
        if exact and named == MISTAKE:
            raise UsageError(
                _("a mistake is planted in a working in decimals"),
                hint=_("leave out --exact: decimals are asked for then"),
            )
        if exact and decimals is not None:
            raise UsageError(
                _("a worksheet is exact or in decimals, not both"),
                expected=_("one of {names}").format(names="exact, decimals"),
            )
        return found

    @property
    def chained(self) -> bool:
        """Whether the sheet follows one position line by line."""
        return self.level in IN_A_CHAIN

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
        if self.level not in LEVELS:
            raise UsageError(
                _("a worksheet has no level {what}").format(what=repr(self.level)),
                expected=", ".join(LEVELS),
                found=repr(self.level),
                hint=nearest(self.level, LEVELS),
            )
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


def _refuse_beside(level: str, **given: object) -> None:
    """Raises a UsageError for an option that says what the level says already."""
    own = () if level == SPREAD else ("ask",) if level == BACKWARD else ("ask", "blanks")
    for name in own:
        if given[name] is not None:
            raise UsageError(
                _("{name} does not go with {other}").format(name=name, other=f"level {level}"),
                hint=_("the level {level} says itself what is asked for").format(level=level),
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


@dataclass(frozen=True, slots=True)
class Planted:
    """A printed working with one wrong line; `wrong` is the number of that line, from 1."""

    lines: tuple[Given, ...]
    wrong: int
    right: tuple[str, ...]  # what the line should say
    address: str  # of that line
    places: tuple[str, ...]  # of its numbers
    op: str  # what it works out: "add", "softmax"


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
    level: str = SPREAD
    exact: bool = False
    student: str = ""  # whose copy it is; empty: anybody's
    planted: Planted | None = None  # the working that is to be corrected

    @cached_property
    def answers(self) -> Mapping[str, str]:
        """The answer for each blank place."""
        return {p: a for b in self.blanks for p, a in zip(b.places, b.answers, strict=True)}

    @property
    def file(self) -> str:
        """The name of the file of answers, with the student's name in it."""
        return f"{file_stem(self.student)}.yaml"

    @property
    def command(self) -> str:
        """The command that marks the sheet's file of answers, in the folder where that lies."""
        ends = "-- " if self.called.startswith("-") else ""
        return f"byhand check {ends}{quote(self.called)} {quote(self.file)}"

    @property
    def marks(self) -> int:
        """The number of marks to win."""
        return len(self.blanks)


def file_stem(student: str) -> str:
    """worksheet-ana-maria for Ana María; worksheet where there is no name.

    >>> file_stem("Ana María"), file_stem("")
    ('worksheet-ana-maria', 'worksheet')
    """
    plain = normalize("NFKD", student)
    letters = "".join(sign for sign in plain if not combining(sign)).lower()
    return "-".join(filter(None, ("worksheet", re.sub(r"[\W_]+", "-", letters).strip("-"))))


def quoted(text: str) -> str:
    """A word, a number or a text as YAML writes it.

    >>> print(quoted("the cat"), quoted("on"), quoted("0.25"), quoted("a: b"))
    the cat "on" 0.25 "a: b"
    """
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return text
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_OF_YAML:
        return text
    return json.dumps(text, ensure_ascii=False)


def numbers_in(passages: Iterable[Passage]) -> Iterator[Number]:
    """Every number in the tables of some passages."""
    for passage in passages:
        for part in passage.show:
            if isinstance(part, NumberTable):
                yield from (number for row in part.rows for number in row.numbers)

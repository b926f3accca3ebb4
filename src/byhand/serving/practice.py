"""Exercises: one number to work out from its inputs, and the marking of an answer.

Without an answer, a line is chosen by a seed and shown with its inputs.  An answer is judged from
those inputs as they were shown, so an answer that follows from them is right.  The right number is
given only on request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from random import Random
from typing import Any

from byhand.address import write_index
from byhand.checking.claims import Sheet
from byhand.checking.marking import mark
from byhand.checking.readers.handwriting import entry_of
from byhand.checking.verdicts import Marked, Verdict
from byhand.document import words
from byhand.document.compose.book.spoken_numbers import rational_of
from byhand.document.compose.book.strips import near
from byhand.document.compose.tables import COPIES
from byhand.document.meanings import meaning
from byhand.document.media.html import served
from byhand.document.numerals import localised
from byhand.errors import InputError
from byhand.evaluate import Progress
from byhand.files.tree import Scalar
from byhand.language import _
from byhand.numbers.base import ABSENT
from byhand.plan import WEIGHT, Step
from byhand.serving.diagnosis import diagnosed
from byhand.serving.fields import missing, text
from byhand.serving.number import entry_named, made_of
from byhand.serving.number_texts import number_text
from byhand.serving.passages import passage_id
from byhand.serving.states import Library
from byhand.serving.worked_state import Pass, pass_of
from byhand.worked import Worked

RIGHT, ROUNDING, WRONG, UNREAD, UNJUDGED = "right", "rounding", "wrong", "unread", "unjudged"
SIGN = {RIGHT: "✓", ROUNDING: "≈", WRONG: "✗", UNREAD: "?", UNJUDGED: "?"}
MOST_TERMS = 12  # numbers in a line to be worked out
MOST_GIVEN = 64  # numbers that an answer is judged from
MOST_TRIES = 12  # entries of a step that are tried
DECIMALS = 3  # decimals asked for
SHOWN = 4  # decimals of the given numbers
SEVERAL = 2  # factor from which an answer is called too large or too small
NEAR_MISS = 5  # units of the last written decimal within which a mistake may be rounding
LONGEST_ANSWER = 200

Index = tuple[int, ...]


def practice(
    library: Library, asked: Mapping[str, Any], progress: Progress | None
) -> dict[str, Any]:
    """A line to work out; with an answer, its marking."""
    found = pass_of(asked["state"], library, None, progress)
    address, said = asked["address"], asked["answer"]
    if address is None:
        if said is not None:
            raise missing("address")
        return ask(found, asked["seed"] or 0, asked["passage"])
    name, index = entry_named(found, address)
    if name not in found.trace.steps:
        raise _no_working(name, index)
    if said is None:
        return question(found, name, index)
    return judged(found, name, index, text(said, "answer", LONGEST_ANSWER), reveal=asked["reveal"])


# ------------------------------------------------------------------ what is asked


def ask(found: Pass, seed: int, passage: str | None = None) -> dict[str, Any]:
    """A line chosen by a seed, from the whole pass or one passage."""
    steps = list(_askable(found, passage)) or list(_askable(found, None))
    random = Random(seed)
    random.shuffle(steps)  # each step is equally likely, whatever its size
    for worked in steps:
        for _try in range(MOST_TRIES):
            index = tuple(random.randrange(size) for size in worked.step.shape)
            if _worth(found, worked, index):
                return question(found, worked.address, index)
    raise InputError(
        _("there is no line here that a person could work out"),
        hint=_("practise with a smaller model"),
    )


def _askable(found: Pass, passage: str | None) -> Iterator[Worked]:
    """The steps that may have suitable lines."""
    for worked in found.trace.values():
        step = worked.step
        if worked.missing is not None or worked.whole or step.op in (*COPIES, "given"):
            continue
        if passage is None or passage_id(found, found.topic_of[step.address]) == passage:
            yield worked


def _worth(found: Pass, worked: Worked, index: Index) -> bool:
    """Whether a line has several numbers in it, but not too many."""
    if worked.at(index) is ABSENT:
        return False
    return 1 < len(set(made_of(found, worked.address, index))) <= MOST_TERMS


def question(found: Pass, name: str, index: Index) -> dict[str, Any]:
    """The question: the line with its letters, and the numbers for them."""
    worked = found.trace.steps[name]
    if worked.missing is not None:
        raise _no_working(name, index)
    line = None if worked.whole else found.in_full.line(worked, index)
    html = ""
    if line is not None and line.symbols is not None:
        html = served.line(line.symbols)
    sources = () if line is None else line.sources
    return {
        "address": name + write_index(index),
        "passage": passage_id(found, found.topic_of[name]),
        "meaning": meaning(found.trace, name, index),
        "question": _("What is `{address}`?").format(address=name + write_index(index)),
        "formula": worked.step.formula,
        "html": html,
        "names": [{"short": short, "address": full} for short, full in sources],
        "given": [
            {"address": one.address, "text": localised(one.text)}
            for one in shown(found, name, index)
        ],
        "decimals": DECIMALS,
    }


def _no_working(name: str, index: Index) -> InputError:
    return InputError(_("there is no working of this number"), where=name + write_index(index))


@dataclass(frozen=True)
class Given:
    """A number as the person sees it: a fraction, or decimals."""

    address: str
    text: str


def shown(found: Pass, name: str, index: Index) -> list[Given]:
    """The inputs of a line as they are shown with the question."""
    if found.trace.steps[name].whole:  # a token
        return []
    return [
        Given(address + write_index(at), _as_given(found, address, at))
        for address, at in islice(dict.fromkeys(made_of(found, name, index)), MOST_GIVEN)
    ]


def _as_given(found: Pass, address: str, at: Index) -> str:
    showing = found.in_full
    if address.startswith(WEIGHT):
        cell = showing.inside.weight_cell(address, at)
    else:
        cell = showing.cell(found.trace.steps[address], at)
    value = rational_of(cell.form)
    if value is not None and len(str(value)) <= 2 * SHOWN:
        return str(value)
    return cell.decimal or ""


# ------------------------------------------------------------------ how it is marked


@dataclass(frozen=True)
class _Claims:
    """An answer and its given inputs, as a sheet of claims."""

    sheet_made: Sheet

    def sheet(self) -> Sheet:
        return self.sheet_made


def judged(
    found: Pass, name: str, index: Index, said: str, *, reveal: bool = False
) -> dict[str, Any]:
    """The verdict on an answer, in words; with `reveal`, also the right number."""
    address = name + write_index(index)
    text = _plain(said)
    result: dict[str, Any] = {"address": address, "answer": said}
    try:
        line = _marked(found, name, index, text)
    except InputError as error:
        return result | _verdict(UNREAD, _unread(found, name, text, error))
    expected = _expected(found, name, index)
    if line is None or line.verdict is Verdict.UNJUDGED:
        result |= _verdict(UNJUDGED, [] if line is None else [line.reason])
    elif line.verdict is not Verdict.ERROR:
        result |= _verdict(RIGHT, [])
    else:
        result |= _wrong(found, line, text, expected, reveal)
    if reveal:
        result["expected"] = expected.text
    return result


def _plain(said: str) -> str:
    """The answer with an ASCII minus and a decimal point."""
    return re.sub(r"(?<=\d),(?=\d)", ".", said.strip().replace("−", "-"))


def _unread(found: Pass, name: str, text: str, error: InputError) -> list[str]:
    """Why an answer cannot be read: words in place of a number are told what a number is."""
    if found.trace.steps[name].whole or any(sign.isdigit() for sign in text):
        return [error.message, error.hint or error.expected or ""]
    example = localised("0.25") + _(" or ") + "−3/2"
    return [_("Write a number, such as {example}.").format(example=example)]


def _marked(found: Pass, name: str, index: Index, text: str) -> Marked | None:
    """The answer, judged from the numbers given with the question."""
    address = name + write_index(index)
    lines = {
        one.address: one.text
        for one in shown(found, name, index)
        if not one.address.startswith(WEIGHT) and one.text
    }
    lines[address] = text
    entries = tuple(
        entry_of(each, Scalar(_("answer"), 0, each, written)) for each, written in lines.items()
    )
    target = found.trace.target
    sheet = Sheet(
        _("answer"),
        entries,
        text=found.trace.text,
        target=None if target is None else found.trace.answer(target),
    )
    marking = mark(found.model, [_Claims(sheet)])
    return next((line for line in marking if line.claim.name == address), None)


@dataclass(frozen=True)
class _True:
    """The right number."""

    text: str
    value: float | None


def _expected(found: Pass, name: str, index: Index) -> _True:
    worked = found.trace.steps[name]
    if worked.missing is not None:
        return _True("", None)
    if worked.whole:
        at = worked.value[index[0]] if index else worked.value
        id = at if isinstance(at, int) else at.id
        trace = found.trace
        word = "" if id is None else trace.token(id) if name == "tokens" else trace.answer(id)
        return _True(words.token_label(word) if word else "", None)
    number = found.in_full.number(worked, index)
    return _True(number_text(number, decimals=found.by_decimals), float(near(worked)[index]))


def _wrong(found: Pass, line: Marked, text: str, expected: _True, reveal: bool) -> dict[str, Any]:
    """The response to a wrong answer: the mistake, where it is certain, else hints."""
    if _near_miss(line, text, expected):
        return _verdict(ROUNDING, [])
    name, index = entry_named(found, line.claim.name)
    given = {one.address: one.text for one in shown(found, name, index)}
    mistake = diagnosed(found, line, text, given)
    hints = list(_hints(found.trace.plan[name], line, expected))
    if mistake is None or (not reveal and gives_away(mistake.sentence, expected.value)):
        return _verdict(WRONG, hints[:1]) | {"hints": hints}
    change = mistake.change
    if not reveal and gives_away(change, expected.value):
        change = ""
    return _verdict(WRONG, [mistake.sentence]) | {
        "suspect": mistake.sentence,
        "change": change or None,
        "hints": hints,
    }


def _hints(step: Step, line: Marked, expected: _True) -> Iterator[str]:
    """How to work out the line, then how far off the answer is: one more for each attempt."""
    yield _advice(step) or _("Put the numbers given below into the line, and work it out in parts.")
    yield from _which_way(line, expected)


def _which_way(line: Marked, expected: _True) -> Iterator[str]:
    """How far off a number is, and in which direction."""
    if line.worst is None or expected.value is None:
        return
    claimed, value = line.worst.claimed, expected.value
    alike = SEVERAL * abs(claimed) >= abs(value) and abs(claimed) <= SEVERAL * abs(value)
    if claimed * value < 0:
        yield _("The sign is wrong.") if alike else _("Both the sign and the size are wrong.")
    elif claimed == value:
        return
    elif abs(claimed) > SEVERAL * abs(value):
        yield _("Your number is several times too large in size.")
    elif SEVERAL * abs(claimed) < abs(value):
        yield _("Your number is several times too small in size.")
    elif claimed > value:
        yield _("Your number is too large.")
    else:
        yield _("Your number is too small.")


def _advice(step: Step) -> str:
    """How to work out a line of this kind, piece by piece."""
    match step.op:
        case "linear" | "scores" | "mix":
            return _("Write the products one under the other, each with its sign, then add them.")
        case "softmax":
            return _("First e to the power of every score, then their sum, then the share.")
        case "mean" | "mean_square":
            return _("Add up first, then divide by how many there are.")
        case "normalize":
            return _("Divide what was centred by the standard deviation.")
    return ""


def _near_miss(line: Marked, text: str, expected: _True) -> bool:
    """Whether only the last decimals are off."""
    match = re.fullmatch(r"[-+]?\d*\.(\d+)", text)
    if match is None or line.worst is None or expected.value is None:
        return False
    unit = Fraction(1, 10 ** len(match[1]))
    away = abs(Fraction(text) - Fraction(expected.value))
    return away <= NEAR_MISS * unit and 10 * away <= abs(Fraction(expected.value))


def gives_away(sentence: str, value: float | None) -> bool:
    """Whether a sentence contains the number, or nearly it."""
    if value is None:
        return False
    bare = re.sub(
        r"[\w.]*[a-z]\w*(\.\w+)*(\[[^\]]*\])?", " ", sentence
    )  # addresses contain digits too
    for written in re.findall(r"[-−]?\d+(?:[.,]\d+)?", bare):
        found = float(written.replace("−", "-").replace(",", "."))
        if abs(found - value) <= 0.01 * abs(value):
            return True
    return False


def _verdict(kind: str, sentences: list[str]) -> dict[str, Any]:
    said = {
        RIGHT: _("right"),
        ROUNDING: _("nearly: only the last decimals are off"),
        WRONG: _("not right"),
        UNREAD: _("this cannot be read, and does not count"),
        UNJUDGED: _("this cannot be judged, and does not count"),
    }
    return {
        "verdict": kind,
        "sign": SIGN[kind],
        "word": said[kind],
        "sentences": [sentence for sentence in sentences if sentence],
        "suspect": None,
        "change": None,
        "hints": [],
    }

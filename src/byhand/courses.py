"""The making of the course: its passes are worked out, its exercises answered, its files made.

Each pass is worked out once, however many chapters show it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

from byhand import evaluate, models
from byhand.address import read_address, within, write_index
from byhand.checking.counts import sizes_and_counts
from byhand.counting import count
from byhand.document.book import Book
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.course.composition import course_books, on_paper
from byhand.document.compose.course.materials import Answer, Materials, Reading
from byhand.document.compose.course.sentences import row_of_weights, token_at
from byhand.document.compose.course.sheets import file_name, sheet_text
from byhand.document.compose.course.syllabus import Exercise, Lesson, Pass, Slip, syllabus
from byhand.drafts import write_all
from byhand.editions import command_on, edition_of
from byhand.expression import write
from byhand.language import speaking, spoken
from byhand.lessons import step
from byhand.model import Model
from byhand.models.records import norms_record, record_of
from byhand.numbers.base import Numbers
from byhand.plan import WEIGHT
from byhand.tracing import Trace

PDF = "course.pdf"
CONFIGS = Path(models.__file__).parent / "configs"
_DECIMALS = 40  # of a number that a slip is made from


@dataclass(frozen=True)
class Course:
    """The course in one language: its chapters, and its pages as books of one figure each."""

    chapters: tuple[Materials, ...]
    books: tuple[Book, ...]
    language: str

    @property
    def configs(self) -> tuple[str, ...]:
        """The configs of real models that its exercises ask about."""
        passes = (one.config for each in self.chapters for one in each.lesson.passes)
        return tuple(dict.fromkeys(name for name in passes if name is not None))


def make_course(language: str | None = None) -> Course:
    """The course in a language, or the one spoken."""
    with speaking(language) as named:
        chapters = tuple(map(materials_of, syllabus()))
        return Course(chapters, course_books(chapters, named), named)


def materials_of(lesson: Lesson) -> Materials:
    """The passes of a chapter, worked out, and the answers to its exercises."""
    readings = {one.name: reading_of(one) for one in lesson.passes}
    answers = tuple(_answer(exercise, readings) for exercise in lesson.exercises)
    return Materials(lesson, readings, norms_record(), answers)


# ------------------------------------------------------------------ passes


def reading_of(one: Pass) -> Reading:
    """A pass worked out in the language spoken, from a trace that is kept."""
    if one.config is not None:
        folder = CONFIGS / one.config
        spec = models.open_spec(folder)
        inventory = count(spec)
        config = json.loads((folder / "config.json").read_text("utf-8"))
        counts, called = sizes_and_counts(spec, inventory), f"configs/{one.config}"
        return Reading(spec, inventory, counts, called, config=config)
    edition = _edition(replace(one, name=""), spoken())
    spec, inventory = edition.model.spec, edition.inventory
    counts = sizes_and_counts(spec, inventory)
    return Reading(spec, inventory, counts, one.model, edition, record_of(edition.model))


@cache
def _edition(one: Pass, language: str) -> Edition:
    """The edition of a pass, in the language spoken."""
    command = command_on(one.model, one.text)
    return edition_of(_worked(one), command, called=one.model, target=one.target)


@cache
def _worked(one: Pass) -> Trace:
    model = _changed(models.open_model(one.model), one)
    if one.step:
        return step(model, one.text, target=one.target, lr=Fraction(one.rate)).steps[0].trace
    numbers = _numbers(one) or _usual(model)
    return evaluate.prepare(model, one.text, numbers, target=one.target).work()


def _changed(model: Model, one: Pass) -> Model:
    """The model of a pass, with the change that makes a typical slip."""
    if one.causal and one.scaled and one.activation is None:
        return model
    blocks = []
    for block in model.spec.blocks:
        attention, mlp = block.attention, block.mlp
        assert attention is not None
        assert mlp is not None
        scale = attention.scale if one.scaled else None
        attention = replace(attention, causal=one.causal, scale=scale)
        mlp = replace(mlp, activation=one.activation or mlp.activation)
        blocks.append(replace(block, attention=attention, mlp=mlp))
    return replace(model, spec=replace(model.spec, blocks=tuple(blocks)))


def _numbers(one: Pass) -> Numbers | None:
    """The numbers that a pass asks for; None: the usual ones of its model."""
    if one.decimals is not None:
        from byhand.numbers.pencil import Pencil

        return Pencil(one.decimals)
    return _floats(one.float) if one.float else None


def _usual(model: Model) -> Numbers:
    if evaluate.pencil_sized(model):
        from byhand.numbers.exact import Exact

        return Exact()
    return _floats(evaluate.usual_format(model))


def _floats(format: str) -> Numbers:
    from byhand.numbers.floats import Floats

    return Floats(format)


# ------------------------------------------------------------------ answers


def _answer(exercise: Exercise, readings: Mapping[str, Reading]) -> Answer:
    reading, slip = readings[exercise.of], exercise.slip
    right = _said(reading, exercise.address, exercise.places)
    wrong = _slipped(readings[slip.of or exercise.of], exercise, slip)
    return Answer(right, wrong, row=len(right) > 1)


def _said(reading: Reading, address: str, places: int | None) -> tuple[str, ...]:
    """What stands at an address: one number, the numbers of a row, or a token."""
    if address.startswith("count."):
        return (str(reading.counts[address]),)
    if read_address(address).name in ("tokens", "next"):
        return (token_at(reading.worked, address),)
    if address.startswith(WEIGHT):
        row = map(Fraction, map(str, row_of_weights(reading.worked, address)))
        return tuple(_written(number, places) for number in row)
    trace = reading.worked.trace
    if places is not None:
        return tuple(trace.places(one, places) for one in _entries(reading, address))
    return tuple(_exactly(reading, one) for one in _entries(reading, address))


def _exactly(reading: Reading, address: str) -> str:
    wanted, showing = read_address(address), reading.worked.showing
    worked = reading.worked.trace.worked(wanted)
    index = tuple(at for at in within(wanted, worked.step.shape) if isinstance(at, int))
    form = showing.cell(worked, index).form
    assert form is not None
    return write(form)


def _entries(reading: Reading, address: str) -> list[str]:
    wanted = read_address(address)
    worked = reading.worked.trace.worked(wanted)
    shape = worked.step.shape
    index = within(wanted, shape)
    if not index and shape == (1,):
        index = (0,)
    if len(index) == len(shape):
        return [worked.address + write_index(index)]
    return [worked.address + write_index((*index, k)) for k in range(shape[-1])]


def _slipped(reading: Reading, exercise: Exercise, slip: Slip) -> tuple[str, ...]:
    if slip.word is not None:
        return (slip.word,)
    address = slip.at or exercise.address
    times, plus = Fraction(slip.times), Fraction(slip.plus)
    if address.startswith("count."):
        return (str(int(reading.counts[address] * times + plus)),)
    if times == 1 and plus == 0:
        return _said(reading, address, exercise.places)
    trace = reading.worked.trace
    numbers = (Fraction(trace.places(one, _DECIMALS)) for one in _entries(reading, address))
    return tuple(_written(number * times + plus, exercise.places) for number in numbers)


def _written(number: Fraction, places: int | None) -> str:
    if places is None:
        return str(number.limit_denominator(10**9))
    scaled = round(number * 10**places)
    sign, digits = "-" * (scaled < 0), f"{abs(scaled):0{places + 1}}"
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


# ------------------------------------------------------------------ files


def publish_course(course: Course, folder: str | Path, *, pdf: bool = False) -> tuple[Path, ...]:
    """Writes the course into a folder and returns the paths, the contents first."""
    return write_all(course_files(course, pdf=pdf), Path(folder))


def course_files(course: Course, *, pdf: bool = False) -> dict[str, bytes]:
    """File name → contents: pages, answer sheets, their keys, and the configs they are about."""
    from byhand.document.media.html.course import course_pages

    with speaking(course.language):
        files = {name: text.encode() for name, text in course_pages(course.books).items()}
        for place, each in enumerate(course.chapters, 1):
            for of in each.lesson.sheets():
                name = file_name(each, place, of)
                files[f"answers/{name}"] = sheet_text(each, place, of).encode()
                files[f"keys/{name}"] = sheet_text(each, place, of, filled=True).encode()
        for name in course.configs:
            path = f"configs/{name}/config.json"
            files[path] = (CONFIGS / name / "config.json").read_bytes()
        if pdf:
            from byhand.document.media.typst import typeset, typst_source

            files[PDF] = typeset(typst_source(on_paper(course.books[0])))
    return files

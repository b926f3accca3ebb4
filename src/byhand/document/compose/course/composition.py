"""The pages of the course: chapters with goals, sections, a summary and exercises; the glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from byhand.document import words
from byhand.document.book import Book, Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.spine import spine
from byhand.document.compose.course.materials import Answer, Materials
from byhand.document.compose.course.sentences import all_told, told
from byhand.document.compose.course.sheets import BLANK, command, file_name, sheet_text
from byhand.document.compose.course.shown import (
    config_of,
    laws_of,
    numbers_of,
    parts_of,
    steps_of,
)
from byhand.document.compose.course.syllabus import Exercise, Lesson, Section
from byhand.document.glossary import glossary
from byhand.document.parts import AnswerField, AnswerSheets, Column, Finding, Grid
from byhand.document.parts.exercises import FORM, NUMBER, WORD, AnswerSheet
from byhand.language import _
from byhand.numbers.base import REGISTERS

GLOSSARY = "glossary"
CONFIG = "config"  # in place of the lines that are given
SPARE = 5  # decimals of the lines that are given


def course_books(chapters: Sequence[Materials], language: str) -> tuple[Book, ...]:
    """The course as books with the same pages: one for each chapter, with its figure; the first is
    that of the contents too, the last that of the glossary."""
    pages = tuple(_chapter(each, place, len(chapters)) for place, each in enumerate(chapters, 1))
    every = (*pages, _glossary())
    figures = [each.main for each in chapters]
    return tuple(_book(each, every, language) for each in (*figures, figures[0]))


def _book(edition: Edition, pages: tuple[Page, ...], language: str) -> Book:
    trace = edition.trace
    found = {r for worked in trace.values() if not worked.whole for r in worked.row_registers}
    return Book(
        model=_("course"),
        text="",
        title=_("A transformer, by hand"),
        about=_(
            "A course in eleven chapters, from three words in two dimensions to real models. "
            "Every number on its pages was worked out by byhand."
        ),
        pages=pages,
        spine=spine(edition.showing, trace.plan.forward),
        language=language,
        numbers=words.numbers_name(trace.numbers, trace.proof),
        scale=edition.scale,
        tokens=edition.showing.labels,
        decimals=True,
        facts=tuple(_facts()),
        registers=tuple((r, words.register_about(r)) for r in REGISTERS if r in found),
        command=edition.whole_command,
    )


def _facts() -> Iterator[tuple[str, str]]:
    yield (
        _("reading path"),
        _("`tiny` → `journey` → `abc` → `minigpt` → GPT-2, Llama and Pythia"),
    )
    yield (
        _("exercises"),
        _("five in each chapter, answered on the page; `byhand check` marks the sheets"),
    )
    yield _("you need"), _("sums and products; all else is explained where it is used")


# ------------------------------------------------------------------ a chapter


def _chapter(materials: Materials, place: int, count: int) -> Page:
    lesson = materials.lesson
    return Page(
        lesson.slug,
        lesson.title.said,
        lesson.about.said,
        (
            _goals(materials),
            *(_section(materials, s, n) for n, s in enumerate(lesson.sections, 1)),
            _summary(materials),
            _trying(materials),
            *(_exercise(materials, place, n) for n in range(1, len(lesson.exercises) + 1)),
            _marking(materials, place),
        ),
        kicker=_("Chapter {number} of {count}").format(number=place, count=count),
        aside=" ".join(f"`{name}`" for name in _models(lesson)),
        first=0,  # the goals
    )


def _models(lesson: Lesson) -> tuple[str, ...]:
    """The models that the sections of a chapter show, in their order."""
    said = " ".join(text.en for one in lesson.sections for text in one.text)
    shown = [name for one in lesson.sections for line in one.show for name in line.split()[1:]]
    used = {*re.findall(r"\{(\w+) ", said), *shown}
    passes = (one for one in lesson.passes if one.name in used)
    return tuple(dict.fromkeys(one.config or one.model for one in passes))


def _goals(materials: Materials) -> Passage:
    lesson = materials.lesson
    return Passage(
        f"{lesson.slug}-goals",
        _("What this chapter is for"),
        (),
        show=(
            Finding(_("After this chapter you can:"), all_told(lesson.goals, materials)),
            Finding(_("Before it, you should know:"), all_told(lesson.before, materials)),
        ),
    )


def _section(materials: Materials, section: Section, number: int) -> Passage:
    lesson = materials.lesson
    lit = (*section.lit, *steps_of(section.show, lesson.main))
    plan = materials.main.trace.plan
    return Passage(
        f"{lesson.slug}-{number}",
        section.title.said,
        all_told(section.text, materials),
        lit=tuple(dict.fromkeys(plan[name].address for name in lit)),
        formulas=laws_of(section.show, materials),
        show=parts_of(section.show, materials),
    )


def _summary(materials: Materials) -> Passage:
    return Passage(
        f"{materials.lesson.slug}-summary",
        _("Summary"),
        (),
        show=(Finding("", all_told(materials.lesson.summary, materials)),),
    )


def _trying(materials: Materials) -> Passage:
    lesson = materials.lesson
    return Passage(
        f"{lesson.slug}-try",
        _("Try it"),
        (),
        show=(Finding("", all_told(lesson.trying, materials)),),
    )


def _exercise(materials: Materials, place: int, number: int) -> Passage:
    lesson = materials.lesson
    exercise, answer = lesson.exercises[number - 1], materials.answers[number - 1]
    blank = AnswerField(
        exercise.address,
        _kind(exercise),
        answer.right,
        answer.wrong,
        told(exercise.slip.says, materials),
        f"answers/{file_name(materials, place, exercise.of)}",
        exercise.places,
    )
    return Passage(
        f"{lesson.slug}-exercise-{number}",
        _("Exercise {number}").format(number=number),
        (
            *_text(materials, exercise),
            told(exercise.ask, materials),
            *_rounding(exercise, answer),
        ),
        show=(*_given(materials, exercise), blank),
    )


def _text(materials: Materials, exercise: Exercise) -> Iterator[str]:
    """What the exercise is about, where it is another text than that of the chapter."""
    edition = materials.readings[exercise.of].edition
    if edition is not None and edition.trace.text != materials.main.trace.text:
        text = _("`{model}` reads `{text}`.")
        yield text.format(model=edition.model.name, text=edition.trace.text)


def _given(materials: Materials, exercise: Exercise) -> Iterator[Grid]:
    """The lines that the answer is worked out from, with decimals to spare."""
    if exercise.given == (CONFIG,):
        yield config_of(materials.readings[exercise.of])
    elif exercise.given:
        yield numbers_of(materials.readings[exercise.of], exercise.given, SPARE)


def _rounding(exercise: Exercise, answer: Answer) -> Iterator[str]:
    if exercise.places == 1:
        yield _("Give one decimal.")
    elif exercise.places is not None:
        yield _("Give {count} decimals.").format(count=exercise.places)
    if answer.row:
        yield _("The answer is a row of {count} numbers.").format(count=len(answer.right))


def _kind(exercise: Exercise) -> str:
    """What an answer is: a word, a number, or a number that is written exactly."""
    if exercise.address.partition("[")[0] in ("tokens", "next"):
        return WORD
    exact = exercise.places is None and not exercise.address.startswith("count.")
    return FORM if exact else NUMBER


def _marking(materials: Materials, place: int) -> Passage:
    lesson = materials.lesson
    text = _("Save your answers, or write each in place of its `{blank}` in the sheet.")
    sheets = tuple(
        AnswerSheet(
            f"answers/{file_name(materials, place, of)}",
            command(materials, place, of),
            sheet_text(materials, place, of),
        )
        for of in lesson.sheets()
    )
    return Passage(
        f"{lesson.slug}-marking",
        _("Have your answers marked"),
        (
            text.format(blank=BLANK),
            _("`byhand check` marks it, and shows a wrong answer with what probably went wrong."),
        ),
        show=(AnswerSheets(sheets),),
    )


# ------------------------------------------------------------------ the glossary


def _glossary() -> Page:
    rows = tuple((entry.word, entry.says) for entry in glossary())
    columns = (Column(_("word")), Column(_("what it means")))
    return Page(
        GLOSSARY,
        _("Glossary"),
        _("The technical words of the course, each in a sentence."),
        (Passage(f"{GLOSSARY}-words", _("The words"), (), show=(Grid("", columns, rows),)),),
    )


def on_paper(book: Book) -> Book:
    """The course for print: one figure at the start, since the chapters have several models."""
    pages = (
        replace(page, passages=tuple(replace(one, lit=()) for one in page.passages))
        for page in book.pages
    )
    return replace(book, pages=tuple(pages))

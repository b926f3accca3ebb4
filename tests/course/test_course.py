"""The course: its keys are right, typical slips are marked wrong with the cause, its pages hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from byhand.checking.architectures import open_for
from byhand.checking.marking import mark
from byhand.checking.verdicts import MarkedText, Verdict
from byhand.courses import CONFIGS, Course, course_files, make_course, materials_of
from byhand.document.compose.course.composition import course_books
from byhand.document.compose.course.materials import Materials
from byhand.document.compose.course.sheets import sheet_text
from byhand.document.compose.course.syllabus import Both, Exercise, Lesson, syllabus
from byhand.document.glossary import glossary
from byhand.language import speaking
from byhand.model import Model
from byhand.serving.experiments import EXPERIMENTS, experiments
from calling import Outcome

LONGEST = 25  # words in a sentence
CHAPTERS = [pytest.param(at, id=lesson.slug) for at, lesson in enumerate(syllabus())]
_MODELS: dict[str, Model] = {}


@pytest.fixture(scope="module")
def course() -> Course:
    return make_course("en")


@pytest.fixture(scope="module")
def files(course: Course) -> dict[str, bytes]:
    return course_files(course)


def model_of(materials: Materials, of: str, sheet: Path) -> Model:
    called = materials.readings[of].called
    name = str(CONFIGS / Path(called).name) if called.startswith("configs/") else called
    if name not in _MODELS:
        _MODELS[name] = open_for(name, [sheet])
    return _MODELS[name]


def marked(of: str, folder: Path, *filled: Materials) -> list[MarkedText]:
    """Sheets of one chapter and pass, filled in and marked together."""
    sheets = [folder / f"{number}.yaml" for number in range(len(filled))]
    for sheet, materials in zip(sheets, filled, strict=True):
        sheet.write_text(sheet_text(materials, 1, of, filled=True), "utf-8")
    return list(mark(model_of(filled[0], of, sheets[0]), sheets).texts)


# ------------------------------------------------------------------ exercises


@pytest.mark.parametrize("place", CHAPTERS)
def test_every_exercise_is_solved_by_its_key(place: int, course: Course, tmp_path: Path) -> None:
    materials = course.chapters[place]
    sheets = (marked(of, tmp_path, materials)[0] for of in materials.lesson.sheets())
    assert [line.verdict for sheet in sheets for line in sheet.lines] == [Verdict.RIGHT] * 5


@pytest.mark.parametrize("place", CHAPTERS)
def test_a_typical_slip_is_marked_wrong_with_its_cause(
    place: int, course: Course, tmp_path: Path
) -> None:
    """Each slip alone: the other exercises of its sheet are left blank."""
    materials = course.chapters[place]
    for of, exercises in materials.lesson.sheets().items():
        texts = marked(of, tmp_path, *(slipped(materials, each) for each in exercises))
        for exercise, text in zip(exercises, texts, strict=True):
            [line] = [one for one in text.lines if one.verdict is not Verdict.UNJUDGED]
            assert line.verdict is Verdict.ERROR, exercise.address
            said = [suspect.sentence for suspect in line.suspects]
            assert any(exercise.slip.cause in sentence for sentence in said), said


def slipped(materials: Materials, exercise: Exercise) -> Materials:
    """The answers with one slip and blanks."""
    pairs = zip(materials.lesson.exercises, materials.answers, strict=True)
    answers = [
        replace(one, right=one.wrong if each is exercise else ("_",) * len(one.right))
        for each, one in pairs
    ]
    assert all(one.wrong != one.right for one in materials.answers)
    return replace(materials, answers=tuple(answers))


def test_what_is_marked_wrong_is_told_with_both_numbers(
    byhand: Callable[..., Outcome], course: Course, tmp_path: Path
) -> None:
    materials = course.chapters[0]
    answers = tuple(replace(one, right=one.wrong) for one in materials.answers)
    sheet = tmp_path / "01-tokens-back.yaml"
    sheet.write_text(sheet_text(replace(materials, answers=answers), 1, "back", filled=True))
    said = byhand("check", "tiny", str(sheet))
    assert said.status == 1
    assert "count.context: 3 claimed, 2 expected" in said.out


def test_no_answer_is_given_among_the_lines_of_its_chapter(course: Course) -> None:
    for materials in course.chapters:
        given = {(e.of, one) for e in materials.lesson.exercises for one in e.given}
        asked = {(e.of, e.address) for e in materials.lesson.exercises}
        assert not given & asked
        for exercise in materials.lesson.exercises:
            name = exercise.address.rpartition("[")[0] or exercise.address
            rows = {one for of, one in given if of == exercise.of and one.startswith(name + "[")}
            assert not any(_holds(row, exercise.address) for row in rows), exercise.address


def test_no_answer_is_printed_in_its_chapter() -> None:
    """Not in a sentence, not in a table; a pass on another text may share no number."""
    for lesson in syllabus():
        told = [text.en for one in lesson.sections for text in one.text]
        told += [said.en for said in lesson.summary]
        printed = set(re.findall(r"\{(\w+) ([^{}|]+)", " ".join(told)))
        for line in (line.split() for section in lesson.sections for line in section.show):
            kind, names = line[0], line[1:]
            if kind in ("counts", "architectures"):
                printed |= {(name, "count.") for name in names}
            elif kind == "plans":
                printed |= {(name, "count.context") for name in names}
            else:
                printed |= {(names[0], address) for address in names[1:]}
        for exercise in lesson.exercises:
            mine = lesson.pass_called(exercise.of)
            same = {
                one.name for one in lesson.passes if replace(one, name="") == replace(mine, name="")
            }
            for of, address in printed:
                name = address.partition("[")[0]
                held = exercise.address.startswith(address if address.endswith("]") else name)
                assert not (of in same and held), (lesson.slug, exercise.address, of, address)


def test_experiments_that_a_chapter_sends_to_have_these_names() -> None:
    for language, quoted in (("en", "“([^”]+)”"), ("es", "«([^»]+)»")):
        with speaking(language):
            titles = {one["title"] for name in EXPERIMENTS for one in experiments(name)}
        for lesson in syllabus():
            for said in lesson.trying:
                assert set(re.findall(quoted, getattr(said, language))) <= titles


def _holds(row: str, address: str) -> bool:
    return address.startswith(row.removesuffix("]") + ",")


def test_an_empty_sheet_has_a_blank_for_every_number(files: dict[str, bytes]) -> None:
    sheets = [name for name in files if name.startswith("answers/")]
    blanks = sum(len(yaml.safe_load(files[name])["claims"]) for name in sheets)
    assert blanks == 55
    key = yaml.safe_load(files["keys/03-mlp.yaml"])
    empty = yaml.safe_load(files["answers/03-mlp.yaml"])
    assert empty["claims"].keys() == key["claims"].keys()
    assert set(map(str, empty["claims"].values())) == {"_", "['_', '_', '_', '_']"}


# ------------------------------------------------------------------ words


def sentences() -> Iterator[tuple[str, Both]]:
    for lesson in syllabus():
        yield from ((lesson.slug, said) for said in _of(lesson))


def _of(lesson: Lesson) -> Iterator[Both]:
    yield from (lesson.title, lesson.about, *lesson.goals, *lesson.before, *lesson.summary)
    yield from lesson.trying
    for section in lesson.sections:
        yield from (section.title, *section.text)
    for exercise in lesson.exercises:
        yield from (exercise.ask, exercise.slip.says)


def test_no_sentence_of_the_course_is_long() -> None:
    for slug, said in sentences():
        for text in (said.en, said.es):
            plain = re.sub(r"\{[^}]*\}", "x", text)
            for sentence in re.split(r"(?<=[.?:])\s", plain):
                assert len(sentence.split()) <= LONGEST, (slug, sentence)


def test_both_languages_hold_the_same_numbers() -> None:
    for slug, said in sentences():
        places = [sorted(re.findall(r"\{[^}]*\}", text)) for text in (said.en, said.es)]
        assert places[0] == places[1], (slug, said.en)


def test_every_chapter_has_all_its_parts() -> None:
    assert len(syllabus()) == 11
    for lesson in syllabus():
        assert 2 <= len(lesson.sections) <= 5
        assert len(lesson.exercises) == 5
        assert lesson.goals
        assert lesson.before
        assert lesson.summary
        assert lesson.trying


# ------------------------------------------------------------------ pages


def test_the_pages_lead_from_the_first_to_the_last(files: dict[str, bytes]) -> None:
    page, seen = "index.html", []
    while page:
        text = files[page].decode()
        seen.append(page)
        following = re.search(r'rel="next" href="([^"]+)"', text)
        page = following[1] if following else ""
        if seen == ["index.html"]:
            page = "tokens.html"
    assert len(seen) == 13
    assert seen[-1] == "glossary.html"


def test_every_number_on_a_page_comes_from_a_trace(course: Course, files: dict[str, bytes]) -> None:
    text = files["loss.html"].decode()
    loss = course.chapters[5].readings["cat"].worked.trace.places("loss", 4)
    assert loss in text
    assert "{cat" not in text
    assert not any(re.search(rb"\{\w+ [\w.]+", data) for name, data in files.items()
                   if name.endswith(".html"))  # fmt: skip


def test_the_course_speaks_spanish_with_the_same_numbers(course: Course) -> None:
    stream = [lesson.slug for lesson in syllabus()].index("residual")
    with speaking("es"):
        materials = materials_of(syllabus()[stream])
        [page, _glossary] = course_books([materials], "es")[0].pages
    assert page.title == "El flujo residual"
    assert "(−0,2; 0,3; 0,5; 0,1)" in page.passages[1].sentences[0]
    assert [one.right for one in materials.answers] == [
        one.right for one in course.chapters[stream].answers
    ]


def test_the_glossary_has_every_word(files: dict[str, bytes]) -> None:
    text = files["glossary.html"].decode()
    with speaking("en"):
        assert all(entry.says.split("<")[0][:20] in text for entry in glossary())


def test_counts_of_a_config_without_weights_are_judged(
    byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    sheet = tmp_path / "sheet.yaml"
    sheet.write_text("claims: {count.total: 163037184}\n")
    said = byhand("check", str(CONFIGS / "gpt2"), str(sheet))
    assert said.status == 1
    assert "163,037,184 = untied head" in said.out
    sheet.write_text("claims: {loss: 1.5}\n")
    said = byhand("check", str(CONFIGS / "gpt2"), str(sheet))
    assert said.status == 2
    assert "has no weights" in said.err


def test_the_command_writes_pages_sheets_and_keys(
    byhand: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    course: Course,
    files: dict[str, bytes],
    tmp_path: Path,
) -> None:
    """What is written is what was made above; making it once more would only cost time."""
    monkeypatch.setattr("byhand.courses.make_course", lambda: course)
    monkeypatch.setattr("byhand.courses.course_files", lambda course, pdf: files)
    said = byhand("course", "--out", str(tmp_path / "course"))
    assert (said.status, said.out) == (0, "")
    written = {path.name for path in (tmp_path / "course").iterdir()}
    assert {"index.html", "attention.html", "glossary.html", "answers", "keys"} <= written
    assert byhand("course").status == 2

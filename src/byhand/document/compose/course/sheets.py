"""The answer sheets of a chapter: files of claims with blanks, or filled in, for `byhand check`.

Numbers have a decimal point in every language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from byhand.document.compose.course.materials import Answer, Materials
from byhand.document.compose.course.syllabus import Exercise
from byhand.language import _

BLANK = "_"
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def file_name(materials: Materials, place: int, of: str) -> str:
    """The name of an answer sheet; a chapter with sheets for several models names the model."""
    several = len(materials.lesson.sheets()) > 1
    return f"{place:02}-{materials.lesson.slug}{f'-{of}' if several else ''}.yaml"


def command(materials: Materials, place: int, of: str) -> str:
    """The command that marks a sheet, from the folder of the course."""
    return f"byhand check {materials.readings[of].called} answers/{file_name(materials, place, of)}"


def sheet_text(materials: Materials, place: int, of: str, *, filled: bool = False) -> str:
    """A sheet as text; with `filled`, it is the key, which names the typical slips too."""
    return "\n".join(_lines(materials, place, of, filled)) + "\n"


def _lines(materials: Materials, place: int, of: str, filled: bool) -> Iterator[str]:
    title = materials.lesson.title.said
    if filled:
        yield "# " + _("{title}: the key").format(title=title)
        yield f"student: {json.dumps(_('the key'), ensure_ascii=False)}"
    else:
        yield f"# {title}"
        yield "# " + _("Write your answers in place of each _, with a decimal point. Then:")
        yield "# " + command(materials, place, of)
        yield "student:"
    read = materials.lesson.pass_called(of)
    edition = materials.readings[of].edition
    if edition is not None:
        yield f"text: {json.dumps(edition.trace.text, ensure_ascii=False)}"
        if read.target is not None:
            yield f"target: {json.dumps(read.target, ensure_ascii=False)}"
        if read.step:
            yield "optimizer: sgd lr=0.1"
    yield ""
    yield "claims:"
    pairs = zip(materials.lesson.exercises, materials.answers, strict=True)
    for number, (exercise, answer) in enumerate(pairs, 1):
        if exercise.of == of:
            yield from _claim(number, exercise, answer, filled)


def _claim(number: int, exercise: Exercise, answer: Answer, filled: bool) -> Iterator[str]:
    yield f"  # {number}"
    if filled:
        wrong = written(answer, answer.wrong)
        yield "  # " + _("typical slip: {slip}").format(slip=f"{exercise.slip.says.said} ({wrong})")
    said = answer.right if filled else (BLANK,) * len(answer.right)
    yield f"  {json.dumps(exercise.address)}: {written(answer, said)}"


def written(answer: Answer, said: tuple[str, ...]) -> str:
    """An answer as YAML writes it."""
    texts = [
        text if text == BLANK or _NUMBER.fullmatch(text) else json.dumps(text, ensure_ascii=False)
        for text in said
    ]
    return f"[{', '.join(texts)}]" if answer.row else texts[0]

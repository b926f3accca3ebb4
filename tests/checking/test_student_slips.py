"""Each slip of a student costs the marks of its own line, and the marking says what happened."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from calculation_slips import CALCULATION_SLIPS
from student_slips import SLIPS as PEN_SLIPS
from student_slips import Row, Slip, Working

import byhand
from budgets import LONG
from byhand import worksheets
from byhand.checking.gradebooks import as_csv, gradebook
from byhand.checking.grading import Graded, grade
from byhand.checking.verdicts import Verdict
from byhand.document.compose.worksheet import (
    Blank,
    Questioning,
    Worksheet,
    claims_text,
    planted,
)
from byhand.evaluate import prepare
from byhand.feedback import write_feedback
from byhand.files.document import parse_model
from byhand.language import speaking
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT
from byhand.numbers.pencil import Pencil
from byhand.tracing import Trace

SLIPS = (*PEN_SLIPS, *CALCULATION_SLIPS)
SHOWN = SLIPS if LONG else SLIPS[::4]


@cache
def opened(name: str) -> Model:
    """A built-in model; `eps` is journey with an eps that shows in three decimals."""
    if name != "eps":
        return open_model(name)
    source = Path(byhand.__file__).parent / "models" / "journey.yaml"
    return parse_model(source.read_text("utf-8").replace("1/100000", "1/10"))


@cache
def sheet_of(model: str, **asked: object) -> tuple[Worksheet, Trace]:
    """The sheet on the whole pass, or another one, and the pass in pencil numbers."""
    asking = Questioning.asked(**(asked or {"level": "pass"}))  # type: ignore[arg-type]
    with speaking("en"):
        sheet = worksheets.make_worksheet(byhand.trace(opened(model)), asking, model)
    return sheet, pencilled(model, sheet)


def pencilled(model: str, sheet: Worksheet, slip: Blank | None = None) -> Trace:
    """The pass as the student works it out, going on from a slip."""
    assert sheet.decimals is not None
    job = prepare(opened(model), sheet.text, Pencil(sheet.decimals), target=sheet.target)
    return job.work(revise=None if slip is None else planted(slip))


def working(model: str, trace: Trace) -> Working:
    def row(value: object) -> Row:
        entries = np.asarray(value, dtype=object)
        flat = [np.nan if entry is ABSENT else float(entry) for entry in entries.flat]
        return np.array(flat).reshape(entries.shape)

    steps = {name: row(step.value) for name, step in trace.steps.items() if not step.whole}
    weights = {
        name: row(Pencil(6).admit(weight.data)) for name, weight in opened(model).weights.items()
    }
    return Working(steps, weights, len(trace.tokens) - 1)


def filled_in(slip: Slip, *, going_on: bool = True, **asked: object) -> tuple[Worksheet, str]:
    """The sheet of a student with this slip, and the line that is wrong."""
    sheet, right = sheet_of(slip.model, **asked)
    blank = next(b for b in sheet.blanks if b.address.partition("[")[0] == slip.address)
    row = np.atleast_1d(np.asarray(slip.write(working(slip.model, right)), dtype=float))
    wrong = replace(blank, answers=tuple(f"{x:.{sheet.decimals}f}" for x in row))
    trace = pencilled(slip.model, sheet, wrong) if going_on else right
    words = {f"next[{at}]": trace.answer(found.id) for at, found in enumerate(trace.next or [])}

    def written(own: Blank) -> Blank:
        if own.address == blank.address:
            return wrong
        numbers = trace.numbers
        assert isinstance(numbers, Pencil)
        said = (words.get(place) or numbers.text(trace[place]) for place in own.places)
        return replace(own, answers=tuple(said))

    return replace(sheet, blanks=tuple(map(written, sheet.blanks))), blank.address


def marked(slip: Slip, folder: Path, language: str = "en", **asked: object) -> tuple[Graded, str]:
    sheet, address = filled_in(slip, **asked)  # type: ignore[arg-type]
    path = folder / "filled.yaml"
    with speaking(language):
        path.write_text(claims_text(sheet, filled=True), "utf-8")
        (text,) = byhand.check(opened(slip.model), path).texts
        return grade(text), address


def test_there_are_forty_slips_and_more() -> None:
    assert len({slip.name for slip in SLIPS}) == len(SLIPS) >= 40


@pytest.mark.parametrize("slip", SHOWN, ids=lambda slip: slip.name)
def test_a_slip_costs_its_own_marks_and_is_told(slip: Slip, tmp_path: Path) -> None:
    found, address = marked(slip, tmp_path)
    lost = [line for line in found.lines if line.mark != line.out_of]
    assert [line.name for line in lost] == [address]
    assert found.out_of - found.total == 1
    assert slip.said in lost[0].comment
    assert "does not follow" not in lost[0].comment


@pytest.mark.parametrize("slip", SLIPS if LONG else SLIPS[1::12], ids=lambda slip: slip.name)
def test_a_slip_in_copying_costs_its_own_marks_too(slip: Slip, tmp_path: Path) -> None:
    """The student goes on from the right number, which stands on another piece of paper."""
    found, address = marked(slip, tmp_path, going_on=False)
    assert [line.name for line in found.lines if line.mark != line.out_of] == [address]


@pytest.mark.parametrize("slip", SLIPS if LONG else SLIPS[2::12], ids=lambda slip: slip.name)
def test_a_slip_is_told_in_spanish(slip: Slip, tmp_path: Path) -> None:
    english, _address = marked(slip, tmp_path)
    spanish, address = marked(slip, tmp_path, "es")
    assert spanish.total == english.total
    (lost,) = (line for line in spanish.lines if line.mark != line.out_of)
    assert lost.name == address
    assert lost.comment not in [line.comment for line in english.lines]


def test_a_mask_forgotten_is_told_at_a_position_that_has_others_behind_it(tmp_path: Path) -> None:
    """The last position sees everything: this slip needs a line of an earlier one."""

    def unmasked(v: Working) -> Row:
        q, k = v.all("block.0.attn.q")[1], v.all("block.0.attn.k")
        shares = np.exp(k @ q / 2)
        return (shares / shares.sum())[:2]

    slip = Slip("no mask", "block.0.attn.weights", unmasked, "mask")
    seed = 5 if not LONG else next(
        seed
        for seed in range(60)
        if any(b.address == "block.0.attn.weights[0,1,:2]"
               for b in sheet_of("journey", seed=seed, blanks=20, which=("values",))[0].blanks)
    )  # fmt: skip
    found, address = marked(slip, tmp_path, seed=seed, blanks=20, which=("values",), going_on=False)
    (lost,) = (line for line in found.lines if line.mark != line.out_of)
    assert lost.name == address
    assert "mask" in lost.comment


def test_an_error_that_is_carried_along_costs_nothing_more(tmp_path: Path) -> None:
    slip = next(slip for slip in SLIPS if slip.name == "the scale forgotten")
    found, _address = marked(slip, tmp_path)
    carried = [line.name for line in found.lines if line.outcome == Verdict.CARRIED.value]
    assert "block.0.attn.weights[0,3]" in carried
    assert "logits[3]" in carried
    assert "block.0.attn.q[0,3]" not in carried


@pytest.mark.parametrize(
    ("word", "said"), [("on", "second largest logit"), ("dog", "smallest logit")]
)
def test_another_token_is_told_by_its_logit(word: str, said: str, tmp_path: Path) -> None:
    sheet, _right = sheet_of("journey", level="pass")
    path = tmp_path / "filled.yaml"
    path.write_text(
        claims_text(sheet, filled=True)
        .replace('"cat"', "cat")
        .replace("next[3]: cat", f'next[3]: "{word}"'),
        "utf-8",
    )
    line = grade(byhand.check("journey", path).texts[0])["next[3]"]
    assert line.mark == 0
    assert said in line.comment


# ------------------------------------------------------------------ answers that are hard to read


def answered(answers: dict[str, str], folder: Path) -> Graded:
    """The key of the sheet on the whole pass, with some answers typed otherwise."""
    sheet, _right = sheet_of("journey", level="pass")
    with speaking("en"):
        lines = claims_text(sheet, filled=True).split("\n")
    block = lines.index("claims:")
    for at, line in enumerate(lines[block:], block):
        key = line.partition(": ")[0].strip()
        if key in answers:
            lines[at] = f"  {key}: {answers[key]}"
    path = folder / "typed.yaml"
    path.write_text("\n".join(lines), "utf-8")
    return grade(byhand.check("journey", path).texts[0])


UNREAD = {
    "block.0.attn.q[0,3]": ("see the back", "“see the back” is not a number"),
    "block.0.attn.k[0,3]": ("[idk, 0.879, -0.039, -0.396]", "“idk” is not a number"),
    "block.0.attn.out[3]": ("[0.1, 0.2, 0.3]", "3 numbers are written; 4 are asked for"),
    "block.0.mlp.norm.mean[3]": ("[0.1, 0.2]", "2 numbers are written; one is asked for"),
    "block.0.mlp.out[3]": ("{0.1: : 2", "is not a number"),
    "block.0.mlp.add[3]": ("", "left blank"),
    "next[3]": ("banana", "'banana' is not in the vocabulary"),
}


def test_an_answer_that_cannot_be_read_costs_its_own_line_and_not_the_sheet(tmp_path: Path) -> None:
    found = answered({key: typed for key, (typed, _said) in UNREAD.items()}, tmp_path)
    lost = {line.name: line.comment for line in found.lines if line.mark != line.out_of}
    assert lost.keys() == UNREAD.keys()
    assert found.out_of - found.total == len(UNREAD)
    for key, (_typed, said) in UNREAD.items():
        assert said in lost[key]


def test_what_a_person_reads_at_once_costs_nothing(tmp_path: Path) -> None:
    weights = "0.387 0.146 0.220 0.247"
    sheet, _right = sheet_of("journey", level="pass")
    key = {blank.address: blank.answers for blank in sheet.blanks}
    assert " ".join(key["block.0.attn.weights[0,3]"]) == weights
    q, k = (key[f"block.0.attn.{name}[0,3]"] for name in "qk")
    found = answered(
        {
            "block.0.attn.weights[0,3]": weights,
            "block.0.attn.q[0,3]": "[" + ", ".join(q).replace(".", ",") + "]",
            "block.0.attn.k[0,3]": "[" + ", ".join(k),
            "loss[0]": f"≈ {key['loss[0]'][0]} nats  # checked",
            "next[3]": key["next[3]"][0].capitalize(),
        },
        tmp_path,
    )
    assert found.total == found.out_of


def test_a_line_that_was_deleted_is_blank_and_not_forgotten(tmp_path: Path) -> None:
    sheet, _right = sheet_of("journey", level="pass")
    path = tmp_path / "short.yaml"
    lines = claims_text(sheet, filled=True).split("\n")
    place = next(at for at, line in enumerate(lines) if line.startswith("  logits[3]: ["))
    path.write_text("\n".join(lines[:place] + lines[place + 1 :]), "utf-8")
    found = grade(byhand.check("journey", path).texts[0])
    assert found.out_of == len(sheet.blanks)
    assert found.out_of - found.total == 1
    assert found["logits[3]"].comment == "left blank"


# ------------------------------------------------------------------ a class


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_class_of_thirty_gets_a_page_each_and_a_gradebook(language: str, tmp_path: Path) -> None:
    slips = [slip for slip in SLIPS if slip.model == "journey"]
    count = 30 if LONG else 5
    folder = tmp_path / "answers"
    folder.mkdir()
    with speaking(language):
        for number in range(count):
            sheet, _address = filled_in(slips[3 * number % len(slips)])
            named = replace(sheet, student=f"Student {number:02}")
            text = claims_text(named, filled=number > 0)  # the first hands in an empty sheet
            key = text.partition("\nstudent:")[2].partition("\n")[0]
            path = folder / named.file
            path.write_text(
                text.replace(f"student:{key}", f"student: Student {number:02}"), "utf-8"
            )
        (folder / "worksheet.yaml").write_text(claims_text(sheet_of("journey")[0]), "utf-8")
        (folder / "worksheet-key.yaml").write_text("student: nobody\n", "utf-8")
        marking = byhand.check("journey", folder)
        files = write_feedback(marking, tmp_path / "feedback", opened("journey").outputs.tokens)
    book = gradebook(marking.texts)
    assert [sheet.student for sheet in book.sheets] == [f"Student {n:02}" for n in range(count)]
    assert [sheet.total for sheet in book.sheets] == [0, *[26] * (count - 1)]
    assert len(files) == count + 2
    first, second = (
        (tmp_path / "feedback" / f"feedback-student-0{n}.html").read_text("utf-8") for n in (0, 1)
    )
    assert {"en": "The sheet is empty", "es": "La hoja está vacía"}[language] in first
    assert {"en": "There is one mistake", "es": "Hay un error"}[language] in second
    to_her = {"en": "What you wrote comes out if", "es": "Lo que has escrito sale si"}[language]
    assert to_her in second
    named = {"en": "Attention weights", "es": "Pesos de atención"}[language]
    assert named in second
    assert ("1,139" if language == "es" else "1.139") in second
    assert re.search(r'<td class="n">(the|cat|sat|on|mat|dog)</td>', second)
    index = files[0].read_text("utf-8")
    assert all(file.name in index for file in files[1:])
    assert named in index  # the lines by name, with how many have them right
    assert {"en": f"{count - 1} of {count}", "es": f"{count - 1} de {count}"}[language] in index
    assert (tmp_path / "feedback" / "gradebook.csv").read_text("utf-8") == as_csv(book)

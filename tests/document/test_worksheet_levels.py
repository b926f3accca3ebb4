"""Worksheets by level: what each asks for, that its key wins, and that nothing is given away."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from fractions import Fraction
from html import unescape
from pathlib import Path

import pytest
from worksheet_samples import make_worksheet

import byhand
from budgets import LONG
from byhand.checking.grading import Graded, grade
from byhand.checking.verdicts import Verdict
from byhand.cli import main
from byhand.document.compose.worksheet import Questioning, Worksheet, claims_text, file_stem
from byhand.document.media.html.worksheet import worksheet_page
from byhand.document.media.typst.worksheet import worksheet_source
from byhand.errors import InputError, UsageError
from byhand.language import speaking

MODELS = ("tiny", "journey", "abc")
LEVELS = ("spread", "row", "block", "pass", "mistake", "backward")
SHORT = {("journey", "row"), ("tiny", "block"), ("abc", "pass"), ("tiny", "mistake")}
WITHOUT_FORMS = {  # no line of it has a short exact form, or only lines that come of long ones
    ("abc", "row", True),
    ("journey", "backward", True),
    ("abc", "backward", True),
}
CASES = [
    (model, level, exact, language)
    for model in MODELS
    for level in LEVELS
    for exact in ((False,) if level == "mistake" else (False, True))
    for language in ("en", "es")
    if LONG or ((model, level) in SHORT and (language == "es" or exact))
]


def marked(sheet: Worksheet, model: str, text: str, folder: Path) -> Graded:
    path = folder / "filled.yaml"
    path.write_text(text, encoding="utf-8")
    return grade(byhand.check(model, path).texts[0])


def key_of(sheet: Worksheet, language: str = "en") -> str:
    with speaking(language):
        return claims_text(sheet, filled=True)


# ------------------------------------------------------------------ the key wins


@pytest.mark.parametrize(("model", "level", "exact", "language"), CASES)
def test_right_answers_win_every_mark_and_none_of_them_is_printed(
    model: str, level: str, exact: bool, language: str, tmp_path: Path
) -> None:
    if (model, level, exact) in WITHOUT_FORMS:
        with pytest.raises(InputError, match="nothing to ask for"):
            make_worksheet(model, level=level, exact=exact)
        return
    sheet = make_worksheet(model, level=level, exact=exact, language=language)
    found = marked(sheet, model, key_of(sheet, language), tmp_path)
    assert [line.address for line in found.lines if line.mark != line.out_of] == []
    assert found.total == sheet.marks > 0
    assert printed_answers(sheet, language) == []


@pytest.mark.parametrize("seed", range(40 if LONG else 2))
@pytest.mark.parametrize("model", MODELS)
def test_a_sheet_of_any_seed_keeps_its_answers_to_itself(model: str, seed: int) -> None:
    assert printed_answers(make_worksheet(model, seed=seed), "en") == []


# ------------------------------------------------------------------ reading a sheet


def printed_answers(sheet: Worksheet, language: str) -> list[str]:
    """The blanks whose numbers stand side by side on the page, or in a sentence of it."""
    with speaking(language):
        page = worksheet_page(sheet)
        source = worksheet_source(sheet)
    body = unescape(re.sub(r"<(style|script|svg|math).*?</\1>", " ", page, flags=re.DOTALL))
    rows = [cells(row) for row in re.findall(r"<tr>.*?</tr>", body, flags=re.DOTALL)]
    rows += [
        [said] for said in numbers(re.sub(r"<(table|code).*?</\1>", " ", body, flags=re.DOTALL))
    ]
    rows += [[said] for said in re.findall(r'number\("([^"]*)"\)', source)]
    found = []
    for blank in sheet.blanks:
        if blank.kind in ("shapes", "counts") or blank.address.startswith(("next", "mistake")):
            continue
        answers = [part for answer in blank.answers for part in answer.split("; ")]
        wanted = [value(answer) for answer in answers]
        if any(stands(wanted, list(map(value, row))) for row in rows):
            found.append(blank.address)
    return found


def cells(row: str) -> list[str]:
    """The texts of the cells of a row; a field to fill in is an empty one."""
    inside = re.findall(r"<td[^>]*>(.*?)(?=<td|</tr>)", row, flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", cell).strip() for cell in inside]


def numbers(text: str) -> list[str]:
    return re.findall(r"(?<![\w.,])[-−]?\d+[.,]\d+", re.sub(r"<[^>]+>", " ", text))


def value(text: str) -> Fraction | str:
    try:
        return Fraction(text.replace("−", "-").replace(",", "."))
    except (ValueError, ZeroDivisionError):
        return text or "nothing"


def stands(wanted: list[Fraction | str], row: list[Fraction | str]) -> bool:
    width = len(wanted)
    return any(row[at : at + width] == wanted for at in range(len(row) - width + 1))


def test_the_reader_of_sheets_sees_an_answer_that_is_printed() -> None:
    sheet = make_worksheet("journey", level="row")
    blank = sheet.blanks[0]
    given = next(number for number in re.findall(r'value="(-?\d\.\d+)"', worksheet_page(sheet)))
    told = replace(blank, places=("x",), answers=(given,), row=False)
    assert printed_answers(replace(sheet, blanks=(told,)), "en") == [blank.address]


# ------------------------------------------------------------------ what a level asks for


def steps_of(sheet: Worksheet) -> list[str]:
    return [blank.address.partition("[")[0] for blank in sheet.blanks]


def test_a_row_of_attention_is_its_query_its_scores_its_weights_and_the_mix() -> None:
    sheet = make_worksheet("journey", level="row")
    assert [blank.address for blank in sheet.blanks] == [
        "block.0.attn.q[0,3]",
        "block.0.attn.scores[0,3]",
        "block.0.attn.weights[0,3]",
        "block.0.attn.mixed[0,3]",
    ]
    assert {given.address for given in sheet.given} == {
        "block.0.attn.norm.normalized", "block.0.attn.k", "block.0.attn.v",
    }  # fmt: skip


def test_a_block_ends_where_the_next_begins_and_a_pass_at_the_loss() -> None:
    block, whole = (steps_of(make_worksheet("journey", level=level)) for level in ("block", "pass"))
    assert {step.partition(".")[0] for step in block} == {"block"}
    assert block[-1] == "block.0.mlp.add"
    assert whole[0] == "stream.0"
    assert {"logits", "probs", "loss", "next"} <= set(whole)


def test_a_row_is_blank_as_a_whole() -> None:
    for level in ("spread", "pass"):
        sheet = make_worksheet("journey", level=level)
        page = worksheet_page(sheet)
        for row in re.findall(r"<tr>.*?</tr>", page, flags=re.DOTALL):
            if "asked" in row and "masked" not in row and 'class="n"' in row:
                assert "counts" in page
                assert re.search(r"<code>", row)  # a line of the table of counts


def test_what_a_level_says_itself_is_not_said_again() -> None:
    for asked in ({"blanks": 3}, {"which": ["values"]}):
        with pytest.raises(UsageError, match="does not go with level row"):
            make_worksheet("tiny", level="row", **asked)
    with pytest.raises(UsageError, match="has no level 'rows'") as refused:
        make_worksheet("tiny", level="rows")
    assert "row" in str(refused.value)


def test_an_exact_sheet_takes_no_rounded_number(tmp_path: Path) -> None:
    sheet = make_worksheet("tiny", level="row", exact=True)
    text = key_of(sheet)
    assert '["1/(1 + e)", "e/(1 + e)"]' in text
    assert marked(sheet, "tiny", text.replace("1/(1 + e)", "0.26894"), tmp_path).total == 2
    assert marked(sheet, "tiny", text.replace("1/(1 + e)", "1 - e/(e + 1)"), tmp_path).total == 3


# ------------------------------------------------------------------ the planted mistake


@pytest.mark.parametrize("seed", range(30 if LONG else 2))
@pytest.mark.parametrize("model", MODELS)
def test_one_line_of_the_printed_working_is_wrong_and_naming_it_wins(
    model: str, seed: int, tmp_path: Path
) -> None:
    sheet = make_worksheet(model, level="mistake", seed=seed)
    assert marked(sheet, model, key_of(sheet), tmp_path).total == 2


def test_a_correction_wins_its_mark_without_the_number_of_the_line(tmp_path: Path) -> None:
    sheet = make_worksheet("journey", level="mistake", seed=4)  # the scores are not scaled
    assert sheet.planted is not None
    text = key_of(sheet)
    wrong = text.replace(f"mistake: {sheet.planted.wrong}", "mistake: 1")
    found = marked(sheet, "journey", wrong, tmp_path)
    assert (found["mistake"].mark, found.total) == (0, 1)
    assert found["mistake"].comment == (
        f"line 1 follows from the lines above it; line {sheet.planted.wrong} does not; it follows "
        "if the scores are not scaled; the model says 1/√4 (head width 4)"
    )
    empty = marked(sheet, "journey", claims_text(sheet), tmp_path)
    assert (empty.total, empty.out_of, empty.empty) == (0, 2, True)


def test_a_printed_working_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    sheet = make_worksheet("journey", level="mistake", seed=4)
    assert sheet.planted is not None
    head, working, rest = key_of(sheet).partition("\nworking:")
    changed = rest.replace(sheet.planted.lines[0].value, "0.999", 1)
    with pytest.raises(InputError, match="the printed working was changed"):
        marked(sheet, "journey", head + working + changed, tmp_path)


# ------------------------------------------------------------------ names and commands


def test_a_file_is_named_after_its_student() -> None:
    assert [file_stem(name) for name in ("Ana María", "O'Neil, Jo", "")] == [
        "worksheet-ana-maria", "worksheet-o-neil-jo", "worksheet",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="same name"):
        book("tiny", Path(os.devnull), students=["Ana", "ana"])


def book(model: str, out: Path, **asked: object) -> tuple[Path, ...]:
    return byhand.book(model, out=out, claims=(), worksheet=True, **asked)  # type: ignore[arg-type]


def test_each_student_has_a_copy_and_there_is_one_key(tmp_path: Path) -> None:
    files = book("tiny", tmp_path, level="row", students=["Ana María", "Ben"])
    names = [file.name for file in files if file.name.startswith("worksheet")]
    assert names == [
        "worksheet-ana-maria.html", "worksheet-ana-maria.yaml", "worksheet-ben.html",
        "worksheet-ben.yaml", "worksheet-key.html", "worksheet-key.yaml",
    ]  # fmt: skip
    assert 'student: "Ana María"' in (tmp_path / names[1]).read_text("utf-8")
    assert 'value="Ana María"' in (tmp_path / names[0]).read_text("utf-8")


@pytest.mark.parametrize("name", ["plain.yaml", "a model.yaml", "-dash.yaml"])
def test_the_command_on_the_sheet_works_as_it_is_printed(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = Path(byhand.__file__).parent / "models" / "tiny.yaml"
    (tmp_path / name).write_text(source.read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tmp_path)
    sheet = make_worksheet(name, level="row")
    sheet = replace(sheet, student="Jo's")
    Path(sheet.file).write_text(claims_text(sheet, filled=True), "utf-8")
    page = unescape(worksheet_page(sheet))
    assert f">{sheet.command}</code>" in page
    assert f"# {sheet.command}\n" in claims_text(sheet)
    command, *arguments = shlex.split(sheet.command)
    assert command == "byhand"
    assert main.run(arguments) == 0
    assert "3 of 3" in capsys.readouterr().out


# ------------------------------------------------------------------ what is typed


def test_a_spanish_sheet_reads_commas_and_points(tmp_path: Path) -> None:
    sheet = make_worksheet("journey", level="row", language="es")
    text = key_of(sheet, "es")
    assert "decimal: comma" in text
    assert "block.0.attn.q[0,3]: -0,782; -0,280; 1,139; 0,135" in text.replace("−", "-")
    assert marked(sheet, "journey", text, tmp_path).total == 4
    points = re.sub(r"(\d),(\d\d\d)", r"\1.\2", text)
    assert marked(sheet, "journey", points, tmp_path).total == 4


def test_only_what_the_student_wrote_is_wrong(tmp_path: Path) -> None:
    """A slip in a row costs that row, and nothing that the sheet prints is blamed."""
    sheet = make_worksheet("journey", seed=0, which=["values"], blanks=20)
    text = key_of(sheet)
    values = [blank for blank in sheet.blanks if not blank.address.startswith("next")]
    for blank in values if LONG else values[::6]:
        wrong = text.replace(f"{blank.address}: [{blank.answers[0]}", f"{blank.address}: [7.777")
        wrong = wrong.replace(f'{blank.address}": [{blank.answers[0]}', f'{blank.address}": [7.777')
        wrong = wrong.replace(f"{blank.address}: {blank.answers[0]}", f"{blank.address}: 7.777")
        assert wrong != text, blank.address
        found = marked(sheet, "journey", wrong, tmp_path)
        errors = [line.name for line in found.lines if line.outcome == Verdict.ERROR.value]
        assert errors == [blank.address]
        assert found.out_of - found.total == 1


def test_a_mistake_is_planted_in_decimals_and_an_exact_sheet_of_it_is_refused() -> None:
    with pytest.raises(UsageError, match="in decimals") as refused:
        Questioning.asked(level="mistake", exact=True)
    assert "leave out --exact" in str(refused.value)

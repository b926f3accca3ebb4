"""Worksheets: what is blank, what is given, and that `byhand check` marks what was filled in."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from worksheet_samples import make_worksheet, write_worksheet

import byhand
from byhand.checking.gradebooks import gradebook
from byhand.checking.grading import BLANK, Graded, grade
from byhand.checking.verdicts import Verdict
from byhand.document.compose.marking import summary
from byhand.document.compose.worksheet import Worksheet
from byhand.document.compose.worksheet.claims import claims_text
from byhand.document.compose.worksheet.sheet import COUNTS, SHAPES, VALUES
from byhand.document.media.html.worksheet import worksheet_page
from byhand.document.media.typst.worksheet import worksheet_source
from byhand.document.parts import NumberTable
from byhand.errors import InputError, UsageError

MODELS = ("tiny", "journey", "abc")


def graded(model: str, text: str, folder: Path) -> Graded:
    path = folder / "filled.yaml"
    path.write_text(text, encoding="utf-8")
    marking = byhand.check(model, path)
    (only,) = marking.texts
    return grade(only)


def kinds(sheet: Worksheet) -> set[str]:
    return {blank.kind for blank in sheet.blanks}


# ------------------------------------------------------------------ marking


@pytest.mark.parametrize("model", [*MODELS, "minigpt"])
def test_a_template_filled_from_the_key_gets_full_marks(model: str, tmp_path: Path) -> None:
    sheet = make_worksheet(model, blanks=20, seed=3)
    found = graded(model, claims_text(sheet, filled=True), tmp_path)
    assert found.total == found.out_of == sheet.marks == 20
    assert not found.unplaced


@pytest.mark.parametrize("model", [*MODELS, "minigpt"])
def test_an_empty_template_is_all_blanks(model: str, tmp_path: Path) -> None:
    sheet = make_worksheet(model, blanks=20, seed=3)
    found = graded(model, claims_text(sheet), tmp_path)
    asked = [line for line in found.lines if line.out_of]
    assert {line.outcome for line in asked} == {BLANK}
    assert (found.total, found.out_of) == (0, 20)


@pytest.mark.parametrize("seed", range(3))
def test_every_answer_of_many_sheets_is_right(seed: int, tmp_path: Path) -> None:
    sheet = make_worksheet("journey", blanks=60, decimals=2, seed=seed)
    found = graded("journey", claims_text(sheet, filled=True), tmp_path)
    assert [line.address for line in found.lines if line.mark != line.out_of] == []
    assert found.out_of == 60


def test_a_row_with_a_masked_entry_in_it_is_asked_for_where_its_numbers_are(tmp_path: Path) -> None:
    """Every position looks at both others and not at itself."""
    model = tmp_path / "others.yaml"
    model.write_text(
        """\
vocabulary: [x, y, z]
text: x y z
model: {d_model: 1, layers: 1, context: 3, mlp: none, attention: {causal: false, score_table: true}}
weights:
  embed.token: [[1], [2], [3]]
  block.0.attn.q: ones
  block.0.attn.k: ones
  block.0.attn.v: ones
  block.0.attn.out: ones
  block.0.attn.score_table: [[[masked, 0, 1], [0, masked, 1], [0, 1, masked]]]
""",
        encoding="utf-8",
    )
    sheet = make_worksheet(model, blanks=60, which=[VALUES])
    assert {blank.address for blank in sheet.blanks if ".weights" in blank.address} == {
        "block.0.attn.weights[0,0,1:3]",
        "block.0.attn.weights[0,1,0]",
        "block.0.attn.weights[0,1,2]",
        "block.0.attn.weights[0,2,:2]",
    }
    found = graded(str(model), claims_text(sheet, filled=True), tmp_path)
    assert [line.address for line in found.lines if line.mark != line.out_of] == []


def test_a_wrong_answer_is_found_since_what_it_comes_from_is_known(tmp_path: Path) -> None:
    sheet = make_worksheet("journey", blanks=16, seed=5, which=[VALUES])
    text = claims_text(sheet, filled=True)
    for blank in sheet.blanks:
        if blank.kind != VALUES or not blank.answers[0].lstrip("-")[0].isdigit():
            continue
        wrong = format(float(blank.answers[0]) + 0.05, ".3f")
        filled = re.search(
            rf'(?m)^(  "?{re.escape(blank.address)}"?: \[?){re.escape(blank.answers[0])}', text
        )
        assert filled is not None
        spoiled = text[: filled.start()] + filled[1] + wrong + text[filled.end() :]
        found = graded("journey", spoiled, tmp_path)
        assert found.total < found.out_of, blank.address
        blamed = {line.address for line in found.lines if line.outcome == Verdict.ERROR.value}
        assert read_name(blank.address) in blamed
        assert blamed <= {read_name(own.address) for own in sheet.blanks}  # nothing printed


def read_name(address: str) -> str:
    """The address as verdicts write it."""
    return address.replace(",:", ",0:")


def test_nothing_of_an_empty_sheet_is_judged(tmp_path: Path) -> None:
    """What the sheet prints itself follows, but nobody has written it."""
    sheet = make_worksheet("journey", blanks=20, seed=3)
    path = tmp_path / "worksheet.yaml"
    path.write_text(claims_text(sheet), encoding="utf-8")
    marking = byhand.check("journey", path)
    assert {line.verdict for line in marking} == {Verdict.UNJUDGED}
    assert len(list(marking)) == 20
    assert summary(marking) == "the sheet is empty: all 20 lines are left blank"
    assert marking.empty
    assert not marking.passed


def test_a_line_that_the_sheet_prints_and_somebody_changed_is_told(tmp_path: Path) -> None:
    sheet = make_worksheet("journey", blanks=12, seed=3, which=[VALUES])
    text = claims_text(sheet, filled=True)
    head, given, printed = text.partition("\ngiven:")
    assert "\n  stream.0: [[0.300," in printed
    changed = printed.replace("stream.0: [[0.300,", "stream.0: [[0.399,")
    found = graded("journey", head + given + changed, tmp_path)
    altered = found["stream.0"]
    assert (altered.out_of, altered.comment) == (0, "the sheet prints other numbers here")
    assert found.out_of == 12
    book = gradebook([byhand.check("journey", tmp_path / "filled.yaml").texts[0]])
    assert "stream.0 is printed on the sheet with other numbers" in [
        mistake.sentence for mistake in book.mistakes
    ]


def test_the_sheet_names_its_text_target_and_precision() -> None:
    text = claims_text(make_worksheet("journey", decimals=2, blanks=10))
    assert "\ntext: the cat sat on\n" in text
    assert "\ntarget: mat\n" in text
    assert "\nprecision: decimals:2\n" in text


def test_a_text_of_odd_signs_comes_back_as_it_was(tmp_path: Path) -> None:
    model = tmp_path / "odd.yaml"
    source = Path(byhand.__file__).parent / "models" / "tiny.yaml"
    named = source.read_text("utf-8").replace("[a, b, c]", '["on", "#", "a:"]')
    model.write_text(
        named.replace('text: "a b"', "text: 'on #'").replace("text: a b", "text: 'on #'")
    )
    sheet = make_worksheet(model, blanks=8, which=[VALUES])
    found = graded(str(model), claims_text(sheet, filled=True), tmp_path)
    assert found.total == found.out_of == 8


# ------------------------------------------------------------------ choosing


def test_the_same_seed_leaves_the_same_lines_blank() -> None:
    one, again = (make_worksheet("journey", seed=7) for _time in range(2))
    assert one.blanks == again.blanks
    assert worksheet_page(one) == worksheet_page(again)
    assert worksheet_source(one, key=True) == worksheet_source(again, key=True)


def test_another_seed_leaves_other_lines_blank() -> None:
    assert make_worksheet("journey", seed=1).blanks != make_worksheet("journey", seed=2).blanks


@pytest.mark.parametrize("count", [1, 7, 30])
def test_there_are_as_many_blanks_as_asked_for(count: int) -> None:
    assert make_worksheet("journey", blanks=count).marks == count


@pytest.mark.parametrize("which", [VALUES, SHAPES, COUNTS])
def test_only_what_is_wanted_is_asked_for(which: str) -> None:
    assert kinds(make_worksheet("tiny", blanks=4, which=[which])) == {which}


def test_values_shapes_and_counts_are_asked_for_unless_told_otherwise() -> None:
    assert kinds(make_worksheet("journey")) == {VALUES, SHAPES, COUNTS}


def test_blanks_are_spread_over_the_passages() -> None:
    sheet = make_worksheet("journey", blanks=17, which=[VALUES])
    steps = {blank.address.partition("[")[0] for blank in sheet.blanks}
    assert len(steps) >= 15


def test_answers_are_those_of_a_pencil() -> None:
    sheet = make_worksheet("journey", blanks=200, decimals=2, which=[VALUES])
    answers = {blank.address: blank.answers for blank in sheet.blanks}
    assert answers["block.0.attn.scores[0,3]"] == ("0.55", "-0.43", "0.00", "0.10")
    assert answers["loss[0]"] == ("1.83",)
    assert answers["next[3]"] == ("cat",)


def test_of_a_larger_model_only_what_shown_numbers_give_is_asked_for() -> None:
    sheet = make_worksheet("minigpt", blanks=40, which=[VALUES])
    ends = {blank.address.partition("[")[0].rpartition(".")[2] for blank in sheet.blanks}
    assert ends <= {"add", "act", "weights", "0"}
    shown = {
        number.address
        for passage in sheet.book.passages
        for part in passage.show
        if isinstance(part, NumberTable)
        for row in part.rows
        for number in row.numbers
    }
    assert {given.address for given in sheet.given} <= shown


def test_without_decimals_asked_for_nothing_is_lost_by_rounding() -> None:
    sheet = make_worksheet("abc", blanks=10, which=[VALUES])
    assert (sheet.decimals or 0) >= 3


def test_too_few_decimals_are_refused_with_a_hint() -> None:
    with pytest.raises(InputError, match="more decimals"):
        make_worksheet("abc", decimals=0)


def test_no_blanks_are_refused() -> None:
    with pytest.raises(UsageError, match="needs blanks"):
        make_worksheet("tiny", blanks=0)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="values, shapes, counts"):
        make_worksheet("tiny", which=["colours"])


# ------------------------------------------------------------------ nothing is given away


@pytest.mark.parametrize("model", MODELS)
def test_the_sheet_does_not_say_what_it_asks_for(model: str) -> None:
    sheet = make_worksheet(model, blanks=30, seed=2)
    page = worksheet_page(sheet)
    asked = set(sheet.answers)
    for passage in sheet.book.passages:
        assert not passage.remarks
        for law in passage.formulas:
            assert not law.numbers
            assert law.worked is None or law.worked.values is None
    assert not any(node.rows for node in sheet.book.spine.nodes)
    for address in asked:
        assert f'data-a="{address}"' in page
        assert re.search(rf'<input[^>]* data-a="{re.escape(address)}"', page)


@pytest.mark.parametrize("model", MODELS)
def test_every_given_number_is_there(model: str) -> None:
    sheet = make_worksheet(model, blanks=5)
    assert '<data value=""' not in worksheet_page(sheet)
    assert 'number(""' not in worksheet_source(sheet)


def test_a_sentence_with_results_in_it_goes() -> None:
    sheet = make_worksheet("journey", blanks=60, which=[VALUES])
    said = " ".join(s for passage in sheet.book.passages for s in passage.sentences)
    assert "dot product" in said
    assert not re.search(r"\d\.\d{3}(?!\d)", said)
    words = {b.answers[0] for b in sheet.blanks if b.address.startswith("next")}
    assert words
    assert not any(f"`{word}`" in said for word in words)


def test_the_key_has_every_answer_and_how_it_comes_about() -> None:
    sheet = make_worksheet("journey", blanks=20, seed=4)
    page = worksheet_page(sheet, key=True)
    assert page.count('class="answer"') == len(sheet.answers)
    assert "<input" not in page
    assert 'class="solution"' in page


# ------------------------------------------------------------------ files


def test_all_files_are_written_and_nothing_else_is_left(tmp_path: Path) -> None:
    paths = write_worksheet("tiny", tmp_path, blanks=6, seed=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    assert [path.name for path in paths] == [
        "worksheet.html", "worksheet.yaml", "worksheet-key.html", "worksheet-key.yaml",
    ]  # fmt: skip


def test_with_pdf_the_sheet_and_its_key_are_typeset(tmp_path: Path) -> None:
    pytest.importorskip("typst")
    paths = write_worksheet("tiny", tmp_path, blanks=6, pdf=True)
    for name in ("worksheet.pdf", "worksheet-key.pdf"):
        assert tmp_path / name in paths
        assert (tmp_path / name).read_bytes().startswith(b"%PDF-")


def test_a_spanish_sheet_and_its_claims_have_decimal_commas(tmp_path: Path) -> None:
    sheet = make_worksheet("journey", blanks=20, language="es", which=[VALUES])
    write_worksheet("journey", tmp_path, blanks=20, language="es")
    assert "0,100" in (tmp_path / "worksheet.html").read_text("utf-8")
    filled = (tmp_path / "worksheet-key.yaml").read_text("utf-8")
    assert re.search(r"(?m)^  [^:]*: -?\d,\d{3}(; -?\d,\d{3})*$", filled)
    assert sheet.book.language == "es"


def test_a_sheet_asks_for_nothing_from_the_network() -> None:
    page = worksheet_page(make_worksheet("tiny"))
    assert not re.search(r"(?:src|href)=\"https?:", page)
    assert "@import" not in page


def test_marks_are_one_a_line() -> None:
    sheet = make_worksheet("tiny", blanks=9)
    assert Fraction(sheet.marks) == 9
    assert len(set(sheet.answers)) == sum(len(blank.places) for blank in sheet.blanks)


def test_of_a_large_model_counts_and_shapes_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byhand.worksheets.TOY_PARAMETERS", 10)
    sheet = make_worksheet("tiny", blanks=8)
    assert kinds(sheet) == {SHAPES, COUNTS}
    assert sheet.decimals is None
    assert "precision" not in claims_text(sheet)
    assert "<input" in worksheet_page(sheet)

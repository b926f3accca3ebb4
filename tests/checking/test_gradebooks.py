"""Worksheets are marked as a teacher would mark them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from byhand.address import read_address
from byhand.api import check
from byhand.checking.claims import Claim, Unmatched
from byhand.checking.gradebooks import UNEXPLAINED, Gradebook, as_csv, decimal, gradebook, write_csv
from byhand.checking.grading import BLANK, SET_ASIDE, Rules, grade
from byhand.checking.verdicts import Marked, MarkedText, Suspect, Verdict
from byhand.errors import OutputError, UsageError

HALF = Fraction(1, 2)
RIGHT, CARRIED, UNSUPPORTED, ERROR, UNJUDGED = Verdict
SCALE = Suspect("scale-missing", "forgot the 1/√d scale", "divide the scores by √d", 0.2)
GELU = Suspect("gelu-kind", "GELU is erf", "use tanh", 0.1)


def line(
    address: str,
    verdict: Verdict = RIGHT,
    *suspects: Suspect,
    filled: str = "xx",
    outside: int = 0,
    source: str = "anna.yaml:3",
) -> Marked:
    """A marked line of two entries; `filled` has an x for each that is not blank."""
    place = read_address(address)
    claimed = np.array([mark == "x" for mark in filled])
    claim = Claim(
        place.name,
        place.index,
        np.zeros(len(filled)),
        address,
        source,
        claimed=None if claimed.all() else claimed,
    )
    return Marked(
        claim,
        verdict,
        suspects=suspects,
        outside=outside,
        entries=int(claimed.sum()),
        reason="weight.x is unknown" if verdict is UNJUDGED else "",
    )


def sheet(
    *lines: Marked,
    student: str | None = "Anna",
    marks: Mapping[str, Fraction] | None = None,
    unmatched: tuple[Unmatched, ...] = (),
) -> MarkedText:
    return MarkedText("a b", (0, 1), "as written", lines, unmatched, student, marks or {})


# ------------------------------------------------------------------ one sheet


def test_what_follows_from_the_student_s_own_lines_earns_full_marks() -> None:
    graded = grade(sheet(line("a"), line("b", ERROR, SCALE), line("c", CARRIED)))
    assert [each.mark for each in graded.lines] == [1, 0, 1]
    assert (graded.total, graded.out_of) == (2, 3)
    assert decimal(graded.percent or Fraction(0), 1) == "66.7"
    assert graded.first_error is graded["b"]


def test_a_right_value_out_of_nowhere_is_right_unless_the_rules_say_otherwise() -> None:
    text = sheet(line("a", UNSUPPORTED))
    assert grade(text).total == 1
    assert grade(text, rules=Rules(unsupported=HALF)).total == HALF
    assert grade(text, rules=Rules(unsupported=Fraction(0))).total == 0


def test_blanks_earn_nothing_and_half_a_line_half_of_it() -> None:
    graded = grade(sheet(line("a", UNJUDGED, filled="__"), line("b", filled="x_")))
    assert [(each.outcome, each.mark, each.out_of) for each in graded.lines] == [
        (BLANK, 0, 1),
        ("right", HALF, 1),
    ]


def test_what_cannot_be_judged_is_neither_won_nor_lost() -> None:
    graded = grade(sheet(line("a"), line("b", UNJUDGED)))
    assert [(each.outcome, each.out_of) for each in graded.lines] == [("right", 1), (SET_ASIDE, 0)]
    assert graded.percent == 100


def test_a_sheet_with_nothing_to_win_has_no_percentage() -> None:
    assert grade(sheet(line("a", UNJUDGED))).percent is None


def test_the_right_entries_of_a_wrong_line_count_where_the_rules_say_so() -> None:
    text = sheet(line("a", ERROR, outside=1, filled="xxxx"))
    assert grade(text).total == 0
    assert grade(text, rules=Rules(by_entry=True)).total == Fraction(3, 4)


def test_the_sheet_says_what_its_lines_are_worth() -> None:
    worth = {"b[1]": Fraction(3), "c": HALF}
    graded = grade(sheet(line("a"), line("b[1]"), line("c[0]", ERROR), marks=worth))
    assert [(each.mark, each.out_of) for each in graded.lines] == [(1, 1), (3, 3), (0, HALF)]
    doubled = grade(sheet(line("a"), marks=worth), marks={}, rules=Rules(each=Fraction(2)))
    assert doubled.total == 2


@pytest.mark.parametrize("rules", [{"each": Fraction(-1)}, {"unsupported": Fraction(3, 2)}])
def test_marks_below_nothing_and_shares_above_everything_are_refused(
    rules: dict[str, Fraction],
) -> None:
    with pytest.raises(UsageError, match="marks cannot be"):
        Rules(**rules)  # type: ignore[arg-type]


def test_a_sheet_without_a_name_goes_by_its_file() -> None:
    assert grade(sheet(line("a"), student=None)).student == "anna"


def test_a_teacher_s_comments_say_what_happened() -> None:
    graded = grade(
        sheet(
            line("a"),
            line("b", ERROR, SCALE, GELU),
            line("c", CARRIED),
            line("d", UNSUPPORTED, filled="x_"),
            line("e", ERROR),
            line("f", UNJUDGED),
            line("g", UNJUDGED, filled="__"),
        )
    )
    assert [each.comment for each in graded.lines] == [
        "",
        "forgot the 1/√d scale",
        "follows from your line above",
        "the right value, but not from your line above; not all of it is filled in",
        "does not follow",
        "cannot be judged: weight.x is unknown",
        "left blank",
    ]


def test_names_that_stand_for_nothing_are_told_and_not_marked() -> None:
    stray = Unmatched("block.9.x", "anna.yaml:9", "there is no such step")
    graded = grade(sheet(line("a"), unmatched=(stray,)))
    assert (graded.unplaced, graded.out_of) == (("block.9.x",), 1)


# ------------------------------------------------------------------ a class


def a_class() -> Gradebook:
    return gradebook(
        [
            sheet(line("a"), line("b", ERROR, SCALE), line("c", CARRIED), student="Anna"),
            sheet(line("a"), line("b", ERROR, SCALE), line("c", ERROR, GELU), student="Ben"),
            sheet(line("a"), line("c", UNSUPPORTED), student="Cleo"),
            sheet(line("a"), line("b"), line("x", ERROR), line("c", ERROR), student="Dora"),
        ]
    )


def test_everybody_is_marked_over_the_same_lines() -> None:
    book = a_class()
    assert book.lines == ("a", "b", "c")
    assert [(each.student, each.total, each.out_of) for each in book.sheets] == [
        ("Anna", 2, 3),
        ("Ben", 1, 3),
        ("Cleo", 2, 3),  # the line she lacks is a blank
        ("Dora", 2, 3),  # the line she added counts neither way
    ]
    assert book.sheets[2]["b"].outcome == BLANK
    assert book.mean_percent == Fraction(700, 12)


def test_the_worksheet_can_say_which_lines_it_asks_for() -> None:
    book = gradebook([sheet(line("a"), line("b"))], lines=["a", "z"])
    assert [(each.address, each.mark, each.out_of) for each in book.sheets[0].lines] == [
        ("a", 1, 1),
        ("z", 0, 1),
        ("b", 0, 0),
    ]


def test_a_line_that_nobody_can_be_judged_by_is_worth_nothing_to_those_who_lack_it() -> None:
    book = gradebook([sheet(line("a"), line("b", UNJUDGED)), sheet(line("a"), student="Ben")])
    assert [each.out_of for each in book.sheets] == [1, 1]


def test_a_missing_line_is_worth_what_it_is_worth_to_the_others() -> None:
    worth = {"b": Fraction(4)}
    book = gradebook([sheet(line("a"), line("b"), marks=worth), sheet(line("a"), student="Ben")])
    assert [(each.total, each.out_of) for each in book.sheets] == [(5, 5), (1, 5)]


def test_the_commonest_mistakes_come_first_each_student_once() -> None:
    book = gradebook(
        [
            sheet(line("a", ERROR, GELU), line("b", ERROR, SCALE), line("c", ERROR, SCALE)),
            sheet(line("a"), line("b", ERROR, SCALE), line("c", ERROR), student="Ben"),
            sheet(line("a"), line("b"), line("c"), student="Cleo"),
        ]
    )
    assert [(each.kind, each.summary) for each in book.mistakes] == [
        ("scale-missing", "2 of 3: forgot the 1/√d scale"),
        ("gelu-kind", "1 of 3: GELU is erf"),
        (UNEXPLAINED, "1 of 3: c does not follow, and no cause was found"),
    ]
    assert book.mistakes[0].students == ("Anna", "Ben")
    assert book.mistakes[0].lines == ("b", "c")


def test_two_sheets_of_one_name_are_told_apart() -> None:
    book = gradebook([sheet(line("a")), sheet(line("a")), sheet(line("a"), student="Ben")])
    assert [each.student for each in book.sheets] == ["Anna (1)", "Anna (2)", "Ben"]


def test_no_sheets_make_an_empty_gradebook() -> None:
    book = gradebook([])
    assert (book.lines, book.sheets, book.mistakes, book.mean_percent) == ((), (), (), None)


SHEETS = sorted((Path(__file__).parents[2] / "docs" / "examples" / "worksheets").glob("*.yaml"))


def test_the_sheets_of_the_docs_are_marked_as_their_students_deserve() -> None:
    book = gradebook(check("journey", *SHEETS).texts)
    assert [(each.student, each.total, each.out_of) for each in book.sheets] == [
        ("Ana", 16, 16),  # everything is right
        ("Ben", 14, 16),  # forgets the scale, a line of two marks, and goes on correctly
        ("Carla", 11, 16),  # the same, without ReLU and with two blanks
        ("Dan", 14, 16),  # leaves the residual out, and a blank
    ]
    wrong = {each.address for sheet in book.sheets for each in sheet.lines if each.mistake}
    assert wrong == {"block.0.attn.scores[0,3]", "block.0.mlp.act[3]", "block.0.mlp.add[3]"}
    assert book.mistakes[0].kind == "scale-missing"
    assert book.mistakes[0].students == ("Ben", "Carla")


# ------------------------------------------------------------------ as a table


def test_the_table_has_a_row_a_student_and_a_column_a_line() -> None:
    assert as_csv(a_class()) == (
        "student,total,out of,percent,a,b,c\n"
        "Anna,2,3,66.7,1,0,1\n"
        "Ben,1,3,33.3,1,0,0\n"
        "Cleo,2,3,66.7,1,0,1\n"
        "Dora,2,3,66.7,1,1,0\n"
    )


def test_the_columns_have_the_names_that_most_sheets_use() -> None:
    other = replace(line("a"), claim=replace(line("a").claim, name="stream.0[1]"))
    book = gradebook([sheet(other), sheet(line("a"), student="B"), sheet(other, student="C")])
    assert (book.lines, book.names) == (("a",), ("stream.0[1]",))
    assert as_csv(book).splitlines()[0] == "student,total,out of,percent,stream.0[1]"


def test_a_line_set_aside_is_an_empty_cell() -> None:
    book = gradebook([sheet(line("a", UNJUDGED)), sheet(line("a"), student="Ben")])
    assert as_csv(book).splitlines()[1:] == ["Anna,0,0,,", "Ben,1,1,100,1"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", '=cmd|"/c calc"!A1'])
def test_a_student_s_name_is_never_a_formula_of_the_teacher_s_spreadsheet(name: str) -> None:
    rows = list(csv.reader(io.StringIO(as_csv(gradebook([sheet(line("a"), student=name)])))))
    assert rows[1][0] == "'" + name


def test_names_with_commas_and_quotes_come_back_as_they_were() -> None:
    name = 'Ada "A", L.'
    rows = list(csv.reader(io.StringIO(as_csv(gradebook([sheet(line("a"), student=name)])))))
    assert rows[1][0] == name


def test_the_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "book.csv"
    write_csv(a_class(), target)
    assert target.read_text("utf-8") == as_csv(a_class())
    assert [each.name for each in tmp_path.iterdir()] == ["book.csv"]
    with pytest.raises(OutputError, match="cannot be written"):
        write_csv(a_class(), tmp_path / "missing" / "book.csv")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        write_csv(a_class(), folder)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["book.csv", "folder"]


def test_marks_are_written_as_people_write_them() -> None:
    shown = [decimal(Fraction(text)) for text in ("0", "1", "10", "1/2", "1/3", "100")]
    assert shown == ["0", "1", "10", "0.5", "0.33", "100"]

"""Claims written by hand: YAML, JSON, CSV and spreadsheets become the same sheets."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byhand.checking.claims import DIRECTION, Entry, Sheet
from byhand.checking.readers import read_claims
from byhand.errors import InputError

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return file


def entry(sheet: Sheet, name: str) -> Entry:
    return next(each for each in sheet.entries if each.name == name)


SHEET = """\
text: the cat sat on
target: mat
student: Ana
precision: exact
marks: {loss: 2, "next[3]": 1/2}
claims:
  block.0.attn.add[3]: [-0.06, 0.49, _, 1/3]
  block.0.attn.weights[0]: [[1, masked], _]
  direction.weight.head[2]: [-1, 1.75]
  next[3]: cat
  loss: 1.8933
"""


def test_a_sheet_has_a_heading_and_claims(write: Write) -> None:
    sheet = read_claims(write("ana.yaml", SHEET))
    assert (sheet.text, sheet.target, sheet.label) == ("the cat sat on", "mat", "Ana")
    assert sheet.precision == "exact"
    assert sheet.marks == {"loss": 2, "next[3]": Fraction(1, 2)}
    add = entry(sheet, "block.0.attn.add[3]")
    assert add.values.tolist() == [-0.06, 0.49, 0.0, 1 / 3]
    assert add.claimed is not None
    assert add.claimed.tolist() == [True, True, False, True]
    assert np.asarray(add.slack)[0] == pytest.approx(0.005)
    assert add.format is None
    assert add.source.endswith("ana.yaml:7")


def test_a_blank_can_stand_for_a_row(write: Write) -> None:
    found = entry(read_claims(write("ana.yaml", SHEET)), "block.0.attn.weights[0]")
    assert found.values.tolist() == [[1.0, -np.inf], [0.0, 0.0]]
    assert found.claimed is not None
    assert found.claimed.tolist() == [[True, True], [False, False]]


def test_a_whole_number_has_the_decimals_of_its_line_and_alone_is_exact(write: Write) -> None:
    sheet = read_claims(write("ana.yaml", "probs[0]: [0.73, 1, 0.2701]\nlogits[1]: [1, -1, 0]\n"))
    beside, alone = (np.asarray(entry.slack) for entry in sheet.entries)
    assert beside == pytest.approx([0.005, 0.005, 0.00005])
    assert alone.tolist() == [0, 0, 0]


def test_a_direction_is_no_value(write: Write) -> None:
    found = entry(read_claims(write("ana.yaml", SHEET)), "direction.weight.head[2]")
    assert found.kind == DIRECTION


def test_a_token_stays_a_word(write: Write) -> None:
    sheet = read_claims(write("ana.yaml", SHEET))
    assert entry(sheet, "next[3]").values.tolist() == "cat"


def test_a_flat_file_is_a_sheet_too(write: Write) -> None:
    sheet = read_claims(write("flat.yaml", "text: a b\nlogits[1]: [1, -1, 0]\nloss: 0.30\n"))
    assert sheet.text == "a b"
    assert [each.name for each in sheet.entries] == ["logits[1]", "loss"]


def test_what_the_sheet_prints_is_given_and_nobody_s_claim(write: Write) -> None:
    text = "claims:\n  loss: 1.83\ngiven:\n  logits[0]: [0.1, _]\n"
    for sheet in (
        read_claims(write("sheet.yaml", text)),
        read_claims(write("flat.yaml", text.replace("claims:\n  ", ""))),
        read_claims({"claims": {"loss": "1.83"}, "given": {"logits[0]": ["0.1", None]}}),
    ):
        assert [(each.name, each.given) for each in sheet.entries] == [
            ("loss", False),
            ("logits[0]", True),
        ]
    with pytest.raises(InputError, match="what is given is a table"):
        read_claims(write("wrong.yaml", "claims: {loss: 1.83}\ngiven: 3\n"))


def test_json_is_read_alike(write: Write) -> None:
    text = '{"text": "a b", "claims": {"loss": 0.30, "logits[1]": ["~1", null, "1/3"]}}'
    sheet = read_claims(write("sheet.json", text))
    assert float(entry(sheet, "loss").slack) == pytest.approx(0.005)  # 0.30 has two decimals
    claimed = entry(sheet, "logits[1]").claimed
    assert claimed is not None
    assert claimed.tolist() == [True, False, True]


def test_blanks_at_the_ends_of_a_text_of_characters_are_kept(write: Write) -> None:
    sheet = read_claims(write("sheet.yaml", 'text: "ab "\ntarget: " "\nloss: 1.0\n'))
    assert (sheet.text, sheet.target) == ("ab ", " ")


# ------------------------------------------------------------------ rows of cells


CSV = """\
address,value
text,the cat sat on
name,Ana
# a remark
"block.0.attn.scores[0,1,1]",0.30
block.0.attn.scores[0,1,0],0.3
block.0.attn.add[3],-0.06,0.49,0.72,0.34
next[3],cat,,,
"""


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_rows_of_cells_are_claims(write: Write, separator: str) -> None:
    if separator == ",":
        text = CSV
    else:
        text = CSV.replace(",", separator).replace(f"[0{separator}1{separator}", "[0,1,")
    sheet = read_claims(write("ana.csv", text))
    assert (sheet.text, sheet.label) == ("the cat sat on", "Ana")
    slacks = [float(entry(sheet, f"block.0.attn.scores[0,1,{k}]").slack) for k in (0, 1)]
    assert slacks == pytest.approx([0.05, 0.005])
    assert entry(sheet, "block.0.attn.add[3]").values.tolist() == [-0.06, 0.49, 0.72, 0.34]
    assert entry(sheet, "next[3]").values.tolist()[0] == "cat"


def spreadsheet(path: Path, rows: list[list[Any]], formats: dict[str, str]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, format in formats.items():
        book.active[cell].number_format = format
    book.save(path)
    return path


def test_a_cell_counts_with_the_decimals_it_shows(tmp_path: Path) -> None:
    rows = [
        ["address", "value"],
        ["student", "Ana"],
        ["loss", 1.8933],
        ["block.0.attn.add[3]", 0.5, 0.7249, None, "1/3"],
        ["probs[3,mat]", 0.1506],
        ["block.0.mlp.out[0,0]", 0.00123],
        ["count.total", 103680],
    ]
    formats = {"B4": "0.00", "C4": "0.00", "B5": "0.0%", "B6": "0.00E+00", "B7": "#,##0"}
    sheet = read_claims(spreadsheet(tmp_path / "ana.xlsx", rows, formats))
    assert sheet.label == "Ana"
    names = [each.name for each in sheet.entries]
    slack = {name: np.atleast_1d(entry(sheet, name).slack)[0] for name in names}
    assert slack["loss"] == pytest.approx(0.00005)  # as it was typed
    add = entry(sheet, "block.0.attn.add[3]")
    assert add.values.tolist() == [0.5, 0.72, 0.0, 1 / 3]
    assert np.asarray(add.slack)[:2] == pytest.approx([0.005, 0.005])
    assert add.claimed is not None
    assert add.claimed.tolist() == [True, True, False, True]
    assert slack["probs[3,mat]"] == pytest.approx(0.0005)
    assert slack["block.0.mlp.out[0,0]"] == pytest.approx(0.000005)
    assert entry(sheet, "count.total").values == 103680


def test_without_openpyxl_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    path = tmp_path / "ana.xlsx"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"byhand\[xlsx\]"):
        read_claims(path)


def test_broken_spreadsheets_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "ana.xlsx"
    path.write_bytes(b"PK\x03\x04 and nothing more")
    with pytest.raises(InputError, match="not a whole xlsx file"):
        read_claims(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<no/>")
    with pytest.raises(InputError, match="not a whole xlsx file"):
        read_claims(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>')
    with pytest.raises(InputError, match="it defines entities"):
        read_claims(path)


def test_a_spreadsheet_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openpyxl")
    from byhand.checking.readers import rows as module

    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    path = spreadsheet(tmp_path / "ana.xlsx", [["loss", 1.5]], {})
    with pytest.raises(InputError, match="the file is too large"):
        read_claims(path)


def test_a_date_in_a_cell_is_no_number(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    import datetime

    rows = [["loss", datetime.date(2024, 1, 2)]]
    with pytest.raises(InputError, match="a cell holds no number"):
        read_claims(spreadsheet(tmp_path / "ana.xlsx", rows, {}))


# ------------------------------------------------------------------ hostile files


LAUGHS = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.yaml", "", "the file is empty"),
        ("a.yaml", "- 1\n", "a claims file is a table"),
        ("a.yaml", "text: a b\n", "there are no claims"),
        ("a.yaml", "claims: {}\n", "there are no claims"),
        ("a.yaml", "claims: 3\n", "claims are a table"),
        ("a.yaml", "claims: {loss: 1.0}\nlos: 3\n", "there is no key 'los' here"),
        ("a.yaml", "loss: 1.0\nloss: 2.0\n", "a.yaml:2: loss: this key is given twice"),
        ("a.yaml", LAUGHS, "a claims file has no anchors"),
        ("a.yaml", "loss: &x [*x]\n", "a claims file has no anchors"),
        ("a.yaml", "loss: *x\n", "a claims file has no aliases"),
        ("a.yaml", "loss: !!python/object:os.system x\n", "a claims file has no tags"),
        ("a.yaml", "loss: 1.0\n---\nloss: 2.0\n", "a claims file is one document"),
        ("a.yaml", "loss: " + "[" * 40 + "]" * 40, "nested more than 20 deep"),
        ("a.yaml", "loss: [1.0, ?]\n", "a blank is written _"),
        ("a.yaml", "loss: {3: 1.0}\n", "a claim is a number, or a list of numbers"),
        ("a.yaml", "logits: [[1.0, 2.0], [1.0]]\n", "the rows have different lengths"),
        ("a.yaml", "logits: [1.0, [2.0]]\n", "the rows have different lengths"),
        ("a.yaml", "logits: [1.0, .nan]\n", "a.yaml:1: logits[1]: .nan is not a number"),
        ("a.yaml", "loss: 1.0\nmarks: {loss: -1}\n", "worth less than nothing"),
        ("a.yaml", "loss: 1.0\nmarks: 3\n", "marks are a table"),
        ("a.json", '{"loss": NaN}', "NaN is not a number"),
        ("a.json", '{"loss": 1.0, "loss": 2.0}', "this key is given twice"),
        ("a.csv", "", "there are no claims"),
        ("a.csv", "address,value\n", "there are no claims"),
        ("a.csv", "loss,1.0\nloss,2.0\n", "a.csv:2: loss: this address is given twice"),
        ("a.csv", 'loss,"1.0\n', "this is not CSV"),
        ("a.csv", "loss,x\n", "a.csv:1: loss: 'x' cannot be read"),
        ("a.doc", "loss: 1", "claims are not read from such a file"),
        ("a.npy", "x", "save it with numpy.savez"),
        ("a.pt", "x", "nothing is unpickled"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    write: Write, name: str, text: str, says: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_claims(write(name, text))
    assert says in str(caught.value)
    assert name in str(caught.value)
    assert "model file" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.yaml", "a.csv"])
def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(2**34)
    with pytest.raises(InputError, match="too large"):
        read_claims(path)


@pytest.mark.parametrize("name", ["a.yaml", "a.csv"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"loss: \xff\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_claims(path)


@pytest.mark.parametrize("name", ["nowhere.yaml", "", "a\0b.yaml", "x" * 5000])
def test_a_file_that_is_not_there_is_said_so(name: str) -> None:
    with pytest.raises(InputError):
        read_claims(name)


def test_something_else_is_no_source_of_claims() -> None:
    with pytest.raises(InputError, match="these are not claims"):
        read_claims(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [("list.yaml", "- 1\n- 2\n", "a list of 2"), ("empty.csv", "", "nothing")],
)
def test_what_is_expected_of_a_claims_file_is_claims(
    write: Write, name: str, text: str, found: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_claims(write(name, text))
    assert caught.value.expected == "addresses with their values, such as loss: 1.8313"
    assert caught.value.found == found


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="claims are read from files"):
        read_claims(pipe)

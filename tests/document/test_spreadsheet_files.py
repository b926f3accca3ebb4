"""The file itself: what is in its cells, how it is laid out, and what is refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from recalculating import names_of, save_spreadsheet

import byhand
from byhand.document.media.xlsx import MOST_CELLS, layout
from byhand.editions import make_edition
from byhand.errors import InputError, OutputError
from byhand.files import read_model
from byhand.language import speak
from byhand.model import Model
from byhand.publication import XLSX, Wanted, publish
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights
from oracles.architectures import make_case, plain, wishing

OLD_ENOUGH = {  # every function was there before Excel 2010, and LibreOffice has it
    "COS", "ERF", "EXACT", "EXP", "IF", "INDEX", "LN", "MATCH", "MAX", "MIN", "MMULT", "PI",
    "ROUND", "SIN", "SQRT", "SUM", "SUMIF", "SUMPRODUCT", "SUMSQ", "TANH",
}  # fmt: skip


@pytest.fixture(scope="module")
def journey_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("file") / "journey.xlsx"
    save_spreadsheet(byhand.trace("journey"), path)
    return path


@pytest.fixture
def spanish() -> Iterator[None]:
    speak("es")
    yield
    speak("en")


def formulas_of(path: Path) -> Iterator[str]:
    for sheet in openpyxl.load_workbook(path):
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f":
                    yield str(getattr(cell.value, "text", cell.value))


def text_of(path: Path) -> str:
    return "\n".join(
        str(cell.value)
        for sheet in openpyxl.load_workbook(path)
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    )


# ------------------------------------------------------------------ cells


def wide_model() -> Model:
    """Eight dimensions, float32 weights: dot products are too long to be written out."""
    wishes = {
        "layers": 1,
        "d_model": 8,
        "vocab": 3,
        "length": 3,
        "activation": "gelu",
        "tied": True,
    }
    case = make_case(wishing(wishes, plain), seed=5, largest=8)
    weights = {
        name: Tensor(name, tensor.data.astype(np.float32)) for name, tensor in case.weights.items()
    }
    return Model(case.spec, Weights(weights), Vocabulary(("a", "A", "b")), text="a b A")


def test_only_functions_older_than_excel_2010_are_used(journey_file: Path, tmp_path: Path) -> None:
    save_spreadsheet(byhand.trace(wide_model()), tmp_path / "wide.xlsx")
    used = set()
    for path in (journey_file, tmp_path / "wide.xlsx"):
        for text in formulas_of(path):
            used |= set(re.findall(r"([A-Za-z_.0-9]+)\(", text))
    assert used <= OLD_ENOUGH
    assert used >= {"SUMPRODUCT", "MMULT", "MATCH", "EXACT", "INDEX", "EXP", "LN", "ERF"}


def test_no_number_of_the_pass_is_typed_in(journey_file: Path) -> None:
    book = openpyxl.load_workbook(journey_file)
    names = names_of(journey_file)
    for step in byhand.trace("journey").plan:
        sheet, rows = names[step.address]
        for row in rows:
            for at in row:
                cell = book[sheet][at]
                assert cell.value is None or cell.data_type == "f", f"{step.address} {at}"


def test_floats_keep_all_their_digits(tmp_path: Path) -> None:
    model = wide_model()
    save_spreadsheet(byhand.trace(model), tmp_path / "wide.xlsx")
    sheet, rows = names_of(tmp_path / "wide.xlsx")["now.embed.token"]
    shown = openpyxl.load_workbook(tmp_path / "wide.xlsx")[sheet]
    found = [[shown[at].value for at in row] for row in rows]
    assert np.array_equal(found, model.weights["embed.token"].data.astype(np.float64))


def test_weights_that_are_no_decimals_are_formulas(tmp_path: Path) -> None:
    (tmp_path / "roots.yaml").write_text(
        "vocabulary: [a, b]\ntext: a b\nmodel: {d_model: 2, layers: 0}\n"
        "weights:\n  embed.token: [[1/3, sqrt(2)/2], [0.2, -1]]\n"
    )
    path = tmp_path / "roots.xlsx"
    save_spreadsheet(byhand.trace(read_model(tmp_path / "roots.yaml")), path)
    sheet, rows = names_of(path)["now.embed.token"]
    shown = openpyxl.load_workbook(path)[sheet]
    assert [[shown[at].value for at in row] for row in rows] == [
        ["=1/3", "=SQRT(2)/2"],
        [0.2, -1],
    ]


# ------------------------------------------------------------------ layout


def test_there_is_a_sheet_for_each_stage_with_frozen_headers(journey_file: Path) -> None:
    book = openpyxl.load_workbook(journey_file)
    assert book.sheetnames == [
        "How to read this", "Text", "Embedding", "Attention 0", "MLP 0", "Next token",
        "Backward", "Step",
    ]  # fmt: skip
    for name in book.sheetnames[1:]:
        assert book[name].freeze_panes == "C4"


def test_every_step_and_weight_has_its_address_as_label_and_as_name(journey_file: Path) -> None:
    said, names = text_of(journey_file), names_of(journey_file)
    trace = byhand.trace("journey")
    wanted = {*trace.plan.known, *(f"weight.{name}" for name in trace.model.weights)}
    assert wanted <= set(names)
    assert all(re.search(rf"(^|= ){re.escape(name)}( |$)", said, re.M) for name in wanted)


def test_tables_do_not_overlap(journey_file: Path) -> None:
    trace = byhand.trace("journey")
    own = {step.address for step in trace.plan} | {f"weight.{n}" for n in trace.model.weights}
    own |= {name for name in names_of(journey_file) if re.match(r"now\.|update\.", name)}
    cells = [
        (sheet, at)
        for name, (sheet, rows) in names_of(journey_file).items()
        if name in own
        for row in rows
        for at in row
    ]
    assert len(cells) == len(set(cells))


def test_registers_and_boundaries_are_noted(tmp_path: Path) -> None:
    save_spreadsheet(byhand.trace("tiny"), tmp_path / "tiny.xlsx")
    said = text_of(tmp_path / "tiny.xlsx")
    assert "◆ position 1 (b) leaves the exact numbers here: powers of e do not cancel" in said
    assert "◇ position 1 (b) is back in the exact numbers here: the names cancel" in said
    assert re.search(r"^block\.0\.attn\.scores   .*   exact$", said, re.M)
    assert re.search(r"^block\.0\.attn\.weights   .*   named$", said, re.M)
    assert "0/0 counts as 0 here" in said


def test_a_tied_head_says_where_its_weight_stands(tmp_path: Path) -> None:
    save_spreadsheet(byhand.trace("tiny"), tmp_path / "tiny.xlsx")
    assert "weight.embed.token stands on the sheet Embedding" in text_of(tmp_path / "tiny.xlsx")


@pytest.mark.usefixtures("spanish")
def test_it_is_written_in_the_language_spoken(tmp_path: Path) -> None:
    save_spreadsheet(byhand.trace("journey"), tmp_path / "journey.xlsx")
    book = openpyxl.load_workbook(tmp_path / "journey.xlsx")
    assert book.sheetnames[:6] == [
        "Cómo leer esto", "Texto", "Embedding", "Atención 0", "MLP 0", "Siguiente token",
    ]  # fmt: skip
    assert any("'Atención 0'!" in text for text in formulas_of(tmp_path / "journey.xlsx"))


# ------------------------------------------------------------------ the file on the disk


def test_the_same_pass_is_the_same_file(journey_file: Path, tmp_path: Path) -> None:
    save_spreadsheet(byhand.trace("journey"), tmp_path / "again.xlsx")
    assert (tmp_path / "again.xlsx").read_bytes() == journey_file.read_bytes()


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / XLSX).mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        publish(make_edition("tiny"), tmp_path, Wanted(xlsx=True))
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".html"] == [XLSX]
    assert not any((tmp_path / XLSX).iterdir())


# ------------------------------------------------------------------ what is refused


def test_a_model_that_is_too_large_is_refused_with_its_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(layout, "MOST_CELLS", 400)
    with pytest.raises(InputError) as caught:
        save_spreadsheet(byhand.trace("journey"), tmp_path / "journey.xlsx")
    assert str(caught.value) == (
        "journey: this is too large for a spreadsheet\n"
        "  expected: at most 400 numbers\n"
        "  found: 586 numbers: 160 weights and 426 of the working\n"
        "  hint: take a smaller model or a shorter text; byhand trace --out has no such limit"
    )
    assert not any(tmp_path.iterdir())
    assert MOST_CELLS == 150_000


def test_a_sheet_that_is_too_wide_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(layout, "MOST_COLUMNS", 8)
    with pytest.raises(InputError, match="at most 1,048,576 rows and 8 columns"):
        save_spreadsheet(byhand.trace("journey"), tmp_path / "journey.xlsx")


def test_an_unknown_weight_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"weight\.block\.0\.attn\.qkv: a spreadsheet works out"):
        save_spreadsheet(byhand.trace("abc-walkthrough"), tmp_path / "abc.xlsx")


def test_without_xlsxwriter_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(InputError, match=r"pip install 'byhand\[xlsx\]'"):
        save_spreadsheet(byhand.trace("tiny"), tmp_path / "tiny.xlsx")

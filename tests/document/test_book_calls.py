"""`byhand.book`: the whole book in one call from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import byhand
from byhand.document.compose.worksheet.sheet import COUNTS, SHAPES, VALUES, Questioning
from byhand.errors import InputError, UsageError
from byhand.language import spoken


def test_a_book_is_written_and_the_page_to_open_comes_first(tmp_path: Path) -> None:
    paths = byhand.book("tiny", "a b", out=tmp_path / "book")
    assert paths[0] == tmp_path / "book" / "index.html"
    assert {path.name for path in paths} == {p.name for p in (tmp_path / "book").iterdir()}
    assert len(paths) == 12


def test_a_model_that_is_open_target_and_language_reach_the_book(tmp_path: Path) -> None:
    before = spoken()
    byhand.book(byhand.open_model("tiny"), "a b", out=str(tmp_path), target="c", language="es")
    page = (tmp_path / "next.html").read_text("utf-8")
    assert '<html lang="es"' in page
    assert 'id="next-loss"' in page
    assert spoken() == before


def test_claims_may_be_one_file_or_none(tmp_path: Path) -> None:
    claims = tmp_path / "homework.yaml"
    claims.write_text("claims:\n  block.0.attn.weights[0,1]: [0.269, 0.713]\n")
    byhand.book("tiny", out=tmp_path / "one", claims=claims)
    assert "homework.yaml:2" in (tmp_path / "one" / "attention.html").read_text("utf-8")
    byhand.book("journey", out=tmp_path / "none", claims=())
    assert "does not follow" not in (tmp_path / "none" / "attention.html").read_text("utf-8")


def test_a_spreadsheet_and_a_worksheet_lie_beside_the_pages(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    paths = byhand.book(
        "tiny", out=tmp_path, xlsx=True, worksheet=True, ask="counts", blanks=3, seed=5
    )
    names = {path.name for path in paths}
    assert {"book.xlsx", "worksheet.html", "worksheet-key.yaml"} <= names
    template = (tmp_path / "worksheet.yaml").read_text("utf-8")
    assert template.partition("claims:")[2].count("count.") == 3
    assert "block.0" not in template.partition("claims:")[2].replace("count.block.0", "")


def test_the_same_questions_come_with_the_same_seed(tmp_path: Path) -> None:
    texts = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        byhand.book("tiny", out=tmp_path / folder, worksheet=True, blanks=8, seed=seed)
        texts.append((tmp_path / folder / "worksheet.yaml").read_text("utf-8"))
    assert texts[0] == texts[1] != texts[2]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"worksheet": True, "blanks": 0}, "a worksheet needs blanks"),
        ({"worksheet": True, "ask": ["colours"]}, "a worksheet cannot ask for 'colours'"),
        ({"worksheet": True, "ask": []}, "a worksheet cannot ask for ''"),
        ({"blanks": 3}, "blanks needs worksheet"),
        ({"ask": "values"}, "ask needs worksheet"),
        ({"seed": 3}, "seed needs worksheet"),
    ],
)
def test_bad_questions_are_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        byhand.book("tiny", out=tmp_path / "book", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "book").exists()


def test_what_turns_out_to_be_impossible_leaves_no_page_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a weight is unknown"):
        byhand.book("abc-walkthrough", out=tmp_path / "book", xlsx=True)
    with pytest.raises(InputError, match="the divisor of row"):
        byhand.book("journey", out=tmp_path / "book", worksheet=True, decimals=0)
    assert not (tmp_path / "book").exists()


def test_the_usual_questions_are_of_every_kind() -> None:
    assert tuple(Questioning.asked().which) == (VALUES, SHAPES, COUNTS)
    assert tuple(Questioning.asked(which=("counts", "counts")).which) == (COUNTS,)

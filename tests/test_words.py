"""The words of the product are those of its style sheet, docs/words.md."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from byhand.document.words import formula_text
from byhand.language import amount, later, speaking

ROOT = Path(__file__).parent.parent


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words", ROOT / "tools" / "words.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words = load()


def test_every_message_and_page_keeps_to_the_style_sheet() -> None:
    assert list(words.complaints(words.read(), words.pages())) == []


@pytest.mark.parametrize(
    ("english", "spanish", "problem"),
    [
        ("word " * 26, "x", "a sentence of 26 words"),
        ("x", "palabra " * 26, "a sentence of 26 words"),
        ("44 numbers are others now", "x", "say changed"),
        ("The stream is compared with every word.", "x", "say residual stream"),
        ("x", "la corriente se lee aquí", "say flujo residual"),
        ("x", "Cada fila reparte un entero.", "say suma 1"),
        ("x", "multiplica por la cabecera", "say cabeza de salida"),
        ("x", "está mal; busque el error", "say tú"),
        ("{n} line(s)", "x", "a singular and a plural"),
        ("there are 1 lines", "x", "the noun in the singular"),
        ("{count} more apples", "x", "there is no '1 more apple'"),
        ("ln 6 = 1.7918", "x", "= before a rounded number"),
        ("two  spaces", "x", "two spaces"),
    ],
)
def test_what_the_style_sheet_forbids_is_found(english: str, spanish: str, problem: str) -> None:
    found = list(words.complaints({english: spanish}, ()))
    assert len(found) == 1
    assert problem in found[0]


def test_a_long_sentence_of_the_first_page_is_found_across_its_lines() -> None:
    page = "# A title\n\nShort. " + "word " * 14 + "\n" + "word " * 14 + "\n\n```\n" + "x " * 40
    assert [found[:25] for found in words.too_long(page)] == ["a sentence of 28 words: w"]


def test_sentences_end_at_full_stops_and_a_header_of_a_file_may_be_a_cabecera() -> None:
    assert [words.length(one) for one in words.sentences("One two. Three (a; b)!")] == [2, 3]
    assert not list(words.complaints({"its header is too long": "su cabecera es larga"}, ()))


def test_at_least_150_sentences_are_kept_before_and_after() -> None:
    kept = json.loads((ROOT / "docs" / "words.json").read_text("utf-8"))
    assert len(kept["en"]) >= 150
    assert len(kept["es"]) >= 150
    today = set(words.read())
    for before, after in kept["en"]:
        assert before != after
        assert before not in today


@pytest.mark.parametrize(
    ("count", "english", "spanish"),
    [(1, "1 more row", "1 fila más"), (2, "2 more rows", "2 filas más")],
)
def test_counts_agree_with_their_nouns(count: int, english: str, spanish: str) -> None:
    forms = (later("1 more row"), later("{count} more rows"))
    assert amount(count, *forms) == english
    with speaking("es"):
        assert amount(count, *forms) == spanish


def test_a_mean_says_what_it_computes() -> None:
    assert formula_text("mean(x)", "block.0.attn.norm.mean") == "(1/d)·Σ x_i"
    assert formula_text("mean(x²)", "block.0.attn.q_norm.mean_square") == "(1/n)·Σ x_i²"
    assert formula_text("mean(losses)", "mean_loss") == "(1/n)·Σ losses_i"

"""The properties on the page of property files can be read, and mean what it says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from property_samples import machine

from byhand.errors import InputError
from byhand.proving.properties import read_property
from byhand.proving.reading.answers import FORMS
from byhand.proving.reading.built_in import NAMES
from byhand.proving.reading.callables import FUNCTIONS
from byhand.proving.reading.claim_reading import KINDS
from byhand.proving.reading.known_weights import WORDS
from byhand.proving.reading.property_files import KEYS
from byhand.proving.reading.texts import KEYS as TEXT_KEYS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "property-files.md").read_text("utf-8")
COMPLETE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
LETTERS = machine([*"0123456789", "A", "B", "C", "+", "=", "(", ")", "|"])
BRACKETS = machine(["(", ")", "yes", "no"])
ADDER = machine([*"0123456789+="])


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first cell is this, without its heading."""
    start = PAGE.index(f"| {heading} |")
    lines = PAGE[start:].split("\n\n")[0].splitlines()[2:]
    cells = [re.split(r"(?<!\\) \| | \|$|^\| ", line)[1:-1] for line in lines]
    return [[cell.replace(r" \| ", " | ").strip() for cell in row] for row in cells]


def code(cell: str) -> str:
    found = re.match(r"`(.*?)`", cell)
    assert found, cell
    return found[1]


@pytest.mark.parametrize("text", COMPLETE, ids=range(len(COMPLETE)))
def test_every_property_on_the_page_can_be_read(text: str, tmp_path: Path) -> None:
    for name in ("clock", "thermometer"):
        shutil.copy(DOCS / "examples" / f"{name}.yaml", tmp_path)
    program = re.search(r"```py\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    assert program
    (tmp_path / program[1]).write_text(program[2])
    (tmp_path / "page.yaml").write_text(text)
    model = None if "model:" in text else BRACKETS if "(" in text.split("claim")[0] else ADDER
    assert read_property(tmp_path / "page.yaml", model).goals


def test_there_are_several_of_them() -> None:
    assert len(COMPLETE) == 5


@pytest.mark.parametrize("row", rows("pattern"), ids=lambda row: row[0])
def test_a_pattern_has_as_many_texts_as_the_page_says(row: list[str]) -> None:
    pattern, texts, _meaning = row
    found = read_property({"texts": code(pattern), "claim": "constant"}, LETTERS)
    regions = [goal.shape.whole for goal in found.goals]
    assert sum(region.texts or 0 for region in regions if region) == eval(texts.replace("^", "**"))


@pytest.mark.parametrize("row", rows("under `where`"), ids=lambda row: row[0])
def test_every_line_of_where_can_be_read(row: list[str]) -> None:
    written = code(row[0])
    where: dict[str, Any] = yaml.load(written, yaml.BaseLoader)
    pattern = " ".join(f"{{{name.split('..')[0].split(',')[0]}}}" for name in where)
    if ".." in written.split(":")[0]:
        pattern = "{a0} … {a9}" if "a0" in written else "{b0} … {b9}"
    if written.startswith("a, b"):
        pattern = "{a} {b}"
    if written.startswith("b"):
        where |= {"a0..a9": "0..9", "s0..s9": "0..18"} if "s" in written else {"a": "0..9"}
    texts = {"pattern": pattern, "where": where, "groups": {"letter": ["A", "B"]}}
    assert read_property({"texts": texts, "claim": "constant"}, LETTERS).goals


@pytest.mark.parametrize("row", rows("claim"), ids=lambda row: row[0])
def test_every_claim_of_the_page_can_be_read(row: list[str], tmp_path: Path) -> None:
    written = code(row[0])
    LETTERS.save(tmp_path / "other.yaml")
    shown = f"{{{written}}}" if ":" in written and not written.startswith("{") else written
    texts = "" if "table" in written else 'texts: "(?<a>[0-2]) (?<b>[0-2]) +"\n'
    moved = "embeddings: {within: 0.01}\n"
    claim = written if not shown.startswith("{") or written.startswith("{") else f"\n  {written}"
    (tmp_path / "page.yaml").write_text(f"{texts}{moved}claim: {claim}\n")
    assert read_property(tmp_path / "page.yaml", LETTERS).goals


@pytest.mark.parametrize("row", rows("weights"), ids=lambda row: row[0])
def test_every_range_of_weights_can_be_read(row: list[str]) -> None:
    weights = yaml.load(code(row[0]), yaml.BaseLoader)
    assert read_property({"texts": "A", "claim": "unmoved", "weights": weights}, LETTERS).goals


def test_every_key_function_and_word_is_on_the_page() -> None:
    for name in (*KEYS, *TEXT_KEYS, *KINDS, *WORDS, *NAMES, *FORMS, "at least", "at most"):
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", PAGE), name
    for name in FUNCTIONS:
        assert re.search(rf"\b{name}\b", PAGE), name


def test_the_mistake_on_the_page_is_the_real_one(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    shutil.copy(DOCS / "examples" / "clock.yaml", tmp_path)
    path = tmp_path / "clock.property.yaml"
    path.write_text(COMPLETE[0].replace("[0-6]", "[0-7]"))
    with pytest.raises(InputError) as caught:
        read_property(path)
    assert str(caught.value).replace(f"{tmp_path}/", "") == shown.rstrip()

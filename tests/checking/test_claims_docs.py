"""What docs/claims.md says about claims is what is read."""

from __future__ import annotations

import re
from fractions import Fraction
from math import e
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import byhand
from byhand.capturing import capture
from byhand.checking.claims import ClaimedText
from byhand.checking.matches import match
from byhand.checking.readers import READERS, read_claims
from byhand.checking.readers.arrays import FLOATS, MASKS, PADDING, POSITIONS, SEGMENTS, TOKENS
from byhand.checking.readers.handwriting import HEADING, entry_of
from byhand.files.tree import Scalar
from byhand.model import Model

PAGE = (Path(__file__).parents[2] / "docs" / "claims.md").read_text("utf-8")


def block(language: str, place: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[place]  # type: ignore[no-any-return]


def table(title: str) -> list[list[str]]:
    """The cells of the table whose first title this is."""
    lines = PAGE.split(f"| {title} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def matched(path: Path, text: str, model: Model) -> ClaimedText:
    path.write_text(text, "utf-8")
    (claimed,) = match(read_claims(path), model)
    assert not claimed.unmatched
    return claimed


def test_the_sheet_on_the_page_is_read_whole(journey: Model, tmp_path: Path) -> None:
    found = matched(tmp_path / "ana.yaml", block("yaml"), journey)
    assert (found.label, found.target, len(found.claims)) == ("Ana", 4, 6)


def test_the_manifest_on_the_page_is_read_whole(journey: Model, tmp_path: Path) -> None:
    (tmp_path / "norm.bin").write_bytes(bytes(64))
    (tmp_path / "dump.bin").write_bytes(bytes(160))
    (tmp_path / "dump.yaml").write_text(block("yaml", 1), "utf-8")
    sheet = read_claims(tmp_path / "dump.yaml")
    assert (sheet.text, [entry.format for entry in sheet.entries]) == (
        journey.text, ["float32", "bfloat16"],
    )  # fmt: skip


def test_the_map_on_the_page_is_the_one_of_the_examples() -> None:
    examples = Path(__file__).parents[2] / "docs" / "examples"
    assert block("yaml", 2) in (examples / "own-names.yaml").read_text("utf-8")
    marking = byhand.check("minigpt", examples / "own-names.npz", names=examples / "own-names.yaml")
    assert marking.passed
    assert len(list(marking)) == 15


def test_the_rows_on_the_page_are_read_whole(journey: Model, tmp_path: Path) -> None:
    found = matched(tmp_path / "ana.csv", block("csv"), journey)
    assert (found.label, len(found.claims)) == ("Ana", 3)


NUMBERS = [(row[0].split("`")[1], row[1]) for row in table("written")]


@pytest.mark.parametrize(("written", "meant"), NUMBERS)
def test_every_number_on_the_page_is_meant_as_it_says(written: str, meant: str) -> None:
    found = entry_of("loss", Scalar("page", 1, "", written))
    value, slack = float(found.values), float(np.asarray(found.slack))
    if meant.startswith("nothing"):
        assert found.claimed is not None or value == -np.inf
        return
    low, _to, high = meant.partition(" to ")
    ends = [e / (1 + e) if "e/" in end else float(Fraction(end)) for end in (low, high or low)]
    assert value - slack == pytest.approx(ends[0], rel=1e-9)
    assert value + slack == pytest.approx(ends[1], rel=1e-9)


def test_there_are_many_numbers_on_the_page() -> None:
    assert len(NUMBERS) == 13


@pytest.mark.parametrize("address", [row[0].strip("`") for row in table("address")])
def test_every_address_on_the_page_is_known(journey: Model, tmp_path: Path, address: str) -> None:
    assert len(matched(tmp_path / "one.yaml", f"{address}: _\n", journey).claims) == 1


def test_every_key_and_ending_is_on_the_page() -> None:
    words = [
        *HEADING,
        *MASKS,
        *PADDING,
        *POSITIONS[:1],
        *SEGMENTS,
        *FLOATS.values(),
        *TOKENS[:2],
        "masked",
    ]
    words += [ending.strip(".") for ending in READERS]
    words.remove("yml")
    assert [word for word in words if not re.search(rf"\b{word}\b", PAGE, re.IGNORECASE)] == []


def test_the_capture_on_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = transformers.GPT2Config(
        n_embd=8, n_layer=1, n_head=2, n_positions=8, vocab_size=11, bos_token_id=0, eos_token_id=0
    )
    names: dict[str, Any] = {
        "model": transformers.GPT2LMHeadModel(config),
        "input_ids": torch.tensor([[1, 2, 3]]),
        "mask": torch.ones(1, 3, dtype=torch.int64),
    }
    source = block("py").replace("byhand.capture", "capture_").replace("import byhand", "")
    exec(source, {**names, "capture_": capture})
    assert read_claims("dump.safetensors").precision == "transformers:float32"

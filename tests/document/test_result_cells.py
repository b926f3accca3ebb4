"""Markings, comparisons, generations and inventories below the cell of a notebook."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import byhand
import marking_samples as samples
from byhand.checking.verdicts import Verdict
from marking_samples import marked, marking_of


def compared() -> Any:
    floats, proven = (byhand.trace("tiny", numbers=each) for each in ("float32", "digits 12"))
    return byhand.compare(floats, proven)


def generated() -> Any:
    generation = byhand.generate("tiny", "c", count=2)
    assert len(list(generation)) == 2
    return generation


CELLS = {
    "a marking": (
        samples.faulty,
        (
            "✗ first error: block.3.mlp.act — not rounding (412× the bound)",
            "It follows if GELU is erf; the model says tanh",
            "~ not from above",
        ),
    ),
    "a long marking": (samples.large, ("lines follow, ", "103×")),
    "two texts": (samples.batch, ("Text 2 of 2 · ",)),
    "a comparison": (compared, ("2 of 2 tokens are the true ones", "Block 0 · MLP", "0.64")),
    "a generation": (generated, ("c a a", "1/3", "a, b and c tie; the lowest id is taken, proven")),
    "an inventory": (
        lambda: byhand.count("minigpt"),
        ("2·d·d_ff = 2·64·256 = 32,768", "103,680", "The head is tied"),
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_result_shows_itself_in_a_notebook(name: str) -> None:
    make, told = CELLS[name]
    cell = make()._repr_html_()
    text = re.sub(r"<style>.*?</style>|<[^>]+>", "", cell, flags=re.S)
    for piece in told:
        assert piece in text
    assert cell.count('<div class="byhand"') == 1
    assert not re.search(r"<script| id=", cell)


def test_what_claims_say_is_escaped_in_a_cell() -> None:
    evil = "<script>alert(1)</script>"
    line = replace(
        marked("logits", Verdict.ERROR, 3.0),
        suspects=(replace(samples.GELU, sentence=evil, change=evil),),
    )
    assert evil not in replace(marking_of(line, text=evil), model=evil)._repr_html_()


@pytest.mark.parametrize("name", CELLS)
def test_a_result_prints_itself_in_a_line(name: str) -> None:
    make, _told = CELLS[name]
    assert re.fullmatch(r"<\w+ of .{1,200}>", repr(make()))

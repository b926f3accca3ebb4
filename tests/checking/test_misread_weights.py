"""Quantised weights that a port unpacked wrongly: check names the mistake."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.checking.differences.matrix_packing import slips_in_words
from byhand.checking.verdicts import Marked, Verdict
from byhand.model import Model
from byhand.weights import Tensor, Weights
from oracles.quantised_folders import FORMATS, Matrix, Rows, quantised_llama

Q, TEXT = "block.0.attn.q", "1 5 2 7 0 3 6 4 1 1 7 2"


@cache
def folder(kind: str) -> tuple[Model, Matrix]:
    path, matrices = quantised_llama(Path(mkdtemp()), kind)
    return byhand.open_model(path), matrices["model.layers.0.self_attn.q_proj"]


def dumped(model: Model, rows: Rows) -> dict[str, Any]:
    """What a port in float32 dumps that takes the matrix of queries for something else."""
    matrix = np.array([[float(x) for x in row] for row in rows])
    other = replace(model, weights=Weights({**model.weights, Q: Tensor(Q, matrix)}))
    names = ["block.0.attn.norm.out", Q]
    trace = byhand.trace(other, TEXT, only=names, numbers="float32")
    return {name: np.asarray(trace[name]) for name in names}


def marked(kind: str, rows: Rows) -> Marked:
    model, _matrix = folder(kind)
    found = byhand.check(model, dumped(model, rows), text=TEXT, precision="float32")
    return next(line for line in found if line.address == Q)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_right_reading_raises_no_alarm(kind: str) -> None:
    assert marked(kind, folder(kind)[1].rows).verdict is Verdict.RIGHT


KINDS = [kind for kind in FORMATS if kind != "gptq_v2"]
MISTAKES = [(kind, told) for kind in KINDS for told in folder(kind)[1].misread]


@pytest.mark.parametrize(("kind", "told"), MISTAKES)
def test_a_layout_that_was_misread_is_named(kind: str, told: str) -> None:
    line = marked(kind, folder(kind)[1].misread[told])
    assert line.verdict is Verdict.ERROR
    assert line.suspects[0].kind == "weight-packing"
    assert f"it follows if {Q}, which is" in line.suspects[0].sentence
    assert told in line.suspects[0].sentence
    assert line.suspects[0].evidence.fitted == 0


def test_every_mistake_has_words() -> None:
    for kind in FORMATS:
        misread = folder(kind)[0].weights[Q].misread
        assert misread is not None
        assert {name for name, _data in misread()} <= set(slips_in_words())

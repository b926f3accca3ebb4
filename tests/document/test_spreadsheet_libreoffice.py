"""LibreOffice, where it is installed, recalculates saved spreadsheets: the long test.

It starts from wrong results beside every formula, and works each formula out itself.
"""

from __future__ import annotations

import os
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from recalculating import (
    by_libreoffice,
    change,
    paste,
    save_spreadsheet,
    type_token,
    without_results,
)
from test_spreadsheet import assert_says, float64, saved, trace_of, with_weight

import byhand
from byhand.document.media.xlsx import formulas
from byhand.evaluate import prepare
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.floats import Floats
from oracles.architectures import spread

pytestmark = [
    pytest.mark.skipif(not os.environ.get("BYHAND_LONG"), reason="long: set BYHAND_LONG=1"),
    pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed"),
]


@pytest.mark.parametrize(
    ("name", "numbers"), [("tiny", 90), ("journey", 270), ("abc", 130), ("minigpt", 20_000)]
)
def test_libreoffice_recalculates_every_number(name: str, numbers: int, tmp_path: Path) -> None:
    trace = byhand.trace(name)
    found = by_libreoffice(saved(trace, tmp_path), tmp_path)
    assert assert_says(found, float64(trace.model)) > numbers


def test_libreoffice_follows_a_changed_weight_and_token(journey: Model, tmp_path: Path) -> None:
    path = tmp_path / "journey.xlsx"
    save_spreadsheet(byhand.trace("journey"), path)
    change(path, "weight.block.0.mlp.out", 2, 0, 4)
    type_token(path, 3, "dog")
    without_results(path)
    other = with_weight(journey, "block.0.mlp.out", (2, 0), Fraction(4))
    trace = prepare(other, "the cat sat dog", Floats("float64"), target="mat").work()
    assert assert_says(by_libreoffice(path, tmp_path), trace) > 270


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_a_class_trains_in_libreoffice(name: str, tmp_path: Path) -> None:
    model = open_model(name)
    path = saved(byhand.trace(name), tmp_path)
    training = byhand.step(name, steps=5, numbers="float64")
    loss = "mean_loss" if model.target is None else "loss"
    losses = []
    for _step in training.losses:
        found = by_libreoffice(path, tmp_path)
        losses.append(found.table(loss)[0][0])
        paste(path, found, "new_weights", "old_weights")
    assert losses == pytest.approx([float(each) for each in training.losses], rel=1e-9)


def test_without_recalculation_the_wrong_results_would_be_seen(tmp_path: Path) -> None:
    """The test above can fail: told to trust what stands in the file, LibreOffice shows that."""
    path = saved(byhand.trace("tiny"), tmp_path)
    found = by_libreoffice(path, tmp_path, recalculate=False)
    assert found.table("logits")[0][0] == -987654.5


@pytest.mark.parametrize("seed", range(4))
def test_libreoffice_recalculates_random_models(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, case in enumerate(spread(15, seed=seed)):
        monkeypatch.setattr(formulas, "WRITTEN_OUT", (4, 1)[number % 2])
        trace = trace_of(case)
        found = by_libreoffice(saved(trace, tmp_path), tmp_path)
        assert assert_says(found, trace) > 4, case

"""Kept bounds are those that were worked out; a foreign, damaged or old file is not used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byhand import bounds_file
from byhand.bounds_file import IgnoredBounds, kept_bounds
from byhand.numbers.enclosed.limbs import kept_bounds as bounds
from byhand.numbers.enclosed.limbs import spectral
from byhand.numbers.enclosed.limbs.weights import Weight, read_weight

DATA = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.delenv("BYHAND_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr(bounds_file, "WORTH", 0.0)
    made = tmp_path / "checkpoint"
    made.mkdir()
    return made


def weight(data: Any = DATA) -> Weight:
    return read_weight(data)


def norms(made: Weight) -> list[float]:
    return [made.norm("in_out"), made.norm("in_out", slice(0, 7)), made.largest]


def norms_with(folder: Path) -> tuple[int, list[float]]:
    """How many bounds were kept, and the norms."""
    with kept_bounds(folder) as kept:
        assert kept is not None
        return len(kept.entries), norms(weight())


def test_what_was_certified_once_is_found_the_next_time(folder: Path, monkeypatch: Any) -> None:
    with kept_bounds(folder):
        first = norms(weight())
        columns = weight().column_norms("in_out")
    assert (folder / ".byhand-bounds").exists()
    monkeypatch.setattr(spectral, "largest_eigenvalue", None)  # nothing is certified again
    with kept_bounds(folder) as kept:
        assert kept is not None
        assert not kept.changed
        assert norms(weight()) == first == norms(weight(DATA.copy()))
        assert (weight().column_norms("in_out") == columns).all()
        assert not kept.changed


def test_other_weights_and_other_gains_have_bounds_of_their_own(folder: Path) -> None:
    gain = weight(np.full(20, 3.0, np.float32))
    with kept_bounds(folder):
        plain, scaled = weight().norm("in_out"), weight().norm("in_out", gain=gain)
    with kept_bounds(folder):
        assert weight(2 * DATA).norm("in_out") == pytest.approx(2 * plain)
        assert weight().norm("in_out", gain=weight(np.full(20, 3.0, np.float32))) == scaled
        assert scaled == pytest.approx(3 * plain)
        wide = weight(DATA.astype(np.float64))
        assert bounds.name_of(wide, "largest") != bounds.name_of(weight(), "largest")


@pytest.mark.parametrize("harm", ["foreign", "damaged", "cut"])
def test_a_file_that_was_not_written_here_is_ignored_with_a_word(folder: Path, harm: str) -> None:
    with kept_bounds(folder):
        right = norms(weight())
    path = folder / ".byhand-bounds"
    data = path.read_bytes()
    if harm == "foreign":
        (bounds_file.user_folder() / "secret").write_bytes(b"another user's secret, 32 bytes.")
    elif harm == "damaged":
        path.write_bytes(data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    else:
        path.write_bytes(data[:30])
    with pytest.warns(IgnoredBounds, match="worked out again"):
        assert norms_with(folder) == (0, right)


def test_bounds_that_other_code_made_are_worked_out_again(folder: Path, monkeypatch: Any) -> None:
    with kept_bounds(folder):
        norms(weight())
    monkeypatch.setattr(bounds, "code_version", lambda: "another")
    with kept_bounds(folder) as kept:
        assert kept is not None
        assert not kept.entries


def test_nothing_is_kept_where_it_is_turned_off_or_the_model_is_no_checkpoint(
    folder: Path, monkeypatch: Any
) -> None:
    with kept_bounds("") as kept:
        assert kept is None
    monkeypatch.setenv("BYHAND_CACHE", "off")
    with kept_bounds(folder) as kept:
        assert kept is None
        norms(weight())
    assert list(folder.iterdir()) == []


def test_a_folder_can_be_named_for_all_of_it(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("BYHAND_CACHE", str(folder.parent / "elsewhere"))
    with kept_bounds(folder):
        norms(weight())
    assert list(folder.iterdir()) == []
    assert len(list((folder.parent / "elsewhere").iterdir())) == 1


def test_numbers_can_be_noted_beside_bounds(folder: Path) -> None:
    with kept_bounds(folder) as kept:
        assert kept is not None
        assert kept.noted("bits 6") is None
        kept.note("bits 6", 104)
    with kept_bounds(folder) as kept:
        assert kept is not None
        assert kept.noted("bits 6") == 104

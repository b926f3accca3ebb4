"""Kept bounds are those that were worked out; a foreign, damaged or old file is not used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

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


# ------------------------------------------------------------------ harm


def _sealed(folder: Path) -> tuple[Path, bytes, list[float]]:
    """The file of a checkpoint, what is in it, and the bounds."""
    with kept_bounds(folder):
        right = norms(weight())
    path = folder / ".byhand-bounds"
    return path, path.read_bytes(), right


@pytest.mark.filterwarnings("ignore::byhand.bounds_file.IgnoredBounds")
def test_no_byte_can_be_changed_and_no_end_cut_off(folder: Path) -> None:
    path, data, right = _sealed(folder)
    random = np.random.default_rng(1)
    places = [0, 15, 16, 47, 48, len(data) - 1, *random.integers(0, len(data), 30).tolist()]
    for place in places:
        harmed = [data[:place] + bytes([data[place] ^ 1 << int(random.integers(8))])
                  + data[place + 1 :], data[:place]]  # fmt: skip
        for one in harmed:
            path.write_bytes(one)
            assert norms_with(folder) == (0, right)
            path.write_bytes(data)
    assert norms_with(folder)[0] > 0


@pytest.mark.filterwarnings("ignore::byhand.bounds_file.IgnoredBounds")
@pytest.mark.parametrize("secret", [b"", b"short", b"0" * 31])
def test_a_secret_that_everybody_can_guess_seals_nothing(folder: Path, secret: bytes) -> None:
    path, data, right = _sealed(folder)
    rest = data[48:]
    mine = bounds_file.user_folder() / "secret"
    for made in (secret, b""):
        path.write_bytes(data[:16] + bounds_file._seal(made, rest) + rest)
        mine.write_bytes(secret)
        assert norms_with(folder) == (0, right)


def test_files_may_be_swapped_between_checkpoints_and_weights_replaced(folder: Path) -> None:
    path, data, right = _sealed(folder)
    other = folder.parent / "other"
    other.mkdir()
    with kept_bounds(other):
        norms(weight(3 * DATA))
    (other / ".byhand-bounds").replace(path)
    assert norms_with(folder)[1] == right
    path.write_bytes(data)
    for changed in (2 * DATA, DATA.T.copy(), DATA[::-1].copy(), DATA.astype(np.float64) * 2):
        with kept_bounds(folder):
            found = weight(changed).norm("in_out")
        assert found >= np.linalg.norm(changed.astype(float), 2)
    last = DATA.copy()
    last[-1, -1] = 1e6
    with kept_bounds(folder):
        assert weight(last).norm("in_out") >= 1e6
        assert weight(last).largest == 1e6


def test_a_gain_of_another_sign_or_with_1_added_has_bounds_of_its_own(folder: Path) -> None:
    gain = read_weight(np.full(20, -0.5, np.float32))
    with kept_bounds(folder):
        one, other = (weight().norm("in_out", gain=each) for each in (gain, gain.plus_one))
        assert weight().norm("in_out", gain=read_weight(np.full(20, 8.0, np.float32))) > 10 * one
    with kept_bounds(folder):
        again = read_weight(np.full(20, -0.5, np.float32))
        assert weight().norm("in_out", gain=again.plus_one) == other


def test_bounds_of_a_gpu_are_those_of_its_own_code() -> None:
    names = {path.name for path in bounds.sources()}
    assert {"spectral.py", "metrics.py", "tensor_engine.py", "residues.py"} <= names


def test_those_who_write_at_once_leave_a_whole_file_and_one_secret(folder: Path) -> None:
    def work(number: int) -> None:
        kept = bounds.KeptBounds()
        kept.note("bits", number)
        assert bounds_file.write(kept, bounds_file.places_of(folder)) is not None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    with kept_bounds(folder) as kept:
        assert kept is not None
        assert kept.noted("bits") in range(40)
    left = {path.name for path in bounds_file.user_folder().iterdir()}
    assert left == {"secret"}
    assert {path.name for path in folder.iterdir()} == {".byhand-bounds"}


def test_the_same_bytes_in_another_shape_or_format_are_other_weights(folder: Path) -> None:
    turned = DATA.reshape(30, 20)
    with kept_bounds(folder):
        weight().norm("in_out")
    with kept_bounds(folder):
        assert weight(turned).norm("in_out") == pytest.approx(np.linalg.norm(turned, 2), rel=0.05)
    halves = np.arange(600, dtype=np.uint16).reshape(20, 30)
    formats = halves.view(np.float16), halves.view(bfloat16)
    assert len({bounds.digest_of(one) for one in formats}) == 2

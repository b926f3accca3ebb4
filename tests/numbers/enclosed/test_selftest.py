"""`selftest` holds on this machine, and fails on one that is broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from byhand.numbers.enclosed import selftest
from byhand.numbers.enclosed.limbs import products
from byhand.numbers.enclosed.limbs.engine import NumPyEngine


def failed(checks: Iterator[selftest.Check]) -> set[str]:
    return {check.name for check in checks if not check.passed}


def test_everything_holds_here() -> None:
    assert not failed(selftest.checks())


def test_everything_holds_on_torch() -> None:
    pytest.importorskip("torch")
    found = list(selftest.checks("cpu"))
    assert not failed(iter(found))
    assert sum(check.detail.startswith("torch, cpu:") for check in found) == len(found) / 2


def test_every_check_says_what_it_saw() -> None:
    for check in selftest.checks():
        assert check.detail.startswith("numpy: ")
        assert len(check.detail) > len("numpy: ")


def test_a_broken_rint_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumPyEngine, "rint", lambda self, x, out=None: np.floor(x + 0.5, out=out))
    assert "float64 rounds to nearest, ties to even" in failed(selftest.checks())


def test_a_blas_that_rounds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def coarse(x: Any, y: Any, out: Any) -> None:
        np.matmul(x.astype(np.float32), y.astype(np.float32), out=out)

    monkeypatch.setattr(products, "matmul", coarse)
    found = failed(selftest.checks())
    assert "enclosures at two precisions overlap" in found


def test_a_checksum_that_sees_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "check", lambda sums, known: None)
    assert failed(selftest.checks()) == {"the checksum finds a wrong product"}


def test_a_spectral_norm_that_is_a_guess_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "spectral_norm", lambda matrix: 7.9 * abs(matrix).max())
    assert failed(selftest.checks()) == {"Cholesky bounds the spectral norm"}

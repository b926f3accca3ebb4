"""What the tests of books share: the books themselves and a browser, once a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from books import Shelf, shelf_of
from browser import Windows, launched


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Every book by its name."""
    return shelf_of(tmp_path_factory)


@pytest.fixture(scope="session")
def windows() -> Iterator[Windows]:
    with launched() as browser:
        found = Windows(browser)
        yield found
        found.close()


@pytest.fixture
def opened(windows: Windows) -> Iterator[Windows]:
    """Opens pages and, at the end, asks whether they were quiet."""
    windows.listen()
    yield windows
    assert windows.fetched == []
    assert windows.complaints == []

"""A browser, a server and a person at its page, for the tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from person import Page, launched
from serving_server import served

from byhand.serving.limits import Limits


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with served(limits=Limits(workers=1)) as address:
        yield f"http://127.0.0.1:{address.port}"


@pytest.fixture
def person(browser: Any, origin: str) -> Iterator[Page]:
    """A person at a desk; afterwards the page has neither complained nor asked elsewhere."""
    found = Page(browser, origin)
    yield found
    found.context.close()
    assert found.complaints == []

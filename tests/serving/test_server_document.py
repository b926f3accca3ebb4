"""Requests made from the OpenAPI document, right and wrong: none breaks the server.

Of every kind there are a few; `python -m benchmarks.serving --document` makes many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from serving_server import Address, served

from byhand.serving.limits import Limits
from byhand.serving.openapi import document
from byhand.serving.questions import ASKED

DOCUMENT = schemathesis.openapi.from_dict(document(("tiny", "journey")))
SETTINGS = settings(
    max_examples=6,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Address]:
    with served(limits=Limits(workers=1, work_seconds=10)) as address:
        yield address


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize("name", list(ASKED))
def test_no_request_of_the_document_breaks_the_server(
    server: Address, name: str, wrong: bool
) -> None:
    mode = schemathesis.GenerationMode.NEGATIVE if wrong else schemathesis.GenerationMode.POSITIVE
    operation = DOCUMENT[f"/api/{name}"]["post"]

    @SETTINGS
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: Any) -> None:
        reply = case.call(base_url=f"http://127.0.0.1:{server.port}")
        assert reply.status_code < 500, reply.text
        operation.validate_response(reply)

    asked()

"""What all tests share: the same examples on every run, and the models of the documents."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from byhand.model import Model
from byhand.models import open_model

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def tiny() -> Model:
    return open_model("tiny")


@pytest.fixture(scope="session")
def journey() -> Model:
    return open_model("journey")

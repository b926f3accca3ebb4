"""Certificates: written whole, read with care, and named by digests of numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byhand.errors import InputError, UsageError
from byhand.model import Model
from byhand.models import open_model
from byhand.proving import certificates
from byhand.proving.certificates import (
    certificate,
    certificate_digest,
    lead_text,
    model_digest,
    parse_certificate,
    read_certificate,
    write_certificate,
)
from byhand.proving.outcome import OPEN, Outcome
from byhand.proving.properties import read_property
from byhand.proving.search import prove
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights

CLOCK = Path("docs/examples/clock.property.yaml")


@pytest.fixture(scope="module")
def proven() -> Outcome:
    return prove(read_property(CLOCK))


def with_weight(model: Model, name: str, data: Any) -> Model:
    return replace(model, weights=Weights({**model.weights, name: Tensor(name, data)}))


def test_a_certificate_is_what_its_page_shows(proven: Outcome) -> None:
    found = certificate(proven)
    (goal,) = found["goals"]
    assert found["format"] == "byhand certificate 1"
    assert (found["answer"], goal["texts"]) == ("proven", "49")
    assert goal["tree"] == {"by": "each", "texts": 49, "lead": "0.372"}  # of 1 - cos(2π/7)
    assert found["least"] == {"lead": "0.372", "goal": 0}
    assert found["digest"] == certificate_digest(found)


def test_a_file_reads_back_to_the_same_certificate(proven: Outcome, tmp_path: Path) -> None:
    file = write_certificate(proven, tmp_path / "clock.json")
    assert read_certificate(file) == certificate(proven)
    assert [one.name for one in tmp_path.iterdir()] == ["clock.json"]


def test_what_is_not_proven_has_no_certificate(proven: Outcome) -> None:
    with pytest.raises(UsageError, match="only a proven property"):
        certificate(replace(proven, answer=OPEN))


@pytest.mark.parametrize(
    ("lead", "text"),
    [
        (Fraction(1, 4), "0.247"),
        (Fraction(2, 3), "0.66"),
        (Fraction(1), "0.99"),
        (Fraction(123_456), "122000"),
        (Fraction(1, 10**12), "0.00000000000099"),
        (Fraction(-1, 2), "-0.506"),
        (Fraction(0), "0"),
    ],
)
def test_a_recorded_lead_is_a_little_less_than_the_lead(lead: Fraction, text: str) -> None:
    assert lead_text(lead) == text
    assert Fraction(text) < lead or lead == 0


def test_a_digest_is_that_of_numbers_however_they_are_stored() -> None:
    model = open_model("journey")
    for name, tensor in model.weights.items():
        halves = np.array([Fraction(round(8 * float(x)), 8) for x in tensor.data.flat])
        exact = with_weight(model, name, halves.reshape(tensor.shape))
        for kind in (np.float64, np.float32, np.float16):
            floats = with_weight(model, name, halves.reshape(tensor.shape).astype(kind))
            assert model_digest(floats) == model_digest(exact)


def test_a_digest_tells_every_weight_and_the_architecture() -> None:
    model = open_model("tiny")
    found = {model_digest(model)}
    for name, tensor in model.weights.items():
        for place in range(tensor.size):
            data = tensor.data.copy()
            data.flat[place] += Fraction(1, 10**30)
            found.add(model_digest(with_weight(model, name, data)))
    assert len(found) == 1 + sum(tensor.size for tensor in model.weights.values())
    renamed = replace(model, spec=replace(model.spec, name="other"), about="something else")
    assert model_digest(renamed) == model_digest(model)
    others = (
        replace(model, spec=replace(model.spec, context=99)),
        replace(model, spec=replace(model.spec, blocks=())),
        replace(model, vocabulary=Vocabulary(("b", "a", "c"))),
    )
    assert len({model_digest(one) for one in others} - found) == 3


def broken(change: Callable[[dict[str, Any]], Any], outcome: Outcome) -> str:
    tree = certificate(outcome)
    change(tree)
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda it: it.pop("goals"), '"goals"'),
        (lambda it: it.update(format="byhand certificate 2"), "byhand certificate 1"),
        (lambda it: it.update(model={"name": "x"}), '"digest"'),
        (lambda it: it["goals"][0].update(texts=49), '"texts"'),
        (lambda it: it["goals"][0].update(tree={"by": "magic"}), "a case"),
        (lambda it: it["goals"][0].update(tree={"by": "each", "texts": "49"}), "a case"),
        (lambda it: it["goals"][0]["tree"].update(lead="1/3"), "a case"),
        (lambda it: it["goals"][0]["tree"].update(lead="1e9"), "a case"),
        (lambda it: it["goals"][0]["tree"].update(more=1), "a case"),
        (lambda it: it["goals"][0].update(tree={"cut": "a", "first": [0], "parts": []}), "a cut"),
    ],
)
def test_what_is_not_formed_as_a_certificate_is_refused(
    change: Any, expected: str, proven: Outcome
) -> None:
    with pytest.raises(InputError, match="this is no certificate") as caught:
        parse_certificate(broken(change, proven), where="clock.json")
    assert expected in str(caught.value)
    assert str(caught.value.where).startswith("clock.json")


def test_files_that_are_cut_off_doubled_deep_or_huge_are_refused(
    proven: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, file = json.dumps(certificate(proven)), tmp_path / "some.json"
    deep = '{"cut": "a", "first": [0], "parts": [' * 3000
    for content in (text[:-20], text[:-1] + ', "digest": "0"}', "", "[]", "NaN", deep, "\ud800"):
        file.write_bytes(content.encode("utf-8", "surrogatepass"))
        with pytest.raises(InputError, match="no certificate"):
            read_certificate(file)
    file.write_text(text)
    monkeypatch.setattr(certificates, "LARGEST", 100)
    with pytest.raises(InputError, match="at most 100 bytes"):
        read_certificate(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_certificate(tmp_path / "nothing.json")

"""JSON of `x.tolist()`: floats that a program printed, and what is written by hand all the same."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byhand
from byhand.checking.claims import Claim
from byhand.checking.precisions import usual_precision
from byhand.checking.readers import read_claims
from byhand.checking.readers.printed_floats import floats_of
from byhand.model import Model

TEXT = "the cat sat on"
CHANCE = np.random.default_rng(7).standard_normal(40)


def texts(values: Any) -> list[str]:
    return [repr(float(value)) for value in values]


@pytest.mark.parametrize("format", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_what_tolist_gives_is_the_floats_themselves(format: Any) -> None:
    values = CHANCE.astype(format)
    found = floats_of(texts(values))
    assert found is not None
    assert found[0].tolist() == values.astype(np.float64).tolist()
    assert found[1] == ("float64" if format is np.float64 else "float32")


def test_the_shortest_digits_of_a_float32_are_that_float32() -> None:
    values = CHANCE.astype(np.float32)
    found = floats_of([str(value) for value in values])
    assert found is not None
    assert found[1] == "float32"
    assert found[0].tolist() == values.tolist()


def test_one_number_in_full_is_enough_and_round_ones_beside_it_do_no_harm() -> None:
    for float_, name in ((np.float32(math.log(6)), "float32"), (math.log(6), "float64")):
        found = floats_of([repr(float(float_))])
        assert found is not None
        assert found[1] == name
    found = floats_of(["-Infinity", "0.0", "0.30000001192092896", "1", "NaN"])
    assert found is not None
    assert np.array_equal(found[0], [-np.inf, 0, np.float32(0.3), 1, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    "written",
    [
        ["0.30", "1.8313"],
        ["0.25", "0.5", "0.125", "0.0625", "0.75"] * 8,  # round, however many
        ["0.69314718"] * 3,  # eight digits
        ["0.693147180559945309417"],  # more digits than a float has
        ["0.30000001192092896", "1/3"],
        ["0.30000001192092896", "0.3", "0.4", "0.5"],  # one of four
        ["~0.30000001192092896"],
        ["12345678901234567"],
        [],
    ],
)
def test_what_a_person_may_have_written_is_left_to_the_person(written: list[str]) -> None:
    assert floats_of(written) is None


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=40), st.integers(1, 6))
def test_up_to_six_digits_are_never_floats(numbers: list[int], places: int) -> None:
    assert floats_of([f"{number / 10**places:.{places}f}" for number in numbers]) is None


@pytest.mark.parametrize("format", ["float32", "bfloat16", "float64"])
def test_a_correct_run_in_json_follows(journey: Model, tmp_path: Path, format: str) -> None:
    trace = byhand.trace(journey, TEXT, float=format)
    steps = ("block.0.attn.v", "block.0.attn.weights", "block.0.attn.mixed", "block.0.attn.out",
             "block.0.attn.add", "block.0.mlp.hidden", "block.0.mlp.act", "block.0.mlp.out",
             "block.0.mlp.add", "logits", "probs")  # fmt: skip
    dump = {
        step: np.ma.filled(np.ma.asarray(trace[step].value), 0).astype(np.float64).tolist()
        for step in steps
    }
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"text": TEXT, **dump}), "utf-8")
    marking = byhand.check(journey, path)
    assert marking.follows
    assert [text.precision for text in marking.texts] == [format]
    dump["logits"][1][2] *= -1
    path.write_text(json.dumps({"text": TEXT, **dump}), "utf-8")
    error = byhand.check(journey, path).first_error
    assert error is not None
    assert error.claim.address == "logits"


def test_blanks_among_floats_are_blanks(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text('{"logits": [0.30000001192092896, null, 0.10000000149011612]}', "utf-8")
    (entry,) = read_claims(path).entries
    assert entry.format == "float32"
    assert entry.claimed is not None
    assert entry.claimed.tolist() == [True, False, True]


def test_embeddings_do_not_tell_what_was_worked_in(tmp_path: Path) -> None:
    """They are those of a checkpoint, which has them in float32."""
    claims = [
        Claim(address, (), np.zeros(1), "", "", format=format)
        for address, format in {"embed.token": "float32", "logits": "float64"}.items()
    ]
    assert usual_precision(claims) == "float64"
    assert usual_precision(claims[:1]) == "float32"

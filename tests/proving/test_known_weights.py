"""Weights known within ranges: exactly the numbers that the property says."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import InputError
from byhand.files.making import make_model
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Printed, Unknown, Within
from byhand.numbers.floats.formats import FORMATS
from byhand.numbers.floats.nearest import nearest
from byhand.proving.properties import read_property
from byhand.proving.reading.known_weights import rounded

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def with_weights(weights: Any, model: Model | None = None) -> Model:
    tree = {"texts": "A", "weights": weights, "claim": "constant"}
    return read_property(tree, model or open_model("abc")).model


def one(number: str, weights: Any) -> Any:
    """What becomes of one weight."""
    spec = {"d_model": 1, "layers": 0}
    model = make_model(spec, {"embed.token": [[number], [1]]}, ["A", "B"])
    return with_weights(weights, model).weights["embed.token"].data[0, 0]


def test_printed_weights_are_all_numbers_that_print_alike() -> None:
    assert one("0.12344", {"printed": 4}) == Printed(Fraction("0.1234"), 4)
    assert one("-2/3", {"printed": 2}) == Printed(Fraction("-0.67"), 2)
    found = with_weights({"printed": 4}).weights
    own = open_model("abc").weights
    for name, tensor in found.items():
        assert all(
            entry == Printed(before, 4)
            for entry, before in zip(tensor.data.flat, own[name].data.flat, strict=True)
        )


def test_weights_within_a_distance() -> None:
    assert one("1/3", {"within": "1e-4"}) == Within(Fraction(1, 3), Fraction(1, 10_000))


def test_weights_of_some_names_alone() -> None:
    found = with_weights({"within": "1/100", "of": ["block.0.mlp", "head*"]}).weights
    changed = {name for name, tensor in found.items() if isinstance(tensor.data.flat[0], Within)}
    assert changed == {
        "block.0.mlp.hidden", "block.0.mlp.hidden_bias", "block.0.mlp.out", "block.0.mlp.out_bias",
        "head", "head_bias",
    }  # fmt: skip
    found = with_weights({"head": {"printed": 3}, "embed.*": {"within": "1/9"}}).weights
    assert isinstance(found["head"].data[0, 0], Printed)
    assert isinstance(found["embed.position"].data[0, 0], Within)
    assert isinstance(found["block.0.attn.out"].data[0, 0], Fraction)


@given(st.fractions(-1000, 1000), st.sampled_from(sorted(FORMATS)))
def test_rounding_is_that_of_the_format(value: Fraction, format: str) -> None:
    assert rounded(value, FORMATS[format]) == Fraction(nearest(value, FORMATS[format]))


patterns = st.integers(1, 2**15 - 200)  # of the bits of a bfloat16
powers = patterns.map(lambda bits: bits & ~127)  # without a fraction: powers of two, and 0


@given(st.one_of(patterns, powers), st.booleans())
def test_known_to_bfloat16_are_all_numbers_that_round_to_the_stored_one(
    bits: int, negative: bool
) -> None:
    stored = np.array([bits], np.uint16).view(ml_dtypes.bfloat16)[0]
    if not np.isfinite(stored):
        return
    value = Fraction(float(stored)) * (-1 if negative else 1)
    found = one(str(value), {"known to": "bfloat16"})
    assert isinstance(found, Within)
    low, high = found.value - found.radius, found.value + found.radius
    form, inside = FORMATS["bfloat16"], found.radius / 1000
    assert nearest(low + inside, form) == nearest(high - inside, form) == value
    assert nearest(low - inside, form) != value
    assert nearest(high + inside, form) != value


def test_rounded_to_is_one_model_and_its_own_numbers_are_kept() -> None:
    tree = {"texts": "A", "weights": {"rounded to": "bfloat16"}, "claim": "unmoved"}
    found = read_property(tree, "abc")
    assert found.own.weights["head"].data[0, 0] == Fraction("-0.6736")
    expected = float(np.array(-0.6736, ml_dtypes.bfloat16))
    assert found.model.weights["head"].data[0, 0] == Fraction(expected)


def test_floats_are_taken_as_the_rationals_they_are() -> None:
    weights = {"embed.token": np.array([[0.1], [2.0]], np.float32)}
    model = make_model({"d_model": 1, "layers": 0}, weights, ["A", "B"])
    found = with_weights({"within": 1}, model).weights["embed.token"].data
    assert found[0, 0] == Within(Fraction(float(np.float32(0.1))), Fraction(1))


def test_weights_that_refer_to_each_other_stay_the_same() -> None:
    weights = {
        "embed.token": [["1/2", "1/3"], ["1/4", "1/5"]],
        "head": "@embed.token.T",
        **{f"block.0.attn.{name}": [[1, 2], [3, 4]] for name in "qv"},
        "block.0.attn.k": "@block.0.attn.q",
        "block.0.attn.out": "@block.0.attn.q.T",
    }
    spec = {"d_model": 2, "layers": 1, "attention": {"heads": 1}, "mlp": "none",
            "head": {"tied": False}}  # fmt: skip
    model = make_model(spec, weights, ["A", "B"])
    for of in ({}, {"of": "block.0.attn.k"}):  # a name that refers stands for what it refers to
        found = with_weights({"within": "1/10", **of}, model).weights
        q, k, out = (found[f"block.0.attn.{name}"] for name in ("q", "k", "out"))
        assert k.same_as == out.same_as == "block.0.attn.q"
        assert np.shares_memory(k.data, q.data)
        assert np.shares_memory(out.data, q.data)
        assert out.data[0, 1] is q.data[1, 0]
        assert isinstance(q.data[1, 0], Within)
        assert isinstance(found["head"].data[0, 1], Fraction) == bool(of)


def test_buffers_and_unknown_weights_are_left_alone() -> None:
    tree = {"texts": "+", "weights": {"within": 1}, "claim": "constant"}
    found = read_property(tree, EXAMPLES / "thermometer.yaml").model
    assert found.weights["block.0.attn.score_table"].data[0, 0, 1] is None
    assert found.weights["block.0.attn.score_table"].data[0, 0, 0] == 0
    unknown = with_weights({"within": 1}, open_model("abc-walkthrough"))
    assert unknown.weights["head_bias"].data[0] == Unknown()


@pytest.mark.parametrize(
    ("weights", "where", "message"),
    [
        ({"printed": "x"}, "weights.printed", "x is not possible here"),
        ({"within": -1}, "weights.within", "-1 is not possible here"),
        ({"rounded to": "float8"}, "weights.rounded to", "float8 is not possible here"),
        ({"printed": 4, "within": 1}, "weights", "weights are given in one way"),
        ({"haed": {"printed": 4}}, "weights.haed", "this model has no weight 'haed'"),
        ({"printed": 4, "of": "haed"}, "weights.of", "this model has no weight 'haed'"),
        ({"head": 4}, "weights.head", "4 is not possible here"),
        ({"printed": 4, "off": "head"}, "weights.off", "there is no key 'off' here"),
        ("printed", "weights", "printed is not possible here"),
    ],
)
def test_a_mistake_in_the_weights_is_named(weights: Any, where: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        with_weights(weights)
    assert (caught.value.where, caught.value.message) == (where, message)


def test_an_entry_that_is_not_rational_is_taken_with_sixty_decimals() -> None:
    root = Fraction("1.414213562373095048801688724209698078569671875376948073176680")
    assert one("sqrt(2)", {"within": "1/100"}) == Within(root, Fraction(1, 100))
    assert one("sqrt(2)", {"printed": 3}) == Printed(Fraction("1.414"), 3)
    assert one("sqrt(2)", {"rounded to": "bfloat16"}) == Fraction(181, 128)


def test_a_weight_too_large_for_a_format_is_named() -> None:
    with pytest.raises(InputError) as caught:
        one("1e39", {"rounded to": "bfloat16"})
    assert caught.value.message == "a weight is too large for bfloat16"

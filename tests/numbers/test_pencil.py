"""The pencil: every line worked out exactly from the line above, then rounded."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import InputError
from byhand.expression import parse
from byhand.numbers.base import ABSENT, Note, Printed
from byhand.numbers.pencil import Pencil

F = Fraction


def shown(pencil, array):
    return [pencil.text(entry) for entry in np.ravel(array)]


def fractions(*texts):
    return np.array([[F(text) for text in texts]], dtype=object)


def test_it_has_a_name_a_register_and_decimals():
    pencil = Pencil(2)
    assert pencil.name == "decimals 2"
    assert pencil.register(F(1, 2)) == "rounded"
    assert [pencil.text(F(x)) for x in ("0.5", "-0.05", "12", "1/3")] == [
        "0.50",
        "-0.05",
        "12.00",
        "1/3",
    ]
    assert Pencil(0).text(F(3)) == "3"


def test_rational_weights_stay_and_others_are_rounded():
    admitted = Pencil(2).admit(
        np.array([F(1, 3), parse("sqrt(2)"), parse("1/8"), Printed(F("0.1234"), 4), ABSENT, 0.125])
    )
    assert admitted.tolist() == [F(1, 3), F("1.41"), F(1, 8), F("0.1234"), ABSENT, F(1, 8)]


def test_halves_are_rounded_away_from_zero():
    pencil = Pencil(1)
    x = fractions("0.25", "-0.25", "0.35", "-0.05", "0.04")
    zero = fractions("0", "0", "0", "0", "0")
    assert shown(pencil, pencil.add(x, zero)) == ["0.3", "-0.3", "0.4", "-0.1", "0.0"]


def test_a_layernorm_goes_line_by_line():
    pencil = Pencil(2)
    x = fractions("0.6", "0.1", "-0.2", "0")
    mean = pencil.mean(x)
    assert shown(pencil, mean) == ["0.13"]  # 0.125
    centered = pencil.center(x, mean)
    assert shown(pencil, centered) == ["0.47", "-0.03", "-0.33", "-0.13"]
    variance = pencil.mean_square(centered)
    assert shown(pencil, variance) == ["0.09"]  # (0.2209 + 0.0009 + 0.1089 + 0.0169) / 4 = 0.0869
    std = pencil.root(variance, eps=F(1, 100000))
    assert shown(pencil, std) == ["0.30"]
    assert shown(pencil, pencil.normalize(centered, std)) == ["1.57", "-0.10", "-1.10", "-0.43"]


def test_softmax_and_loss_are_rounded_after_they_are_worked_out():
    pencil = Pencil(3)
    probs = pencil.softmax(fractions("1", "2"))
    assert shown(pencil, probs) == ["0.269", "0.731"]
    assert shown(pencil, pencil.loss(probs, target=0)) == ["1.313"]  # -ln 0.269 = 1.31304
    masked = np.array([[[F(1), ABSENT]]], dtype=object)
    assert pencil.softmax(masked).tolist() == [[[F(1), ABSENT]]]


def test_products_rotations_and_activations():
    pencil = Pencil(2)
    x = fractions("1", "2")
    w = np.array([[F(1, 3), F(1, 7)], [F(1), F(0)]], dtype=object)
    assert shown(pencil, pencil.linear(x, w, layout="in_out")) == ["2.33", "0.14"]
    turned = pencil.rotate(x[np.newaxis], positions=[1], width=2, base=F(10000), pairing="half")
    assert shown(pencil, turned) == ["-1.14", "1.92"]
    assert shown(pencil, pencil.activate(-x, kind="gelu")) == ["-0.16", "-0.05"]
    assert shown(pencil, pencil.activate(-x, kind="relu")) == ["0.00", "0.00"]
    assert shown(pencil, pencil.embed(x, (0,), scale=parse("sqrt(2)"))) == ["1.41", "2.83"]
    assert shown(pencil, pencil.sinusoid(positions=[1], width=2, base=F(10000))) == ["0.84", "0.54"]
    assert shown(pencil, pencil.affine(x, gain=x[0], bias=x[0])) == ["2.00", "6.00"]
    assert shown(pencil, pencil.multiply(x, x)) == ["1.00", "4.00"]


def test_attention_by_hand():
    pencil = Pencil(2)
    x = np.array([[[F(1), F(0)], [F(1), F(1)]]], dtype=object)
    mask = [[True, False], [True, True]]
    scores = pencil.scores(
        x, x, mask=mask, queries=range(2), keys=range(2), scale=parse("1/sqrt(2)")
    )
    assert scores.tolist() == [[[F("0.71"), ABSENT], [F("0.71"), F("1.41")]]]
    weights = pencil.softmax(scores)
    assert weights.tolist() == [[[F(1), ABSENT], [F("0.33"), F("0.67")]]]
    mixed = pencil.mix(weights, x)
    assert mixed.tolist() == [[[F(1), F(0)], [F(1), F("0.67")]]]
    assert pencil.merge_heads(mixed).shape == (2, 2)
    assert pencil.split_heads(x[0], start=0, heads=2, width=1, stride=1).shape == (2, 2, 1)
    assert pencil.head_outputs(mixed, layout="in_out").shape == (1, 2, 2)


def test_argmax_of_rounded_numbers_is_never_called_proven():
    pencil = Pencil(1)
    first, second = pencil.argmax(np.array([[F(1), F(3), F(2)], [F(2), F(1), F(2)]]))
    assert (first.id, first.margin, first.proven, first.tied) == (1, 1, False, ())
    assert (second.id, second.margin, second.proven, second.tied) == (0, 0, False, (0, 2))


def test_a_row_of_zeros_is_zero_with_a_note():
    pencil = Pencil(2)
    result = pencil.normalize(fractions("0", "0"), np.array([F(0)], dtype=object))
    assert result.tolist() == [[0, 0]]
    assert pencil.notes == [Note("zero-variance", (0,))]


def test_a_divisor_that_rounds_to_zero_asks_for_more_decimals():
    pencil = Pencil(1)
    with pytest.raises(InputError, match=r"rounded to 1 decimals, the divisor of row \[0\]") as no:
        pencil.normalize(fractions("0.1", "0"), np.array([F(0)], dtype=object))
    assert no.value.hint == "use more decimals"


def test_a_probability_that_rounds_to_zero_has_no_loss():
    with pytest.raises(InputError, match="the probability of the target became 0"):
        Pencil(1).loss(fractions("0", "1"), target=0)


def test_decimals_cannot_be_negative():
    with pytest.raises(InputError, match="cannot be negative"):
        Pencil(-1)


@given(st.lists(st.decimals(-20, 20, places=2).map(F), min_size=2, max_size=5), st.integers(0, 6))
def test_every_entry_is_the_nearest_of_its_decimals(row, places):
    pencil = Pencil(places)
    x = np.array([row], dtype=object)
    weights = pencil.softmax(x)[0]
    total = sum(np.exp(float(v) - float(max(row))) for v in row)
    for entry, score in zip(weights, row, strict=True):
        assert (entry * 10**places).denominator == 1
        exact = np.exp(float(score) - float(max(row))) / total
        assert abs(float(entry) - exact) <= 0.5 * 10**-places + 1e-12

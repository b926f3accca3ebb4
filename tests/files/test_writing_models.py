"""A model written as a model file reads back to the same model, number by number."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import InputError
from byhand.expression import parse
from byhand.files import parse_model
from byhand.files.tables import decimal_text, number_text
from byhand.files.writing import MOST_WRITTEN, float_text, write_model
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.numbers.exact import Exact
from byhand.spec import NO_NORM, ModelSpec
from byhand.tokens import Ids, Vocabulary
from byhand.weights import Tensor, Weights
from oracles.architectures import at_random, make_case, nasty

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def same_number(one: Any, other: Any) -> bool:
    """Whether two entries of weights stand for one number."""
    if one is ABSENT or isinstance(one, Printed | Unknown):
        return bool(one == other)
    if isinstance(one, Fraction | np.generic):
        return isinstance(other, Fraction) and Fraction(one) == other
    exact = Exact()
    value = exact.scalar(other) if not isinstance(other, Fraction) else exact.value(other)
    return bool(exact.scalar(one) == value)


def assert_same(model: Model, again: Model) -> None:
    assert again.spec == model.spec
    assert again.vocabulary == model.vocabulary
    assert (again.text, again.target, again.notes) == (model.text, model.target, model.notes)
    assert (again.about, again.ends) == (model.about, model.ends)
    assert list(again.weights) == list(model.weights)
    for name, tensor in model.weights.items():
        read = again.weights[name]
        assert read.shape == tensor.shape, name
        assert all(map(same_number, tensor.data.flat, read.data.flat)), name


def changed(model: Model, name: str, entries: Any) -> Model:
    tensors = dict(model.weights)
    tensors[name] = Tensor(name, np.array(entries, dtype=object))
    return replace(model, weights=Weights(tensors))


@pytest.mark.parametrize("name", ["tiny", "journey", "abc", "abc-walkthrough"])
def test_a_built_in_model_reads_back(name: str) -> None:
    model = open_model(name)
    assert_same(model, parse_model(write_model(model)))


@pytest.mark.parametrize("seed", range(60))
def test_every_architecture_reads_back(seed: int) -> None:
    case = make_case(at_random(Random(seed)), seed, entry=nasty)
    spec = replace(case.spec, name="case")
    words = Vocabulary(tuple(ALPHABET[: spec.vocab]))
    model = Model(spec=spec, weights=case.weights, vocabulary=words)
    again = parse_model(write_model(model))
    assert shown(again.spec) == shown(spec)
    assert_same(replace(model, spec=again.spec), again)


def shown(spec: ModelSpec) -> ModelSpec:
    """The spec without what nothing reads: the norm of a side-trip that is not there, a base
    where the angles are given."""
    blocks = []
    for block in spec.blocks:
        norms = (
            NO_NORM if block.attention is None else block.attn_norm,
            NO_NORM if block.mlp is None else block.mlp_norm,
        )
        read = replace(block, attn_norm=norms[0], mlp_norm=norms[1])
        if block.attention and (rotary := block.attention.rotary) and rotary.given:
            plain = replace(rotary, base=Fraction(10_000))
            read = replace(read, attention=replace(block.attention, rotary=plain))
        blocks.append(read)
    base = spec.position_base if spec.position == "sinusoidal" else Fraction(10_000)
    return replace(spec, blocks=tuple(blocks), position_base=base)


def test_fractions_expressions_and_unknowns_are_kept(tiny: Model) -> None:
    entries = [[Fraction(1, 3), parse("sqrt(2)/2")], [Unknown(), Fraction(-7)]]
    model = changed(tiny, "block.0.attn.q", entries)
    text = write_model(model)
    assert "- [1/3, √2/2]" in text
    assert_same(model, parse_model(text))


def test_a_printed_weight_keeps_its_decimals(tiny: Model) -> None:
    row = [Printed(Fraction("-0.5150"), 4), Unknown()]
    model = changed(tiny, "block.0.mlp.out", [row, row])
    text = write_model(model)
    assert "-0.5150" in text
    assert_same(model, parse_model(text))


def test_a_weight_printed_to_two_precisions_is_refused(tiny: Model) -> None:
    row = [Printed(Fraction("0.51"), 2), Printed(Fraction("0.515"), 3)]
    with pytest.raises(InputError, match="to how many decimals"):
        write_model(changed(tiny, "block.0.mlp.out", [row, row]))


def test_a_reference_stays_a_reference_until_the_numbers_differ(tiny: Model) -> None:
    text = write_model(tiny).replace(
        "block.0.attn.k: identity", 'block.0.attn.k: "@block.0.attn.q"'
    )
    model = parse_model(text)
    assert '"@block.0.attn.q"' in write_model(model)
    assert '"@block.0.attn.q"' not in write_model(
        changed(model, "block.0.attn.k", [[Fraction(2), Fraction(0)], [Fraction(0), Fraction(1)]])
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_written_as_the_number_it_is(value: float) -> None:
    model = parse_model(_one_number(float_text(value)))
    assert model.weights["embed.token"].data[0, 0] == Fraction(value)


@given(st.fractions())
def test_a_fraction_is_written_as_itself(value: Fraction) -> None:
    for decimals in (False, True):
        model = parse_model(_one_number(number_text(value, decimals)))
        assert model.weights["embed.token"].data[0, 0] == value


def _one_number(text: str) -> str:
    return (
        "name: one\nvocabulary: [a]\nmodel: {d_model: 1, layers: 0}\n"
        f"weights:\n  embed.token:\n    - [{text}]\n"
    )


def test_a_decimal_is_whole_or_there_is_none() -> None:
    assert decimal_text(Fraction(1, 8)) == "0.125"
    assert decimal_text(Fraction(-1, 5)) == "-0.2"
    assert decimal_text(Fraction(1, 3)) is None
    assert decimal_text(Fraction(1, 2**80)) is None


@pytest.mark.parametrize("kind", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_floats_of_every_format_read_back(tiny: Model, kind: Any) -> None:
    tensors = dict(tiny.weights)
    data = np.array([[0.1, -3e-8], [2.5, 1e30]], dtype=kind)
    tensors["block.0.attn.q"] = Tensor("block.0.attn.q", data)
    model = replace(tiny, weights=Weights(tensors))
    assert_same_floats(data, parse_model(write_model(model)).weights["block.0.attn.q"].data)


def assert_same_floats(floats: Any, read: Any) -> None:
    assert [Fraction(float(x)) for x in floats.flat] == list(read.flat)


@pytest.mark.parametrize(
    "tokens",
    [
        ("on", "no", "~", "null"),
        ("#", ":", "- a", "'"),
        ("\x85", "é", "\U0001f600", '"'),
        ("@", "[", "{", "1e5"),
    ],
)
def test_words_that_mean_something_to_yaml_stay_words(tiny: Model, tokens: tuple[str, ...]) -> None:
    kept = tuple(token for token in tokens if token.split() == [token])[:3]
    words = Vocabulary((*kept, *ALPHABET)[:3])
    model = replace(
        tiny, vocabulary=words, text=words.decode([0, 1]), about="a: b # c", notes=("- x",)
    )
    assert_same(model, parse_model(write_model(model)))


def test_characters_may_be_blanks_and_line_breaks(tiny: Model) -> None:
    model = replace(
        tiny, vocabulary=Vocabulary((" ", "\n", "\t"), "characters"), text=" \n", target="\t"
    )
    assert_same(model, parse_model(write_model(model)))


def test_ids_become_words_of_digits(tiny: Model) -> None:
    model = replace(tiny, vocabulary=Ids(3), text="0 2")
    again = parse_model(write_model(model))
    assert again.vocabulary.encode("0 2") == (0, 2)


def test_a_tokenizer_of_pieces_is_refused(tiny: Model) -> None:

    class Other:
        tokens = ("a", "b", "c")

    with pytest.raises(InputError, match="cannot hold this tokenizer"):
        write_model(replace(tiny, vocabulary=Other(), text=None))  # type: ignore[arg-type]


def test_too_many_weights_are_refused_with_a_hint(tiny: Model) -> None:
    tensors = dict(tiny.weights)
    tensors["embed.token"] = Tensor("embed.token", np.zeros((MOST_WRITTEN + 1, 1), np.float32))
    with pytest.raises(InputError, match="too many weights") as caught:
        write_model(replace(tiny, weights=Weights(tensors)))
    assert "safetensors" in (caught.value.hint or "")

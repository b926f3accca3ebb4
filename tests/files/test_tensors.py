"""What the `weights:` table of a good model file means: each way of writing a weight."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
import yaml

from byhand.errors import InputError
from byhand.expression import Number, Power, parse, write
from byhand.files import parse_model
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT, Printed, Unknown

BASE: dict[str, Any] = {"d_model": 4, "layers": 1, "attention": {}, "mlp": {"d_ff": 3}}


def model_of(weights: dict[str, Any], **keys: Any) -> Model:
    """A model of one token and no blocks but for these keys; weights default to zeros."""
    tree = {"vocabulary": ["a", "b"], "model": {**BASE, **keys}, "weights": weights}
    return parse_model(json.dumps(tree), "m.json")


NOTHING = {"attention": "none", "mlp": "none", "layers": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.2", Fraction(1, 5)),
        ("0.30", Fraction(3, 10)),
        ("-3/2", Fraction(-3, 2)),
        ("1e-5", Fraction(1, 100_000)),
        ("+.5", Fraction(1, 2)),
        ("−1", Fraction(-1)),
        ("2^-3", Fraction(1, 8)),
        ("(1 + 1/2)*3", Fraction(9, 2)),
        ("sqrt(2)/2", parse("sqrt(2)/2")),
        ("ln(10)", parse("ln(10)")),
        ("exp(80)", parse("exp(80)")),
        ("cos(2*pi/19)", parse("cos(2*pi/19)")),
        ("unknown", Unknown()),
    ],
)
def test_an_entry_is_the_number_it_spells(text: str, value: object) -> None:
    entry = model_of({"embed.token": [[text], ["0"]]}, **{**NOTHING, "d_model": 1})
    assert entry.weights["embed.token"].data[0, 0] == value


@pytest.mark.parametrize(
    ("word", "rows"),
    [
        ("identity", [[1, 0], [0, 1]]),
        ("zeros", [[0, 0], [0, 0]]),
        ("ones", [[1, 1], [1, 1]]),
        ("unknown", [[Unknown(), Unknown()], [Unknown(), Unknown()]]),
    ],
)
def test_words(word: str, rows: list[list[object]]) -> None:
    model = model_of({"embed.token": word}, **{**NOTHING, "d_model": 2})
    assert model.weights["embed.token"].data.tolist() == rows


def test_printed_decimals_keep_their_places() -> None:
    values = [["-0.5150", "1.2"], ["unknown", "3"]]
    model = model_of({"embed.token": {"printed": 4, "values": values}}, **{**NOTHING, "d_model": 2})
    assert model.weights["embed.token"].data.tolist() == [
        [Printed(Fraction(-515, 1000), 4), Printed(Fraction(6, 5), 4)],
        [Unknown(), Printed(Fraction(3), 4)],
    ]


def attention_weights(**changed: Any) -> dict[str, Any]:
    names = (
        "embed.token",
        "block.0.attn.q",
        "block.0.attn.k",
        "block.0.attn.v",
        "block.0.attn.out",
    )
    return {**dict.fromkeys(names, "zeros"), **changed}


def test_a_score_table_has_masked_entries_and_expressions() -> None:
    table = [[["0", "masked"], ["exp(80)", "1/2"]]]
    model = model_of(
        attention_weights(**{"block.0.attn.score_table": table}),
        mlp="none",
        context=2,
        attention={"score_table": True},
    )
    assert model.weights["block.0.attn.score_table"].data.tolist() == [
        [[Fraction(0), ABSENT], [parse("exp(80)"), Fraction(1, 2)]]
    ]


@pytest.mark.parametrize(
    ("causal", "table", "found"),
    [
        (True, [[["masked", "0"], ["0", "0"]]], "block.0.attn.score_table[0,0]"),
        (False, [[["masked", "0"], ["masked", "masked"]]], "block.0.attn.score_table[0,1]"),
    ],
)
def test_a_query_without_a_key_is_refused(causal: bool, table: Any, found: str) -> None:
    with pytest.raises(InputError, match="has no key left to attend to") as caught:
        model_of(
            attention_weights(**{"block.0.attn.score_table": table}),
            mlp="none",
            context=2,
            attention={"score_table": True, "causal": causal},
        )
    assert caught.value.found == found


def test_a_future_key_may_be_all_that_is_left_without_a_causal_mask() -> None:
    table = [[["masked", "0"], ["0", "masked"]]]
    weights = attention_weights(**{"block.0.attn.score_table": table})
    attention = {"score_table": True, "causal": False}
    assert model_of(weights, mlp="none", context=2, attention=attention)


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (1, [-8]),
        (2, [-4, -8]),
        (8, [-1, -2, -3, -4, -5, -6, -7, -8]),
        (16, [Fraction(-h, 2) for h in range(1, 17)]),
        (3, [-4, -8, -2]),
        (6, [-2, -4, -6, -8, -1, -3]),
        (12, [-1, -2, -3, -4, -5, -6, -7, -8, *(Fraction(-h, 2) for h in (1, 3, 5, 7))]),
    ],
)
def test_slopes_left_out_are_the_usual_ones(heads: int, exponents: list[Fraction]) -> None:
    attention = {"heads": heads, "d_head": 1}
    model = model_of(attention_weights(), mlp="none", attention=attention, position="alibi")
    for slope, exponent in zip(model.weights["block.0.attn.slopes"].data, exponents, strict=True):
        if isinstance(slope, Fraction):
            assert slope == Fraction(2) ** int(exponent)
        else:
            assert slope == Power(Number(Fraction(2)), Number(Fraction(exponent)))


def test_references_share_and_transpose() -> None:
    weights = attention_weights(
        **{
            "block.0.attn.q": [["1", "2", "3", "4"]] + [["0"] * 4] * 3,
            "block.0.attn.k": "@block.0.attn.q.T",
            "block.0.attn.v": "@block.0.attn.k.T",
            "block.0.attn.out": "@block.0.attn.v",
        }
    )
    made = model_of(weights, mlp="none").weights
    assert made["block.0.attn.k"].data[:, 0].tolist() == [1, 2, 3, 4]
    assert made["block.0.attn.v"].data[0].tolist() == [1, 2, 3, 4]
    assert [made[name].same_as for name in made] == [None, None, *["block.0.attn.q"] * 3]


def test_references_to_references_have_a_limit() -> None:
    def chain(layers: int) -> Model:
        weights = {"embed.token": "zeros", "block.*.attn.k": "zeros", "block.*.attn.v": "zeros"}
        links = {f"block.{n}.attn.q": f"@block.{n + 1}.attn.q" for n in range(layers - 1)}
        last = {f"block.{layers - 1}.attn.q": "identity", "block.*.attn.out": "zeros"}
        return model_of({**weights, **links, **last}, mlp="none", layers=layers)

    assert chain(31).weights["block.0.attn.q"].same_as == "block.30.attn.q"
    with pytest.raises(InputError, match="references of more than 30 steps"):
        chain(40)


def test_a_pattern_gives_every_layer_its_own_copy() -> None:
    weights = {
        "embed.token": "zeros",
        "block.*.attn.q": {"normal": {"std": 1, "seed": 1}},
        "block.1.attn.q": "identity",
        "block.*.attn.k": "@block.*.attn.q",
        "block.*.attn.v": "@block.0.attn.q",
        "block.*.attn.out": "zeros",
    }
    made = model_of(weights, mlp="none", layers=3).weights
    assert made["block.1.attn.q"].data[0, 0] == Fraction(1)
    assert not (made["block.0.attn.q"].data == made["block.2.attn.q"].data).any()
    assert [made[f"block.{layer}.attn.k"].same_as for layer in range(3)] == [
        f"block.{layer}.attn.q" for layer in range(3)
    ]
    assert {made[f"block.{layer}.attn.v"].same_as for layer in range(3)} == {"block.0.attn.q"}


def test_products_are_exact_and_keep_expressions() -> None:
    factors = [[["1/3"], ["sqrt(2)"]], [["3", "0", "1/2", "sqrt(2)"]]]
    keys = {**NOTHING, "d_model": 4}
    data = (
        model_of({"embed.token": {"product": ["-2", *factors]}}, **keys).weights["embed.token"].data
    )
    assert data[0].tolist()[:3] == [-2, 0, Fraction(-1, 3)]
    from byhand.numbers.exact import Exact

    exact = Exact()
    assert exact.scalar(data[1, 3]) == exact.scalar(parse("-4"))
    assert "√2" in write(data[1, 0])
    assert data[1, 1] == 0


def test_a_reference_in_a_product_must_be_a_matrix() -> None:
    text = """
vocabulary: [a]
model: {d_model: 1, layers: 1, attention: {bias: {q: true}}, mlp: none}
weights:
  embed.token: {product: ["@block.0.attn.q_bias"]}
  block.0.attn.q: zeros
  block.0.attn.q_bias: zeros
  block.0.attn.k: zeros
  block.0.attn.v: zeros
  block.0.attn.out: {product: [[[sqrt(2), 3]], [[1], [2]]]}
"""
    with pytest.raises(InputError, match="only matrices can be multiplied"):
        parse_model(text)
    model = parse_model(text.replace('{product: ["@block.0.attn.q_bias"]}', "ones"))
    assert write(model.weights["block.0.attn.out"].data[0, 0]) == "√2 + 6"


def test_a_product_too_large_to_work_out_is_refused() -> None:
    column, row = [["1"]] * 2000, [["1"] * 2000]
    keys = {**NOTHING, "d_model": 1}
    with pytest.raises(InputError, match="too large a product") as caught:
        model_of({"embed.token": {"product": [column, row, column]}}, **keys)
    assert caught.value.found == "4,000,000"


def test_weights_cannot_be_written_to() -> None:
    tensor = open_model("tiny").weights["embed.token"]
    with pytest.raises(ValueError, match="read-only"):
        tensor.data[0, 0] = 3


def test_numbered_tokens_and_notes() -> None:
    model = parse_model(
        "vocabulary: {size: 3}\nnotes: [One., Two.]\ntext: t2 t0\nmodel: {d_model: 1, layers: 0}\n"
        "weights: {embed.token: ones}",
        "numbered.yaml",
    )
    assert model.vocabulary.tokens == ("t0", "t1", "t2")
    assert model.notes == ("One.", "Two.")
    assert (model.name, model.source) == ("numbered", "numbered.yaml")


def test_a_model_file_as_json_is_the_same_model() -> None:
    path = open_model("journey").source
    with open(path, encoding="utf-8") as file:
        tree = yaml.load(file, Loader=yaml.BaseLoader)
    again = parse_model(json.dumps(tree), "journey.json")
    first = open_model("journey")
    assert again.spec == first.spec
    assert all((again.weights[n].data == first.weights[n].data).all() for n in first.weights)

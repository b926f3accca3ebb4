"""What model files for makers mean: sparse weights, names of dimensions, score tables by rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import byhand
from byhand.expression import parse
from byhand.files import parse_model
from byhand.files.writing import write_model
from byhand.model import Model
from byhand.numbers.base import ABSENT
from calling import Outcome

X = ABSENT


def made(weights: dict[str, Any], vocabulary: Any = ("a", "b"), **keys: Any) -> Model:
    base = {"stream": ["here", "there"], "layers": 0}
    tree = {"vocabulary": vocabulary, "model": {**base, **keys}, "weights": weights}
    return parse_model(json.dumps(tree), "m.json")


def table(rule: Any, heads: int = 1, **attention: Any) -> list[Any]:
    """The score table (head, query, key) of a rule, for a context of four tokens."""
    model = made(
        {"embed.token": "zeros", "block.*.attn.q": "zeros", "block.*.attn.k": "zeros",
         "block.*.attn.v": "zeros", "block.*.attn.out": "zeros",
         "block.0.attn.score_table": rule},
        layers=1, context=4, mlp="none",
        attention={"heads": heads, "d_head": 1, "score_table": True, **attention},
    )  # fmt: skip
    found: list[Any] = model.weights["block.0.attn.score_table"].data.tolist()
    return found if heads > 1 else found[0]


# ------------------------------------------------------------------ entries


def test_entries_name_the_places_that_are_not_zero() -> None:
    model = made({"embed.token": {"entries": {"b,there": "1/2", "0,1": "sqrt(2)", "a,0": 3}}})
    assert model.weights["embed.token"].data.tolist() == [
        [3, parse("sqrt(2)")],
        [0, Fraction(1, 2)],
    ]


def test_all_other_entries_are_what_else_says() -> None:
    model = made({"embed.token": {"entries": {"b,here": 1}, "else": -1000}})
    assert model.weights["embed.token"].data.tolist() == [[-1000, -1000], [1, -1000]]


def test_a_numeral_is_the_token_where_tokens_are_numerals() -> None:
    model = made({"embed.token": {"entries": {"0,here": 7}}}, ["1", "0"])
    assert model.weights["embed.token"].data.tolist() == [[0, 0], [7, 0]]


def test_a_token_may_be_a_comma_or_a_blank() -> None:
    letters = {"kind": "characters", "tokens": [",", " ", "x"]}
    entries = {",,there": 1, " ,here": 2, " x , here ": 3}
    model = made({"embed.token": {"entries": entries}}, letters)
    assert model.weights["embed.token"].data.tolist() == [[0, 1], [2, 0], [3, 0]]


@pytest.mark.parametrize("layout", ["in_out", "out_in"])
def test_names_follow_the_layout(layout: str) -> None:
    place, turned = ("there,up", "up,there") if layout == "in_out" else ("up,there", "there,up")
    model = made(
        {"embed.token": "zeros", "block.0.mlp.hidden": {"entries": {place: 5}},
         "block.0.mlp.out": {"entries": {turned: 6}},
         "block.0.mlp.hidden_bias": {"entries": {"up": 7}},
         "block.0.mlp.out_bias": {"entries": {"here": 8}}},
        layers=1, attention="none", layout=layout, mlp={"units": ["down", "up"], "bias": True},
    )  # fmt: skip
    hidden, out = (model.weights[f"block.0.mlp.{name}"].data for name in ("hidden", "out"))
    assert (hidden if layout == "in_out" else hidden.T).tolist() == [[0, 0], [0, 5]]
    assert (out if layout == "in_out" else out.T).tolist() == [[0, 0], [0, 6]]
    assert model.weights["block.0.mlp.hidden_bias"].data.tolist() == [0, 7]
    assert model.weights["block.0.mlp.out_bias"].data.tolist() == [8, 0]


def test_a_model_made_in_python_may_give_places_as_tuples() -> None:
    model = byhand.make_model(
        {"stream": ["x", "y"], "layers": 0},
        {"embed.token": {"entries": {(0, 1): 4, ("no", "x"): 5}}},
        ["yes", "no"],
    )
    assert model.weights["embed.token"].data.tolist() == [[0, 4], [5, 0]]
    assert model.dimensions.stream == ("x", "y")


# ------------------------------------------------------------------ names


def test_names_are_kept_when_a_model_is_written() -> None:
    model = made(
        {"embed.token": "zeros", "block.*.mlp.hidden": "zeros", "block.*.mlp.out": "zeros"},
        layers=2, attention="none", mlp={"units": ["up"]},
        blocks={1: {"mlp": {"units": ["left", "right"]}}},
    )  # fmt: skip
    assert model.spec.d_model == 2
    assert [block.mlp.d_ff for block in model.spec.blocks if block.mlp] == [1, 2]
    assert model.dimensions.units == (("up",), ("left", "right"))
    again = parse_model(write_model(model))
    assert again.dimensions == model.dimensions
    assert again.spec.blocks == model.spec.blocks


# ------------------------------------------------------------------ score tables by rule


def test_each_word_masks_all_but_its_keys() -> None:
    assert table("self") == [[0, X, X, X], [X, 0, X, X], [X, X, 0, X], [X, X, X, 0]]
    assert table("first") == [[0, X, X, X]] * 4
    previous = table({"offsets": -1, "fallback": "self"})
    assert previous == [[0, X, X, X], [0, X, X, X], [X, 0, X, X], [X, X, 0, X]]


def test_offsets_and_keys_may_have_values_and_be_ranges() -> None:
    ln = parse("ln(10)")
    assert table({"offsets": {"0": 0, "-1": "ln(10)"}})[2] == [X, ln, 0, X]
    assert table({"offsets": {"-3..-2": 1, "-1..": 0}})[3] == [1, 1, 0, 0]
    assert table({"offsets": "..0"})[2] == [0, 0, 0, X]
    assert table({"keys": [0, "2.."]})[3] == [0, X, 0, 0]
    assert table({"keys": {"1": -5}, "else": 0})[3] == [0, -5, 0, 0]


def test_what_comes_later_is_masked_where_attention_looks_back_only() -> None:
    assert table({"keys": ".."})[1] == [0, 0, X, X]
    assert table({"keys": ".."}, causal=False)[1] == [0, 0, 0, 0]


def test_offsets_and_keys_together_name_what_both_do() -> None:
    rule = {"offsets": "-1..", "keys": {"0": 5, "1..2": 0}, "fallback": "first"}
    assert table(rule) == [[5, X, X, X], [5, 0, X, X], [X, 0, 0, X], [X, X, 0, X]]
    assert table({**rule, "else": 7})[3] == [7, 7, 0, 7]


def test_the_fallback_counts_the_keys_that_a_causal_query_sees() -> None:
    assert table({"keys": 1, "fallback": "self"})[0] == [0, X, X, X]
    assert table({"keys": 1, "fallback": "self"}, causal=False)[0] == [X, 0, X, X]


def test_each_head_may_have_a_rule_or_a_table_of_its_own() -> None:
    rows = [[1, 2, 3, 4]] * 4
    assert table(["self", rows, "zeros"], heads=3) == [table("self"), rows, [[0] * 4] * 4]


# ------------------------------------------------------------------ attention without queries


def looking(attention: dict[str, Any], weights: dict[str, Any]) -> Model:
    """A model whose stream is [token is a, what one head mixed of it]."""
    return made(
        {"embed.token": [[1, 0], [0, 0]], "block.0.attn.v": {"entries": {"here,0": 1}},
         "block.0.attn.out": {"entries": {"0,there": 1}}, **weights},
        layers=1, context=3, mlp="none", attention={"d_head": 1, **attention},
    )  # fmt: skip


def test_without_queries_the_table_alone_is_the_score() -> None:
    model = looking(
        {"queries": False, "score_table": True},
        {"block.0.attn.score_table": {"offsets": {"0": 0, "-1": "ln(3)"}}},
    )
    assert list(model.weights) == [
        "embed.token", "block.0.attn.v", "block.0.attn.score_table", "block.0.attn.out",
    ]  # fmt: skip
    trace = byhand.trace(model, "a b")
    assert [step.address for step in trace.plan][:4] == [
        "tokens", "embed.token", "block.0.attn.v", "block.0.attn.scores",
    ]  # fmt: skip
    assert trace["block.0.attn.weights"][0, 1].tolist() == [Fraction(3, 4), Fraction(1, 4)]


def test_without_a_table_every_key_has_the_same_share() -> None:
    model = looking({"queries": False}, {})
    weights = byhand.trace(model, "a b a")["block.0.attn.weights"]
    assert weights[0, 2].tolist() == [Fraction(1, 3)] * 3


def test_a_query_that_may_look_at_nothing_mixes_0() -> None:
    model = looking(
        {"queries": False, "score_table": True, "nothing": "zero"},
        {"block.0.attn.score_table": "previous"},
    )
    trace = byhand.trace(model, "a b a")
    assert trace["block.0.attn.weights"][0].tolist() == [[X, X, X], [1, X, X], [X, 1, X]]
    assert trace["block.0.attn.mixed"][0].tolist() == [[0], [1], [0]]


def test_queries_and_nothing_are_kept_when_a_model_is_written() -> None:
    model = looking(
        {"queries": False, "score_table": True, "nothing": "zero"},
        {"block.0.attn.score_table": "previous"},
    )
    assert parse_model(write_model(model), "m.yaml").spec.blocks == model.spec.blocks


# ------------------------------------------------------------------ words of the answer

FIRST = """\
name: first
vocabulary: ["0", "1"]
outputs: [even, odd, "1"]
text: 1 0
target: odd
model:
  stream: [bit, seen]
  context: 4
  layers: 1
  attention: {queries: false, score_table: true, d_head: 1}
  mlp: none
weights:
  embed.token: {entries: {"1,bit": 1}}
  block.0.attn.v: {entries: {"bit,0": 1}}
  block.0.attn.score_table: first
  block.0.attn.out: {entries: {"0,seen": 1}}
  head: {entries: {"seen,odd": 2, "seen,even": -1, "bit,1": 3}}
"""


def test_a_model_may_answer_with_words_of_its_own() -> None:
    model = parse_model(FIRST)
    assert (model.spec.vocab, model.spec.outputs, model.spec.tied) == (2, 3, False)
    assert model.outputs.tokens == ("even", "odd", "1")
    trace = byhand.trace(model)
    assert trace.plan["logits"].axes == ("pos", "outputs")
    assert trace["logits"].value.tolist() == [[-1, 2, 3], [-1, 2, 0]]
    assert [trace.answer(found.id or 0) for found in trace.next or ()] == ["1", "odd"]
    assert trace.target == 1
    assert repr(trace).endswith("next 'odd', proven>")
    assert byhand.count(model)["count.total"] == 4 + 2 + 2 + 6


def test_these_words_are_kept_when_a_model_is_written() -> None:
    model = parse_model(FIRST)
    again = parse_model(write_model(model))
    assert (again.outputs.tokens, again.spec.outputs, again.target) == (
        ("even", "odd", "1"), 3, "odd",
    )  # fmt: skip


def test_generation_goes_on_only_with_tokens_of_the_vocabulary() -> None:
    model = parse_model(FIRST)
    stopped = byhand.generate(model, "1 0", count=3)
    assert ("".join(c.text for c in stopped), stopped.ended) == (" odd", "answer")
    assert stopped.text == "1 0 odd"
    fed = byhand.generate(model, "1", count=2)
    assert [chosen.token for chosen in fed] == ["1", "1"]
    assert (fed.tokens, fed.ended) == ((1, 1, 1), "count")


def test_only_the_target_counts_where_the_text_cannot_say_what_should_come() -> None:
    model = parse_model(FIRST)
    trace = byhand.trace(model, losses=True)
    assert trace.targets == (-1, 1)
    with pytest.raises(byhand.errors.TextError, match="answers with words of its own"):
        byhand.trace(model, "0 1", losses=True)


def test_outputs_cannot_be_tied_to_the_embedding() -> None:
    with pytest.raises(byhand.errors.ModelFileError) as caught:
        parse_model(FIRST.replace("  mlp: none", "  mlp: none\n  head: {tied: true}"), "m.yaml")
    assert caught.value.where == "m.yaml:12: model.head.tied"
    assert caught.value.expected == "false, since the outputs are other words"


def test_a_target_must_be_a_word_of_the_answer() -> None:
    with pytest.raises(byhand.errors.InputError) as caught:
        parse_model(FIRST.replace("target: odd", 'target: "0"'), "m.yaml")
    assert caught.value.where == "m.yaml:5: target"


# ------------------------------------------------------------------ names and words, shown


def test_the_names_of_dimensions_stand_above_their_columns(
    byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = tmp_path / "first.yaml"
    file.write_text(FIRST, "utf-8")
    shown = byhand("trace", str(file), "--only", "embed.token", "--only", "logits").out
    assert "\n          bit   seen\n    0 1     1      0\n" in shown
    assert "  with W_head =        even   odd   1\n                bit" in shown
    assert "\n          even   odd       1\n    0 1     -1" in shown


def test_gradients_of_weights_have_the_names_of_both_sides(
    byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = tmp_path / "first.yaml"
    file.write_text(FIRST, "utf-8")
    shown = byhand("trace", str(file), "--backward", "--only", "grad.weight.head").out
    lines = [line.split() for line in shown.splitlines()]
    assert ["even", "odd", "1"] in lines
    assert ["bit", "0", "0", "0"] in lines
    assert any(line[:2] == ["√", "seen"] for line in lines)

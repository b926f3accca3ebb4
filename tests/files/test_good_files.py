"""What a good model file means: each way of writing an architecture or a weight, read back."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
import yaml

from byhand.errors import InputError
from byhand.expression import Expression, Number, Power, parse, write
from byhand.files import parse_model, parse_spec
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.spec import NO_NORM, BlockSpec, ModelSpec, NormSpec, RotarySpec, over_root

BASE: dict[str, Any] = {"d_model": 4, "layers": 1, "attention": {}, "mlp": {"d_ff": 3}}


def spec_of(**keys: Any) -> ModelSpec:
    """The spec of BASE with these keys of `model:`."""
    tree = {"vocabulary": ["a", "b"], "model": {**BASE, **keys}}
    return parse_spec(json.dumps(tree), "m.json")


def block_of(**keys: Any) -> BlockSpec:
    return spec_of(**keys).blocks[0]


def model_of(weights: dict[str, Any], **keys: Any) -> Model:
    """A model of one token and no blocks but for these keys; weights default to zeros."""
    tree = {"vocabulary": ["a", "b"], "model": {**BASE, **keys}, "weights": weights}
    return parse_model(json.dumps(tree), "m.json")


# ------------------------------------------------------------------------------- architecture


def test_what_is_left_out_is_what_the_reference_says() -> None:
    spec = spec_of()
    assert spec == ModelSpec(
        name="m",
        vocab=2,
        d_model=4,
        context=None,
        blocks=spec.blocks,
        position="none",
        embed_scale=None,
        final_norm=NO_NORM,
        tied=True,
        head_bias=False,
        layout="in_out",
    )
    attention, mlp = spec.blocks[0].attention, spec.blocks[0].mlp
    assert attention is not None
    assert mlp is not None
    assert (attention.heads, attention.kv_heads, attention.d_head) == (1, 1, 4)
    assert attention.scale == over_root(4)
    assert attention.causal
    assert attention.out
    assert not attention.out_bias
    assert (mlp.d_ff, mlp.activation, mlp.gated) == (3, "relu", False)
    assert spec.blocks[0].attn_norm == spec.blocks[0].mlp_norm == NO_NORM


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("none", NO_NORM),
        ("layernorm", NormSpec("layernorm", Fraction(0), gain=True, bias=True)),
        ("rmsnorm", NormSpec("rmsnorm", Fraction(0), gain=True, bias=False)),
        ({"eps": "1e-5"}, NormSpec("layernorm", Fraction(1, 100_000))),
        ({"kind": "rmsnorm", "eps": "1/3", "gain": False},
         NormSpec("rmsnorm", Fraction(1, 3), gain=False, bias=False)),
        ({"bias": False}, NormSpec("layernorm", gain=True, bias=False)),
    ],
)  # fmt: skip
def test_norms(norm: object, expected: NormSpec) -> None:
    spec = spec_of(norm=norm)
    assert spec.blocks[0].attn_norm == spec.blocks[0].mlp_norm == expected
    assert spec.blocks[0].norm_place == "pre"
    assert spec.final_norm == expected  # where pre, and not given


def test_a_final_norm_is_none_after_post_norms_and_otherwise_what_it_says() -> None:
    assert spec_of(norm={"place": "post"}).final_norm == NO_NORM
    assert spec_of(norm={"place": "post"}).blocks[0].norm_place == "post"
    assert spec_of(norm={"place": "post"}, final_norm="rmsnorm").final_norm.kind == "rmsnorm"
    assert spec_of(norm="layernorm", final_norm="none").final_norm == NO_NORM


def test_a_sublayer_can_have_a_norm_of_its_own() -> None:
    block = block_of(
        norm={"eps": "1/2"},
        attention={"norm": {"gain": False}},
        mlp={"d_ff": 3, "norm": "none"},
    )
    assert block.attn_norm == NormSpec("layernorm", Fraction(1, 2), gain=False, bias=True)
    assert block.mlp_norm == NO_NORM


def test_q_and_k_norms() -> None:
    attention = block_of(attention={"q_norm": "rmsnorm", "k_norm": {"eps": "1/4"}}).attention
    assert attention is not None
    assert attention.q_norm == NormSpec("rmsnorm", bias=False)
    assert attention.k_norm == NormSpec("layernorm", Fraction(1, 4))


@pytest.mark.parametrize(
    ("position", "stream", "rotary", "alibi"),
    [
        ("none", "none", None, False),
        ("sinusoidal", "sinusoidal", None, False),
        ("learned", "learned", None, False),
        ("alibi", "none", None, True),
        ("rope", "none", RotarySpec(4), False),
        ({"kind": "rope", "base": "500000", "width": 2, "pairing": "interleaved"},
         "none", RotarySpec(2, Fraction(500_000), "interleaved"), False),
        ({"kind": "rope", "angles": "given"}, "none", RotarySpec(4, given=True), False),
        (["learned", "alibi"], "learned", None, True),
        (["rope", {"kind": "sinusoidal"}], "sinusoidal", RotarySpec(4), False),
    ],
)  # fmt: skip
def test_positions(position: Any, stream: str, rotary: RotarySpec | None, alibi: bool) -> None:
    spec = spec_of(position=position, context=5)
    attention = spec.blocks[0].attention
    assert attention is not None
    assert spec.position == stream
    assert attention.rotary == rotary
    assert attention.alibi == alibi


def test_the_base_of_sinusoidal_positions() -> None:
    assert spec_of(position={"kind": "sinusoidal", "base": "100"}).position_base == 100


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("none", None),
        ("1", None),
        ("1/8", Number(Fraction(1, 8))),
        ("1/sqrt(7)", parse("1/sqrt(7)")),
    ],
)
def test_scales(scale: str, expected: Expression | None) -> None:
    attention = block_of(attention={"scale": scale}).attention
    assert attention is not None
    assert attention.scale == expected
    assert spec_of(embed_scale=scale).embed_scale == expected


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        (False, (False, False, False, False)),
        (True, (True, True, True, True)),
        ({"q": True, "v": True}, (True, False, True, False)),
        ({"out": True}, (False, False, False, True)),
    ],
)
def test_attention_biases(bias: object, expected: tuple[bool, ...]) -> None:
    a = block_of(attention={"bias": bias}).attention
    assert a is not None
    assert (a.q_bias, a.k_bias, a.v_bias, a.out_bias) == expected


def test_all_biases_are_those_that_can_be() -> None:
    block = block_of(attention={"bias": True, "out": False}, mlp={"d_ff": 3, "bias": True})
    assert block.attention is not None
    assert not block.attention.out_bias
    assert block.mlp is not None
    assert (block.mlp.hidden_bias, block.mlp.gate_bias, block.mlp.out_bias) == (True, False, True)
    gated = block_of(mlp={"d_ff": 3, "bias": True, "gated": True}).mlp
    assert gated is not None
    assert gated.gate_bias


def test_grouped_heads_of_any_width_and_packing() -> None:
    attention = block_of(
        attention={"heads": 6, "kv_heads": 2, "d_head": 5, "packed": "concatenated"}
    )
    a = attention.attention
    assert a is not None
    assert (a.q_width, a.kv_width, a.packed) == (30, 10, "concatenated")


def test_sublayers_can_be_left_out_and_run_in_parallel() -> None:
    assert block_of(attention="none").attention is None
    assert block_of(mlp="none").mlp is None
    assert block_of(residual="parallel").parallel
    assert not block_of(residual="serial").parallel


def test_a_layer_can_differ_in_anything() -> None:
    spec = spec_of(
        layers=4,
        norm={"eps": "1/2"},
        position="rope",
        blocks={
            "1": {"mlp": {"activation": "gelu"}, "position": "none"},
            "2": {"mlp": "none", "norm": {"gain": False}, "attention": {"heads": 2}},
            "3": {"position": ["alibi", {"kind": "rope", "width": 2}], "residual": "parallel"},
        },
    )
    plain, first, second, third = spec.blocks
    assert plain.mlp is not None
    assert plain.attention is not None
    assert first.mlp is not None
    assert first.attention is not None
    assert (first.mlp.activation, first.mlp.d_ff) == ("gelu", 3)
    assert (plain.attention.rotary, first.attention.rotary) == (RotarySpec(4), None)
    assert second.mlp is None
    assert second.attention is not None
    assert second.attention.scale == over_root(2)
    assert second.attn_norm == NormSpec("layernorm", Fraction(1, 2), gain=False, bias=True)
    assert third.attention is not None
    assert third.attention.alibi
    assert third.attention.rotary == RotarySpec(2)
    assert third.parallel
    assert spec.final_norm == NormSpec("layernorm", Fraction(1, 2))


def test_the_head_and_the_layout() -> None:
    spec = spec_of(head={"tied": False, "bias": True}, layout="out_in")
    assert not spec.tied
    assert spec.head_bias
    assert spec.layout == "out_in"


# ------------------------------------------------------------------------------- weights

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

"""The parameter inventory, to the digit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from byhand.counting import count
from byhand.errors import AddressError
from byhand.files import parse_model, parse_spec
from byhand.models import builtin_names, open_model
from byhand.parameters import parameters

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def spec_with(model: str) -> str:
    return f"vocabulary: {{size: 10}}\nmodel: {{{model}}}\n"


def formulas(model: str) -> dict[str, str]:
    inventory = count(parse_spec(spec_with(model)))
    return {
        line.address.removeprefix("count."): f"{line.formula} = {line.numbers} = {line.count}"
        for line in (*inventory.lines, *inventory.buffers)
    }


def test_minigpt_has_103680_parameters_and_103040_without_biases() -> None:
    model = open_model("minigpt-init")
    inventory = count(model.spec, model.weights)
    assert inventory["count.total"] == 103_680
    assert inventory["count.without_biases"] == 103_040
    assert inventory["count.norms"] == 5 * 128
    assert inventory["count.unique"] == 103_680
    assert inventory["count.buffers"] == 0
    assert inventory.layers == (49_728, 49_728)
    assert inventory["count.block.1"] == 49_728
    assert inventory.tied


def test_minigpt_by_component() -> None:
    inventory = count(open_model("minigpt-init").spec)
    found = [
        (g.line.address, g.line.formula, g.line.count, g.layers, g.total) for g in inventory.groups
    ]
    assert found == [
        ("count.embedding", "vocab·d", 4_096, (), 4_096),
        ("count.block.0.norm", "4·d", 256, (0, 1), 512),
        ("count.block.0.attention", "4·d²", 16_384, (0, 1), 32_768),
        ("count.block.0.mlp", "2·d·d_ff", 32_768, (0, 1), 65_536),
        ("count.block.0.mlp.bias", "d_ff + d", 320, (0, 1), 640),
        ("count.final.norm", "2·d", 128, (), 128),
    ]
    assert sum(group.total for group in inventory.groups) == 103_680
    assert inventory.groups[2].line.numbers == "4·64²"
    assert inventory.groups[2].line.symbols == (("d", 64),)


@pytest.mark.parametrize(
    ("name", "total", "without_biases"),
    [("tiny", 38, 38), ("journey", 160, 160), ("abc-walkthrough", 87, 66)],
)
def test_the_other_built_in_models(name: str, total: int, without_biases: int) -> None:
    inventory = count(open_model(name).spec)
    assert (inventory.total, inventory.without_biases) == (total, without_biases)


def test_grouped_heads_of_another_width() -> None:
    found = formulas(
        "d_model: 8, layers: 1, mlp: none, "
        "attention: {heads: 4, kv_heads: 2, d_head: 3, bias: true}"
    )
    assert found["block.0.attention"] == (
        "2·d·heads·d_head + 2·d·kv_heads·d_head = 2·8·4·3 + 2·8·2·3 = 288"
    )
    assert found["block.0.attention.bias"] == (
        "heads·d_head + 2·kv_heads·d_head + d = 4·3 + 2·2·3 + 8 = 32"
    )


def test_packed_matrices_and_q_norms() -> None:
    found = formulas(
        "d_model: 4, layers: 1, mlp: none, attention: {heads: 2, packed: concatenated, "
        "q_norm: rmsnorm, k_norm: rmsnorm}, norm: layernorm, final_norm: none"
    )
    assert found["block.0.attention"] == "4·d² = 4·4² = 64"
    assert found["block.0.norm"] == "2·d + 2·d_head = 2·4 + 2·2 = 12"
    uneven = formulas(
        "d_model: 4, layers: 1, mlp: none, attention: {heads: 2, kv_heads: 1, packed: concatenated}"
    )
    assert uneven["block.0.attention"] == (
        "d·(d + 2·kv_heads·d_head) + d² = 4·(4 + 2·1·2) + 4² = 48"
    )


def test_gated_mlp_untied_head_and_learned_positions() -> None:
    found = formulas(
        "d_model: 4, layers: 1, context: 7, position: learned, attention: none, "
        "mlp: {d_ff: 6, gated: true, bias: true}, head: {tied: false, bias: true}, layout: out_in"
    )
    assert found == {
        "embedding": "vocab·d = 10·4 = 40",
        "position": "context·d = 7·4 = 28",
        "block.0.mlp": "3·d·d_ff = 3·4·6 = 72",
        "block.0.mlp.bias": "2·d_ff + d = 2·6 + 4 = 16",
        "head": "vocab·d = 10·4 = 40",
        "head.bias": "vocab = 10 = 10",
    }


def test_buffers_stand_apart() -> None:
    text = spec_with(
        "d_model: 4, layers: 1, context: 3, position: [alibi, {kind: rope, angles: given}], "
        "attention: {heads: 2, score_table: true}, mlp: none"
    )
    inventory = count(parse_spec(text))
    assert [(line.address, line.formula, line.count) for line in inventory.buffers] == [
        ("count.block.0.attention.buffer", "rope_width/2 + heads + context²·heads", 21)
    ]
    assert inventory.buffers[0].numbers == "2/2 + 2 + 3²·2"
    assert inventory["count.buffers"] == 21
    assert inventory["count.total"] == 40 + 4 * 16


def test_layers_that_differ_are_not_put_together() -> None:
    inventory = count(
        parse_spec(
            spec_with(
                "d_model: 4, layers: 3, attention: none, mlp: {d_ff: 6}, "
                "blocks: {1: {mlp: {d_ff: 8}}}"
            )
        )
    )
    mlps = [(g.line.count, g.layers) for g in inventory.groups if g.line.part == "mlp"]
    assert mlps == [(48, (0, 2)), (64, (1,))]


def test_shared_tensors_are_counted_once() -> None:
    model = parse_model(
        spec_with("d_model: 2, layers: 2, attention: {}, mlp: none")
        + "weights:\n  embed.token: zeros\n  block.0.attn.q: identity\n"
        '  block.*.attn.k: "@block.*.attn.q.T"\n  block.1.attn.q: "@block.0.attn.q"\n'
        "  block.*.attn.v: zeros\n  block.*.attn.out: zeros\n",
        "shared.yaml",
    )
    inventory = count(model.spec, model.weights)
    assert inventory["count.total"] == 20 + 2 * 16
    assert inventory["count.unique"] == 20 + 4 + 2 * 8
    assert inventory.shared == (
        ("block.0.attn.k", "block.0.attn.q"),
        ("block.1.attn.q", "block.0.attn.q"),
        ("block.1.attn.k", "block.0.attn.q"),
    )
    assert count(model.spec)["count.unique"] == inventory["count.total"]


def test_every_line_is_the_sum_of_its_tensors() -> None:
    for name in builtin_names():
        spec = open_model(name).spec
        sizes = {p.name: p.size for p in parameters(spec)}
        inventory = count(spec)
        for line in inventory.lines:
            assert line.count == sum(sizes[tensor] for tensor in line.names)
            assert line.count == eval(line.numbers.replace("·", "*").replace("²", "**2"))
        assert inventory.total == sum(line.count for line in inventory.lines)


def test_an_unknown_address_is_refused_with_the_nearest() -> None:
    inventory = count(open_model("tiny").spec)
    with pytest.raises(AddressError) as caught:
        inventory["count.totl"]
    assert (caught.value.hint or "").startswith("did you mean count.total")
    assert set(inventory.numbers) >= {"count.total", "count.block.0", "count.block.0.norm"}


def test_the_different_numbers_of_the_weights_are_counted_zeros_apart() -> None:
    import byhand

    held = byhand.count(EXAMPLES / "thermometer.yaml").held
    assert held is not None
    assert (held.whole.different, held.whole.zeros, held.whole.entries) == (18, 182, 241)
    tensors = {each.name: (each.different, each.zeros) for each in held.tensors}
    assert tensors["embed.token"] == (9, 65)  # the digits 1 to 9, whose 1 is the minus's too
    assert tensors["block.0.mlp.hidden"] == (3, 6)  # 1, exp(80) and -exp(80)
    assert tensors["block.0.attn.score_table"] == (0, 11)  # masked entries are no numbers
    assert byhand.count(EXAMPLES / "thermometer.yaml")["count.different"] == 18


def test_a_float_and_a_fraction_of_one_value_are_one_number() -> None:
    import numpy as np

    from byhand.distinct import held_by
    from byhand.weights import Tensor, Weights

    halves = np.array([Fraction(1, 2), Fraction(1, 3), Fraction(0)], dtype=object)
    tensors = {
        "a": Tensor("a", np.array([[0.5, 0.25], [0.0, 0.5]], dtype=np.float32)),
        "b": Tensor("b", halves),
        "c": Tensor("c", halves, same_as="b"),
    }
    held = held_by(Weights(tensors))
    assert [(each.different, each.zeros) for each in held.tensors] == [(2, 1), (2, 1), (2, 1)]
    assert (held.whole.different, held.whole.zeros, held.whole.entries) == (3, 2, 7)


def test_of_an_architecture_alone_no_numbers_are_counted() -> None:
    inventory = count(open_model("tiny").spec)
    assert inventory.held is None
    assert "count.different" not in inventory.numbers

"""How a number comes about: the line a person would write, whose leaves are what its step reads."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from flint import ctx

from byhand import forward
from byhand.expression import Entry, Name, leaves, parse, write
from byhand.plan import WEIGHT, Plan
from byhand.spec import (
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.working import Working, activation
from oracles.arb_pass import BITS, ArbPass, ball_of
from oracles.architectures import Case, spread

CASES = tuple(spread(12, seed=4, among=3))


def working(spec: ModelSpec, length: int, **more: Any) -> Working:
    plan = forward.plan(spec, length, target=True, **more)
    return Working(plan, {"tokens": (2, 0, 1)[:length], "target": 1}, masked_by(plan))


def masked_by(plan: Plan) -> Any:
    def absent(address: str, index: tuple[int, ...]) -> bool:
        step = plan[address]
        if step.op == "softmax":
            return absent(step.inputs["x"], index)
        return step.op == "scores" and not step.attributes["mask"][index[1]][index[2]]

    return absent


def line(lines: Working, address: str, *index: int) -> str:
    tree = lines.of(address, index)
    assert tree is not None
    return write(tree)


def model(attention: AttentionSpec | None = None, mlp: MlpSpec | None = None, **more: Any) -> Any:
    norm = more.pop("norm", NO_NORM)
    settings: dict[str, Any] = {"vocab": 3, "d_model": 2, "context": 4} | more
    blocks = (BlockSpec(attention, mlp, norm, norm),)
    return ModelSpec("model", blocks=blocks, **settings)


ONE_HEAD = AttentionSpec(heads=1, d_head=2, kv_heads=1, scale=over_root(2))


def test_a_score_is_its_dot_product_over_the_root() -> None:
    lines = working(model(ONE_HEAD), 2)
    at = "block.0.attn"
    assert line(lines, f"{at}.scores", 0, 1, 0) == (
        f"({at}.q[0,1,0]·{at}.k[0,0,0] + {at}.q[0,1,1]·{at}.k[0,0,1])/√2"
    )


def test_a_score_with_slope_and_table_says_so() -> None:
    attention = AttentionSpec(
        heads=2, d_head=1, kv_heads=1, alibi=True, score_table=True, causal=False
    )
    lines = working(model(attention), 2, positions=[1, 3])
    at = "block.0.attn"
    assert line(lines, f"{at}.scores", 1, 1, 0) == (
        f"{at}.q[1,1,0]·{at}.k[0,0,0] - weight.{at}.slopes[1]·2 + weight.{at}.score_table[1,3,1]"
    )


def test_a_weight_is_its_power_over_the_sum_of_the_keys_it_may_see() -> None:
    lines = working(model(ONE_HEAD), 3)
    s = "block.0.attn.scores"
    assert line(lines, "block.0.attn.weights", 0, 1, 0) == (
        f"e^{s}[0,1,0]/(e^{s}[0,1,0] + e^{s}[0,1,1])"
    )
    assert lines.of("block.0.attn.weights", (0, 1, 2)) is None


def test_a_mixture_leaves_out_what_is_masked() -> None:
    lines = working(model(ONE_HEAD), 3)
    at = "block.0.attn"
    assert line(lines, f"{at}.mixed", 0, 0, 1) == f"{at}.weights[0,0,0]·{at}.v[0,0,1]"


def test_query_heads_share_key_heads_in_neighbouring_groups() -> None:
    lines = working(model(AttentionSpec(heads=4, d_head=1, kv_heads=2, scale=None)), 1)
    at = "block.0.attn"
    keys = [line(lines, f"{at}.scores", head, 0, 0).partition("·")[2] for head in range(4)]
    assert keys == [f"{at}.k[{kv},0,0]" for kv in (0, 0, 1, 1)]
    values = [line(lines, f"{at}.mixed", head, 0, 0).partition("·")[2] for head in range(4)]
    assert values == [f"{at}.v[{kv},0,0]" for kv in (0, 0, 1, 1)]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("in_out", "x[0,0]·W[0,1] + x[0,1]·W[1,1]"),
        ("out_in", "x[0,0]·W[1,0] + x[0,1]·W[1,1]"),
    ],
)
def test_a_matrix_is_read_as_its_model_writes_it(layout: str, expected: str) -> None:
    lines = working(model(None, MlpSpec(2), layout=layout), 1)
    found = line(lines, "block.0.mlp.hidden", 0, 1)
    assert found.replace("embed.token", "x").replace("weight.block.0.mlp.hidden", "W") == expected


def test_packed_columns_are_cut_by_kind_or_by_head() -> None:
    def columns(packed: str) -> list[str]:
        attention = AttentionSpec(heads=2, d_head=1, kv_heads=2, packed=packed)
        lines = working(model(attention), 1)
        return [line(lines, f"block.0.attn.{n}", h, 0, 0) for n in "qkv" for h in range(2)]

    qkv = "block.0.attn.qkv"
    assert columns("concatenated") == [f"{qkv}[0,{c}]" for c in (0, 1, 2, 3, 4, 5)]
    assert columns("per_head") == [f"{qkv}[0,{c}]" for c in (0, 3, 1, 4, 2, 5)]


@pytest.mark.parametrize(("pairing", "partner"), [("half", 2), ("interleaved", 1)])
def test_a_rotation_pairs_entries_half_way_or_side_by_side(pairing: str, partner: int) -> None:
    attention = AttentionSpec(heads=1, d_head=5, kv_heads=1, rotary=RotarySpec(4, pairing=pairing))
    lines = working(model(attention), 2)
    q, rotated = "block.0.attn.q", "block.0.attn.q_rotated"
    assert line(lines, rotated, 0, 1, 0) == (
        f"{q}[0,1,0]·cos(1·10000^0) - {q}[0,1,{partner}]·sin(1·10000^0)"
    )
    assert line(lines, rotated, 0, 1, partner) == (
        f"{q}[0,1,0]·sin(1·10000^0) + {q}[0,1,{partner}]·cos(1·10000^0)"
    )
    assert line(lines, rotated, 0, 1, 4) == f"{q}[0,1,4]"  # beyond the width nothing turns


def test_a_norm_shows_eps_under_the_root() -> None:
    norm = NormSpec("layernorm", eps=Fraction(1, 3), gain=True, bias=True)
    lines = working(model(ONE_HEAD, norm=norm), 1)
    at = "block.0.attn.norm"
    assert line(lines, f"{at}.mean", 0) == "(embed.token[0,0] + embed.token[0,1])/2"
    assert line(lines, f"{at}.centered", 0, 1) == f"embed.token[0,1] - {at}.mean[0]"
    assert line(lines, f"{at}.variance", 0) == f"({at}.centered[0,0]^2 + {at}.centered[0,1]^2)/2"
    assert line(lines, f"{at}.std", 0) == f"√({at}.variance[0] + 1/3)"
    assert line(lines, f"{at}.normalized", 0, 1) == f"{at}.centered[0,1]/{at}.std[0]"
    assert line(lines, f"{at}.out", 0, 1) == (
        f"{at}.normalized[0,1]·weight.{at}.gain[1] + weight.{at}.bias[1]"
    )


def test_the_loss_is_minus_the_logarithm_of_the_target_s_share() -> None:
    lines = working(model(ONE_HEAD), 3)
    assert line(lines, "loss", 0) == "-ln(probs[2,1])"


def test_what_is_given_or_chosen_has_no_working() -> None:
    lines = working(model(ONE_HEAD), 2)
    assert lines.of("tokens", (0,)) is None
    assert lines.of("next", (0,)) is None
    assert lines.of("target", ()) is None


def test_an_alias_has_the_working_of_its_step() -> None:
    lines = working(model(ONE_HEAD), 2)
    assert lines.of("stream.1", (0, 0)) == lines.of("block.0.attn.add", (0, 0))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_leaves_are_entries_that_the_step_reads_and_none_is_masked(number: int) -> None:
    case: Case = CASES[number]
    oracle = ArbPass(case.plan(), case.weights, case.tokens, case.target)
    for address, entries in oracle.values.items():
        read: set[str] = set()
        for index in entries:
            tree = oracle.working.of(address, index)
            assert (tree is None) == oracle.absent(address, index)
            for leaf in leaves(tree) if tree else ():
                if isinstance(leaf, Entry):
                    read.add(leaf.address)
                    shape = oracle.working.shape(leaf.address)
                    assert all(0 <= i < n for i, n in zip(leaf.index, shape, strict=True)), leaf
                elif isinstance(leaf, Name):
                    assert leaf.text in ("e", "pi")
        wanted = {r for r in oracle.plan[address].reads if r not in ("tokens", "target")}
        if oracle.plan.length == 1:  # at position 0 a slope is multiplied by nothing but 0
            wanted |= read
        assert read == wanted


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_line_of_working_reads_back_to_the_same_number(number: int) -> None:
    case = CASES[number]
    oracle = ArbPass(case.plan(), case.weights, case.tokens, case.target)
    with ctx.workprec(BITS):
        for address, entries in oracle.values.items():
            for index, ball in entries.items():
                tree = oracle.working.of(address, index)
                if tree is None or oracle.plan[address].op == "normalize":
                    continue
                assert ball is not None
                assert ball_of(parse(write(tree)), oracle.leaf).overlaps(ball), write(tree)


def test_head_outputs_and_the_bias_add_up_to_the_output() -> None:
    seen = 0
    for case in CASES:
        oracle = ArbPass(case.plan(), case.weights, case.tokens, case.target)
        for step in oracle.plan:
            if step.op != "head_outputs":
                continue
            seen += 1
            heads, at = step.shape[0], step.address.removesuffix("head_out") + "out"
            biases = oracle.weights.get(at + "_bias")
            with ctx.workprec(BITS):
                for (position, column), out in oracle.values[at].items():
                    parts = [
                        oracle.values[step.address][head, position, column] for head in range(heads)
                    ]
                    total = sum(part for part in parts if part is not None)
                    if biases is not None:
                        bias = biases.data[column]
                        total = total + ball_of(parse(str(bias)))
                    assert out is not None
                    assert out.overlaps(total)
    assert seen > 5


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", "relu(x[0])"),
        ("gelu", "(1/2)·x[0]·(1 + erf(x[0]/√2))"),
        ("gelu_tanh", "(1/2)·x[0]·(1 + tanh(√(2/π)·(x[0] + (8943/200000)·x[0]^3)))"),
        ("silu", "x[0]/(1 + e^(-x[0]))"),
        ("identity", "x[0]"),
    ],
)
def test_an_activation_is_written_out(kind: str, expected: str) -> None:
    tree = activation(kind, Entry("x", (0,)))
    assert parse(write(tree)) == parse(expected)


def test_a_weight_has_the_shape_of_its_parameter() -> None:
    lines = working(model(ONE_HEAD), 2)
    assert lines.shape(WEIGHT + "embed.token") == (3, 2)
    assert lines.shape("stream.1") == (2, 2)

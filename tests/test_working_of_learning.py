"""How a gradient comes about: the line a person writes, whose leaves are what its step reads."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from flint import ctx

from byhand import backward, forward, optimizer
from byhand.document.media.xlsx.cells import Cell
from byhand.document.media.xlsx.formulas import formula
from byhand.expression import Entry, Name, leaves, parse, write
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
from byhand.working import Working, slope
from oracles.arb_pass import BITS, NOTHING_OVER_NOTHING, ball_of
from oracles.training import lessons

LESSONS = list(lessons(8, seed=4))
GIVEN = {"tokens": (2, 0, 2), "targets": (0, -1, 1), "target": 1}
ONE_HEAD = AttentionSpec(heads=1, d_head=2, kv_heads=1, scale=over_root(2))


def working(attention: AttentionSpec | None = None, mlp: MlpSpec | None = None, **more: Any) -> Any:
    norm = more.pop("norm", NO_NORM)
    blocks = (BlockSpec(attention, mlp, norm, norm),)
    spec = ModelSpec("model", vocab=3, d_model=2, context=4, blocks=blocks, **more)
    plan = backward.adjoint(forward.plan(spec, 3, losses=True))

    def absent(address: str, index: tuple[int, ...]) -> bool:
        if address not in plan.known:  # a weight, or a step of an optimizer
            return False
        if address == "losses":
            return GIVEN["targets"][index[0]] < 0  # type: ignore[index]
        step = plan[address]
        hidden = step.op in ("scores", "softmax", "softmax_back")
        return hidden and index[2] > index[1]

    return Working(plan, GIVEN, absent)


def line(lines: Any, address: str, *index: int) -> str:
    tree = lines.of(address, index)
    assert tree is not None
    return write(tree)


def test_the_losses_that_count_are_averaged() -> None:
    lines = working(ONE_HEAD)
    assert line(lines, "losses", 2) == "-ln(probs[2,1])"
    assert lines.of("losses", (1,)) is None
    assert line(lines, "mean_loss", 0) == "(losses[0] + losses[2])/2"


def test_the_gradient_of_a_logit_is_its_probability_less_1_at_the_target() -> None:
    lines = working(ONE_HEAD)
    assert line(lines, "grad.logits", 0, 0) == "(probs[0,0] - 1)/2"
    assert line(lines, "grad.logits", 0, 1) == "probs[0,1]/2"
    assert line(lines, "grad.logits", 1, 0) == "0"  # does not count


def test_a_weight_gets_its_inputs_times_the_gradients_of_its_output() -> None:
    lines = working(ONE_HEAD)
    q, x = "grad.block.0.attn.q", "embed.token"
    assert line(lines, "grad.weight.block.0.attn.q", 0, 1) == (
        f"{x}[0,0]·{q}[0,0,1] + {x}[1,0]·{q}[0,1,1] + {x}[2,0]·{q}[0,2,1]"
    )


def test_a_row_of_a_table_gets_the_gradients_of_the_positions_that_took_it() -> None:
    lines = working(ONE_HEAD)
    table, x = "grad.weight.embed.token.via.embed.token", "grad.embed.token"
    assert line(lines, table, 2, 0) == f"{x}[0,0] + {x}[2,0]"
    assert line(lines, table, 1, 0) == "0"


def test_a_score_s_gradient_loses_the_mean_of_its_row() -> None:
    lines = working(ONE_HEAD)
    at = "block.0.attn"
    assert line(lines, f"grad.{at}.weights.dot", 0, 1) == (
        f"{at}.weights[0,1,0]·grad.{at}.weights[0,1,0] + "
        f"{at}.weights[0,1,1]·grad.{at}.weights[0,1,1]"
    )
    assert line(lines, f"grad.{at}.scores", 0, 1, 0) == (
        f"{at}.weights[0,1,0]·(grad.{at}.weights[0,1,0] - grad.{at}.weights.dot[0,1])"
    )
    assert lines.of(f"grad.{at}.scores", (0, 0, 1)) is None


def test_queries_and_keys_get_each_other_over_the_root() -> None:
    lines = working(ONE_HEAD)
    at, s = "block.0.attn", "grad.block.0.attn.scores"
    assert line(lines, f"grad.{at}.q", 0, 1, 0) == (
        f"({s}[0,1,0]·{at}.k[0,0,0] + {s}[0,1,1]·{at}.k[0,1,0])/√2"
    )
    assert line(lines, f"grad.{at}.k", 0, 2, 1) == f"{s}[0,2,2]·{at}.q[0,2,1]/√2"


def test_a_turn_is_undone_by_the_turn_back() -> None:
    attention = AttentionSpec(heads=1, d_head=2, kv_heads=1, rotary=RotarySpec(2))
    lines = working(attention)
    q, turned = "grad.block.0.attn.q", "grad.block.0.attn.q_rotated"
    assert line(lines, q, 0, 1, 0) == (
        f"{turned}[0,1,0]·cos(-1·10000^0) - {turned}[0,1,1]·sin(-1·10000^0)"
    )


def test_a_norm_is_gone_back_through_line_by_line() -> None:
    lines = working(ONE_HEAD, norm=NormSpec("layernorm", eps=Fraction(1, 3), gain=True, bias=True))
    at = "block.0.attn.norm"
    g = f"grad.{at}"
    assert line(lines, f"grad.weight.{at}.bias", 1) == " + ".join(
        f"{g}.out[{i},1]" for i in range(3)
    )
    assert line(lines, f"{g}.std", 0) == f"-{g}.normalized.dot[0]/{at}.std[0]"
    assert line(lines, f"{g}.variance", 0) == f"{g}.std[0]/(2·{at}.std[0])"
    via = f"{g}.centered.via.{at}"
    assert line(lines, f"{via}.normalized", 0, 1) == f"{g}.normalized[0,1]/{at}.std[0]"
    assert line(lines, f"{via}.variance", 0, 1) == f"{g}.variance[0]·2·{at}.centered[0,1]/2"
    assert line(lines, f"{g}.mean", 0) == f"-({g}.centered[0,0] + {g}.centered[0,1])"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", "step(x[0])"),
        ("identity", "1"),
        ("silu", "1/(1 + e^(-x[0]))·(1 + x[0]·(1 - 1/(1 + e^(-x[0]))))"),
        ("gelu", "(1/2)·(1 + erf(x[0]/√2)) + x[0]·e^(-x[0]^2/2)/√(2·π)"),
    ],
)
def test_a_slope_is_written_out(kind: str, expected: str) -> None:
    assert parse(write(slope(kind, Entry("x", (0,))))) == parse(expected)


def test_a_spreadsheet_writes_the_slope_of_relu() -> None:
    tree = slope("relu", Entry("x", (2,)))
    assert formula(tree, lambda entry: Cell("", 4, entry.index[0])) == "IF(C5>0,1,0)"


def test_an_optimizer_s_lines_are_those_of_a_textbook() -> None:
    lines = working(ONE_HEAD)
    rule = optimizer.Rule("adamw", clip=Fraction(1, 2), decay=Fraction(1, 10), step=2)
    steps = Working(optimizer.update(lines.plan, rule), GIVEN, lines.absent)
    w, at = "block.0.attn.q", (0, 1)
    assert line(steps, "update.clip", 0) == "1 - relu(1 - (1/2)/(update.norm[0] + 1/1000000))"
    assert line(steps, f"update.clipped.{w}", *at) == f"grad.weight.{w}[0,1]·update.clip[0]"
    assert line(steps, f"update.v.{w}", *at) == (
        f"999/1000·before.v.{w}[0,1] + 1/1000·update.clipped.{w}[0,1]^2"
    )
    assert line(steps, f"update.root.{w}", *at) == f"√(update.v_hat.{w}[0,1]) + 1/100000000"
    assert line(steps, f"update.weight.{w}", *at) == (
        f"99/100·weight.{w}[0,1] - 1/10·update.change.{w}[0,1]"
    )


@pytest.mark.parametrize("number", range(len(LESSONS)))
def test_the_leaves_are_entries_that_the_step_reads_and_its_line_reads_back(number: int) -> None:
    oracle = LESSONS[number].oracle()
    with ctx.workprec(BITS):
        for address, entries in oracle.values.items():
            reads = oracle.plan[address].reads
            for index, ball in entries.items():
                tree = oracle.working.of(address, index)
                assert (tree is None) == (ball is None)
                if tree is None or ball is None:
                    continue
                for leaf in leaves(tree):
                    if isinstance(leaf, Entry):
                        assert leaf.address in reads
                        assert not oracle.absent(leaf.address, leaf.index)
                    elif isinstance(leaf, Name):
                        assert leaf.text in ("e", "pi")
                if oracle.plan[address].op not in NOTHING_OVER_NOTHING:
                    assert ball_of(parse(write(tree)), oracle.leaf).overlaps(ball), write(tree)

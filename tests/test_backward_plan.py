"""Plans of learning, line by line: addresses, formulas, axes, and what each line reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from byhand import forward
from byhand.backward import adjoint
from byhand.errors import InputError
from byhand.models import open_model, open_spec
from byhand.optimizer import OPTIMIZERS, Rule, said, update
from byhand.parameters import learned
from byhand.plan import GRAD, WEIGHT, Plan
from oracles.learners import Learner, learners

every_learner = pytest.mark.parametrize("learner", learners(), ids=range(len(learners())))
LONG = ("mask", "queries", "keys")  # attributes that are as large as the text


def listed(plan: Plan, begin: str) -> str:
    """Every line of a plan that begins so, and the second names."""
    lines = []
    for step in plan:
        if step.address.startswith(begin):
            sides = " ".join(f"{a} {n}" for a, n in zip(step.axes, step.shape, strict=True))
            reads = ", ".join(f"{role} {read}" for role, read in step.inputs.items())
            given = {k: v for k, v in step.attributes.items() if k not in LONG}
            lines.append(f"{step.address} [{sides}] = {step.formula}")
            lines.append(f"    {step.op}: {reads}" + (f"; {given}" if given else ""))
    names = [f"{alias} is {to}" for alias, to in plan.aliases.items() if alias.startswith(begin)]
    return "\n".join((*lines, *names))


# ------------------------------------------------------------------ the backward pass


def test_the_backward_pass_of_tiny_line_by_line(snapshot: SnapshotAssertion) -> None:
    assert listed(adjoint(forward.plan(open_spec("tiny"), 2, target=True)), GRAD) == snapshot


def test_every_formula_of_a_backward_pass(snapshot: SnapshotAssertion) -> None:
    """Of forty architectures together; sums are named after their terms."""
    found = {
        f"{step.op}: {step.formula}"
        for learner in learners()
        for step in adjoint(learner.plan())
        if step.address.startswith(GRAD) and step.op != "total"
    }
    assert "\n".join(sorted(found)) == snapshot


@every_learner
def test_a_gradient_has_the_sides_of_what_it_is_the_gradient_of(learner: Learner) -> None:
    plan = adjoint(learner.plan())
    weights = {WEIGHT + p.name: (p.axes, p.shape) for p in learned(plan.spec)}
    for name, address in plan.known.items():
        of = name.removeprefix(GRAD)
        if name != of and (of in weights or of in learner.plan().known):
            assert plan[address].sides == weights.get(of) or plan[address].sides == plan[of].sides
    assert {GRAD + name for name in weights} <= plan.known.keys()


@every_learner
def test_a_line_reads_only_what_stands_above_it(learner: Learner) -> None:
    plan = update(adjoint(learner.plan()), Rule("adamw", clip=Fraction(1), step=3))
    above: set[str] = set()
    for step in plan:
        assert step.address not in above
        assert all(read in above for read in step.reads if not read.startswith(WEIGHT))
        above.add(step.address)
    assert set(plan.aliases.values()) <= above
    assert not plan.aliases.keys() & above


@every_learner
def test_a_line_has_a_side_for_each_axis_and_settings_that_can_be_read_again(
    learner: Learner,
) -> None:
    for step in adjoint(learner.plan()):
        assert len(step.axes) == len(step.shape), step.address
        assert not any(isinstance(value, Iterator) for value in step.attributes.values())


def test_heads_that_share_keys_have_a_gradient_each_before_they_are_added_up() -> None:
    spec = open_spec("minigpt")
    attention = spec.blocks[0].attention
    assert attention is not None
    shared = replace(attention, kv_heads=attention.heads // 2)
    block = replace(spec.blocks[0], attention=shared)
    plan = adjoint(forward.plan(replace(spec, blocks=(block,)), 3, losses=True))
    for name in ("k_rotated", "v"):
        total = plan[f"grad.block.0.attn.{name}"]
        each = plan[f"grad.block.0.attn.{name}.heads"]
        assert total.inputs == {"x": each.address}
        assert each.axes == ("head", "pos", "d_head")
        assert each.shape == (shared.heads, 3, shared.d_head)
        assert total.shape == (shared.kv_heads, 3, shared.d_head)


def test_gradients_of_packed_queries_keys_and_values_go_back_under_their_names() -> None:
    for learner in learners():
        for step in adjoint(learner.plan()):
            if step.op == "pack_heads":
                names = [read.rpartition(".")[2] for read in step.reads]
                assert list(step.inputs) == ["queries", "keys", "values"]
                assert [name[0] for name in names] == ["q", "k", "v"], names
                assert list(step.attributes["starts"]) == sorted(step.attributes["starts"])


def test_the_gradient_of_a_weight_stands_behind_its_last_reader() -> None:
    """A tied table is read first and last, so its gradient is the last line."""
    plan = adjoint(forward.plan(open_spec("minigpt"), 3, losses=True))
    order = [step.address for step in plan if step.address.startswith(GRAD + WEIGHT)]
    assert order[0] == "grad.weight.embed.token.via.logits"
    assert order[-2:] == ["grad.weight.embed.token.via.embed.token", "grad.weight.embed.token"]


def test_the_terms_of_a_sum_are_named_after_what_they_come_through() -> None:
    plan = adjoint(forward.plan(open_spec("minigpt"), 3, losses=True))
    total = plan["grad.block.0.attn.add"]
    assert (total.op, total.formula) == ("total", "via mlp.add + via norm.centered + via norm.mean")


def test_the_mean_loss_is_what_a_gradient_is_of_where_there_is_one() -> None:
    both = adjoint(forward.plan(open_spec("tiny"), 2, target=True, losses=True))
    assert both["grad.logits"].inputs["targets"] == "targets"
    last = adjoint(forward.plan(open_spec("tiny"), 2, target=True))
    assert last["grad.logits"].inputs["targets"] == "target"


def test_without_a_loss_there_is_no_gradient() -> None:
    with pytest.raises(InputError, match="a gradient needs a loss") as caught:
        adjoint(forward.plan(open_spec("tiny"), 2))
    assert caught.value.hint == "give a target"


def test_nothing_flows_back_through_a_cache() -> None:
    with pytest.raises(InputError, match="the backward pass cannot go through a cache") as caught:
        adjoint(forward.plan(open_model("minigpt-init").spec, 1, past=2, losses=True))
    assert caught.value.hint == "work out the whole text at once"


# ------------------------------------------------------------------ an optimizer's step

SETTINGS: dict[str, Any] = {
    "rate": Fraction(1, 8), "clip": Fraction(5, 2), "decay": Fraction(1, 5), "step": 2,
}  # fmt: skip


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("settings", [SETTINGS, {}], ids=["second", "first and plain"])
def test_an_optimizers_step_line_by_line(
    kind: str, settings: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    spec = replace(open_spec("tiny"), blocks=(), position="none", head_bias=True)
    plan = update(adjoint(forward.plan(spec, 2, target=True)), Rule(kind, **settings))
    assert listed(plan, "update.") + "\n" + listed(plan, "before.") == snapshot


def test_only_weights_whose_gradients_are_there_are_changed() -> None:
    whole = adjoint(forward.plan(open_spec("tiny"), 2, target=True))
    plan = update(whole.only(["grad.weight.block.0.mlp.hidden"]), Rule())
    changed = [step.address for step in plan if step.address.startswith("update.weight.")]
    assert changed == ["update.weight.block.0.mlp.hidden"]


def test_a_setting_is_a_short_decimal_or_a_short_fraction_or_rounded() -> None:
    assert said(Fraction(1, 8)) == "0.125"
    assert said(Fraction(12347, 654323)) == "12347/654323"
    assert said(Fraction(12347, 6543211)) == "0.00188699"


def test_the_running_means_of_each_optimizer() -> None:
    assert OPTIMIZERS == ("sgd", "momentum", "adam", "adamw")
    assert [Rule(kind).moments for kind in OPTIMIZERS] == [(), ("m",), ("m", "v"), ("m", "v")]


def test_the_usual_settings() -> None:
    assert Rule() == Rule(
        kind="sgd",
        rate=Fraction(1, 10),
        clip=None,
        decay=Fraction(0),
        momentum=Fraction(9, 10),
        betas=(Fraction(9, 10), Fraction(999, 1000)),
        eps=Fraction(1, 10**8),
        step=1,
    )


@pytest.mark.parametrize("asked", [False, True])
def test_biases_decay_only_where_that_is_asked(asked: bool) -> None:
    spec = replace(open_spec("tiny"), blocks=(), head_bias=True)
    rule = Rule(decay=Fraction(1, 10), vectors_decay=asked)
    plan = update(adjoint(forward.plan(spec, 2, target=True)), rule)
    assert ("update.decayed.head_bias" in plan.known) is asked

"""Planted bugs of learning: the port is right, each bug shows where it should, check names it.

The whole matrix takes minutes: `python -m benchmarks.gradients`.  What it found stands in docs/,
and its bars are held here; a selection is checked anew.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.gradients import lessons, matrix
from benchmarks.gradients.adamw import Learner
from benchmarks.gradients.bugs import BUGS, FORMATS
from benchmarks.gradients.captures import Way
from benchmarks.gradients.port import Port

import byhand
from byhand import forward
from byhand.backward import adjoint
from byhand.evaluate import work_out
from byhand.numbers.floats import Floats
from byhand.optimizer import Rule, update


@pytest.mark.parametrize("family", lessons.FAMILIES)
def test_a_port_without_a_bug_gives_the_gradients_of_byhand(family: str) -> None:
    model, lesson = lessons.model(family), lessons.lesson()
    dump = Port(model, lesson, "float64").run()
    same = lesson.owners[:, None] == lesson.owners[None, :]
    plan = adjoint(
        forward.plan(
            model.spec, len(lesson.tokens), positions=lesson.places.tolist(), mask=same.tolist(),
            losses=True,
        )
    )  # fmt: skip
    steps = work_out(
        plan, model.weights, lesson.tokens.tolist(), Floats("float64"),
        targets=lesson.targets.tolist(),
    )  # fmt: skip
    assert {f"grad.weight.{name}" for name in model.weights} <= set(dump)
    for name, value in dump.items():
        ours = steps[plan.known[name]].array
        there = ~np.ma.getmaskarray(ours)
        theirs, own = value[there], np.ma.getdata(ours)[there]
        assert np.abs(theirs - own).max() < 1e-13 * np.abs(theirs).max() + 1e-16, name


def _first_difference(family: str, bug: str) -> str:
    right, wrong = (matrix.learner(each, family, "float32") for each in ("", bug))
    steps = adjoint(forward.plan(right.spec, len(right.lesson.tokens), losses=True))
    plan = update(steps, Rule("adamw", clip=Fraction(1), step=2))
    order = {step.address: place for place, step in enumerate(plan)}
    names = sorted(wrong.dump, key=lambda name: order[plan[name].address])
    seen = right.sees
    for name in names:
        a, b = right.dump[name], wrong.dump[name]
        if name.endswith((".scores", ".weights")):
            a, b = np.where(seen, a, 0), np.where(seen, b, 0)
        if not np.array_equal(a, b):
            return name
    raise AssertionError(f"{bug} changes nothing")


@pytest.mark.parametrize("family", lessons.FAMILIES)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_every_bug_first_shows_where_who_planted_it_says(family: str) -> None:
    for bug in BUGS.values():
        if family in bug.shows:
            assert _first_difference(family, bug.name) == bug.shows[family], bug.name


@pytest.mark.parametrize("family", lessons.FAMILIES)
@pytest.mark.parametrize("format", FORMATS)
def test_a_port_without_a_bug_is_right_in_every_line(family: str, format: str) -> None:
    marking = matrix.checked("", family, format)
    assert {line.verdict.value for line in marking} == {"right"}
    assert not any(line.unusual for line in marking)
    assert not marking.unmatched


SELECTION = (
    ("sum for mean", "llama", "bfloat16"),
    ("padding counted", "gpt2", "float32"),
    ("norm without its mean", "gpt2", "float32"),
    ("slope of silu is sigmoid", "llama", "float32"),
    ("row sum missing", "gpt2", "bfloat16"),
    ("one head of a group", "llama", "float32"),
    ("table from the head alone", "gpt2", "float32"),
    ("gradient transposed", "llama", "bfloat16"),
    ("clipped tensor by tensor", "gpt2", "float32"),
    ("rate of the step before", "llama", "float32"),
)


@pytest.mark.parametrize(("bug", "family", "format"), SELECTION)
def test_a_planted_bug_is_found_at_its_line_and_named(bug: str, family: str, format: str) -> None:
    found = matrix.found(bug, family, format)
    assert found.clear
    assert found.first == BUGS[bug].shows[family]
    assert found.cause in BUGS[bug].causes


class Slip(Learner):
    """A port that gets one number of the forward pass wrong, and goes on from it."""

    def keep(self, address: str, value: Any) -> Any:
        if address == "block.1.mlp.act":
            value = value.copy()
            value[3, 5] += 0.25
        return super().keep(address, value)


def test_a_wrong_forward_value_explains_the_gradients_and_the_step_after_it() -> None:
    slip = matrix.learner("", "gpt2", "float32", port=Slip)
    marking = matrix.marked(lessons.model("gpt2"), matrix.claims(slip), "float32")
    lines = {line.claim.name: line.verdict.value for line in marking}
    wrong = {name for name, verdict in lines.items() if verdict != "right"}
    assert {name for name in wrong if lines[name] != "carried forward"} == {"block.1.mlp.act"}
    assert lines["block.1.mlp.act"] == "error here"
    after = ("logits", "mean_loss", "grad.logits", "grad.block.0.attn.v", "update.norm")
    assert {*after, "grad.weight.embed.token", "update.weight.block.0.mlp.out"} <= wrong
    assert lines["block.1.mlp.hidden"] == "right"


def test_what_no_mistake_explains_has_no_cause() -> None:
    given = matrix.claims(matrix.learner("", "gpt2", "float32"))
    rng = np.random.default_rng(3)
    for name in ("grad.logits", "grad.block.1.attn.v", "grad.weight.block.0.mlp.out"):
        noise = 1 + 0.2 * rng.standard_normal(given[name].shape)
        wrong = {**given, name: (given[name] * noise).astype(np.float32)}
        marking = matrix.marked(lessons.model("gpt2"), wrong, "float32")
        assert marking.first_error is not None
        assert marking.first_error.claim.name == name
        assert not marking.first_error.suspects


def test_nothing_is_carried_forward_where_nothing_is_wrong() -> None:
    # some of its lines cannot be judged, and the norm of its gradients is far from the true one
    way = Way("llama", "fresh", "sdpa", "checkpointed", "autocast", 77009)
    model, capture = way.captures()
    lines = {line.address: line.verdict.value for line in byhand.check(model, capture)}
    assert lines["update.norm"] == "right"
    assert set(lines.values()) == {"right", "cannot be judged"}


def test_the_recorded_matrix_is_of_these_bugs_and_meets_its_bars() -> None:
    results = matrix.recorded()
    planted = {
        (bug.name, family, format)
        for bug in BUGS.values() for family in bug.shows for format in bug.formats
    }  # fmt: skip
    assert {(each.bug, each.family, each.format) for each in results} == planted
    assert not any(each.false_cause for each in results)
    for format, kinds in zip(FORMATS, (60, 55), strict=True):
        clear = [each for each in results if each.format == format and each.clear]
        assert len({each.bug for each in clear}) >= kinds
        assert all(each.step_named for each in clear)
        assert sum(each.cause_named for each in clear) >= 0.9 * len(clear)

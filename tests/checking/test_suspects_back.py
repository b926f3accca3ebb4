"""Mistakes of learning as edits: every one of them can be worked out, at every line of a step."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from suspected import SPECS, TOKENS, random_model

from byhand import forward
from byhand.backward import adjoint
from byhand.checking.suspects import MOST, Context, Mistaken, edits
from byhand.evaluate import Admitted, work_out
from byhand.optimizer import BEFORE, Rule, update
from byhand.plan import Plan

TARGETS = (5, 1, -1, 2, 11, 4)
POSITIONS = (0, 1, 2, 0, 1, 2)
PASSED = re.compile(r"block\.[01]|update\.(?!.*(embed\.token|final\.norm\.gain))")  # like others
RULE = Rule("adamw", clip=Fraction(1, 10), decay=Fraction(1, 10), step=3)


def learning_plan(family: str) -> Plan:
    """Two texts side by side, both passes, and a step of AdamW."""
    same = [[one // 3 == other // 3 for other in range(6)] for one in range(6)]
    plan = forward.plan(SPECS[family](), 6, positions=POSITIONS, mask=same, losses=True)
    return update(adjoint(plan), RULE)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_every_edit_of_every_line_of_a_step_can_be_worked_out(family: str) -> None:
    model, plan = random_model(SPECS[family]()), learning_plan(family)
    numbers: Any = Mistaken("float32")
    weights = Admitted(model.weights, numbers)
    old = {
        step.address: np.full(step.shape, 0.01 if ".m." in step.address else 0.0001, np.float32)
        for step in plan
        if step.address.startswith(BEFORE)
    }
    done = work_out(plan, weights, TOKENS, numbers, targets=TARGETS, given=old)
    tried = set()
    for step in plan:
        if step.op == "given" or step.stage == "forward" or PASSED.search(step.address):
            continue
        expected = done[step.address].value.mid
        context = Context(
            frozenset(done), TOKENS, POSITIONS, targets=TARGETS, rule=RULE, values=2 * expected,
            expected=expected, moments=old,
        )  # fmt: skip
        found = list(edits(plan, [step], step, model, context=context))
        assert len(found) <= MOST
        for edit in found:
            above = [name for name in done if name != step.address]
            part = edit.plan.only([step.address], given=above)
            given = {each.address: done[each.address] for each in part
                     if each.address in above and each.op != "given"}  # fmt: skip
            given |= {each.address: old[each.address] for each in part if each.address in old}
            worked = work_out(part, weights, TOKENS, numbers, targets=TARGETS, given=given)
            assert worked[step.address].value.shape == step.shape, edit.kind
            tried.add(edit.kind)
    assert {"loss-reduction", "target-shift", "softmax-row-sum-missing", "clip-by-tensor"} <= tried
    assert {"betas-swapped", "eps-in-root", "decay-in-gradient", "correction-missing"} <= tried


def test_texts_begin_where_positions_begin_again() -> None:
    from byhand.checking.suspects.scenes import Scene

    plan, model = learning_plan("gpt2"), random_model(SPECS["gpt2"]())
    step = plan["grad.logits"]
    scene = Scene(plan, (step,), step, model, Context(positions=POSITIONS))
    assert scene.texts == (slice(0, 3), slice(3, 6))
    alone = Scene(plan, (step,), step, model, Context())
    assert alone.texts == (slice(0, 6),)

"""The catalogue of suspects as a whole: every edit works, the likely ones first, none twice."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from numpy_port import Port
from suspected import SPECS, TARGET, TOKENS, Judge, random_model

from byhand import forward
from byhand.checking.suspects import MOST, Context, Edit, Mistaken, edits
from byhand.errors import InputError
from byhand.evaluate import Admitted, work_out
from byhand.expression import Number
from byhand.model import Model
from byhand.spec import ModelSpec
from byhand.tokens import Ids
from oracles.architectures import Case, ordinary, spread
from oracles.experts import modern

GPT2, LLAMA, NEOX = "gpt2", "llama", "gpt_neox"
MODELS = {family: random_model(spec()) for family, spec in SPECS.items()}


def every_edit(
    family: str, address: str, *, sparse: bool = False, by_hand: bool = False
) -> list[Edit]:
    model = MODELS[family]
    plan = forward.plan(model.spec, len(TOKENS), target=True)
    named = [step.address for step in plan if step.op != "given"]
    above = frozenset() if sparse else frozenset(named) - {address}
    region = [step for step in plan.only([address], given=above)
              if step.address not in above and step.op != "given"]  # fmt: skip
    claimed = frozenset({address}) | above
    context = Context(claimed, TOKENS, tuple(range(6)), by_hand=by_hand)
    return list(edits(plan, region, plan[address], model, context=context))


@pytest.mark.parametrize("family", [GPT2, LLAMA, NEOX])
def test_every_edit_of_every_line_can_be_worked_out(family: str) -> None:
    model = MODELS[family]
    numbers = Mistaken("float32")
    plan = forward.plan(model.spec, len(TOKENS), target=True)
    done = work_out(plan, model.weights, TOKENS, numbers, target=TARGET)
    for step in plan:
        if step.op == "given" or step.address.startswith(("block.0", "block.2")):
            continue
        found = every_edit(family, step.address)
        assert 0 < len(found) <= MOST
        for edit in found:
            above = [name for name in done if name != step.address]
            part = edit.plan.only([step.address], given=above)
            given = {each.address: done[each.address] for each in part if each.address in above
                     and each.op != "given"}  # fmt: skip
            worked = work_out(part, model.weights, TOKENS, numbers, target=TARGET, given=given)
            value = worked[step.address].value
            shape = (len(value),) if step.op == "argmax" else value.shape
            assert shape == step.shape, edit.kind


def test_likely_edits_come_first_and_none_comes_twice() -> None:
    found = every_edit(LLAMA, "block.1.attn.add", sparse=True)
    assert [edit.unlikely for edit in found] == sorted(edit.unlikely for edit in found)
    sentences = [(edit.sentence, edit.change) for edit in found]
    assert len(set(sentences)) > 0.9 * len(sentences)
    assert "it follows if the scores are not scaled; the model says 1/√6 (head width 6) (from " in (
        "\n".join(edit.sentence for edit in found)
    )


def test_what_changes_nothing_is_no_edit() -> None:
    spec: ModelSpec = SPECS[GPT2]()
    attention = spec.blocks[0].attention
    assert attention is not None
    square = replace(attention, heads=6, kv_heads=6, d_head=4, scale=Number(Fraction(1, 2)))
    model = random_model(replace(spec, blocks=(replace(spec.blocks[0], attention=square),)))
    plan = forward.plan(model.spec, 6)
    step = plan["block.0.attn.scores"]
    above = frozenset(each.address for each in plan) - {step.address}
    found = edits(plan, [step], step, model, context=Context(above | {step.address}, TOKENS))
    said = [edit.sentence for edit in found if edit.kind.startswith("scale")]
    assert not any("scaled by 1/√4" in sentence for sentence in said)  # that is 1/2


def test_a_port_is_named_by_its_own_layer() -> None:
    model = MODELS[GPT2]
    port = Port(model, TOKENS, TARGET, "layer swapped")
    judge = Judge(model, port.dump)
    wrong = judge.first_error()
    assert wrong == "block.0.attn.norm.out"
    assert "layer 1" in judge.suspects(wrong)[0][0].sentence or "block.1" in (
        judge.suspects(wrong)[0][0].sentence
    )


PLAIN = {"attention": True, "mlp": True, "layers": 1, "rope": True}
TODAYS = modern(next(spread(1, seed=3, wishes=PLAIN)), 3, ordinary)  # with sinks and experts


@pytest.mark.parametrize("case", [*spread(6, seed=3), TODAYS], ids=range(7))
def test_any_architecture_has_edits_and_they_can_be_worked_out(case: Case) -> None:
    model = Model(case.spec, case.weights, Ids(case.spec.vocab))
    plan, numbers = case.plan(), Mistaken("float32")
    weights = Admitted(model.weights, numbers)
    done = work_out(plan, weights, case.tokens, numbers, target=case.target)
    for step in plan:
        if step.op == "given":
            continue
        context = Context(frozenset(done), case.tokens, case.positions)
        for edit in edits(plan, [step], step, model, context=context):
            above = [name for name in done if name != step.address]
            part = edit.plan.only([step.address], given=above)
            given = {each.address: done[each.address] for each in part
                     if each.address in above and each.op != "given"}  # fmt: skip
            try:
                worked = work_out(
                    part, weights, case.tokens, numbers, target=case.target, given=given
                )
            except InputError:  # a mask that leaves a position nothing to look at
                if edit.kind.startswith(("mask", "window")):
                    continue
                raise
            if step.op != "argmax":
                assert worked[step.address].value.shape == step.shape, edit.kind


def test_the_next_token_may_be_one_off_or_the_least_likely() -> None:
    model = MODELS[GPT2]
    numbers = Mistaken("float32")
    plan = forward.plan(model.spec, len(TOKENS), target=True)
    logits = work_out(plan, model.weights, TOKENS, numbers, target=TARGET)["logits"].value.mid
    found = [edit for edit in every_edit(GPT2, "next") if edit.kind == "argmax-wrong"]
    said = []
    for edit in found:
        part = edit.plan.only(["next"], given=["logits"])
        given = {"logits": logits}
        worked = work_out(part, model.weights, TOKENS, numbers, given=given)["next"].value
        said.append([prediction.id for prediction in worked])
    largest = logits.argmax(-1)
    expected = [(largest + 1) % 19, (largest - 1) % 19, logits.argmin(-1)]
    assert said == [ids.tolist() for ids in expected]


def test_nobody_casts_with_a_pencil() -> None:
    kinds = {edit.kind for edit in every_edit(GPT2, "block.1.mlp.out")}
    written = {edit.kind for edit in every_edit(GPT2, "block.1.mlp.out", by_hand=True)}
    assert kinds - written == {"precision"}


def test_of_a_next_token_nothing_is_guessed_but_from_claimed_logits() -> None:
    assert every_edit(GPT2, "next")
    assert not every_edit(GPT2, "next", sparse=True)


def test_a_scale_of_one_is_no_scale() -> None:
    without = [
        edit.sentence for edit in every_edit(GPT2, "block.1.attn.scores")
        if "not scaled" in edit.sentence or "1/√1;" in edit.sentence
    ]  # fmt: skip
    assert len(without) == 1


def test_no_activation_is_said_as_such() -> None:
    (none,) = (
        edit.sentence for edit in every_edit(GPT2, "block.1.mlp.act")
        if "no activation" in edit.sentence
    )  # fmt: skip
    assert none.startswith("it follows if there is no activation; the model says GELU")

"""Which experts answer is proven; equal scores are told as a tie, open ones as open."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from budgets import LONG
from byhand.document.compose.listing import unproven
from byhand.document.compose.trace import document
from byhand.document.media.json import trace as json_trace
from byhand.document.media.terminal.parts import Terminal
from byhand.evaluate import prepare
from byhand.files import parse_model
from byhand.model import Model
from byhand.numbers.base import Note
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.parameters import parameters
from byhand.proving.digits import prove
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights

NORM = NormSpec("rmsnorm", Fraction(1, 100_000), bias=False)
MLP = MlpSpec(12, "silu", gated=True, experts=4, chosen=2)
BLOCK = BlockSpec(AttentionSpec(2, 4, 1, over_root(4)), MLP, NORM, NORM)
SPEC = ModelSpec("small mixtral", 9, 8, None, (BLOCK,) * 2, final_norm=NORM, layout="out_in")
TEXT = "3 1 4 1 5"
CHOSEN = "block.0.mlp.chosen"


def mixtral(spec: ModelSpec = SPEC, **changed: Any) -> Model:
    """A small Mixtral with random weights; `changed` weights are named with _ for a point."""
    rng = np.random.default_rng(0)
    drawn = {p.name: rng.standard_normal(p.shape).astype(np.float32) for p in parameters(spec)}
    for name, change in changed.items():
        change(drawn[name.replace("__", ".")])
    return Model(spec, Weights({n: Tensor(n, x) for n, x in drawn.items()}), Ids(spec.vocab))


def alike(router: Any) -> None:
    """Makes experts 1 and 2 alike, and the best but one: expert 0 is first, expert 3 last."""
    router[:] = [8 * router[0], router[1], router[1], -8 * router[0]]


def marks(trace: byhand.Trace, address: str = CHOSEN) -> list[list[str]]:
    worked = trace[address]
    return [[str(worked.at((pos, k)).mid) for k in range(4)] for pos in range(worked.step.shape[0])]


def test_the_choice_of_experts_is_proven() -> None:
    trace = byhand.trace(mixtral(), TEXT, digits=12)
    floats = byhand.trace(mixtral(), TEXT, numbers="float64")
    assert trace.proof.complete
    assert not trace.proof.by_exact
    for address in (CHOSEN, "block.1.mlp.chosen"):
        assert all(trace[address].at(index).rad == 0 for index in np.ndindex(5, 4))
        assert np.array_equal(np.asarray(trace[address]), np.asarray(floats[address]))
        assert np.asarray(trace[address]).sum(axis=1).tolist() == [2] * 5


@pytest.mark.parametrize("numbers", [Balls(80), Limbs(80)], ids=["balls", "limbs"])
def test_experts_with_the_same_weights_are_proven_tied_and_the_first_counts(numbers: Any) -> None:
    job = prepare(mixtral(block__0__mlp__router=alike), TEXT, numbers)
    trace = prove(job, 12)
    assert trace.proof.complete
    tied = [note.index[0] for note in trace[CHOSEN].notes if note.kind == "tied-experts"]
    assert tied
    assert all(f"{CHOSEN}[{row}]" in trace.proof.by_exact for row in tied)
    for row, found in enumerate(marks(trace)):
        assert found[1] == "1" if row in tied else found[1] == found[2], row
    floats = byhand.trace(job.model, TEXT, numbers="float64")
    assert np.array_equal(np.asarray(trace[CHOSEN]), np.asarray(floats[CHOSEN]))


def test_scores_that_are_equal_for_another_reason_are_told_as_open() -> None:
    """A channel that is always 0 keeps two routers apart that never differ."""

    def other(router: Any) -> None:
        alike(router)
        router[2, 0] += 1

    def silent(gain: Any) -> None:
        gain[0] = 0

    model = mixtral(block__0__mlp__router=other, block__0__mlp__norm__gain=silent)
    trace = prove(prepare(model, TEXT, Balls(80)), 12, limit=200)
    first = trace.proof.undecided[0]
    assert not trace.proof.complete
    assert (first.asked, first.candidates) == ("experts", (1, 2))
    assert first.address.startswith(f"{CHOSEN}[")
    assert first.enclosure.contains(0)
    assert "whose scores are" in str(unproven(trace))


def test_nearly_equal_scores_need_more_bits_and_are_no_tie() -> None:
    model = mixtral(replace(SPEC, blocks=(BLOCK,)), block__0__mlp__router=alike)
    router = model.weights["block.0.mlp.router"].data.astype(np.float64)
    exact = np.array([[Fraction(x) for x in row] for row in router.tolist()], dtype=object)
    exact[2] = [x * (1 - Fraction(1, 2**300)) for x in exact[1]]
    near = Tensor("block.0.mlp.router", exact)
    model = replace(model, weights=Weights({**model.weights, "block.0.mlp.router": near}))
    trace = byhand.trace(model, TEXT, digits=8)
    assert trace.proof.complete
    assert trace.proof.bits > 300
    assert not trace[CHOSEN].notes
    assert not trace.proof.by_exact


PENCIL = """
vocabulary: [a, b]
text: a b
model:
  d_model: 2
  layers: 1
  position: none
  attention: none
  norm: {kind: rmsnorm, gain: false}
  mlp: {d_ff: 2, activation: relu, experts: 3, chosen: 2}
weights:
  embed.token: [[1, 2], [3, 1]]
  block.0.mlp.router: [[1, 2, 4], [3, 1, 0]]
  block.0.mlp.hidden: [[[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [0, 1]]]
  block.0.mlp.out: [[[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [0, 1]]]
"""


def test_exact_numbers_settle_a_tie_of_a_model_of_pencil_size() -> None:
    """At a, the scores are 7, 4 and 4, divided by a root that is not rational."""
    model = parse_model(PENCIL, "tie.yaml")
    exact, digits = byhand.trace(model), byhand.trace(model, digits=10)
    for trace in (exact, digits):
        assert trace[CHOSEN].notes == (Note("tied-experts", (0,)),)
        assert np.asarray(trace[CHOSEN]).tolist() == [[1, 1, 0], [0, 1, 1]]
    assert digits.proof.complete
    assert f"{CHOSEN}[0]" in digits.proof.by_exact


def test_a_proven_generation_goes_on_behind_a_tie() -> None:
    model = mixtral(block__0__mlp__router=alike)
    made = byhand.generate(model, TEXT, count=3, digits=6)
    plain = byhand.generate(model, TEXT, count=3, numbers="float64")
    assert [one.id for one in made.choices] == [one.id for one in plain.choices]
    assert all(one.proven for one in made.choices)


@pytest.mark.parametrize("precision", ["exact", "float32"])
def test_of_tied_experts_a_claim_may_choose_any_and_the_tie_is_told(precision: str) -> None:
    model = parse_model(PENCIL, "tie.yaml")
    for first, others in (([1, 1, 0], "right"), ([1, 0, 1], "right"), ([0, 1, 1], "error here")):
        claims = {CHOSEN: [first, [0, 1, 1]]}
        (line,) = byhand.check(model, claims, text="a b", precision=precision)
        assert line.verdict.value == others
        told = "experts 1, 2 have equal scores at position 0: any of them may answer"
        assert line.tied == (told if others == "right" else "")


def test_experts_tied_by_their_weights_are_told_in_a_large_model_too() -> None:
    model = mixtral(block__0__mlp__router=alike)
    claimed = np.asarray(byhand.trace(model, TEXT, numbers="float32")[CHOSEN]).copy()
    claimed[:, [1, 2]] = claimed[:, [2, 1]]
    (line,) = byhand.check(model, {CHOSEN: claimed}, text=TEXT, precision="float32")
    assert line.verdict.value == "right"
    assert line.tied.startswith("experts 1, 2 have equal scores")
    claimed[0] = [1, 1, 1, 1]
    (line,) = byhand.check(model, {CHOSEN: claimed}, text=TEXT, precision="float32")
    assert line.verdict.value != "right"
    assert not line.tied


@pytest.mark.parametrize("asked", [{"digits": 10}, {}][: 1 + LONG])
def test_a_tie_is_told_in_the_trace_in_json_and_in_the_book(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    model = parse_model(PENCIL, "tie.yaml")
    told = "experts have equal scores here; the first of them is chosen"
    trace = byhand.trace(model, **asked)
    shown = "\n".join(Terminal(100).lines(document(trace)))
    assert f"position 0 (a): {told}" in shown
    steps = {step["address"]: step for step in json_trace.document_of(trace)["steps"]}
    assert steps[CHOSEN]["notes"] == [{"kind": "tied-experts", "index": [0]}]
    byhand.book(model, out=tmp_path / "book", **asked)
    assert told in (tmp_path / "book" / "block.html").read_text("utf-8")

"""The passes that the documents print, number by number, and beyond where they stop."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from byhand import forward
from byhand.evaluate import trace, work_out
from byhand.model import Model
from byhand.numbers.base import ABSENT, Note
from byhand.numbers.exact import Exact
from byhand.tracing import Trace
from byhand.worked import Worked
from oracles import journey_by_hand as journey_hand
from oracles.arb_pass import ArbPass
from oracles.comparing import assert_exact_is_arb, tight_ball
from oracles.tiny_by_hand import TEXTS, by_hand
from oracles.torch_pass import TorchPass


def row(worked: Worked, *at: int) -> list[Fraction | None]:
    """One row as rational numbers; None where an entry is masked."""
    return [x if x is ABSENT else x.fraction for x in worked.value[at]]


# ------------------------------------------------------------------ tiny


@pytest.mark.parametrize("text", TEXTS)
def test_every_number_of_tiny_is_the_one_found_by_hand(tiny: Model, text: str) -> None:
    worked = trace(tiny, text)
    expected = by_hand(text)
    compared = set()
    for step in worked.values():
        for index, value in step.entries():
            if value is ABSENT:
                assert (step.address, index) not in expected
                continue
            hand = expected[step.address, index]
            compared.add((step.address, index))
            if isinstance(hand, Fraction):
                assert value.fraction == hand, f"{step.address}{index}"
                assert step.register_at(index) == "exact"
            else:
                assert tight_ball(value).overlaps(hand), f"{step.address}{index}"
                assert step.register_at(index) == "named"
    assert compared == set(expected)


@pytest.mark.parametrize("text", TEXTS)
def test_the_formulas_of_tiny_give_what_the_exact_pass_gives(tiny: Model, text: str) -> None:
    worked = trace(tiny, text)
    assert_exact_is_arb(worked.steps, ArbPass(worked.plan, tiny.weights, worked.tokens))


def test_position_0_of_tiny_is_exactly_as_the_documents_print_it(tiny: Model) -> None:
    found = trace(tiny, "a b")
    at = "block.0."
    assert row(found["stream.0"], 0) == [1, 0]
    assert row(found[at + "attn.scores"], 0, 0) == [1, None]
    assert row(found[at + "attn.weights"], 0, 0) == [1, None]
    assert row(found[at + "attn.add"], 0) == [2, 0]
    assert row(found[at + "attn.norm.out"], 0) == [1, -1]
    assert row(found[at + "mlp.out"], 0) == [1, 0]
    assert row(found[at + "mlp.add"], 0) == [2, -1]
    assert found[at + "mlp.norm.mean[0]"].fraction == Fraction(1, 2)
    assert row(found[at + "mlp.norm.centered"], 0) == [Fraction(3, 2), Fraction(-3, 2)]
    assert found[at + "mlp.norm.variance[0]"].fraction == Fraction(9, 4)
    assert found[at + "mlp.norm.std[0]"].fraction == Fraction(3, 2)
    assert row(found["logits"], 0) == [1, -1, 0]
    assert found.next is not None
    assert [(p.id, p.proven, p.tied) for p in found.next] == [(0, True, ()), (0, True, ())]


def test_position_1_of_tiny_goes_on_where_the_documents_stop_and_comes_back(tiny: Model) -> None:
    found = trace(tiny, "a b")
    assert row(found["block.0.attn.scores"], 0, 1) == [1, 2]
    with ctx.workprec(200):
        e = arb(1).exp()
        assert tight_ball(found["block.0.attn.weights[0,1,0]"]).overlaps(e / (e + e * e))
    assert row(found["logits"], 1) == [1, -1, 0]


def zero_variance_at(found: Trace) -> list[tuple[str, Note]]:
    return [(step.address, note) for step in found.values() for note in step.notes]


def test_four_texts_of_tiny_meet_zero_variance_and_say_so(tiny: Model) -> None:
    met = {text: zero_variance_at(trace(tiny, text)) for text in TEXTS}
    assert [text for text in TEXTS if met[text]] == ["c", "c a", "c b", "c c"]
    for text in TEXTS:
        zeros = {index[:1] for (address, index), hand in by_hand(text).items()
                 if address.endswith(".std") and hand == 0}  # fmt: skip
        assert {note.index[:1] for _address, note in met[text]} == zeros
        assert all(note.kind == "zero-variance" for _address, note in met[text])


def test_the_text_c_of_tiny_ends_in_a_three_way_tie_and_that_is_proven(tiny: Model) -> None:
    found = trace(tiny, "c")
    assert found.next is not None
    (prediction,) = found.next
    assert (prediction.id, prediction.proven, prediction.tied) == (0, True, (0, 1, 2))
    assert prediction.margin.fraction == 0
    assert row(found["probs"], 0) == [Fraction(1, 3)] * 3


# ------------------------------------------------------------------ journey


def test_journey_predicts_cat_and_its_loss_is_the_one_arb_finds(journey: Model) -> None:
    found = trace(journey)
    assert found.text == "the cat sat on"
    assert found.target == 4
    assert found.next is not None
    last = found.next[-1]
    assert (found.token(last.id or 0), last.proven, last.tied) == ("cat", True, ())
    with ctx.workprec(journey_hand.BITS):
        stream = journey_hand.after_attention([0, 1, 2, 3])
        stream = journey_hand.plus(stream, journey_hand.mlp_out(stream))
        loss = journey_hand.loss(stream, 4)
        assert tight_ball(found.loss).overlaps(loss)
        for i in range(4):
            assert tight_ball(found[f"stream.1[3,{i}]"]).overlaps(stream[i])
        for token, logit in enumerate(journey_hand.logits(stream)):
            assert tight_ball(found[f"logits[3,{token}]"]).overlaps(logit)
    assert f"{float(loss):.10f}" == "1.8312926370"
    assert found["loss"].register == "named"


def test_every_entry_of_journey_is_exact_or_named_and_in_the_ball_of_its_formula(
    journey: Model,
) -> None:
    found = trace(journey)
    oracle = ArbPass(found.plan, journey.weights, found.tokens, found.target)
    assert assert_exact_is_arb(found.steps, oracle) > 250
    assert {step.register for step in found.values()} == {"exact", "named"}


def test_torch_finds_the_same_loss_for_journey(journey: Model) -> None:
    torch_pass = TorchPass(journey.spec, journey.weights, (0, 1, 2, 3), 4)
    loss = float(trace(journey).loss.ball(64))
    assert float(torch_pass.found["loss"][0]) == pytest.approx(loss, abs=1e-14)


def from_line(model: Model, address: str, line: str, wanted: str) -> dict[str, Worked]:
    """The working of position 3 alone, from a line of the document on."""
    plan = forward.plan(model.spec, 1, positions=[3], target=True)
    given = {address: np.array([[Fraction(word) for word in line.split()]], dtype=object)}
    part = plan.only([wanted], given=given)
    return work_out(part, model.weights, [3], Exact(), target=4, given=given)


def rounded(worked: Worked, places: int) -> list[str]:
    return [f"{float(x.ball(64)):.{places}f}" for _index, x in worked.entries()]


def test_the_document_s_h1_leads_to_its_mlp_out_and_h2_line_by_line(journey: Model) -> None:
    steps = from_line(journey, "block.0.attn.add", "-0.06 0.49 0.72 0.34", "stream.1")
    assert rounded(steps["block.0.mlp.out"], 2) == ["0.04", "0.17", "0.09", "-0.04"]
    assert rounded(steps["block.0.mlp.add"], 2) == ["-0.02", "0.66", "0.81", "0.30"]


def test_the_document_s_h2_gives_mat_15_percent_and_the_loss_1_8933(journey: Model) -> None:
    h2 = "-0.02 0.66 0.81 0.30"
    steps = from_line(journey, "stream.1", h2, "loss")
    assert set(steps) == {"block.0.mlp.add", "logits", "probs", "target", "loss"}
    assert rounded(steps["probs"], 4)[4] == "0.1506"
    assert rounded(steps["loss"], 4) == ["1.8933"]
    with ctx.workprec(journey_hand.BITS):
        hand = journey_hand.loss([journey_hand.number(word) for word in h2.split()], 4)
        assert tight_ball(steps["loss"].value[0]).overlaps(hand)


def test_the_document_s_attention_line_does_not_follow_from_its_matrices(journey: Model) -> None:
    found: Any = trace(journey)
    printed = ["0.14", "0.19", "0.22", "0.24"]
    worked = [f"{float(x.ball(64)):.2f}" for x in found["block.0.attn.out"].value[3]]
    assert worked != printed

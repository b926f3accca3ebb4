"""Explanations of attention without queries, and of answers that are no tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import byhand
from byhand.evaluate import Admitted
from byhand.explaining.ablation import ablate, part_at, usual_parts
from byhand.explaining.joint_ablation import predictions_without
from byhand.files import parse_model
from calling import Outcome

ANSWERS = """\
name: answers
vocabulary: [a, b]
outputs: [none, one, both]
text: a b b
model:
  stream: [a, b, seen-a, seen-b]
  context: 4
  layers: 1
  attention: {heads: 2, d_head: 1, queries: false, score_table: true, nothing: zero}
  mlp: {units: [two], bias: {hidden: true}}
weights:
  embed.token: {entries: {"a,a": 1, "b,b": 1}}
  block.0.attn.v: {entries: {"a,0": 1, "b,1": 1}}
  block.0.attn.score_table: [first, previous]
  block.0.attn.out: {entries: {"0,seen-a": 1, "1,seen-b": 1}}
  block.0.mlp.hidden: {entries: {"seen-a,two": 1, "seen-b,two": 1}}
  block.0.mlp.hidden_bias: [-1]
  block.0.mlp.out: {entries: {"two,a": -2}}
  head: {entries: {"seen-a,one": 2, "seen-b,both": 3, "a,none": 1}}
"""


def test_parts_taken_out_together_are_predicted_as_one_by_one() -> None:
    trace = byhand.trace(parse_model(ANSWERS), numbers="float64")
    parts = [
        part_at(trace.plan.spec, at) for at in ("block.0.attn.mixed[0]", "block.0.attn.mixed[1]")
    ]
    parts += usual_parts(trace.plan.spec)
    weights = Admitted(trace.model.weights, trace.numbers)
    together = predictions_without(trace, parts, (0, 1, 2), weights)
    for part, found in zip(parts, together, strict=True):
        alone = ablate(trace, part.address).next
        assert alone is not None
        assert [one.id for one in found] == [one.id for one in alone]


def test_an_explanation_speaks_of_the_answers_and_of_the_tokens_read() -> None:
    found = byhand.explain(parse_model(ANSWERS), against="one", numbers="float64")
    assert (found.trace.answer(found.token or 0), found.trace.token(1)) == ("both", "b")
    page = found._repr_html_()
    assert page is not None
    assert all(word in page for word in ("both", "one", "none"))


def test_a_book_of_such_a_model_is_written(tmp_path: Path) -> None:
    byhand.book(parse_model(ANSWERS), out=tmp_path, target="both", numbers="float64")
    read = "".join(path.read_text("utf-8") for path in tmp_path.glob("*.html"))
    assert "In head 1, position 0 (a) may look at nothing" in read
    assert "seen-a" in read


def test_a_claim_about_answers_is_proven_for_every_text() -> None:
    model = parse_model(ANSWERS)
    proven = byhand.prove(model, texts=". b .", next="both")
    assert proven.answer == "proven"
    refuted = byhand.prove(model, texts="a . .", next="one")
    assert refuted.counterexample is not None


def test_the_report_of_a_proof_speaks_of_answers(
    byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    file = tmp_path / "answers.yaml"
    file.write_text(ANSWERS, "utf-8")
    refuted = byhand("prove", str(file), "--texts", "a . .", "--next", "one")
    assert refuted.status == 1
    assert "After “a b a” comes “both”, not “one”." in refuted.out

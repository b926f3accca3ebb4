"""An explanation as a whole: the final stream, how long texts are, and what is told of limits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import byhand
from byhand.document.compose.explanation.attribution import closing_text
from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.sections import sections
from byhand.document.media.json.explanation import document_of
from byhand.errors import InputError
from byhand.explaining.ablation import Part
from byhand.explaining.inputs import table
from byhand.explaining.turning import Turns
from byhand.model import Model
from byhand.worked import Missing

FLAT = """
name: flat
vocabulary: [a, b, c]
text: a b
model:
  d_model: 2
  context: 2
  layers: 1
  layout: in_out
  position: none
  norm: {kind: layernorm, place: post, eps: 0, gain: true, bias: true}
  final_norm: none
  attention: {heads: 1, scale: none, out: false}
  mlp: {d_ff: 2, activation: relu}
  head: {tied: true}
weights:
  embed.token: [[1, 1], [0, 1], [1, 1]]
  block.0.attn.q: identity
  block.0.attn.k: identity
  block.0.attn.v: identity
  block.0.attn.norm.gain: ones
  block.0.attn.norm.bias: [1, 1]
  block.0.mlp.hidden: identity
  block.0.mlp.out: identity
  block.0.mlp.norm.gain: ones
  block.0.mlp.norm.bias: [0, 1/2]
"""


@pytest.fixture
def flat(tmp_path: Path) -> Model:
    """A model whose first position has no spread, with norms that add no eps."""
    (tmp_path / "flat.yaml").write_text(FLAT)
    return byhand.open_model(tmp_path / "flat.yaml")


def told(found: byhand.Explanation, *only: str, **options: bool) -> str:
    blocks = [block for section in sections(found, only, **options) for block in section.parts]
    return "\n".join(str(block) for block in blocks)


# ------------------------------------------------------------------ the final stream


def test_the_final_stream_of_abc_is_the_sum_of_its_terms_exactly() -> None:
    found = byhand.explain("abc", position=1)
    assert found.stream is not None
    assert (found.stream.of, found.stream.closes, found.stream.columns) == (
        "stream",
        "exact",
        (0, 1),
    )
    total = [sum(term.array[0, at] for term in found.stream) for at in (0, 1)]
    assert total == [found.trace[f"stream.1[1,{at}]"] for at in (0, 1)]
    data = document_of(found, ["stream"])["stream"]
    assert data["closes"] == "exact"
    assert data["columns"] == [0, 1]
    assert data["terms"][0]["numbers"][1]["address"] == "explain.stream.embed.token[1,1]"
    table_told = told(found, "stream")
    assert "block.0.mlp.out" in table_told
    assert "remainder: exactly 0" in table_told


def test_what_lies_along_a_wide_stream_adds_up_to_its_length() -> None:
    found = byhand.explain("minigpt")
    assert found.stream is not None
    lengths, along = found.stream.reaches
    stream = np.array(found.trace["stream.2"].array[-1], np.float64)
    assert along.sum() == pytest.approx(np.linalg.norm(stream), rel=1e-5)
    head = found.stream["block.1.attn.head_out[1]"]
    place = found.stream.terms.index(head)
    own = np.array(head.array[0], np.float64)
    assert lengths[place] == pytest.approx(np.linalg.norm(own))
    assert along[place] == pytest.approx(own @ stream / np.linalg.norm(stream), rel=1e-4)
    assert "along the stream" in told(found, "stream")


def test_a_stream_that_is_not_known_says_why() -> None:
    found = byhand.explain("abc-walkthrough")
    assert found.stream is None
    assert document_of(found, ["stream"])["stream"] is None
    assert "weight.block.0.attn.qkv" in told(found, "stream")


# ------------------------------------------------------------------ norms with nothing to divide


def test_a_norm_that_took_0_over_0_is_told_with_the_sum_it_empties(flat: Model) -> None:
    found = byhand.explain(flat, position=0)
    assert found.attribution is not None
    assert found.attribution.limits
    assert all(
        not term.array[0, 0] for term in found.attribution if term.source.kind in ("token", "head")
    )
    for section in ("attribution", "stream"):
        assert "block.0.attn.norm" in told(found, section)
        assert "0/0 counts as 0" in told(found, section)
    assert document_of(found, ["attribution"])["attribution"]["logits"]["limits"]
    assert "0/0" not in told(byhand.explain(flat, position=1), "attribution")


# ------------------------------------------------------------------ what is proven, and how far


def test_exact_numbers_that_no_algebra_settles_are_proven_to_hold_0_not_exactly_0() -> None:
    found = byhand.explain("tiny")
    assert found.attribution is not None
    assert closing_text(Scope(found), found.attribution) == "remainder: exactly 0"
    only_proven = replace(found.attribution, closes="proven")
    assert closing_text(Scope(found), only_proven) == (
        "remainder: proven to contain 0, radius below 1e-300"
    )


def test_a_part_of_which_a_term_is_missing_is_undecided_not_half_a_part() -> None:
    turns = Turns(byhand.trace("abc"))
    lost = tuple(
        replace(term, value=None, missing=Missing("undecided", "x"))
        if term.source.address == "weight.block.0.mlp.out_bias"
        else term
        for term in turns.attribution.terms
    )
    turns.attribution = replace(turns.attribution, terms=lost)
    parts = [Part("mlp", 0), Part("attn", 0)]
    without = [[each.id for each in found] for found in turns.without_each(parts)]
    assert without == [[None] * 3, [1, 2, 0]]
    assert turns.added(Part("mlp", 0), 2) is None


# ------------------------------------------------------------------ every text, up to a length


def test_a_length_says_how_long_the_longest_texts_are() -> None:
    found = byhand.explain("abc", length=2)
    assert (found.inputs.length, len(found.inputs.rows), found.few_texts) == (2, 12, True)
    texts = {each["text"]: each for each in document_of(found, ["inputs"])["inputs"]["texts"]}
    assert texts["CB"] == {
        "text": "CB",
        "tokens": [2, 1],
        "next": 0,
        "proven": True,
        "suffix": 2,
        "without": [0, 2, 1],
        "needs": ["block.0.attn.out", "block.0.mlp.out"],
    }
    with pytest.raises(InputError):
        _ = byhand.explain("abc", length=9).inputs


def test_a_context_without_end_is_not_counted_through(tiny: Model) -> None:
    endless = replace(tiny, spec=replace(tiny.spec, context=10**9, position="none"))
    assert not byhand.explain(endless, "a").few_texts
    assert table(endless, parts=()).length == 6


# ------------------------------------------------------------------ the data say all there is


def test_the_data_of_a_fact_have_the_numbers_its_sentences_are_made_of() -> None:
    found = byhand.explain("abc")
    first = document_of(found, ["facts"])["facts"]["facts"][0]
    assert first["rival"] == {"id": 2, "text": "C"}
    assert first["lead"]["decimal"].startswith("10.9619")
    assert [each["leader"]["token"] for each in first["readings"]] == ["C", "C", "B"]
    added = {each["part"]: each["adds"]["decimal"] for each in first["contributions"]}
    assert added["block.0.mlp.out"].startswith("14.9499")
    checks = {each["part"]: each for each in first["checks"]}
    assert checks["block.0.attn.out"]["adds"]["decimal"].startswith("-2.4926")


def test_the_data_have_the_pattern_of_every_head_from_the_position_explained() -> None:
    found = byhand.explain("tiny", position=0)
    (layer,) = document_of(found, ["attention"])["attention"]
    assert layer["pattern"]["value"] == [["1", None]]
    assert layer["pattern"]["position"] == 0


def test_the_data_have_the_plane_with_rational_corners_and_what_is_projected_away() -> None:
    (plane,) = document_of(byhand.explain("abc"), ["geometry"])["geometry"]["planes"]
    assert (plane["drawn_from"], plane["projected_away"]) == ("exact", 0.0)
    assert {region["token"]["text"] for region in plane["regions"]} == {"A", "B", "C"}
    corners = [x for region in plane["regions"] for line in region["outlines"] for x, _y in line]
    assert all(isinstance(Fraction(x), Fraction) for x in corners)
    (wide,) = document_of(byhand.explain("journey"), ["geometry"])["geometry"]["planes"]
    assert 0.05 < wide["projected_away"] < 0.15
    assert "9.1 % is lost in projection" in told(byhand.explain("journey"), "geometry")


def test_the_whole_lens_is_in_the_data_where_it_is_asked_for() -> None:
    found = byhand.explain("abc")
    assert len(document_of(found)["lens"]) == 3
    rows = document_of(found, ["lens"])["lens"]
    assert [row["position"] for row in rows] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_health_in_full_tells_how_much_of_an_mlp_is_flat_or_straight() -> None:
    found = byhand.explain("abc")
    (layer,) = found.health.layers
    assert layer.units is not None
    gates = [entry > 0 for entry in found.trace["block.0.mlp.hidden"].array.ravel()]
    assert layer.units.linear == pytest.approx(sum(gates) / len(gates))
    assert layer.units.flat == pytest.approx(1 - sum(gates) / len(gates))
    assert "straight" in told(found, "health")
    assert "straight" not in told(found)

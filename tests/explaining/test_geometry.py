"""The stream as points: paths, what each stop would predict, angles, and planes."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import atan2, degrees, hypot
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import InputError
from byhand.explaining.geometry import Geometry, geometry_of
from byhand.explaining.planes import frame_of

ABC_HEAD = [("-0.6736", "1.2074"), ("0.6084", "0.1017"), ("-0.9377", "-0.5483")]
ABC_BIAS = ["-0.3363", "0.1241", "0.0937"]


@cache
def geometry(model: str, **numbers: Any) -> Geometry:
    return geometry_of(byhand.trace(model, **numbers))


def opened(tmp_path: Any, width: int, final_norm: str, corner: str = "1") -> Any:
    """A small model of one block without attention; its head is the identity as far as it goes."""
    hidden = ", ".join(f"[{', '.join('1' if i == j else '0' for j in range(width))}]"
                       for i in range(width))  # fmt: skip
    rows = [[corner if i == j else "0" for j in range(width)] for i in range(width)]
    head = ", ".join(f"[{', '.join(each)}]" for each in [*rows, ["-1"] * width])
    file = tmp_path / "model.yaml"
    tokens = "pqrs"[: width + 1]
    embed = ", ".join(f"[{', '.join(str(i - j) for j in range(width))}]" for i in range(width + 1))
    file.write_text(f"""
name: small
vocabulary: [{", ".join(tokens)}]
text: p q
model:
  d_model: {width}
  context: 2
  layers: 1
  layout: out_in
  position: none
  norm: {{kind: none}}
  attention: {{heads: 1, d_head: {width}, out: false}}
  mlp: {{d_ff: {width}, activation: relu}}
  final_norm: {final_norm}
  head: {{tied: false}}
weights:
  embed.token: [{embed}]
  block.0.attn.q: identity
  block.0.attn.k: identity
  block.0.attn.v: identity
  block.0.mlp.hidden: [{hidden}]
  block.0.mlp.out: [{hidden}]
  head: [{head}]
""")
    return byhand.trace(str(file))


# ------------------------------------------------------------------ paths


def test_a_path_goes_from_the_embedding_past_position_attention_and_mlp() -> None:
    path = geometry("abc").paths[2]
    assert [stop.address for stop in path.stops] == [
        "embed.token[2]", "stream.0[2]", "block.0.attn.add[2]", "block.0.mlp.add[2]",
    ]  # fmt: skip
    assert [stop.kind for stop in path.stops] == ["token", "position", "attn", "mlp"]


def test_the_stops_hold_the_numbers_of_the_trace_and_floats_near_them() -> None:
    found = geometry("abc")
    first, second, *_rest = found.paths[2].stops
    assert first.near == (1.2245, 1.4746)
    assert second.near == (1.4046, 0.8325)
    last = found.paths[2].stops[-1]
    assert last.near[0] == pytest.approx(float(found.trace["block.0.mlp.add[2,0]"].decimal(9)))


def test_post_norms_are_stops_of_their_own() -> None:
    path = geometry("tiny").paths[1]
    assert [stop.kind for stop in path.stops] == [
        "token", "position", "attn", "attn.norm", "mlp", "mlp.norm",
    ]  # fmt: skip
    assert path.stops[3].near == (1, -1)
    assert path.stops[5].near == (1, -1)


def test_a_path_ends_where_a_weight_is_unknown_and_says_which() -> None:
    path = geometry("abc-walkthrough").paths[0]
    assert [stop.kind for stop in path.stops] == ["token", "position"]
    assert path.last is None
    assert path.ended is not None
    assert path.ended.cause == "weight.block.0.attn.qkv"
    assert path.stops[1].near == pytest.approx((0.8828, 2.3007))


def test_only_the_positions_asked_for_have_a_path() -> None:
    trace = byhand.trace("abc")
    assert [path.position for path in geometry_of(trace, positions=[2]).paths] == [2]
    with pytest.raises(InputError, match="outside the text"):
        geometry_of(trace, positions=[3])


# ------------------------------------------------------------------ who leads


def logits_by_hand(at: tuple[Fraction, ...]) -> list[Fraction]:
    return [
        Fraction(x) * at[0] + Fraction(y) * at[1] + Fraction(b)
        for (x, y), b in zip(ABC_HEAD, ABC_BIAS, strict=True)
    ]


def test_each_stop_says_who_would_win_if_the_stream_ended_there() -> None:
    for path in geometry("abc").paths:
        for stop in path.stops:
            logits = logits_by_hand(tuple(Fraction(x) for x in stop.near))
            assert stop.leads is not None
            assert stop.leads.id == logits.index(max(logits))
            assert stop.leads.proven


def test_the_last_stop_says_what_the_trace_predicts() -> None:
    for model in ("abc", "tiny", "journey"):
        found = geometry(model)
        assert found.trace.next is not None
        assert [path.stops[-1].leads for path in found.paths] == found.trace.next


def test_a_point_on_a_boundary_is_a_tie_that_is_proven() -> None:
    start = geometry("tiny").paths[0].stops[0].leads
    assert start is not None
    assert (start.id, start.tied, start.proven) == (0, (0, 2), True)


@pytest.mark.parametrize("numbers", [{"float": "float32"}, {"decimals": 2}])
def test_rounded_numbers_lead_without_proof(numbers: dict[str, Any]) -> None:
    found = geometry("abc", **numbers)
    stops = [stop for path in found.paths for stop in path.stops]
    assert not any(stop.leads.proven for stop in stops if stop.leads is not None)
    assert found.planes[0].drawn_from == "exact"  # the head's weights are what they are


def test_enclosures_prove_who_leads() -> None:
    found = geometry("abc", digits=8)
    assert all(stop.leads is not None and stop.leads.proven
               for path in found.paths for stop in path.stops)  # fmt: skip


# ------------------------------------------------------------------ directions and angles


def test_directions_are_the_rows_of_the_head() -> None:
    first = geometry("abc").directions[0]
    assert first.exact == (Fraction("-0.6736"), Fraction("1.2074"))
    assert first.exact_bias == Fraction("-0.3363")
    assert first.turn == pytest.approx(degrees(atan2(1.2074, -0.6736)))
    assert first.length == pytest.approx(hypot(0.6736, 1.2074))


def test_a_head_that_is_stored_the_other_way_round_has_its_columns_as_directions() -> None:
    found = geometry("journey")
    head = found.trace.model.weights["head"].data
    assert [each.exact for each in found.directions] == [tuple(column) for column in head.T]


def test_angles_before_and_after_each_step() -> None:
    move = geometry("abc").paths[0].moves[-1]
    directions = geometry("abc").directions
    for stop in (move.before, move.after):
        for each, told in zip(directions, stop.angles, strict=True):
            turn = abs(degrees(atan2(stop.near[1], stop.near[0])) - (each.turn or 0))
            assert told == pytest.approx(min(turn, 360 - turn))
    assert move.after.angles[1] < move.before.angles[1]  # the MLP turns A towards B
    assert move.length == pytest.approx(hypot(*move.update))


def test_of_a_large_vocabulary_the_tokens_of_the_text_and_the_next_ones_are_taken() -> None:
    found = geometry("minigpt")
    shown = {each.id for each in found.directions}
    assert found.left_out == 64 - len(shown)
    assert found.trace.next is not None
    assert found.trace.next[-1].id in shown


# ------------------------------------------------------------------ planes


def test_every_end_lies_in_the_region_of_its_prediction() -> None:
    for model in ("abc", "tiny"):
        found = geometry(model)
        (plane,) = found.planes
        assert plane.drawn_from == "exact"
        by_token = {region.token: region.outlines[0] for region in plane.regions}
        for path in found.paths:
            last = path.stops[-1]
            assert last.leads is not None
            assert last.leads.id is not None
            outline = by_token[last.leads.id]
            at = tuple(Fraction(x) for x in last.near)
            sides = zip(outline, (*outline[1:], outline[0]), strict=True)
            assert all((a - x) * (at[1] - y) >= (b - y) * (at[0] - x) for (x, y), (a, b) in sides)


def test_through_a_final_norm_the_regions_are_sampled_and_say_so(tmp_path: Any) -> None:
    found = geometry_of(opened(tmp_path, 2, "{kind: rmsnorm, eps: 1, gain: false, bias: false}"))
    (plane,) = found.planes
    assert found.final_norm
    assert plane.drawn_from == "grid"
    assert len(plane.regions) == 3


def test_weights_that_are_not_rational_are_sampled(tmp_path: Any) -> None:
    (plane,) = geometry_of(opened(tmp_path, 2, "none", corner="sqrt(2)")).planes
    assert plane.drawn_from == "grid"
    assert [region.token for region in plane.regions] == [0, 1, 2]


def test_without_all_weights_of_the_head_there_are_no_regions() -> None:
    (plane,) = geometry("abc-walkthrough").planes
    assert (plane.regions, plane.drawn_from) == ((), "")
    assert plane.arrows[0] == pytest.approx((-0.5150, 1.2707))


def test_three_dimensions_are_three_coordinate_planes(tmp_path: Any) -> None:
    planes = geometry_of(opened(tmp_path, 3, "none")).planes
    assert [plane.projection.names for plane in planes] == [
        ("x₀", "x₁"), ("x₀", "x₂"), ("x₁", "x₂"),
    ]  # fmt: skip
    assert [plane.cut.axis for plane in planes if plane.cut] == [2, 1, 0]


@pytest.mark.parametrize("norm", ["none", "{kind: rmsnorm, eps: 1, gain: false, bias: false}"])
def test_in_three_dimensions_the_regions_are_those_of_a_cut_through_the_last_end(
    tmp_path: Any, norm: str
) -> None:
    found = geometry_of(opened(tmp_path, 3, norm))
    head = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, -1, -1)]  # a norm without bias keeps the order
    end = found.paths[-1].stops[-1].near
    for plane in found.planes:
        cut = plane.cut
        assert cut is not None
        assert cut.level == end[cut.axis]
        assert plane.drawn_from == ("exact" if norm == "none" else "grid")
        assert plane.regions
        for region in plane.regions:
            corners = [(float(x), float(y)) for x, y in region.outlines[0]]
            at = [sum(axis) / len(corners) for axis in zip(*corners, strict=True)]
            at.insert(cut.axis, cut.level)
            logits = [sum(w * x for w, x in zip(row, at, strict=True)) for row in head]
            assert logits[region.token] == max(logits)


def test_more_dimensions_are_one_plane_that_says_what_it_leaves_out() -> None:
    (plane,) = geometry("journey").planes
    assert plane.projection.away == pytest.approx(0.0909, abs=1e-4)
    assert sum(plane.projection.kept) == pytest.approx(1 - plane.projection.away)
    assert geometry("minigpt").planes[0].projection.away > 0.1


def test_a_frame_holds_every_point_and_is_never_a_strip() -> None:
    points = [(0.0, 0.0), (100.0, 1.0), (40.0, -2.0)]
    frame = frame_of(points)
    assert all(frame.left < x < frame.right and frame.bottom < y < frame.top for x, y in points)
    assert frame.height / frame.width > Fraction(3, 5)
    assert frame_of([(2.0, 2.0)]).width > 0
    assert np.isfinite(float(frame_of([(float("nan"), 1.0)]).width))

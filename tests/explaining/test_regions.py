"""Regions: inside a token's region it is the argmax, outside it is not; nothing is left over."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand.explaining.regions import (
    Frame,
    Point,
    Region,
    Row,
    exact_regions,
    sampled_regions,
    twice_area,
    winners,
)

FRAME = Frame(Fraction(-3), Fraction(-2), Fraction(5, 2), Fraction(3))
FEW = st.integers(-36, 36).map(lambda n: Fraction(n, 12))  # drawn faster than st.fractions
ROWS = st.lists(st.builds(Row, st.tuples(FEW, FEW), FEW), min_size=1, max_size=7)
PLACES = st.tuples(
    st.integers(-150, 125).map(lambda n: Fraction(n, 50)),
    st.integers(-100, 150).map(lambda n: Fraction(n, 50)),
)


def row(x: str, y: str, bias: str = "0") -> Row:
    return Row((Fraction(x), Fraction(y)), Fraction(bias))


def largest(rows: list[Row], at: Point) -> list[int]:
    """The ids of the largest logits: the rule of argmax, written out."""
    logits = [each.w[0] * at[0] + each.w[1] * at[1] + each.bias for each in rows]
    return [id for id, logit in enumerate(logits) if logit == max(logits)]


def strictly_inside(region: Region, at: Point) -> bool:
    """Whether a point lies left of every side of a convex anticlockwise polygon."""
    (outline,) = region.outlines
    sides = zip(outline, (*outline[1:], outline[0]), strict=True)
    return all((a - x) * (at[1] - y) > (b - y) * (at[0] - x) for (x, y), (a, b) in sides)


def centre(region: Region) -> Point:
    (outline,) = region.outlines
    x, y = (sum(axis, start=Fraction(0)) / len(outline) for axis in zip(*outline, strict=True))
    return x, y


@settings(max_examples=60)
@given(ROWS, st.lists(PLACES, min_size=1, max_size=6))
def test_a_point_lies_inside_a_region_just_where_its_token_alone_is_the_argmax(
    rows: list[Row], places: list[Point]
) -> None:
    regions = exact_regions(rows, FRAME)
    for at in [*places, *map(centre, regions)]:
        won = largest(rows, at)
        for region in regions:
            together = list(region.tied or (region.token,))
            if strictly_inside(region, at):
                assert won == together
            elif won == together:
                on_frame = at[0] in (FRAME.left, FRAME.right) or at[1] in (FRAME.bottom, FRAME.top)
                assert on_frame


@settings(max_examples=40)
@given(ROWS)
def test_the_regions_fill_the_frame_and_do_not_overlap(rows: list[Row]) -> None:
    areas = [twice_area(region.outlines[0]) for region in exact_regions(rows, FRAME)]
    assert all(area > 0 for area in areas)
    assert sum(areas) == 2 * FRAME.width * FRAME.height


@settings(max_examples=40)
@given(ROWS)
def test_a_token_wins_somewhere_just_if_a_wide_frame_has_a_region_of_it(rows: list[Row]) -> None:
    # differences are twelfths below 6, so their lines cross within 2·6·6·12² of the origin
    wide = Frame(*map(Fraction, (-20_000, -20_000, 20_000, 20_000)))
    assert winners(rows) == tuple(region.token for region in exact_regions(rows, wide))


def test_the_corner_of_three_regions_is_the_point_where_three_logits_are_equal() -> None:
    rows = [row("-0.6736", "1.2074", "-0.3363"), row("0.6084", "0.1017", "0.1241"),
            row("-0.9377", "-0.5483", "0.0937")]  # fmt: skip
    regions = exact_regions(rows, FRAME)
    (shared,) = set.intersection(*(set(region.outlines[0]) for region in regions))
    assert len({each.logit(shared) for each in rows}) == 1


def test_a_token_below_the_others_everywhere_never_wins() -> None:
    rows = [row("1", "0"), row("-1", "0"), row("0", "0", "-1")]
    assert winners(rows) == (0, 1)
    assert [region.token for region in exact_regions(rows, FRAME)] == [0, 1]


def test_a_token_that_wins_on_a_line_only_has_no_region() -> None:
    rows = [row("1", "0"), row("-1", "0"), row("0", "0")]
    assert largest(rows, (Fraction(0), Fraction(1))) == [0, 1, 2]
    assert winners(rows) == (0, 1)


def test_a_region_far_outside_the_frame_counts_as_a_win() -> None:
    rows = [row("0", "0"), row("1", "0", "-1000")]
    assert winners(rows) == (0, 1)
    assert [region.token for region in exact_regions(rows, FRAME)] == [0]


def test_tokens_with_one_row_share_a_region_under_the_lowest_id() -> None:
    rows = [row("1", "1"), row("0", "-1"), row("1", "1")]
    first, second = exact_regions(rows, FRAME)
    assert (first.token, first.tied) == (0, (0, 2))
    assert (second.token, second.tied) == (1, ())


def test_rows_of_zeros_win_by_their_bias() -> None:
    rows = [row("0", "0", "1"), row("1", "0"), row("0", "0", "1/2")]
    assert winners(rows) == (0, 1)
    assert twice_area(exact_regions(rows, FRAME)[1].outlines[0]) == 2 * Fraction(3, 2) * 5


def test_one_token_has_the_whole_frame() -> None:
    (only,) = exact_regions([row("0", "0")], FRAME)
    assert only.outlines == (FRAME.corners,)


# ------------------------------------------------------------------ on a grid

XS, YS = np.linspace(-3, 2.5, 23), np.linspace(-2, 3, 21)


def on_grid(rows: list[Row]) -> np.ndarray:
    across, up = np.meshgrid(XS, YS)
    return np.stack([float(r.w[0]) * across + float(r.w[1]) * up + float(r.bias) for r in rows], -1)


def area(region: Region) -> float:
    total = 0.0
    for outline in region.outlines:
        for (x, y), (a, b) in zip(outline, (*outline[1:], outline[0]), strict=True):
            total += float(x * b - a * y) / 2
    return total


def test_sampled_regions_of_a_linear_head_are_nearly_the_exact_ones() -> None:
    rows = [row("-0.5150", "1.2707"), row("1.1767", "1.2045"), row("-0.3778", "-0.6578")]
    sampled = sampled_regions(on_grid(rows), XS.tolist(), YS.tolist())
    exact = exact_regions(rows, FRAME)
    assert [region.token for region in sampled] == [region.token for region in exact]
    for one, other in zip(sampled, exact, strict=True):
        assert area(one) == pytest.approx(float(twice_area(other.outlines[0])) / 2, abs=0.05)
        assert len(one.outlines) == 1


def test_a_sampled_region_may_have_a_hole() -> None:
    across, up = np.meshgrid(XS, YS)
    inside = 1 - across**2 - up**2
    ring = sampled_regions(np.stack([inside, 0 * inside], -1), XS.tolist(), YS.tolist())
    assert [len(region.outlines) for region in ring] == [1, 2]
    assert area(ring[0]) == pytest.approx(np.pi, abs=0.1)
    assert area(ring[0]) + area(ring[1]) == pytest.approx(27.5)


def test_tokens_with_the_same_logits_on_the_whole_grid_are_told_together() -> None:
    rows = [row("1", "1"), row("0", "-1"), row("1", "1")]
    first, second = sampled_regions(on_grid(rows), XS.tolist(), YS.tolist())
    assert first.tied == (0, 2)
    assert area(first) + area(second) == pytest.approx(27.5)

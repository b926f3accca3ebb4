"""Projections: what a plane keeps, what it loses, and angles that are right."""

from __future__ import annotations

import numpy as np
import pytest

from byhand.explaining.projections import angle, coordinate_plane, cosine, main_plane

POINTS = np.random.default_rng(7).normal(size=(12, 5)) * [5, 3, 1, 0.5, 0.1]


def test_the_main_plane_loses_what_no_other_plane_can_keep() -> None:
    plane = main_plane(POINTS)
    spread = POINTS - POINTS.mean(axis=0)
    variances = np.sort(np.linalg.eigvalsh(spread.T @ spread))[::-1]
    assert plane.away == pytest.approx(variances[2:].sum() / variances.sum())
    assert plane.kept == pytest.approx(tuple(variances[:2] / variances.sum()))


def test_what_is_kept_and_what_is_projected_away_make_the_whole() -> None:
    plane = main_plane(POINTS)
    placed = np.array([plane.point(point) for point in POINTS])
    spread = ((POINTS - POINTS.mean(axis=0)) ** 2).sum()
    assert (placed**2).sum() / spread == pytest.approx(1 - plane.away)


def test_points_on_a_line_or_in_one_place_still_have_a_plane() -> None:
    line = np.outer([1.0, 2.0, 4.0], [0.0, 3.0, 4.0, 0.0])
    plane = main_plane(line)
    assert plane.away == pytest.approx(0)
    assert plane.point(line[2])[0] - plane.point(line[0])[0] == pytest.approx(15)
    alone = main_plane(np.array([[1.0, 2.0, 3.0, 4.0]]))
    assert np.array(alone.axes) @ np.array(alone.axes).T == pytest.approx(np.eye(2))
    assert (alone.away, alone.point(np.array([1.0, 2.0, 3.0, 4.0]))) == (0, (0, 0))


def test_a_coordinate_plane_says_what_the_third_entry_held() -> None:
    plane = coordinate_plane(np.array([[3.0, 0.0, 4.0], [0.0, 5.0, 0.0]]), 0, 1)
    assert plane.names == ("x₀", "x₁")
    assert plane.away == pytest.approx(16 / 50)
    assert plane.point(np.array([3.0, 7.0, 4.0])) == (3, 7)


def test_angles_are_right_where_a_cosine_would_lose_its_digits() -> None:
    assert angle(np.array([1.0, 0.0]), np.array([1.0, 1e-10])) == pytest.approx(np.degrees(1e-10))
    assert angle(np.array([1.0, 0.0]), np.array([0.0, 2.0])) == pytest.approx(90)
    assert angle(np.array([1.0, 2.0]), np.array([-2.0, -4.0])) == pytest.approx(180)


def test_nothing_has_no_direction() -> None:
    assert angle(np.zeros(2), np.array([1.0, 0.0])) is None
    assert cosine(np.array([1.0, 0.0]), np.zeros(2)) is None

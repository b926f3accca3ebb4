"""Pre-norm against post-norm: the same stacks but for the place of the norms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import byhand
from byhand.models import open_spec
from byhand.parameters import parameters
from byhand.train.norms import Comparison, Curve, compare_norms, initial, stack, write_comparison


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare_norms(depths=(2, 10), steps=40)


def curve(comparison: Comparison, place: str, depth: int) -> Curve:
    return next(c for c in comparison.curves if (c.place, c.depth) == (place, depth))


def test_deep_post_norm_stacks_do_not_learn_at_a_rate_that_pre_norm_bears(
    comparison: Comparison,
) -> None:
    assert curve(comparison, "pre", 10).losses[-1] < 2.2
    assert curve(comparison, "post", 10).losses[-1] > 3
    assert curve(comparison, "post", 2).losses[-1] < 2


def test_gradients_of_the_last_layer_shrink_with_depth_in_pre_norm_alone(
    comparison: Comparison,
) -> None:
    last = {(c.place, c.depth): c.gradients[-1] for c in comparison.curves}
    assert last["pre", 10] < 0.6 * last["pre", 2]
    assert last["post", 10] > 0.9 * last["post", 2]
    assert [len(c.gradients) for c in comparison.curves] == [2, 2, 10, 10]


def test_both_stacks_begin_with_the_same_matrices() -> None:
    pre, post = stack("pre", 3), stack("post", 3)
    first, second = initial(pre, 7), initial(post, 7)
    shared = [p.name for p in parameters(post)]
    assert all((first[name].data == second[name].data).all() for name in shared)
    assert pre.blocks[0].mlp == open_spec("minigpt-init").blocks[0].mlp


def test_the_same_numbers_give_the_same_figure(comparison: Comparison, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_comparison(comparison, tmp_path / name)
    for file in ("norms.svg", "norms.png", "norms.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    data = json.loads((tmp_path / "a" / "norms.json").read_text())
    assert data["curves"][0]["losses"] == list(comparison.curves[0].losses)


def test_the_numbers_in_the_docs_are_those_of_the_command() -> None:
    shown = json.loads((Path(byhand.models.__file__).parent / "norms.json").read_text())
    again = compare_norms(depths=(2,), steps=3)
    for found, expected in zip(again.curves, shown["curves"][:2], strict=True):
        assert (found.place, found.depth) == (expected["place"], expected["depth"])
        assert list(found.gradients) == pytest.approx(expected["gradients"], rel=1e-3)
        assert list(found.losses) == pytest.approx(expected["losses"][:3], rel=1e-4)

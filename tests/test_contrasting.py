"""What a change of weights did: byhand.contrast and byhand trace --against."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byhand as package
from byhand.contrasting import Bounds, _mean_square, same_plan
from byhand.document.sizes import between, between_shares
from byhand.errors import InputError
from byhand.model import Model
from byhand.numbers.exact import Exact
from byhand.weights import Tensor, Weights
from oracles.quantised_folders import quantised_llama

Call = Callable[..., Any]
TINY = package.open_model("tiny")


def changed(model: Model, name: str, index: tuple[int, ...], by: Fraction) -> Model:
    """The model with one weight that is larger by a number."""
    data = np.array(model.weights[name].data)
    data[index] += by
    weights = {**model.weights, name: Tensor(name, data)}
    return replace(model, weights=Weights(weights))


def test_one_weight_moves_the_steps_that_read_it_by_hand() -> None:
    # The embedding of a is (1, 0): its first number grows by 1/3.
    other = changed(TINY, "embed.token", (0, 0), Fraction(1, 3))
    found = package.contrast(package.trace(other, "a b"), package.trace(TINY, "a b"))
    assert found.first is not None
    assert found.first.address == "embed.token"
    first = found["embed.token"]
    assert first.largest.exact == Fraction(1, 3)
    assert (first.at, first.entries, first.proven) == ((0, 0), 4, True)
    # one of four entries moved: √((1/3)²/4) = 1/6; the entries are 1, 0, 0, 1: √(2/4)
    assert first.rms.least <= 1 / 6 <= first.rms.most
    assert first.size.least <= np.sqrt(0.5) <= first.size.most
    assert first.share is not None
    assert first.share.least <= np.sqrt(2) / 6 <= first.share.most
    assert first.rms.most - first.rms.least < 1e-14
    assert found["embed.position"].largest == Bounds(0.0, 0.0, Fraction(0))


def test_the_same_model_did_not_move_exactly() -> None:
    numbers = Exact()  # one space: named numbers are subtracted
    twice = [package.trace("tiny", numbers=numbers) for _each in range(2)]
    found = package.contrast(*twice)
    assert all(step.largest.exact == 0 and step.rms.most == 0 for step in found)
    assert found.first is None
    assert all(each.divergence == Bounds(0.0, 0.0, Fraction(0)) for each in found.predicted)
    assert not found.changed


def test_what_reads_the_same_numbers_did_not_move_whatever_is_known_of_them() -> None:
    other = changed(TINY, "block.0.mlp.out", (0, 0), Fraction(1, 3))
    now, before = (package.trace(each, "a b", numbers="digits 5") for each in (other, TINY))
    found = package.contrast(now, before)
    assert found["block.0.attn.weights"].largest == Bounds(0.0, 0.0, Fraction(0))  # e/(1 + e)
    assert found.first is not None
    assert found.first.address == "block.0.mlp.out"


def test_proven_sizes_contain_those_of_many_more_digits() -> None:
    journey = package.open_model("journey")
    other = changed(journey, "block.0.attn.q", (0, 0), Fraction(1, 3))
    coarse, fine = (
        package.contrast(*(package.trace(each, numbers=numbers) for each in (other, journey)))
        for numbers in ("digits 4", "digits 30")
    )
    assert coarse.proven
    assert [step.address for step in coarse] == [step.address for step in fine]
    assert coarse["logits"].largest.least > 0
    for wide, narrow in zip(coarse, fine, strict=True):
        for name in ("largest", "rms", "size"):
            outer, inner = getattr(wide, name), getattr(narrow, name)
            assert outer.least <= inner.most
            assert inner.least <= outer.most
    for before, after in zip(coarse.predicted, fine.predicted, strict=True):
        assert before.divergence is not None
        assert after.divergence is not None
        assert before.divergence.least <= after.divergence.most
        assert after.divergence.least <= before.divergence.most


def test_the_divergence_is_that_of_the_two_distributions() -> None:
    now, before = (package.trace(each, "she climb") for each in ("minigpt", "minigpt-init"))
    found = package.contrast(now, before)
    p, q = (np.asarray(trace["probs"], dtype=np.float64) for trace in (before, now))
    by_hand = (p * np.log(p / q)).sum(axis=1)
    for each, expected in zip(found.predicted, by_hand, strict=True):
        assert each.divergence is not None
        assert abs(each.divergence.most - expected) < 1e-4
        assert not each.proven


@given(st.lists(st.fractions(min_value=0, max_value=1000, max_denominator=997), min_size=1))
def test_a_root_mean_square_lies_between_its_bounds(sizes: list[Fraction]) -> None:
    floats = np.array([float(x) for x in sizes])
    radii = np.array([abs(float(x) * 2.0**-52) + 5e-324 * (x != 0) for x in sizes])
    found = _mean_square(floats, radii)
    square = sum(x * x for x in sizes) / len(sizes)
    assert Fraction(found.least) ** 2 <= square <= Fraction(found.most) ** 2


@pytest.mark.parametrize(
    ("least", "most", "told"),
    [
        (0.0, 0.0, "0"), (0.12345, 0.12346, "0.123"), (0.0, 1.5e-7, "≤ 1.50e-7"),
        (1234.4, 1234.6, "≤ 1.24e3"), (12.34, 12.341, "12.3"), (0.0, np.inf, "?"),
        (9.9961, 9.9962, "10.00"), (3.21e-9, 3.2101e-9, "3.21e-9"),
    ],
)  # fmt: skip
def test_a_size_is_told_to_the_digits_that_its_bounds_agree_on(
    least: float, most: float, told: str
) -> None:
    assert between(least, most) == told


def test_a_share_is_told_in_per_cent() -> None:
    assert between_shares(0.5, 0.5) == "50.0%"


# ------------------------------------------------------------------ what is refused


def test_models_of_other_plans_are_refused_with_what_differs() -> None:
    with pytest.raises(InputError, match=r"these two models have different plans: vocab, d_model"):
        same_plan(TINY.spec, package.open_model("minigpt").spec)


def test_other_constants_are_told() -> None:
    spec = TINY.spec
    block = spec.blocks[0]
    norm = replace(block.mlp_norm, eps=Fraction(1, 7))
    other = replace(spec, name="other", blocks=(replace(block, mlp_norm=norm),))
    assert same_plan(other, spec) == ("blocks.0.mlp_norm.eps: 0 → 1/7",)


def test_other_texts_and_other_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="not of the same text"):
        package.contrast(package.trace("tiny", "a b"), package.trace("tiny", "a a"))
    floats = package.trace("tiny", "a b", numbers="float32")
    with pytest.raises(InputError, match="not worked out in the same numbers"):
        package.contrast(floats, package.trace("tiny", "a b"))


# ------------------------------------------------------------------ the command line


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A quantised Llama, and another one of the same architecture."""
    place = tmp_path_factory.mktemp("llamas")
    return tuple(str(quantised_llama(place / kind, kind)[0]) for kind in ("gptq", "awq"))  # type: ignore[return-value]


def test_the_command_tells_every_step_and_every_prediction(
    byhand: Call, folders: tuple[str, str]
) -> None:
    shown = byhand("trace", folders[0], "1 5", "--against", folders[1], "--digits", "6")
    assert (shown.status, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert "  against  awq" in lines
    assert "  next     0 of 2 tokens are those of the original" in lines
    assert any(line.split()[:3] == ["logits", "15.7", "[0,5]"] for line in lines)
    assert any(line.split() == ["0", "·", "1", "5", "2*", "10.5"] for line in lines)
    assert "Every size is proven." in " ".join(shown.out.split())
    assert max(map(len, lines)) <= 80


def test_json_has_bounds_and_exact_numbers(byhand: Call, folders: tuple[str, str]) -> None:
    command = ["trace", folders[0], "1", "--against", folders[1], "--exact", "--json"]
    data = json.loads(byhand(*command).out)
    assert (data["model"], data["original"], data["proven"]) == ("gptq", "awq", True)
    steps = {step["address"]: step for step in data["steps"]}
    exact = Fraction(steps["embed.token"]["largest"]["exact"])
    assert steps["embed.token"]["largest"]["least"] <= exact
    assert exact <= steps["embed.token"]["largest"]["most"]
    assert [each["changed"] for each in data["next"]] == [True]
    assert data["next"][0]["divergence"]["least"] > 10


def test_steps_asked_for_stand_above_the_original(byhand: Call, folders: tuple[str, str]) -> None:
    shown = byhand("trace", folders[0], "1", "--against", folders[1], "--only", "logits")
    assert shown.status == 0
    assert sum(line.startswith("      original") for line in shown.out.splitlines()) > 0
    assert "block.0.attn.q" not in shown.out


def test_numbers_that_differ_by_their_size_alone_are_worked_out_in_the_finer_floats(
    byhand: Call, tmp_path: Path
) -> None:
    kinds = "gptq", "fp8"  # whose numbers need float32 and float64
    ours, theirs = (str(quantised_llama(tmp_path / kind, kind)[0]) for kind in kinds)
    shown = byhand("trace", ours, "1", "--against", theirs)
    assert "  numbers  float64" in shown.out.splitlines()


@pytest.mark.parametrize(
    "more", [["--at", "logits[0,0]"], ["--out", "x"], ["--stop-at-boundary"],
             ["--float", "float32", "--digits", "5"]],
)  # fmt: skip
def test_options_that_show_one_model_alone_are_refused(byhand: Call, more: list[str]) -> None:
    shown = byhand("trace", "tiny", "--against", "tiny", *more)
    assert shown.status == 2
    assert "--against exclude each other" in shown.err


def test_a_notebook_shows_the_steps() -> None:
    now, before = (package.trace(each, "she") for each in ("minigpt", "minigpt-init"))
    cell = package.contrast(now, before)._repr_html_()
    assert cell is not None
    assert "embed.token" in cell

"""The readers of attention: what is planted is told, with its numbers, and noise tells nothing."""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.planted import models
from benchmarks.planted.families import PORTS
from benchmarks.planted.port import Port
from hypothesis import given, settings
from hypothesis import strategies as st

import byhand
from byhand.checking.differences.masks_read import told_mask
from byhand.checking.differences.positions_read import ratio, roundest, told_positions
from byhand.checking.differences.score_changes import Seen, changes
from byhand.checking.differences.turns import Turns, positions_of, rates_of
from byhand.checking.verdicts import Marked

OFF = 1e-6


def turned_by(angles: Any, seed: int = 0) -> Turns:
    """Factors of these angles, with a little noise."""
    noise = np.random.default_rng(seed).standard_normal((2, *angles.shape)) * OFF
    return Turns(np.exp(1j * angles) + noise[0] + 1j * noise[1], np.full(angles.shape, OFF))


# ------------------------------------------------------------------------ angles


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-0.9, 0.9), min_size=1, max_size=8),
    st.sampled_from([8, 16, 64]),
    st.sampled_from([1e3, 1e4, 5e5]),
)
def test_positions_are_found_from_the_angles_of_the_pairs(
    turns: list[float], width: int, base: float
) -> None:
    rates = base ** -(np.arange(0, width, 2) / width)
    positions = np.array(turns) * (pi / rates[-1])  # up to nine tenths of half a slow turn
    found = positions_of(turned_by(np.multiply.outer(positions, rates)), rates)
    assert found is not None
    assert np.abs(found[0] - positions).max() < 1e-4
    far = positions + 4 * pi / rates[-1]
    again = positions_of(turned_by(np.multiply.outer(far, rates)), rates, far + 1)
    assert again is not None
    assert np.abs(again[0] - far).max() < 1e-4


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-3.1, 3.1), min_size=1, max_size=8), st.integers(3, 40))
def test_rates_are_found_from_the_angles_of_the_positions(rates: list[float], count: int) -> None:
    places = np.arange(count, dtype=float)
    found = rates_of(turned_by(np.multiply.outer(places, rates)), places)
    assert found is not None
    assert np.abs(found[0] - rates).max() < 1e-4


def test_angles_of_no_positions_have_none() -> None:
    rng = np.random.default_rng(3)
    angles = rng.uniform(-pi, pi, (12, 8))
    rates = 1e4 ** -(np.arange(8) / 8)
    assert positions_of(turned_by(angles), rates) is None
    assert rates_of(turned_by(angles), np.arange(12.0)) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p / 4, "multiplied by 1/4"),
        (lambda p: p + 3, "counts positions from 3"),
        (lambda p: -p, "the other way"),
        (lambda p: 2 * p, "applied twice"),
        (lambda p: np.minimum(p, 9), "stop at 9"),
        (lambda p: p % 8, "begin again after 7"),
        (lambda p: np.where(p > 4, p - 5, p), "begin again at position 5"),
        (lambda p: np.where(p > 6, p + 2, p), "larger by 2 from position 7 on"),
        (lambda p: p // 2, "2 neighbours share one position"),
        (lambda p: p * 0 + 6, "every position as position 6"),
        (lambda p: np.where(p == 7, 6, p), "position 7 is turned as position 6"),
    ],
)
def test_positions_are_put_into_words(change: Callable[[Any], Any], said: str) -> None:
    own = np.arange(16.0)
    told = told_positions(own, change(own) + 1e-7, np.full(16, 1e-6))
    assert told is not None
    assert said in told.said
    assert told.positions is not None
    assert np.allclose(told.positions, change(own))
    assert told_positions(own, own + 1e-7, np.full(16, 1e-6)) is None


def test_a_fitted_number_is_the_simplest_within_its_error() -> None:
    assert ratio(0.2500001, 1e-6) == 0.25
    assert ratio(0.3567, 1e-6) is None
    assert roundest(199_858.0, 100.0) == 200_000
    assert roundest(0.12345678, 1e-9) == pytest.approx(0.12345678, abs=3e-9)
    assert roundest(3e-9, 1e-8) == 0


# ------------------------------------------------------------------------ masks


@pytest.mark.parametrize(
    ("sees", "said"),
    [
        (lambda q, k: k >= 0, "no key is masked"),
        (lambda q, k: k < q, "does not see itself"),
        (lambda q, k: k <= q + 2, "sees 2 ahead"),
        (lambda q, k: (k <= q) & (q - k < 6), "sees back 6 keys"),
        (lambda q, k: (k <= q) & ((q - k < 5) | (k < 2)), "sees back 5 keys and the first 2"),
        (lambda q, k: (k <= q) & (q // 4 == k // 4), "its own block of 4 keys"),
        (lambda q, k: (k <= q) & ((q - k) % 3 == 0), "each 3th key back"),
        (lambda q, k: (k <= q) | ((k < 5) & (q < 5)), "the first 5 positions see each other"),
        (lambda q, k: (k <= q) & ((k != 5) | (q == 5)), "no later query sees key 5"),
        (lambda q, k: (k <= q) & (q - k != 3), "does not see the key 3 back"),
        (lambda q, k: (k <= q) & ((q != 9) | (k != 4)), "query 9 does not see key 4"),
    ],
)
def test_a_mask_is_told_as_a_pattern(sees: Callable[[Any, Any], Any], said: str) -> None:
    places = np.arange(16)
    query, key = places[:, None], places[None, :]
    own, seen = key <= query, sees(query, key) & np.ones((16, 16), dtype=bool)
    told = told_mask(seen, np.ones(own.shape, dtype=bool), own, places, places)
    assert told is not None
    assert said in told.said
    assert (told.mask == seen).all()
    assert told_mask(own, np.ones(own.shape, dtype=bool), own, places, places) is None


def test_a_mask_without_a_pattern_is_not_told() -> None:
    places = np.arange(16)
    own = places[None, :] <= places[:, None]
    seen = own & (np.random.default_rng(0).random(own.shape) < 0.6)
    assert told_mask(seen, np.ones(own.shape, dtype=bool), own, places, places) is None


# ------------------------------------------------------------------------ scores


def scores(change: Callable[[Any, Any], Any], *, free: bool) -> Seen:
    """Scores of 4 heads and 12 positions, changed, with noise of 1e-6."""
    rng, places = np.random.default_rng(1), np.arange(12)
    own = rng.standard_normal((4, 12, 12)) * 2
    back = places[:, None] - places[None, :]
    found = change(own, back) + rng.standard_normal(own.shape) * OFF
    if free:
        found = found + rng.standard_normal((4, 12, 1))
    there = np.broadcast_to(back >= 0, own.shape)
    return Seen(own, found, np.full(own.shape, OFF), there, free, places, places)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s, d: 0.8 * s, "multiplied by 4/5"),
        (lambda s, d: s * np.array([1, 1, 0.5, 1])[:, None, None], "2: 0.5"),
        (lambda s, d: 5 * np.tanh(s / 5), "5·tanh(score/5)"),
        (lambda s, d: s - 0.3 * abs(d), "-0.3 times the distance"),
        (lambda s, d: s - np.abs(d) * 2.0 ** -np.array([2, 4, 6, 8])[:, None, None], "ALiBi"),
    ],
)
def test_a_change_of_scores_is_read_off_scores_and_off_weights(
    change: Callable[[Any, Any], Any], said: str, free: bool
) -> None:
    [told] = changes(scores(change, free=free))
    assert said in told.said


@pytest.mark.parametrize("free", [False, True])
def test_noise_is_no_change_of_scores(free: bool) -> None:
    assert not list(changes(scores(lambda s, d: s, free=free)))
    noise = np.random.default_rng(2).standard_normal((4, 12, 12))
    assert not list(changes(scores(lambda s, d: s + 0.1 * noise, free=free)))


# ------------------------------------------------------------------------ through the check


def first_error(family: str, plant: Callable[[Port], None], format: str = "float32") -> Marked:
    """The first wrong line of a port's first attention, where every line is claimed."""
    model, ids = models.model(family, 0), models.some_ids(family, 0)
    port = PORTS[family](model, ids, format)
    plant(port)
    values = port.run()
    claims = {name: values[name] for name in values if name.startswith("block.0.attn.")}
    text = " ".join(map(str, ids))
    line = byhand.check(model, claims, text=text, precision=format).first_error
    assert line is not None
    return line


def causes(line: Marked) -> list[str]:
    return [suspect.sentence for suspect in line.suspects]


def yarn(port: Port) -> None:
    usual = port.cos_and_sin

    def cos_and_sin(width: int) -> Any:
        port.places = port.places / 8
        tables = tuple(table * (0.1 * log(8) + 1) for table in usual(width))
        port.places = port.places * 8
        return tables

    port.instead(cos_and_sin=cos_and_sin)


def sink(port: Port) -> None:
    def shares(scores: torch.Tensor) -> torch.Tensor:
        extra = torch.full((*scores.shape[:2], 1), 0.75)
        return torch.cat((scores, extra), dim=-1).softmax(-1)[..., :-1]

    port.instead(shares=shares)


def stale_key_scaled(port: Port) -> None:
    usual = port.scores

    def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        k = k.clone()
        k[:, 7] = k[:, 6]
        return usual(q, k) * 0.9

    port.instead(scores=scores)


def values_shifted(port: Port) -> None:
    port.instead(mixed=lambda weights, v: weights @ torch.cat((v[:, :1], v[:, :-1]), dim=1))


def one_key_head(port: Port) -> None:
    port.instead(spread=lambda x: x[[0] * port.heads])


def heads_reversed(port: Port) -> None:
    usual = port.merged
    port.instead(merged=lambda mixed: usual(mixed.flip(0)))


@pytest.mark.parametrize(
    ("family", "plant", "format", "step", "said"),
    [
        ("llama", yarn, "float32", "q_rotated", "multiplied by 1/8 and what is turned"),
        ("gpt2", sink, "float32", "weights", "an extra score of 0.75 stands in the denominator"),
        ("llama", stale_key_scaled, "float32", "scores", "key 7 is that of 6 and the scores"),
        ("gpt2", values_shifted, "bfloat16", "mixed", "value is that of the position 1 before"),
        ("llama", one_key_head, "bfloat16", "scores", "head h reads head 0 of k"),
        ("gpt2", heads_reversed, "float32", "out", "heads stand in another order (0 ← 5"),
    ],
)  # fmt: skip
def test_the_cause_is_named(
    family: str, plant: Callable[[Port], None], format: str, step: str, said: str
) -> None:
    line = first_error(family, plant, format)
    assert line.address == f"block.0.attn.{step}"
    assert any(said in each for each in causes(line)), (causes(line), line.described)


def test_noise_has_no_cause() -> None:
    def noisy(port: Port) -> None:
        usual = port.scores
        noise = torch.Generator().manual_seed(0)

        def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            made = usual(q, k)
            return made * (1 + 0.01 * torch.randn(made.shape, generator=noise))

        port.instead(scores=scores)

    assert not causes(first_error("gpt2", noisy))


def test_rows_that_are_not_numbers_are_told() -> None:
    def blind(port: Port) -> None:
        port.instead(shares=lambda scores: scores.index_fill(1, torch.tensor([4]), -torch.inf)
                     .softmax(-1))  # fmt: skip

    line = first_error("gpt2", blind)
    assert any("rows of weights are not numbers (query 4)" in each for each in line.described)

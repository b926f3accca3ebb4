"""Surveys: flips, margins, errors and layers against numbers worked out here in torch and NumPy."""

from __future__ import annotations

from dataclasses import replace
from math import erf, sqrt

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import byhand
from byhand.errors import ByhandError
from byhand.model import Model
from byhand.scoring.flips import Flips, bins, doublings, foretold
from byhand.scoring.layers import Reader
from byhand.scoring.scorer import Scorer
from byhand.scoring.small_weights import rounded, with_small_weights
from byhand.scoring.survey import Survey
from byhand.scoring.texts import read_texts
from byhand.scoring.tokens import Tokens
from byhand.train.corpora import open_corpus

TEXTS = [list(map(int, each)) for each in open_corpus("verbs").train[::40]]
SOME = ("float32", "bfloat16", "float8_e4m3")


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return byhand.open_model("minigpt")


@pytest.fixture(scope="module")
def survey(minigpt: Model) -> Survey:
    return byhand.survey(minigpt, TEXTS, formats=SOME)


# ----------------------------------------------------------------------- against torch


def turned(x: torch.Tensor) -> torch.Tensor:
    """RoPE on (position, head, width), the two halves paired."""
    positions, _heads, width = x.shape
    slow = 10000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angle = (torch.arange(positions, dtype=x.dtype)[:, None] * slow)[:, None]
    first, second = x[..., : width // 2], x[..., width // 2 :]
    return torch.cat((first * angle.cos() - second * angle.sin(),
                      second * angle.cos() + first * angle.sin()), dim=-1)  # fmt: skip


def streams_and_logits(model: Model, ids: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The streams and logits of minigpt in float64, from its weights alone."""
    w = {
        name: torch.tensor(np.array(t.data, dtype=np.float64)) for name, t in model.weights.items()
    }
    eps = 1e-5

    def norm(x: torch.Tensor, at: str) -> torch.Tensor:
        gain, bias = w[f"{at}.gain"], w[f"{at}.bias"]
        return torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias, eps)

    x = w["embed.token"][ids]
    found = [x]
    for layer in range(len(model.spec.blocks)):
        at = f"block.{layer}"
        y = norm(x, f"{at}.attn.norm")
        q, k, v = ((y @ w[f"{at}.attn.{name}"]).view(len(ids), 4, 16) for name in "qkv")
        q, k = turned(q), turned(k)
        scores = torch.einsum("qhd,khd->hqk", q, k) / 4
        future = torch.ones(len(ids), len(ids)).triu(1).bool()
        shares = scores.masked_fill(future, -torch.inf).softmax(-1)
        x = x + torch.einsum("hqk,khd->qhd", shares, v).reshape(len(ids), 64) @ w[f"{at}.attn.out"]
        y = norm(x, f"{at}.mlp.norm") @ w[f"{at}.mlp.hidden"] + w[f"{at}.mlp.hidden_bias"]
        y = torch.nn.functional.gelu(y) if model.spec.blocks[0].mlp.activation == "gelu" else y
        x = x + y @ w[f"{at}.mlp.out"] + w[f"{at}.mlp.out_bias"]
        found.append(x)
    return found, norm(x, "final.norm") @ w["embed.token"].T


def test_margins_and_flips_are_those_of_the_weights(minigpt: Model, survey: Survey) -> None:
    margins, best, logprobs = [], [], []
    for ids in TEXTS:
        logits = streams_and_logits(minigpt, ids[:-1])[1]
        two = logits.topk(2).values
        margins += (two[:, 0] - two[:, 1]).tolist()
        best += logits.argmax(-1).tolist()
        logprobs += logits.log_softmax(-1)[range(len(ids) - 1), ids[1:]].tolist()
    truth = survey.truth
    assert truth.margins == pytest.approx(np.array(margins), abs=1e-9)
    assert truth.logprobs == pytest.approx(np.array(logprobs), abs=1e-9)
    assert truth.best.tolist() == best
    beginnings = [tuple(ids[:end]) for ids in TEXTS for end in range(1, len(ids))]
    fresh = [each not in beginnings[:place] for place, each in enumerate(beginnings)]
    assert survey.fresh.tolist() == fresh
    for run, effects in zip(survey.runs, survey.effects, strict=True):
        flips = [own != true for own, true in zip(run.tokens.best, best, strict=True)]
        assert effects.flips == Flips(int(np.sum(np.array(flips) & fresh)), sum(fresh))
        equal = np.array(flips) & fresh & (run.tokens.margins == 0)
        assert effects.equal == int(equal.sum())
        errors = np.abs(run.tokens.logprobs - np.array(logprobs))[fresh]
        assert np.median(errors) == pytest.approx(
            np.median(np.abs(survey.errors(run))[fresh]), abs=1e-9
        )
    assert survey["bfloat16"].flips.count > survey["float32"].flips.count == 0
    assert survey["bfloat16"].equal > 0


def test_errors_of_layers_are_those_of_the_streams(minigpt: Model) -> None:
    (sample,) = read_texts(minigpt, [max(TEXTS, key=len)])
    _scores, proven = Reader(Scorer(minigpt, digits=6)).read(sample)
    _scores, run = Reader(Scorer(minigpt, "bfloat16")).read(sample)
    true, _logits = streams_and_logits(minigpt, list(sample.ids[:-1]))
    streams, _read_off = run.errors(proven)
    for place, stream in enumerate(true):
        assert proven.streams[place] == pytest.approx(stream.numpy(), abs=1e-9)
        off = torch.tensor(run.streams[place]) - stream
        assert streams[:, place] == pytest.approx((off.norm(dim=-1) / stream.norm(dim=-1)).numpy())
    assert proven.doubt < 1e-9


# ----------------------------------------------------------------------- counting


def test_bins_add_up(survey: Survey) -> None:
    tokens = int(survey.judged.sum())
    assert sum(count for _low, _high, count in survey.margins) == tokens
    for effects in survey.effects:
        for parts in (effects.by_margin, effects.by_position):
            assert sum(each.tokens for each in parts) == tokens
            assert sum(each.flips.count for each in parts) == effects.flips.count
            assert sum(each.flips.of for each in parts) == effects.flips.of
        assert [layer.address for layer in effects.layers] == ["stream.0", "stream.1", "stream.2"]


def test_a_run_that_is_the_truth_has_no_flip_and_no_error(survey: Survey) -> None:
    same = replace(survey.runs[0], tokens=survey.truth)
    planted = replace(survey, runs=(same,)).effects[0]
    assert (planted.flips.count, planted.foretold, planted.deviation) == (0, 0.0, 0.0)
    assert (set(planted.errors), set(planted.changes)) == ({0.0}, {0.0})


def test_errors_below_the_radius_of_the_truth_are_called_blurred(survey: Survey) -> None:
    wide = [replace(s, radii=s.radii + 1e-5) for s in survey.truth.scores]
    assert survey.blurred == ()
    assert replace(survey, truth=Tokens(tuple(wide))).blurred == ("float32",)


def test_a_planted_flip_is_found_in_its_bin(survey: Survey) -> None:
    place = int(np.flatnonzero(survey.judged)[3])
    scores = survey.truth.scores[int(survey.truth.text[place])]
    row = place - int((survey.truth.text < survey.truth.text[place]).sum())
    best = scores.best.copy()
    best[row] = (best[row] + 1) % 64
    each = [replace(s, best=best) if s is scores else s for s in survey.truth.scores]
    run = replace(survey.runs[0], tokens=Tokens(tuple(each)))
    effects = replace(survey, runs=(run,)).effects[0]
    assert effects.flips.count == 1
    (found,) = [own for own in effects.by_margin if own.flips.count]
    assert found.low <= survey.truth.margins[place] < found.high
    (found,) = [own for own in effects.by_position if own.flips.count]
    assert found.low <= survey.truth.position[place] < found.high


def test_proven_ties_are_told_apart() -> None:
    found = byhand.survey("tiny", "c a", formats="float32")  # after c all words are equal
    assert found.tied.tolist() == [True]
    assert found["float32"].flips == Flips(0, 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_ends_of_the_interval_are_wilsons(pair: tuple[int, int]) -> None:
    """At each end p, the share is 1.96 deviations of a share of p away."""
    count, of = pair
    low, high = Flips(count, of).interval
    assert 0 <= low <= count / of <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            away = abs(count / of - end) / sqrt(end * (1 - end) / of)
            assert away == pytest.approx(1.959963984540054, rel=1e-6)


def test_what_is_foretold_follows_from_margins_and_deviation() -> None:
    margins = np.array([0.1, 0.5, 2.0])
    expected = sum(0.5 - erf(m / 0.4 / sqrt(2)) / 2 for m in margins)
    assert foretold(margins, 0.4) == pytest.approx(expected)
    values = np.array([1.0, 3.0, np.nan])
    yes = np.array([True, False, False])
    parts = bins(values, doublings(3), yes, ~np.isnan(values), values, -values)
    assert [(own.low, own.tokens, own.flips.count, own.change) for own in parts] == [
        (1.0, 1, 1, 1.0), (2.0, 1, 0, 3.0),
    ]  # fmt: skip


# ----------------------------------------------------------------------- weights in 8 bits


def test_weights_in_8_bits_are_the_nearest_ones(minigpt: Model) -> None:
    every = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    every = np.unique(every[np.isfinite(every)])
    small = with_small_weights(minigpt)
    changed = {n for n in small.weights if small.weights[n] is not minigpt.weights[n]}
    assert changed == {
        f"block.{layer}.{name}"
        for layer in range(2)
        for name in ("attn.q", "attn.k", "attn.v", "attn.out", "mlp.hidden", "mlp.out")
    }
    for name in sorted(changed)[:3]:
        before = np.asarray(minigpt.weights[name].data, dtype=np.float64)
        scale = float(np.float32(np.abs(before).max() / 448))
        after = np.asarray(small.weights[name].data, dtype=np.float64)
        near = np.abs((before / scale)[..., None] - every).min(axis=-1)
        assert np.abs(after / scale - before / scale) == pytest.approx(near, abs=1e-4)
    fine = np.array([448.0, 1 + 2.0**-4 + 2.0**-40, 1 + 2.0**-4])  # rounded once, ties to even
    assert rounded(fine).tolist() == [448.0, 1.125, 1.0]


# ----------------------------------------------------------------------- refusals and documents


def test_float64_may_stand_for_the_truth_and_proves_nothing() -> None:
    found = byhand.survey("minigpt", TEXTS[:2], formats=["bfloat16"], float="float64")
    assert (found.proven, found.answered, found.truth.numbers) == (False, True, "float64")
    from byhand.document.reports import survey_report

    assert "nothing is proven" in survey_report(found).page()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"formats": "float32,fp4"}, "some of float32, float16, bfloat16, float8_e4m3"),
        ({"formats": []}, "some of float32"),
        ({"float": "float32"}, "float64"),
        ({"float": "float64", "digits": 6}, "exclude each other"),
        ({"digits": 40}, "a whole number from 1 to 12"),
    ],
)
def test_what_cannot_be_surveyed_is_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(ByhandError, match=said):
        byhand.survey("tiny", "a b", **asked)  # type: ignore[arg-type]


def test_the_page_has_a_plot_for_each_question(survey: Survey) -> None:
    from byhand.document.reports import survey_report

    page = survey_report(survey).page()
    assert page.count("<svg") == 6
    for name in ("flips", "margins", "errors", "positions", "layers"):
        assert f'href="#{name}"' in page
    assert "changes the model" in page

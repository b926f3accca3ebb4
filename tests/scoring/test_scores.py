"""Scores of texts: samples, enclosures, floats, standings, and what errors look like."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import ByhandError
from byhand.model import Model
from byhand.scoring.float_rows import float_scores
from byhand.scoring.likeness import LIKE, NARROWER, UNCLEAR, WIDER, likeness
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer
from byhand.scoring.standings import standings, standings_of_engine
from byhand.scoring.summaries import summary
from byhand.scoring.texts import read_texts
from byhand.scoring.tokens import Engine, Tokens

LOGS = Path(__file__).parents[2] / "docs" / "examples" / "scores"


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return byhand.open_model("minigpt")


# ----------------------------------------------------------------------- texts


def test_texts_come_from_strings_files_and_objects(minigpt: Model, tmp_path: Path) -> None:
    lines = [
        json.dumps("<en> she climb"),
        json.dumps([2, 10, 52]),
        json.dumps({"prompt": "<en> yesterday ", "completion": "she climb -ed", "id": "mine"}),
        json.dumps({"input_ids": [2, 5, 10, 52], "prompt_length": 2}),
        json.dumps({"prompt_ids": [2, 5], "completion_ids": [10]}),
    ]
    (tmp_path / "some.jsonl").write_text("\n".join(lines))
    (tmp_path / "ids.ids").write_text("2 10 52\n\n2,5,10\n")
    np.save(tmp_path / "rows.npy", np.array([[2, 10, 52], [2, 5, 10]]))
    (tmp_path / "one.txt").write_text("<en> she climb")
    found = read_texts(minigpt, [str(tmp_path / "some.jsonl")])
    assert [each.ids for each in found] == [
        (2, 10, 52), (2, 10, 52), (2, 5, 10, 52, 22), (2, 5, 10, 52), (2, 5, 10)
    ]  # fmt: skip
    assert [each.first for each in found] == [1, 1, 2, 2, 2]
    assert [each.name for each in found] == ["some:1", "some:2", "mine", "some:4", "some:5"]
    for name in ("ids.ids", "rows.npy"):
        pair = read_texts(minigpt, tmp_path / name)
        assert [each.ids for each in pair] == [(2, 10, 52), (2, 5, 10)]
    assert read_texts(minigpt, tmp_path / "one.txt")[0].scored == (10, 52)
    assert read_texts(minigpt, [2, 10, 52])[0].ids == (2, 10, 52)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", '{"text": 3}', "text is not a text"),
        ("a.jsonl", "she climb", "this is not JSON"),
        ("a.jsonl", '{"txt": "she"}', "did you mean text?"),
        ("a.jsonl", '{"messages": []}', "chat template"),
        ("a.jsonl", '{"ids": [2, 1.5]}', "ids is not a list of token ids"),
        ("a.jsonl", "[2, 900]", "ids from 0 to 63"),
        ("a.jsonl", "[2]", "there is no token to score"),
        ("a.jsonl", '{"ids": [2, 5], "first": 2}', "of which 2 are the prompt"),
        ("a.jsonl", "", "the file holds no text"),
        ("a.ids", "2 five", "this is not a token id"),
        ("a.npy", "no array", "the file cannot be read"),
        ("a.jsonl", json.dumps([2] * 40), "too long for this model"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(
    minigpt: Model, tmp_path: Path, name: str, content: str, said: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ByhandError) as caught:
        read_texts(minigpt, tmp_path / name)
    assert said in str(caught.value)
    assert name in str(caught.value) or "text a" in str(caught.value)


# ----------------------------------------------------------------------- scores


def truly(model: Model, sample: Sample) -> Any:
    """The logits before each scored token in float64."""
    return Scorer(model, "float64").logits(sample)


def test_enclosures_hold_what_float64_finds(minigpt: Model) -> None:
    (sample,) = read_texts(minigpt, "<en> yesterday she climb -ed = ella sub -ió")
    (proven,) = Scorer(minigpt, digits=8).score([sample])
    rough = float_scores(sample, "float64", truly(minigpt, sample))
    for name, radius in (
        ("logprobs", "radii"), ("margins", "margin_radii"), ("entropies", "entropy_radii")
    ):  # fmt: skip
        off = np.abs(getattr(proven, name) - getattr(rough, name))
        assert (off <= getattr(proven, radius) + 1e-12).all()
        assert (getattr(proven, radius) < 1e-8).all()
    assert proven.ranks.tolist() == rough.ranks.tolist() == [2, 5, 9, 1, 2, 1, 1, 1]
    assert proven.best.tolist() == rough.best.tolist()
    assert proven.best_proven.all()


def test_a_prompt_is_read_and_not_scored(minigpt: Model) -> None:
    whole, part = read_texts(
        minigpt, ["<en> she climb", {"ids": minigpt.read("<en> she climb"), "first": 2}]
    )
    scorer = Scorer(minigpt, digits=6)
    one, other = scorer.score([whole, part])
    assert len(other.ids) == 1
    assert other.logprobs[0] == pytest.approx(one.logprobs[1], abs=1e-12)


def test_words_with_the_same_weights_are_a_proven_tie() -> None:
    model = byhand.open_model("tiny")
    head = model.weights["embed.token"].data.copy()
    rows = [tuple(row) for row in head.tolist()]
    assert len(set(rows)) == 3
    scored = byhand.score("tiny", "c a", digits=6, float="float32")
    assert scored.standings is not None
    assert [token.standing for token in scored.tokens()] == ["tie"]  # after c all words are equal
    assert scored.truth.margins.tolist() == [0.0]


def test_a_model_that_answers_otherwise_is_refused() -> None:
    with pytest.raises(ByhandError, match="cannot be scored"):
        byhand.score("docs/examples/translator.yaml", "a b")


# ----------------------------------------------------------------------- errors


def test_the_estimates_are_those_of_the_formulas() -> None:
    truth, logged = np.log([0.5, 0.25, 0.1]), np.log([0.4, 0.25, 0.15])
    found = summary(np.append(logged, np.nan), np.append(truth, -1.0), np.zeros(4), 0.2)
    r = np.exp(truth - logged)
    assert (found.count, found.missing) == (3, 1)
    assert found.k1 == pytest.approx(-np.log(r).mean())
    assert found.k2 == pytest.approx((np.log(r) ** 2).mean() / 2)
    assert found.k3 == pytest.approx((r - 1 - np.log(r)).mean())
    assert found.clipped == pytest.approx(2 / 3)  # 1.25 and 0.67 are outside 1 ± 0.2
    assert found.bias == pytest.approx((logged - truth).mean())


def errors(scale: float, count: int = 400, seed: int = 1) -> Any:
    return scale * np.random.default_rng(seed).normal(size=count)


@pytest.mark.parametrize(
    ("scale", "count", "kind"),
    [(1.0, 400, LIKE), (10.0, 400, WIDER), (0.1, 400, NARROWER), (1.0, 20, UNCLEAR),
     (2.15, 400, UNCLEAR)],
)  # fmt: skip
def test_errors_are_told_from_those_of_a_format_as_far_as_they_can_be(
    scale: float, count: int, kind: str
) -> None:
    true, text = np.full(count, -2.0), np.zeros(count, dtype=np.int64)
    own = errors(0.01, count, seed=2)
    found = likeness("bfloat16", errors(0.01 * scale, count), own, true, text)
    assert found.kind == kind
    assert not found.biased
    again = likeness("bfloat16", errors(0.01 * scale, count), own, true, text)
    assert (found.low, found.high) == (again.low, again.high) or count < 30


def test_a_few_wrong_tokens_and_a_lean_are_told_apart() -> None:
    true, text = np.full(400, -2.0), np.repeat(np.arange(40), 10)
    theirs, own = errors(0.01), errors(0.01, seed=2)
    theirs[[70, 71]] = 1.0
    found = likeness("float16", theirs, own, true, text)
    assert (found.kind, found.beyond.tolist(), found.biased) == (LIKE, [70, 71], False)
    assert likeness("float16", errors(0.01) + 0.02, own, true, text).biased
    certain = likeness("float16", theirs, own, np.full(400, -1e-4), text)
    assert (certain.kind, certain.beyond.tolist()) == (UNCLEAR, [70, 71])


def tokens(logits: Any, ids: tuple[int, ...], proven: bool = True) -> Tokens:
    """Scores that the logits give, called proven or not."""
    made = float_scores(Sample("it", (0, *ids)), "digits 6", np.asarray(logits, dtype=np.float64))
    zeros = np.zeros(len(ids))
    every = np.full(len(ids), proven)
    return Tokens((replace(made, radii=zeros, margin_radii=zeros, best_proven=every),))


def test_each_standing_is_what_it_says() -> None:
    logits = np.array([[9.0, 0, 0], [1.0, 0.99, 0], [1.0, 1.0, 0], [3.0, 0, 0], [4.0, 0, 0]])
    off = np.array([[0.01, 0, 0], [-0.02, 0, 0], [0.01, 0, 0], [-0.01, 0, 0], [0.01, 0, 0]])
    truth, run = tokens(logits, (0, 0, 0, 0, 1)), tokens(logits + off, (0, 0, 0, 0, 1))
    found = standings(truth, run, "bfloat16")
    assert found.spread == pytest.approx(4 * 1.4826 * 0.01)
    assert [found.of(place) for place in range(5)] == ["safe", "flipped", "tie", "safe", "safe"]
    close = standings(truth, tokens(logits + off / 4, (0, 0, 0, 0, 1)), "bfloat16")
    assert close.of(1) == "near tie"
    unproven = standings(tokens(logits, (0, 0, 0, 0, 1), proven=False), run, "bfloat16")
    assert {unproven.of(place) for place in range(5)} == {"open"}


def test_a_log_proves_a_flip_only_by_more_than_half_or_less_than_its_share() -> None:
    logits = np.array([[3.0, 0, 0]] * 4)
    truth = tokens(logits, (0, 0, 1, 1))
    under = standings(truth, truth, "float32")
    logged = np.log([0.34, 0.33, 0.51, 0.49])
    engine = Engine("it", logged, np.full(4, -1))
    found = standings_of_engine(truth, engine, under, vocabulary=3)
    assert [found.of(place) == "flipped" for place in range(4)] == [False, True, True, False]
    doubtful = standings_of_engine(truth, replace(engine, in_doubt=True), under, vocabulary=3)
    assert doubtful.count("flipped") == 0


# ----------------------------------------------------------------------- the whole


@pytest.fixture(scope="module")
def scored() -> byhand.Scored:
    return byhand.score("minigpt", against=[LOGS / "half.jsonl", f"bad={LOGS / 'shifted.jsonl'}"])


def test_the_planted_shift_is_found_where_it_is(scored: byhand.Scored) -> None:
    half, bad = scored.against
    assert (half.name, bad.name) == ("half", "bad")
    assert [one.format for one in half.alike] == [one.format for one in bad.alike] == ["float16"]
    assert len(half.alike[0].beyond) == 0
    first, second = (scored.token(place) for place in bad.alike[0].beyond.tolist())
    assert (first.text, first.position, first.token) == ("17", 7, "vosotros")
    assert first.errors["bad"] == pytest.approx(-9.18, abs=0.01)
    assert abs(first.errors["half"]) < 0.01
    assert (second.text, second.position) == ("17", 10)
    assert bad.standings is not None
    assert bad.standings.count("flipped") == 1 + (half.standings.count("flipped") if half.standings
                                                  else 0)  # fmt: skip


def test_the_report_tells_it_on_a_page_in_a_cell_and_as_data(
    scored: byhand.Scored, tmp_path: Path
) -> None:
    from byhand.document.reports import score_report

    page = score_report(scored).page()
    assert page.count("<svg") == 5
    assert "byhand check minigpt dump.safetensors" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "<svg" in scored._repr_html_()  # type: ignore[operator]
    scored.save(tmp_path / "out")
    data = json.loads((tmp_path / "out" / "score.json").read_text("utf-8"))
    assert data["proven"] is True
    assert [engine["engine"] for engine in data["engines"]] == ["half", "bad"]
    assert len(data["tokens"]) == data["engines"][1]["summary"]["count"] == 220
    assert (tmp_path / "out" / "score.html").read_text("utf-8") == page


def test_logarithms_to_base_10_are_suspected_before_anything_else() -> None:
    from byhand.document.reports import score_report

    scored = byhand.score("minigpt", against=LOGS / "tens.jsonl", float="float32", digits=None)
    said = " ".join(str(part) for part in score_report(scored).parts())
    assert "look like logarithms to base 10" in said
    assert "perhaps no natural logarithms" in said
    assert not scored.truth.proven
    assert not scored.truth.best_proven.any()

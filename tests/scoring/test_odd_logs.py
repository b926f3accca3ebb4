"""Odd logs: other tokens, missing ones, other logarithms, rounding, shifts.  Each is said."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import log
from pathlib import Path
from typing import Any

import engine_logs as logged
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand.model import Model
from byhand.models import open_model
from byhand.scoring.logs import Finding, Matched, match, read_log, recognised
from byhand.scoring.logs.findings import gathered
from byhand.scoring.samples import Sample

DATA = Path(os.environ.get("BYHAND_DATA", Path(__file__).parents[3] / "shared" / "data"))
STORIES = DATA / "stories260K"
Change = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def kinds(findings: Any) -> list[str]:
    return [finding.kind for finding in findings]


def matching_of(folder: Path, tiny: Model, *rows: Any, samples: list[Sample] | None = None) -> Any:
    given_samples = samples or [Sample("one", logged.IDS)]
    return match(read_log(logged.write(folder, *rows)), given_samples, tiny.vocabulary)


# ------------------------------------------------------------------ tokens


def test_a_whole_log_has_nothing_to_be_said_of(tmp_path: Path, tiny: Model) -> None:
    matching = matching_of(tmp_path, tiny, logged.completion())
    assert [*matching.findings, *matching.matched[0].findings] == []


@pytest.mark.parametrize(
    ("ids", "values", "kind", "position", "kept"),
    [
        ((1, 0, 0, 0, 2), (None, -1.0, -2.0, -3.0, -4.0), "other tokens", 2, [-1.0]),
        ((1, 0, 1, 2), (None, -1.0, -3.0, -4.0), "missing tokens", 2, [-1.0]),
        ((1, 0, 2), (None, -1.0, -2.0), "missing tokens", 3, [-1.0, -2.0]),
        ((0, 2, 1, 2), (-1.0, -2.0, -3.0, -4.0), "no first token", 0, [-1.0, -2.0, -3.0, -4.0]),
    ],
)
def test_where_the_tokens_differ_first_is_said_and_nothing_after_it_is_taken(
    ids: tuple[int, ...], values: Any, kind: str, position: int, kept: list[float],
    tmp_path: Path, tiny: Model,
) -> None:  # fmt: skip
    sample = Sample("one", (1, 0, 2, 1, 2))
    row = {"input_ids": ids, "logprobs": values}
    (matched,) = matching_of(tmp_path, tiny, row, samples=[sample])
    (finding,) = matched.findings
    assert (finding.kind, finding.position) == (kind, position)
    assert matched.logprobs[~np.isnan(matched.logprobs)].tolist() == kept


def test_another_first_token_means_another_context(tmp_path: Path, tiny: Model) -> None:
    row = {"input_ids": [2, 1, 0, 2], "logprobs": [None, -9.0, -0.5, -1.25]}
    (matched,) = matching_of(tmp_path, tiny, row)
    assert kinds(matched.findings) == ["another first token"]


def test_tokens_that_agree_nowhere_are_called_other_tokens_only(
    tmp_path: Path, tiny: Model
) -> None:
    row = {"input_ids": [2, 2, 2, 2], "logprobs": [None, -9.0, -0.5, -1.25]}
    sample = Sample("mine", (1, 0, 0, 1))
    (matched,) = matching_of(tmp_path, tiny, {**row, "name": "mine"}, samples=[sample])
    assert kinds(matched.findings) == ["other tokens"]
    assert np.isnan(matched.logprobs).all()


@pytest.mark.parametrize(
    ("first", "found"), [(0.0, []), (float("nan"), []), (-3.0, ["first token scored"])]
)
def test_a_value_of_the_first_token_is_said_unless_it_is_zero_or_nan(
    first: float, found: list[str], tmp_path: Path, tiny: Model
) -> None:
    row = {"input_ids": list(logged.IDS), "logprobs": [first, -0.5, -1.25]}
    (matched,) = matching_of(tmp_path, tiny, row)
    assert kinds(matched.findings) == found
    assert matched.logprobs.tolist() == [-0.5, -1.25]


def test_an_echo_that_gives_its_first_token_a_value_is_no_completion_alone(
    tmp_path: Path, tiny: Model
) -> None:
    answer = logged.completion()
    answer["choices"][0]["logprobs"]["token_logprobs"] = [0.0, -0.5, -1.25]
    (matched,) = matching_of(tmp_path, tiny, answer)
    assert (kinds(matched.findings), matched.logprobs.tolist()) == ([], [-0.5, -1.25])


def test_several_answers_to_one_prompt_with_the_same_tokens_stand_twice(
    tmp_path: Path, tiny: Model
) -> None:
    answer = logged.completion()
    answer["choices"].append({**answer["choices"][0], "index": 1})
    assert kinds(matching_of(tmp_path, tiny, answer).findings) == ["duplicate"]


def test_a_text_that_begins_as_another_ends_is_laid_on_its_own(tmp_path: Path, tiny: Model) -> None:
    samples = [Sample("short", (1, 0)), Sample("long", (1, 0, 2))]
    rows = [
        {"input_ids": [1, 0, 2], "logprobs": [None, -0.5, -1.0]},
        {"input_ids": [1, 0], "logprobs": [None, -0.25]},
    ]
    matching = matching_of(tmp_path, tiny, *rows, samples=samples)
    assert [each.logprobs.tolist() for each in matching] == [[-0.25], [-0.5, -1.0]]


def test_texts_that_end_alike_are_told_apart_by_their_names_else_by_their_places(
    tmp_path: Path, tiny: Model
) -> None:
    samples = [Sample("x", (1, 0, 2), 1), Sample("y", (2, 0, 2), 1)]
    rows = [
        {"completion_ids": [0, 2], "logprobs": [-1.0, -1.0], "id": "y"},
        {"completion_ids": [0, 2], "logprobs": [-2.0, -2.0], "id": "x"},
    ]
    named = matching_of(tmp_path, tiny, *rows, samples=samples)
    assert [each.logprobs[0] for each in named] == [-2.0, -1.0]
    assert [kinds(each.findings) for each in named] == [[], []]
    unnamed = matching_of(tmp_path, tiny, *({**r, "id": None} for r in rows), samples=samples)
    assert [each.logprobs[0] for each in unnamed] == [-1.0, -2.0]
    assert [kinds(each.findings) for each in unnamed] == [["same completion"]] * 2


def test_texts_in_another_order_are_matched_by_their_tokens(tmp_path: Path, tiny: Model) -> None:
    samples = [Sample(str(n), (n, 0, 1)) for n in range(3)]
    rows = [{"input_ids": [n, 0, 1], "logprobs": [None, -n - 0.5, -n - 0.5]} for n in (2, 0, 1)]
    matching = matching_of(tmp_path, tiny, *rows, samples=samples)
    assert [each.logprobs[0] for each in matching] == [-0.5, -1.5, -2.5]
    assert kinds(matching.findings) == ["order"]


def test_a_text_that_stands_twice_or_is_missing_or_unknown_is_said(
    tmp_path: Path, tiny: Model
) -> None:
    row = {"input_ids": list(logged.IDS), "logprobs": [None, -0.5, -1.0]}
    again = {**row, "logprobs": [None, -0.5, -1.5]}
    other = {"input_ids": [2, 2, 2, 2], "logprobs": [None, -1.0, -1.0, -1.0]}
    samples = [Sample("one", logged.IDS), Sample("two", (0, 1, 1))]
    matching = matching_of(tmp_path, tiny, row, again, other, samples=samples)
    found = {finding.kind: str(finding) for finding in matching.findings}
    assert set(found) == {"duplicate", "missing texts", "unknown text"}
    assert "0.5" in found["duplicate"]
    assert "1 of 2" in found["missing texts"]
    assert matching.matched[0].logprobs.tolist() == [-0.5, -1.0]


def test_a_log_that_begins_within_the_prompt_is_laid_on_the_end_of_the_text(
    tmp_path: Path, tiny: Model
) -> None:
    answer = logged.sglang()
    answer["meta_info"]["prompt_tokens"] = 4
    sample = Sample("one", (2, 2, 1, 0, 2))
    (matched,) = matching_of(tmp_path, tiny, answer, samples=[sample])
    assert np.isnan(matched.logprobs).tolist() == [True, True, False, False]
    assert matched.logprobs[2:].tolist() == [-0.5, -1.25]
    assert "begins late" in kinds(matched.findings)


def test_a_token_outside_the_likeliest_ones_has_no_value(tmp_path: Path, tiny: Model) -> None:
    answer = logged.vllm()
    del answer["prompt_logprobs"][1]["0"]
    (matched,) = matching_of(tmp_path, tiny, answer)
    assert np.isnan(matched.logprobs).tolist() == [True, False]
    assert kinds(matched.findings) == ["top only"]
    assert matched.findings[0].position == 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("NaN", "NaN"),
        (float("nan"), "NaN"),
        (float("-inf"), "minus infinity"),
        ("-Infinity", "minus infinity"),
        (-9999.0, "minus infinity"),
        (-3.4028234663852886e38, "minus infinity"),
        (0.25, "above zero"),
        (None, "no value"),
    ],
)
def test_values_that_are_no_log_probabilities_are_said(
    value: Any, kind: str, tmp_path: Path, tiny: Model
) -> None:
    row = {"input_ids": list(logged.IDS), "logprobs": [None, -0.5, value]}
    (matched,) = matching_of(tmp_path, tiny, row)
    assert [(found.kind, found.position) for found in matched.findings] == [(kind, 2)]


@pytest.mark.skipif(not STORIES.exists(), reason="the model stories260K is not here")
def test_pieces_of_a_real_tokenizer_agree_and_another_cut_is_found(tmp_path: Path) -> None:
    model = open_model(STORIES)
    words = "Once upon a time, Zoë’s dog said: “hello”."
    ids = model.vocabulary.encode(words)
    sample = Sample("one", ids)
    raw = [model.vocabulary.tokens[id].replace(" ", "▁") for id in ids]  # as the file has them
    decoded = [model.vocabulary.decode([id]) for id in ids]  # … as SGLang does
    for pieces in (raw, decoded):
        answer = logged.completion(text=words)
        values = [None, *np.linspace(-1, -2, len(ids) - 1)]
        answer["choices"][0]["logprobs"] = {"tokens": pieces, "token_logprobs": values}
        log_ = read_log(logged.write(tmp_path, answer))
        (matched,) = match(log_, [sample], model.vocabulary)
        assert matched.findings == ()
        assert not np.isnan(matched.logprobs).any()
    answer["choices"][0]["logprobs"] = {
        "tokens": ["<s>", "Once", " upon a", *raw[4:]], "token_logprobs": values[:-1]
    }  # fmt: skip
    (matched,) = match(read_log(logged.write(tmp_path, answer)), [sample], model.vocabulary)
    assert matched.findings[0].position in (1, 2, 3)
    assert "cut into other tokens" in matched.findings[0].says


# ------------------------------------------------------------------ numbers


def texts(seed: int, error: float = 1e-3) -> tuple[list[Matched], list[Any], list[Any]]:
    """Texts with true logits, and an engine whose error is small."""
    made = np.random.default_rng(seed)
    matched, truths, logits = [], [], []
    for place in range(4):
        rows = made.normal(size=(12, 30)) * 3
        ids = (0, *(int(id) for id in made.integers(0, 30, 12)))
        true = rows - np.log(np.exp(rows).sum(axis=1))[:, None]
        truth = true[np.arange(12), ids[1:]]
        values = truth + made.normal(size=12) * error
        matched.append(Matched("engine", Sample(str(place), ids), values))
        truths.append(truth)
        logits.append(rows)
    return matched, truths, logits


def changed(matched: list[Matched], change: Change) -> list[Matched]:
    return [Matched(each.engine, each.sample, change(each.logprobs)) for each in matched]


CHANGES: dict[str, Change] = {
    "base 10": lambda values: values / log(10),
    "base 2": lambda values: values / log(2),
    "negated": lambda values: -values,
    "probabilities": np.exp,
    "percent": lambda values: 100 * np.exp(values),
    "perplexities": lambda values: np.exp(-values),
    "cumulative": np.cumsum,
    "shifted": lambda values: np.append(values[1:], -1.0),
}


@pytest.mark.parametrize("kind", sorted(CHANGES))
@pytest.mark.parametrize("seed", range(5))
def test_what_was_done_to_the_values_is_recognised(kind: str, seed: int) -> None:
    matched, truths, _logits = texts(seed)
    found = [each for each in recognised(changed(matched, CHANGES[kind]), truths) if not each.fact]
    assert kinds(found) == [kind]
    assert "48 tokens" in str(found[0]) or kind == "shifted"


@pytest.mark.parametrize("places", [1, -1])
def test_a_shift_says_its_direction(places: int) -> None:
    matched, truths, _logits = texts(1)
    late = changed(matched, lambda values: np.roll(values, places))
    (finding,) = recognised(late, truths)
    assert ("late" if places > 0 else "early") in finding.says


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 1e-6, 1e-3, 0.05, 0.5, 3.0]))
def test_values_with_errors_of_any_size_are_not_explained_otherwise(
    seed: int, error: float
) -> None:
    matched, truths, logits = texts(seed, error)
    found = recognised(matched, truths, lambda place: logits[place])
    assert [each.kind for each in found if not each.fact] == []


@pytest.mark.parametrize("temperature", [0.6, 0.9, 1.5])
def test_a_temperature_is_measured_from_the_true_logits(temperature: float) -> None:
    matched, truths, logits = texts(3)
    warm = []
    for each, rows in zip(matched, logits, strict=True):
        scaled = rows / temperature
        scaled = scaled - np.log(np.exp(scaled).sum(axis=1))[:, None]
        values = scaled[np.arange(12), list(each.sample.scored)]
        warm.append(Matched("engine", each.sample, values + 1e-4))
    assert kinds(recognised(warm, truths)) == []
    (finding,) = recognised(warm, truths, lambda place: logits[place])
    assert finding.kind == "temperature"
    assert f"{temperature:.2f}"[:3] in finding.says


def test_values_gathered_without_the_shift_of_one_are_recognised() -> None:
    matched, truths, logits = texts(4)
    late = []
    for each, rows in zip(matched, logits, strict=True):
        true = rows - np.log(np.exp(rows).sum(axis=1))[:, None]
        values = np.append(true[np.arange(1, 12), list(each.sample.scored[:-1])], -3.0)
        late.append(Matched("engine", each.sample, values))
    assert kinds(recognised(late, truths)) == []
    (finding,) = recognised(late, truths, lambda place: logits[place])
    assert finding.kind == "unshifted"


def test_logits_without_a_softmax_are_called_that_and_nothing_else() -> None:
    matched, truths, logits = texts(9)
    bare = [
        Matched("engine", each.sample, 14 + rows[np.arange(12), list(each.sample.scored)])
        for each, rows in zip(matched, logits, strict=True)
    ]
    assert kinds(recognised(bare, truths)) == ["not logarithms"]
    (_fact, finding) = recognised(bare, truths, lambda place: logits[place] + 14)
    assert finding.kind == "logits"


def test_the_likeliest_token_of_an_engine_is_read_from_its_top(tmp_path: Path, tiny: Model) -> None:
    (matched,) = matching_of(tmp_path, tiny, logged.vllm())
    assert matched.best == (1, 0)
    (matched,) = matching_of(tmp_path, tiny, logged.completion())
    assert matched.best == (0, -1)  # the text of a token is not looked up
    (matched,) = matching_of(tmp_path, tiny, logged.trl())
    assert matched.best == (-1, -1)
    (matched,) = matching_of(tmp_path, tiny, logged.trl_likeliest())
    assert matched.best == (2, 2)


def test_values_of_another_text_are_told_by_name() -> None:
    matched, truths, _logits = texts(2)
    swapped = [
        Matched("engine", matched[n].sample, matched[other].logprobs)
        for n, other in enumerate((1, 0, 2, 3))
    ]
    found = recognised(swapped, truths)
    assert kinds(found) == ["swapped", "swapped"]
    assert found[0].where == "0"
    assert found[0].says.endswith("of 1.")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda values: values.astype(ml_dtypes.bfloat16).astype(float), "bfloat16"),
        (lambda values: values.astype(np.float16).astype(float), "float16"),
        (lambda values: np.round(values, 2), "2 decimals"),
        (lambda values: np.round(values, 4), "4 decimals"),
    ],
)
def test_rounded_values_are_told_from_the_values_alone(change: Change, says: str) -> None:
    matched, truths, _logits = texts(5)
    (finding,) = recognised(changed(matched, change), truths)
    assert finding.kind == "rounded"
    assert says in finding.says
    assert finding.fact


def test_float32_and_float64_are_not_called_rounded() -> None:
    matched, truths, _logits = texts(6)
    narrow = changed(matched, lambda values: values.astype(np.float32).astype(float))
    assert recognised(narrow, truths) == []


def test_values_cut_off_below_and_lost_masks_are_said() -> None:
    matched, truths, _logits = texts(7)
    low = changed(matched, lambda values: np.maximum(values, -5.0))
    assert kinds(recognised(low, truths)) == ["clipped"]
    rounded = changed(matched, lambda values: np.round(values))
    assert "zeros" not in kinds(recognised(rounded, truths))
    lost = changed(matched, lambda values: np.where(np.arange(12) < 3, 0.0, values))
    assert "zeros" in kinds(recognised(lost, truths))
    never = changed(matched, lambda values: np.where(np.arange(12) == 3, -np.inf, values))
    assert kinds(recognised(never, truths)) == ["impossible"]


def test_findings_of_many_texts_are_told_once_with_their_number() -> None:
    same = [Finding("NaN", "There are values that are NaN.", where=str(n // 2)) for n in range(6)]
    ((finding, count),) = gathered(same)
    assert (finding.where, count) == ("0", 3)

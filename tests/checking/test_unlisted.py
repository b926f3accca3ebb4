"""Changes that no list has: each shows where it is said to, and no false cause is named for one.

All of them take half an hour: `python -m benchmarks.unlisted`.  What that found stands in docs/.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.planted import models
from benchmarks.unlisted import measure
from benchmarks.unlisted.changes import CHANGES, Part
from benchmarks.unlisted.dumps import dump, thinned
from benchmarks.unlisted.truth import all_true, places, tells

from byhand import forward

SELECTION = (
    ("gain-squared", "gpt2", "float32"),
    ("one-sign", "llama", "float32"),
    ("int4-groups", "gpt_neox", "float32"),
    ("lora-rank-1", "gpt2", "float32"),
    ("last-row-stale", "llama", "float32"),
    ("noisy-stream", "llama", "float32"),
    ("crude-root", "llama", "float32"),
    ("rows-exchanged-in-stream", "gpt2", "bfloat16"),
    ("tokens-exchanged", "gpt2", "bfloat16"),
    ("one-sign+rows-exchanged", "gpt2", "float32"),
)


BARS = {("full", "float32"): 0.8, ("full", "bfloat16"): 0.6}  # of what is clear; sparse: 0.4


@pytest.mark.parametrize(("change", "family", "format"), SELECTION)
def test_the_line_of_a_change_is_named_and_never_a_false_cause(
    change: str, family: str, format: str
) -> None:
    found = measure.found(change, family, format)
    assert found.clear
    assert found.step_named
    assert found.false == ()


@pytest.mark.skipif(not measure.RECORD.exists(), reason="nothing is recorded yet")
def test_the_recorded_results_are_of_these_changes_and_meet_their_bars() -> None:
    _seed, results = measure.recorded()
    assert {each.change for each in results} == set(CHANGES)
    for mode, format in {(each.mode, each.format) for each in results}:
        own = [each for each in results if (each.mode, each.format) == (mode, format)]
        clear = [each for each in own if each.clear]
        assert all(each.step_named for each in clear)
        assert sum(each.explained for each in clear) >= BARS.get((mode, format), 0.4) * len(clear)
        assert sum(len(each.false) for each in own) <= 0.01 * sum(each.offered for each in own)


def test_there_are_a_hundred_kinds_and_thirty_five_pairs() -> None:
    assert sum(not change.paired for change in CHANGES.values()) >= 100
    assert sum(change.paired for change in CHANGES.values()) >= 35


def _first_difference(family: str, right: dict[str, Any], wrong: dict[str, Any]) -> str | None:
    """The first step, in spine order, at which two dumps differ where a number is."""
    plan = forward.plan(models.SPECS[family](), models.LENGTH)
    seen = np.tril(np.ones((models.LENGTH, models.LENGTH), dtype=bool))
    order = {step.address: place for place, step in enumerate(plan)}
    for name in sorted(wrong, key=lambda name: order[plan[name].address]):
        a, b = right[name], wrong[name]
        if name.endswith(".scores"):
            a, b = np.where(seen, a, 0), np.where(seen, b, 0)
        if not np.array_equal(a, b):
            return name
    return None


def test_a_change_first_shows_where_its_author_says() -> None:
    right = dump(None, "gpt2", "float32")
    for change in [each for each in CHANGES.values() if "gpt2" in each.families][::4]:
        wrong = dump(change, "gpt2", "float32")
        assert _first_difference("gpt2", right, wrong) == change.parts[0].shows["gpt2"], change.name


def test_a_sparse_dump_holds_the_stream_after_each_block_or_the_logits_alone() -> None:
    values = dump(None, "llama", "float32")
    assert [*thinned(values, "blocks")] == [*(f"block.{i}.mlp.add" for i in range(3)), "logits"]
    assert [*thinned(values, "logits")] == ["logits"]


PART = Part({}, (r"head 3.*{0.25}", r"<2>.*exchanged"), (r"head 3\b",))


@pytest.mark.parametrize(
    ("sentence", "how", "where"),
    [
        ("it follows if head 3 is multiplied by 0.24998; the model does not", True, True),
        ("it follows if head 3 is multiplied by 1/4", True, True),
        ("heads 1, 3 and 5 are multiplied by 1/√16", True, True),
        ("it follows if head 3 is multiplied by 1 − 0.75", True, True),
        ("it follows if head 3 is multiplied by 0.26", False, True),
        ("it follows if head 3 is wrong; the model says 0.25", False, True),
        ("it follows if head 13 is multiplied by 0.25", False, False),
        ("tokens 77 and 78 are exchanged", True, False),
        ("tokens 7 and 78 are exchanged", False, False),
    ],
)
def test_words_are_true_if_their_facts_are(sentence: str, how: bool, where: bool) -> None:
    ids = [5, 6, 77]
    assert (tells(sentence, PART, ids), places(sentence, PART, ids)) == (how, where)


def test_a_sentence_with_a_true_and_a_false_half_is_not_true() -> None:
    true, false = "head 3 is multiplied by 0.25; the model does not", "the norm is applied twice"
    assert all_true(true, [PART], [0, 1, 2])
    assert not all_true(f"{false}; and with that, {true}", [PART], [0, 1, 2])
    assert tells(f"{true}; and with that, {true}", PART, [0, 1, 2])

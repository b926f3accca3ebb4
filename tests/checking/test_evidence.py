"""Evidence: what is named as a cause, and what is not, on synthetic predictions and on noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judged import claims_of, dump, judged, verdict_of

from byhand.checking.claims import Claim
from byhand.checking.evidence import Trial, ahead, best_of, explains
from byhand.checking.replay import Line
from byhand.checking.suspects import Edit
from byhand.checking.suspects.casts import shows
from byhand.checking.verdicts import MarkedText, Verdict
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.allowed import Judged
from byhand.plan import Plan, Step

ROWS, WIDTH = 16, 24
RNG = np.random.default_rng(7)
TRUTH = RNG.standard_normal((ROWS, WIDTH))
PLAN = Plan(open_model("minigpt").spec, 1, (Step("line", "given", {}, ("a", "b"), (1, 1), ""),), {})


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return open_model("minigpt")


def a_line(values: Any) -> Line:
    return Line(Claim("line", (), values, "line", "line", format="float32"), values, 0.0)


def predicted(values: Any, claims: Any, *, usual: float = 1e-3, allowed: float = 1e-2) -> Judged:
    """A prediction of a line, judged against the claims."""
    off = np.abs(claims - values)
    times = float(np.sqrt(np.square(off / usual).mean(axis=-1)).max())
    room, noise = np.full(values.shape, allowed), np.full(values.shape, usual)
    return Judged((off / room).astype(np.float32), times, values, room, usual=noise)


def an_edit(kind: str, **more: Any) -> Edit:
    return Edit(kind, f"it follows if {kind}", "", PLAN, **more)


def tried(edit: Edit, values: Any, line: Line, before: Judged, **more: Any) -> Trial:
    return Trial.of(edit, predicted(values, line.values, **more), before, line)


@pytest.mark.parametrize("rows", [1, 4, 64])
def test_rows_are_counted_as_one_observation_each(rows: int) -> None:
    """All entries of a row 3 usual errors apart: half of it a row, however wide the row is."""
    one, other = np.zeros((rows, 50)), np.full((rows, 50), 3e-3 * np.sqrt(2))
    gain = ahead(predicted(one, one), predicted(other, one), one)
    assert gain == pytest.approx(1.5 * np.sqrt(rows))
    back = ahead(predicted(other, one), predicted(one, one), one)
    assert back == pytest.approx(-1.5 * np.sqrt(rows))
    assert ahead(predicted(one, one), predicted(one, one), one) == 0


def test_a_prediction_that_is_right_is_a_cause() -> None:
    noise = 1e-3 * RNG.standard_normal(TRUTH.shape)
    line = a_line(1.5 * TRUTH + noise)
    before = predicted(TRUTH, line.values)
    assert explains(tried(an_edit("right"), 1.5 * TRUTH, line, before), before, line, unusual=False)


@pytest.mark.parametrize("wide", [10.0, 1e3, 1e6])
def test_a_wide_bound_never_makes_a_cause(wide: float) -> None:
    """An edit with the model's own numbers, or worse ones, and room for everything."""
    line = a_line(TRUTH + 0.1 * RNG.standard_normal(TRUTH.shape))
    before = predicted(TRUTH, line.values)
    assert before.follows is False
    for values in (TRUTH, 1.01 * TRUTH, TRUTH + 0.1 * RNG.standard_normal(TRUTH.shape)):
        more = {"usual": 1e-3 * wide, "allowed": 1e-2 * wide}
        trial = tried(an_edit("wide"), values, line, before, **more)
        assert not explains(trial, before, line, unusual=False)


def test_what_leaves_more_than_rounding_usually_does_is_no_cause() -> None:
    line = a_line(TRUTH + 0.1)
    before = predicted(TRUTH, line.values)
    near = tried(an_edit("near"), TRUTH + 0.1 + 5e-3, line, before)
    assert near.judged.follows
    assert near.left == pytest.approx(5.0)
    assert not explains(near, before, line, unusual=False)


def rivals(*each: tuple[Edit, float]) -> list[str]:
    """The kinds that remain of edits which shift everything by so many usual errors too much."""
    line = a_line(TRUTH + 0.1)
    before = predicted(TRUTH, line.values)
    trials = [tried(edit, TRUTH + 0.1 + 1e-3 * off, line, before) for edit, off in each]
    assert all(explains(trial, before, line, unusual=False) for trial in trials)
    kept = best_of(trials, line)
    assert {trial.alike for trial in kept} <= {len(kept) - 1}
    return [trial.edit.kind for trial in kept]


def test_of_two_explanations_the_nearer_one_is_told_where_the_claim_can_tell() -> None:
    # 16 rows, apart by 1.9/√2 usual errors: 4 · 1.9/√2 / 2 = 2.7 do not do, 64 rows would
    assert rivals((an_edit("a"), 0.0), (an_edit("b"), 1.9)) == ["a", "b"]
    line = a_line(np.tile(TRUTH, (8, 1)) + 0.1)
    before = predicted(np.tile(TRUTH, (8, 1)), line.values)
    trials = [
        tried(an_edit(kind), line.values + off, line, before)
        for kind, off in (("b", 1.9e-3), ("a", 0))
    ]
    assert [trial.edit.kind for trial in best_of(trials, line)] == ["a"]


def test_two_that_fit_alike_are_both_told_and_four_are_not() -> None:
    assert rivals((an_edit("a"), 0.0), (an_edit("b"), 0.1)) == ["a", "b"]
    assert rivals(*((an_edit(kind), 0.1 * place) for place, kind in enumerate("abcd"))) == []


def test_of_alike_explanations_that_give_the_same_numbers_the_simpler_one_is_told() -> None:
    assert rivals((an_edit("a", unlikely=2), 0.0), (an_edit("b", unlikely=1), 0.0)) == ["b"]
    assert rivals((an_edit("a", fitted=1), 0.0), (an_edit("b", unlikely=3), 0.2)) == ["b"]


def test_a_number_read_off_the_claim_needs_entries_that_bear_it_out() -> None:
    values = TRUTH.copy()
    values[3, :5] += 0.1
    line = a_line(values)
    before = predicted(TRUTH, values)
    trial = tried(an_edit("few", fitted=1), values, line, before)
    assert trial.explained == 5
    assert not explains(trial, before, line, unusual=False)


# ------------------------------------------------------------------ a cast shows in the numbers


def test_a_cast_shows_in_the_last_bits() -> None:
    numbers = RNG.standard_normal(200).astype(np.float32).astype(np.float64)
    rounded = numbers.astype(np.float16).astype(np.float64)
    assert shows("float16", "float32", rounded)
    assert not shows("float16", "float32", numbers)
    assert not shows("bfloat16", "float32", rounded)
    assert not shows("float16", "float32", np.round(rounded))  # whole numbers need no last bit
    steps = np.rint(numbers / 0.03) * 0.03
    steps[0] = 127 * 0.03
    assert shows("int8", "float32", steps.astype(np.float32).astype(np.float64))
    assert not shows("int8", "float32", numbers)


# ------------------------------------------------------------------ noise has no cause

NOISY = ("attn.norm.out", "attn.scores", "attn.mixed", "mlp.act", "mlp.out")


@pytest.mark.parametrize(("format", "size"), [("float32", 1e-4), ("bfloat16", 0.3)])
def test_random_noise_gets_no_cause(minigpt: Model, format: str, size: float) -> None:
    """In all lines of a block at once: each is judged from the noisy lines above."""
    values = dump(minigpt, format)
    rng = np.random.default_rng(3)
    wrong = 0
    for name in [name for name in values if name.removeprefix("block.1.") in NOISY]:
        noise = size * rng.standard_normal(values[name].shape)
        values[name] = np.float64(np.float32(values[name] * (1 + noise)))
    marked = judged(minigpt, claims_of(values, "float32"), precision=format)
    for line in marked.lines:
        wrong += line.verdict is Verdict.ERROR
        assert not line.suspects, (line.address, line.suspects[0].sentence)
    assert wrong >= 5


# ------------------------------------------------------------------ what repeats, and two at once


def changed(model: Model, **lines: Any) -> MarkedText:
    """The verdicts where functions of the right values replace lines; what comes after follows."""
    values = dump(model, "float32")
    kept = {}
    for name, value in values.items():
        kept[name] = value
        step = name.rpartition("block.")[2]
        if step in lines:
            kept[name] = np.float64(np.float32(lines[step](value)))
            break
    return judged(model, claims_of(kept, "float32"), precision="float32")


def test_two_mistakes_in_one_line_are_named_together(minigpt: Model) -> None:
    marked = changed(minigpt, **{"0.mlp.act": lambda value: np.minimum(value / 2, 0.125)})
    [cause] = verdict_of(marked, "block.0.mlp.act").suspects
    assert cause.kind == "factor+clamped"
    assert "1/2" in cause.sentence
    assert "at most 1/8" in cause.sentence
    assert cause.evidence.entries == marked.lines[-1].outside


def test_a_mistake_in_one_block_counts_the_blocks_that_follow_without_it(minigpt: Model) -> None:
    marked = changed(minigpt, **{"1.mlp.out": lambda value: value / 2})
    line = verdict_of(marked, "block.1.mlp.out")
    assert line.suspects[0].evidence.without == 1
    assert line.suspects[0].evidence.lines == 1
    assert line.blocks == (1,)

"""What cannot be judged: it is said, it is never right, and it is never a pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judged import by_hand, claims_of, dump, judged, verdict_of

from byhand.checking.openness import known_to_be_near
from byhand.checking.verdicts import Marked, MarkedText, Verdict
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.allowed.largest import contest

LOGITS, EMBEDDED = "logits", "embed.token"


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return open_model("minigpt")


@pytest.fixture(scope="module")
def values(minigpt: Model) -> dict[str, Any]:
    return dump(minigpt, "bfloat16")


def marks(model: Model, values: dict[str, Any], format: str = "bfloat16") -> MarkedText:
    return judged(model, claims_of(values, format), suspects=False, precision=format)


def row(*middles: float, rad: float = 0.0) -> Any:
    data = np.array(middles)
    return contest(Range(data, np.full(data.shape, rad), np.full(data.shape, rad / 8)))


# ------------------------------------------------------------------ next tokens


@pytest.mark.parametrize(
    ("token", "rad", "largest"),
    [
        (0, 0.1, True),  # 3 is above 2 whatever rounding does
        (1, 0.1, False),
        (0, 0.6, None),
        (1, 0.6, None),
        (2, 0.6, False),  # 0 is below 3 by more than rounding
        (3, 0.6, False),  # there is no such token
        (-1, 0.6, False),
        (0.5, 0.6, False),
        (np.nan, 0.6, False),
        (0, np.inf, None),
    ],
)
def test_a_token_is_the_largest_where_its_range_lies_above_the_others(token, rad, largest):
    assert row(3.0, 2.0, 0.0, rad=rad).standing(token).largest is largest


def test_of_logits_that_are_exactly_equal_each_is_the_largest():
    tied = row(2.0, 2.0, 1.0)
    assert [tied.standing(token).largest for token in range(3)] == [True, True, False]


def test_how_far_a_token_lies_behind_is_told_in_both_units():
    standing = row(3.0, 2.0, rad=0.1).standing(1)
    assert standing.share == pytest.approx(1.0 / 0.2)
    assert standing.times == pytest.approx(1.0 / np.hypot(0.0125, 0.0125))


def test_how_far_behind_is_not_known_where_the_usual_error_is_not():
    logits = Range(np.array([3.0, 2.0]), np.full(2, np.inf), np.array([np.inf, 0.1]))
    assert contest(logits).standing(1).times is None
    assert contest(logits).standing(0).times == 0  # it does not lie behind


def test_an_only_token_is_the_largest():
    assert row(1.0, rad=5.0).standing(0).largest is True


def test_wrong_next_tokens_are_not_right_where_unclaimed_steps_leave_them_open(minigpt, values):
    wrong = (values[LOGITS].argmax(axis=-1) + 1) % 64
    for claims in ({EMBEDDED: values[EMBEDDED], "next": wrong}, {"next": wrong}):
        marked = marks(minigpt, claims)
        line = verdict_of(marked, "next")
        assert line.verdict is Verdict.UNJUDGED
        assert line.unusual  # far behind, as rounding goes
        assert "rounding leaves" in line.reason
        assert marked.follows
        assert not marked.passed


def test_next_tokens_are_decided_by_claimed_logits(minigpt, values):
    right = values[LOGITS].argmax(axis=-1).astype(np.float64)
    logits = {LOGITS: values[LOGITS], "next": right}
    assert verdict_of(marks(minigpt, logits), "next").verdict is Verdict.RIGHT
    logits["next"] = (right + 1) % 64
    line = verdict_of(marks(minigpt, logits), "next")
    assert line.verdict is Verdict.ERROR
    rows = np.arange(len(right))
    behind = values[LOGITS][rows, logits["next"].astype(int)] < values[LOGITS].max(axis=-1)
    assert line.outside == behind.sum()  # of a tie, either is right


def test_tokens_below_logits_that_are_no_numbers_are_open_for_that_reason(minigpt, values):
    claims = {LOGITS: np.full(values[LOGITS].shape, np.nan), "next": np.zeros(8)}
    line = verdict_of(marks(minigpt, claims), "next")
    assert line.verdict is Verdict.UNJUDGED
    assert line.reason == "logits holds what is not a number"


def test_of_what_is_left_open_the_entry_that_is_furthest_off_is_told(minigpt, values):
    right = values[LOGITS].argmax(axis=-1)
    wrong = np.where(np.arange(len(right)) == 3, values[LOGITS].argmin(axis=-1), right)
    assert verdict_of(marks(minigpt, {"next": wrong}), "next").worst.index == (3,)
    infinite = values[LOGITS].copy()
    infinite[3, 5] = np.inf
    assert verdict_of(marks(minigpt, {LOGITS: infinite}), LOGITS).worst.index == (3, 5)


@pytest.mark.parametrize(("by", "said"), [(1, "id + 1"), (-1, "id - 1")])
def test_next_tokens_that_are_one_off_are_wrong_and_told_so(minigpt, values, by, said):
    right = values[LOGITS].argmax(axis=-1).astype(np.float64)
    claims = claims_of({LOGITS: values[LOGITS], "next": (right + by) % 64}, "bfloat16")
    line = verdict_of(judged(minigpt, claims, precision="bfloat16"), "next")
    assert line.verdict is Verdict.ERROR
    assert said in line.suspects[0].sentence


def test_a_next_token_that_was_written_by_hand_is_right_where_it_is_the_true_one():
    """Two logits are written alike; the claim may follow from them, and it is true."""
    journey = open_model("journey")
    logits = by_hand({"logits[3]": [0.1, 0.4, 0.1, 0.2, 0.1, 0.0]}, 1)
    close = by_hand({"logits[2]": [0.0, 0.3, 0.3, 0.2, 0.1, 0.0]}, 1)
    marked = judged(journey, (*logits, *close, *claims_of({"next[2]": 2.0}, None)))
    assert verdict_of(marked, "next[2]").verdict is Verdict.RIGHT
    marked = judged(journey, (*logits, *close, *claims_of({"next[2]": 1.0}, None)))
    assert verdict_of(marked, "next[2]").verdict is Verdict.UNJUDGED


def test_a_tie_that_algebra_knows_makes_either_token_right():
    """Two tokens of the vocabulary have the same row, so floats alone could not tell."""
    from fractions import Fraction

    from byhand.spec import ModelSpec
    from byhand.tokens import Vocabulary
    from byhand.weights import Tensor, Weights

    third = Fraction(1, 3)
    table = np.array([[third, 1], [third, 1], [-1, -third]], dtype=object)
    weights = Weights({"embed.token": Tensor("embed.token", table)})
    model = Model(
        ModelSpec("tied", 3, 2, None, ()), weights, Vocabulary(tuple("abc"), "characters")
    )
    for token, verdict in ((0, Verdict.RIGHT), (1, Verdict.RIGHT), (2, Verdict.ERROR)):
        marked = judged(model, claims_of({"next[0]": float(token)}, None), "a")
        assert marked.lines[0].verdict is verdict


# ------------------------------------------------------------------ garbage and NaN


@pytest.mark.parametrize(
    ("usual", "rad", "near"), [(50.0, np.inf, True), (np.inf, np.inf, False), (np.inf, 100.0, True)]
)
def test_nearness_is_known_by_the_usual_error_or_by_a_bound(usual, rad, near):
    expected = Range(np.zeros((2, 1)), np.array([[0.2], [rad]]), np.array([[0.1], [usual]]))
    found = Allowed("bfloat16").judge(expected, (), np.array([[0.1], [99.0]]))
    assert found.times < 6
    assert known_to_be_near(found, 6.0) is near
    below = Allowed("bfloat16").judge(expected[1:], (), np.array([[99.0]]))
    assert known_to_be_near(below, 6.0) is near


def test_what_follows_from_a_wrong_line_is_not_right_where_the_truth_is_unknown(minigpt):
    """Worked out from another text's embeddings: so far down, bfloat16 says nothing of this one."""
    values = dump(minigpt, "bfloat16", " ".join(reversed(minigpt.text.split())))
    marked = marks(minigpt, values)
    wrong, *after = (line.verdict for line in marked.lines)
    assert wrong is Verdict.ERROR
    assert set(after) == {Verdict.CARRIED}


def test_garbage_is_never_the_right_value(minigpt, values):
    """Where a bound is endless, nothing is known of the truth: it is not said to be near."""
    noise = np.random.default_rng(0).normal(size=values[LOGITS].shape) * 100
    above = values["block.1.mlp.norm.out"] * 2
    marked = marks(minigpt, {"block.1.mlp.norm.out": above, LOGITS: noise})
    assert verdict_of(marked, LOGITS).verdict is not Verdict.UNSUPPORTED
    assert verdict_of(marked, LOGITS).verdict is not Verdict.RIGHT


def test_garbage_in_sparse_lines_does_not_pass(minigpt, values):
    noise = np.random.default_rng(0).normal(size=values[LOGITS].shape) * 100
    marked = marks(minigpt, {EMBEDDED: values[EMBEDDED], LOGITS: noise})
    line = verdict_of(marked, LOGITS)
    assert (line.verdict, line.unusual) == (Verdict.UNJUDGED, True)
    assert not marked.passed


def test_what_follows_from_a_line_that_nobody_can_judge_is_carried_where_it_is_far_from_true(
    minigpt, values
):
    from byhand.numbers.floats import Floats

    add = values["block.1.mlp.add"] * 2
    norm = {name: values[name] for name in (EMBEDDED,)} | {"block.1.mlp.add": add}
    mean = Floats("bfloat16").mean(add.astype(Floats("bfloat16").format.dtype))
    norm["final.norm.mean"] = np.asarray(mean, dtype=np.float64)
    marked = marks(minigpt, norm)
    assert verdict_of(marked, "block.1.mlp.add").verdict is Verdict.UNJUDGED
    assert verdict_of(marked, "final.norm.mean").verdict is not Verdict.ERROR


@pytest.mark.parametrize("above", [(), (EMBEDDED,)])
def test_nan_is_wrong_at_its_first_line_however_wide_the_bound(minigpt, values, above):
    claims = {name: values[name] for name in above}
    claims[LOGITS] = np.full(values[LOGITS].shape, np.nan)
    claims["probs"] = np.full(values[LOGITS].shape, np.nan)
    marked = marks(minigpt, claims)
    assert marked.first_error is verdict_of(marked, LOGITS)
    after = verdict_of(marked, "probs")
    assert (after.verdict, after.reason) == (
        Verdict.UNJUDGED, "logits holds what is not a number",
    )  # fmt: skip


def test_a_bound_without_an_end_says_nothing_of_any_claim():
    endless = Range(np.array([1.0, 2.0]), np.array([np.inf, 0.5]))
    numbers = Allowed("float32")
    judged_ = numbers.judge(endless, (), np.array([1.0, 2.0]))
    assert judged_.follows is None
    assert judged_.open.tolist() == [True, False]
    assert numbers.judge(endless, (), np.array([1.0, 3.0])).follows is False
    part = numbers.judge(endless, (1,), np.array(2.0))
    assert (part.follows, part.open) == (True, None)


def test_a_row_that_may_be_anything_opens_a_line_whose_other_rows_are_known():
    from byhand.checking.openness import almost_anything

    value = Range(np.ones((3, 4)), np.array([[1e-3], [50.0], [1e-3]]) * np.ones((3, 4)))
    open_ = almost_anything(Allowed("float32").judge(value, (), np.ones((3, 4))), 0.0)
    assert open_ is not None
    assert open_.tolist() == [[False] * 4, [True] * 4, [False] * 4]


def test_a_slack_without_an_end_leaves_everything_open():
    from byhand.checking.openness import almost_anything

    value, slack = Range(np.ones((1, 2)), np.zeros((1, 2))), np.array([[np.inf, np.inf]])
    found = almost_anything(Allowed("float64").judge(value, (), np.ones((1, 2)), slack), slack)
    assert found is not None
    assert found.all()


def test_the_same_infinity_is_no_distance():
    from byhand.checking.judging import _distance
    from byhand.checking.replay import Line

    claimed = np.array([[np.inf, 2.0]])
    judged_ = Allowed("float16").judge(Range(np.array([[np.inf, 1.0]])), (), claimed)
    line = Line(claims_of({"logits": claimed}, "float16")[0], claimed, 0.0)
    assert _distance(judged_, line) == pytest.approx(np.sqrt(0.5))


def test_a_row_of_zeros_among_larger_numbers_is_known_well_enough():
    from byhand.checking.openness import almost_anything

    middles = np.array([[0.0] * 4, [1.0] * 4])
    value = Range(middles, np.full((2, 4), 1e-3))
    assert almost_anything(Allowed("float32").judge(value, (), middles), 0.0) is None


# ------------------------------------------------------------------ one mistake in every block


def relu_for_gelu(model: Model) -> MarkedText:
    """A port of minigpt that has another activation, in both blocks."""
    from byhand.checking.claims import ClaimedText
    from byhand.checking.judging import judge_text
    from byhand.evaluate import prepare
    from byhand.numbers.floats import Floats
    from byhand.worked import Worked

    job = prepare(model, None, Floats("float32"))
    said: dict[str, Any] = {}

    def revise(worked: Worked) -> Worked:
        if worked.address.endswith("mlp.act"):
            hidden = said[worked.address.replace("act", "hidden")].astype(np.float32)
            worked = Worked(worked.step, np.maximum(hidden, 0), worked.numbers, worked.notes)
        if worked.address not in ("tokens", "next", "target"):
            said[worked.address] = np.ma.getdata(worked.array).astype(np.float64)
        return worked

    from byhand.evaluate import work_out

    work_out(job.plan, model.weights, job.tokens, job.numbers, target=job.target, revise=revise)
    text = ClaimedText("", job.tokens, claims_of(said, "float32"), target=job.target)
    return judge_text(model, text, "float32")[0]


def test_a_mistake_in_every_block_is_an_error_in_every_block_and_told_as_one(minigpt):
    marked = relu_for_gelu(minigpt)
    wrong = [line for line in marked.lines if line.verdict.follows is False]
    assert [line.address for line in wrong] == ["block.0.mlp.act", "block.1.mlp.act"]
    assert {line.verdict for line in wrong} == {Verdict.ERROR}
    first, second = wrong
    assert (first.like, second.like) == (None, "block.0.mlp.act")

    from byhand.checking.verdicts import Marking
    from byhand.document.compose.marked import told
    from byhand.document.compose.marking import summary

    assert summary(Marking("minigpt", (marked,))).endswith("; in every block")
    assert ("suspect", "the same mistake as in block.0.mlp.act") in list(told(second))


def test_later_blocks_are_explained_by_the_kinds_that_explained_earlier_ones(minigpt, monkeypatch):
    monkeypatch.setattr("byhand.checking.causes.MOST_WORK", 1536 * 20)  # some 20 activations
    wrong: list[Marked] = [
        line for line in relu_for_gelu(minigpt).lines if line.verdict is Verdict.ERROR
    ]
    assert [line.suspects[0].kind for line in wrong] == [wrong[0].suspects[0].kind] * 2


def test_what_only_rounding_at_its_worst_explains_has_not_passed(minigpt):
    """Every entry within its bound, and all of them at the end of it, to one side."""
    from byhand.checking.claims import ClaimedText
    from byhand.checking.replay import Replay, Rounding

    values = dump(minigpt, "float32")
    some = {name: values[name] for name in ("block.0.mlp.act", "block.0.mlp.out")}
    tokens = tuple(minigpt.vocabulary.encode(minigpt.text))
    text = ClaimedText("", tokens, claims_of(some, "float32"))
    bounds: dict[str, Any] = {}
    Replay.of(minigpt, text, Rounding.named("float32")).judge(
        lambda line, found: bounds.__setitem__(line.claim.address, found)
    )
    bound = bounds["block.0.mlp.out"]
    marked = marks(minigpt, some | {"block.0.mlp.out": bound.expected + 0.98 * bound.allowed},
                   "float32")  # fmt: skip
    line = verdict_of(marked, "block.0.mlp.out")
    assert line.share < 1
    assert line.times > 32
    assert (line.verdict, line.reason) == (
        Verdict.UNJUDGED, "rounding can explain it only at its worst",
    )  # fmt: skip
    assert not marked.passed

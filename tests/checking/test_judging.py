"""Verdicts: each line from the lines above it, and against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from judged import by_hand, claims_of, dump, judged, verdict_of

from byhand.checking.verdicts import Verdict
from byhand.models import open_model

MLP = "block.0.mlp.out"
ADD = "block.0.mlp.add"


@pytest.fixture(scope="module")
def minigpt():
    return open_model("minigpt")


@pytest.fixture(scope="module")
def journey():
    return open_model("journey")


@pytest.mark.parametrize("format", ["float64", "float32", "bfloat16", "float16"])
def test_every_line_of_byhands_own_floats_is_right(minigpt, format):
    marked = judged(minigpt, claims_of(dump(minigpt, format), format))
    assert {line.verdict for line in marked.lines} == {Verdict.RIGHT}
    assert marked.precision == format
    assert max(line.share for line in marked.lines) <= 1
    assert not [line.address for line in marked.lines if line.unusual]


def test_a_wrong_number_is_an_error_where_it_stands_and_what_comes_after_is_told_apart(minigpt):
    values = dump(minigpt)
    values[MLP] = values[MLP].copy()
    values[MLP][3, 5] += 0.01
    marked = judged(minigpt, claims_of(values, "float32"))
    assert marked.first_error is verdict_of(marked, MLP)
    assert marked.first_error.worst_address == f"{MLP}[3,5]"
    assert marked.first_error.share > 100
    assert marked.first_error.outside == 1
    # the next line was worked out from the right number, so it does not follow from this one
    assert verdict_of(marked, ADD).verdict is Verdict.UNSUPPORTED
    after = marked.lines[[line.claim.name for line in marked.lines].index(ADD) + 1 :]
    assert {line.verdict for line in after} == {Verdict.RIGHT}


def test_lines_that_follow_from_an_error_are_carried_forward(minigpt):
    values = dump(minigpt)
    wrong = dump(minigpt)
    wrong[MLP] = values[MLP] + 0.05
    wrong[ADD] = (wrong["block.0.attn.add"] + wrong[MLP]).astype(np.float32)
    some = {name: wrong[name] for name in (MLP, "block.0.attn.add", ADD)}
    marked = judged(minigpt, claims_of(some, "float32"))
    assert verdict_of(marked, "block.0.attn.add").verdict is not Verdict.ERROR
    assert verdict_of(marked, MLP).verdict is Verdict.ERROR
    assert verdict_of(marked, ADD).verdict is Verdict.CARRIED
    assert verdict_of(marked, ADD).uses == ("block.0.attn.add", MLP)


def test_a_line_is_judged_from_the_nearest_claimed_ones_above_it(journey):
    sum_ = {
        "block.0.attn.add[3]": [-0.06, 0.49, 0.72, 0.34],
        "block.0.mlp.out[3]": [0.04, 0.17, 0.09, -0.04],
    }
    marked = judged(journey, by_hand(sum_, 2))
    first, second = marked.lines
    assert first.verdict is Verdict.ERROR  # judged from the text itself
    assert first.uses == ()
    assert second.verdict is Verdict.CARRIED  # through a norm and two matrices that nobody wrote
    assert second.uses == ("block.0.attn.add",)


def test_a_claim_that_is_not_a_number_is_an_error_and_nothing_after_it_is(minigpt):
    values = dump(minigpt)
    values[MLP] = values[MLP].copy()
    values[MLP][2, 0] = np.nan
    marked = judged(minigpt, claims_of(values, "float32"), suspects=False)
    assert [line.claim.name for line in marked.lines if line.verdict is Verdict.ERROR] == [MLP]
    assert verdict_of(marked, MLP).worst_address == f"{MLP}[2,0]"


def test_decimals_follow_where_every_line_is_rounded(journey):
    from byhand.evaluate import prepare
    from byhand.numbers.pencil import Pencil

    trace = prepare(journey, None, Pencil(3)).work()
    values = {}
    for name in ("stream.0", "block.0.attn.q", "block.0.attn.k", "block.0.attn.v",
                 "block.0.attn.scores", "block.0.attn.weights", "block.0.attn.out"):  # fmt: skip
        worked = trace[name]
        flat = [0.0 if entry is None else float(entry) for _index, entry in worked.entries()]
        values[worked.address] = np.reshape(flat, worked.step.shape)
    marked = judged(journey, by_hand(values, 3), precision="decimals:3")
    assert {line.verdict for line in marked.lines} == {Verdict.RIGHT}


def test_a_next_token_is_right_where_rounding_may_make_it_the_largest(journey):
    right = judged(journey, claims_of({"next[3]": 1.0}, None))
    assert right.lines[0].verdict is Verdict.RIGHT
    wrong = judged(journey, claims_of({"next[3]": 4.0}, None))
    assert wrong.lines[0].verdict is Verdict.ERROR


def test_what_needs_an_unknown_weight_cannot_be_judged():
    model = open_model("abc-walkthrough")
    marked = judged(model, by_hand({"block.0.attn.out[0]": [0.1, 0.2]}, 1))
    assert marked.lines[0].verdict is Verdict.UNJUDGED
    assert "weight.block.0.attn.qkv" in marked.lines[0].reason


def test_far_from_the_text_rounding_could_give_anything_and_the_verdict_says_so(minigpt):
    values = dump(minigpt, "bfloat16")
    marked = judged(minigpt, claims_of({"logits": values["logits"]}, "bfloat16"))
    assert marked.lines[0].verdict is Verdict.UNJUDGED
    assert "unclaimed steps" in marked.lines[0].reason
    assert marked.lines[0].times < 12


def test_shares_that_should_be_masked_are_wrong_and_what_reads_them_follows(journey):
    values = dump(journey, "float64")
    names = ("block.0.attn.scores", "block.0.attn.weights", "block.0.attn.v", "block.0.attn.mixed")
    some = {name: values[name].copy() for name in names}
    some["block.0.attn.weights"][0, 0] = [0.25, 0.25, 0.25, 0.25]
    some["block.0.attn.mixed"][0, 0] = some["block.0.attn.v"][0].mean(axis=0)
    marked = judged(journey, claims_of(some, "float64"), suspects=False)
    assert verdict_of(marked, "block.0.attn.weights").verdict is Verdict.ERROR
    assert verdict_of(marked, "block.0.attn.mixed").verdict is Verdict.CARRIED


def test_shares_that_are_nan_at_masked_keys_are_zeros_there(journey):
    values = dump(journey, "float64")
    some = {name: values[f"block.0.attn.{name}"] for name in ("weights", "v", "mixed")}
    above = np.triu(np.ones((4, 4), dtype=bool), 1)
    some["weights"] = np.where(above, np.nan, some["weights"])
    claims = claims_of({f"block.0.attn.{name}": value for name, value in some.items()}, "float64")
    marked = judged(journey, claims)
    assert {line.verdict for line in marked.lines} == {Verdict.RIGHT}


def test_a_line_below_one_that_is_no_number_cannot_be_judged_and_says_why(journey):
    values = dump(journey, "float64")
    some = {name: values[name].copy() for name in ("block.0.attn.add", "block.0.mlp.out")}
    some["block.0.attn.add"][:] = np.nan
    marked = judged(journey, claims_of(some, "float64"), suspects=False)
    last = verdict_of(marked, "block.0.mlp.out")
    assert last.verdict is Verdict.UNJUDGED
    assert last.reason == "block.0.attn.add holds what is not a number"


def test_a_claim_near_a_rough_bound_is_judged_by_a_better_one(minigpt):
    """With every step claimed, products have rough bounds until a claim comes near them."""
    values = dump(minigpt)
    worked = values["block.0.mlp.out"].copy()
    full = judged(minigpt, claims_of(values, "float32"), suspects=False)
    alone = {name: values[name] for name in ("block.0.mlp.act", "block.0.mlp.out")}
    exceeding = None
    for size in (1e-6, 2e-6, 4e-6, 8e-6, 1.6e-5, 3.2e-5, 6.4e-5):
        values["block.0.mlp.out"] = worked + size
        line = verdict_of(judged(minigpt, claims_of(values, "float32"), suspects=False), MLP)
        alone["block.0.mlp.out"] = worked + size
        same = verdict_of(judged(minigpt, claims_of(alone, "float32"), suspects=False), MLP)
        if line.share > 1:
            assert line.share == same.share
            exceeding = exceeding or line.share
    assert verdict_of(full, MLP).share < 1 / 8
    assert exceeding is not None
    assert exceeding < 2.5


ROW = {"stream.0[3]": [-0.2, 0.3, 0.5, 0.1]}  # of journey, exactly


def test_who_writes_down_more_is_not_judged_by_less(journey):
    """The rounding of a line is no excuse for the next one where both can be known better."""
    wrong = {"block.0.attn.norm.variance[3]": 0.0892}  # over n - 1
    alone = judged(journey, by_hand(wrong, 4)).lines[0]
    after = judged(journey, (*by_hand(ROW, 1), *by_hand(wrong, 4)))
    assert alone.verdict is Verdict.ERROR
    assert after.lines[0].verdict is Verdict.RIGHT
    assert after.lines[1].verdict is Verdict.ERROR
    assert after.lines[1].suspects[0].kind == alone.suspects[0].kind


def test_who_goes_on_from_what_is_written_follows_too(journey):
    """0.26 is written for 0.2586, and the next line may be made of either."""
    deviation = judged(journey, by_hand({"block.0.attn.norm.std[3]": 0.26}, 2)).lines[0]
    assert deviation.verdict is Verdict.RIGHT
    for std in (0.2586, 0.26):
        row = np.round(np.array([-0.375, 0.125, 0.325, -0.075]) / std, 3)
        lines = {"block.0.attn.norm.std[3]": 0.26}, {"block.0.attn.norm.normalized[3]": row}
        marked = judged(journey, (*by_hand(lines[0], 2), *by_hand(lines[1], 3)))
        assert marked.lines[1].verdict is Verdict.RIGHT, std


def test_the_region_of_a_claimed_row_ends_at_claimed_rows(journey):
    from byhand.checking.claims import ClaimedText
    from byhand.checking.replay import Replay, Rounding

    rows = {f"{step}[3]": [0, 0, 0, 0] for step in ("block.0.attn.add", MLP, ADD)}
    claims = by_hand({**rows, f"{ADD}[2,1]": 0}, 2)
    replay = Replay.of(journey, ClaimedText("", (0, 1, 2, 3), claims), Rounding.named("exact"))
    *_others, row, other = claims
    region = replay.region(row)
    assert [step.address for step in region.steps] == ["block.0.mlp.add"]
    assert region.edge == {"block.0.attn.add", "block.0.mlp.out"}
    assert replay.bridged(row) == 0
    assert len(replay.region(other).steps) > 20  # nobody wrote what position 2 is made of


def test_keys_and_values_are_needed_of_every_position(journey):
    from byhand.checking.claims import ClaimedText
    from byhand.checking.replay import Replay, Rounding

    claims = by_hand({"block.0.attn.q[0,3]": [0, 0, 0, 0], "block.0.attn.k[0,3]": [0, 0, 0, 0],
                      "block.0.attn.scores[0,3]": [0, 0, 0, 0]}, 2)  # fmt: skip
    replay = Replay.of(journey, ClaimedText("", (0, 1, 2, 3), claims), Rounding.named("exact"))
    region = replay.region(claims[-1])
    assert region.edge == {"block.0.attn.q"}
    assert "block.0.attn.k" in {step.address for step in region.steps}


def test_a_blank_line_is_not_judged(journey):
    (claim,) = by_hand({"loss": 0.0}, 2)
    from dataclasses import replace

    marked = judged(journey, (replace(claim, claimed=np.zeros((), dtype=bool)),))
    assert marked.lines[0].verdict is Verdict.UNJUDGED
    assert marked.lines[0].reason == "left blank"


@pytest.mark.parametrize(
    "name", ["float33", "FLOAT32", "decimals:", "decimals:99", "decimals:-1", ""]
)
def test_a_precision_that_there_is_not_is_refused_with_those_there_are(journey, name):
    from byhand.checking.replay import Rounding
    from byhand.errors import InputError

    with pytest.raises(InputError) as caught:
        Rounding.named(name)
    assert "decimals:2" in str(caught.value)
    if "32" in name:
        assert "did you mean float32" in str(caught.value)


def test_a_mask_over_what_is_claimed_explains_nothing(journey):
    """Scores of k·q in place of q·k: a mask that hides them all does not make them right."""
    values = dump(journey, "float64")
    q, k = values["block.0.attn.q"], values["block.0.attn.k"]
    some = {"block.0.attn.q": q, "block.0.attn.k": k}
    some["block.0.attn.scores[0,3]"] = (k[0, 3] @ q[0].T) / 2
    marked = judged(journey, claims_of(some, "float64"))
    line = verdict_of(marked, "block.0.attn.scores[0,3]")
    assert line.verdict is Verdict.ERROR
    assert not [suspect.sentence for suspect in line.suspects if "mask" in suspect.kind]


ROWS = {0: [0.05, 0.40, 0.09, 0.22, 0.13, -0.02], 3: [0.05, 0.35, 0.10, 0.18, 0.10, 0.03]}


@pytest.mark.parametrize(
    ("wrong", "loss", "verdict"), [(0, 1.833, Verdict.RIGHT), (3, 1.931, Verdict.CARRIED)]
)
def test_a_line_is_carried_forward_only_from_a_row_that_it_reads(journey, wrong, loss, verdict):
    """The loss reads the last row of the logits; made of its two decimals, it is not 1.831."""
    off = {row: np.add(values, 0.5 * np.eye(6)[2] * (row == wrong)) for row, values in ROWS.items()}
    logits = {f"logits[{row}]": values for row, values in off.items()}
    marked = judged(journey, (*by_hand(logits, 2), *by_hand({"loss": loss}, 3)))
    assert verdict_of(marked, f"logits[{wrong}]").verdict is Verdict.ERROR
    assert verdict_of(marked, f"logits[{3 - wrong}]").verdict is Verdict.RIGHT
    assert verdict_of(marked, "loss").verdict is verdict


def test_a_wrong_token_of_the_text_is_wrong_and_nothing_of_the_plan_explains_it(journey):
    line = judged(journey, claims_of({"tokens[0]": 2.0}, None)).lines[0]
    assert (line.verdict, line.suspects) == (Verdict.ERROR, ())


def test_claims_below_every_ratio_have_no_dropout(journey):
    """What is expected, over what is claimed, is infinite: no rate can be read off it."""
    values = dump(journey, "float64")
    some = {name: values[name] for name in ("block.0.mlp.act", "block.0.mlp.out")}
    some["block.0.mlp.out"] = np.full(some["block.0.mlp.out"].shape, 5e-324)
    line = verdict_of(judged(journey, claims_of(some, "float64")), "block.0.mlp.out")
    assert line.verdict is Verdict.ERROR
    assert "dropout" not in [suspect.kind for suspect in line.suspects]

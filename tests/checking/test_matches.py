"""Names of a sheet become claims at addresses, in byhand's axes; nothing is dropped silently."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.checking.claims import DIRECTION, Claim, ClaimedText
from byhand.checking.matches import match
from byhand.checking.matches.names import MOST_HINTS
from byhand.checking.matches.plans import plan_for
from byhand.checking.readers import read_claims
from byhand.errors import InputError
from byhand.model import Model
from byhand.models import open_model
from byhand.tracing import Trace

Array = np.ndarray[Any, Any]


def matched(claims: Any, model: Model, *texts: str, **asked: Any) -> ClaimedText:
    (only,) = match(read_claims(claims), model, *texts, **asked)
    return only


def claim(claimed: ClaimedText, address: str) -> Claim:
    (found,) = (each for each in claimed.claims if each.address == address)
    return found


# ------------------------------------------------------------------ by hand


def test_a_line_is_a_claim_about_a_part_of_a_step(journey: Model) -> None:
    found = claim(
        matched({"block.0.attn.add[3]": ["-0.06", "0.49", None, "0.34"]}, journey),
        "block.0.attn.add",
    )
    assert found.index == (3,)
    assert found.values.tolist() == [-0.06, 0.49, 0.0, 0.34]
    assert found.claimed is not None
    assert found.claimed.tolist() == [True, True, False, True]
    assert found.by_hand


@pytest.mark.parametrize(
    ("name", "address", "index"),
    [
        ("block.0.attn.scores[0,1,1]", "block.0.attn.scores", (0, 1, 1)),
        ("block.0.attn.scores[-1, -1, 0]", "block.0.attn.scores", (0, 3, 0)),
        ("probs[3,mat]", "probs", (3, 4)),
        ("probs[on,'mat']", "probs", (3, 4)),
        ('logits[-1, "cat"]', "logits", (3, 1)),
        ("block.0.attn.weights[0,on,cat]", "block.0.attn.weights", (0, 3, 1)),
        ("weight.embed.token[mat,0]", "weight.embed.token", (4, 0)),
        ("blocks.0.attn.hook_pattern[0,1,0]", "block.0.attn.weights", (0, 1, 0)),
        ("transformer.h.0.mlp[3,1]", "block.0.mlp.out", (3, 1)),
        ("stream.1[3,1]", "block.0.mlp.add", (3, 1)),
    ],
)
def test_an_index_counts_along_byhands_axes_and_may_name_tokens(
    journey: Model, name: str, address: str, index: tuple[int, ...]
) -> None:
    found = claim(matched({name: "0.30"}, journey), address)
    assert found.index == index
    assert found.values.shape == ()
    assert found.name == name


def test_slices_have_both_ends(journey: Model) -> None:
    found = matched({"logits[2:,cat]": ["0.1", "0.2"], "probs[:,:]": np.ones((4, 6))}, journey)
    assert claim(found, "logits").index == (slice(2, 4), 1)
    assert claim(found, "probs").index == ()


def test_tokens_are_ids_and_ids_are_exact(journey: Model) -> None:
    found = claim(matched({"next": ["cat", "5", None, "mat"]}, journey), "next")
    assert found.values.tolist() == [1, 5, 0, 4]
    assert found.slack == 0
    assert found.claimed is not None
    assert found.claimed.tolist() == [True, True, False, True]


def test_a_whole_count_is_exact_and_a_rounded_one_is_not(journey: Model) -> None:
    whole = claim(matched({"count.total": "57,344"}, journey), "count.total")
    assert (float(whole.values), float(whole.slack)) == (57_344, 0)
    for text, slack in (("~57k", 1000), ("57k", 500), ("~57,344", 1)):
        assert float(claim(matched({"count.total": text}, journey), "count.total").slack) == slack


def test_a_direction_is_about_a_weight(journey: Model) -> None:
    found = claim(
        matched({"direction.weight.head[:,mat]": ["-1", "1.75", "0", "1"]}, journey), "weight.head"
    )
    assert found.kind == DIRECTION
    assert found.index == (slice(0, 4), 4)


def test_the_loss_is_one_number(journey: Model) -> None:
    found = matched({"loss": "1.8933"}, journey)
    assert found.target == 4
    assert claim(found, "loss").values.tolist() == [1.8933]


def test_a_target_can_be_asked_for_or_claimed(journey: Model) -> None:
    assert matched({"loss": "1.9"}, journey, target="dog").target == 5
    assert matched({"loss": "1.9", "target": "the"}, journey).target == 0
    assert matched({"loss": "1.9", "target": "the"}, journey, "cat", target="dog").target == 5


def test_a_single_head_needs_no_axis(journey: Model) -> None:
    rows = [["0.1"] * 4] * 4
    found = claim(matched({"block.0.attn.scores": rows}, journey), "block.0.attn.scores")
    assert found.values.shape == (1, 4, 4)


def test_a_line_left_blank_is_a_claim_of_nothing(journey: Model) -> None:
    found = claim(matched({"block.0.attn.add[3]": "_"}, journey), "block.0.attn.add")
    assert found.claimed is not None
    assert found.claimed.shape == (4,)
    assert not found.claimed.any()


def test_empty_cells_behind_a_row_are_no_part_of_it(journey: Model) -> None:
    found = matched({"next[3]": ["cat", None, None], "logits[3,0]": ["0.3", None]}, journey)
    assert claim(found, "next").values.tolist() == 1
    assert claim(found, "logits").claimed is None


def test_a_masked_entry_is_what_floats_have_there(journey: Model) -> None:
    row = ["0.5", "masked", "masked", "masked"]
    found = matched({"block.0.attn.scores[0,0]": row, "block.0.attn.weights[0,0]": row}, journey)
    assert claim(found, "block.0.attn.scores").values.tolist() == [0.5, *[-np.inf] * 3]
    assert claim(found, "block.0.attn.weights").values.tolist() == [0.5, 0, 0, 0]


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"block.0.attn.add[3]": ["0.1", "0.2"]}, "has the wrong shape"),
        ({"block.0.attn.add": "0.1"}, "expected: pos 4 × d 4"),
        ({"block.0.attn.add[7]": "0.1"}, "the index lies outside the step"),
        ({"block.0.attn.add[1,2,3]": "0.1"}, "too many places"),
        ({"block.0.attn.add[]": "0.1"}, "this is not an index"),
        ({"block.0.attn.add[1,[2]]": "0.1"}, "this is not an index"),
        ({"block.0.attn.add[3,cat]": "0.1"}, "there are no tokens along this axis"),
        ({"probs[3,horse]": "0.1"}, "'horse' is not in the vocabulary"),
        ({"probs[dog,mat]": "0.1"}, "no such token in the text"),
        ({"probs[the,mat]": "0.1", "text": "the cat the"}, "positions 0, 2"),
        ({"next[3]": "horse"}, "'horse' is not in the vocabulary"),
        ({"next[3]": "99"}, "there is no token 99"),
        ({"logits[0]": ["masked", *["1.0"] * 5]}, "only scores and weights of attention"),
        ({"weight.head": [["0.1"] * 4] * 6}, "it fits when transposed"),
        ({"loss": "1.0", "text": "cat"}, "a loss needs a target"),
        ({"loss": "1.0", "tokens": ["the", None, "cat"]}, "the tokens are not complete"),
        ({"loss": "1.0", "text": "the the the the the"}, "too long"),
        ({"los": "1.0"}, "none of the claims is about this model"),
    ],
)
def test_a_line_that_does_not_fit_is_an_error(journey: Model, claims: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        matched(claims, journey)
    assert says in str(caught.value)
    assert "claims" in str(caught.value) or "long" in says


# ------------------------------------------------------------------ unknown names


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("block.0.attn.score", "block.0.attn.scores"),
        ("blocks.0.attn.hook_patern", "blocks.0.attn.hook_pattern"),
        ("transformer.h.0.mpl.c_fc", "transformer.h.0.mlp.c_fc"),
        ("model.layers.0.selfattn", "model.layers.0.self_attn"),
        ("weight.haed", "weight.head"),
        ("count.totle", "count.total"),
    ],
)
def test_an_unknown_name_is_listed_with_the_nearest(journey: Model, name: str, near: str) -> None:
    found = matched({name: "0.30", "loss": "1.8"}, journey)
    (lost,) = found.unmatched
    assert lost.name == name
    assert lost.hint is not None
    assert near in lost.hint


def test_names_that_are_no_addresses_are_listed_too(journey: Model) -> None:
    names = ["", "a b/c", "x[", "]", "é\n", "logits[[0]]", "x" * 10_000]
    found = matched({**dict.fromkeys(names, np.ones(3)), "logits": np.ones((4, 6))}, journey)
    assert {each.name for each in found.unmatched} == set(names)


def test_many_unknown_names_are_listed_quickly_and_all(journey: Model) -> None:
    dump = {f"block.{n}.attn.foo": np.ones(1) for n in range(5000)}
    found = matched({**dump, "logits": np.ones((4, 6))}, journey)
    assert len(found.unmatched) == 5000
    hinted = [each for each in found.unmatched if each.hint]
    assert 0 < len(hinted) <= MOST_HINTS  # looking for near names takes a while


def test_an_array_of_another_shape_is_listed_with_both_shapes(journey: Model) -> None:
    dump = {"block.0.mlp.out": np.ones((3, 4)), "logits": np.ones((4, 6)), "loss[9]": np.ones(1)}
    found = matched(dump, journey)
    assert [each.name for each in found.unmatched] == ["block.0.mlp.out", "loss[9]"]
    assert found.unmatched[0].reason == "another shape: pos 4 × d 4 expected, 3×4 found"


def test_numbers_that_are_not_read_are_listed(journey: Model) -> None:
    found = matched({"freqs_cis": np.asarray([1j]), "logits": np.ones((4, 6))}, journey)
    assert "complex128" in found.unmatched[0].reason


def test_nan_and_infinity_of_a_dump_are_left_to_the_judge(journey: Model) -> None:
    dump = np.full((4, 6), np.nan, np.float32)
    assert np.isnan(claim(matched({"logits": dump}, journey), "logits").values).all()


# ------------------------------------------------------------------ claimed twice


def test_two_names_of_one_step_that_agree_are_one_claim(journey: Model) -> None:
    same = np.arange(16.0).reshape(4, 4)
    dump = {"stream.1": same, "block.0.mlp.add": same, "blocks.0.hook_resid_post": same[None]}
    assert len(matched(dump, journey).claims) == 1


def test_two_names_of_one_step_that_contradict_are_an_error(journey: Model) -> None:
    same = np.arange(16.0).reshape(4, 4)
    other = same + np.eye(4) * [0, 0, 1, 0]
    with pytest.raises(InputError) as caught:
        matched({"stream.1": same, "block.0.mlp.add": other}, journey)
    for word in ("block.0.mlp.add[2,2]", "stream.1", "10.0", "11.0", "two names of one step"):
        assert word in str(caught.value)


def test_a_line_and_its_entry_must_agree_within_their_printing(journey: Model) -> None:
    line = {"logits[3]": ["0.30", None, "0.1", "0.2", "0.3", "0.4"]}
    assert len(matched({**line, "logits[3,0]": "0.3"}, journey).claims) == 1
    assert len(matched({**line, "logits[3,1]": "0.3"}, journey).claims) == 2
    with pytest.raises(InputError, match="claimed twice"):
        matched({**line, "logits[3,0]": "0.4"}, journey)


def test_decimals_that_agree_only_within_their_printing_are_both_judged(journey: Model) -> None:
    line = {"logits[3]": ["0.3", "0.3", "0.1", "0.2", "0.3", "0.4"]}
    assert len(matched({**line, "logits[3,0]": "0.4"}, journey).claims) == 2
    assert len(matched({**line, "logits[3,0]": "0.30"}, journey).claims) == 2


def test_a_number_and_no_number_contradict(journey: Model) -> None:
    for one, other in ((np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0)):
        with pytest.raises(InputError, match="claimed twice"):
            matched(
                {"stream.1": np.full((4, 4), one), "block.0.mlp.add": np.full((4, 4), other)},
                journey,
            )


def test_where_nothing_can_be_judged_it_is_said_why_not_that_the_names_are_wrong(
    journey: Model,
) -> None:
    with pytest.raises(InputError) as caught:
        matched({"los": np.zeros(3), "stream.0": np.zeros((5, 7), np.float32)}, journey)
    assert caught.value.message == "none of the claims can be judged"
    assert caught.value.found == "stream.0: another shape: pos 4 × d 4 expected, 5×7 found"
    with pytest.raises(InputError) as caught:
        matched({"target": "mat", "loss": ["1.83", "2"]}, journey)
    assert caught.value.expected == "one number"


# ------------------------------------------------------------------ the text


def test_the_text_is_the_one_given_else_that_of_the_claims_else_the_models(journey: Model) -> None:
    assert matched({"loss": "1.8"}, journey).tokens == (0, 1, 2, 3)
    assert matched({"next": ["cat"], "text": "cat"}, journey).tokens == (1,)
    assert matched({"next": ["cat"], "tokens": ["cat"]}, journey).text == "cat"
    assert matched({"next": ["cat", "dog"]}, journey, "cat dog").text == "cat dog"
    assert matched({"next": ["cat", "dog"], "input_ids": [1, 5]}, journey).text == "cat dog"


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"next": ["cat"], "text": "cat"}, "dog"),
        ({"next": ["cat"], "tokens": ["cat"]}, "dog"),
        ({"next": ["cat"], "tokens": ["cat"], "text": "dog"}, None),
        ({"logits": np.ones((2, 1, 6)), "input_ids": [[1], [2]]}, "cat"),
    ],
)
def test_texts_that_disagree_are_an_error(journey: Model, claims: Any, text: str | None) -> None:
    with pytest.raises(InputError, match="about another text"):
        match(read_claims(claims), journey, text)


def test_without_any_text_the_error_says_so(journey: Model) -> None:
    with pytest.raises(InputError, match="do not say which text"):
        matched({"loss": "1.8"}, replace(journey, text=None))


@pytest.mark.parametrize(
    ("heading", "says"),
    [
        ({"input_ids": [[0, 99]]}, "there is no token 99"),
        ({"input_ids": [[0, -1]]}, "there is no token -1"),
        ({"input_ids": np.zeros((1, 0), int)}, "the text is empty"),
        ({"input_ids": [[0, 1]], "attention_mask": [[0, 0]]}, "nothing but padding"),
        ({"input_ids": [[0, 1, 2]], "attention_mask": [[1, 0, 1]]}, "a hole"),
        ({"input_ids": [[0] * 5]}, "too long"),
    ],
)
def test_ids_that_are_no_text_are_refused(journey: Model, heading: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        matched({**heading, "logits": np.ones((4, 6))}, journey)


# ------------------------------------------------------------------ layouts


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return open_model("minigpt-init")


@pytest.fixture(scope="module")
def worked(minigpt: Model) -> Trace:
    return byhand.trace(minigpt, float="float32", heads=True)


def numbers(trace: Trace, address: str) -> Array:
    return np.asarray(np.ma.filled(trace[address].array, 0))


Q = "block.0.attn.q"  # (head, pos, d_head)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("name", "order"),
    [
        (Q, "ours"),
        (Q, "apart"),
        (Q, "flat"),
        ("blocks.0.attn.hook_q", "apart"),
        ("blocks.0.attn.hook_q", "ours"),
        ("model.layers.0.self_attn.q_proj", "flat"),
        ("layers.0.self_attn.q_proj", "flat"),
        ("model.layers.0.self_attn.q_proj.output", "flat"),
        ("module.model.layers.0.self_attn.q_proj", "flat"),
        ("_orig_mod.model.layers.0.self_attn.q_proj.output[0]", "apart"),
    ],
)
def test_heads_come_in_every_librarys_order(
    minigpt: Model, worked: Trace, name: str, order: str, batch: bool
) -> None:
    ours = numbers(worked, Q)
    apart = ours.transpose(1, 0, 2)
    theirs = {"ours": ours, "apart": apart, "flat": apart.reshape(len(apart), -1)}[order]
    found = claim(matched({name: theirs[None] if batch else theirs}, minigpt, worked.text), Q)
    assert found.values.tolist() == ours.tolist()
    assert found.format == "float32"


def test_as_many_positions_as_heads_are_told_apart_by_the_name(minigpt: Model) -> None:
    trace = byhand.trace(minigpt, " ".join(worked_words(minigpt, 4)), float="float32")
    ours = numbers(trace, Q)
    assert ours.shape[0] == ours.shape[1]
    dumps = {Q: ours, "blocks.0.attn.hook_q": ours.transpose(1, 0, 2)}
    for name, theirs in dumps.items():
        found = claim(matched({name: theirs}, minigpt, trace.text), Q)
        assert found.values.tolist() == ours.tolist()


def worked_words(model: Model, count: int) -> list[str]:
    return [model.vocabulary.tokens[id] for id in range(1, count + 1)]


def test_a_norms_divisor_may_keep_an_axis_of_one(minigpt: Model, worked: Trace) -> None:
    ours = numbers(worked, "block.0.attn.norm.std")
    theirs = {"blocks.0.ln1.hook_scale": ours[None, :, None]}
    found = claim(matched(theirs, minigpt, worked.text), "block.0.attn.norm.std")
    assert found.values.tolist() == ours.tolist()


def test_each_heads_output_is_matched_and_asked_of_the_plan(minigpt: Model, worked: Trace) -> None:
    ours = numbers(worked, "block.1.attn.head_out")
    theirs = {"blocks.1.attn.hook_result": ours.transpose(1, 0, 2)[None]}
    claimed = matched(theirs, minigpt, worked.text)
    assert claim(claimed, "block.1.attn.head_out").values.tolist() == ours.tolist()
    assert "block.1.attn.head_out" in plan_for(claimed, minigpt).known


def test_a_cache_holds_what_the_scores_read(minigpt: Model, worked: Trace) -> None:
    dump = {
        "past_key_values.1.key": numbers(worked, "block.1.attn.k_rotated")[None],
        "present.1.value": numbers(worked, "block.1.attn.v")[None],
    }
    found = matched(dump, minigpt, worked.text)
    assert [each.address for each in found.claims] == [
        "block.1.attn.v", "block.1.attn.k_rotated"
    ]  # fmt: skip


def test_a_cached_run_gives_its_positions_in_slices(minigpt: Model, worked: Trace) -> None:
    q, stream = numbers(worked, Q), numbers(worked, "stream.1")
    weights = numbers(worked, "block.0.attn.weights")
    length = len(stream)
    dump: dict[str, Array] = {}
    for start, stop in ((0, 3), (3, length - 1), (length - 1, length)):
        dump[f"model.layers.0[{start}:{stop}]"] = stream[None, start:stop]
        dump[f"blocks.0.attn.hook_q[:,{start}:{stop}]"] = q.transpose(1, 0, 2)[None, start:stop]
        dump[f"block.0.attn.weights[:,{start}:{stop},:{stop}]"] = weights[:, start:stop, :stop]
    found = matched(dump, minigpt, worked.text)
    assert not found.unmatched
    assert len(found.claims) == 9
    for each in found.claims:
        assert each.values.tolist() == numbers(worked, each.address)[each.index].tolist()


# ------------------------------------------------------------------ batches


@pytest.mark.parametrize("side", ["left", "right"])
def test_each_row_of_a_batch_is_a_text_without_its_padding(minigpt: Model, side: str) -> None:
    texts = [worked_words(minigpt, 6), worked_words(minigpt, 3), worked_words(minigpt, 5)]
    traces = [byhand.trace(minigpt, " ".join(words), float="float32") for words in texts]
    dump: dict[str, Array] = {}
    for address in ("stream.1", Q, "block.0.attn.weights", "logits"):
        axes = traces[0].plan[address].axes
        rows = []
        for trace in traces:
            ours, missing = numbers(trace, address), 6 - len(trace.tokens)
            pads = (missing, 0) if side == "left" else (0, missing)
            wide = [pads if axis in ("pos", "query", "key") else (0, 0) for axis in axes]
            rows.append(np.pad(ours, wide, constant_values=np.nan))
        dump[address] = np.stack(rows)
    dump["model.layers.0.self_attn.q_proj"] = dump.pop(Q).transpose(0, 2, 1, 3).reshape(3, 6, -1)
    ids = np.zeros((3, 6), int)
    mask = np.zeros((3, 6), int)
    for row, trace in enumerate(traces):
        there = slice(6 - len(trace.tokens), 6) if side == "left" else slice(len(trace.tokens))
        ids[row, there], mask[row, there] = trace.tokens, 1
    found = match(read_claims({**dump, "input_ids": ids, "attention_mask": mask}), minigpt)
    assert [each.padding for each in found] == (
        [(0, 0), (3, 0), (1, 0)] if side == "left" else [(0, 0), (0, 3), (0, 1)]
    )
    for claimed, trace in zip(found, traces, strict=True):
        assert claimed.tokens == trace.tokens
        assert claimed.positions is None
        assert len(claimed.claims) == 4
        for each in claimed.claims:
            assert each.index == ()
            assert each.values.tolist() == numbers(trace, each.address).tolist()


def test_positions_that_are_not_counted_from_zero_are_kept(journey: Model) -> None:
    dump = {
        "logits": np.ones((1, 3, 6)), "input_ids": [[0, 1, 2]], "attention_mask": [[0, 1, 1]],
    }  # fmt: skip
    assert matched({**dump, "position_ids": [[0, 0, 1]]}, journey).positions is None
    found = matched({**dump, "position_ids": [[0, 1, 2]]}, journey)
    assert found.positions == (1, 2)
    assert plan_for(found, journey)["embed.position"].attributes["ids"] == (1, 2)


def test_one_row_of_positions_stands_for_the_batch(journey: Model) -> None:
    dump = {
        "input_ids": [[0, 1], [2, 3]],
        "transformer.wpe": np.arange(8.0).reshape(1, 2, 4),
        "transformer.wte": np.arange(8.0).reshape(1, 2, 4),
    }
    for claimed in match(read_claims(dump), journey):
        assert claim(claimed, "embed.position").values.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert [each.name for each in claimed.unmatched] == ["transformer.wte"]


def test_weights_and_counts_are_claimed_once_for_a_batch(journey: Model) -> None:
    dump = {
        "input_ids": [[0, 1], [2, 3]],
        "logits": np.ones((2, 2, 6)),
        "weight.head": np.ones((4, 6)),
    }
    first, second = match(read_claims(dump), journey)
    assert [each.address for each in first.claims] == ["weight.head", "logits"]
    assert [each.address for each in second.claims] == ["logits"]


# ------------------------------------------------------------------ whole dumps


@pytest.mark.parametrize("style", ["byhand", "transformer_lens", "llama"])
def test_a_saved_trace_is_matched_whole(minigpt: Model, tmp_path: Any, style: str) -> None:
    trace = byhand.trace(minigpt, float="float32")
    trace.save(tmp_path / "golden", names=style)
    found = matched(tmp_path / "golden", minigpt)
    assert not found.unmatched
    assert found.tokens == trace.tokens
    addresses = [step.address for step in trace.plan if step.address != "tokens"]
    assert [each.address for each in found.claims] == addresses  # in spine order
    for each in found.claims:
        if each.address not in ("next", "block.0.attn.scores", "block.1.attn.scores"):
            assert each.values.tolist() == numbers(trace, each.address).tolist()


def test_the_dump_of_floats_is_not_copied(minigpt: Model, tmp_path: Any) -> None:
    byhand.trace(minigpt, float="float32").save(tmp_path / "golden")
    found = matched(tmp_path / "golden", minigpt)
    values = claim(found, "logits").values
    assert values.dtype == np.float32
    assert not values.flags.owndata

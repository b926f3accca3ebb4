"""A claimed count is the inventory's, or somebody's right count of something else."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from byhand.checking.claims import Claim
from byhand.checking.counts import known_counts, mark_counts, ways_to_count
from byhand.checking.verdicts import Marked, Verdict
from byhand.model import Model
from byhand.models import open_model
from byhand.parameters import parameters
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec
from byhand.weights import Tensor, Weights


@pytest.fixture(scope="module")
def minigpt() -> Model:
    return open_model("minigpt-init")


def claim(address: str, value: float, slack: float = 0.0) -> Claim:
    return Claim(address, (), np.asarray(value), address, "sheet.yaml:1", slack)


def marked(model: Model, address: str, value: float, slack: float = 0.0) -> Marked:
    (line,) = mark_counts([claim(address, value, slack)], model)
    return line


def sentences(model: Model, value: float, slack: float = 0, at: str = "count.total") -> list[str]:
    return [suspect.sentence for suspect in ways_to_count(model, at, value, slack)]


# ------------------------------------------------------------------ verdicts


def test_the_inventory_s_number_is_right(minigpt: Model) -> None:
    line = marked(minigpt, "count.total", 103_680, 0.5)
    assert (line.verdict, line.share, line.suspects) == (Verdict.RIGHT, 0.0, ())


def test_a_rounded_count_is_right_within_its_writing_and_says_how_much_of_it_it_uses(
    minigpt: Model,
) -> None:
    line = marked(minigpt, "count.total", 104_000, 500)
    assert (line.verdict, line.share) == (Verdict.RIGHT, 0.64)


def test_a_whole_number_one_off_is_wrong_although_half_a_unit_is_written(minigpt: Model) -> None:
    line = marked(minigpt, "count.total", 103_681, 0.5)
    assert (line.verdict, line.share) == (Verdict.ERROR, inf)
    assert line.worst is not None
    assert (line.worst.expected, line.worst.difference) == (103_680, 1)


def test_sizes_of_the_configuration_can_be_claimed(minigpt: Model) -> None:
    sizes = {"d_model": 64, "heads": 4, "d_head": 16, "layers": 2, "d_ff": 256,
             "vocabulary": 64, "context": 32}  # fmt: skip
    for name, size in sizes.items():
        assert marked(minigpt, f"count.{name}", size).verdict is Verdict.RIGHT
        assert marked(minigpt, f"count.{name}", size + 1).verdict is Verdict.ERROR
        assert marked(minigpt, f"count.{name}", size + 1).suspects == ()


def test_an_unknown_count_cannot_be_judged_and_the_nearest_is_offered(minigpt: Model) -> None:
    line = marked(minigpt, "count.totl", 1)
    assert line.verdict is Verdict.UNJUDGED
    assert line.reason.startswith("there is no count 'count.totl'; did you mean count.total")


@pytest.mark.parametrize("value", [np.nan, inf, -inf])
def test_what_is_not_a_number_is_wrong_and_nobody_counted_it(minigpt: Model, value: float) -> None:
    line = marked(minigpt, "count.total", value)
    assert (line.verdict, line.share, line.suspects) == (Verdict.ERROR, inf, ())


def test_several_numbers_or_a_blank_are_no_count(minigpt: Model) -> None:
    several = replace(claim("count.total", 1), values=np.array([1.0, 2.0]))
    blank = replace(claim("count.total", 0), claimed=np.array(False))
    reasons = [line.reason for line in mark_counts([several, blank], minigpt)]
    assert reasons == ["a count is one number", "left blank"]


# ------------------------------------------------------------------ suspects


@pytest.mark.parametrize("slack", [1000, 500])  # ~57k, 57k
def test_the_count_of_the_document_is_one_layer_of_two_untied_matrices_only(
    minigpt: Model, slack: float
) -> None:
    line = marked(minigpt, "count.total", 57_000, slack)
    assert line.verdict is Verdict.ERROR
    assert [suspect.sentence for suspect in line.suspects] == [
        "57,344 = one layer of two, untied head, matrices only"
    ]
    assert line.suspects[0].share == 344 / slack


def test_each_thing_left_out_is_named(minigpt: Model) -> None:
    assert sentences(minigpt, 53_952) == ["53,952 = one layer of two"]
    assert sentences(minigpt, 103_680 + 64 * 64) == ["107,776 = untied head"]
    assert sentences(minigpt, 102_400) == ["102,400 = matrices only"]
    assert sentences(minigpt, 103_680 - 64 * 64) == ["99,584 = embedding left out"]
    assert sentences(minigpt, 103_680 - 33_088) == ["70,592 = MLP counted once"]
    assert sentences(minigpt, 103_680 - 2 * 4096) == [
        "95,488 = output matrix of attention left out"
    ]
    assert sentences(minigpt, 103_680 + 32 * 64) == ["105,728 = a table of positions"]


def test_where_two_things_have_the_same_size_both_are_named(minigpt: Model) -> None:
    assert sentences(minigpt, 103_040) == ["103,040 = biases left out", "103,040 = norms left out"]


def test_a_way_that_would_be_rounded_to_the_claim_comes_before_one_at_its_edge(
    minigpt: Model,
) -> None:
    # without biases, or without norms, it is 103,040: in the range too, but in its outer half
    assert sentences(minigpt, 100_000, 5_000) == [
        "102,400 = matrices only", "99,584 = embedding left out",
    ]  # fmt: skip


def test_nothing_is_named_where_nothing_simple_fits(minigpt: Model) -> None:
    assert sentences(minigpt, 12_345) == []


def test_more_ways_than_are_shown_are_counted(minigpt: Model) -> None:
    found = sentences(minigpt, 90_000, 40_000)
    assert len(found) == 3
    assert found[-1].endswith("other ways fit as well)")


def test_positions_and_an_untied_head_are_left_out_where_the_model_has_them() -> None:
    journey = open_model("journey")  # 24 embedding, 16 positions, 64 + 32 block, 24 head
    assert sentences(journey, 160 - 16) == ["144 = positions left out"]
    assert "136 = tied head" in sentences(journey, 160 - 24)
    assert sentences(journey, 160 + 24) == ["184 = head counted twice"]


def test_the_parts_of_a_layer_are_explained_as_well(minigpt: Model) -> None:
    at = "count.block.0"
    assert sentences(minigpt, 49_152, at=at) == ["49,152 = matrices only"]
    assert sentences(minigpt, 49_728 - 33_088, at=at) == ["16,640 = MLP left out"]
    assert sentences(minigpt, 12_288, at="count.block.0.attention") == [
        "12,288 = output matrix of attention left out"
    ]


def llama(layers: int, packed: str | None = None) -> Model:
    """Grouped key heads, a gated MLP, a vocabulary that is no round number, RMSNorm."""
    norm = NormSpec("rmsnorm", gain=True, bias=False)
    block = BlockSpec(
        AttentionSpec(heads=4, kv_heads=2, d_head=16, packed=packed),
        MlpSpec(d_ff=96, activation="silu", gated=True),
        attn_norm=norm,
        mlp_norm=norm,
    )
    spec = ModelSpec("llama", 1001, 64, None, (block,) * layers, final_norm=norm, tied=False)
    tensors = {each.name: Tensor(each.name, np.zeros(each.shape)) for each in parameters(spec)}
    return replace(open_model("tiny"), spec=spec, weights=Weights(tensors))


def test_gates_key_heads_and_padded_vocabularies_are_named() -> None:
    model = llama(3)
    total = known_counts(model)["count.total"]
    assert sentences(model, total - 3 * 64 * 96) == [f"{total - 18432:,} = gate left out"]
    more = total + 3 * 2 * 64 * 32
    assert sentences(model, more) == [f"{more:,} = as many key heads as query heads"]
    padded = total + 2 * 64 * (1024 - 1001)
    assert sentences(model, padded) == [f"{padded:,} = vocabulary padded to 1,024"]


def test_key_heads_are_counted_in_a_packed_matrix_too() -> None:
    model = llama(1, packed="concatenated")
    more = known_counts(model)["count.total"] + 2 * 64 * 32
    assert sentences(model, more) == [f"{more:,} = as many key heads as query heads"]


def test_a_deep_model_has_a_word_for_each_number_of_layers() -> None:
    model = llama(48)
    known = known_counts(model)
    less = known["count.total"] - 11 * known["count.block.0"]
    assert sentences(model, less) == [f"{less:,} = 37 layers of 48"]

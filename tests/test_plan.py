"""Plans have the addresses and axes of the glossary, read only what stands above, and prune."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import pytest

from byhand import forward
from byhand.errors import AddressError, InputError, SpecError, TextError
from byhand.numbers.base import Numbers
from byhand.numbers.exact import Exact
from byhand.numbers.pencil import Pencil
from byhand.parameters import parameters
from byhand.plan import WEIGHT, Plan
from byhand.spec import NO_NORM, AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, RotarySpec
from oracles.architectures import Case, spread

CASES = tuple(spread(60, seed=3, among=3))
LAYERNORM = NormSpec("layernorm", eps=Fraction(1, 3))
RMSNORM = NormSpec("rmsnorm", bias=False)
BARE = NormSpec("layernorm", gain=False, bias=False)


def model(
    block: BlockSpec | None = None, *, layers: int = 1, final_norm: NormSpec = NO_NORM, **more: Any
) -> ModelSpec:
    settings: dict[str, Any] = {"vocab": 5, "d_model": 4, "context": 7, "position": "learned"}
    settings |= more
    blocks = () if block is None else (block,) * layers
    return ModelSpec("model", blocks=blocks, final_norm=final_norm, **settings)


def attention(**more: Any) -> AttentionSpec:
    return AttentionSpec(**({"heads": 4, "d_head": 2, "kv_heads": 2} | more))


PRE = BlockSpec(attention(), MlpSpec(6), LAYERNORM, LAYERNORM)


def axes(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {step.address: step.axes for step in plan}


# ------------------------------------------------------------------ the table of addresses


def test_a_pre_norm_model_has_the_steps_of_the_glossary_in_spine_order() -> None:
    plan = forward.plan(model(PRE, final_norm=RMSNORM, tied=False), 3, target=True)
    row, wide = ("pos",), ("pos", "d")
    per_head, per_kv = ("head", "pos", "d_head"), ("kv_head", "pos", "d_head")
    assert list(axes(plan).items()) == [
        ("tokens", row),
        ("embed.token", wide),
        ("embed.position", wide),
        ("stream.0", wide),
        ("block.0.attn.norm.mean", row),
        ("block.0.attn.norm.centered", wide),
        ("block.0.attn.norm.variance", row),
        ("block.0.attn.norm.std", row),
        ("block.0.attn.norm.normalized", wide),
        ("block.0.attn.norm.out", wide),
        ("block.0.attn.q", per_head),
        ("block.0.attn.k", per_kv),
        ("block.0.attn.v", per_kv),
        ("block.0.attn.scores", ("head", "query", "key")),
        ("block.0.attn.weights", ("head", "query", "key")),
        ("block.0.attn.mixed", per_head),
        ("block.0.attn.out", wide),
        ("block.0.attn.add", wide),
        ("block.0.mlp.norm.mean", row),
        ("block.0.mlp.norm.centered", wide),
        ("block.0.mlp.norm.variance", row),
        ("block.0.mlp.norm.std", row),
        ("block.0.mlp.norm.normalized", wide),
        ("block.0.mlp.norm.out", wide),
        ("block.0.mlp.hidden", ("pos", "d_ff")),
        ("block.0.mlp.act", ("pos", "d_ff")),
        ("block.0.mlp.out", wide),
        ("block.0.mlp.add", wide),
        ("final.norm.mean_square", row),
        ("final.norm.rms", row),
        ("final.norm.normalized", wide),
        ("final.norm.out", wide),
        ("logits", ("pos", "vocab")),
        ("probs", ("pos", "vocab")),
        ("next", row),
        ("target", ()),
        ("loss", ("one",)),
    ]


def test_packing_head_norms_rotation_head_outputs_and_gates_add_their_steps() -> None:
    spec = attention(
        packed="concatenated", q_norm=RMSNORM, k_norm=RMSNORM, rotary=RotarySpec(2), alibi=True
    )
    block = BlockSpec(spec, MlpSpec(6, "silu", gated=True), RMSNORM, RMSNORM)
    plan = forward.plan(model(block, position="none"), 3, head_outputs=True)
    found = axes(plan)
    at = "block.0.attn."
    assert found[at + "qkv"] == ("pos", "packed")
    assert plan[at + "qkv"].shape == (3, 16)
    for name, head in (("q", "head"), ("k", "kv_head"), ("v", "kv_head")):
        assert found[at + name] == (head, "pos", "d_head")
    for name, head in (("q", "head"), ("k", "kv_head")):
        assert found[f"{at}{name}_norm.mean_square"] == (head, "pos")
        assert found[f"{at}{name}_norm.rms"] == (head, "pos")
        assert found[f"{at}{name}_norm.normalized"] == (head, "pos", "d_head")
        assert plan[f"{at}{name}_norm"] is plan[f"{at}{name}_norm.out"]
        assert found[f"{at}{name}_rotated"] == (head, "pos", "d_head")
    assert found[at + "head_out"] == ("head", "pos", "d")
    for name in ("gate", "hidden", "act", "gated"):
        assert found[f"block.0.mlp.{name}"] == ("pos", "d_ff")
    assert "embed.position" not in found
    assert plan["stream.0"].address == "embed.token"


def test_a_step_appears_only_where_it_is_asked_for() -> None:
    found = axes(forward.plan(model(PRE), 2))
    assert not {"loss", "target", "block.0.attn.head_out", "block.0.attn.qkv"} & set(found)


def test_the_stream_after_a_block_is_the_last_add_before_and_the_norm_after() -> None:
    post = BlockSpec(attention(), MlpSpec(6), LAYERNORM, LAYERNORM, norm_place="post")
    bare = BlockSpec(attention(), MlpSpec(6), BARE, BARE, norm_place="post")
    alone = BlockSpec(attention(), None, LAYERNORM)
    nothing = BlockSpec(None, None)
    ends = {}
    for name, block in {"pre": PRE, "post": post, "bare": bare, "alone": alone}.items():
        plan = forward.plan(model(block, layers=2), 2)
        assert plan["stream.0"].address == "stream.0"
        assert plan["stream.2"].address == plan["stream.1"].address.replace("block.0", "block.1")
        ends[name] = plan["stream.1"].address
    assert ends == {
        "pre": "block.0.mlp.add",
        "post": "block.0.mlp.norm.out",
        "bare": "block.0.mlp.norm.normalized",  # .out, where there is neither gain nor bias
        "alone": "block.0.attn.add",
    }
    assert forward.plan(model(nothing), 2)["stream.1"].address == "stream.0"
    assert forward.plan(model(bare), 2)["block.0.mlp.norm.out"].op == "normalize"


def test_parallel_side_trips_read_the_same_stream_and_both_add_to_it() -> None:
    block = BlockSpec(attention(), MlpSpec(6), LAYERNORM, LAYERNORM, parallel=True)
    plan = forward.plan(model(block), 2)
    assert plan["block.0.attn.norm.mean"].reads == ("stream.0",)
    assert plan["block.0.mlp.norm.mean"].reads == ("stream.0",)
    assert plan["block.0.mlp.add"].reads == ("block.0.attn.add", "block.0.mlp.out")


# ------------------------------------------------------------------ every plan


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_every_step_reads_only_what_stands_above_it_or_a_weight(case: Case) -> None:
    above: set[str] = set()
    weights = {WEIGHT + parameter.name for parameter in parameters(case.spec)}
    for step in case.plan():
        assert set(step.reads) <= above | weights, step.address
        assert step.address not in above
        above.add(step.address)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_plan_reads_exactly_the_parameters_of_its_model(case: Case) -> None:
    read = {name for step in case.plan() for name in step.reads if name.startswith(WEIGHT)}
    assert read == {WEIGHT + parameter.name for parameter in parameters(case.spec)}


@pytest.mark.parametrize("numbers", [Numbers, Exact, Pencil])
def test_every_operation_is_a_method_that_takes_what_its_step_gives(numbers: type[Numbers]) -> None:
    used = set()
    for case in CASES:
        for step in case.plan():
            if step.op == "given":
                continue
            used.add(step.op)
            signature = inspect.signature(getattr(numbers, step.op))
            arguments = dict.fromkeys([*step.inputs, *step.attributes])
            assert len(arguments) == len(step.inputs) + len(step.attributes), step
            signature.bind(None, **arguments)  # a TypeError where they do not fit
    operations = {
        name for name in Numbers.__abstractmethods__ if name not in ("name", "admit", "register")
    }
    assert used == operations - {"join"}  # which needs a past: see below


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_aliases_name_steps_of_the_plan_and_no_step_is_named_twice(case: Case) -> None:
    plan = case.plan()
    addresses = {step.address for step in plan}
    assert set(plan.aliases.values()) <= addresses
    assert not set(plan.aliases) & addresses
    streams = {f"stream.{layer}" for layer in range(len(case.spec.blocks) + 1)}
    assert streams <= addresses | set(plan.aliases)


# ------------------------------------------------------------------ asking for a part


def test_only_keeps_the_steps_asked_for_and_their_ancestors() -> None:
    plan = forward.plan(model(PRE), 2, target=True).only(["block.0.attn.weights"])
    assert [step.address for step in plan] == [
        "tokens",
        "embed.token",
        "embed.position",
        "stream.0",
        *(
            f"block.0.attn.norm.{part}"
            for part in ("mean", "centered", "variance", "std", "normalized", "out")
        ),
        "block.0.attn.q",
        "block.0.attn.k",
        "block.0.attn.scores",
        "block.0.attn.weights",
    ]


@pytest.mark.parametrize("case", CASES[:20], ids=range(20))
def test_only_of_a_step_is_closed_under_reading(case: Case) -> None:
    whole = case.plan()
    for wanted in whole:
        part = whole.only([wanted.address])
        kept = {step.address for step in part}
        assert wanted.address == part.steps[-1].address
        reads = {read for step in part for read in step.reads if not read.startswith(WEIGHT)}
        assert reads | {wanted.address} == kept
        assert set(part.aliases.values()) <= kept


def test_only_stops_at_what_is_given() -> None:
    plan = forward.plan(model(PRE), 2, target=True)
    part = plan.only(["loss"], given=["stream.1"])
    assert [step.address for step in part] == [
        "block.0.mlp.add", "logits", "probs", "target", "loss",
    ]  # fmt: skip


def test_a_group_or_a_pattern_names_its_steps_in_spine_order() -> None:
    plan = forward.plan(model(PRE, layers=2), 2)
    assert plan.matching(["block.1.attn.norm"]) == tuple(
        f"block.1.attn.norm.{part}"
        for part in ("mean", "centered", "variance", "std", "normalized", "out")
    )
    assert plan.matching(["logits", "block.*.attn.add"]) == (
        "block.0.attn.add",
        "block.1.attn.add",
        "logits",
    )
    assert plan.matching(["stream.*"]) == ("stream.0", "block.0.mlp.add", "block.1.mlp.add")


def test_an_unknown_step_comes_with_the_nearest_names() -> None:
    plan = forward.plan(model(PRE), 2)
    with pytest.raises(AddressError) as caught:
        plan["block.0.attn.score"]
    assert caught.value.message == "there is no step 'block.0.attn.score'"
    assert caught.value.hint is not None
    assert "block.0.attn.scores" in caught.value.hint
    with pytest.raises(AddressError, match="did you mean logits"):
        plan.matching(["logit"])
    with pytest.raises(AddressError):
        plan.only(["block.7.attn.out"])


# ------------------------------------------------------------------ the data of a pass


def test_positions_and_mask_reach_every_step_that_needs_them() -> None:
    spec = attention(rotary=RotarySpec(2))
    plan = forward.plan(model(BlockSpec(spec, None)), 2, positions=[3, 5])
    assert plan["embed.position"].attributes["ids"] == (3, 5)
    assert plan["block.0.attn.q_rotated"].attributes["positions"] == (3, 5)
    scores = plan["block.0.attn.scores"].attributes
    assert scores["queries"] == scores["keys"] == (3, 5)
    assert scores["mask"] == ((True, False), (True, True))


def test_the_causal_mask_and_the_given_one_both_hold() -> None:
    block = BlockSpec(attention(), None)
    given = [[True, True, True], [False, True, True], [True, False, True]]
    plan = forward.plan(model(block), 3, mask=given)
    assert plan["block.0.attn.scores"].attributes["mask"] == (
        (True, False, False),
        (False, True, False),
        (True, False, True),
    )
    free = forward.plan(model(BlockSpec(attention(causal=False), None)), 3, mask=given)
    assert free["block.0.attn.scores"].attributes["mask"] == tuple(map(tuple, given))


def test_a_window_lets_a_query_see_so_many_keys_back_and_no_further() -> None:
    plan = forward.plan(model(BlockSpec(attention(window=2), None)), 4)
    assert plan["block.0.attn.scores"].attributes["mask"] == (
        (True, False, False, False),
        (True, True, False, False),
        (False, True, True, False),
        (False, False, True, True),
    )


def test_a_window_needs_a_causal_mask() -> None:
    with pytest.raises(SpecError, match=r"attention\.window cannot be 2"):
        attention(window=2, causal=False)
    with pytest.raises(SpecError, match=r"attention\.window cannot be 0"):
        attention(window=0)


def test_with_a_past_the_keys_and_values_of_before_are_given_and_joined() -> None:
    block = BlockSpec(attention(rotary=RotarySpec(2)), None)
    plan = forward.plan(model(block), 2, past=3)
    assert plan["embed.position"].attributes["ids"] == (3, 4)
    for name, read in (("k", "k_rotated"), ("v", "v")):
        past, joined = plan[f"block.0.attn.past_{name}"], plan[f"block.0.attn.all_{name}"]
        assert (past.op, past.shape) == ("given", (2, 3, 2))
        assert past.axes == ("kv_head", "past", "d_head")
        assert (joined.op, joined.shape) == ("join", (2, 5, 2))
        assert dict(joined.inputs) == {"x": past.address, "y": f"block.0.attn.{read}"}
    scores = plan["block.0.attn.scores"]
    assert scores.shape == (4, 2, 5)
    assert scores.inputs["k"] == "block.0.attn.all_k"
    assert scores.attributes["keys"] == (0, 1, 2, 3, 4)
    assert scores.attributes["mask"] == ((True, True, True, True, False), (True,) * 5)
    assert plan["block.0.attn.mixed"].inputs["v"] == "block.0.attn.all_v"
    with pytest.raises(TextError, match="too long"):
        forward.plan(model(block), 2, past=6)
    with pytest.raises(InputError, match="positions count from 0"):
        forward.plan(model(block), 2, past=-1)


def test_a_text_longer_than_the_context_is_refused() -> None:
    assert len(forward.plan(model(), 7)) == 7
    with pytest.raises(TextError) as caught:
        forward.plan(model(), 8)
    assert caught.value.message == "the text is too long for this model"
    assert (caught.value.expected, caught.value.found) == ("at most 7 tokens", "8")
    with pytest.raises(TextError, match="too long"):
        forward.plan(model(), 1, positions=[7])


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(TextError, match="the text is empty"):
        forward.plan(model(), 0)


@pytest.mark.parametrize(
    ("positions", "message"),
    [([0], "positions do not fit"), ([0, 1, 2], "positions do not fit"), ([-1, 0], "from 0")],
)
def test_positions_that_do_not_fit_are_refused(positions: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        forward.plan(model(), 2, positions=positions)


@pytest.mark.parametrize("mask", [[[True, True]], [[True], [True]], [[True, True], [True]]])
def test_a_mask_of_another_shape_is_refused(mask: list[list[bool]]) -> None:
    with pytest.raises(InputError, match="the mask does not fit the text"):
        forward.plan(model(PRE), 2, mask=mask)


def test_a_query_that_may_look_at_no_key_is_refused() -> None:
    mask = [[True, True], [False, False]]
    with pytest.raises(InputError, match="position 1 may look at no key"):
        forward.plan(model(PRE), 2, mask=mask)
    upwards = [[False, True], [True, True]]  # position 0 may only look ahead, which causal forbids
    with pytest.raises(InputError, match="position 0 may look at no key"):
        forward.plan(model(PRE), 2, mask=upwards)
    forward.plan(model(BlockSpec(attention(causal=False), None)), 2, mask=upwards)


def test_a_base_of_positions_must_be_above_zero() -> None:
    with pytest.raises(SpecError, match=r"position\.base cannot be 0"):
        model(position="sinusoidal", position_base=Fraction(0))

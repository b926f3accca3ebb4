"""What can be asked of a trace: values by address, registers, and where exactness ends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import byhand
from byhand import forward
from byhand.errors import AddressError, UsageError
from byhand.evaluate import trace, work_out
from byhand.expression import Call, Number
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT
from byhand.numbers.exact import Exact
from byhand.numbers.pencil import Pencil
from byhand.spec import AttentionSpec, BlockSpec, ModelSpec
from byhand.tokens import Vocabulary
from byhand.tracing import Crossing, Trace
from byhand.weights import Tensor, Weights
from byhand.worked import weakest


@pytest.fixture(scope="module")
def found() -> Trace:
    return trace(open_model("tiny"), "a b")


# ------------------------------------------------------------------ values by address


def test_a_step_is_found_by_its_address_and_by_its_alias(found: Trace) -> None:
    assert found["stream.1"] is found["block.0.mlp.norm.out"]
    assert found["logits"].value.tolist() == [[1, -1, 0], [1, -1, 0]]


def test_an_index_gives_an_entry_a_row_or_a_part(found: Trace) -> None:
    assert found["logits[1,0]"].fraction == 1
    assert found["logits[-1]"].tolist() == [1, -1, 0]
    assert found["logits[:,1:]"].tolist() == [[-1, 0], [-1, 0]]
    assert found["block.0.attn.scores[0,0,1]"] is ABSENT


def test_tokens_predictions_and_the_target_can_be_indexed_too(found: Trace) -> None:
    assert found["tokens"].value == (0, 1)
    assert found["tokens[1]"] == 1
    assert found["tokens[:1]"] == (0,)
    assert found["next[-1]"].id == 0
    journey = trace(open_model("journey"), only=["target"])
    assert journey["target"].value == 4
    with pytest.raises(AddressError):
        journey["target[0]"]


@pytest.mark.parametrize("address", ["logits[2]", "logits[0,3]", "logits[0,0,0]", "tokens[2]"])
def test_an_index_outside_a_step_is_an_address_error(found: Trace, address: str) -> None:
    with pytest.raises(AddressError):
        found[address]


def test_an_unknown_address_comes_with_a_hint(found: Trace) -> None:
    with pytest.raises(AddressError, match="did you mean logits"):
        found["logit"]
    with pytest.raises(AddressError, match=r"stream\.1"):
        found["stream.2"]


def test_a_step_pruned_away_is_named_as_such() -> None:
    part = trace(open_model("tiny"), "a b", only=["stream.0"])
    whole = Trace(part.model, forward.plan(part.model.spec, 2), part.numbers, part.text,
                  part.tokens, part.steps)  # fmt: skip
    with pytest.raises(AddressError, match="logits was not worked out"):
        whole["logits"]


def test_the_representation_says_what_comes_next(found: Trace) -> None:
    assert repr(found) == "<Trace of tiny on 'a b' (exact): 31 steps, next 'a', proven>"
    assert repr(found["logits"]) == "<logits 2×3 exact: [[1, -1, 0], [1, -1, 0]]>"
    assert (
        repr(found["block.0.attn.scores"])
        == "<block.0.attn.scores 1×2×2 exact: [[[1, ·], [1, 2]]]>"
    )


# ------------------------------------------------------------------ registers


def test_a_register_is_the_weakest_of_its_entries(found: Trace) -> None:
    weights = found["block.0.attn.weights"]
    assert weights.register == "named"
    assert weights.row_registers == ("exact", "named")
    assert weights.register_at((0, 0, 0)) == "exact"
    assert weights.register_at((0, 0, 1)) is None
    assert weights.register_at((0, 1, 0)) == "named"
    assert found["tokens"].register == found["next"].register == "exact"
    assert found["next"].row_registers == ("exact", "exact")


def test_the_order_of_registers_is_exact_named_enclosed_rounded() -> None:
    assert weakest(["named", "exact"]) == "named"
    assert weakest(["named", "enclosed", "exact"]) == "enclosed"
    assert weakest(["rounded", "enclosed"]) == "rounded"
    assert weakest([]) == "exact"


# ------------------------------------------------------------------ boundaries and returns


def test_position_1_of_tiny_leaves_at_the_softmax_and_returns_at_the_norm(found: Trace) -> None:
    assert found.crossings == (
        Crossing("block.0.attn.weights", 1, returns=False),
        Crossing("block.0.attn.norm.normalized", 1, returns=True),
        Crossing("probs", 0, returns=False),
        Crossing("probs", 1, returns=False),
    )
    assert found.stopped_at(0) == "probs"
    assert found.stopped_at(1) == "block.0.attn.weights"


def test_a_tie_keeps_the_text_c_exact_to_the_end() -> None:
    found = trace(open_model("tiny"), "c")
    assert found.crossings == ()
    assert found.stopped_at(0) is None


def test_equal_scores_under_a_softmax_are_no_boundary() -> None:
    found = trace(open_model("tiny"), "c b")  # x0 = x1 = (1, 1)
    assert found["block.0.attn.weights[0,1]"].tolist() == [Fraction(1, 2), Fraction(1, 2)]
    assert found.stopped_at(1) is None


def test_a_loss_and_a_prediction_never_count_as_crossings() -> None:
    found = trace(open_model("journey"))
    assert found["loss"].register == "named"
    crossed = {crossing.address for crossing in found.crossings}
    assert not crossed & {"loss", "next", "tokens", "target"}


def test_with_a_pencil_nothing_is_exact_and_there_is_no_boundary() -> None:
    found = trace(open_model("tiny"), "a b", Pencil(2))
    assert found.crossings == ()


def attending(*, causal: bool, mask: Any = None, table: Any = None) -> Trace:
    """One head with identity matrices over two words, of which word 1 is √2."""
    attention = AttentionSpec(
        heads=1, d_head=1, kv_heads=1, scale=None, causal=causal, out=False,
        score_table=table is not None,
    )  # fmt: skip
    spec = ModelSpec("two", 2, 1, 2, (BlockSpec(attention, None),))
    one = np.array([[Fraction(1)]], dtype=object)
    root = Call("sqrt", Number(Fraction(2)))
    tensors = {
        "embed.token": np.array([[Fraction(1)], [root]], dtype=object),
        **{f"block.0.attn.{name}": one for name in "qk"},
        "block.0.attn.v": one,
    }
    if table is not None:
        tensors["block.0.attn.score_table"] = np.array(table, dtype=object)
    weights = Weights({name: Tensor(name, data) for name, data in tensors.items()})
    plan = forward.plan(spec, 2, mask=mask)
    numbers = Exact()
    steps = work_out(plan, weights, (0, 1), numbers)
    model = Model(spec, weights, Vocabulary(("one", "root")))
    return Trace(model, plan, numbers, "one root", (0, 1), steps)


def at(found: Trace, address: str) -> list[tuple[int, bool]]:
    return [(c.position, c.returns) for c in found.crossings if c.address == address]


def beyond_in_block(found: Trace, position: int) -> set[str]:
    return {
        address
        for address, row in found.beyond_boundary
        if row == position and address.startswith("block.")
    }


def test_a_named_weight_is_a_boundary_where_it_enters() -> None:
    found = attending(causal=True)
    assert at(found, "embed.token") == [(1, False)]
    assert at(found, "block.0.attn.q") == []


def test_a_position_leaves_where_its_own_row_does_even_if_another_s_was_named_before() -> None:
    found = attending(causal=False)
    assert found["block.0.attn.q"].row_registers == ("exact", "named")
    assert found["block.0.attn.scores"].row_registers == ("named", "named")
    assert at(found, "block.0.attn.scores") == [(0, False)]  # it looks at the key √2
    assert at(found, "block.0.attn.mixed") == []
    assert beyond_in_block(found, 0) == {
        f"block.0.attn.{name}" for name in ("scores", "weights", "mixed", "out", "add")
    }


def test_a_key_ahead_is_not_read_under_the_causal_mask() -> None:
    found = attending(causal=True)
    assert beyond_in_block(found, 0) == set()
    assert found["block.0.attn.mixed"].row_registers == ("exact", "named")


def test_masked_keys_do_not_count_as_read() -> None:
    alone = [[True, False], [False, True]]
    found = attending(causal=False, mask=alone)
    assert found["block.0.attn.mixed"].row_registers == ("exact", "named")
    assert beyond_in_block(found, 0) == set()
    assert at(found, "block.0.attn.scores") == [(1, True)]  # √2·√2 is 2


def test_a_key_masked_by_the_table_does_not_count_as_read() -> None:
    zero = Fraction(0)
    found = attending(causal=False, table=[[[zero, ABSENT], [zero, ABSENT]]])
    # Both positions look at position 0 alone, whose value is exactly 1.
    assert found["block.0.attn.mixed"].row_registers == ("exact", "exact")
    assert beyond_in_block(found, 0) == set()
    assert ("block.0.attn.mixed", 1) in found.beyond_boundary  # through its own query, √2
    assert at(found, "block.0.attn.weights") == [(1, True)]


# ------------------------------------------------------------------ what is in it, and its digits


def test_what_a_trace_holds_is_in_it() -> None:
    trace = byhand.trace("tiny", only="block.0.attn.scores")
    assert len(trace) == len(list(trace)) == len(list(trace.keys())) == len(trace.steps)
    assert "block.0.attn.scores" in trace
    assert "block.0.attn.scores[0,1,1]" in trace
    assert all(address in trace for address in trace)
    assert list(trace.keys()) == [worked.address for worked in trace.values()]
    assert dict(trace.items()) == dict(trace.steps)
    assert (trace.get("logits", "none"), trace.get("tokens")) == ("none", trace["tokens"])
    assert dict(trace) == dict(trace.steps)
    for missing in ("logits", "block.0.attn.scores[0,1,7]", "no such step", "", 3):
        assert missing not in trace


KINDS = [
    {"exact": True},
    {"digits": 12},
    {"decimals": 4},
    {"float": "float64"},
    {"float": "float32"},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_places_and_significant_digits_mean_the_same_of_every_kind(kind: dict[str, Any]) -> None:
    trace = byhand.trace("journey", target="mat", **kind)
    assert (trace.places("loss", 2), trace.significant("loss", 2)) == ("1.83", "1.8")
    assert (trace.places("loss[0]", 3), trace.significant("loss[0]", 4)) == ("1.831", "1.831")
    assert trace.places("block.0.attn.norm.mean[2]", 1) == "0.1"
    assert trace.significant("block.0.attn.norm.mean[2]", 3) == "0.125"
    assert trace.places("logits[0,5]", 2) == "-0.02"
    assert trace.significant("logits[0,5]", 1) == "-0.02"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_fewer_digits_than_none_are_refused(kind: dict[str, Any]) -> None:
    trace = byhand.trace("journey", **kind)
    with pytest.raises(UsageError, match="count has a value that does not fit"):
        trace.places("loss", -1)
    with pytest.raises(UsageError, match="a whole number from 1 to 1,000"):
        trace.significant("loss", 0)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "address", ["logits", "logits[0]", "next[0]", "block.0.attn.scores[0,0,1]"]
)
def test_what_is_not_one_number_has_no_digits(kind: dict[str, Any], address: str) -> None:
    trace = byhand.trace("journey", **kind)
    with pytest.raises(AddressError, match="not one number"):
        trace.places(address, 3)


@pytest.mark.parametrize("numbers", [None, "float32", "bfloat16"])
def test_a_masked_gradient_is_zero_in_floats_and_a_masked_score_is_not(numbers: str | None) -> None:
    found = byhand.trace("tiny", "a b", target="c", backward=True, numbers=numbers)
    for name, masked in (("scores", -np.inf), ("weights", 0)):
        assert np.asarray(found[f"block.0.attn.{name}"])[0, 0, 1] == masked
        assert np.asarray(found.grad[f"block.0.attn.{name}"])[0, 0, 1] == 0
        assert found.grad[f"block.0.attn.{name}"][0, 0, 1] is ABSENT


def test_a_loss_that_does_not_count_is_not_back_in_the_exact_numbers() -> None:
    trace = byhand.trace("tiny", "a b", losses=True)
    assert trace["losses"].at((1,)) is ABSENT
    assert not [crossing for crossing in trace.crossings if crossing.address == "losses"]

"""Every text up to a length: predictions against passes of their own, one text at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from lens_models import cases, random_model

import byhand
from byhand.errors import InputError
from byhand.evaluate import trace
from byhand.explaining import inputs
from byhand.explaining.ablation import Part, ablate, usual_parts
from byhand.explaining.inputs import Table, table
from byhand.expression import parse
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Printed
from byhand.numbers.exact import Exact
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, over_root
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights
from oracles.architectures import Case
from oracles.torch_pass import TorchPass

SURE = 1e-9  # a difference of two logits that rounding cannot make


@pytest.fixture(scope="module")
def abc() -> Table:
    return table("abc")


def texts(size: int, length: int) -> list[tuple[int, ...]]:
    return [text for n in range(1, length + 1) for text in product(range(size), repeat=n)]


def abc_by_numpy(ids: tuple[int, ...], without: str = "") -> np.ndarray[Any, Any]:
    """The logits after a text of abc, written out in float64."""
    w = {name: tensor.data.astype(float) for name, tensor in open_model("abc").weights.items()}
    x = w["embed.token"][list(ids)]
    if without != "embed.position":
        x = x + w["embed.position"][: len(ids)]
    if without != "block.0.attn.out":
        q, k, v = np.split(x @ w["block.0.attn.qkv"].T + w["block.0.attn.qkv_bias"], 3, axis=1)
        scores = q @ k.T / np.sqrt(2) + np.triu(np.full((len(ids),) * 2, -np.inf), 1)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        mixed = shares / shares.sum(axis=1, keepdims=True) @ v
        x = x + mixed @ w["block.0.attn.out"].T + w["block.0.attn.out_bias"]
    if without != "block.0.mlp.out":
        hidden = np.maximum(x @ w["block.0.mlp.hidden"].T + w["block.0.mlp.hidden_bias"], 0)
        x = x + hidden @ w["block.0.mlp.out"].T + w["block.0.mlp.out_bias"]
    logits: np.ndarray[Any, Any] = x[-1] @ w["head"].T + w["head_bias"]
    return logits


def test_every_text_of_abc_has_the_prediction_that_numpy_finds(abc: Table) -> None:
    assert [row.tokens for row in abc.rows] == texts(3, 3)
    assert abc.proven == 39
    for row in abc.rows:
        logits = np.sort(abc_by_numpy(row.tokens))
        assert row.prediction.id == abc_by_numpy(row.tokens).argmax()
        margin = row.prediction.margin
        assert abs(margin.mid - Fraction(logits[-1] - logits[-2])) <= margin.rad + Fraction(1e-12)


def test_every_text_of_abc_needs_the_parts_that_numpy_needs(abc: Table) -> None:
    for row in abc.rows:
        for part, other in zip(abc.parts, row.without, strict=True):
            assert other.id == abc_by_numpy(row.tokens, part.address).argmax()
            assert (part in abc.needed(row)) == (other.id != row.prediction.id)
    needs = Counter(part.address for row in abc.rows for part in abc.needed(row))
    assert needs == {
        "block.0.attn.out": 2,
        "block.0.mlp.out": 38,
    }


def test_abc_follows_its_last_token_but_after_two_texts(abc: Table) -> None:
    assert [(one.token, one.usual, one.texts) for one in abc.endings] == [
        (0, 1, 13), (1, 2, 13), (2, 0, 13),
    ]  # fmt: skip
    assert [row.tokens for one in abc.endings for row in one.others] == [(2, 1), (2, 2, 1)]
    assert abc.suffix == 3


def test_a_suffix_is_the_fewest_last_tokens_that_decide(abc: Table) -> None:
    told = {row.tokens: row.prediction.id for row in abc.rows}
    for row in abc.rows:
        assert row.suffix is not None
        for count in range(row.suffix + 1):
            ending = row.tokens[len(row.tokens) - count :]
            alike = {
                id
                for text, id in told.items()
                if len(text) == len(row.tokens) and text[len(text) - count :] == ending
            }
            assert (len(alike) == 1) == (count == row.suffix)


@pytest.mark.parametrize("name", ["tiny", "journey"])
def test_each_text_by_itself_predicts_the_same_in_exact_numbers(name: str) -> None:
    found = table(name, 2)
    for row in found.rows[:: 1 if name == "tiny" else 3]:
        text = found.model.vocabulary.decode(row.tokens)
        alone = trace(found.model, text, Exact())
        assert (row.prediction.id, row.prediction.tied) == (alone.next[-1].id, alone.next[-1].tied)
        for part, other in zip(found.parts, row.without, strict=True):
            expected = ablate(alone, part).next[-1]
            assert other.proven
            assert (other.id, other.tied) == (expected.id, expected.tied)


def test_every_text_of_journey_has_the_prediction_that_torch_finds() -> None:
    found = table("journey")
    assert (found.length, len(found.rows), found.proven) == (4, 6 + 36 + 216 + 1296, 1554)
    predicted = {row.tokens: row.prediction.id for row in found.rows}
    for text in product(range(6), repeat=4):
        if sum(text) % 7 == 0:  # each seventh is enough, and each has four predictions
            logits = TorchPass(found.model.spec, found.model.weights, text, 0).found["logits"]
            for n in range(4):
                assert predicted[text[: n + 1]] == int(logits[n].argmax())


@settings(max_examples=15)
@given(cases())
def test_whatever_the_architecture_texts_do_not_see_each_other(case: Case) -> None:
    model = Model(case.spec, case.weights, Ids(case.spec.vocab))
    length = 3 if case.spec.vocab < 3 else 2
    found = table(model, length, parts=())
    for row in found.rows:
        logits = TorchPass(case.spec, case.weights, row.tokens, 0).found["logits"][-1]
        largest = logits.max()
        if row.prediction.id is not None:
            assert largest - logits[row.prediction.id] < SURE
        first, *others = logits.sort(descending=True).values.tolist()
        if not others or first - others[0] > SURE:
            assert row.prediction.id == int(logits.argmax())


def looking_ahead() -> Model:
    """A model without a causal mask: what comes after a position counts."""
    attention = AttentionSpec(2, 2, 2, over_root(2), causal=False)
    block = BlockSpec(attention, MlpSpec(5))
    return random_model(ModelSpec("ahead", 3, 4, 4, (block,), "learned"), seed=4)


def test_a_model_that_looks_ahead_reads_each_text_by_itself() -> None:
    model = looking_ahead()
    found = table(model, 3)
    assert [part.kind for part in found.parts] == ["position", "attn", "head", "head", "mlp"]
    for row in found.rows:
        alone = trace(model, model.vocabulary.decode(row.tokens), Exact())
        assert row.prediction.id == alone.next[-1].id


def test_chunks_of_any_size_find_the_same(monkeypatch: pytest.MonkeyPatch, abc: Table) -> None:
    for size in (1, 5):
        monkeypatch.setattr(inputs, "TOGETHER", size)
        assert [row.prediction.id for row in table("abc").rows] == [
            row.prediction.id for row in abc.rows
        ]


def test_one_step_rule_is_found_where_nothing_but_the_last_token_counts() -> None:
    spec = ModelSpec("next", 4, 4, 3, (), tied=False, layout="out_in")
    weights = {"embed.token": np.eye(4), "head": np.roll(np.eye(4), 1, axis=0)}
    model = Model(spec, Weights({n: Tensor(n, d) for n, d in weights.items()}), Ids(4))
    found = table(model)
    assert (found.length, found.suffix) == (3, 1)
    assert [(one.usual, one.others) for one in found.endings] == [
        (1, ()),
        (2, ()),
        (3, ()),
        (0, ()),
    ]
    always = replace(model, weights=Weights({
        **model.weights, "head": Tensor("head", np.eye(4)[[1, 1, 1, 1]] * 0.0),
    }))  # fmt: skip
    tied = table(always)
    assert tied.suffix == 0
    assert all(row.prediction.tied == (0, 1, 2, 3) for row in tied.rows)


def test_what_is_not_known_narrowly_enough_is_undecided_and_decides_nothing() -> None:
    spec = ModelSpec("printed", 2, 1, 2, (), tied=False, layout="out_in")
    head = np.array([[Printed(Fraction(1, 10), 1)], [Printed(Fraction(1, 10), 1)]], dtype=object)
    table_of_tokens = np.array([[Fraction(1)], [Fraction(0)]], dtype=object)
    weights = {"embed.token": table_of_tokens, "head": head}
    model = Model(spec, Weights({n: Tensor(n, d) for n, d in weights.items()}), Ids(2))
    found = table(model, 2)
    by_text = {row.tokens: row for row in found.rows}
    assert by_text[0,].prediction.id is None
    assert by_text[0,].suffix is None
    assert found.undecided(by_text[0,]) == found.parts
    assert by_text[1,].prediction.tied == (0, 1)  # zero times anything
    assert found.suffix is None
    assert found.proven == 3


def two_tokens(first: Any, second: Any) -> Model:
    """A model of one number: the logits are its token's times these."""
    spec = ModelSpec("close", 2, 1, 2, (), tied=False, layout="out_in")
    data = {"embed.token": [[Fraction(1)], [Fraction(-1)]], "head": [[first], [second]]}
    tensors = {name: Tensor(name, np.array(one, dtype=object)) for name, one in data.items()}
    return Model(spec, Weights(tensors), Ids(2))


def test_logits_that_are_very_close_are_told_apart_with_more_bits() -> None:
    found = table(two_tokens(Fraction(1), 1 + Fraction(1, 10**40)), 2)
    assert [row.prediction.id for row in found.rows] == [1, 0, 1, 0, 1, 0]
    assert found.proven == 6


def test_a_tie_that_no_precision_shows_is_proven_by_exact_numbers() -> None:
    found = table(two_tokens(parse("sqrt(2)"), parse("2/sqrt(2)")), 2)
    assert [row.prediction.tied for row in found.rows] == [(0, 1)] * 6
    assert found.proven == 6


def test_unknown_weights_leave_no_table() -> None:
    found = table("abc-walkthrough")
    assert found.rows == ()
    assert found.missing is not None
    assert found.missing.cause == "weight.block.0.attn.qkv"


def test_texts_can_be_made_of_some_tokens_and_parts_can_be_named() -> None:
    found = table("journey", 3, tokens=["cat", "sat"], parts=["block.0.mlp", Part("position")])
    assert [row.tokens for row in found.rows] == [
        tuple(1 + token for token in text) for text in texts(2, 3)
    ]
    assert [part.address for part in found.parts] == ["block.0.mlp.out", "embed.position"]


def test_without_a_length_the_longest_texts_are_no_more_than_2000() -> None:
    assert (table("abc", parts=()).length, table("journey", parts=()).length) == (3, 4)
    assert table("minigpt", parts=()).length == 1  # 64² are too many


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"length": 0}, "texts of this length cannot be worked out"),
        ({"length": 5}, "a length from 1 to 4"),
        ({"tokens": []}, "no tokens to make texts of"),
        ({"tokens": [6]}, "there is no token 6"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        table("journey", **asked)


def test_too_many_texts_are_refused_with_how_many_they_would_be() -> None:
    with pytest.raises(InputError, match="too many texts of up to 3 tokens") as refused:
        table("minigpt", 3)
    assert refused.value.found == f"{64 + 64**2 + 64**3:,}"
    assert refused.value.expected == "at most 100,000"
    assert refused.value.hint == "--length 2 is few enough"


@pytest.mark.parametrize(
    ("size", "length", "found"),
    [
        (3, 11, f"{sum(3**n for n in range(1, 12)):,}"),
        (11, 14, f"{sum(11**n for n in range(1, 15)):,}"),
        (11, 17, "more than 10^17"),  # 11^17 is 5.05e17
        (10, 20, "more than 10^19"),  # no power is told that a rounding could have reached
        (2, 10**6, "more than 10^301,029"),
        (1, 10**6, "1,000,000"),
    ],
)
def test_the_number_of_texts_that_is_told_is_never_more_than_there_are(
    size: int, length: int, found: str
) -> None:
    assert inputs._count(size, length) == found
    if length <= 20 and found.startswith("more"):
        assert sum(size**n for n in range(1, length + 1)) > 10 ** int(found.split("^")[1])


def test_a_vocabulary_beyond_the_limit_is_refused_without_a_hint() -> None:
    with pytest.raises(InputError, match="too many texts of one token") as refused:
        inputs._length(open_model("tiny"), inputs.LIMIT + 1, None)
    assert refused.value.hint is None  # no length is few enough


def test_the_parts_are_the_usual_ones(abc: Table) -> None:
    assert abc.parts == usual_parts(byhand.trace("abc").model.spec)


def test_passes_over_a_tree_of_texts_share_their_plan() -> None:
    from byhand.explaining.text_passes import TextPasses, groups

    model = open_model("minigpt")
    texts = sorted(text for n in range(1, 6) for text in product(range(3), repeat=n))
    together = list(groups(model, texts, 64))
    assert sorted(text for some in together for text in some) == texts
    passes = TextPasses(model, (), None)
    plans = [passes.of(some).plan for some in together]
    assert len(plans) == 10
    assert len(set(map(id, plans))) == 2  # nine branches of 40 texts, and what they grow from


def test_a_table_of_texts_on_a_gpu_repeats_its_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from byhand import repeating
    from byhand.numbers.enclosed.limbs.operations import Limbs

    trained = open_model("minigpt")
    monkeypatch.setattr(repeating, "can_repeat", lambda numbers: isinstance(numbers, Limbs))
    monkeypatch.setattr(inputs, "TOGETHER", 5)
    prepared: list[Any] = []
    make = repeating.Passes._prepare

    def noticed(self: Any, *given: Any) -> Any:
        prepared.append(make(self, *given))
        return prepared[-1]

    monkeypatch.setattr(repeating.Passes, "_prepare", noticed)
    some = (4, 9, 30)
    ours = inputs.table(trained, 3, tokens=some, parts=(), device="cpu")
    assert len(prepared) == 1
    assert prepared[0].repeats
    alone = inputs.table(trained, 3, tokens=some, parts=())
    assert [(row.tokens, row.prediction.id) for row in ours.rows] == [
        (row.tokens, row.prediction.id) for row in alone.rows
    ]
    assert ours.proven == alone.proven == 39

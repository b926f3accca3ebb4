"""Generation in enclosures: each choice is proven, whatever precision that takes."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import Undecided, UsageError
from byhand.expression import parse
from byhand.generating import Generation, Sampling, generate
from byhand.generating.draws import Drawn, draw
from byhand.generating.proven import ProvenGeneration
from byhand.generating.sampling import nucleus
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Printed
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import EVERYTHING, Enclosure
from byhand.numbers.exact import Exact
from byhand.plan import Step
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, spread
from oracles.counter import counter

F = Fraction
ZERO = Enclosure(F(0), F(0))
WHOLE = {"first position": 0, "extra mask": False, "vocab": 3}
CASES = list(spread(14, seed=6, wishes=WHOLE))


def as_checkpoint(model: Model) -> Model:
    """The model, called one of a checkpoint, for which exact numbers are not the usual ones."""
    return replace(model, spec=replace(model.spec, family="gpt2"))


def model_of(case: Case) -> Model:
    return Model(case.spec, case.weights, Ids(case.spec.vocab))


def proven(model: Model, prompt: Any, *, bits: int = 60, **settings: Any) -> ProvenGeneration:
    return ProvenGeneration(model, Balls(bits), prompt, **{"count": 3, "digits": 12, **settings})


# ------------------------------------------------------------------ the most probable token


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_each_token_is_the_exact_one_with_the_digits_of_its_probability(case: Case) -> None:
    model = model_of(case)
    exact = Generation(model, Exact(), case.tokens, count=3)
    for expected, found in zip(exact, proven(model, case.tokens), strict=True):
        assert found.proven
        assert (found.id, found.tied, found.position) == (
            expected.id, expected.tied, expected.position
        )  # fmt: skip
        assert found.probability.proves(12)
        assert found.probability.overlaps(Enclosure.of(expected.probability.ball(300)))
        assert found.margin.overlaps(Enclosure.of(expected.margin.ball(300)))


def test_from_hardly_any_bits_the_precision_is_raised_and_nothing_chosen_changes() -> None:
    model = open_model("minigpt")
    text = "amar pretérito 3 singular ->"
    tokens = model.vocabulary.encode(model.text or text)
    low, high = proven(model, tokens, bits=8, count=4), proven(model, tokens, bits=300, count=4)
    assert [c.id for c in low] == [c.id for c in high]
    assert 8 < low.bits < 200
    assert high.bits == 300
    assert low.numbers.name == f"balls of {low.bits} bits"


def test_more_digits_take_more_bits() -> None:
    runs = [byhand.generate("minigpt", digits=digits, count=2) for digits in (5, 50)]
    few, many = ([chosen.probability for chosen in run] for run in runs)
    assert all(p.proves(5) for p in few)
    assert all(p.proves(50) for p in many)
    assert runs[0].digits == 5
    assert runs[0].bits < runs[1].bits  # type: ignore[attr-defined]


def test_where_nothing_is_raised_a_token_costs_one_position() -> None:
    seen: list[Step] = []
    case = next(c for c in CASES if all(b.attention is None or b.attention.causal
                                        for b in c.spec.blocks))  # fmt: skip
    generation = proven(model_of(case), (0,), bits=400, count=5, progress=seen.append)
    shapes = []
    for _chosen in generation:
        shapes.append([step.shape for step in seen if step.address == "logits"])
        seen.clear()
    assert shapes == [[(1, 3)]] * 5


def test_a_tie_is_shown_by_exact_numbers() -> None:
    first = next(proven(two_tokens(0), (0,)))
    assert (first.id, first.tied, first.proven, first.margin) == (0, (0, 1), True, ZERO)
    assert first.probability == Enclosure(F(1, 2), F(0))


def test_a_tie_has_as_many_digits_of_its_probability_as_are_asked_for() -> None:
    model = two_tokens(0)
    table = np.array([[F(1), F(0), F(0)]] * 3, dtype=object)
    head = np.empty((3, 3), dtype=object)
    head[:] = [[*model.weights["head"].data[0], F(1)], [F(0)] * 3, [F(0)] * 3]
    spec = replace(model.spec, vocab=3, d_model=3)
    tensors = {"embed.token": Tensor("embed.token", table), "head": Tensor("head", head)}
    first = next(proven(Model(spec, Weights(tensors), Ids(3)), (0,), digits=400))
    assert (first.id, first.tied, first.proven) == (0, (0, 1), True)
    assert first.probability.proves(400)


def test_tokens_with_the_same_weights_tie_in_a_model_of_any_size() -> None:
    model = as_checkpoint(two_tokens(0))  # not one for exact numbers
    head = np.array(model.weights["head"].data)
    head[0, 1] = head[0, 0]
    tensors = {**model.weights, "head": Tensor("head", head)}
    generation = proven(replace(model, weights=Weights(tensors)), (0,))
    first = next(generation)
    assert (first.id, first.tied, first.proven, first.margin) == (0, (0, 1), True, ZERO)
    assert generation.bits < 100


def test_a_near_tie_is_told_apart() -> None:
    generation = proven(two_tokens("1/10^80"), (0,))
    first = next(generation)
    assert (first.id, first.tied) == (1, ())
    assert first.margin.contains(F(1, 10**80))
    assert generation.bits > 260


def two_tokens(gap: Any) -> Model:
    """Two tokens; after any of them their logits are √2 and √2 + gap."""
    tiny = open_model("tiny")
    spec = replace(tiny.spec, vocab=2, blocks=(), position="none", tied=False, context=4)
    head = np.empty((2, 2), dtype=object)
    head[:] = [[parse("sqrt(2)"), parse(f"sqrt(2) + {gap}" if gap else "2/sqrt(2)")], [F(0)] * 2]
    table = np.array([[F(1), F(0)]] * 2, dtype=object)
    tensors = {"embed.token": Tensor("embed.token", table), "head": Tensor("head", head)}
    return Model(spec, Weights(tensors), Ids(2))


def test_what_cannot_be_told_apart_says_how_close_it_is() -> None:
    model = as_checkpoint(two_tokens("1/10^80"))  # too large for exact numbers, let us say
    with pytest.raises(Undecided) as caught:
        next(proven(model, (0,), limit=100))
    assert caught.value.where == "next[0]"
    assert caught.value.message == "the next token cannot be decided between '0', '1'"
    assert caught.value.found is not None
    assert " ± " in caught.value.found


def test_of_many_tokens_that_cannot_be_told_apart_some_are_named() -> None:
    model = open_model("minigpt")
    with pytest.raises(Undecided) as caught:
        next(proven(model, (0,), bits=2, limit=2))
    assert caught.value.message.endswith(f", {model.spec.vocab - 8} more")
    assert caught.value.message.count(",") == 8


def test_digits_that_the_weights_do_not_have_are_undecided() -> None:
    model = two_tokens(3)
    head = np.array(model.weights["head"].data)
    head[0, 1] = Printed(F(3), 3)
    tensors = {**model.weights, "head": Tensor("head", head)}
    generation = proven(replace(model, weights=Weights(tensors)), (0,))
    with pytest.raises(Undecided) as caught:
        next(generation)
    assert caught.value.where == "probs[0,1]"
    assert caught.value.message == "12 digits of this probability cannot be proven"
    assert caught.value.hint == "ask for fewer digits"
    assert next(proven(replace(model, weights=Weights(tensors)), (0,), digits=2)).id == 1


def test_it_ends_where_others_end_and_refuses_what_others_refuse() -> None:
    generation = generate(counter(ends=(3,)), "a", Balls(64), count=6, digits=5)
    assert [chosen.text for chosen in generation] == ["b", "c", ""]
    assert generation.ended == "end token"
    with pytest.raises(UsageError, match="digits has a value that does not fit"):
        byhand.generate("tiny", digits=0)


# ------------------------------------------------------------------ drawn tokens


@pytest.mark.parametrize(
    "settings",
    [{}, {"temperature": F(7, 10)}, {"top_k": 2}, {"top_p": F(9, 10)},
     {"temperature": F(3), "top_k": 30, "top_p": F(1, 2)}],
    ids=str,
)  # fmt: skip
def test_the_proven_draw_is_that_of_exact_numbers_with_the_same_seed(
    settings: dict[str, Any],
) -> None:
    for case in CASES[:6]:
        model = model_of(case)
        sampling = Sampling(**settings, seed=5)
        exact = Generation(model, Exact(), case.tokens, count=3, sampling=sampling)
        found = proven(model, case.tokens, sampling=sampling)
        for one, other in zip(exact, found, strict=True):
            assert other.proven
            assert (one.id, one.rank) == (other.id, other.rank)
            assert other.chance == pytest.approx(one.chance, rel=1e-12)
            assert other.margin is None
            assert other.probability.proves(12)


def test_one_throw_a_token_however_often_it_is_tried() -> None:
    model = open_model("minigpt")
    settings: dict[str, Any] = {"sampling": Sampling(F(2), seed=9), "count": 6}
    tokens = model.vocabulary.encode(model.text or "")
    low, high = proven(model, tokens, bits=8, **settings), proven(model, tokens, **settings)
    assert [c.id for c in low] == [c.id for c in high]


def test_an_interrupted_draw_is_taken_up_again_with_the_same_throw() -> None:
    model = open_model("minigpt")
    tokens = model.vocabulary.encode(model.text or "")
    settings: dict[str, Any] = {"sampling": Sampling(F(4), seed=2), "count": 8}
    steps = 0

    def interrupt(step: Step) -> None:
        nonlocal steps
        steps += 1
        if steps in (30, 170):
            raise KeyboardInterrupt

    generation = proven(model, tokens, progress=interrupt, **settings)
    for _time in range(2):
        with pytest.raises(KeyboardInterrupt):
            list(generation)
    list(generation)
    undisturbed = proven(model, tokens, **settings)
    assert [c.id for c in generation.choices] == [c.id for c in undisturbed]


def test_a_draw_on_the_edge_is_undecided() -> None:
    """The shares of 0 and -ln 2 are 2/3 and 1/3: no enclosure tells a throw of 2/3 from it."""
    model = two_tokens("0")
    head = np.array(model.weights["head"].data)
    head[0] = [F(0), parse("-ln(2)")]
    tensors = {**model.weights, "head": Tensor("head", head)}
    model = replace(model, weights=Weights(tensors))
    sampling = Sampling(top_p=F(2, 3), seed=1)
    with pytest.raises(Undecided) as caught:
        next(proven(model, (0,), sampling=sampling, limit=200))
    assert caught.value.message == "it cannot be proven which token is drawn"
    assert caught.value.where == "probs[0]"
    assert caught.value.hint == "another seed draws another token"
    assert next(proven(model, (0,), sampling=Sampling(top_p=F(66, 100), seed=1))).id == 0


def floats_draw(logits: Any, sampling: Sampling, throw: float) -> int:
    """The same in float64, as `sampling` has it."""
    shares = np.exp((logits - logits.max()) / float(sampling.temperature))
    shares /= shares.sum()
    if sampling.top_k is not None:
        edge = np.sort(logits)[-min(sampling.top_k, len(logits))]
        shares = np.where(logits >= edge, shares, 0)
        shares /= shares.sum()
    if sampling.top_p is not None and sampling.top_p < 1:
        shares = np.where(nucleus(shares, float(sampling.top_p)), shares, 0)
        shares /= shares.sum()
    return int(np.searchsorted(np.cumsum(shares), throw, side="right"))


def test_draws_are_those_of_floats_away_from_the_edges() -> None:
    random = Random(12)
    drawn_ids = set()
    for _try in range(400):
        logits = np.round([random.gauss(0, 2) for _id in range(random.randint(1, 9))], 2)
        sampling = Sampling(
            random.choice((F(1), F(1, 3), F(5, 2))),
            random.choice((None, 1, 2, 4, 20)),
            random.choice((None, F(1, 10), F(1, 2), F(95, 100), F(1))),
            seed=0,
        )
        throw = random.random()
        radius = random.choice((F(0), F(1, 10**20)))
        row = [Enclosure(F(x), radius) for x in logits]
        found = draw(row, sampling, F(throw), 120)
        tied = len(set(logits)) < len(logits)
        if found is None:
            assert tied, (logits, sampling)
            assert radius, (logits, sampling)
            continue
        assert found.id == floats_draw(logits, sampling, throw), (logits, sampling, throw)
        assert found.rank == 1 + int((logits > logits[found.id]).sum())
        drawn_ids.add(found.id)
    assert len(drawn_ids) > 5


EQUAL = [ZERO, ZERO, ZERO, Enclosure(F(-1), F(0))]
BLURRED = [Enclosure(F(0), F(1, 10**30))] * 3 + EQUAL[3:]


def test_known_ties_are_taken_in_by_the_top_k_and_cut_by_id_in_the_top_p() -> None:
    assert draw(EQUAL, Sampling(top_k=1, seed=0), F(9, 10), 64) == Drawn(2, pytest.approx(1 / 3), 1)
    # of three equal shares and a small one, the first alone has less than a third of the whole
    assert draw(EQUAL[:3], Sampling(top_p=F(1, 3), seed=0), F(9, 10), 64) == Drawn(0, 1.0, 1)
    assert draw(EQUAL[:3], Sampling(top_p=F(2, 3), seed=0), F(9, 10), 64) == Drawn(1, 0.5, 1)
    assert draw(EQUAL[:3], Sampling(top_p=F(67, 100), seed=0), F(9, 10), 64).id == 2  # type: ignore[union-attr]


def blurred(*logits: Any) -> list[Enclosure]:
    return [Enclosure(F(logit), F(1, 10**10)) for logit in logits]


SHARE = F("0.731058578630004879251159944614")  # 1/(1 + 1/e), of the logits 0 and -1
CLOSE = F(1, 10**13)


def test_a_throw_close_to_where_one_share_ends_is_undecided() -> None:
    row = blurred(0, -1)
    for throw in (SHARE - CLOSE, SHARE, SHARE + CLOSE):
        assert draw(row, Sampling(seed=0), throw, 64) is None
    for throw, id in ((SHARE - F(1, 10**9), 0), (SHARE + F(1, 10**9), 1)):
        found = draw(row, Sampling(seed=0), throw, 64)
        assert found is not None
        assert (found.id, found.rank) == (id, id + 1)


def test_a_top_k_that_two_close_tokens_compete_for_is_undecided() -> None:
    row = blurred(5, 1, 1 + CLOSE, -3)
    assert draw(row, Sampling(top_k=2, seed=0), F(1, 100), 64) is None
    for k in (1, 3, 4):
        found = draw(row, Sampling(top_k=k, seed=0), F(1, 100), 64)
        assert found is not None
        assert found.id == 0


def test_a_top_p_that_two_close_tokens_compete_for_is_undecided() -> None:
    row = blurred(0, -1, -1 + CLOSE, -9)  # about 0.576, 0.212, 0.212 and hardly anything
    assert draw(row, Sampling(top_p=F(7, 10), seed=0), F(1, 100), 64) is None
    for p in (F(1, 2), F(9, 10)):
        found = draw(row, Sampling(top_p=p, seed=0), F(1, 100), 64)
        assert found is not None
        assert found.id == 0


def test_a_top_p_close_to_a_sum_of_shares_is_undecided() -> None:
    row = blurred(0, -1)
    for p in (SHARE - CLOSE, SHARE, SHARE + CLOSE):
        assert draw(row, Sampling(top_p=p, seed=0), F(1, 100), 64) is None
    one = draw(row, Sampling(top_p=SHARE - F(1, 10**9), seed=0), F(1, 100), 64)
    both = draw(row, Sampling(top_p=SHARE + F(1, 10**9), seed=0), F(1, 100), 64)
    assert one == Drawn(0, 1.0, 1)
    assert both == Drawn(0, pytest.approx(float(SHARE)), 1)


def test_of_two_close_tokens_neither_rank_is_told() -> None:
    assert draw(blurred(1, 1 + CLOSE), Sampling(seed=0), F(1, 100), 64) is None


def test_a_top_k_between_ties_that_matter_to_nobody_is_decided() -> None:
    apart = [Enclosure(F(5), F(1, 10**9)), *BLURRED[:2], Enclosure(F(-3), F(1))]
    found = draw(apart, Sampling(top_k=1, seed=0), F(1, 2), 64)
    assert found == Drawn(0, 1.0, 1)


def test_what_nobody_knows_cannot_be_drawn_from() -> None:
    assert draw([EVERYTHING, ZERO], Sampling(seed=0), F(1, 2), 64) is None


# ------------------------------------------------------------------ a real model

DATA = Path(os.environ.get("BYHAND_DATA", Path(__file__).parents[2] / "shared" / "data"))
STORIES = DATA / "stories260K"


@pytest.mark.skipif(not STORIES.exists(), reason="the model stories260K is not here")
def test_a_trained_model_writes_its_story_proven_token_for_token() -> None:
    model = open_model(STORIES)
    prompt = "Once upon a time, there was a little"
    generation = byhand.generate(model, prompt, digits=12, count=40)
    choices = list(generation)
    assert all(chosen.proven and chosen.probability.proves(12) for chosen in choices)
    assert generation.added.startswith(" girl named Lily. She loved to play outside in the park.")
    floats = byhand.generate(model, prompt, float="float64", count=40)
    for chosen, rounded in zip(choices, floats, strict=True):
        assert chosen.id == rounded.id
        assert float(rounded.probability) == pytest.approx(float(chosen.probability), rel=1e-9)

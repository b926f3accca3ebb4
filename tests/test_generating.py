"""Generation: what is cached changes nothing, what is proven is true, what is drawn is pinned."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation.logits_process import (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from byhand import forward
from byhand.errors import InputError, TextError, Undecided, UsageError
from byhand.evaluate import work_out
from byhand.expression import parse
from byhand.generating import Generation, Sampling, generate
from byhand.generating.generation import is_causal, keys_and_values
from byhand.generating.sampling import Dice, nucleus
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Numbers, Prediction
from byhand.numbers.exact import Exact, nearest_float
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.plan import Step
from byhand.spec import ModelSpec
from byhand.tokens import Ids, Vocabulary
from byhand.tracing import Worked
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, given_answers, spread

WHOLE = {"first position": 0, "extra mask": False, "vocab": 3}
CAUSAL = {**WHOLE, "causal": True}


def model_of(case: Case) -> Model:
    return Model(case.spec, case.weights, Ids(case.spec.vocab))


def anew(case: Case, numbers: Numbers, tokens: tuple[int, ...]) -> dict[str, Worked]:
    """The whole text worked out, as a trace works it out."""
    return work_out(forward.plan(case.spec, len(tokens)), case.weights, tokens, numbers)


def agree(x: Any, y: Any) -> bool:
    """Equal, proven; or the same to 4096 bits where algebra does not see it."""
    try:
        return bool(x == y)
    except Undecided as error:
        return "not separated from 0 with 4096 bits" in error.message


# ------------------------------------------------------------------ the cache changes nothing


CASES = list(spread(20, seed=5, wishes=CAUSAL))


@pytest.mark.parametrize("case", CASES, ids=map(str, range(len(CASES))))
def test_cached_generation_is_the_whole_text_worked_out_anew_exactly(case: Case) -> None:
    numbers = Exact()
    generation = Generation(model_of(case), numbers, case.tokens, count=3)
    tokens = case.tokens
    for chosen in generation:
        steps = anew(case, numbers, tokens)
        expected: Prediction = steps["next"].value[-1]
        assert (chosen.id, chosen.tied) == (expected.id, expected.tied)
        assert chosen.proven
        assert agree(chosen.margin, expected.margin)
        assert agree(chosen.probability, steps["probs"].value[-1, chosen.id])
        tokens = (*tokens, chosen.id)
    assert generation.tokens == tokens
    assert generation.ended == "count"


def test_the_cases_have_every_kind_of_attention_among_them() -> None:
    answers = set().union(*map(given_answers, CASES))
    for wanted in [
        ("position", "learned"), ("position", "sinusoidal"), ("position", "none"),
        ("rope", True), ("rope pairing", "half"), ("rope pairing", "interleaved"),
        ("alibi", True), ("score table", True), ("window", 1), ("window", 2),
        ("packed", "concatenated"), ("packed", "per_head"), ("kv_heads", 1), ("heads", 4),
        ("place", "post"), ("place", "pre"), ("parallel", True), ("layers", 2),
        ("k norm", "layernorm"), ("k norm", "rmsnorm"), ("out", False), ("gated", True),
    ]:  # fmt: skip
        assert wanted in answers, wanted


def test_every_key_and_value_in_the_cache_is_that_of_the_whole_text() -> None:
    for case in CASES[:12]:
        numbers = Exact()
        generation = Generation(model_of(case), numbers, case.tokens, count=3)
        list(generation)
        text = generation.tokens[:-1]  # the last token has been read by nothing yet
        steps = anew(case, numbers, text)
        sources = keys_and_values(forward.plan(case.spec, len(text)))
        assert set(sources) == set(generation._cache)
        for past, source in sources.items():
            cached, whole = generation._cache[past].value, steps[source].value
            assert cached.shape == whole.shape
            assert all(map(agree, cached.flat, whole.flat)), past


@pytest.mark.parametrize("decimals", [3, 5])
def test_with_a_pencil_the_cache_gives_the_very_same_roundings(decimals: int) -> None:
    for case in CASES[:10]:
        numbers = Pencil(decimals)
        tokens = case.tokens
        for chosen in Generation(model_of(case), numbers, tokens, count=3):
            steps = anew(case, numbers, tokens)
            assert chosen.id == steps["next"].value[-1].id
            assert chosen.probability == steps["probs"].value[-1, chosen.id]
            assert chosen.margin == steps["next"].value[-1].margin
            assert not chosen.proven
            tokens = (*tokens, chosen.id)


def test_in_floats_the_cache_gives_the_same_numbers_but_for_the_order_of_sums() -> None:
    for case in CASES:
        numbers = Floats("float64", convert_once=True)
        tokens = case.tokens
        for chosen in Generation(model_of(case), numbers, tokens, count=3):
            probs = anew(case, numbers, tokens)["probs"].array[-1]
            assert float(chosen.probability) == pytest.approx(float(probs[chosen.id]), rel=1e-12)
            assert chosen.probability >= probs.max() * (1 - 1e-12)
            assert not chosen.proven
            tokens = (*tokens, chosen.id)


def test_on_torch_tensors_the_cache_gives_the_same_numbers() -> None:
    tensors = pytest.importorskip("byhand.numbers.tensors")
    for case in CASES[:8]:
        numbers = tensors.Tensors("float64", "cpu")
        tokens = case.tokens
        for chosen in Generation(model_of(case), numbers, tokens, count=3):
            probs = anew(case, numbers, tokens)["probs"].array[-1]
            assert float(chosen.probability) == pytest.approx(float(probs[chosen.id]), rel=1e-12)
            tokens = (*tokens, chosen.id)
    generation = Generation(model_of(CASES[0]), numbers, (0,), count=3, sampling=Sampling(seed=1))
    assert len(list(generation)) == 3


def test_where_a_position_looks_ahead_the_text_is_worked_out_anew() -> None:
    cases = list(spread(6, seed=8, wishes={**WHOLE, "causal": False, "layers": 1}))
    cases = [case for case in cases if case.spec.blocks[0].attention is not None]
    assert len(cases) > 2
    for case in cases:
        assert not is_causal(case.spec)
        numbers = Exact()
        tokens = case.tokens
        for chosen in Generation(model_of(case), numbers, tokens, count=2):
            steps = anew(case, numbers, tokens)
            assert chosen.id == steps["next"].value[-1].id
            assert agree(chosen.probability, steps["probs"].value[-1, chosen.id])
            tokens = (*tokens, chosen.id)


def test_a_token_costs_the_same_number_of_steps_wherever_it_stands() -> None:
    case = CASES[0]
    seen: list[Step] = []
    generation = Generation(model_of(case), Exact(), (0,), count=6, progress=seen.append)
    costs, shapes = [], []
    for _chosen in generation:
        costs.append(len(seen))
        shapes.append([step.shape for step in seen if step.address == "logits"])
        seen.clear()
    plan = forward.plan(case.spec, 1, past=1)
    assert costs[1:] == [len(plan)] * 5
    assert shapes == [[(1, 3)]] * 6  # one position, always


def test_of_the_text_before_only_keys_and_values_are_worked_out(journey: Model) -> None:
    seen: list[Step] = []
    next(generate(journey, count=1, progress=seen.append))
    first = seen[: [step.address for step in seen].index("tokens", 1)]
    assert first[-1].address == "block.0.attn.v"
    assert first[-1].shape[1] == 3
    assert "block.0.attn.scores" not in [step.address for step in first]


def test_each_weight_is_admitted_once() -> None:
    class Counting(Exact):
        admitted = 0

        def admit(self, data: Any) -> Any:
            self.admitted += 1
            return super().admit(data)

    case = CASES[0]
    numbers = Counting()
    list(Generation(model_of(case), numbers, case.tokens, count=3))
    assert numbers.admitted == len({
        read for step in case.plan() for read in step.reads if read.startswith("weight.")
    })  # fmt: skip


# ------------------------------------------------------------------ the most probable token


@pytest.mark.parametrize("name", ["tiny", "journey"])
def test_exact_greedy_tokens_are_all_proven(name: str) -> None:
    generation = generate(open_model(name), open_model(name).vocabulary.tokens[0], count=9)
    choices = list(generation)
    assert choices == generation.choices
    assert all(chosen.proven and chosen.rank == 1 for chosen in choices)
    context = generation.model.spec.context
    assert context is not None
    assert [chosen.position for chosen in choices] == list(range(1, context + 1))


def test_the_probability_is_the_exact_one(tiny: Model) -> None:
    generation = generate(tiny, "c")
    first, second = generation
    assert (first.token, first.text, first.position) == ("a", " a", 1)
    assert first.probability == Fraction(1, 3)
    assert (first.tied, first.proven, first.margin) == ((0, 1, 2), True, 0)
    assert str(second.probability) == "e^2/(1 + e + e^2)"
    assert (second.tied, second.margin, second.chance) == ((), 1, None)
    assert (generation.added, generation.text) == (" a a", "c a a")


def test_an_undecided_token_ends_it_with_what_was_generated_before(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    argmax, calls = Exact.argmax, []

    def doubtful(self: Exact, x: Any) -> list[Prediction]:
        calls.append(x)
        if len(calls) == 1:
            return argmax(self, x)
        return [Prediction(None, None, False, candidates=(0, 2))]

    monkeypatch.setattr(Exact, "argmax", doubtful)
    generation = generate(tiny, "a")
    assert next(generation).token == "a"
    with pytest.raises(Undecided) as caught:
        next(generation)
    assert str(caught.value) == "next[1]: the next token cannot be decided between 'a', 'c'"
    assert (generation.added, generation.ended) == (" a", None)


def test_logits_that_are_no_numbers_have_no_next_token() -> None:
    model = counter()
    tensors = dict(model.weights)
    tensors["head"] = Tensor("head", np.full((4, 4), np.nan))
    broken = Model(model.spec, Weights(tensors), model.vocabulary)
    with pytest.raises(InputError, match=r"next\[0\]: the logits are not finite numbers"):
        next(generate(broken, "a", Floats("float32")))


def test_an_unknown_weight_is_named() -> None:
    with pytest.raises(InputError, match=r"logits cannot be worked out") as caught:
        list(generate(open_model("abc-walkthrough"), "A"))
    assert caught.value.hint == "weight.block.0.attn.qkv is unknown"


# ------------------------------------------------------------------ where it ends


def counter(ends: tuple[int, ...] = (), context: int | None = None) -> Model:
    """After each letter of a, b, c, d comes the next one, and after d comes a."""
    table = np.array([[Fraction(i == j) for j in range(4)] for i in range(4)], dtype=object)
    head = np.array([[Fraction(2 * (j == (i + 1) % 4)) for j in range(4)] for i in range(4)])
    spec = ModelSpec("counter", 4, 4, context, (), tied=False)
    tensors = {"embed.token": table, "head": head.astype(object)}
    weights = Weights({name: Tensor(name, data) for name, data in tensors.items()})
    return Model(spec, weights, Vocabulary(tuple("abcd"), "characters"), ends=ends)


def test_it_ends_after_so_many_tokens() -> None:
    generation = generate(counter(), "a", count=6)
    assert [chosen.text for chosen in generation] == list("bcdabc")
    assert (generation.text, generation.added, generation.ended) == ("abcdabc", "bcdabc", "count")
    assert next(generation, None) is None


def test_it_ends_at_an_end_token_which_adds_no_text() -> None:
    generation = generate(counter(ends=(3,)), "a", count=6)
    assert [(chosen.token, chosen.text) for chosen in generation][-1] == ("d", "")
    assert (generation.text, generation.ended) == ("abc", "end token")
    assert generation.tokens == (0, 1, 2, 3)


def test_it_ends_where_the_context_is_full() -> None:
    generation = generate(counter(context=3), "ab", count=9)
    assert [chosen.position for chosen in generation] == [2, 3]
    assert generation.ended == "context"
    full = generate(counter(context=2), "ab", count=9)
    assert [chosen.token for chosen in full] == ["c"]
    assert full.ended == "context"
    exactly = generate(counter(context=2), "ab", count=1)
    list(exactly)
    assert exactly.ended == "count"


def test_a_prompt_that_is_too_long_by_itself_is_refused() -> None:
    with pytest.raises(TextError, match="too long for this model"):
        generate(counter(context=2), "abc")


def test_an_interrupted_pass_can_be_taken_up_again() -> None:
    case = CASES[0]
    steps = 0

    def interrupt(step: Step) -> None:
        nonlocal steps
        steps += 1
        if steps == 70:
            raise KeyboardInterrupt

    numbers = Exact()
    generation = Generation(model_of(case), numbers, case.tokens, count=4, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(generation)
    assert len(generation.choices) < 4
    list(generation)
    undisturbed = Generation(model_of(case), Exact(), case.tokens, count=4)
    list(undisturbed)
    assert generation.tokens == undisturbed.tokens


# ------------------------------------------------------------------ drawing


def floats_of(logits: np.ndarray[Any, Any]) -> tuple[Worked, Worked]:
    class Plain(Pencil):
        """Stands for any system of rounded numbers."""

    step = Step("logits", "linear", {}, ("pos", "vocab"), (1, logits.size), "")
    worked = Worked(step, logits.reshape(1, -1), Plain(3))
    return worked, worked


@pytest.mark.parametrize("seed", range(30))
def test_chances_are_those_of_transformers(seed: int) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(scale=3, size=random.integers(2, 60))
    temperature = float(random.choice([0.3, 0.7, 1.0, 1.9]))
    top_k = random.choice([None, 1, 3, 10, 1000])
    top_p = random.choice([None, 0.1, 0.5, 0.9, 0.999])
    scores = torch.from_numpy(logits).unsqueeze(0)
    ids: Any = None
    scores = TemperatureLogitsWarper(temperature)(ids, scores)
    if top_k is not None:
        scores = TopKLogitsWarper(int(top_k))(ids, scores)
    if top_p is not None:
        scores = TopPLogitsWarper(float(top_p))(ids, scores)
    expected = scores.softmax(-1)[0].numpy()
    sampling = Sampling(Fraction(str(temperature)), top_k, top_p and Fraction(str(top_p)), seed=0)
    chances = sampling.chances(*floats_of(logits))
    assert np.array_equal(chances > 0, expected > 0)
    np.testing.assert_allclose(chances, expected, rtol=1e-13, atol=0)


def test_all_that_tie_with_the_last_of_the_top_k_may_be_drawn() -> None:
    logits = np.array([1.0, 2.0, 1.0, 0.0])
    expected = TopKLogitsWarper(2)(None, torch.from_numpy(logits)[None]).softmax(-1)[0]
    chances = Sampling(top_k=2, seed=0).chances(*floats_of(logits))
    assert (chances > 0).tolist() == (expected > 0).tolist() == [True, True, True, False]


def test_the_top_p_ends_with_the_token_that_reaches_it() -> None:
    shares = np.array([0.25, 0.5, 0.25])
    assert nucleus(shares, 0.5).tolist() == [False, True, False]
    assert nucleus(shares, 0.51).tolist() == [True, True, False]  # of a tie, the lowest id
    assert nucleus(shares, 0.01).tolist() == [False, True, False]  # always one at least
    assert nucleus(shares, 0.76).tolist() == [True, True, True]
    assert np.flatnonzero(nucleus(np.full(100, 0.01), 0.295)).tolist() == list(range(30))


def test_a_top_p_of_one_leaves_every_token_in() -> None:
    logits = np.array([0.0, -40.0, -45.0])
    chances = Sampling(top_p=Fraction(1), seed=0).chances(*floats_of(logits))
    assert (chances > 0).all()


@pytest.mark.parametrize("temperature", ["1e-400", "1e-320", "1e308", "1e400"])
def test_extreme_temperatures_are_their_limits(temperature: str) -> None:
    logits = np.array([3.0, 1.0, 3.0, -np.inf])
    chances = Sampling(Fraction(temperature), seed=0).chances(*floats_of(logits))
    cold = temperature.startswith("1e-")
    expected = [0.5, 0.0, 0.5, 0.0] if cold else [1 / 3, 1 / 3, 1 / 3, 0.0]
    assert chances == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_nothing_is_drawn_from_what_is_not_a_number(wrong: float) -> None:
    with pytest.raises(InputError, match="logits: the logits are not finite numbers"):
        Sampling(seed=0).chances(*floats_of(np.array([1.0, wrong])))


def test_exact_chances_are_exact_with_the_temperature_and_rounded_once(tiny: Model) -> None:
    generation = generate(tiny, "a", temperature=0.5, seed=1)
    chosen = next(generation)
    logit = (2, -2, 0)[chosen.id]  # 1, -1 and 0, over one half
    value = Exact().scalar(parse(f"exp({logit})/(exp(2) + exp(-2) + 1)"))
    assert chosen.chance == nearest_float(value)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(any), st.integers(0, 2**64 - 1))
def test_what_has_no_chance_is_never_drawn(chances: list[float], seed: int) -> None:
    array = np.array(chances)
    assert array[Dice(seed).draw(array)] > 0


@pytest.mark.parametrize(
    ("throw", "chances", "drawn"),
    [
        (0.0, [0.0, 0.5, 0.5], 1),
        (0.5, [0.5, 0.0, 0.5], 2),
        (0.4999, [0.5, 0.0, 0.5], 0),
        (1 - 2**-53, [0.1, 0.7, 0.2, 0.0], 2),
        (1 - 2**-53, [0.1] * 10, 9),
    ],
)
def test_a_throw_on_an_edge_draws_the_token_that_begins_there(
    throw: float, chances: list[float], drawn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dice, "throw", lambda self: throw)
    assert Dice(0).draw(np.array(chances)) == drawn


def test_the_dice_are_those_of_numpy() -> None:
    dice, generator = Dice(7), np.random.Generator(np.random.PCG64(7))
    throws = [dice.throw() for _throw in range(1000)]
    assert throws == generator.random(1000).tolist()


def test_tokens_are_drawn_as_often_as_their_chances_say() -> None:
    dice, chances = Dice(0), np.array([0.1, 0.0, 0.6, 0.3])
    counts = np.bincount([dice.draw(chances) for _throw in range(20_000)], minlength=4)
    assert counts / 20_000 == pytest.approx(chances, abs=0.01)


def drawn(**settings: Any) -> str:
    generation = generate(counter(), "a", count=24, **settings)
    list(generation)
    return generation.added


def test_a_seed_draws_the_same_text_on_every_machine() -> None:
    assert drawn(temperature=1, seed=1) == "bdadabcdaabcdbcdabccdabd"
    assert drawn(temperature=1, seed=2) != drawn(temperature=1, seed=1)
    assert drawn(top_k=4, seed=1) == drawn(temperature=1, seed=1)


def test_a_cold_draw_is_the_most_probable_token_but_never_proven() -> None:
    assert drawn(temperature=0.01, seed=1) == "bcdabcdabcdabcdabcdabcda"
    assert drawn(top_k=1, seed=1) == "bcdabcdabcdabcdabcdabcda"
    chosen = next(generate(counter(), "a", top_k=1, seed=1))
    assert (chosen.proven, chosen.rank, chosen.chance, chosen.margin) == (False, 1, 1.0, None)


def test_a_seed_that_was_not_given_is_told_and_draws_the_same_again() -> None:
    first = generate(counter(), "a", temperature=1)
    again = generate(counter(), "a", temperature=1, seed=first.seed)
    assert [c.id for c in first] == [c.id for c in again]
    assert generate(counter(), "a").seed is None
    assert len({generate(counter(), "a", temperature=1).seed for _time in range(4)}) > 1


def test_a_float_is_the_decimal_it_was_written_as() -> None:
    generation = generate(counter(), "a", temperature=0.7, top_p=0.9)
    assert generation.sampling is not None
    assert generation.sampling.temperature == Fraction(7, 10)
    assert generation.sampling.top_p == Fraction(9, 10)


def test_the_rank_counts_the_more_probable_tokens() -> None:
    for chosen in generate(counter(), "a", count=24, temperature=3, seed=5):
        assert chosen.rank == (1 if chosen.probability > Fraction(1, 2) else 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0}, "the temperature has a value that does not fit\n"
         "  expected: a number above 0\n  found: 0\n"
         "  hint: without a temperature, the most probable token is taken"),
        ({"temperature": -1.5}, "the temperature has a value that does not fit\n"
         "  expected: a number above 0\n  found: -1.5"),
        ({"temperature": float("nan")}, "an option has a value that does not fit\n"
         "  expected: a finite number\n  found: nan"),
        ({"top_k": 0}, "top-k has a value that does not fit\n"
         "  expected: a whole number of at least 1\n  found: 0"),
        ({"top_p": 0}, "top-p has a value that does not fit\n"
         "  expected: a number above 0 and at most 1\n  found: 0"),
        ({"top_p": 1.5}, "top-p has a value that does not fit\n"
         "  expected: a number above 0 and at most 1\n  found: 1.5"),
        ({"count": 0}, "the number of tokens has a value that does not fit\n"
         "  expected: a whole number of at least 1\n  found: 0"),
        ({"temperature": 1, "seed": -1}, "the seed has a value that does not fit\n"
         "  expected: a whole number of at least 0\n  found: -1"),
        ({"seed": 3}, "a seed is given, but nothing is drawn\n"
         "  hint: give a temperature, a top-k or a top-p as well"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        generate(counter(), "a", **settings)
    assert str(caught.value) == message


def test_a_model_without_a_text_asks_for_one() -> None:
    with pytest.raises(InputError, match="no default text"):
        generate(counter())


# ------------------------------------------------------------------ a real model

DATA = Path(os.environ.get("BYHAND_DATA", Path(__file__).parents[2] / "shared" / "data"))
STORIES = DATA / "stories260K"
STORY = " girl named Lily. She loved to play outside in the park."


@pytest.mark.skipif(not STORIES.exists(), reason="the model stories260K is not here")
@pytest.mark.parametrize("format", ["float64", "float32"])
def test_a_trained_model_writes_its_story(format: str) -> None:
    model = open_model(STORIES)
    prompt = "Once upon a time, there was a little"
    generation = generate(model, prompt, Floats(format, convert_once=True), count=22)
    list(generation)
    assert generation.added == STORY
    assert generation.text == prompt + STORY

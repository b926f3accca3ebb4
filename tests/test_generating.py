"""Generation: what is cached changes nothing, what is proven is true, and it ends in time."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import byhand
from byhand import forward
from byhand.errors import InputError, TextError, Undecided
from byhand.evaluate import work_out
from byhand.files import parse_model
from byhand.generating import Generation, Sampling, generate
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Numbers, Prediction
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.plan import Step, keys_and_values
from byhand.tokens import Ids
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.architectures import Case, given_answers, spread
from oracles.counter import counter
from oracles.experts import modern
from oracles.hand_set import dyadic

WHOLE = {"first position": 0, "extra mask": False, "vocab": 3}
CAUSAL = {**WHOLE, "causal": True}
MATRICES = ("q", "k", "v", "out")


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
SHORT = {**CAUSAL, "layers": 1, "attention": True, "mlp": True, "score table": False}
CASES.append(modern(next(spread(1, seed=6, wishes=SHORT)), 1, dyadic))  # a sink and experts


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
        assert not case.spec.causal
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


def test_a_model_without_a_text_asks_for_one() -> None:
    with pytest.raises(InputError, match="no default text"):
        generate(counter())


# ------------------------------------------------------------------ models of transformers

SMALL: dict[str, Any] = {"vocab_size": 89, "bos_token_id": 1, "eos_token_id": 2}
LAYERS: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 4,
                          "intermediate_size": 40, "max_position_embeddings": 48}  # fmt: skip
FAMILIES = {
    "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 48},
    "llama": {**LAYERS, "hidden_size": 24, "num_key_value_heads": 2},
    "mistral": {**LAYERS, "hidden_size": 24, "num_key_value_heads": 1, "sliding_window": 5},
    "qwen3": {**LAYERS, "hidden_size": 24, "num_key_value_heads": 2, "head_dim": 8},
    "gpt_neox": {**LAYERS, "hidden_size": 32, "rotary_pct": 0.5},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_writes_what_transformers_writes(family: str, tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model(family, **SMALL, **FAMILIES[family])
    torch.manual_seed(3)
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)  # as they come, all tokens are about as probable
    theirs.save_pretrained(tmp_path)
    prompt = [4, 8, 15, 16, 23, 42]
    expected = theirs.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        do_sample=False,
        max_new_tokens=30,
        pad_token_id=0,
    )
    model = open_model(tmp_path)
    assert model.ends == (2,)
    text = " ".join(map(str, prompt))
    generation = generate(model, text, Floats("float32", convert_once=True), count=30)
    list(generation)
    assert list(generation.tokens) == expected[0].tolist()
    assert generation.ended == ("end token" if family == "mistral" else "count")


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


@pytest.mark.parametrize(
    "scaling",
    ["{kind: longrope, length: 3, short_factors: [1, 1], long_factors: [9, 1/4]}",
     "{kind: dynamic, factor: 9, length: 3}"],
)  # fmt: skip
@pytest.mark.parametrize("numbers", ["float64", "digits 9"])
def test_keys_are_turned_anew_where_angles_depend_on_the_length(scaling: str, numbers: str) -> None:
    """Each probability is that of the whole text, up to the length and beyond it."""
    model = parse_model(f"""
        vocabulary: [a, b, c]
        model: {{d_model: 4, layers: 2, mlp: none, attention: {{heads: 1}}, position:
                {{kind: rope, base: 7, scaling: {scaling}}}}}
        weights: {{embed.token: [[1, 2/3, 0, 1], [0, 1, 1/2, 1], [1/3, 0, 1, -1]],
            {", ".join(f"block.{at}.attn.{m}: identity" for at in "01" for m in MATRICES)}}}
    """)
    for prompt in ("a", "a b c b"):
        written = prompt
        for chosen in byhand.generate(model, prompt, count=5, numbers=numbers):
            whole = byhand.trace(model, written, numbers="float64")["probs"][-1]
            assert float(chosen.probability) == pytest.approx(whole.max(), abs=1e-9)
            written += f" {chosen.token}"

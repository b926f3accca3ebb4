"""Texts in floats, side by side: the numbers of each are those that it has alone."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import byhand
from byhand import forward
from byhand.evaluate import Admitted, work_out
from byhand.numbers.floats import Floats
from byhand.numbers.floats.together import Together
from byhand.scoring import float_batches
from byhand.scoring.float_batches import FloatBatches, batches, filled
from byhand.scoring.samples import Sample
from byhand.scoring.scorer import Scorer
from byhand.spec import ModelSpec
from byhand.weights import Weights
from oracles.architectures import make_case, ordinary
from oracles.todays import todays

TEXTS = 3


def some_texts(model: byhand.Model, count: int, seed: int = 0) -> list[Sample]:
    random = Random(seed)
    vocab, longest = model.spec.vocab, model.spec.context or 12
    found = []
    for number in range(count):
        length = random.randint(2, longest)
        ids = tuple(random.randrange(vocab) for _place in range(length))
        found.append(Sample(str(number), ids, random.randint(1, length - 1)))
    return found


def alone_and_together(spec: ModelSpec, weights: Weights, length: int) -> tuple[Any, Any]:
    """The logits of some texts, one by one and side by side."""
    random = Random(7)
    texts = [[random.randrange(spec.vocab) for _place in range(length)] for _text in range(TEXTS)]
    plan = forward.plan(spec, length).only(["logits"])
    one = Floats("float64")
    alone = [work_out(plan, weights, text, one)["logits"].value for text in texts]
    numbers = Together("float64", TEXTS, length)
    tokens = [id for text in texts for id in text]
    rows = work_out(plan, Admitted(weights, one), tokens, numbers)["logits"].value
    return np.concatenate(alone), rows


@pytest.mark.parametrize("seed", range(40))
def test_any_architecture_has_the_same_logits_side_by_side(seed: int) -> None:
    random = Random(seed)

    def choose(_question: str, options: Sequence[Any]) -> Any:
        return random.choice(options)

    case = make_case(choose, seed)
    alone, together = alone_and_together(case.spec, case.weights, len(case.tokens))
    np.testing.assert_allclose(together, alone, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("seed", [seed for seed in range(48) if seed % 3 != 2])
def test_todays_options_have_the_same_logits_side_by_side(seed: int) -> None:
    case = todays(seed, ordinary)
    alone, together = alone_and_together(case.spec, case.weights, len(case.tokens))
    np.testing.assert_allclose(together, alone, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("held", [True, False])
def test_a_batch_scores_each_text_as_it_is_scored_alone(
    held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not held:  # the weights are read for each batch, and let go of
        monkeypatch.setattr(float_batches, "HELD", 0)
    model = byhand.open_model("minigpt")
    samples = some_texts(model, 60)
    scorer = Scorer(model, "float64")
    assert scorer._batches is not None
    assert scorer._batches.held is held
    together = list(scorer.score(samples))
    assert [scores.sample for scores in together] == samples
    assert len(batches(model.spec, samples)) < 20
    for scores, sample in zip(together, samples, strict=True):
        alone = scorer.score_one(sample)
        np.testing.assert_allclose(scores.logprobs, alone.logprobs, rtol=0, atol=1e-11)
        np.testing.assert_allclose(scores.entropies, alone.entropies, rtol=0, atol=1e-11)
        np.testing.assert_allclose(scores.margins, alone.margins, rtol=0, atol=1e-11)
        assert scores.ranks.tolist() == alone.ranks.tolist()
        assert scores.best.tolist() == alone.best.tolist()


def test_what_stands_behind_a_text_changes_none_of_its_numbers() -> None:
    model = byhand.open_model("minigpt")
    (sample,) = some_texts(model, 1)
    work = FloatBatches(model, "float64").work
    length = len(sample.ids) - 1
    (exact,), (longer,) = work([sample], length), work([sample], length + 3)
    np.testing.assert_allclose(longer.logprobs, exact.logprobs, rtol=0, atol=1e-12)
    assert filled((4, 5), 4) == (4, 5, 5, 5)


def test_the_batches_of_texts_depend_on_the_texts_alone() -> None:
    model = byhand.open_model("minigpt")
    samples = some_texts(model, 300)
    found = batches(model.spec, samples)
    assert sorted(place for batch in found for place in batch.places) == list(range(300))
    lengths = [len(samples[place].ids) - 1 for batch in found for place in batch.places]
    assert lengths == sorted(lengths)
    one, other = (list(Scorer(model, "float32").score(samples)) for _again in range(2))
    for first, second in zip(one, other, strict=True):
        assert first.logprobs.tobytes() == second.logprobs.tobytes()


def test_equal_logits_rank_the_lower_id_first() -> None:
    rows = float_batches.rows_of(np.array([[1.0, 3.0, 3.0, 0.0]] * 4), [0, 1, 2, 3])
    assert rows.ranks.tolist() == [3, 1, 2, 4]
    assert rows.best.tolist() == [1] * 4
    assert rows.margins.tolist() == [0.0] * 4
    total = 2 + np.exp(-2.0) + np.exp(-3.0)
    np.testing.assert_allclose(
        rows.logprobs, [-2 - np.log(total), *[-np.log(total)] * 2, -3 - np.log(total)]
    )

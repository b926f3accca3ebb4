"""The n-gram baseline: its probabilities are probabilities, and its trust is tuned fairly."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import TextError
from byhand.train.corpora import Document, Question, open_corpus
from byhand.train.ngram import NGram

VERBS = open_corpus("verbs")
SIZE = 4

texts = st.lists(st.integers(0, SIZE - 1), min_size=2, max_size=12).map(tuple)
several = st.lists(texts, min_size=1, max_size=12)


def verbs_model(orders: int = 5, groups: tuple[int, ...] | None = VERBS.groups) -> NGram:
    return NGram.fit(VERBS.train, len(VERBS.vocabulary), orders=orders, groups=groups)


@given(several, texts, st.integers(1, 5))
def test_the_probabilities_of_all_tokens_sum_to_1_and_none_is_0(
    documents: list[Document], context: Document, orders: int
) -> None:
    model = NGram.fit(documents, SIZE, orders=orders)
    for length in range(len(context) + 1):
        probabilities = model.probabilities(context[:length])
        assert probabilities.min() > 0
        assert probabilities.sum() == pytest.approx(1, abs=1e-12)


@given(several, texts, st.integers(1, 5))
def test_a_document_is_as_probable_as_its_tokens_one_after_the_other(
    documents: list[Document], document: Document, orders: int
) -> None:
    model = NGram.fit(documents, SIZE, orders=orders)
    one_by_one = [
        np.log(model.probabilities(document[:place])[document[place]])
        for place in range(1, len(document))
    ]
    assert model.log_probabilities(document) == pytest.approx(one_by_one, abs=1e-12)
    mean = -float(np.mean(one_by_one))
    assert model.perplexity([document]) == pytest.approx(np.exp(mean), rel=1e-12)


def by_hand(
    documents: list[Document], trust: np.ndarray, context: Document, token: int
) -> Fraction:
    """The definition, read off slowly: counts by looking at every place of every document."""
    result = Fraction(1, SIZE)
    padded = (None,) * 4 + context
    for length in range(len(trust)):
        followers = []
        for document in documents:
            begun = (None,) * 4 + document
            followers += [
                begun[place]
                for place in range(5, len(begun))
                if begun[place - length : place] == padded[len(padded) - length :]
            ]
        if not followers:
            break
        average = len(followers) / len(set(followers))
        share = Fraction(trust[length, int(np.log2(average))])
        own = Fraction(followers.count(token), len(followers))
        result = share * own + (1 - share) * result
    return result


@given(several, texts)
def test_the_estimates_of_all_orders_are_mixed_as_the_definition_says(
    documents: list[Document], context: Document
) -> None:
    model = NGram.fit(documents, SIZE, orders=5)
    expected = [float(by_hand(documents, model.trust, context, id)) for id in range(SIZE)]
    assert model.probabilities(context) == pytest.approx(expected, abs=1e-12)


def test_a_uniform_source_has_the_perplexity_of_its_tokens() -> None:
    """Every pair of 8 tokens equally often: nothing can be known beyond 1 in 8."""
    pairs = list(product(range(8), repeat=2))
    model = NGram.fit(pairs, 8, orders=1)
    assert model.perplexity(pairs) == pytest.approx(8, rel=1e-12)
    noise = np.random.default_rng(7).integers(0, 8, size=(2, 20_000))
    long = NGram.fit([tuple(noise[0].tolist())], 8, orders=5)
    assert long.perplexity([tuple(noise[1].tolist())]) == pytest.approx(8, rel=0.005)


def test_a_pattern_is_learned() -> None:
    abc = open_corpus("abc")
    model = NGram.fit(abc.train, 3)
    assert model.perplexity(abc.validation) < 1.05
    asked = [Question((0, 1, 2), (0, 1, 2), "ABC again"), Question((2, 0), (0,), "a wrong answer")]
    assert model.accuracy(asked) == 0.5


def test_the_trust_is_tuned_without_what_is_predicted() -> None:
    """Where no two documents share anything, contexts are worth nothing, however often counted."""
    alone = [(id, id + 1) * 4 for id in range(0, 40, 2)]
    model = NGram.fit(alone, 40, orders=2)
    assert model.trust[1].max() <= 0.5  # never found useful: only the 0.5 of what was never tried
    shared = NGram.fit([alone[0]] * 20, 40, orders=2)
    assert shared.trust[1].max() > 0.9


def test_documents_of_a_group_are_left_out_together() -> None:
    twice = [(id, id + 1) for id in range(0, 40, 2) for _copy in range(2)]
    apart = NGram.fit(twice, 40, orders=2)
    together = NGram.fit(twice, 40, orders=2, groups=[number // 2 for number in range(40)])
    assert apart.trust[1, 1] == 0.5  # a context seen twice was never met when one is left out
    assert apart.trust[1, 0] > 0.9
    assert together.trust[1].max() == 0.5


@pytest.mark.parametrize("orders", [2, 3, 5])
def test_tuning_helps_on_what_was_held_out(orders: int) -> None:
    tuned = verbs_model(orders)
    plain = NGram(tuned.vocab_size, tuned._orders, np.full_like(tuned.trust, 0.5))
    assert tuned.perplexity(VERBS.validation) < 0.9 * plain.perplexity(VERBS.validation)


def test_the_baseline_of_verbs_cannot_tell_held_out_forms() -> None:
    model = verbs_model()
    assert model.perplexity(VERBS.validation) == pytest.approx(6.52, abs=0.01)
    assert model.accuracy(VERBS.questions) == pytest.approx(4 / 56)
    careless = verbs_model(groups=None)
    assert careless.perplexity(VERBS.validation) == pytest.approx(12.23, abs=0.01)
    assert careless.accuracy(VERBS.questions) == 0


@pytest.mark.parametrize("documents", [[], [(1,)], [()], [(), (1,)]])
def test_documents_without_a_token_to_predict_are_refused(documents: list[Document]) -> None:
    with pytest.raises(TextError) as caught:
        NGram.fit(documents, SIZE)
    assert caught.value.message == "there is no token to predict"
    assert caught.value.expected == "a document of two tokens or more"


@pytest.mark.parametrize("id", [-1, 64])
def test_a_token_outside_the_vocabulary_is_refused(id: int) -> None:
    for attempt in (
        lambda: NGram.fit([(0, id)], 64),
        lambda: verbs_model().probabilities((0, id)),
        lambda: verbs_model().log_probabilities((id, 0)),
    ):
        with pytest.raises(TextError) as caught:
            attempt()
        assert caught.value.message == f"there is no token {id}"
        assert caught.value.expected == "ids from 0 to 63"

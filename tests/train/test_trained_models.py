"""The built-in models that were trained: what they predict, and that their runs make them again."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

import byhand
from byhand import evaluate
from byhand.models import open_model
from byhand.numbers.floats import Floats
from byhand.parameters import parameters
from byhand.tokens import Vocabulary
from byhand.train import TorchModel, train
from byhand.train.corpora import open_corpus, verbs
from byhand.train.evaluation import perplexity
from byhand.train.ngram import NGram


def test_abc_is_exact_by_default_and_predicts_b_c_a_proven() -> None:
    trace = byhand.trace("abc", "ABC")
    assert trace.numbers.name == "exact"
    assert trace.next is not None
    assert [trace.token(found.id) for found in trace.next if found.id is not None] == [
        "B",
        "C",
        "A",
    ]
    assert all(found.proven for found in trace.next)


@pytest.mark.parametrize(("text", "target"), [("ABC", "A"), ("AB", "C"), ("A", "B")])
def test_the_loss_of_abc_is_below_a_ten_thousandth(text: str, target: str) -> None:
    assert byhand.trace("abc", text, target=target).loss < Fraction(1, 10_000)


def test_abc_is_a_pencil_sized_model_of_four_decimals() -> None:
    model = open_model("abc")
    assert model.spec.blocks == open_model("abc-walkthrough").spec.blocks
    assert byhand.count("abc").total == 87
    entries = [entry for tensor in model.weights.values() for entry in tensor.data.flat]
    assert all((entry * 10_000).denominator == 1 for entry in entries)


def test_minigpt_is_the_locked_model_over_the_words_of_verbs() -> None:
    trained, fresh = open_model("minigpt"), open_model("minigpt-init")
    for model in (trained, fresh):
        assert isinstance(model.vocabulary, Vocabulary)
        assert model.vocabulary.tokens == verbs.vocabulary().tokens
        assert model.text == open_corpus("verbs").text
        assert model.ends == (model.vocabulary.id("<end>"),)
    assert parameters(trained.spec) == parameters(fresh.spec)
    torch_model = byhand.MiniGPT(trained.weights)
    assert sum(p.numel() for p in torch_model.parameters()) == 103_680


def test_minigpt_knows_every_held_out_form_and_the_n_gram_model_does_not() -> None:
    corpus = open_corpus("verbs")
    model = open_model("minigpt")
    module = TorchModel(model.spec, model.weights)
    right = 0
    for question in corpus.questions:
        ids = list(question.prompt)
        with torch.no_grad():
            for _token in question.answer:
                ids.append(int(module(torch.tensor([ids]))[0, -1].argmax()))
        right += tuple(ids[len(question.prompt) :]) == question.answer
    assert right == len(corpus.questions) == 56
    baseline = NGram.fit(corpus.train, 64, groups=corpus.groups)
    assert baseline.accuracy(corpus.questions) < 0.1
    assert held_out_perplexity(model) < 2.2 < 6 < baseline.perplexity(corpus.validation)


def held_out_perplexity(model: byhand.Model) -> float:
    """e to the mean loss of the tokens of the held-out documents, each document by itself."""
    total, count = 0.0, 0
    module = TorchModel(model.spec, model.weights, format="float64")
    with torch.no_grad():
        for document in open_corpus("verbs").validation:
            logits = module(torch.tensor([document[:-1]]))[0]
            losses = torch.nn.functional.cross_entropy(
                logits, torch.tensor(document[1:]), reduction="sum"
            )
            total, count = total + float(losses), count + len(document) - 1
    return perplexity(total / count)


LONG = pytest.mark.skipif(not os.environ.get("BYHAND_LONG"), reason="long: set BYHAND_LONG=1")


@pytest.mark.parametrize("name", ["abc", pytest.param("minigpt", marks=LONG)])
def test_training_again_gives_the_same_predictions(name: str, tmp_path: Path) -> None:
    result = train(name, out=tmp_path / name)
    shipped = open_model(name)
    corpus = open_corpus("abc" if name == "abc" else "verbs")
    texts = [corpus.train[0][:3]] if name == "abc" else [q.prompt for q in corpus.questions]
    numbers = Floats("float32")
    for ids in texts:
        text = shipped.vocabulary.decode(ids)
        ours, again = (
            evaluate.trace(model, text, numbers, only=["next", "probs"])
            for model in (shipped, result.model)
        )
        assert ours.next is not None
        assert again.next is not None
        assert ours.next[-1].id == again.next[-1].id
        assert np.abs(ours["probs[-1]"] - again["probs[-1]"]).max() < 0.02

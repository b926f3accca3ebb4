"""`byhand step` and the training of real libraries: the same data, the same weights to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import byhand
from byhand.learning import Training
from byhand.lessons import read_lesson
from byhand.models import open_model
from byhand.train import Run, TorchModel, train
from byhand.train.corpora import Corpus, open_corpus
from byhand.train.run import Optimizer, Schedule

VERBS = open_corpus("verbs")
ROUNDING = 1e-12
TEXTS = {
    "abc": ["ABCA", "CAB", "BC"],
    "minigpt-init": [
        "<en> yesterday she climb -ed = ella sub -ió",
        "<en> today I walk -0 = yo camin -o",
        "<es> hoy ellos abr -en = they open -0",
    ],
}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def farthest(training: Training, found: dict[str, Any]) -> float:
    """The largest distance of a new weight from another library's, beside the largest weight."""
    assert training.new.keys() <= found.keys()
    return max(
        float(np.abs(np.asarray(new) - found[name]).max() / max(1, np.abs(found[name]).max()))
        for name, new in training.new.items()
    )


def padded(model: byhand.Model, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """(row, pos): ids and the next ids, -100 where there is none."""
    ids = [model.vocabulary.encode(text) for text in texts]
    width = max(map(len, ids)) - 1
    rows = [[*row[:-1], *[0] * (width - len(row) + 1)] for row in ids]
    targets = [[*row[1:], *[-100] * (width - len(row) + 1)] for row in ids]
    return torch.tensor(rows), torch.tensor(targets)


@pytest.mark.parametrize("name", ["abc", "minigpt-init"])
def test_five_steps_of_adamw_are_those_of_torch_optim_to_1e12(name: str) -> None:
    model, texts = open_model(name), TEXTS[name]
    training = byhand.step(
        model, texts, optimizer="adamw", lr="0.01", decay="0.1", clip=1, steps=5, numbers="float64"
    )

    module = TorchModel(model.spec, model.weights, format="float64")
    inputs, targets = padded(model, texts)
    matrices = [p for p in module.parameters() if p.dim() > 1]
    others = [p for p in module.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
        lr=0.01,
    )
    losses = []
    for _step in range(5):
        optimizer.zero_grad()
        loss = functional.cross_entropy(
            module(inputs).flatten(0, 1), targets.flatten(), ignore_index=-100
        )
        loss.backward()
        losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()

    found = {name: p.detach().numpy() for name, p in module.tensors().items()}
    assert [float(x) for x in training.losses[:5]] == pytest.approx(losses, rel=ROUNDING)
    assert training.losses[5] < training.losses[0]
    assert farthest(training, found) < ROUNDING


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_three_steps_of_the_other_optimizers_are_those_of_torch_optim(optimizer: str) -> None:
    model, texts = open_model("abc"), TEXTS["abc"]
    training = byhand.step(model, texts, optimizer=optimizer, lr="0.05", steps=3, numbers="float64")

    module = TorchModel(model.spec, model.weights, format="float64")
    inputs, targets = padded(model, texts)
    makers: dict[str, Any] = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=0.05),
    }
    chosen = makers[optimizer](module.parameters())
    for _step in range(3):
        chosen.zero_grad()
        logits = module(inputs).flatten(0, 1)
        functional.cross_entropy(logits, targets.flatten(), ignore_index=-100).backward()
        chosen.step()

    found = {name: p.detach().numpy() for name, p in module.tensors().items()}
    assert farthest(training, found) < ROUNDING


def test_byhand_train_and_byhand_step_leave_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of every text, AdamW, clipping, a warm-up and half a cosine, in float64."""
    monkeypatch.setattr("byhand.train.result.write_figure", lambda *_drawn: None)
    model = replace(open_model("minigpt-init"), text=None, target=None)
    documents = tuple(tuple(model.vocabulary.encode(text)) for text in TEXTS["minigpt-init"])
    corpus = Corpus(
        "three", "Three sentences.", VERBS.vocabulary, documents, documents[:1], False, VERBS.text
    )
    run = Run(
        "three",
        corpus,
        model.spec,
        steps=5,
        start=model,
        std=None,
        batch=3,
        optimizer=Optimizer(lr=0.01, betas=(0.9, 0.95), weight_decay=0.1),
        schedule=Schedule(2, 0.2),
        clip=0.5,
        evaluate_every=5,
        checkpoint_every=5,
        format="float64",
    )
    result = train(run, out=tmp_path / "run")

    training = byhand.step(
        model,
        TEXTS["minigpt-init"],
        optimizer="adamw",
        lr=0.01,
        betas=(0.9, 0.95),
        decay=0.1,
        clip=0.5,
        steps=5,
        warmup=2,
        schedule="cosine",
        end=0.2,
        numbers="float64",
    )

    assert result.losses == pytest.approx([float(x) for x in training.losses[:5]], rel=ROUNDING)
    assert all(step.clip < 1 for step in training.steps[:1])
    found = {name: tensor.data for name, tensor in result.model.weights.items()}
    assert farthest(training, found) < ROUNDING


def test_the_rates_of_a_schedule_are_those_of_a_run() -> None:
    schedule = Schedule(3, 0.1)
    rates = [schedule.rational_share(step, 10) for step in range(1, 11)]
    assert [float(rate) for rate in rates] == pytest.approx(
        [schedule.share(step, 10) for step in range(1, 11)], rel=1e-15
    )
    assert rates[0] * 3 == 1  # a third, exactly


def test_a_batch_is_learned_from_every_text_and_from_nothing_between_them() -> None:
    """The mean over both texts is the weighted mean of each text's own."""
    model = open_model("abc")
    one, other = (read_lesson(model, (text,), loss="mean") for text in TEXTS["abc"][:2])
    both = byhand.step(model, TEXTS["abc"][:2], numbers="float64").losses[0]
    alone = [byhand.step(model, text, loss="mean", numbers="float64") for text in TEXTS["abc"][:2]]
    counts = len(one.batch.tokens), len(other.batch.tokens)
    mean = sum(n * t.losses[0] for n, t in zip(counts, alone, strict=True)) / sum(counts)
    assert both == pytest.approx(mean, rel=1e-14)

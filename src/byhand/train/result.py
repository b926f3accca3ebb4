"""The result of a run: the trained model as files that byhand opens, the curve, the numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch

from byhand.drafts import draft_of
from byhand.model import Model
from byhand.numbers.devices import to_numpy
from byhand.train.checkpoints import write_tensors
from byhand.train.corpora import Corpus
from byhand.train.evaluation import perplexity, right_answers
from byhand.train.figure import write_figure
from byhand.train.folder import DRAFT, put_in_place, settle
from byhand.train.module import TorchModel
from byhand.train.ngram import NGram
from byhand.train.run import Run
from byhand.train.writing import model_text, written_out

MODEL, WEIGHTS = "model.yaml", "model.safetensors"


class Outcome(TypedDict):
    """The facts that are worked out at the end of a run."""

    losses: tuple[float, ...]
    validation: tuple[tuple[int, float], ...]
    baseline: float | None
    right: int
    questions: int


@dataclass(frozen=True)
class Result:
    """A finished run.  Losses are in nats a token; the model has the best weights."""

    folder: Path
    steps: int
    began: int  # the step after which this call resumed; `steps` where nothing was left to do
    tokens: int
    losses: tuple[float, ...]  # of each step, on its training texts
    validation: tuple[tuple[int, float], ...]  # (step, held-out loss)
    baseline: float | None  # the held-out loss of an n-gram model, where there are documents
    right: int  # right answers to the questions about the held-out documents
    questions: int
    model: Model
    notes: tuple[str, ...] = ()  # what has changed since the run began
    first: bool = True  # whether this process is the one that writes

    @property
    def best_step(self) -> int:
        """The step with the lowest validation loss."""
        return min(self.validation, key=lambda entry: entry[1])[0]

    @property
    def loss(self) -> float:
        """The lowest held-out loss, which is the model's."""
        return min(loss for _step, loss in self.validation)

    @property
    def perplexity(self) -> float:
        """e to the power of the loss."""
        return perplexity(self.loss)

    @property
    def uniform(self) -> float:
        """The loss of a uniform guess: ln(vocab)."""
        return math.log(self.model.spec.vocab)


def conclude(
    run: Run,
    folder: Path,
    model: TorchModel,
    records: Sequence[Mapping[str, Any]],
    device: torch.device,
) -> Outcome:
    """Writes the model, with its current weights, and the curve; returns the numbers of the run."""
    save_model(run, folder, model)
    baseline = n_gram_loss(run.corpus)
    levels = {} if baseline is None else {"n-gram": baseline}
    levels["uniform"] = math.log(run.spec.vocab)
    write_figure(folder, run.name, records, levels)
    return {
        "losses": tuple(record["loss"] for record in records if "loss" in record),
        "validation": tuple(
            (record["step"], record["validation_loss"])
            for record in records
            if "validation_loss" in record
        ),
        "baseline": baseline,
        "right": right_answers(model, run.corpus.questions, device),
        "questions": len(run.corpus.questions),
    }


def n_gram_loss(corpus: Corpus) -> float | None:
    """The held-out loss of the n-gram model; None for a stream, which has no documents."""
    if corpus.stream:
        return None
    model = NGram.fit(corpus.train, len(corpus.vocabulary), groups=corpus.groups)
    return math.log(model.perplexity(corpus.validation))


def learned_model(run: Run, model: TorchModel, folder: Path) -> Model:
    """The trained model as a Model of byhand."""
    text = run.corpus.text
    length = len(run.corpus.vocabulary.encode(text))
    return Model(
        spec=run.spec,
        weights=model.weights(),
        vocabulary=run.corpus.vocabulary,
        text=text if run.spec.context is None or length <= run.spec.context else None,
        about=about(run),
        source=str(folder / MODEL),
    )


def about(run: Run) -> str:
    """The sentence in the model file that describes the model."""
    return f"Trained on {run.corpus.name} for {run.steps:,} steps."


def save_model(run: Run, folder: Path, model: TorchModel) -> None:
    """model.yaml and model.safetensors, which `byhand trace` opens."""
    tensors = model.tensors()
    table: dict[str, Any] = {"file": WEIGHTS}
    for name in [name for name, tensor in tensors.items() if torch.isneginf(tensor).any()]:
        table[name] = written_out(np.array(to_numpy(tensors.pop(name))))  # masked scores
    with draft_of(folder / WEIGHTS, f".{WEIGHTS}{DRAFT}") as draft:
        write_tensors(draft, tensors)
    settle(folder)
    vocabulary, text = run.corpus.vocabulary, run.corpus.text
    written = model_text(run.spec, vocabulary, about=about(run), text=text, weights=table)
    put_in_place(folder / MODEL, written.encode())
